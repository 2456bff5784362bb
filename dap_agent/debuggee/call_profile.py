"""Python below 3.12: each call is told by `sys.setprofile`, which makes programs several times slower."""

from __future__ import annotations

import sys
import threading
from types import CodeType, FrameType
from typing import Any

from . import net
from .call_frames import identity, is_ours
from .calls import READS_LATER, Memory, clock

_BUDGET = 200  # calls of one function between two looks at the clock
_OFTEN = 0.05  # seconds within which so many of them are very often
_SUSPENDS = 0x2A0  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR


class CallProfile:
    """Feeds a `Memory`. A program that sets a profile function of its own gets it, and we do without in that thread.

    Args:
        memory: gets the calls.
    """

    tools = ()

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.frozen = False

    def begin(self) -> bool:
        """Watch this thread and those that are started from now on."""
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)
        return True

    def end(self) -> None:
        """Watch no more: this thread at once, the others when they meet their next call."""
        self.frozen = True
        if sys.getprofile() == self._profile:
            sys.setprofile(None)
        if threading._profile_hook == self._profile:
            threading.setprofile(None)

    def saw(self, code: CodeType) -> None:
        """Nothing: all calls are told."""

    def again(self) -> None:
        """Nothing waits here."""

    def _profile(self, frame: FrameType, event: str, arg: Any) -> None:
        if self.frozen or (event != "call" and event != "return"):
            return
        try:
            if event == "call":
                self._called(frame)
            else:
                record = self._memory.known.get(identity(frame.f_code))
                if record is not None and record.open and not frame.f_code.co_flags & _SUSPENDS:
                    self._memory.returned(record, frame, arg)
        except (RecursionError, MemoryError):
            return
        except BaseException as error:
            if not is_ours(error):
                raise
            net.failed("a call could not be recorded", error)

    def _called(self, frame: FrameType) -> None:
        memory, code = self._memory, frame.f_code
        record = memory.known.get(identity(code))
        if record is None or record.forgotten or record.line != code.co_firstlineno or record.file != code.co_filename:
            if not memory.of_user(code, 3):
                return
            record = memory.record_of(code, 3)
        if code.co_flags & _SUSPENDS and identity(frame) in record.open:
            return  # it goes on
        record.left -= 1
        if record.left < 0:
            now = clock()
            if record.opened and now - record.opened < _OFTEN:
                record.reads = READS_LATER
            record.left, record.opened = _BUDGET, now
        memory.count(record, code, 3)
