"""Python below 3.12: each call is told by `sys.setprofile`, which makes programs several times slower."""

from __future__ import annotations

import opcode
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
_ROOM = 250  # calls that we may need on top of the program's
_limit = sys.getrecursionlimit


class CallProfile:
    """Feeds a `Memory`. A program that sets a profile function of its own gets it, and we do without in that thread.

    Args:
        memory: gets the calls.
    """

    tools = ()

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.frozen = False
        self._depth = 0  # where in a thread's state the depth of recursion is, if it has to be looked at
        self._word: Any = None
        self._state: Any = None

    def begin(self) -> bool:
        """Watch this thread and those that are started from now on."""
        if sys.version_info < (3, 10):
            self._find_depth()
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)
        return True

    def _find_depth(self) -> None:
        """See how near the limit of recursion is, from now on.

        Below 3.10 there are 50 calls more after an error at the limit, until the stack has become short again, and the
        next error is fatal. So none may come up that we or the reading of values would swallow.
        """
        from . import clib, states

        try:
            self._depth = states.find_depth()
        except states.Unfit as error:
            net.failed("calls near the limit of recursion are recorded, too", error)
        self._word, self._state = states.Word, clib.python.PyThreadState_Get

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
        if self._depth and self._word(address=self._state()).ints[self._depth] + _ROOM > _limit():
            return  # at the very limit this fails, as the program would
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
        if code.co_flags & _SUSPENDS and not _begins(code, frame.f_lasti):
            return  # it goes on
        record.left -= 1
        if record.left < 0:
            now = clock()
            if record.opened and now - record.opened < _OFTEN:
                record.reads = READS_LATER
            record.left, record.opened = _BUDGET, now
        memory.count(record, code, 3)


def _begins(code: CodeType, offset: int) -> bool:
    """Whether a generator or coroutine is told of, at *offset*, as it begins; later it goes on after a yield.

    Source: f_lasti is -1 then up to 3.10; in 3.11 it is that of RESUME, whose argument is 0 there alone.
    """
    return offset < 0 or (code.co_code[offset] == _RESUME and code.co_code[offset + 1] == 0)


_RESUME = opcode.opmap.get("RESUME", -1)
