"""Signals to dap-agent: the program's are passed on, Ctrl-C ends what dap-agent does at the moment."""

import asyncio
import os
import signal
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Interrupted(Exception):
    """The user ended with Ctrl-C (or a signal ended) what dap-agent was doing."""


class TakesSignals(Protocol):
    """A program that signals can be passed on to."""

    def send_signal(self, number: int) -> None:
        """Pass on a signal."""


def from_terminal() -> bool:
    """Whether a SIGINT comes from Ctrl-C at the terminal, so that the kernel has sent it to the program as well.

    The sender of a signal is not known here; but if this process is in the terminal's foreground group, so is the
    program.
    """
    try:
        descriptor = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(descriptor)


class Interrupts:
    """Signal handling for the time of one run.

    SIGINT ends what `interruptible` is doing; at other times it is the program's own matter. SIGTERM and SIGHUP go to
    the program and end what `interruptible` is doing; without a program they end the run.

    Args:
        pass_on_interrupt: whether the program shall get a SIGINT that only we got; not for an attached one.
    """

    def __init__(self, *, pass_on_interrupt: bool = True) -> None:
        self.program: TakesSignals | None = None
        self.ended_by: int | None = None
        self._pass_on_interrupt = pass_on_interrupt
        self._current: asyncio.Task[Any] | None = None
        self._main: asyncio.Task[Any] | None = None
        self._interrupted = False

    def __enter__(self) -> "Interrupts":
        self._main = asyncio.current_task()
        loop = asyncio.get_running_loop()
        for number in self._handled():
            loop.add_signal_handler(number, self._received, number)
        return self

    def __exit__(self, *_: object) -> None:
        loop = asyncio.get_running_loop()
        for number in self._handled():
            loop.remove_signal_handler(number)

    async def interruptible(self, work: Coroutine[Any, Any, T]) -> T:
        """Do *work*, to be ended by a signal.

        Raises:
            Interrupted: a signal came; *work* has been cancelled and is over.
        """
        self._interrupted = False
        task = asyncio.ensure_future(work)
        self._current = task
        try:
            return await task
        except asyncio.CancelledError:
            if self._interrupted and self.ended_by is None:
                raise Interrupted from None
            task.cancel()
            raise
        finally:
            self._current = None

    def _handled(self) -> list[int]:
        # a signal that whoever started us wants ignored (nohup) stays ignored, for the program too
        names = ("SIGINT", "SIGTERM", "SIGHUP")
        numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
        return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]

    def _received(self, number: int) -> None:
        if self.program is not None and (number != signal.SIGINT or (self._pass_on_interrupt and not from_terminal())):
            self.program.send_signal(number)
        if self._current is not None:
            self._interrupted = True
            self._current.cancel()
        elif self.program is None and self._main is not None:
            self.ended_by = number
            self._main.cancel()
