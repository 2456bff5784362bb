"""Below Python 3.12: a function in the state of a thread that is told of exceptions, and of nothing else.

`PyEval_SetTrace` leaves a function in a thread's state, and a flag that calls and lines are to be told. At an exception
the interpreter asks for the function alone (CPython 3.8 to 3.11, Python/ceval.c, label `error`), so here only the
function is written: a program that raises nothing runs as fast as ever. The flag is set anew after each call of the
function, from whether there is one. So it is taken out while it runs, and put back by the death of an object (`Again`)
that lies in the very tuple which the interpreter has made for this one call, and which it drops right after it has set
the flag. The same is done for audit events, whose end sets the flag, too.

`sys.gettrace` and `threading` know nothing of it. A tracer of the program's own takes its place.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import ctypes
import os
import sys
import time
from _thread import _local, get_ident, start_new_thread
from functools import partial
from types import FrameType, TracebackType
from typing import Any, Dict, Iterator, List, Optional, Set

from . import clib, new_threads
from .states import ITEMS, LIST_ITEMS, Dying, Unfit, Word, address, find

_EXCEPTION, _RETURN = 1, 3  # Include/cpython/pystate.h: PyTrace_*
_MANY = 1 << 40
_AT_LIMIT = 12  # calls that are left before the recursion limit: too few to do anything
_NEAR_LIMIT = 100  # and to watch; below 3.10 an error at the limit that is swallowed leaves the next one fatal
_JUDGING = 250  # that a raise needs that is judged
_OTHERS = 300  # events other than exceptions in a second, at most
_SUSPENDS = 0x2A0  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR

_attributes = BaseException.__dict__["__dict__"].__get__
_limit, _references, _pid, _clock, _sleep = (
    sys.getrecursionlimit,
    sys.getrefcount,
    os.getpid,
    time.perf_counter,
    time.sleep,
)

FIRST_DELAY, LAST_DELAY = 0.02, 2.0
"""Seconds after which a thread is watched again whose place another tracer had, or that had other events."""


class _Spare:
    pass


_dead = (ctypes.c_size_t * 32)()  # stands for the state of a thread that has ended
_nowhere = ctypes.addressof(_dead)
_spare = _Spare()


class Watched:
    """A thread, and what is needed to write into its state. All of it is made before it is needed.

    Attributes:
        word: where its state is; `_dead` when it has ended.
        state: its state.
        ints: the same as ints.
        parts: what an event of it uses: the state, the same as ints, a word for the event's tuple, that tuple's
            items, the same as words, a list of one item, where that list has it, `Again`.
        away: whether it is about to get another tracer, and must not be watched again now.
        late: where its state is, as long as an object of `late_again` may put the function there.
    """

    __slots__ = ("away", "ints", "late", "late_again", "parts", "state", "word")

    def __init__(self) -> None:
        self.word, self.late = Word(), Word(address=_nowhere)
        self.state, self.ints = self.word.words, self.word.ints
        self.away = False
        event, items = Word(), Word()
        held: List[Any] = [_spare]
        items.address = address(held)
        items.address = items.words[LIST_ITEMS]
        again = _writer(self.state)
        self.late_again = _writer(self.late.words)
        self.parts = (
            self.state, self.ints, event, event.objects, event.words, held, items.words, again
        )  # fmt: skip


def _writer(state: Any) -> type:
    """A class whose instances put the function there when they die."""
    return type("Again", (), {"__slots__": (), "__del__": partial(state.__setitem__, _slot, _function)})


_threads: Dict[int, Watched] = {}
_free: List[Watched] = []  # of threads that have ended
_here: Any = _local()
_function = _trampoline = 0
_slot = _depth = 0  # where in a thread's state the function is, and how deep its recursion (3.11: what is left)
_fresh = 0  # references to the tuple of an audit event that nobody else has
_alone = True  # whether the program has no audit hook that would see what we do to the tuple
_running_in = 0  # the process in which threads are watched; 0: none any more
_suspended = 0
_resumes = 0.0  # a pause's end
_due = 0.0  # when a thread of ours will watch all again; 0: none will
_delay, _last = FIRST_DELAY, 0.0
_others, _since = 0, 0.0

_starting: Set[Any] = set()  # threads of ours that have not yet begun
_lost = False  # whether a thread is not watched, and nobody will see to it
_left = 0  # events until `Listener.affords` is asked; less than none in a pause


class Listener:
    """Who is told."""

    def raised(self, exc: BaseException, trace: TracebackType, frame: FrameType) -> None:
        """An exception is raised."""
        raise NotImplementedError

    def affords(self) -> int:
        """How many events there may be until it is asked again; none: a pause, see `pause`."""
        raise NotImplementedError

    def own_profiler(self) -> bool:
        """Whether this thread's profile function is ours."""
        raise NotImplementedError

    def failed(self, error: BaseException) -> Any:
        """An event could not be dealt with. Gives the class that the thread shall raise, as a `py_object`, or None."""
        raise NotImplementedError


_listener: Listener


def install(listener: Listener) -> None:
    """Watch this thread, and those that `threading` starts from now on. `audited` must have been hung in before.

    Args:
        listener: is told of exceptions.

    Raises:
        Unfit: it cannot be done with this interpreter.
    """
    global _depth, _function, _listener, _running_in, _slot, _trampoline
    _slot, _depth, _function, _trampoline = find(_told)
    _prove()
    _listener = listener
    _running_in = _pid()
    watch_this_thread()
    new_threads.tell("exceptions", watch_this_thread)
    atexit.register(end)  # nothing may be told while the interpreter is taken apart
    os.register_at_fork(before=_suspend, after_in_parent=_resume, after_in_child=_forked)


class _Trial(Listener):
    def __init__(self) -> None:
        self.seen: List[Any] = []
        self.others = 0

    def raised(self, exc: BaseException, trace: TracebackType, frame: FrameType) -> None:
        self.seen.append((type(exc), frame.f_lineno))

    def affords(self) -> int:
        return 100

    def own_profiler(self) -> bool:
        self.others += 1
        return False

    def failed(self, error: BaseException) -> None:
        self.others += 1


def _prove() -> None:
    """See it work, once, in this thread; then it is as it was."""
    global _listener, _fresh
    trial = _listener = _Trial()
    _spare_many()
    _arm()
    state = _threads[get_ident()].state
    try:
        _fresh = 0
        id(trial)  # an audit event: the first one tells what the references are to the tuple of any
        id(trial)
        line = _raises_three()
    finally:
        state[_slot] = 0
    right = trial.seen == [(KeyError, line)] * 3 and not trial.others and _fresh and sys.gettrace() is None
    if not right:
        raise Unfit("a trial has seen %d of 3 exceptions, and %d other events" % (len(trial.seen), trial.others))


def _raises_three() -> int:
    line = 0
    for key in ("one", "two", "three"):
        try:
            line = sys._getframe().f_lineno + 1
            {}[key]  # type: ignore[index]
        except KeyError:
            len(str(line))
    return line


# ---- threads


def watch_this_thread() -> None:
    """Tell of the exceptions of this thread, if no tracer is in the place."""
    if _running_in and not _suspended:
        _arm()


def _arm() -> None:
    ident = get_ident()
    found = _threads.get(ident)
    if found is None:
        found = _free.pop() if _free else Watched()
        found.word.address = clib.python.PyThreadState_Get()
        # the last goes first: from then on nobody writes into the state of this thread, which is about to be freed
        _here.at_its_end = [
            Dying(_free.append, found),
            Dying(_threads.pop, ident, None),
            Dying(setattr, found.late, "address", _nowhere),
            Dying(setattr, found.word, "address", _nowhere),
        ]
        _threads[ident] = found
    if not found.state[_slot]:
        found.state[_slot] = _function


def _spare_many() -> None:
    """References that `_put_back` takes from it."""
    Word(address=address(_spare)).words[0] += _MANY


# ---- events


def _told(
    other: Optional[int], frame: FrameType, what: int, arg: int, found: Optional[Watched] = None
) -> int:  # fmt: skip
    try:  # the first instruction, and all in few: before it and behind it a signal's handler may raise
        found = _threads.get(get_ident())
        if found is not None:  # else the thread ends
            _event(found, other, frame, what, arg)
        return 0
    except BaseException as error:
        if found is None and not _HEADROOM:
            found = _threads.get(get_ident())
        if found is not None or not isinstance(error, RecursionError):  # else no call can be made here
            _failed(found, error, what, arg)
    return 0


def _event(found: Watched, other: Optional[int], frame: FrameType, what: int, arg: int) -> None:
    global _left, _lost
    state, ints, event, items, words, held, cells, again = found.parts
    state[_slot] = 0
    left = ints[_depth] if _COUNTS_DOWN else _limit() - ints[_depth]
    if left < _NEAR_LIMIT:
        if left > _AT_LIMIT or (left < 0 and not _HEADROOM):
            later()
        elif _HEADROOM:
            state[_slot] = _function
        else:
            _lost = True
        return
    if _left < 0 and other is None:
        return
    if what != _EXCEPTION or other is not None:
        _other_event(found, frame, what, other)
        return
    event.address = arg + ITEMS
    trace = items[2]
    if trace is not None and trace.tb_next is None and left > _JUDGING:
        exc = items[1]
        # a C function that was called with a class and no arguments may tell of the class alone
        if issubclass(type(exc), BaseException):
            _listener.raised(exc, trace, frame)
            event.address = arg + ITEMS
    _left -= 1
    if _left < 0:
        _left = _listener.affords() or -1
        if _left < 0:
            return
    there = state[_slot]
    if there == 0 or there == _function:
        # as _put_back does it; a call costs too much here
        state[_slot] = 0
        held[0] = again()
        new = cells[0]
        cells[0] = _spare_address
        old = words[2]
        words[2] = new
        cells[0] = old
        held[0] = None


def _failed(found: Optional[Watched], error: BaseException, what: int, arg: int) -> None:
    try:
        raised = _listener.failed(error)
        if raised is None:
            later()
            return
        # the thread must be through with this event first: its own next instruction is one of ours
        soon: Any = partial(clib.python.PyThreadState_SetAsyncExc, ctypes.c_ulong(get_ident()), raised)
        if found is not None and what == _EXCEPTION:
            found.parts[2].address = arg + ITEMS
            found.state[_slot] = 0
            _lay(found, found.parts[7](), 1)
            _lay(found, Dying(soon), 2)
            # no `later` now: a thread that has not yet begun bears the number of the one that starts it
        else:
            _in_a_thread(partial(_sleep, 0.001), soon)
    except RecursionError:
        return  # at the limit; the thread is watched again with the others
    finally:
        if not _HEADROOM and found is not None and isinstance(error, RecursionError):
            found.ints[_depth + 1] = 0  # `overflowed` of the thread's state: the program has not met this error


_COUNTS_DOWN = sys.version_info >= (3, 11)
_HEADROOM = sys.version_info >= (3, 10)  # before, 50 more calls are allowed after an error at the limit, and then none
_spare_address = address(_spare)


def _other_event(found: Watched, frame: FrameType, what: int, other: Optional[int]) -> None:
    """Calls and lines are told, too: there is a profiler or another thread is traced, or something has set the flag."""
    global _others, _since
    state = found.state
    if other is not None:
        state[_slot] = _trampoline  # it was put there while we looked elsewhere
        return
    if state[_slot - 1]:  # a profile function
        if _listener.own_profiler():
            frame.f_trace_lines = False
            state[_slot] = _function
        else:
            later()
        return
    _others += 1
    if _others > _OTHERS:
        now = _clock()
        if now - _since < 1:
            later()
            return
        _others, _since = 0, now
    if what == _RETURN and not frame.f_code.co_flags & _SUSPENDS:
        # nothing that this event has dies with it; the frame does, soon
        found.late.address = found.word.address
        frame.f_trace = found.late_again()
        later(LAST_DELAY)
    else:
        state[_slot] = _function


def step_aside(frame: Optional[FrameType]) -> None:
    """Have no flag behind the profile function that calls this and has taken itself out.

    Args:
        frame: the one that it is told the end of; None: no end, and raises are missed for a moment.
    """
    found = _threads.get(get_ident())
    if found is None or found.state[_slot] != _function:
        return
    found.state[_slot] = 0
    if frame is not None:
        found.late.address = found.word.address
        frame.f_trace = found.late_again()
    later(LAST_DELAY if frame is not None else 0.001)


_RARE = frozenset(
    ("sys.addaudithook", "sys.settrace", "sys.setprofile", "sys.unraisablehook")
)  # of which none may be missed


_CHEAP = frozenset(("builtins.id", "sys._getframe", "object.__getattr__"))  # which themselves cost less than we do


def audited(event: str, args: Any) -> Any:
    """To be called last at each audit event, by the only audit hook, which returns what it returns."""
    global _alone, _fresh, _left, _lost
    if _lost:
        _lost = False
        later()
    if _left < 0 and event not in _RARE:
        return None
    if event == "sys.addaudithook":
        _alone = False
        return None
    found = _threads.get(get_ident())
    if found is None:
        return None
    state = found.state
    there = state[_slot]
    if event == "sys.unraisablehook":
        if not _HEADROOM and args[1].object is _told:
            _not_even_begun(found, args[1].exc_value)
        return None
    if event == "sys.settrace" or event == "sys.setprofile":
        found.away = True
        if there == _function:
            state[_slot] = 0  # else the interpreter would count one tracer too few (3.8, 3.9: no lines are told then)
        found.late.address = _nowhere
        later()
        return Dying(setattr, found, "away", False)  # in C, when no Python code is left to run before the change
    if there == _function and args and _alone:
        if event in _CHEAP:
            _left -= 1
        if _left < 0:
            _left = _listener.affords() or -1
            if _left < 0:
                state[_slot] = 0
                return None
        references = _references(args)
        if not _fresh:
            _fresh = references
        if references == _fresh:
            _put_back(found, args)
    return None


def _not_even_begun(found: Watched, error: BaseException) -> None:
    """`_told` could not be called, exactly at the limit: see `_failed`. The flag is to go when it has been printed."""
    _attributes(error)["over"] = Dying(found.ints.__setitem__, _depth + 1, 0)
    found.state[_slot] = 0
    later()


def _put_back(found: Watched, args: Any) -> None:
    """Take the function out until *args* dies."""
    found.state[_slot] = 0
    found.parts[2].address = address(args) + ITEMS
    _lay(found, found.parts[7](), len(args) - 1)


def _lay(found: Watched, thing: Any, place: int) -> None:
    """Put *thing* into the event's tuple. Wherever a signal's handler breaks in, at most an object is never freed."""
    _, _, _, _, words, held, cells, _ = found.parts
    held[0] = thing
    del thing
    new = cells[0]
    cells[0] = _spare_address
    old = words[place]
    words[place] = new
    cells[0] = old
    held[0] = None


# ---- pauses


def later(delay: float = 0.0) -> None:
    """Watch all threads again after a while: *delay* seconds, or a little longer than the last time.

    A thread does it that runs no Python meanwhile: it is not seen by debuggers and their like.
    """
    global _delay, _due, _last
    if _suspended or _running_in != _pid():
        return
    now = _clock()
    if not delay:
        delay = min(LAST_DELAY, 2 * _delay) if now - _last < 4 * _delay else FIRST_DELAY
        if _due and _due <= now + delay:
            return
        _delay, _last = delay, now
    elif _due and _due <= now + delay:
        return
    _due = now + delay
    try:
        _in_a_thread(partial(_sleep, delay), _again)
    except RuntimeError:  # the interpreter shuts down, or there may be no more threads: the rest is left to the hooks
        _due = 0.0


def _in_a_thread(*steps: Any) -> None:
    number = object()
    _starting.add(number)
    begun = partial(_starting.discard, number)
    try:
        start_new_thread(collections.deque, (map(partial.__call__, (begun, *steps)), 0))
    except RuntimeError:
        begun()
        raise


def pause(seconds: float) -> None:
    """Watch no thread for so many seconds: each ends with its next event."""
    global _resumes
    _resumes = _clock() + seconds
    later(seconds)


def _watch_all() -> None:
    global _due, _left
    _due = 0.0
    if _suspended or not _running_in:
        return
    left = _resumes - _clock()
    if left > 0:
        later(left)
        return
    _left = max(_left, 0)
    try:
        watched = list(_threads.values())
    except RuntimeError:  # a thread has ended just now
        later()
        return
    for each in watched:
        each.late.address = _nowhere
        if each.state[_slot]:
            continue
        if each.away:
            later()
            continue
        # not where a raise would come too late to be seen before the limit
        deep = each.ints[_depth] if _COUNTS_DOWN else _limit() - each.ints[_depth]
        if deep > 2 * _NEAR_LIMIT or each.word.address == _nowhere:
            each.state[_slot] = _function
        else:
            later()


_again = partial(_watch_all)


def _suspend() -> None:
    global _suspended
    _suspended += 1


def _resume() -> None:
    global _suspended
    _suspended -= 1
    if not _suspended:
        _watch_all()


@contextlib.contextmanager
def suspended() -> Iterator[None]:
    """For the time of a stop: the debugger's tracer comes and goes in this thread."""
    found = _threads.get(get_ident()) if _running_in else None
    if found is None:
        yield
        return
    _suspend()
    found.late.address = _nowhere
    if found.state[_slot] == _function:
        found.state[_slot] = 0
    try:
        yield
    finally:
        _resume()


def _forked() -> None:
    """In a fork's child: the thread that would have ended a pause has stayed in the parent."""
    global _due, _running_in, _suspended, _resumes
    if _running_in:
        _running_in, _suspended, _resumes, _due = _pid(), 0, 0.0, 0.0
        _starting.clear()
        _watch_all()


def end() -> None:
    """Watch no more."""
    global _running_in
    process, _running_in = _running_in, 0
    # below 3.11 a thread that begins when the interpreter has ended uses memory that is free by then
    until = _clock() + 1
    while _starting and process == _pid() and _clock() < until:
        _sleep(0.0005)
    for each in list(_threads.values()):
        each.late.address = _nowhere
        if each.state[_slot] == _function:
            each.state[_slot] = 0
