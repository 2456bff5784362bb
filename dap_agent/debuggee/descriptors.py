"""Our file descriptors in the program: out of the way of its own, and safe from a program that closes all it has."""

import functools
import os
from typing import Any, Set

_ours: Set[int] = set()
_ROOM = 64
_HIGHEST = 4096  # the kernel's table of descriptors grows with the number: 32 KiB


def move(descriptor: int) -> int:
    """Give *descriptor* a high number, close the low one and keep the new one open; returns it.

    A program gets the numbers that it gets without us, and `dup2(fd, 3)` or `closerange(3, 256)` of a daemon hits
    nothing of ours. Where the limit (RLIMIT_NOFILE) leaves no room, the descriptor keeps its number.
    """
    try:
        import fcntl
        import resource

        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if limit == resource.RLIM_INFINITY or limit > _HIGHEST:
            limit = _HIGHEST
        if limit <= 2 * _ROOM:
            return descriptor
        moved: int = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, limit - _ROOM)
    except (ImportError, OSError):
        return descriptor
    os.close(descriptor)
    _ours.add(moved)
    return moved


def release(descriptor: int) -> None:
    """*descriptor* is about to be closed by us."""
    _ours.discard(descriptor)


def install() -> None:
    """Let `os.close` and `os.closerange` find our descriptors closed already, as they are without us."""
    stock_close, stock_closerange = os.close, os.closerange

    @functools.wraps(stock_close)
    def close(fd: int) -> None:
        stock_close(-1 if fd in _ours else fd)  # the error of one that is not open

    @functools.wraps(stock_closerange)
    def closerange(fd_low: int, fd_high: int) -> None:
        low = fd_low
        for descriptor in sorted(_ours):
            if low <= descriptor < fd_high:
                stock_closerange(low, descriptor)
                low = descriptor + 1
        stock_closerange(low, fd_high)

    os.close = close
    os.closerange = closerange
    os.register_at_fork(after_in_child=_ours.clear)  # the parent's: the child may close its copies


def opened(path: str) -> Any:
    """A text file for writing with a descriptor out of the way."""
    return os.fdopen(move(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)), "w")
