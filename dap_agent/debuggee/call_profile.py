"""Python below 3.12: calls are told by a profile function, which makes programs several times slower while it is there.

So it is there all the time in a program that calls little, and in many short windows in one that calls much: when the
time that it may take is used up, it is taken out of the thread that calls, and a thread of ours puts it in again.
"""

from __future__ import annotations

import contextlib
import itertools
import opcode
import os
import sys
import threading
import time
from _thread import get_ident
from functools import partial
from types import CodeType, FrameType
from typing import Any, Callable

from . import c_threads, net, new_threads, reading, states, stop
from .call_frames import identity
from .call_switch import Switch, Thread
from .calls import READS_LATER, Memory, clock
from .interrupts import is_ours

_BUDGET = 200  # calls of one function between two looks at the clock
_OFTEN = 0.05  # seconds within which so many of them are very often
_SUSPENDS = 0x2A0  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR
_ROOM = 250  # calls that we may need on top of the program's

_PORTION = 2000
"""Units of work between two looks at the budget: a C function's call or return is one."""

_PYTHON = 4  # units of the call or the return of a Python function
_BESIDE = 6  # the same, where the trace function is told of it, too, that waits for exceptions (tracefunc.py)
_USERS = 5  # units more of a call that is noted
_COST = 0.25e-6  # seconds of a unit, measured (3.8 to 3.11), on a slow machine
_RICH = 100  # units for each call of the user's that are well spent
_POOR = 3  # times the cost of others: of a program that works in libraries a shorter part is watched
_WINDOW = 150e-6  # and of putting the function in again
_FIRST_CREDIT = 0.05  # seconds that all may cost at the program's start, with its imports
_CREDIT = 0.02  # and later at once
_FRESH = 0.002  # when everything begins anew, at each test
_SHARE = 0.06  # of the time that has passed since, the part that it gets
_SHORTEST = 0.01  # seconds between two windows, at least
_IDLE = 20  # looks at threads that have the function, before it is left to them
_PATIENCE = 100, 1000
"""Events after which the function goes at a return without a value, too, and at any event."""

_FOREIGN = 20000  # functions of others that are known at a glance
_DEAF = 0.5  # seconds until the next window of a thread in which raises are missed between two

_COUNTS_DOWN = sys.version_info >= (3, 11)
_LOOKS = 0 if sys.version_info < (3, 10) else 50
"""Events between two looks at the depth of recursion. An error at the limit is nothing worse than that from 3.10 on."""

_limit, _pid, _sleep = sys.getrecursionlimit, os.getpid, time.sleep


class CallProfile:
    """Feeds a `Memory`. A program that sets a profile function of its own gets it, and we do without in that thread.

    Args:
        memory: gets the calls.
        thins: whether it may cost little only.
    """

    tools = ()

    def __init__(self, memory: Memory, thins: bool = True) -> None:
        self._memory = memory
        self._thins = thins
        self._frozen = False
        self._ended = False
        self._rested = self._off_since = 0.0
        self._credit, self._since = _FIRST_CREDIT, clock()
        self._wakes = False  # whether a thread of ours sees to the next window
        self._begun = False  # whether code of the user's runs
        self._idle = self._tries = self._noted = 0
        self._process = _pid()
        self._not_before = 0.0
        self._depth = 0  # where in a thread's state the depth of recursion is, if it has to be looked at
        self._switch: Switch | None = None
        self._function: Any = None
        self._raises: Any = None
        self.why_not = ""

    @property
    def frozen(self) -> bool:
        """Whether nothing is to be recorded at present: that is neither watched nor unwatched time."""
        return self._frozen

    @frozen.setter
    def frozen(self, wanted: bool) -> None:
        if wanted != self._frozen:
            now = clock()
            if wanted:
                self._rested = now
                self._gap_ends(now)
            else:
                self._memory.began += now - self._rested
                self._since = now
            self._frozen = wanted

    def begin(self, running: bool = False) -> bool:
        """Watch this thread and those that are started from now on; False: it cannot be done (`why_not`).

        Args:
            running: whether other threads run already, which are to be watched, too.
        """
        self._raises = sys.modules.get("%s.tracefunc" % __package__)
        self._function = self._made()
        try:
            with _undisturbed(self._raises):
                self._switch = Switch(self._function)
            self._depth = states.find_depth()
        except states.Unfit as error:
            self.why_not = str(error)
            return False
        new_threads.tell("calls", self.join)
        if running:
            # the one that runs this has come for it alone
            own = {get_ident()} - {reading.own(threading._main_thread, "_ident")}  # type: ignore[attr-defined]
            known = dict(threading._active)  # type: ignore[attr-defined]
            self._switch.join_running({*own, *(number for number in known if stop.is_debuggers(known[number]))})
            self._begun = True
        elif not _is_debuggers():
            self._switch.join()
        return True

    def join(self) -> None:
        """Watch this thread, which has just begun."""
        if self._switch is not None and not self._ended:
            self._switch.join()

    def end(self) -> None:
        """Watch no more: this thread at once, the others when they meet their next call."""
        self._ended = self._frozen = True
        if self._switch is not None:
            self._switch.leave(self._switch.here())

    def saw(self, code: CodeType) -> None:
        """Code is about to be executed: with the first that is the user's the program begins, in this thread."""
        if not self._begun and self._switch is not None and self._memory.may_be_users(code.co_filename):
            self._begun = True
            self._credit, self._since = _FIRST_CREDIT, clock()
            self._switch.join()
            self.again()
            if not self._memory.records:
                self._memory.clear()

    def again(self) -> None:
        """See all calls: after a stop, at a test's beginning, or in a fork, whose thread of ours is in the parent."""
        if self._process != _pid():
            self._process, self._wakes = _pid(), False
        if self._switch is not None and not self._ended:
            self._credit = max(self._credit, _FRESH)
            self._gap_ends(clock())
            self._put_in_again(self._switch)

    def unseen(self) -> float:
        """The part of the time in which calls were not watched in each thread, 0 to 1."""
        now = self._rested if self._frozen else clock()
        open_gap = now - self._off_since if self._off_since and not self._frozen else 0.0
        return min(1.0, (self._memory.unseen + open_gap) / max(now - self._memory.began, 1e-6))

    def _gap_ends(self, now: float) -> None:
        if self._off_since:
            self._memory.unseen += max(0.0, now - max(self._off_since, self._memory.began))
            self._off_since = 0.0

    def _made(self) -> Callable[[FrameType, str, Any], None]:
        left = looks = 0
        beside = self._raises is not None
        weight = _BESIDE if beside else _PYTHON
        memory = self._memory
        known = memory.known
        foreign: dict[
            int, str
        ] = {}  # functions that are not the user's: of another one there the name is another object

        def profile(frame: FrameType, event: str, arg: Any) -> None:
            nonlocal left, looks
            if event != "call" and event != "return":
                left -= 1
                if left >= 0:
                    return
            else:
                left -= weight
            looks -= 1
            if looks < 0:
                looks = _LOOKS
                if self._near_the_limit():
                    return
            aside = None
            try:
                if left < 0:
                    left = self._used(frame, event, arg)
                if self._frozen:
                    return
                if beside:
                    aside = self._tracer_aside()
                if event == "call":
                    code = frame.f_code  # an audit event, as all such reading
                    if foreign.get(identity(code)) is code.co_filename:
                        return
                    if self._called(frame, code):
                        left -= _USERS
                    elif len(foreign) < _FOREIGN:
                        foreign[identity(code)] = code.co_filename
                elif event == "return":
                    record = known.get(identity(frame.f_code))
                    if record is not None and record.open and not frame.f_code.co_flags & _SUSPENDS:
                        memory.returned(record, frame, arg)
            except (RecursionError, MemoryError):
                return
            except BaseException as error:
                if not is_ours(error):
                    raise
                net.failed("a call could not be recorded", error)
            finally:
                if aside is not None:
                    self._tracer_back(aside)

        return profile

    def _tracer_aside(self) -> Thread | None:
        """Take our trace function out of this thread: what we read makes audit events, at each of which it works."""
        switch = self._switch
        thread = switch.here() if switch is not None else None
        if switch is None or thread is None or switch.has_tracer(thread) != self._raises._function:
            return None
        return thread if switch.set_tracer(thread, 0) else None

    def _tracer_back(self, thread: Thread) -> None:
        switch = self._switch
        if switch is not None and not switch.has_tracer(thread):
            switch.set_tracer(thread, self._raises._function)

    def _room(self, thread: Thread) -> int:
        """Calls that are left in *thread* before the limit of recursion."""
        depth: int = thread.ints[self._depth]
        return depth if _COUNTS_DOWN else _limit() - depth

    def _near_the_limit(self) -> bool:
        """Whether nothing may be done any more; then the function goes until the stack has become shorter.

        At the limit itself it would fail, and the program's error would come one call too early. Below 3.10 there are
        50 calls more after an error at the limit, until the stack has become short again, and the next error is fatal.
        """
        switch = self._switch
        if switch is None:
            return False
        thread = switch.here()
        if self._room(thread) > _ROOM:
            return False
        if self._raises is not None:
            self._raises.step_aside(None)
        self._take_off(switch, thread)
        return True

    def _called(self, frame: FrameType, code: CodeType) -> bool:
        """Note a call, if it is of one of the user's functions, which is told."""
        memory = self._memory
        record = memory.known.get(identity(code))
        if record is None or record.forgotten or record.line != code.co_firstlineno or record.file != code.co_filename:
            if not memory.of_user(code, 3):
                return False
            record = memory.record_of(code, 3)
        if code.co_flags & _SUSPENDS and not _begins(code, frame.f_lasti):
            return True  # it goes on
        self._noted += 1
        record.left -= 1
        if record.left < 0:
            now = clock()
            if record.opened and now - record.opened < _OFTEN:
                record.reads = READS_LATER
            record.left, record.opened = _BUDGET, now
        memory.count(record, code, 3)
        return True

    # ---- the budget

    def _used(self, frame: FrameType, event: str, arg: Any) -> int:
        """A portion is used up.

        Returns:
            How many units there may be until this is asked again.
        """
        switch = self._switch
        if switch is None:
            return _PORTION
        thread = switch.here()
        if self._ended or _is_debuggers():
            if self._goes(switch, thread, frame, event, arg):
                switch.leave(thread)
            return 0
        if not self._tries and not self._frozen:
            now = clock()
            if self._credit < _CREDIT:
                self._credit = min(_CREDIT, self._credit + _SHARE * (now - self._since))
            cost = _PORTION * _COST
            if self._noted < _PORTION // _RICH and self._credit < _CREDIT:
                cost *= _POOR
            self._noted = 0
            self._credit -= cost
            self._since = now
        if not self._frozen and (self._credit > 0 or not self._thins):
            return _PORTION
        self._tries += 1
        if not self._goes(switch, thread, frame, event, arg):
            return 0
        self._tries = 0
        self._take_off(switch, thread)
        return _PORTION

    def _take_off(self, switch: Switch, thread: Thread) -> None:
        switch.take_off(thread)
        if not self._frozen:
            self._credit -= _WINDOW
            self._off_since = self._off_since or clock()
            self._memory.thin()
            self._wake()

    def _goes(self, switch: Switch, thread: Thread, frame: FrameType, event: str, arg: Any) -> bool:
        """See to it that no calls are told when the function has been taken out; False: not at this event."""
        raises = self._raises
        tracer = switch.has_tracer(thread)
        if raises is None or not tracer or tracer != raises._function:
            return True
        ends = event == "return" and not frame.f_code.co_flags & _SUSPENDS
        if ends and (arg is not None or self._tries > _PATIENCE[0]):
            raises.step_aside(frame)
            return True
        if self._tries > _PATIENCE[1]:  # it calls nothing but C functions
            raises.step_aside(None)
            self._not_before = clock() + _DEAF
            return True
        return False

    def _wake(self) -> None:
        """Have the function put in again, in a while."""
        self._idle = 0
        if self._wakes:
            return
        self._wakes = True
        if not c_threads.start(itertools.chain.from_iterable(iter(self._next, None))):
            self._wakes = False

    def _next(self) -> tuple[Any, ...] | None:
        """What our thread does next."""
        switch = self._switch
        if switch is None or self._ended or self._process != _pid():
            self._wakes = False
            return None
        if not switch.off or self._frozen:
            self._idle += 1
            if self._idle > _IDLE or self._frozen:
                self._wakes = False
                if not switch.off or self._frozen:
                    return None
                self._wakes = True  # one was taken off just now
        now = clock()
        credit = self._credit + _SHARE * (now - self._since)
        delay = max(_SHORTEST, -credit / _SHARE, min(self._not_before - now, _DEAF))
        return partial(_sleep, delay), partial(self._window)

    def _window(self) -> None:
        switch = self._switch
        if switch is None or self._frozen or self._ended or not switch.off:
            return
        now = clock()
        if self._credit + _SHARE * (now - self._since) >= 0:
            self._gap_ends(now)
            self._put_in_again(switch)

    def _put_in_again(self, switch: Switch) -> None:
        for thread in list(switch.off):
            # not where it would have to go at once
            if self._room(thread) > 2 * _ROOM or thread.has_ended:
                switch.put_in_again(thread)
            else:
                self._off_since = self._off_since or clock()


def _is_debuggers() -> bool:
    """Whether this thread is one of the debugger's own."""
    return stop.is_debuggers(threading._active.get(get_ident()))  # type: ignore[attr-defined]


def _undisturbed(raises: Any) -> Any:
    """While a profile function comes and goes in this thread, no trace function of ours is in the place beside it."""
    return raises.suspended() if raises is not None else contextlib.nullcontext()


def _begins(code: CodeType, offset: int) -> bool:
    """Whether a generator or coroutine is told of, at *offset*, as it begins; later it goes on after a yield.

    Source: f_lasti is -1 then up to 3.10; in 3.11 it is that of RESUME, whose argument is 0 there alone.
    """
    return offset < 0 or (code.co_code[offset] == _RESUME and code.co_code[offset + 1] == 0)


_RESUME = opcode.opmap.get("RESUME", -1)
