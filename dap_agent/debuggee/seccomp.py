"""A filter of system calls (seccomp BPF), for what Landlock leaves open; Linux on x86_64 and aarch64.

Numbers are of arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h; None where a machine has no
such call. A rule refuses a call with an error, or pretends that it has succeeded: changes of a file's metadata, locks
and process groups can't be had, and are nothing that a computation depends on.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import struct
from typing import Dict, List, NamedTuple, Optional, Tuple

from . import clib

_NUMBERS: Dict[str, Tuple[Optional[int], Optional[int]]] = {
    # other processes' memory and descriptors, keys, namespaces and mounts, the kernel itself
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "kcmp": (312, 272), "pidfd_getfd": (438, 438),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "mount": (165, 40), "umount2": (166, 39),
    "pivot_root": (155, 41), "chroot": (161, 51), "move_mount": (429, 429), "open_tree": (428, 428),
    "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "open_tree_attr": (467, 467), "unshare": (272, 97), "setns": (308, 268),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "kexec_load": (246, 104), "kexec_file_load": (320, 294), "reboot": (169, 142),
    "swapon": (167, 224), "swapoff": (168, 225), "syslog": (103, 116), "acct": (163, 89), "quotactl": (179, 60),
    "quotactl_fd": (443, 443), "settimeofday": (164, 170), "clock_settime": (227, 112), "clock_adjtime": (305, 266),
    "adjtimex": (159, 171), "sethostname": (170, 161), "setdomainname": (171, 162), "iopl": (172, None),
    "ioperm": (173, None), "vhangup": (153, 58), "open_by_handle_at": (304, 265), "fanotify_init": (300, 262),
    "migrate_pages": (256, 238), "move_pages": (279, 239),
    # System V and POSIX message queues, semaphores and shared memory
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semop": (65, 193),
    "semctl": (66, 191), "semtimedop": (220, 192), "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188),
    "msgctl": (71, 187), "mq_open": (240, 180), "mq_unlink": (241, 181), "mq_timedsend": (242, 182),
    "mq_timedreceive": (243, 183), "mq_notify": (244, 184), "mq_getsetattr": (245, 185),
    # the network
    "connect": (42, 203), "bind": (49, 200), "listen": (50, 201), "accept": (43, 202), "accept4": (288, 242),
    "socket": (41, 198), "socketpair": (53, 199), "sendto": (44, 206), "sendmsg": (46, 211), "sendmmsg": (307, 269),
    # processes
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_send_signal": (424, 424), "setpriority": (141, 140),
    "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119), "sched_setparam": (142, 118),
    "sched_setattr": (314, 274), "ioprio_set": (251, 30), "prlimit64": (302, 261), "setsid": (112, 157),
    "setpgid": (109, 154), "clone": (56, 220), "clone3": (435, 435), "prctl": (157, 167),
    "io_uring_setup": (425, 425),
    # descriptors
    "ioctl": (16, 29), "flock": (73, 32), "fcntl": (72, 25),
    # metadata of files
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, None),
    "lchown": (94, None), "fchown": (93, 55), "fchownat": (260, 54), "utime": (132, None), "utimes": (235, None),
    "futimesat": (261, None), "utimensat": (280, 88), "setxattr": (188, 5), "lsetxattr": (189, 6),
    "fsetxattr": (190, 7), "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "setxattrat": (463, 463), "removexattrat": (466, 466), "file_setattr": (469, 469),
    # files, where nothing else guards them
    "open": (2, None), "openat": (257, 56), "openat2": (437, 437), "creat": (85, None), "truncate": (76, 45),
    "rename": (82, None), "renameat": (264, 38), "renameat2": (316, 276), "unlink": (87, None), "unlinkat": (263, 35),
    "rmdir": (84, None), "mkdir": (83, None), "mkdirat": (258, 34), "mknod": (133, None), "mknodat": (259, 33),
    "link": (86, None), "linkat": (265, 37), "symlink": (88, None), "symlinkat": (266, 36),
}  # fmt: skip

_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}  # AUDIT_ARCH_*, column of the table above
_X32 = 0x40000000  # __X32_SYSCALL_BIT: the same calls under other numbers

_ALLOW = 0x7FFF0000
_ERROR = 0x00050000


def _refuse(code: int) -> int:
    return _ERROR | code


_PRETEND = _refuse(0)
_EPERM, _EACCES, _EROFS = _refuse(errno.EPERM), _refuse(errno.EACCES), _refuse(errno.EROFS)


class _When(NamedTuple):
    """If all tests hold, the action. A test: word number (twice the argument, + 1 for its upper half), mask, value."""

    tests: Tuple[Tuple[int, int, int], ...]
    action: int


class _Rule(NamedTuple):
    names: str
    conditions: Tuple[_When, ...]
    otherwise: int


def _argument(n: int, value: int, mask: int = 0xFFFFFFFF) -> Tuple[int, int, int]:
    return 2 * n, mask, value


def _null(n: int) -> Tuple[Tuple[int, int, int], ...]:
    return _argument(n, 0), (2 * n + 1, 0xFFFFFFFF, 0)


_FASTOPEN = 0x20000000  # MSG_FASTOPEN: a send that connects
_KIND = 0xF  # of a socket, without SOCK_CLOEXEC and SOCK_NONBLOCK
_APART = 0x7E028000  # CLONE_PARENT and CLONE_NEW*


def _rules(pid: int, signals_scoped: bool, files: str) -> List[_Rule]:
    myself = (_When((_argument(0, 0),), _ALLOW), _When((_argument(0, pid),), _ALLOW))
    rules = [
        _Rule(
            "ptrace process_vm_readv process_vm_writev process_madvise process_mrelease kcmp pidfd_getfd add_key "
            "request_key keyctl mount umount2 pivot_root chroot move_mount open_tree fsopen fsconfig fsmount fspick "
            "mount_setattr open_tree_attr unshare setns bpf perf_event_open userfaultfd io_uring_enter "
            "io_uring_register init_module finit_module delete_module kexec_load kexec_file_load reboot swapon "
            "swapoff syslog acct quotactl quotactl_fd settimeofday clock_settime clock_adjtime adjtimex sethostname "
            "setdomainname iopl ioperm vhangup open_by_handle_at fanotify_init migrate_pages move_pages shmget shmat "
            "shmctl semget semop semctl semtimedop msgget msgsnd msgrcv msgctl mq_open mq_unlink mq_timedsend "
            "mq_timedreceive mq_notify mq_getsetattr",
            (),
            _EPERM,
        ),
        # programs that could use them do without
        _Rule("io_uring_setup clone3", (), _refuse(errno.ENOSYS)),
        _Rule("connect bind listen accept accept4", (), _EACCES),
        # only kinds whose every message goes to the peer that it is connected to: none, but of a socketpair
        _Rule(
            "socket",
            tuple(
                _When((_argument(0, domain), _argument(1, kind, _KIND), _argument(2, protocol)), _ALLOW)
                for domain, kind, protocol in ((1, 1, 0), (1, 5, 0), (2, 1, 0), (2, 1, 6), (10, 1, 0), (10, 1, 6))
            ),
            _EACCES,
        ),
        _Rule("socketpair", tuple(_When((_argument(1, kind, _KIND),), _ALLOW) for kind in (1, 5)), _EACCES),
        _Rule("sendto", (_When((_argument(3, _FASTOPEN, _FASTOPEN),), _EACCES), _When(_null(4), _ALLOW)), _EACCES),
        _Rule("sendmsg", (_When((_argument(2, _FASTOPEN, _FASTOPEN),), _EACCES),), _ALLOW),
        _Rule("sendmmsg", (_When((_argument(3, _FASTOPEN, _FASTOPEN),), _EACCES),), _ALLOW),
        _Rule("sched_setaffinity sched_setscheduler sched_setparam sched_setattr", myself, _EPERM),
        _Rule("prlimit64", (*myself, _When(_null(2), _ALLOW)), _EPERM),
        _Rule("setpriority", (_When((_argument(0, 0), _argument(1, 0)), _ALLOW),), _EPERM),
        _Rule("ioprio_set", (_When((_argument(0, 1), _argument(1, 0)), _ALLOW),), _EPERM),
        # all of the jail stays in one process group, which can be ended at once
        _Rule("setsid setpgid", (), _PRETEND),
        _Rule("clone", (_When((_argument(0, 0, _APART),), _ALLOW),), _EPERM),
        # PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER
        _Rule("prctl", tuple(_When((_argument(0, option),), _PRETEND) for option in (1, 36)), _ALLOW),
        # TIOCSTI, TIOCLINUX, TIOCSCTTY, TIOCCONS, FS_IOC_SETFLAGS (also of 32 bits), FS_IOC_FSSETXATTR
        _Rule(
            "ioctl",
            tuple(
                _When((_argument(1, command),), _EPERM)
                for command in (0x5412, 0x541C, 0x540E, 0x541D, 0x40086602, 0x40046602, 0x401C5820)
            ),
            _ALLOW,
        ),
        _Rule("flock", (), _PRETEND),
        # F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW; F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY
        _Rule(
            "fcntl",
            (
                *(_When((_argument(1, command),), _PRETEND) for command in (6, 7, 37, 38)),
                *(_When((_argument(1, command),), _EPERM) for command in (8, 10, 15, 1024, 1026)),
            ),
            _ALLOW,
        ),
        _Rule(
            "chmod fchmod fchmodat fchmodat2 chown lchown fchown fchownat utime utimes futimesat utimensat setxattr "
            "lsetxattr fsetxattr removexattr lremovexattr fremovexattr setxattrat removexattrat file_setattr",
            (),
            _PRETEND,
        ),
    ]
    if not signals_scoped:
        own = (_When((_argument(0, pid),), _ALLOW),)
        rules += [
            _Rule("kill tgkill rt_sigqueueinfo rt_tgsigqueueinfo", own, _EPERM),
            _Rule("tkill pidfd_send_signal", (), _EPERM),
        ]
    if files == "read":
        # O_ACCMODE, O_CREAT, O_TRUNC, __O_TMPFILE
        rules += [
            _Rule("open", (_When((_argument(1, 0, 0x400243),), _ALLOW),), _EROFS),
            _Rule("openat", (_When((_argument(2, 0, 0x400243),), _ALLOW),), _EROFS),
            _Rule(
                "creat truncate rename renameat renameat2 unlink unlinkat rmdir mkdir mkdirat mknod mknodat link "
                "linkat symlink symlinkat",
                (),
                _EROFS,
            ),
        ]
    elif files == "cut":
        # O_TRUNC needs no right to write
        rules += [
            _Rule("open", (_When((_argument(1, 0x200, 0x203),), _EROFS),), _ALLOW),
            _Rule("openat", (_When((_argument(2, 0x200, 0x203),), _EROFS),), _ALLOW),
            _Rule("truncate", (), _EROFS),
        ]
    if files:
        rules.append(_Rule("openat2", (), _refuse(errno.ENOSYS)))  # its flags are in memory
    return rules


def possible() -> bool:
    """Whether the kernel takes a filter, and the machine is one whose numbers are known."""
    if clib.MACHINE not in _ARCHITECTURES:
        return False
    action = ctypes.c_uint32(_ERROR)
    try:
        clib.call("seccomp", 2, 0, ctypes.byref(action))  # SECCOMP_GET_ACTION_AVAIL
    except OSError:
        return False
    return True


_SOMEBODY = b"\x5e\xba\xce\x7a"  # in the place of a process id, none of which is that high


@functools.lru_cache(maxsize=None)
def prepared(signals_scoped: bool, files: str) -> bytes:
    """The filter but for the id of its process; to be asked for before the fork, as it takes a while to make."""
    return _program(_rules(struct.unpack("=I", _SOMEBODY)[0], signals_scoped, files))


def restrict(pid: int, signals_scoped: bool, files: str) -> None:
    """Filter the system calls of this process and of all that it starts, for good.

    `no_new_privs` must be set.

    Args:
        pid: of this process.
        signals_scoped: something else keeps signals inside; else none are let through but to this process itself.
        files: what to refuse of file changes: nothing (``), shortening them (`cut`), all (`read`).

    Raises:
        OSError: the kernel refused.
    """
    program = prepared(signals_scoped, files).replace(_SOMEBODY, struct.pack("=I", pid))
    code = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: number of instructions, padding, their address
    header = struct.pack("=H6xQ", len(program) // 8, ctypes.addressof(code))
    clib.call("seccomp", 1, 0, ctypes.create_string_buffer(header, len(header)))  # SECCOMP_SET_MODE_FILTER


_LOAD, _AND, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06  # linux/bpf_common.h
_CALL, _ARCHITECTURE, _WORDS = 0, 4, 16  # offsets in struct seccomp_data


def _program(rules: List[_Rule]) -> bytes:
    architecture, column = _ARCHITECTURES[clib.MACHINE]
    made = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _EPERM),
        (_LOAD, 0, 0, _CALL),
    ]
    if clib.MACHINE == "x86_64":
        made += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _EPERM)]
    for rule in rules:
        block = _block(rule)
        for name in rule.names.split():
            number = _NUMBERS[name][column]
            if number is not None:
                made += [(_EQUAL, 0, len(block), number), *block]
    made.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in made)


def _block(rule: _Rule) -> List[Tuple[int, int, int, int]]:
    block: List[Tuple[int, int, int, int]] = []
    for condition in rule.conditions:
        steps: List[Tuple[int, int, int, int]] = []
        left = 3 * len(condition.tests)
        for word, mask, value in condition.tests:
            left -= 3
            steps += [(_LOAD, 0, 0, _WORDS + 4 * word), (_AND, 0, 0, mask), (_EQUAL, 0, left + 1, value)]
        block += [*steps, (_RETURN, 0, 0, condition.action)]
    return [*block, (_RETURN, 0, 0, rule.otherwise)]
