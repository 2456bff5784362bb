"""What functions do line by line: variables where they change, branches, calls, results and exceptions.

By `sys.settrace`, on all versions: it gives the frame, and what it costs is a forked copy's. Values are read without
running code of the program's; a condition of the model's may run some, which is why all of it belongs in a jail.
"""

from __future__ import annotations

import dis
import sys
import types
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from . import packages, paths, reading, snapshot, sources
from .failures import Teller
from .firsts import FirstChange, When, alike, identity, is_plain
from .secrets import is_secret_name
from .steps import Function, Step, Told
from .stop import OURS, is_hidden
from .values import Formatter, Limits

FIRST = 3
"""Times that a line is told of; of what comes then the last steps are."""

STEPS = 1000000
"""Lines that are looked at, at most: then the call goes on untraced."""

_DEEP = 64  # times of a line after which only what is bound anew is compared
_SHOWN = Limits(text=120, string=80, items=6, depth=3, nodes=40)
_SHORT = 10**15
_HEADROOM = 150  # frames of our own, at most
_PARTS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<lambda>")
_SUSPENDABLE = 0x2A0  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR
_COROUTINE = 0x80


class Wanted(NamedTuple):
    """What is to be told.

    Args:
        functions: names, qualified or not, or ends of file names; empty: all of the user's code.
        variables: names or paths; empty: all local variables.
        first_change: the name or path whose first change is looked for; empty: none.
        when: a condition, compiled: then only steps are told at which it holds or begins or ceases to; None: all.
        kept: steps that are told, at most.
        steps: lines that are looked at, at most.
    """

    functions: Tuple[str, ...] = ()
    variables: Tuple[str, ...] = ()
    first_change: str = ""
    when: Optional[types.CodeType] = None
    kept: int = 120
    steps: int = STEPS


class _Call:
    """A call that runs."""

    __slots__ = ("code", "function", "kept", "raised", "seen", "shallow", "step", "watched")

    def __init__(self, function: Function, code: types.CodeType) -> None:
        self.function, self.code = function, code
        self.seen: Dict[str, Tuple[Any, Any, bool]] = {}  # name -> value, what is shown of it, whether it is immutable
        self.step: Optional[Step] = None
        self.watched: Any = None  # what `firsts.FirstChange` has seen there
        self.shallow = self.raised = self.kept = False


class Tracer:
    """Traces what this thread calls, from `start` on. For a process that is thrown away.

    Args:
        wanted: what is to be told.
        picture: masks.
        first: the code that is traced wherever it comes from; None: none.
    """

    def __init__(self, wanted: Wanted, picture: snapshot.Picture, first: Optional[types.CodeType]) -> None:
        self.wanted = wanted
        self.functions: List[Function] = []
        self.steps = 0
        self.limits: List[str] = []  # those that were met: `steps`, `kept`
        self.notes: List[str] = []
        self._first = first
        self._teller = Teller(picture.formatter, self.notes)
        self._formatter: Formatter = picture.formatter
        self._formatter.deadline = None
        self._chosen: Dict[int, Optional[Function]] = {}
        self._codes: List[types.CodeType] = []  # keeps their ids their own
        self._calls: Dict[int, _Call] = {}
        self._depth = 0
        self._look_again = 50
        self._open_names: Dict[str, bool] = {}
        self._told = Told(wanted.kept)
        self.first_change = FirstChange(wanted.first_change, self._formatter) if wanted.first_change else None
        self.when = When(wanted.when, self._formatter, self.notes) if wanted.when is not None else None
        self._over = False

    def start(self) -> None:
        """Begin."""
        settrace()(self._called)

    def check(self) -> None:
        """Say so if the program has set a trace function of its own: coverage, a debugger."""
        if not self._over and sys.gettrace() != self._called:
            self.notes.append("The code has set a trace function of its own: what came after that was not traced.")

    def told(self) -> List[Step]:
        """The steps; to be asked for when all is over."""
        self._over = True
        if self._told.full:
            self.limits.append("kept")
        return self._told.all()

    def _push(self, step: Step, new: bool) -> Step:
        if self.wanted.when is None:
            self._told.push(step, new)
        elif step.holds or (step.kind == "raise" and new):
            self._told.push(step, True)
        return step  # one that is left out is told when it turns out that the condition holds after it

    # ---- the interpreter's events

    def _called(self, frame: types.FrameType, event: str, arg: Any) -> Any:
        if self._over or event != "call":
            return None
        try:
            function = self._function(frame)
            if function is None:
                return None
            self._depth += 1
            if self._depth >= self._look_again and self._no_room(frame):
                return None
            call = self._calls.get(identity(frame))
            if call is not None and call.code is frame.f_code:
                call.step = self._push(Step("resume", function, frame.f_lineno, self._depth, self.steps), call.kept)
                return self._event
            function.calls += 1
            call = self._calls[identity(frame)] = _Call(function, frame.f_code)
            step = Step("call", function, frame.f_code.co_firstlineno, self._depth, self.steps)
            step.changes = self._changed(call, frame, step, True)
            call.kept = function.calls <= FIRST
            self._push(step, call.kept)
            return self._event
        except Exception as error:  # ours: it is not to become the program's
            return self._failed(error)

    def _event(self, frame: types.FrameType, event: str, arg: Any) -> Any:
        if self._over:
            frame.f_trace_lines = False
            return None
        call = self._calls.get(identity(frame))
        if call is None:
            return self._event
        try:
            if event == "line":
                self._line(call, frame)
            elif event == "exception":
                self._raised(call, frame, arg)
            elif event == "return":
                self._returned(call, frame, arg)
        except Exception as error:  # ours: it is not to become the program's
            return self._failed(error)
        return self._event

    def _no_room(self, frame: types.FrameType) -> bool:
        """Whether the stack is nearly full: 3.8 ends the process if somebody goes on at the limit, as we would."""
        depth = 0
        outer: Optional[types.FrameType] = frame
        while outer is not None:
            outer = outer.f_back
            depth += 1
        room = sys.getrecursionlimit() - depth - _HEADROOM
        self._look_again = self._depth + max(1, room // 2)
        if room <= 0:
            self._failed(RecursionError())
        return room <= 0

    def _failed(self, error: Exception) -> None:
        if isinstance(error, RecursionError):
            self.notes.append("The trace ended where the recursion left no room for it.")
        else:
            self.notes.append("The trace ended by an error of dap-agent's own (%s)." % type(error).__name__)
        self._end()

    def _end(self) -> None:
        self._over = True
        settrace()(None)

    def _line(self, call: _Call, frame: types.FrameType) -> None:
        line = frame.f_lineno
        self._finish(call, frame, line)
        self.steps += 1
        if self.steps > self.wanted.steps:
            self.limits.append("steps")
            self._end()
            return
        function = call.function
        function.steps += 1
        visits = function.visits.get(line, 0) + 1
        function.visits[line] = visits
        call.raised = False
        call.step = self._push(Step("line", function, line, self._depth, self.steps), visits <= FIRST)

    def _finish(self, call: _Call, frame: types.FrameType, line: int) -> None:
        """The line before has run: what has it changed?"""
        step = call.step
        if step is None:
            return
        call.step = None
        step.next = line
        deep = call.function.visits.get(step.line, 0) <= _DEEP
        step.changes += self._changed(call, frame, step, deep)

    def _raised(self, call: _Call, frame: types.FrameType, arg: Any) -> None:
        _, error, trace = arg
        if isinstance(error, (StopIteration, StopAsyncIteration)) and call.code.co_flags & _SUSPENDABLE:
            return  # how a wait gets its value
        if call.raised or (trace is not None and trace.tb_next is not None and self._traces(trace.tb_next.tb_frame)):
            call.raised = True
            return
        call.raised = True
        self._finish(call, frame, 0)
        step = Step("raise", call.function, frame.f_lineno, self._depth, self.steps)
        step.text = self._said(error)
        visits = call.function.visits.get(-frame.f_lineno, 0) + 1
        call.function.visits[-frame.f_lineno] = visits
        self._push(step, visits <= FIRST)

    def _traces(self, frame: types.FrameType) -> bool:
        call = self._calls.get(identity(frame))
        return (call is not None and call.code is frame.f_code) or self._chosen.get(identity(frame.f_code)) is not None

    def _said(self, error: Any) -> str:
        name = reading.type_name(type(error))
        message = self._teller.message(error) if isinstance(error, BaseException) else ""
        return ("%s: %s" % (name, message) if message else name)[:300]

    def _returned(self, call: _Call, frame: types.FrameType, value: Any) -> None:
        how = _how_left(frame, value, call.raised)
        self._finish(call, frame, 0)
        step = Step(how, call.function, frame.f_lineno or 0, self._depth, self.steps)
        if how == "return" or (how == "yield" and not frame.f_code.co_flags & _COROUTINE):
            step.value = self._formatter.value(value, None, _SHOWN)
        step.holds = self.when is not None and self.when.holding
        self._depth = max(0, self._depth - 1)
        if how != "yield":
            self._calls.pop(identity(frame), None)
        self._push(step, call.kept)

    # ---- which functions

    def _function(self, frame: types.FrameType) -> Optional[Function]:
        code = frame.f_code
        key = identity(code)
        if key in self._chosen:
            return self._chosen[key]
        if code.co_name == "<module>" and code is not self._first:
            chosen = False  # imports
        elif is_hidden(frame) or code.co_filename.startswith((OURS, "<evaluate")):
            chosen = False
        else:
            chosen = self._is_chosen(frame, code)
        self._codes.append(code)
        found = None
        if chosen:
            found = Function(len(self.functions), sources.qualified_name(frame), code)
            self.functions.append(found)
        self._chosen[key] = found
        return found

    def _is_chosen(self, frame: types.FrameType, code: types.CodeType) -> bool:
        back = frame.f_back
        if code.co_name in _PARTS and back is not None and self._chosen.get(identity(back.f_code)) is not None:
            return any(each is code for each in back.f_code.co_consts)
        if self.wanted.functions:
            name = sources.qualified_name(frame)
            plain = name.replace("<locals>.", "")
            for wanted in self.wanted.functions:
                if any(each == wanted or each.endswith("." + wanted) for each in (name, plain)):
                    return True
                if wanted.endswith(".py") and ("/" + code.co_filename).endswith("/" + wanted):
                    return True
            return False
        return code is self._first or _is_users(frame, code)

    # ---- values

    def _changed(self, call: _Call, frame: types.FrameType, step: Step, deep: bool) -> List[Dict[str, Any]]:
        """What differs from what was there before."""
        held = snapshot.locals_of(frame)
        found = []
        names = self._read(held, frame) if self.wanted.variables else held
        late = call.shallow
        call.shallow = not deep
        for name, value in names.items():
            if name[:1] in (".", "@"):
                continue
            before = call.seen.get(name)
            same = before is not None and before[0] is value
            if same and (before[2] or not deep):  # type: ignore[index]
                continue
            if not self.wanted.variables and before is None and _is_definition(value) and step.kind != "call":
                continue
            shown = self._shown(name, value)
            call.seen[name] = (value, shown, is_plain(value))
            if before is None or not alike(before[1], shown):
                found.append(
                    {"name": name, "before": before[1] if before else None, "value": shown, "late": late and same}
                )
        for name in [name for name in call.seen if name not in names] if len(call.seen) > len(names) else ():
            found.append({"name": name, "before": call.seen.pop(name)[1], "value": None, "late": False})
        if self.first_change is not None:
            self.first_change.look(call, frame, held, step)
        if self.when is not None:
            self.when.ask(frame, held, step)
            if step.holds and step.kind != "call":
                self._told.push(step, True)
        return found

    def _shown(self, name: str, value: Any) -> Dict[str, Any]:
        if type(value) is int and -_SHORT < value < _SHORT:  # what loops count with: by far the most
            if self._open_names.get(name) is None:
                self._open_names[name] = not is_secret_name(name)
            if self._open_names[name]:
                return {"type": "int", "text": int.__repr__(value)}
        return self._formatter.value(value, name.rpartition(".")[2] or name, _SHOWN)

    def _read(self, held: Dict[str, Any], frame: types.FrameType) -> Dict[str, Any]:
        found = {}
        for path in self.wanted.variables:
            try:
                found[path] = held[path] if path in held else paths.follow(path, held, frame.f_globals).value
            except paths.NotThere:
                continue
        return found


def settrace() -> Any:
    """`sys.settrace` itself: pydevd puts a function in its place that warns on stderr."""
    holder = getattr(sys.modules.get("pydevd_tracing"), "TracingFunctionHolder", None)
    return getattr(holder, "_original_tracing", None) or sys.settrace


def _is_definition(value: Any) -> bool:
    cls = type(value)
    return cls is types.FunctionType or issubclass(cls, (types.ModuleType, type))


def _is_users(frame: types.FrameType, code: types.CodeType) -> bool:
    """Whether it is the user's own; what was made by `exec` is of the module that it runs in."""
    if not code.co_filename.startswith("<"):
        return packages.origin_of(code.co_filename).user
    space: Any = frame.f_globals
    file = reading.text_of(space.get("__file__")) if type(space) is dict else None
    return file is not None and code.co_name != "__create_fn__" and packages.origin_of(file).user


def _how_left(frame: types.FrameType, value: Any, raised: bool) -> str:
    """What an event `return` is: a return, a `yield` (or a wait), or that an exception has left the call."""
    code = frame.f_code
    if value is not None and not code.co_flags & _SUSPENDABLE:
        return "return"
    steps, last = code.co_code, frame.f_lasti
    before, here, after = (dis.opname[steps[n]] if 0 <= n < len(steps) else "" for n in (last - 2, last, last + 2))
    if here.startswith("RETURN"):
        return "return"
    if raised and value is None:
        return "left"
    # below 3.11 a wait stands before its instruction, from 3.13 on a yield stands behind it
    if here.startswith("YIELD") or after == "YIELD_FROM" or (here == "RESUME" and before.startswith("YIELD")):
        return "yield"
    return "return" if value is not None else "left"
