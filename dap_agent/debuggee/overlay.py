"""A view of the file system of this process's own: read-only, with folders in it whose changes are thrown away.

It takes the right to mount: root's, or that of a user namespace, where unprivileged users may make one.
"""

from __future__ import annotations

import struct
from typing import Any, List, Optional, Sequence, Tuple

from . import clib

_NEWNS, _NEWUSER = 0x00020000, 0x10000000
_REC, _PRIVATE, _BIND = 0x4000, 0x40000, 0x1000
_SPECIAL = ("/proc", "/sys", "/dev")
_MOST_MOUNTS = 32  # below one folder


class Impossible(Exception):
    """No such view can be had; the message says why."""


def wanted(folders: Sequence[str]) -> List[str]:
    """Those of *folders* that can be given a layer of their own, none inside another; at most eight."""
    import posix

    found: List[str] = []
    for folder in sorted({_real(each) for each in folders if each}, key=len):
        special = () if folder == "/dev/shm" else _SPECIAL
        inside = [each for each in (*found, *special) if folder == each or folder.startswith(each + "/")]
        # what mount(2) reads its options from has no way to quote these
        if folder in ("", "/") or inside or any(mark in folder for mark in ",:\\\n"):
            continue
        try:
            if not posix.stat(folder).st_mode & 0o040000 or not posix.access(folder, posix.W_OK):
                continue
        except OSError:
            continue
        found.append(folder)
    return found[:8]


def _real(path: str) -> str:
    import os.path

    return os.path.realpath(path)


def enter(scratch: str, folders: Sequence[str], size: int) -> None:
    """Change to the view, for good.

    Args:
        scratch: an empty folder, to mount on.
        folders: see `wanted`.
        size: bytes that all changes together may take (they are in memory).

    Raises:
        Impossible: this process may not; it may then be in a state in which nothing else should run.
    """
    import posix

    try:
        _unshare()
        _mount(None, "/", None, _REC | _PRIVATE)
        # MOUNT_ATTR_RDONLY, AT_RECURSIVE
        clib.call("mount_setattr", -1, _text("/"), 0x8000, _bytes(struct.pack("=QQQQ", 1, 0, 0, 0)), 32)
        _mount("tmpfs", scratch, "tmpfs", 6, "size=%d,mode=700" % size)  # MS_NOSUID | MS_NODEV
        here = posix.getcwd()
        mounts = _mounts()
        posix.chdir(scratch)
        for n, folder in enumerate(folders):
            below = _opened([path for path in mounts if path.startswith(folder + "/")])
            posix.mkdir("u%d" % n)
            posix.mkdir("w%d" % n)
            _mount("overlay", folder, "overlay", 6, "lowerdir=%s,upperdir=u%d,workdir=w%d" % (folder, n, n))
            for path, fd in below:  # what is mounted there is hidden by the layer
                _mount("/proc/self/fd/%d" % fd, path, None, _BIND)
                posix.close(fd)
        posix.chdir(here)
    except OSError as error:
        raise Impossible(str(error)) from None


def _unshare() -> None:
    import posix

    user, group = posix.geteuid(), posix.getegid()
    if clib.library.unshare(_NEWNS) == 0:
        return
    clib.checked(clib.library.unshare(_NEWNS | _NEWUSER), "unshare")
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", "%d %d 1" % (user, user)),
        ("gid_map", "%d %d 1" % (group, group)),
    ):
        fd = posix.open("/proc/self/" + name, posix.O_WRONLY | posix.O_CLOEXEC)
        try:
            posix.write(fd, text.encode())
        finally:
            posix.close(fd)


def _text(path: Optional[str]) -> Any:
    import ctypes
    import os

    return ctypes.c_char_p(os.fsencode(path)) if path is not None else None


def _bytes(data: bytes) -> Any:
    import ctypes

    return ctypes.create_string_buffer(data, len(data))


def _mount(source: Optional[str], target: str, kind: Optional[str], flags: int, data: Optional[str] = None) -> None:
    import ctypes

    done = clib.library.mount(_text(source), _text(target), _text(kind), ctypes.c_ulong(flags), _text(data))
    clib.checked(done, "mount on %s" % target)


def _mounts() -> List[str]:
    """Where something is mounted, outermost first (proc_pid_mountinfo(5))."""
    import posix

    fd = posix.open("/proc/self/mountinfo", posix.O_RDONLY | posix.O_CLOEXEC)
    data = b""
    try:
        while True:
            more = posix.read(fd, 65536)
            if not more:
                break
            data += more
    finally:
        posix.close(fd)
    found = [line.split(b" ")[4].decode("utf-8", "surrogateescape") for line in data.splitlines()]
    for code, text in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        found = [path.replace(code, text) for path in found]
    return sorted(set(found), key=len)


def _opened(paths: List[str]) -> List[Tuple[str, int]]:
    import posix

    if len(paths) > _MOST_MOUNTS:
        raise Impossible("there are %d mounts below one folder" % len(paths))
    return [(path, posix.open(path, 0x200000 | posix.O_CLOEXEC)) for path in paths]  # O_PATH
