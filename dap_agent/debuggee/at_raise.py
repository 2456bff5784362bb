"""In a headless run: the stop where an exception is raised that for certain nothing will handle.

Our own events tell of raises (raise_events.py from Python 3.12 on, raise_only.py below). What can't be known, or may
not be stopped at there, is left to the places where it comes to light (hooks.py).
"""

from __future__ import annotations

import sys
import threading
import time
from _thread import get_ident
from types import CodeType, FrameType, TracebackType
from typing import Any

from . import bridge, hooks, interrupts, judging, marks, net, predict, reading, stop
from .installed import is_installed

_ROOM = 250  # frames that a stop may need on top of the program's
identity: Any = object.__hash__  # id() is an audit event, for which hooks.py has a function
_NONE: dict[Any, Any] = {}
_NEAR = 8  # callers among which the program's own code counts as the one that raises
_KEPT = 4  # raises of one place in the program's own code that are judged at any cost

_context = BaseException.__dict__["__context__"].__get__
_clock = time.perf_counter  # programs replace it
_quick: Any = None

CREDIT = 0.1
"""Seconds that judging may take at once."""

SHARE = 0.08
"""Of the time that has passed since, the part that it gets."""


class Watch:
    """Judges raises, within a budget.

    Args:
        ignored: what is never a stop.

    Attributes:
        handled: raises known to be handled, by identity of the code, offset in it, and identity of the class: the
            class, and the way to the handler: offset and line of each caller up to it.
        refused: raises for which there was no time.
    """

    def __init__(self, ignored: judging.Ignored) -> None:
        self.ignored = ignored
        self.handled: dict[int, dict[tuple[int, int], Any]] = {}
        self.codes: dict[int, CodeType] = {}  # keeps them alive, so that their ids stay theirs
        self.refused = 0
        self._credit = CREDIT
        self._since = _clock()
        self._own: dict[tuple[int, int], int] = {}

    def met(self, exc: BaseException, frame: FrameType) -> None:
        """Judge *exc*, which *frame* raises right now, and stop there if nothing will handle it."""
        began = _clock()
        if not self._affords(frame, began):
            self.refused += 1
            return
        exc_type = type(exc)
        if stop.is_hidden(frame):
            self._remember(exc_type, frame, ())
            return
        if sys.is_finalizing() or _debuggers_thread() or marks.of(exc) is not None:
            return
        if self.ignored.ignores(exc_type, frame) or marks.told_at_raise(exc) or _closing(exc):
            return
        try:
            certain = self._judge(exc_type, exc, frame)
        finally:
            self._credit -= _clock() - began
        if certain and _has_room(frame):
            hooks.stop_at_raise(exc, frame)

    def _judge(self, exc_type: type, exc: BaseException, frame: FrameType) -> bool:
        callers = _quick.handled(exc_type, frame) if _quick is not None else None
        if callers is not None:
            self._remember(exc_type, frame, _way(frame, callers))
            return False
        with hooks.undisturbed() as alone:
            if not alone:
                return False
            verdict, callers = predict.way_of(exc_type, exc, frame)
        if verdict.unhandled:
            return verdict.certain
        if callers is not None and callers <= 8:
            self._remember(exc_type, frame, _way(frame, callers))
        return False

    def _affords(self, frame: FrameType, now: float) -> bool:
        """Whether there is time left to judge: for the program's own code at any rate, a few times for each place."""
        self._credit = min(CREDIT, self._credit + SHARE * (now - self._since))
        self._since = now
        if self._credit > 0:
            return True
        user: FrameType | None = frame
        for _ in range(_NEAR):
            if user is None:
                return False
            if not is_installed(user.f_code.co_filename):
                break
            user = user.f_back
        else:
            return False
        place = identity(user.f_code), user.f_lasti
        judged = self._own[place] = self._own.get(place, 0) + 1
        return judged <= _KEPT

    def knows(self, exc_type: type, trace: TracebackType) -> bool:
        """Whether a raise is known to be handled."""
        found = self.handled.get(identity(trace.tb_frame.f_code), _NONE).get((trace.tb_lasti, identity(exc_type)))
        if found is None:
            return False
        frame: FrameType | None = trace.tb_frame
        for offset, line in found[1]:
            frame = frame.f_back if frame is not None else None
            if frame is None or frame.f_lasti != offset or frame.f_lineno != line:
                return False
        return True

    def _remember(self, exc_type: type, frame: FrameType, way: Any) -> None:
        if len(self.codes) > 20000:
            self.codes.clear()
            self.handled.clear()
        code = frame.f_code
        self.codes[identity(code)] = code
        self.handled.setdefault(identity(code), {})[frame.f_lasti, identity(exc_type)] = (exc_type, way)


def _way(frame: FrameType, callers: int) -> tuple[tuple[int, int | None], ...]:
    found: list[tuple[int, int | None]] = []
    caller = frame.f_back
    while len(found) < callers and caller is not None:
        found.append((caller.f_lasti, caller.f_lineno))  # not its code: to ask for that is an audit event
        caller = caller.f_back
    return tuple(found)


def _debuggers_thread() -> bool:
    return bridge.is_debugger_thread(threading._active.get(get_ident()))  # type: ignore[attr-defined]


def _closing(exc: BaseException) -> bool:
    """Whether a generator raises it that is closed, perhaps by a garbage collection: nobody might get it."""
    context = _context(exc)
    for _ in range(20):
        if context is None:
            return False
        if issubclass(type(context), GeneratorExit):
            return True
        context = _context(context)
    return False


def _has_room(frame: FrameType) -> bool:
    """Whether the stack is far enough from its limit for a stop."""
    left = sys.getrecursionlimit() - _ROOM
    current: FrameType | None = frame
    while current is not None and left > 0:
        current = current.f_back
        left -= 1
    return left > 0


def failed(error: BaseException) -> bool:
    """Deal with an error that came up while we judged a raise; whether it was ours, and not the program's.

    A signal handler of the program's may raise at any moment, and what it raises is for the program.
    """
    if not interrupts.is_ours(error) or not _of_ours(reading.module(type(error))):
        return False
    if not issubclass(type(error), (RecursionError, MemoryError)):
        net.failed("a raise could not be judged", error)
    return True


def _of_ours(module: str | None) -> bool:
    """Whether what we do raises classes of *module*: of a handler in C they are all that tells."""
    return module == "builtins" or (module or "").startswith((__package__ or "?") + ".")


def install(mode: str, ignored: judging.Ignored) -> None:
    """Watch the raises of this process from now on.

    Args:
        mode: `auto` where it costs nothing until something is raised, `always` or `never`.
        ignored: what is never a stop.
    """
    global _quick
    if mode == "never":
        return
    if sys.version_info >= (3, 12):
        from . import quick, raise_events

        _quick = quick
        raise_events.install(Watch(ignored))
        return
    watch = Watch(ignored)
    try:
        from . import raise_only

        raise_only.install(watch)
    except Exception as error:  # no ctypes, or an interpreter that is not as we know it
        net.failed("exceptions are not watched where they are raised: this interpreter is not known", error)
        if mode == "always":
            from . import raise_trace

            raise_trace.install(watch)


def remove() -> None:
    """Watch no more: the program goes on without us."""
    if sys.version_info >= (3, 12):
        from . import raise_events

        raise_events.remove()
        return
    only: Any = sys.modules.get((__package__ or "") + ".raise_only")
    if only is not None:
        only.remove()
