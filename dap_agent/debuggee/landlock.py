"""Landlock: this process and all that it starts read everywhere, write where it is said, and reach nobody.

Rights and structures: linux/landlock.h and Documentation/userspace-api/landlock.rst. Landlock does not guard what is
open already, nor metadata, locks, UDP and unix sockets that have a path: see `seccomp` and `standins`.
"""

from __future__ import annotations

import struct
from typing import Iterable

from . import clib

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}  # how many rights on files an ABI has; from 5 on 16
_DEVICES = ("null", "zero", "full", "random", "urandom")


def abi() -> int:
    """The version of Landlock that the kernel offers, 0 without."""
    try:
        return max(0, clib.call("landlock_create_ruleset", 0, 0, 1))  # LANDLOCK_CREATE_RULESET_VERSION
    except OSError:
        return 0


def restrict(version: int, writable: Iterable[str]) -> None:
    """Confine this process for good. `no_new_privs` must be set.

    Terminals and other devices can't even be read: what is read of them is taken from others.

    Args:
        version: see `abi`.
        writable: folders below which everything is allowed.

    Raises:
        OSError: the kernel refused.
    """
    import ctypes
    import posix

    every = (1 << _RIGHTS.get(version, 16)) - 1
    # handled_access_fs; handled_access_net (ABI 4): bind and connect by TCP; scoped (ABI 6): abstract sockets, signals
    attributes = struct.pack("=QQQ", every, 3, 3)[: 24 if version >= 6 else 16 if version >= 4 else 8]
    ruleset = clib.call("landlock_create_ruleset", ctypes.c_char_p(attributes), len(attributes), 0)

    def allow(path: str, rights: int) -> None:
        try:
            fd = posix.open(path, 0x200000 | posix.O_CLOEXEC | posix.O_NOFOLLOW)  # O_PATH
        except OSError:
            return  # a machine without it
        try:
            rule = struct.pack("=Qi", rights & every, fd)
            clib.call("landlock_add_rule", ruleset, 1, ctypes.c_char_p(rule), 0)  # LANDLOCK_RULE_PATH_BENEATH
        finally:
            posix.close(fd)

    allow("/", _READ_DIR | _EXECUTE)
    with posix.scandir("/") as entries:
        for entry in entries:
            if entry.is_symlink() or entry.name == "dev":
                continue
            allow("/" + entry.name, _READ_FILE | (_READ_DIR | _EXECUTE if entry.is_dir() else _EXECUTE))
    allow("/dev/shm", _READ_FILE)
    for name in _DEVICES:
        allow("/dev/" + name, _READ_FILE | _WRITE_FILE)
    for path in writable:
        allow(path, every)
    # from ABI 7 on: refusals are not written to the machine's audit log (LANDLOCK_RESTRICT_SELF_LOG_SAME_EXEC_OFF)
    clib.call("landlock_restrict_self", ruleset, 1 if version >= 7 else 0)
    posix.close(ruleset)
