"""Python 3.12+: the interpreter tells of each call of the user's functions, as long as their budget lasts (PEP 669).

Two tools: one is told of every function's first call, in all code, and finds out whose it is; the other one is told of
the calls of the user's functions, by events that are set for each code object alone. Those can be taken away and given
back for one function without the `restart_events` that would switch the events of debuggers and coverage on again.
"""

from __future__ import annotations

import _thread
import collections
import itertools
import operator
import sys
import time
from functools import partial
from types import CodeType
from typing import Any, Callable

from . import net, raise_events
from .calls import READS_LATER, Memory, Record, clock, identity, is_ours, running

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
_call: Any = getattr(operator, "call", None)  # 3.11+
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
        self._tools: tuple[int, int] | None = None
        self._hot: list[CodeType] = []  # functions that wait for their next budget
        self._pending: list[bool] = []  # not empty: a thread will give it to them
        self._credit, self._since = _CREDIT, clock()
        self._ends: list[Any] = []  # what that thread does at last
        self.frozen = False

    def begin(self) -> bool:
        """Watch; False if the program has the tools that it takes."""
        free = [tool for tool in _TOOLS if _monitoring.get_tool(tool) is None]
        if len(free) < 2:
            return False
        finder, watcher = self._tools = (free[0], free[1])
        for tool in self._tools:
            _monitoring.use_tool_id(tool, _NAME)
        events = _monitoring.events
        self._events = events.PY_START | events.PY_RETURN
        unwinds = partial(_monitoring.set_events, watcher, events.PY_UNWIND)
        self._ends[:] = [self._hot.clear, self._pending.clear, unwinds]
        _yield_to_others(self)
        _monitoring.register_callback(finder, events.PY_START, self._guarded(self._finder(), _monitoring.DISABLE))
        _monitoring.register_callback(watcher, events.PY_START, self._watcher())
        _monitoring.register_callback(watcher, events.PY_RETURN, self._returns())
        _monitoring.register_callback(watcher, events.PY_UNWIND, self._unwinder())
        _monitoring.set_events(watcher, events.PY_UNWIND)
        _monitoring.set_events(finder, events.PY_START)
        return True

    @property
    def tools(self) -> tuple[int, ...]:
        """The ids that are ours at present."""
        return self._tools or ()

    def end(self) -> None:
        """Watch no more."""
        if self._tools is None:
            return
        tools, self._tools = self._tools, None
        self._hot.clear()
        self._ends.clear()
        events = _monitoring.events
        for tool in tools:
            _monitoring.set_events(tool, 0)
            for event in (events.PY_START, events.PY_RETURN, events.PY_UNWIND):
                _monitoring.register_callback(tool, event, None)

    def leave_nothing(self, tools: tuple[int, ...]) -> None:
        """Take back what the interpreter keeps of the tools' events, so that others can have the tools."""
        self._memory.forget_codes(lambda code: _monitoring.set_local_events(tools[1], code, 0))
        _monitoring.restart_events()  # what the other tool has been told of once

    def again(self) -> None:
        """See all functions at once that wait for that: after a stop, or in a fork, whose thread is in the parent."""
        if self._tools is None:
            return
        self._pending.clear()
        hot = self._hot[:]
        self._hot.clear()
        for code in hot:
            _monitoring.set_local_events(self._tools[1], code, self._events)
        self._set_unwinds(True)

    def _guarded(self, function: Callable[..., Any], value: Any = None) -> Callable[..., Any]:
        def callback(code: CodeType, offset: int) -> Any:
            try:
                function(code)
            except (RecursionError, MemoryError):
                return None  # no room: at its next call
            except BaseException as error:
                if not is_ours(error):
                    raise
                net.failed("a call could not be recorded", error)
            return value

        return callback

    def _finder(self) -> Callable[[CodeType], None]:
        memory = self._memory

        def found(code: CodeType) -> None:
            if memory.of_user(code, 3):
                self._welcome(code, 4)

        return found

    def _welcome(self, code: CodeType, depth: int) -> Record:
        """A function of the user's that is new to us, or that was forgotten."""
        record = self._memory.record_of(code, depth)
        if record.left <= 0:
            record.left, record.portions, record.opened = _PORTION, _PORTIONS, clock()
        if self._tools is not None:
            _monitoring.set_local_events(self._tools[1], code, self._events)
        if not self.frozen:
            self._memory.count(record, code, depth)
        return record

    def _watcher(self) -> Callable[[CodeType, int], None]:
        memory = self._memory
        known, count = memory.known, memory.count

        def started(code: CodeType, offset: int) -> None:
            try:
                record = known.get(identity(code))
                if record is None or record.forgotten:
                    self._welcome(code, 3)
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
                if type(exc) is RecursionError and raise_events._tool is None:  # else that is done there
                    trace = _third(exc)
                    if trace is not None:
                        try:
                            raise_events._three_deep()
                        except RecursionError:
                            raise_events._complete(trace)
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
        record.reads = READS_LATER
        if self._tools is None:
            return
        _monitoring.set_local_events(self._tools[1], code, 0)
        self._hot.append(code)
        if not self.frozen:
            self._later()

    def _later(self) -> None:
        """Give the next budgets, in a while. C code does it: a thread that runs no Python is not seen by debuggers."""
        if self._pending or self._tools is None:
            return
        self._pending.append(True)
        delay = max(_AGAIN, -self._credit / _SHARE)
        always, set_events, tool = itertools.repeat, _monitoring.set_local_events, self._tools[1]
        steps = itertools.chain(
            (partial(_sleep, delay),),
            map(partial, always(set_events), always(tool), self._hot, always(self._events)),
            self._ends,
        )
        try:
            _thread.start_new_thread(collections.deque, (map(_call, steps), 0))
        except RuntimeError:  # the interpreter shuts down, or there may be no more threads
            self._pending.clear()

    def _set_unwinds(self, wanted: bool) -> None:
        if self._tools is not None:
            _monitoring.set_events(self._tools[1], _monitoring.events.PY_UNWIND if wanted else 0)


def _third(exc: RecursionError) -> Any:
    """The third and last entry of the traceback of one that the interpreter has raised at its limit."""
    trace = _traceback(exc)
    for _ in range(2):
        trace = trace.tb_next if trace is not None else None
    return trace if trace is not None and trace.tb_next is None and exc.args == _AT_LIMIT else None


_watching: list[CallEvents] = []


def _yield_to_others(watching: CallEvents) -> None:
    """The program may ask for the very ids that we have taken: it gets them, and we do without."""
    first = not _watching
    _watching[:] = [watching]
    if not first:
        return
    use, free = _monitoring.use_tool_id, _monitoring.free_tool_id

    def use_tool_id(*args: Any) -> Any:
        tools = _watching[0].tools
        if args and args[0] in tools:
            _watching[0].end()
            _watching[0].leave_nothing(tools)
            for tool in tools:
                free(tool)
        return use(*args)

    def free_tool_id(*args: Any) -> Any:
        return None if args and args[0] in _watching[0].tools else free(*args)

    for stock, ours in ((use, use_tool_id), (free, free_tool_id)):
        ours.__name__ = ours.__qualname__ = stock.__name__
        ours.__doc__ = stock.__doc__
    _monitoring.use_tool_id, _monitoring.free_tool_id = use_tool_id, free_tool_id
