"""What a forked child shares with its parent, replaced by things of its own under the same numbers and addresses.

A descriptor is a reference to something that both have: an offset in a file, a connection, a set of an epoll. A shared
mapping is memory that both have. Rules on paths or on the network reach neither.
"""

from __future__ import annotations

import ctypes
import stat
from typing import Any, Callable, Collection, List, NamedTuple, Optional, Tuple

from . import clib

COPIED = 64 * 2**20
"""Bytes of files and of memory, each, that are copied at most; what is larger can only be read, or not at all."""

_CHUNK = 2**20
_HARMLESS = {(1, 3), (1, 5), (1, 7), (1, 8), (1, 9)}  # null, zero, full, random, urandom


class Copy(NamedTuple):
    """A private copy of a file that was open for writing."""

    fd: int
    path: str
    inode: int
    state: Tuple[int, int]


class Descriptors:
    """Replaces all of this process's descriptors but those to keep.

    Args:
        keep: numbers to leave alone.
        note: is told what could not be had.
    """

    def __init__(self, keep: Collection[int], note: Callable[[str], None]) -> None:
        import posix

        self._note = note
        self._left = COPIED
        self._null = posix.open("/dev/null", posix.O_RDWR | posix.O_CLOEXEC)
        self.copies: List[Copy] = []
        for name in posix.listdir("/proc/self/fd" if clib.LINUX else "/dev/fd"):
            fd = int(name)
            if fd not in keep and fd != self._null:
                self._replace(fd)
        posix.close(self._null)

    def changed(self) -> List[str]:
        """Paths of the files that would have been written to."""
        import posix

        found = []
        for copy in self.copies:
            try:
                now = posix.fstat(copy.fd)
            except OSError:
                continue  # it has been closed
            if now.st_ino == copy.inode and (now.st_size, now.st_mtime_ns) != copy.state:
                found.append(copy.path)
        return found

    def _replace(self, fd: int) -> None:
        import fcntl
        import posix

        try:
            found = posix.fstat(fd)
            flags = fcntl.fcntl(fd, fcntl.F_GETFL)
            target = posix.readlink("/proc/self/fd/%d" % fd) if clib.LINUX else ""
        except OSError:
            return  # it was that of the listing
        try:
            new = self._standin(fd, found, flags, target)
        except OSError:
            new = None
        if new is None or new == fd:
            if new is None:
                posix.close(fd)
            return
        inheritable = posix.get_inheritable(fd)
        fcntl.fcntl(new, fcntl.F_SETFL, flags)  # of those the kernel takes what can be changed: append, non-blocking
        posix.dup2(new, fd, inheritable)
        if new != self._null:
            posix.close(new)

    def _standin(self, fd: int, found: Any, flags: int, target: str) -> Optional[int]:
        """A descriptor to put in the place of *fd*; *fd* itself if it may stay; None if there is nothing like it."""
        import posix

        kind = stat.S_IFMT(found.st_mode)
        writable = flags & 3 != posix.O_RDONLY
        if kind == stat.S_IFSOCK:
            return _socket_like(fd)
        if kind == stat.S_IFIFO:
            if writable:
                return self._null
            fresh, other = posix.pipe()
            posix.close(other)
            return int(fresh)
        if flags & 0x200000 and clib.LINUX:  # O_PATH
            return _again(target, found, 0x200000)
        if kind == stat.S_IFREG:
            return self._file_like(fd, found, flags, target) if writable else self._read_again(fd, found, target)
        if kind == stat.S_IFDIR:
            return _again(target, found, posix.O_RDONLY)
        if kind == stat.S_IFCHR and (posix.major(found.st_rdev), posix.minor(found.st_rdev)) in _HARMLESS:
            return fd
        if kind == 0:
            return _nameless(target, self._null)
        return self._null

    def _read_again(self, fd: int, found: Any, target: str) -> Optional[int]:
        import posix

        try:
            new: Optional[int] = _again(target, found, posix.O_RDONLY)
        except OSError:  # it has been deleted, or is another's
            new = self._copy(fd, found.st_size)
        if new is not None:
            _go_where(fd, new)
        return new

    def _file_like(self, fd: int, found: Any, flags: int, target: str) -> Optional[int]:
        import posix

        if flags & 3 == posix.O_WRONLY:  # what it holds can't be read by it
            new: Optional[int] = _memory_file(found.st_size)
        else:
            new = self._copy(fd, found.st_size)
        if new is None:
            self._note("%s is too large to be copied: here it can only be read." % target)
            return self._read_again(fd, found, target)
        _go_where(fd, new)
        state = posix.fstat(new)
        self.copies.append(Copy(fd, target, state.st_ino, (state.st_size, state.st_mtime_ns)))
        return new

    def _copy(self, fd: int, size: int) -> Optional[int]:
        import posix

        if size > self._left:
            return None
        self._left -= size
        new = _memory_file(size)
        done = 0
        while done < size:
            moved = posix.sendfile(new, fd, done, size - done) if clib.LINUX else 0
            if not moved:
                data = posix.pread(fd, _CHUNK, done)
                moved = posix.write(new, data)
            if not moved:
                break
            done += moved
        return new


def _go_where(fd: int, new: int) -> None:
    """Let *new* stand at the offset of *fd*."""
    import os
    import posix

    posix.lseek(new, posix.lseek(fd, 0, os.SEEK_CUR), os.SEEK_SET)


def _memory_file(size: int) -> int:
    """A new file that has no name, full of zeros."""
    import posix

    create = getattr(posix, "memfd_create", None)
    if create is not None:
        new = int(create("private"))
    else:
        import tempfile

        new, path = tempfile.mkstemp()
        posix.unlink(path)
    posix.ftruncate(new, size)
    return new


def _again(path: str, found: Any, flags: int) -> int:
    """The same file, opened by its path."""
    import posix

    new = posix.open(path, flags | posix.O_CLOEXEC)
    again = posix.fstat(new)
    # a layer of an overlay gives another device number, and folders another inode, too
    kind = stat.S_IFMT(found.st_mode)
    if stat.S_IFMT(again.st_mode) != kind or (again.st_ino != found.st_ino and kind != stat.S_IFDIR):
        posix.close(new)
        raise FileNotFoundError(path)
    return new


def _socket_like(fd: int) -> int:
    """A fresh socket, connected to nobody: one of TCP if *fd* is, else a stream of the unix family.

    Others could send to an address without a connection.
    """
    import _socket

    original: Any = _socket.socket(fileno=fd)
    family, kind = original.family, original.type
    original.detach()
    if family not in (_socket.AF_INET, _socket.AF_INET6) or kind != _socket.SOCK_STREAM:
        family = _socket.AF_UNIX
    return int(_socket.socket(family, _socket.SOCK_STREAM).detach())


def _nameless(target: str, null: int) -> int:
    """For what has no file: a fresh one where it is of use, else the null device."""
    kind = target.partition("[")[2].rstrip("]") or target.rpartition(":")[2]
    if kind == "eventpoll":
        return clib.checked(clib.library.epoll_create1(0x80000), "epoll_create1")
    if kind == "eventfd":
        return clib.checked(clib.library.eventfd(0, 0x80000), "eventfd")
    if kind == "timerfd":
        return clib.checked(clib.library.timerfd_create(1, 0x80000), "timerfd_create")
    if kind == "inotify":
        return clib.checked(clib.library.inotify_init1(0x80000), "inotify_init1")
    return null


_NONE, _READ, _WRITE, _EXECUTE = 0, 1, 2, 4  # PROT_*
_PRIVATE, _FIXED, _ANONYMOUS = 0x02, 0x10, 0x20  # MAP_*


def replace_mappings(note: Callable[[str], None]) -> None:
    """Give each shared mapping of this process memory of its own, with the same content at the same address."""
    import posix

    if not clib.LINUX:
        return
    library = ctypes.CDLL(None, use_errno=True)
    for name in ("mmap", "mremap"):
        getattr(library, name).restype = ctypes.c_void_p
    left = COPIED
    for start, end, rights, offset, inode, path in _shared():
        size = end - start
        protection = sum(bit for bit, letter in ((_READ, "r"), (_WRITE, "w"), (_EXECUTE, "x")) if letter in rights)
        device = path.startswith(("anon_inode", "/dev/")) and not path.startswith(("/dev/shm/", "/dev/zero"))
        fd = None if device else _mapped_file(start, end, inode, path)
        if fd is not None:
            arguments = ctypes.c_size_t(size), protection, _PRIVATE | _FIXED, fd, ctypes.c_long(offset)
            made = library.mmap(ctypes.c_void_p(start), *arguments)
            posix.close(fd)
            if made == start:
                continue
        if not device and size <= left and _copied(library, start, size, protection):
            left -= size
            continue
        note("The memory shared as %s (%d bytes) can't be copied: touching it ends the jail." % (path or "?", size))
        clib.checked(library.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(size), _NONE), "mprotect")


def _shared() -> List[Tuple[int, int, str, int, int, str]]:
    import posix

    fd = posix.open("/proc/self/maps", posix.O_RDONLY | posix.O_CLOEXEC)
    data = []
    while True:
        more = posix.read(fd, 2**18)
        if not more:
            break
        data.append(more)
    posix.close(fd)
    found = []
    for line in b"".join(data).splitlines():
        fields = line.split(None, 5)
        if fields[1].endswith(b"s"):
            first, _, last = fields[0].partition(b"-")
            path = fields[5].decode("utf-8", "surrogateescape") if len(fields) > 5 else ""
            row = int(first, 16), int(last, 16), fields[1].decode(), int(fields[2], 16), int(fields[4]), path
            found.append(row)
    return found


def _mapped_file(start: int, end: int, inode: int, path: str) -> Optional[int]:
    """The file of a mapping, opened again; None if that is not possible (deleted, anonymous)."""
    import posix

    if not path.startswith("/"):
        return None
    for name in (path, "/proc/self/map_files/%x-%x" % (start, end)):
        try:
            fd = posix.open(name, posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK)
        except OSError:
            continue
        found = posix.fstat(fd)
        if found.st_ino == inode and stat.S_ISREG(found.st_mode):
            return fd
        posix.close(fd)
    return None


def _copied(library: Any, start: int, size: int, protection: int) -> bool:
    import posix

    flags = _PRIVATE | _ANONYMOUS
    new = library.mmap(None, ctypes.c_size_t(size), _READ | _WRITE, flags, -1, ctypes.c_long(0))
    if new in (None, ctypes.c_void_p(-1).value):
        return False
    # not memmove: behind the end of its file, memory that is there can't be read
    memory = posix.open("/proc/self/mem", posix.O_RDONLY | posix.O_CLOEXEC)
    try:
        for done in range(0, size, _CHUNK):
            try:
                data = posix.pread(memory, min(_CHUNK, size - done), start + done)
            except OSError:
                continue
            ctypes.memmove(new + done, data, len(data))
    finally:
        posix.close(memory)
    room = ctypes.c_size_t(size)
    library.mprotect(ctypes.c_void_p(new), room, protection)
    # MREMAP_MAYMOVE | MREMAP_FIXED
    return bool(library.mremap(ctypes.c_void_p(new), room, room, 3, ctypes.c_void_p(start)) == start)
