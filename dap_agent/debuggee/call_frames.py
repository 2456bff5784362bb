"""What the flight recorder reads of code and frames while the program runs: without running any of its code.

Nor does anything here make an audit event, which the program or we ourselves might listen to.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import sys
import threading
from _thread import get_ident
from types import CodeType, FrameType, FunctionType
from typing import Any

from . import reading, stop

_FUNCTION = 0x02  # CO_NEWLOCALS: module and class bodies have none
_PARTS = frozenset(("<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>"))
_ALARMS = [
    getattr(_signal, name)
    for name in ("SIGALRM", "SIGVTALRM", "SIGPROF", "SIGUSR1", "SIGUSR2")
    if hasattr(_signal, name)
]

identity: Any = object.__hash__  # id() is an audit event, for which hooks.py has a function


def is_function(code: CodeType) -> bool:
    """Whether code is a function's, not a module's, a class's or a part of another function."""
    return bool(code.co_flags & _FUNCTION) and code.co_name not in _PARTS


def argument_names(code: CodeType) -> tuple[str, ...]:
    """The names of all parameters, `*args` and `**kwargs` included, in the order of the interpreter."""
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)  # CO_VARARGS, CO_VARKEYWORDS
    return code.co_varnames[:count]


def running(depth: int) -> FrameType | None:
    """The frame *depth* calls further out than the caller's; `sys._getframe` would be an audit event."""
    try:
        raise _Here
    except _Here as here:
        trace = here.__traceback__
        frame: FrameType | None = trace.tb_frame if trace is not None else None
        here.__traceback__ = None
        del trace  # it has this very frame, which would have itself and its callers until a garbage collection
    for _ in range(depth + 1):
        if frame is not None:
            frame = frame.f_back
    return frame


def locals_of(frame: FrameType, names: tuple[str, ...]) -> dict[str, Any]:
    """Those of the local variables *names* of a function that have values."""
    held: Any = frame.f_locals if names else {}
    found = {name: held[name] for name in names if name in held}
    if sys.version_info[:2] == (3, 12) and type(held) is dict and sys.getrefcount(held) <= _NOBODYS:
        held.clear()  # the frame's copy would keep the values alive until the function ends
    return found


_NOBODYS = 3  # references to the copy: the frame's, ours, and that of the call which counts them


class _Here(Exception):
    pass


def alarmed() -> bool:
    """Whether a signal handler of the program's may raise at any moment: while values are read that would get lost."""
    for number in _ALARMS:
        handler = _signal.getsignal(number)
        if type(handler) is FunctionType and handler.__module__ == "pytest_timeout":
            continue  # what it raises is a BaseException, which passes
        if callable(handler):
            return True
    return False


def made_for(code: CodeType, name: str, frame: FrameType | None) -> str:
    """The name of a function that a library has made: `Order.__init__`, not `__create_fn__.<locals>.__init__`."""
    if frame is None or not code.co_argcount:
        return name
    owner = locals_of(frame, code.co_varnames[:1]).get(code.co_varnames[0])
    cls = type(owner)
    if owner is None or reading.class_attribute(cls, code.co_name) is reading.MISSING:
        return name
    return "%s.%s" % (reading.qualname(cls), code.co_name)


def caller_of(frame: FrameType) -> dict[str, Any] | None:
    """`file` and `line` that a frame was called from, if they are known."""
    outer = frame.f_back
    if outer is None:
        return None
    space: Any = outer.f_globals
    file = reading.text_of(space.get("__file__")) if type(space) is dict else None
    if file is None or outer.f_lineno is None:
        return None
    return {"file": file, "line": outer.f_lineno}


def thread_name() -> str:
    """Of this thread, without running a Thread's properties."""
    thread = threading._active.get(get_ident())  # type: ignore[attr-defined]
    name = reading.text_of(reading.own(thread, "_name")) if thread is not None else None
    return name or "Thread %d" % get_ident()


def task_name() -> str | None:
    """Of the asyncio task that runs in this thread."""
    module = sys.modules.get("_asyncio")
    if module is None or module._get_running_loop() is None:
        return None
    found = stop.this_task()
    return found["name"] if found is not None else None
