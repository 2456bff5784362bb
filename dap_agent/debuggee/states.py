"""Where things are in CPython 3.8 to 3.11: in a thread's state, in tuples and lists, in ctypes. Found out and verified.

What is not as expected is never written to: then tracefunc.py, for which all of it is, is not used.
"""

from __future__ import annotations

import ctypes
import gc
import struct
import sys
from functools import partial
from typing import Any, Callable, List, NamedTuple

from . import clib

_STATE_WORDS = 14  # of PyThreadState that are looked at; it is more than twice as long
ITEMS = tuple.__basicsize__  # where a tuple's items begin
LIST_ITEMS = 3  # the word of a list that says where its items are

_identity: Any = object.__hash__  # id() is an audit event

_ARGUMENTS = (ctypes.c_void_p, ctypes.py_object, ctypes.c_int, ctypes.c_size_t)
"""Of a `Py_tracefunc`: the tracer's object, the frame, the event, and what belongs to it."""


class Unfit(Exception):
    """This interpreter is not built as expected; the message says what differs."""


class Word(ctypes.Union):
    """An address, and what lies there."""

    _fields_ = [  # noqa: RUF012 - ctypes wants it so
        ("address", ctypes.c_size_t),
        ("words", ctypes.POINTER(ctypes.c_size_t)),
        ("ints", ctypes.POINTER(ctypes.c_int)),
        ("objects", ctypes.POINTER(ctypes.py_object)),
    ]


class Dying(partial):  # type: ignore[type-arg]
    """Is called when it dies: no Python code runs then, so no other thread meanwhile."""

    __slots__ = ()
    __del__ = partial.__call__


def address(thing: Any) -> int:
    """Where an object lies: `object.__hash__` turns it by four bits (CPython, Python/pyhash.c)."""
    turned: int = _identity(thing) & 0xFFFFFFFFFFFFFFFF
    turned = turned << 4 | turned >> 60
    return turned & 0xFFFFFFFFFFFFFFFF


class Places(NamedTuple):
    """Where in a thread's state things are.

    Attributes:
        slot: word of the trace function.
        depth: int of the depth of recursion; 3.11: of the calls that are left.
        function: the address of the C function.
        trampoline: that of the one that `sys.settrace` puts there.
    """

    slot: int
    depth: int
    function: int
    trampoline: int


_made: List[Any] = []  # C functions are never given back: a thread might be about to call one


def find(told: Callable[..., int]) -> Places:
    """Make a C function of *told* and find the places, in the state of this thread; it has no tracer, and none after.

    Raises:
        Unfit: something is not as expected.
    """
    if sys.implementation.name != "cpython" or sys.maxsize < 2**32 or clib.python is None:
        raise Unfit("it is no 64 bit CPython")
    if sys.gettrace() is not None:
        raise Unfit("a tracer is there already")
    _look_at_layouts()
    function = ctypes.CFUNCTYPE(_no_result(), *_ARGUMENTS)(_without_first_look(told))
    _made.append(function)
    ours = ctypes.cast(function, ctypes.c_void_p).value or 0
    clib.python.PyThreadState_Get.restype = ctypes.c_void_p
    here = Word(address=clib.python.PyThreadState_Get())
    sys.settrace(lambda *event: None)
    trampolines = here.words[0:_STATE_WORDS]
    clib.python.PyEval_SetTrace(function, None)
    slots = [n for n in range(_STATE_WORDS) if here.words[n] == ours]
    sys.settrace(None)
    if len(slots) != 1 or here.words[slots[0]] != 0:
        raise Unfit("the trace function was found at %r of the thread's state" % (slots,))
    slot = slots[0]
    return Places(slot, _find_depth(here.ints, 2 * slot), ours, trampolines[slot])


def find_depth() -> int:
    """Which int of a thread's state, as `clib.python.PyThreadState_Get` gives it, is the depth of recursion.

    Raises:
        Unfit: see `find`.
    """
    if sys.implementation.name != "cpython" or sys.maxsize < 2**32 or clib.python is None:
        raise Unfit("it is no 64 bit CPython")
    clib.python.PyThreadState_Get.restype = ctypes.c_void_p
    return _find_depth(Word(address=clib.python.PyThreadState_Get()).ints, 2 * _STATE_WORDS)


def _no_result() -> type:
    """The result type of a C function that gives 0 whatever happens.

    At the limit of recursion Python code cannot even be begun. What is given then for an int is what has been in that
    memory before, and anything but 0 makes the interpreter lose the program's exception. ctypes takes None for an int,
    too, before 3.11. So this is an int for ctypes, and nothing for libffi: its description (`ffi_type`) says so.
    """

    class Nothing(ctypes.c_int):
        pass

    (described,) = [each for each in gc.get_referents(Nothing) if isinstance(each, dict)]
    data = (ctypes.c_ubyte * type(described).__basicsize__).from_address(address(described))
    integer, nothing = struct.pack("=QHH", 4, 4, 10), struct.pack("=QHH", 1, 1, 0)  # libffi's ffi.h, ffi_type
    text = bytes(data)
    places = [n for n in range(0, len(text), 8) if text.startswith(integer, n)]
    if len(places) != 1:
        raise Unfit("the type of a result was found %d times" % len(places))
    ctypes.memmove(ctypes.addressof(data) + places[0], nothing, len(nothing))
    trial = ctypes.CFUNCTYPE(Nothing, *_ARGUMENTS)(lambda *event: 77)
    call = ctypes.PYFUNCTYPE(ctypes.c_int, *_ARGUMENTS)(ctypes.cast(trial, ctypes.c_void_p).value or 0)
    if any(call(None, trial, 1, 2) != 0 for _ in range(100)):
        raise Unfit("a C function without a result does not give 0")
    return Nothing


def _find_depth(ints: Any, count: int) -> int:
    def at(calls: int) -> List[int]:
        return at(calls - 1) if calls else ints[0:count]

    step = -1 if sys.version_info >= (3, 11) else 1
    found = [at(calls) for calls in (0, 1, 2, 7)]
    steps = [0, step, 2 * step, 7 * step]
    places = [n for n in range(count) if [each[n] - found[0][n] for each in found] == steps]
    if len(places) != 1 or not 0 < found[0][places[0]] <= sys.getrecursionlimit():
        raise Unfit("the depth of recursion was found at %r of the thread's state" % (places,))
    return places[0]


def _look_at_layouts() -> None:
    one, two = object(), object()
    pair, both = (one, two), [one, two]
    word = Word(address=address(pair) + ITEMS)
    if word.words[0:2] != [address(one), address(two)]:
        raise Unfit("tuples are built in another way")
    word.address = address(both)
    word.address = word.words[LIST_ITEMS]
    if word.words[0:2] != [address(one), address(two)]:
        raise Unfit("lists are built in another way")


def _without_first_look(function: Any) -> Any:
    """*function*, without the look for signals that 3.11 has before its first line: an error of there would be lost."""
    if sys.version_info < (3, 11):
        return function
    import opcode

    code = function.__code__
    text = bytearray(code.co_code)
    begins = text[::2].index(opcode.opmap["RESUME"]) * 2
    text[begins + 1] = 3  # as after an `await`
    function.__code__ = code.replace(co_code=bytes(text))
    return function
