"""Asking the user: the answer comes from the controlling terminal, as standard input belongs to the program."""

import asyncio
import contextlib
import os
import sys
from types import TracebackType
from typing import Any

TTY = "/dev/tty"


class Terminal:
    """The controlling terminal, to be opened before the program starts so that its modes are known.

    A program may have changed the modes (curses, getpass) when it stops; while a question is asked the modes are those
    from before the program, afterwards the program's again.

    Args:
        descriptor: the open terminal, read and write.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._modes = _modes(descriptor)

    @classmethod
    def open(cls) -> "Terminal | None":
        """The terminal to ask on: there is one if our messages go to a terminal and this process has one; else None."""
        if not sys.stderr.isatty():
            return None
        try:
            return cls(os.open(TTY, os.O_RDWR | getattr(os, "O_NOCTTY", 0)))
        except OSError:
            return None

    def forget_typed(self) -> None:
        """Drop what was typed before: it was meant for the program and must not answer a question."""
        import termios

        with contextlib.suppress(termios.error):
            termios.tcflush(self._descriptor, termios.TCIFLUSH)

    async def read_line(self) -> str | None:
        """The next line that is typed, without its end; None at the end of input or if the terminal cannot be read."""
        programs_modes = _modes(self._descriptor)
        _set_modes(self._descriptor, self._modes)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[str | None] = loop.create_future()

        def readable() -> None:
            try:
                data = os.read(self._descriptor, 4096)
            except OSError:
                data = b""
            if not answer.done():
                answer.set_result(data.decode("utf-8", "replace").rstrip("\r\n") if data else None)

        loop.add_reader(self._descriptor, readable)
        try:
            return await answer
        finally:
            loop.remove_reader(self._descriptor)
            _set_modes(self._descriptor, programs_modes)

    def close(self) -> None:
        """Give the terminal back; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _modes(descriptor: int) -> list[Any] | None:
    import termios

    try:
        return termios.tcgetattr(descriptor)
    except termios.error:
        return None


def _set_modes(descriptor: int, modes: list[Any] | None) -> None:
    import signal
    import termios

    if modes is None:
        return
    # a process outside the terminal's foreground group would be stopped for setting modes
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, modes)
    except termios.error:
        return
    finally:
        signal.signal(signal.SIGTTOU, before)
