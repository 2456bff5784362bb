"""Where an exception would leave a call, that call returns the value of another one: its caller simply goes on.

A code object's exception table (Objects/exception_handling_notes.txt of CPython) says where the interpreter goes on
when an exception is met at an instruction. For a while the table of one code object is another one: all of its own
entries, and for each instruction that none of them covers one of ours. So `finally`, `with` and `except` of the call
run as ever, and only an exception that would have left it arrives at a few instructions of ours. Those ask whether this
is the call that is meant; any other one (recursion, another thread) is left by its exception as if nothing had been
there.

Neither the code's instructions nor its constants are touched: ours lie in memory behind it, since a handler is an
offset from its start, and what they load lies behind its constants. What changes is one pointer.
"""

from __future__ import annotations

import ctypes
import dis
import sys
import types
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from . import clib
from .paths import NotThere

VERSIONS: Dict[Tuple[int, int], str] = {(3, 11): "", (3, 12): "", (3, 13): ""}
"""CPython versions that this is made for and tested with; each with the condition on it, if there is one."""

_PAGE = 4096
_STEP = 2**20
# Bytes from the start of the code to ours. The interpreter counts instructions, of two bytes each, in a C int, and
# twice that number is negative then, in a C int: it takes the function's first line for the line of such a place. Of a
# positive one it would look for the line in tables that are not as long (PyCode_Addr2Line).
_NEAREST, _FARTHEST = 2**31, 2**32 - _STEP
_MAP_FIXED_NOREPLACE = 0x100000
_COROUTINE = 0x80 | 0x100  # CO_COROUTINE, CO_ITERABLE_COROUTINE

_TOO_SMALL = "The function %s is too small: a restart needs a variable of it, or room for two values on its stack"

Call = Tuple[Callable[..., Any], Sequence[Any], Dict[str, Any]]

_sites: Dict[int, "Site"] = {}  # by id of the code object, which they keep alive


def unsupported() -> str:
    """Empty, or why no call can be made to return another value here, as the end of a sentence."""
    version = "%d.%d" % sys.version_info[:2]
    if sys.implementation.name != "cpython" or sys.version_info[:2] not in VERSIONS:
        allowed = ", ".join("%d.%d" % each for each in VERSIONS)
        return "that is possible on CPython %s, this is %s %s" % (allowed, sys.implementation.name, version)
    if not (clib.LINUX and clib.KNOWN):
        return "that is possible on Linux (x86_64, aarch64) only"
    if hasattr(sys, "gettotalrefcount"):
        return "this is a debug build of Python, which checks for what we do"
    import sysconfig

    if "_Py_TIER2" in str(sysconfig.get_config_var("PY_CORE_CFLAGS")):
        return "this Python was built with its experimental compiler"
    gil = getattr(sys, "_is_gil_enabled", None)
    if gil is not None and not gil():
        return "the free-threaded build is not supported"
    return ""


def _nothing() -> None:
    pass


def _probe() -> Any:
    try:
        return 12345678901
    except (KeyError, OSError):
        return None


def _words(code: types.CodeType) -> Any:
    """The fixed part of a code object."""
    return (ctypes.c_void_p * (types.CodeType.__basicsize__ // 8)).from_address(id(code))


def _index() -> int:
    """Which word of a code object is the pointer to its exception table."""
    code: Any = _probe.__code__
    found = [n for n, word in enumerate(_words(code)) if n > 1 and word == id(code.co_exceptiontable)]
    if len(found) != 1:
        raise NotThere("The layout of code objects in this Python is not the one that is known.")
    return found[0]


def _varint(number: int, first: bool = False) -> bytes:
    groups = [number & 63]
    while number > 63:
        number >>= 6
        groups.append(number & 63)
    data = [group | 64 for group in groups[:0:-1]] + [groups[0]]
    data[0] |= 128 if first else 0
    return bytes(data)


def _entries(table: bytes) -> List[Tuple[int, int, int, int]]:
    """Start, length, target (all in code units), and depth with a flag, of each entry."""
    numbers: List[int] = []
    value = 0
    for byte in table:
        value = value << 6 | byte & 63
        if not byte & 64:
            numbers.append(value)
            value = 0
    return [(numbers[n], numbers[n + 1], numbers[n + 2], numbers[n + 3]) for n in range(0, len(numbers), 4)]


def filled(table: bytes, units: int, target: int, again: Tuple[int, int], whole: bool = False) -> bytes:
    """*table* with an entry for all that it leaves to the caller.

    Args:
        units: of the code, of two bytes each.
        target: unit to go to, with an empty stack.
        again: first unit and number of those behind the code from where the way is the same.
        whole: leave out its own entries.
    """
    found = b""
    place = 0
    for start, length, handler, depth in [*([] if whole else _entries(table)), (units, 0, 0, 0)]:
        if start > place:
            found += _varint(place, True) + _varint(start - place) + _varint(target) + _varint(0)
        if length:
            found += _varint(start, True) + _varint(length) + _varint(handler) + _varint(depth)
        place = start + length
    return found + _varint(again[0], True) + _varint(again[1]) + _varint(target) + _varint(0)


def _memory(nearest: int, *addresses: Tuple[int, int]) -> int:
    """Memory of our own at the same distance from each of *addresses*: the distance, in bytes.

    There are two pages from each of those places on.

    Args:
        nearest: the least distance.
        addresses: each with a factor, how many times as far it is from this one.

    Raises:
        NotThere: there is no room.
    """
    mmap = clib.library.mmap
    mmap.restype = ctypes.c_void_p
    for distance in range(nearest, _FARTHEST, _STEP):
        made: List[int] = []
        for page in sorted({(address + factor * distance) // _PAGE * _PAGE for address, factor in addresses}):
            size = ctypes.c_size_t(2 * _PAGE)
            if made and page < made[-1] + 2 * _PAGE:
                break  # they would overlap
            # PROT_READ | PROT_WRITE; MAP_PRIVATE | MAP_ANONYMOUS
            flags = 0x22 | _MAP_FIXED_NOREPLACE
            got = mmap(ctypes.c_void_p(page), size, 3, flags, -1, ctypes.c_long(0))
            if got == page:
                made.append(page)
                continue
            if got not in (None, 2**64 - 1):  # an old kernel has put it elsewhere
                clib.library.munmap(ctypes.c_void_p(got), size)
            break
        else:
            return distance
        for page in made:
            clib.library.munmap(ctypes.c_void_p(page), ctypes.c_size_t(2 * _PAGE))
    raise NotThere("There is no room in the memory behind the code.")


def _unit(name: str, argument: int = 0) -> bytes:
    """An instruction with its inline caches."""
    code = b""
    for shift in (24, 16, 8):
        if argument >> shift:
            code += bytes((dis.opmap["EXTENDED_ARG"], argument >> shift & 255))
    return code + bytes((dis.opmap[name], argument & 255))


async def _awaits(what: Any) -> Any:
    return await what


def _awaiting() -> bytes:
    """The instructions of `return await` from where None has been loaded: the loop that hands on what is awaited."""
    code = _awaits.__code__
    instructions = list(dis.get_instructions(code))
    send = next(each.offset for each in instructions if each.opname == "SEND")
    end = next(each.offset for each in instructions if each.opname == "RETURN_VALUE" and each.offset > send)
    return code.co_code[send : end + 2]


class Site:
    """A code object, with instructions of ours behind it.

    Args:
        code: of the call.
    """

    def __init__(self, code: types.CodeType) -> None:
        table: Any = code.co_exceptiontable  # type: ignore[attr-defined]
        self.frame: Optional[types.FrameType] = None
        self._call: Call = (_nothing, (), {})
        self._code = code
        self._own = table
        self._words = _words(code)
        self._place = _index()
        if self._words[self._place] != id(table):
            raise NotThere("The layout of code objects in this Python is not the one that is known.")
        self._raw = raw = code.co_code
        bases = [(id(code) + types.CodeType.__basicsize__, 1)]
        if sys.version_info < (3, 12):  # it reads these while there is a trace function
            bases += [(id(raw) + bytes.__basicsize__ - 1, 1), (self._lines(), 2)]
        self._constants = code.co_consts
        slots = id(self._constants) + tuple.__basicsize__
        first = _memory(_STEP, (slots, 1))
        self._slots = (ctypes.c_void_p * 2).from_address(slots + first)
        self._slots[0], self._slots[1] = id(self), id(None)
        before, call, after = self._instructions(first // 8)
        instructions = before + call + after
        self._units = len(raw) // 2
        self._target = _memory(_NEAREST, *bases)
        for base, factor in bases:
            if factor == 1:
                ctypes.memmove(base + self._target, instructions, len(instructions))
            else:
                ctypes.memset(base + factor * self._target, 255, 4 * len(instructions) // 2)  # no line
        target = self._target // 2
        again = target + len(before) // 2, len(call) // 2  # a call that was restarted fails again
        self._tables = [filled(table, self._units, target, again, whole) for whole in (False, True)]

    def _instructions(self, slot: int) -> Tuple[bytes, bytes, bytes]:
        """Ask; return what we are asked for; or let an exception that is not for us go on.

        The interpreter has put the exception on the stack, which may hold `co_stacksize` values.
        """
        ask = _unit("LOAD_CONST", slot) + _unit("UNARY_NEGATIVE")
        call = _unit("LOAD_CONST", slot) + _unit("UNARY_INVERT")
        keep, back = b"", b""
        if self._code.co_stacksize < 2:
            local = self._spare()
            keep, back = _unit("STORE_FAST", local), _unit("LOAD_FAST", local)
        if self._code.co_flags & _COROUTINE:
            if keep:
                raise NotThere(_TOO_SMALL % self._code.co_name)
            call += _unit("SWAP", 2) + _unit("POP_TOP") + _unit("GET_AWAITABLE")
            call += _unit("LOAD_CONST", slot + 1) + _awaiting()
        else:
            call += _unit("RETURN_VALUE")
        jump = _unit("POP_JUMP_FORWARD_IF_TRUE" if sys.version_info < (3, 12) else "POP_JUMP_IF_TRUE", len(call) // 2)
        if sys.version_info >= (3, 13):
            jump += b"\0\0"  # its cache
        return keep + ask + jump, call, back + _unit("RERAISE", 0)

    def _lines(self) -> int:
        """3.11: where the line of each instruction is, as numbers of 4 bytes (`_co_linearray` in cpython/code.h).

        It is made, if it isn't there, when a trace function is called for the first time.
        """
        at = next(n for n, word in enumerate(self._words) if word == id(self._raw)) + 1
        size = ctypes.c_short.from_address(id(self._code) + 8 * (self._place + 1) + 6)
        if self._words[at] is None or size.value != 4:
            count = len(self._raw) // 2
            allocate = clib.python.PyMem_Malloc
            allocate.restype = ctypes.c_void_p
            made = allocate(ctypes.c_size_t(4 * count))
            lines: Any = (ctypes.c_int32 * count).from_address(made)
            ranges: Any = self._code.co_lines()
            for start, end, line in ranges:
                for unit in range(start // 2, end // 2):
                    lines[unit] = -1 if line is None else line
            # one that was there is not freed: it may be in use
            size.value, self._words[at] = 4, made
        return int(self._words[at])

    def _spare(self) -> int:
        """A local variable to put the exception into."""
        code = self._code
        plain = [n for n, name in enumerate(code.co_varnames) if name not in code.co_cellvars]
        if not plain:
            raise NotThere(_TOO_SMALL % code.co_name)
        return plain[0]

    def arm(self, frame: types.FrameType, call: Call, whole: bool = False) -> None:
        """From now on an exception that leaves *frame* makes it return the value of *call*.

        Args:
            call: function, positional and keyword arguments.
            whole: also one that the frame would handle.

        Raises:
            NotThere: another call of this function waits for its exception.
        """
        if self.frame is not None and self.frame is not frame:
            raise NotThere("Another call of %s is being restarted" % self._code.co_name)
        self.frame, self._call = frame, call
        self._words[self._place] = id(self._tables[whole])

    def disarm(self) -> None:
        """As it was."""
        self._words[self._place] = id(self._own)
        self.frame, self._call = None, (_nothing, (), {})

    def __neg__(self) -> bool:
        """Asked by our instructions: whether the exception goes on."""
        return sys._getframe(1) is not self.frame

    def __invert__(self) -> Any:
        """Called by them; its value is what the call returns."""
        function, positional, by_name = self._call
        self.disarm()
        return function(*positional, **by_name)


def site_of(code: types.CodeType) -> Site:
    """The place at which calls of *code* land.

    Raises:
        NotThere: that is not possible.
    """
    found = _sites.get(id(code))
    if found is None:
        found = _sites[id(code)] = Site(code)
    return found


def without_handlers(code: types.CodeType) -> Callable[[], None]:
    """Let each exception leave calls of *code* at once, in a process that is thrown away; gives the way back."""
    words, place = _words(code), _index()
    own: Any = code.co_exceptiontable  # type: ignore[attr-defined]
    words[place] = id(_NO_TABLE)
    return lambda: words.__setitem__(place, id(own))


_NO_TABLE = b""
