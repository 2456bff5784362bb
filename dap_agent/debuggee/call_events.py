"""Python 3.12+: the interpreter tells of each call of the user's functions, as long as their budget lasts (PEP 669).

The events are set for each function's code alone. So they can be taken away and given back for one function without
the `restart_events` that would switch the events of debuggers and coverage on again; and code of libraries has none:
on 3.12 it would stay 3 percent slower once it had one, however soon that was disabled (measured).

All code is executed by `exec` in the end, module by module, and of that there is an audit event.
"""

from __future__ import annotations

import itertools
import sys
import time
import weakref
from functools import partial
from types import CodeType, FrameType
from typing import Any, Callable

from . import c_threads, net
from .call_frames import identity, is_function, running
from .calls import READS_LATER, Memory, Record, clock
from .interrupts import is_ours
from .recursing import complete, three_deep

_TOOLS = (5, 3, 4)  # debugger, coverage and profiler have a meaning; raise_events.py has 4 or 3
_NAME = "dap-agent"

_PORTION = 25
"""Calls of one function that are seen before the budget is looked at."""

_PORTIONS = 8
"""Portions of one function at once, if the budget of all allows."""

_AGAIN = 0.05
"""Seconds after which a function that has used its budget is seen again, at least."""

_COST = 0.6e-6  # seconds that an event costs, measured (3.12, 3.13), on a slow machine
_CREDIT = 0.02  # seconds that events may cost at once
_SHARE = 0.06  # of the time that has passed since, the part that they get

_monitoring: Any = getattr(sys, "monitoring", None)
_sleep = time.sleep
_traceback = BaseException.__dict__["__traceback__"].__get__
_AT_LIMIT = ("maximum recursion depth exceeded",)


class CallEvents:
    """Feeds a `Memory`.

    Args:
        memory: gets the calls.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._tool: int | None = None
        self._codes: dict[int, weakref.ref[CodeType]] = {}  # what is watched, by identity
        self._hot: list[CodeType] = []  # functions that wait for their next budget
        self._pending: list[bool] = []  # not empty: a thread will give it to them
        self._credit, self._since = _CREDIT, clock()
        self._ends: list[Any] = []  # what that thread does at last
        self.frozen = False

    def begin(self) -> bool:
        """Watch; False if the program has the tools that it takes."""
        tool = next((tool for tool in _TOOLS if _monitoring.get_tool(tool) is None), None)
        if tool is None:
            return False
        self._tool = tool
        _monitoring.use_tool_id(tool, _NAME)
        events = _monitoring.events
        self._events = events.PY_START | events.PY_RETURN
        unwinds = partial(_monitoring.set_events, tool, events.PY_UNWIND)
        self._ends[:] = [self._hot.clear, self._pending.clear, unwinds]
        _yield_to_others(self)
        _monitoring.register_callback(tool, events.PY_START, self._watcher())
        _monitoring.register_callback(tool, events.PY_RETURN, self._returns())
        _monitoring.register_callback(tool, events.PY_UNWIND, self._unwinder())
        _monitoring.set_events(tool, events.PY_UNWIND)
        for frame in sys._current_frames().values():
            outer: FrameType | None = frame
            while outer is not None:
                self.saw(outer.f_code)
                outer = outer.f_back
        return True

    @property
    def tool(self) -> int | None:
        """The id that is ours at present."""
        return self._tool

    def saw(self, code: CodeType) -> None:
        """Watch the functions in *code*, which is about to be executed, if it may be the user's."""
        if self._tool is None or type(code) is not CodeType:
            return
        try:
            if self._memory.may_be_users(code.co_filename):
                self._watch(code)
        except (RecursionError, MemoryError):
            return
        except BaseException as error:
            if not is_ours(error):
                raise
            net.failed("the functions of %s are not recorded" % code.co_filename, error)

    def _watch(self, code: CodeType) -> None:
        left = [code]
        while left:
            code = left.pop()
            left += [const for const in code.co_consts if type(const) is CodeType]
            if is_function(code):
                if len(self._codes) > 20000:
                    self._codes = {key: held for key, held in self._codes.items() if held() is not None}
                self._codes[identity(code)] = weakref.ref(code)
                _monitoring.set_local_events(self._tool, code, self._events)

    def end(self) -> None:
        """Watch no more, and take back what the interpreter keeps of it, so that others can have the tool."""
        if self._tool is None:
            return
        tool, self._tool = self._tool, None
        self._hot.clear()
        self._ends.clear()
        events = _monitoring.events
        _monitoring.set_events(tool, 0)
        for event in (events.PY_START, events.PY_RETURN, events.PY_UNWIND):
            _monitoring.register_callback(tool, event, None)
        for held in self._codes.values():
            code = held()
            if code is not None:
                _monitoring.set_local_events(tool, code, 0)
        self._codes.clear()

    def again(self) -> None:
        """See all functions at once that wait for that: after a stop, or in a fork, whose thread is in the parent."""
        if self._tool is None:
            return
        self._pending.clear()
        hot = self._hot[:]
        self._hot.clear()
        for code in hot:
            _monitoring.set_local_events(self._tool, code, self._events)
        self._set_unwinds(True)

    def _welcome(self, code: CodeType) -> None:
        """A function that is new to us, or that was forgotten, at a call of it."""
        if self._tool is None:
            return
        if not self._memory.of_user(code, 3):
            _monitoring.set_local_events(self._tool, code, 0)
            return
        record = self._memory.record_of(code, 3)
        if record.left <= 0:
            record.left, record.portions, record.opened = _PORTION, _PORTIONS, clock()
        if not self.frozen:
            self._memory.count(record, code, 3)

    def _watcher(self) -> Callable[[CodeType, int], None]:
        memory = self._memory
        known, count = memory.known, memory.count

        def started(code: CodeType, offset: int) -> None:
            try:
                record = known.get(identity(code))
                if record is None or record.forgotten:
                    self._welcome(code)
                    return
                record.left -= 1
                if record.left < 0:
                    self._used(record, code)
                if not self.frozen:
                    count(record, code, 2)
            except (RecursionError, MemoryError):
                return
            except BaseException as error:
                if not is_ours(error):
                    raise
                net.failed("a call could not be recorded", error)

        return started

    def _returns(self) -> Callable[[CodeType, int, Any], None]:
        memory = self._memory
        known = memory.known

        def returned(code: CodeType, offset: int, value: Any) -> None:
            try:
                record = known.get(identity(code))
                if record is not None and record.open and not self.frozen:
                    memory.returned(record, running(1), value)
            except (RecursionError, MemoryError):
                return
            except BaseException as error:
                if not is_ours(error):
                    raise
                net.failed("a result could not be recorded", error)

        return returned

    def _unwinder(self) -> Callable[[CodeType, int, BaseException], None]:
        memory = self._memory
        known = memory.known
        left = _PORTIONS * _PORTION

        def unwound(code: CodeType, offset: int, exc: BaseException) -> None:
            nonlocal left
            try:
                left -= 1
                if left < 0:
                    left = _PORTIONS * _PORTION
                    if not self._affords(left):
                        self._set_unwinds(False)
                        if not self.frozen:
                            self._later()
                if type(exc) is RecursionError and not _raises_are_watched():  # else that is done there
                    trace = _third(exc)
                    if trace is not None:
                        try:
                            three_deep()
                        except RecursionError:
                            complete(trace)
                record = known.get(identity(code))
                if record is not None and not self.frozen:
                    memory.left(record, exc)
            except (RecursionError, MemoryError):
                return
            except BaseException as error:
                if not is_ours(error):
                    raise
                net.failed("an exception could not be recorded", error)

        return unwound

    def _affords(self, events: int) -> bool:
        now = clock()
        self._credit = min(_CREDIT, self._credit + _SHARE * (now - self._since)) - events * _COST
        self._since = now
        return self._credit > 0

    def _used(self, record: Record, code: CodeType) -> None:
        """A portion is used up: a function that took its time has more of them than one that is called very often."""
        afforded = self._affords(_PORTION)
        record.left = _PORTION
        record.portions -= 1
        if self._since - record.opened >= _AGAIN:
            record.portions, record.opened = _PORTIONS, self._since
        if afforded and record.portions > 0:
            return
        record.portions, record.opened = _PORTIONS, self._since
        record.thinned = True
        record.open.clear()  # nobody tells of their ends now
        record.reads = READS_LATER
        if self._tool is None:
            return
        _monitoring.set_local_events(self._tool, code, 0)
        # under a debugger that watches the same code, too, this is dear; it is given back at the same price
        self._credit -= 2 * (clock() - self._since)
        self._hot.append(code)
        if not self.frozen:
            self._later()

    def _later(self) -> None:
        """Give the next budgets, in a while."""
        if self._pending or self._tool is None:
            return
        self._pending.append(True)
        delay = max(_AGAIN, -self._credit / _SHARE)
        always, set_events, tool = itertools.repeat, _monitoring.set_local_events, self._tool
        steps = itertools.chain(
            (partial(_sleep, delay),),
            map(partial, always(set_events), always(tool), self._hot, always(self._events)),
            self._ends,
        )
        if not c_threads.start(steps):
            self._pending.clear()

    def _set_unwinds(self, wanted: bool) -> None:
        if self._tool is not None:
            _monitoring.set_events(self._tool, _monitoring.events.PY_UNWIND if wanted else 0)


_raises = "%s.raise_events" % __package__


def _raises_are_watched() -> bool:
    watching: Any = sys.modules.get(_raises)
    return watching is not None and watching._tool is not None


def _third(exc: RecursionError) -> Any:
    """The third and last entry of the traceback of one that the interpreter has raised at its limit."""
    trace = _traceback(exc)
    for _ in range(2):
        trace = trace.tb_next if trace is not None else None
    return trace if trace is not None and trace.tb_next is None and exc.args == _AT_LIMIT else None


_watching: list[CallEvents] = []


def _yield_to_others(watching: CallEvents) -> None:
    """The program may ask for the very id that we have taken: it gets it, and we do without."""
    first = not _watching
    _watching[:] = [watching]
    if not first:
        return
    use, free = _monitoring.use_tool_id, _monitoring.free_tool_id

    def use_tool_id(*args: Any) -> Any:
        tool = _watching[0].tool
        if tool is not None and args and args[0] == tool:
            _watching[0].end()
            free(tool)
        return use(*args)

    def free_tool_id(*args: Any) -> Any:
        return None if args and args[0] is not None and args[0] == _watching[0].tool else free(*args)

    for stock, ours in ((use, use_tool_id), (free, free_tool_id)):
        ours.__name__ = ours.__qualname__ = stock.__name__
        ours.__doc__ = stock.__doc__
    _monitoring.use_tool_id, _monitoring.free_tool_id = use_tool_id, free_tool_id
