"""Python 3.12+: the interpreter tells us of each raise (PEP 669). It costs nothing until something is raised.

Of an exception on its way out there is an event in every frame; only the first is the raise. These events cannot be
switched off for one place, so a program that raises and handles all the time gets them for a part of the time only.
"""

from __future__ import annotations

import _thread
import collections
import operator
import os
import sys
import time
from functools import partial
from types import CodeType
from typing import TYPE_CHECKING, Any, Callable

from . import at_raise
from .at_raise import identity
from .recursing import complete, three_deep

if TYPE_CHECKING:
    from .at_raise import Watch

_TOOLS = (4, 3)  # the others have a meaning: debugger, coverage, profiler, optimizer
_NAME = "dap-agent"

_BATCH = 1000  # events between two looks at the clock
_COST = 0.7e-6  # seconds that an event costs which is nothing new, measured (3.12, 3.13), on a slow machine
_REFUSAL = 3e-6  # and one that there was no time to judge
_CREDIT = 0.015  # seconds that such events may cost at once
_SHARE = 0.08  # of the time that has passed since, the part that they get

_traceback = BaseException.__dict__["__traceback__"].__get__
_class_attributes = type.__dict__["__dict__"].__get__
_mro = type.__dict__["__mro__"].__get__
_clock = time.perf_counter  # programs replace it
_AT_LIMIT = ("maximum recursion depth exceeded",)

_monitoring: Any = getattr(sys, "monitoring", None)
_call: Any = getattr(operator, "call", None)  # 3.11+

_tool: int | None = None
_pause_ends = 0.0


def install(watch: Watch) -> None:
    """Let *watch* judge the raises of all threads, if one of the free tool ids is left for us."""
    global _tool
    for tool in _TOOLS:
        if _monitoring.get_tool(tool) is None:
            break
    else:
        return
    _tool = tool
    _monitoring.use_tool_id(tool, _NAME)
    _yield_to_others()
    _monitoring.register_callback(tool, _monitoring.events.RAISE, _callback(watch))
    _monitoring.set_events(tool, _monitoring.events.RAISE)
    os.register_at_fork(after_in_child=_go_on)


def remove() -> None:
    """Watch no more."""
    global _tool
    if _tool is not None:
        tool, _tool = _tool, None
        _monitoring.set_events(tool, 0)
        _monitoring.register_callback(tool, _monitoring.events.RAISE, None)


def _go_on() -> None:
    """In a fork's child: whoever would have ended a pause has stayed in the parent."""
    if _tool is not None:
        _monitoring.set_events(_tool, _monitoring.events.RAISE)


def _yield_to_others() -> None:
    """The program may ask for the very id that we have taken: it gets it, and we do without."""
    use, free = _monitoring.use_tool_id, _monitoring.free_tool_id

    def use_tool_id(*args: Any) -> Any:
        if _tool is not None and args and args[0] == _tool:
            tool = _tool
            remove()
            time.sleep(max(0.0, _pause_ends - _clock()))  # else the end of a pause would change the program's events
            free(tool)
        return use(*args)

    def free_tool_id(*args: Any) -> Any:
        if _tool is None or not args or args[0] != _tool:
            return free(*args)
        return None

    for stock, ours in ((use, use_tool_id), (free, free_tool_id)):
        ours.__name__ = ours.__qualname__ = stock.__name__
        ours.__doc__ = stock.__doc__
    _monitoring.use_tool_id, _monitoring.free_tool_id = use_tool_id, free_tool_id


def _callback(watch: Watch) -> Callable[[CodeType, int, BaseException], None]:
    plain: dict[int, tuple[type, bool]] = {}  # classes, kept alive, and whether `__traceback__` is the stock one
    handled = watch.handled
    left = _BATCH
    credit, since = _CREDIT, _clock()

    def tick() -> int:
        nonlocal credit, since
        now = _clock()
        credit = min(_CREDIT, credit + _SHARE * (now - since)) - _BATCH * _COST - watch.refused * _REFUSAL
        watch.refused = 0
        since = now
        if credit < 0:
            _pause((_CREDIT / 2 - credit) / _SHARE)
        return _BATCH

    def known(cls: type) -> tuple[type, bool]:
        if len(plain) > 10000:
            plain.clear()
        found = plain[identity(cls)] = (cls, _stock_attributes(cls))
        return found

    def raised(code: CodeType, offset: int, exc: BaseException) -> None:
        nonlocal left
        try:
            cls = type(exc)
            kind = plain.get(identity(cls))
            if kind is None:
                kind = known(cls)
            trace = exc.__traceback__ if kind[1] else _traceback(exc)
            left -= 1
            if left < 0:
                left = tick()
            if trace is None:
                return
            inner = trace.tb_next
            if inner is not None:  # in a caller's frame
                if cls is RecursionError:
                    inner = inner.tb_next
                    if inner is not None and inner.tb_next is None and exc.args == _AT_LIMIT:
                        try:
                            three_deep()
                        except RecursionError:
                            complete(inner)
                return
            places = handled.get(identity(code))
            if places is not None:
                # by its own offset: that of the event may be another one's (3.13)
                found = places.get((trace.tb_lasti, identity(cls)))
                if found is not None:
                    if not found[1]:
                        return
                    frame = trace.tb_frame  # an audit event, for which hooks.py has a function
                    for offset, line in found[1]:
                        frame = frame.f_back
                        if frame is None or frame.f_lasti != offset or frame.f_lineno != line:
                            break
                    else:
                        return
            watch.met(exc, trace.tb_frame)
        except (RecursionError, MemoryError):
            return  # no room to judge it
        except BaseException as error:
            if not at_raise.failed(error):
                raise

    return raised


def _stock_attributes(cls: type) -> bool:
    """Whether reading `__traceback__` of an instance runs no code of the program's."""
    for base in _mro(cls):
        if base is BaseException:
            return True
        names = _class_attributes(base)
        if "__traceback__" in names or "__getattribute__" in names:
            return False
    return False


def _pause(seconds: float) -> None:
    """No events for a while. C code ends it: a thread that runs no Python is not seen by debuggers and their like."""
    global _pause_ends
    if _tool is None:
        return
    _pause_ends = _clock() + seconds + 0.05
    later = (partial(time.sleep, seconds), partial(_monitoring.set_events, _tool, _monitoring.events.RAISE))
    _monitoring.set_events(_tool, 0)
    try:
        _thread.start_new_thread(collections.deque, (map(_call, later), 0))
    except RuntimeError:
        pass  # the interpreter shuts down, or there may be no more threads: then the rest is left to the hooks
