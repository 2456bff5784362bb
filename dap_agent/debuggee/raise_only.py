"""Below Python 3.12: raises are told by a function that wants nothing else (tracefunc.py), within a budget.

Of an exception on its way out there is an event in every frame; only the first is the raise.
"""

from __future__ import annotations

import ctypes
import sys
import time
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from . import at_raise, bridge, hooks, interrupts, stop, tracefunc
from .at_raise import identity

if TYPE_CHECKING:
    from .at_raise import Watch

_BATCH = 500  # events between two looks at the clock
_COST = 4e-6  # seconds that an event costs which is nothing new, measured (3.8 to 3.11), on a slow machine
_REFUSAL = 3e-6  # and one that there was no time to judge
_CREDIT = 0.01  # seconds that such events may cost at once
_FIRST_CREDIT = 0.04  # and at the program's start, with all its imports
_SHARE = 0.06  # of the time that has passed since, the part that they get

_clock = time.perf_counter  # programs replace it
_NONE: dict[Any, Any] = {}


def install(watch: Watch) -> None:
    """Let *watch* judge the raises of this thread and of those that are started from now on.

    Raises:
        states.Unfit: it cannot be done with this interpreter.
    """
    hooks.after_audit(tracefunc.audited)
    try:
        tracefunc.install(_Listener(watch))
    except BaseException:
        hooks.after_audit(None)
        raise
    bridge.beside_stops(tracefunc.suspended)


def remove() -> None:
    """Watch no more."""
    tracefunc.end()


class _Listener(tracefunc.Listener):
    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._handled = watch.handled
        self._credit, self._since = _FIRST_CREDIT, _clock()

    def raised(self, exc: BaseException, trace: TracebackType, frame: FrameType) -> None:
        found = self._handled.get(identity(frame.f_code), _NONE).get((trace.tb_lasti, identity(type(exc))))
        if found is not None:
            caller: FrameType | None = frame
            for offset, line in found[1]:
                caller = caller.f_back if caller is not None else None
                if caller is None or caller.f_lasti != offset or caller.f_lineno != line:
                    break
            else:
                return
        interrupts.came(exc)
        self._watch.met(exc, frame)

    def affords(self) -> int:
        now = _clock()
        if self._credit < _CREDIT:
            self._credit = min(_CREDIT, self._credit + _SHARE * (now - self._since))
        self._credit -= _BATCH * _COST
        self._credit -= self._watch.refused * _REFUSAL
        self._watch.refused = 0
        self._since = now
        if self._credit >= 0:
            return _BATCH
        tracefunc.pause((_BATCH * _COST - self._credit) / _SHARE)
        return 0

    def own_profiler(self) -> bool:
        found = getattr(sys.getprofile, "__wrapped__", sys.getprofile)()  # without what hides ours (call_switch.py)
        code = getattr(found, "__code__", None)
        return code is not None and code.co_filename.startswith(stop.OURS)

    def failed(self, error: BaseException) -> Any:
        return None if at_raise.failed(error) else _raising(error)


def _raising(error: BaseException) -> Any:
    """A class that, raised, is *error*, which a signal's handler of the program's has raised while we were at it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(stop.OURS):
        trace = trace.tb_next
    error.__traceback__ = trace
    interrupts.send(error)
    kind = type(error)
    if kind is KeyboardInterrupt:
        return ctypes.py_object(kind)

    class Same(kind):  # type: ignore[valid-type,misc]
        def __new__(cls, *args: Any) -> Any:
            return error

    Same.__name__, Same.__qualname__, Same.__module__ = kind.__name__, kind.__qualname__, kind.__module__
    return ctypes.py_object(Same)
