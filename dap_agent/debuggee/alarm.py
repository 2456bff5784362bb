"""A time limit for code in a forked copy: an exception interrupts it, so that it can be said where it was."""

from __future__ import annotations

import _thread
import ctypes
import signal
import sys
from typing import Any

from . import clib


class TimeUp(BaseException):
    """Raised in code whose time is over."""


class Alarm:
    """For a forked process, in its only thread.

    Args:
        seconds: until `TimeUp` is raised, from `start` on.
        main: whether the thread was the main one before the fork. Else 3.13 and newer look for signals in a thread
            that is gone (`_PyEval_SignalReceived` sets the flag of `_PyRuntime.main_tstate`), and another way is taken.
    """

    def __init__(self, seconds: float, main: bool) -> None:
        self._seconds = seconds
        self._by_thread = sys.version_info >= (3, 13) and not main
        self._over = _thread.allocate_lock()
        self._raised = False

    def start(self) -> None:
        """Begin to count."""
        if self._by_thread:
            self._over.acquire()
            _thread.start_new_thread(self._watch, (_thread.get_ident(),))
            return

        def up(number: int, frame: Any) -> None:
            raise TimeUp

        signal.signal(signal.SIGALRM, up)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
        signal.setitimer(signal.ITIMER_REAL, self._seconds)

    def stop(self) -> None:
        """Nothing is interrupted from now on."""
        try:
            if self._by_thread:
                if self._over.locked():
                    self._over.release()
                for _ in range(1000 if self._raised else 0):  # what was ordered in the last moment is delivered here
                    pass
            else:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except TimeUp:
            return

    def _watch(self, ident: int) -> None:
        if not self._over.acquire(timeout=self._seconds):
            self._raised = True
            clib.python.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(TimeUp))
