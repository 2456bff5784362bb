"""Below Python 3.12: a profile function is taken out of a thread's state and put in again, by any other thread.

`sys.setprofile` does it for its own thread alone, and each time makes an audit event. So it is called once, to see what
it does to the state (CPython 3.8 to 3.11, Python/sysmodule.c: a C function, the same for all, beside the object that it
calls; and a flag that calls are to be told, which from 3.10 on lies where `cframe` points to). From then on the C
function and the flag are written by us. The object stays in its place meanwhile: where there is another one, or none,
the program has set a profile function of its own, and nothing is written.
"""

from __future__ import annotations

import collections
import ctypes
import sys
from _thread import _local, get_ident
from functools import partial
from itertools import chain
from typing import Any, Collection, Dict, Set

from . import clib
from .states import Dying, Unfit, Word, address

_STATE_WORDS = 14  # of PyThreadState, among which the function is
_NUMBER_WITHIN = 32  # and the thread's number
_MANY = 1 << 40
_POINTS = sys.version_info >= (3, 10)  # to where the flag is


class _Flag(ctypes.Union):
    _fields_ = [("address", ctypes.c_size_t), ("bytes", ctypes.POINTER(ctypes.c_ubyte))]  # noqa: RUF012 - ctypes


_dead = (ctypes.c_size_t * 32)()  # stands for the state of a thread that has ended
_nowhere = ctypes.addressof(_dead)
_here: Any = _local()


_nothing = partial(int)
"""What is done with a thread whose profile function is another one: no Python code."""


class Thread:
    """One that calls the profile function.

    Attributes:
        words, ints: its state.
        flag: the flag that calls are to be told, where it does not lie in the state.
    """

    __slots__ = ("_word", "flag", "ints", "words")

    def __init__(self, state: int) -> None:
        self._word, self.flag = Word(address=state), _Flag()
        self.words, self.ints = self._word.words, self._word.ints

    @property
    def has_ended(self) -> bool:
        """Whether its state is gone."""
        return bool(self._word.address == _nowhere)

    def ended(self) -> Any:
        """To be kept by the thread: its death means that the state is about to be freed."""
        return Dying(setattr, self._word, "address", _nowhere)


def _hide(function: Any) -> None:
    """Nobody sees it: the program may take a profile function as a sign that it must not set its own."""
    stock = getattr(sys.getprofile, "__wrapped__", sys.getprofile)

    def getprofile() -> Any:
        found = stock()
        return None if found is function else found

    getprofile.__name__ = getprofile.__qualname__ = "getprofile"
    getprofile.__doc__, getprofile.__module__ = stock.__doc__, "sys"
    getprofile.__wrapped__ = stock  # type: ignore[attr-defined]
    sys.getprofile = getprofile


class Switch:
    """Where things are in a thread's state, and the threads that have the function.

    Args:
        function: the profile function; lives as long as the interpreter.

    Attributes:
        threads: those that have it, by their numbers.
        off: the ones among them from which it was taken.

    Raises:
        Unfit: this interpreter is not as expected, or the program has a profile function already.
    """

    def __init__(self, function: Any) -> None:
        if sys.implementation.name != "cpython" or sys.maxsize < 2**32 or clib.python is None:
            raise Unfit("it is no 64 bit CPython")
        if sys.getprofile() is not None:
            raise Unfit("a profile function is there already")
        self.threads: Dict[int, Thread] = {}
        self.off: Set[Thread] = set()
        self._ours = address(function)
        clib.python.PyThreadState_Get.restype = ctypes.c_void_p
        here = Thread(clib.python.PyThreadState_Get())
        self._object = 0
        before = here.words[0:_STATE_WORDS]
        sys.setprofile(function)
        during = here.words[0:_STATE_WORDS]
        places = [n for n in range(_STATE_WORDS) if during[n] == self._ours]
        if len(places) == 1:
            self._object, self._function = places[0], places[0] - 2
        flag_during = self._flag(here)
        sys.setprofile(None)
        after, flag_after = here.words[0:_STATE_WORDS], self._flag(here)
        changed = [n for n in range(self._function, _STATE_WORDS) if during[n] and not before[n] and not after[n]]
        if len(places) != 1 or changed != [self._function, self._object]:
            raise Unfit("the profile function was found at %r, changes at %r" % (places, changed))
        self._called, self._on = during[self._function], flag_during
        if flag_during not in (1, 255) or flag_after != (flag_during if before[self._function + 1] else 0):
            raise Unfit("the flag for events was %d and then %d" % (flag_during, flag_after))
        Word(address=self._ours).words[0] += _MANY  # references: each state has one, and gives it back in the end
        _hide(function)

    def _flag(self, thread: Thread) -> int:
        if not self._object:
            return -1
        if not _POINTS:
            return int(thread.ints[2 * self._function - 2])
        thread.flag.address = thread.words[self._function - 1]
        return int(thread.flag.bytes[0])

    def here(self) -> Thread:
        """This thread, which has the function: it is known from now on."""
        ident = get_ident()
        found = self.threads.get(ident)
        if found is None:
            found = Thread(clib.python.PyThreadState_Get())
            # the last goes first: from then on nobody writes into the state of this thread
            _here.at_its_end = [
                Dying(self.off.discard, found),
                Dying(self.threads.pop, ident, None),
                found.ended(),
            ]
            self.threads[ident] = found
        return found

    def join(self) -> None:
        """Give this thread the function, unless it has another one."""
        thread = self.here()
        if not thread.words[self._object] and not thread.words[self._function]:
            thread.words[self._object] = self._ours
            self._put_in(thread)

    def join_running(self, others: Collection[int]) -> None:
        """Give it to all threads that have none. They are not known before they call it.

        Args:
            others: numbers of threads that do not get it.
        """
        state, following = clib.python.PyThreadState_Get(), clib.python.PyThreadState_Next
        head = clib.python.PyInterpreterState_ThreadHead
        for function in (head, following):
            function.argtypes, function.restype = [ctypes.c_void_p], ctypes.c_void_p
        here = Word(address=state)
        numbers = [n for n in range(_STATE_WORDS, _NUMBER_WITHIN) if here.words[n] == get_ident()]
        if len(numbers) != 1:
            return  # whose they are is not known
        state = head(here.words[2])
        while state:
            thread = Thread(state)
            free = not thread.words[self._object] and not thread.words[self._function]
            if free and thread.words[numbers[0]] not in others:
                thread.words[self._object] = self._ours
                self._put_in(thread)
            state = following(state)

    def take_off(self, thread: Thread) -> None:
        """To be called by the function in *thread*: it is called there no more. The flag goes when it has returned."""
        thread.words[self._function] = 0
        self.off.add(thread)

    def put_in_again(self, thread: Thread) -> None:
        """Where it was taken off."""
        self.off.discard(thread)
        self._put_in(thread)

    def leave(self, thread: Thread) -> None:
        """To be called in *thread*: it has no profile function any more, if it was ours."""
        if thread.words[self._object] == self._ours:
            thread.words[self._function] = 0
            thread.words[self._object] = 0
        self.off.discard(thread)

    def has_tracer(self, thread: Thread) -> int:
        """The C function that is told of lines in *thread*, or 0."""
        return int(thread.words[self._function + 1])

    def set_tracer(self, thread: Thread, function: int) -> bool:
        """Write another C function there, in *thread*; True if there was one."""
        before = self.has_tracer(thread)
        thread.words[self._function + 1] = function
        return before != 0

    def _put_in(self, thread: Thread) -> None:
        """In C alone: no other thread runs between the look and the writing, in which the program may set another."""
        words, ours = thread.words, self._object
        flag: Any
        if _POINTS:
            into = map(partial(setattr, thread.flag, "address"), map(words.__getitem__, (self._function - 1,)))
            flag = chain(into, map(thread.flag.bytes.__setitem__, (0,), (self._on,)))
        else:
            flag = map(thread.ints.__setitem__, (2 * self._function - 2,), (self._on,))
        writing = chain(map(words.__setitem__, (self._function,), (self._called,)), flag)
        written: Any = partial(collections.deque, writing, 0)
        call: Any = partial.__call__
        steps = map({self._ours: written}.get, map(words.__getitem__, (ours,)), (_nothing,))
        collections.deque(map(call, steps), 0)
