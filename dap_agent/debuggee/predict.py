"""Whether an exception that is being raised will be handled, judged from the live stack, without running any of it.

Definitions. *Unhandled*: it, or another one raised in its place (`raise X from e`), ends the program, a thread, a
test, a task or a request. A handler that always raises in the end has handled nothing. A handler that calls a function
which happens to raise has handled it: that second exception is judged when it is raised.
"""

from __future__ import annotations

import ast
import sys
from typing import Any, NamedTuple

from . import boundaries, guards, interrupts, managers, reading, statics, tasks
from .effects import PASS, Effect, Raised, joined
from .statics import Scope


class Verdict(NamedTuple):
    """The judgement.

    Args:
        unhandled: whether nothing will handle it; a guess unless *certain*.
        why: in words: who handles it, or where it ends, or what is not known.
        certain: whether everything that had to be known for it was known.
    """

    unhandled: bool
    why: str
    certain: bool


_control = [StopIteration, StopAsyncIteration, GeneratorExit, SystemExit, KeyboardInterrupt]
_cancellations = {"asyncio.exceptions": "CancelledError", "concurrent.futures._base": "CancelledError"}


def _directs_control(raised: Raised) -> bool:
    """Exceptions that are no failures, whoever handles them."""
    for module in list(_cancellations):
        if module in sys.modules:  # nothing is imported for our sake
            found = reading.lookup(reading.loaded_module(module) or {}, _cancellations[module])
            if issubclass(type(found), type):
                del _cancellations[module]
                _control.append(found)
    return raised.is_a(*_control)


_control_flow = Verdict(False, "an exception that directs the flow of control", True)
_MAX_FRAMES = 100000


def will_be_unhandled(exc_type: type, exc: BaseException | None, frame: Any) -> Verdict:
    """Judge an exception at its raise.

    Args:
        exc_type: its class.
        exc: the exception, where it is at hand: needed for `except*` and what is in a group.
        frame: the frame that raises it.

    Raises nothing of its own; what can't be judged is not certain.
    """
    return way_of(exc_type, exc, frame)[0]


def way_of(exc_type: type, exc: BaseException | None, frame: Any) -> tuple[Verdict, int | None]:
    """The same, and how many callers further out it is decided; None if that is not on this stack alone."""
    try:
        raised = Raised(exc_type, exc)
        if _directs_control(raised):
            return _control_flow, 0
        way = _Way(frame, raised)
        return way.judge(), way.callers
    except Exception as error:  # the program's stack may hold anything: a wrong guess is better than a new exception
        interrupts.pass_on(error)
        return Verdict(False, "it could not be judged (%s)" % type(error).__name__, False), None


class _Way:
    """The way of one exception through the frames."""

    def __init__(self, frame: Any, raised: Raised) -> None:
        self.start = frame
        self.raised = raised
        self.doubt: str | None = None
        self.callers: int | None = 0

    def judge(self) -> Verdict:
        inner: Any = None
        frame = self.start
        for _ in range(_MAX_FRAMES):
            if frame is not None and inner is not None and _restarts(frame):
                # what comes out of a call that was restarted leaves it, wherever it stood
                inner, frame = frame.f_back, frame.f_back.f_back
                self.callers = None if self.callers is None else self.callers + 2
            if frame is None:
                if not _starts_the_program(inner):
                    self._doubt("C code has called %s" % inner.f_code.co_name)
                return self._unhandled("nothing on the stack handles it")
            record = guards.of_code(frame.f_code, frame.f_globals)
            verdict, onward = self._frame(frame, inner, record)
            if verdict is not None:
                return verdict
            if onward is not None:
                self.callers = None
            while onward is not None:  # on into frames that are suspended or run in another thread
                if onward.grouped:
                    self.raised = self.raised.in_group()
                below: Any = None
                for waiting in onward.waiting:
                    verdict, _ = self._frame(waiting, below, guards.of_code(waiting.f_code, waiting.f_globals))
                    if verdict is not None:
                        return verdict
                    below = waiting
                if onward.then is None:
                    frame, inner = onward.running, None
                    break
                ended = tasks.after(onward.then, self.start)
                if isinstance(ended, Effect):
                    verdict = self._apply(ended, "")
                    return verdict if verdict is not None else self._unhandled(ended.why)
                onward = ended
            else:
                inner, frame = frame, frame.f_back
                self.callers = None if self.callers is None else self.callers + 1
        return Verdict(False, "the stack is too deep", False)

    def _frame(self, frame: Any, inner: Any, record: guards.Code) -> tuple[Verdict | None, Any]:
        """What one frame does: a verdict, or where the exception goes on if that is not the caller."""
        if inner is not None:
            effect = boundaries.through_c(frame, inner, self.raised, record)
            if effect is not PASS:
                verdict = self._apply(effect, _where(record, frame))
                if verdict is not None:
                    return verdict, None
        rule = boundaries.rule_for(record, frame)
        if rule is not None:
            found = rule(frame, inner, self.raised)
            if isinstance(found, tasks.Onward):
                return None, found
            if found is not None:
                return self._apply(found, _where(record, frame)), None
        place = record.place(frame.f_lasti)
        if not place.sure:
            self._doubt("the source of %s is not at hand or has changed" % record.code.co_name)
        if place.guards:
            scope = Scope.of_frame(frame)
            for guard in place.guards:
                effect = _guarded(guard, scope, self.raised, 0)
                if effect is not PASS:
                    verdict = self._apply(effect, _where(record, frame))
                    if verdict is not None:
                        return verdict, None
        task = tasks.task_that_ends(frame) if record.code.co_flags & 0x180 else None
        if task is not None and inner is not frame:
            ended = tasks.after(task, self.start)
            if isinstance(ended, tasks.Onward):
                return None, ended
            verdict = self._apply(ended, "")
            return (verdict if verdict is not None else self._unhandled(ended.why)), None
        return None, None

    def _apply(self, effect: Effect, where: str) -> Verdict | None:
        if effect.kind == "handled":
            return Verdict(False, _said(effect.why, where), self.doubt is None)
        if effect.kind == "ends":
            if not effect.sure:
                self._doubt(effect.why)
            return self._unhandled(effect.why)
        if effect.kind == "maybe":
            self._doubt(_said(effect.why, where))
        elif effect.kind == "becomes":
            self.raised = _successor(effect, self.raised)
            if _directs_control(self.raised):
                return Verdict(False, _said(effect.why, where), self.doubt is None)
        return None

    def _doubt(self, why: str) -> None:
        if self.doubt is None:
            self.doubt = why

    def _unhandled(self, why: str) -> Verdict:
        if self.doubt is None:
            return Verdict(True, why, True)
        return Verdict(True, "%s, unless: %s" % (why, self.doubt), False)


def _restarts(frame: Any) -> bool:
    """Whether it is the function in landing.py that makes a call again, for the frame below it."""
    code = frame.f_code
    return bool(code.co_name == "__invert__" and code.co_filename == "<dap-agent>/debuggee/landing.py")


def _starts_the_program(frame: Any) -> bool:
    """Whether the interpreter itself runs *frame* first; any other C code may handle what comes out of it."""
    name = reading.text_of(frame.f_globals.get("__name__")) if type(frame.f_globals) is dict else ""
    return (frame.f_code.co_name == "<module>" and name == "__main__") or name == "runpy"


def _where(record: guards.Code, frame: Any) -> str:
    return record.code.co_name


def _said(why: str, where: str) -> str:
    return "%s, in %s" % (why, where) if where else why


def _successor(effect: Effect, raised: Raised) -> Raised:
    return raised.in_group() if effect.type == "group" else Raised(effect.type)


def through(around: Any, scope: Scope, raised: Raised, depth: int) -> Effect:
    """What several guards do together with an exception that is raised inside of them (innermost first)."""
    doubt: Effect | None = None
    changed: Effect | None = None
    for guard in around:
        effect = _guarded(guard, scope, raised, depth)
        if effect.kind in ("handled", "ends"):
            return effect if doubt is None else doubt
        if effect.kind == "maybe":
            doubt = doubt or effect
        elif effect.kind == "becomes":
            changed = effect
            raised = _successor(effect, raised)
    return doubt or changed or PASS


def _guarded(guard: Any, scope: Scope, raised: Raised, depth: int) -> Effect:
    kind = type(guard)
    if kind is guards.Nothing:
        return PASS
    if kind is guards.Except:
        return _caught(guard, scope, raised)
    if kind is guards.Manager:
        return managers.effect_of(guard, scope, raised)
    return _left(guard.exits, scope, raised, None, guard.body, "the finally in line %d" % guard.line, passes=True)


def _caught(guard: guards.Except, scope: Scope, raised: Raised) -> Effect:
    possible: list[Effect] = []
    for handler in guard.handlers:
        if handler.type is None:
            caught: bool | None = True
        else:
            classes = statics.exception_types(statics.value_of(handler.type, scope))
            if classes is None:
                caught = None
            else:
                caught = raised.caught_by_star(classes) if guard.star else raised.caught_by(classes)
        if caught is False:
            continue
        effect = _left(
            handler.exits, scope, raised, handler.alias, handler.body, "the except in line %d" % handler.line
        )
        if guard.star and effect.kind == "becomes":
            effect = effect._replace(type="group" if effect.type == "group" else None)
        if caught:
            possible.append(effect)
            break
        possible.append(effect)
    else:
        if possible:
            possible.append(PASS)
    return joined(possible)


def _left(
    exits: guards.Exits, scope: Scope, raised: Raised, alias: str | None, body: Any, why: str, passes: bool = False
) -> Effect:
    """What becomes of the exception in a handler, or in a `finally` (*passes*: falling through it raises it again)."""
    outcomes: list[Effect] = []
    ways = exits.ways
    if passes and "fall" in ways:
        outcomes.append(PASS)
        ways = ways - {"fall"}
    if ways or not (exits.raises or outcomes):
        outcomes.append(Effect("handled", why))
    for statement in exits.raises:
        outcomes.append(_raised_by(statement, scope, raised, alias, body, why))
    return joined(outcomes)


def _raised_by(statement: ast.Raise, scope: Scope, raised: Raised, alias: str | None, body: Any, why: str) -> Effect:
    node: Any = statement.exc
    if node is None or (isinstance(node, ast.Name) and node.id == alias):
        return PASS
    if isinstance(node, ast.Name):
        stored = [n for s in body for n in ast.walk(s) if isinstance(n, ast.Assign)]
        values = [n.value for n in stored if any(getattr(t, "id", None) == node.id for t in n.targets)]
        if len(values) == 1:
            node = values[0]
        elif values:
            return Effect("becomes", why, None)
    if isinstance(node, ast.Call):
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr == "with_traceback":
            if isinstance(function.value, ast.Name) and function.value.id == alias:
                return PASS
            node = function.value
            function = node.func if isinstance(node, ast.Call) else node
        value = statics.value_of(function, scope)
        return Effect("becomes", why, value if _is_exception(value) else None)
    value = statics.value_of(node, scope)
    if not _is_exception(value):
        value = type(value)
    return Effect("becomes", why, value if _is_exception(value) else None)


def _is_exception(value: Any) -> bool:
    return issubclass(type(value), type) and BaseException in reading.mro(value)
