"""The C library, for what Python has no function for: Linux system calls by number, memory read without a fault.

Everything here works on the calling process alone.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any, Dict, Tuple

LINUX = sys.platform.startswith("linux")

_NUMBERS: Dict[str, Dict[str, int]] = {
    "x86_64": {"clone": 56, "seccomp": 317, "capset": 126, "gettid": 186},
    "aarch64": {"clone": 220, "seccomp": 277, "capset": 91, "gettid": 178},
}
"""Numbers that differ between architectures (Linux: arch/*/entry/syscalls, include/uapi/asm-generic/unistd.h)."""

_COMMON = {
    "mount_setattr": 442,
    "landlock_create_ruleset": 444,
    "landlock_add_rule": 445,
    "landlock_restrict_self": 446,
}

MACHINE = os.uname().machine if LINUX and sys.maxsize > 2**32 else ""
"""The architecture, empty where its system calls are not known to be the ones of the kernel (a 32 bit Python)."""

KNOWN = MACHINE in _NUMBERS and sys.byteorder == "little"

library: Any = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None
python: Any = ctypes.PyDLL(None, use_errno=True) if os.name == "posix" else None
"""The same and the interpreter's own functions, called with its lock held: no other Python thread runs meanwhile.

Not `ctypes.pythonapi`, which belongs to the program: it may have set other result types there.
"""


def number(name: str) -> int:
    """The number of a system call on this machine.

    Raises:
        OSError: it is not known.
    """
    import errno

    found = _COMMON.get(name) or _NUMBERS.get(MACHINE, {}).get(name)
    if found is None or not LINUX:
        raise OSError(errno.ENOSYS, "the system call %s is not known on this machine" % name)
    return found


def call(name: str, *arguments: Any) -> int:
    """A system call.

    Raises:
        OSError: what the kernel has answered; the message begins with *name*.
    """
    # each argument as wide as a register: what ctypes would pass as an int has garbage in its upper half
    wide = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return checked(library.syscall(ctypes.c_long(number(name)), *wide), name)


def checked(result: int, what: str) -> int:
    """*result* of a function of the C library, if it is none of its errors.

    Raises:
        OSError: it was; the message begins with *what*.
    """
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, "%s: %s" % (what, os.strerror(code)))
    return result


def prctl(option: int, *arguments: int) -> int:
    """`prctl(2)`.

    Raises:
        OSError: the kernel refused.
    """
    wide = [ctypes.c_ulong(each) for each in (arguments + (0, 0, 0, 0))[:4]]
    return checked(library.prctl(ctypes.c_int(option), *wide), "prctl %d" % option)


class Memory:
    """This process's own memory, read so that a wrong address is an error and not the end of it."""

    def __init__(self) -> None:
        import posix

        self._fd = posix.open("/proc/self/mem", posix.O_RDONLY | posix.O_CLOEXEC)

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *exc: object) -> None:
        import posix

        posix.close(self._fd)

    def words(self, address: int, count: int) -> tuple[int, ...]:
        """Up to *count* words of 8 bytes at *address*; none where there is no memory."""
        import posix
        import struct

        try:
            data = posix.pread(self._fd, 8 * count, address)
        except (OSError, OverflowError):
            return ()
        return struct.unpack("=%dQ" % (len(data) // 8), data[: len(data) // 8 * 8])


class _Counts(ctypes.Structure):
    """`struct mallinfo`."""

    _fields_ = [("n%d" % n, ctypes.c_int) for n in range(10)]  # noqa: RUF012 - ctypes wants it so


def take_locks() -> None:
    """Take each lock of `malloc` once: does not return if one was held by a thread that a fork has left behind."""
    function = getattr(library, "mallinfo", None)  # musl has none
    if function is not None:
        function.restype = _Counts
        function()


def machine() -> Tuple[int, int]:
    """How many threads all users have and how many bytes of memory are files without a disk (`sysinfo(2)`).

    0 where that can't be asked.
    """
    if not LINUX or sys.maxsize < 2**32:
        return 0, 0
    found = (ctypes.c_ubyte * 128)()
    if library.sysinfo(found) < 0:
        return 0, 0
    shared, threads = ctypes.c_ulong.from_buffer(found, 48).value, ctypes.c_ushort.from_buffer(found, 80).value
    return threads, shared * ctypes.c_uint.from_buffer(found, 104).value
