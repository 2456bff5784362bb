"""What a forked child does before anything of the program's runs in it: the walls of a jail, from inside."""

from __future__ import annotations

import ctypes
import errno
from typing import Any, Callable, Collection, Dict, List, NamedTuple, Tuple

from . import attempts, clib, landlock, leaving, overlay, seccomp, standins


class Limits(NamedTuple):
    """What code in a jail may use.

    Args:
        seconds: of time, from the moment that it begins to run.
        memory: bytes more than the process has already.
        processes: that may be there at once, threads counted.
        file_size: bytes of one file; all files of an overlay together may have this size.
        output: bytes of standard output and error together, after which it is ended.
    """

    seconds: float = 5.0
    memory: int = 512 * 2**20
    processes: int = 64
    file_size: int = 64 * 2**20
    output: int = 16 * 2**20


DEFAULT = Limits()
_RESERVED = 4 * 2**30


class Plan(NamedTuple):
    """The means that a jail is built with, as far as they were found out beforehand.

    Args:
        landlock_abi: 0: without.
        seccomp: whether system calls are filtered.
        layers: folders to put a throw-away layer over; none: no overlay.
        scratch: a folder of the jail's own; empty without.
        limits: what may be used.
    """

    landlock_abi: int
    seccomp: bool
    layers: List[str]
    scratch: str
    limits: Limits

    @property
    def filter(self) -> Tuple[bool, str]:
        """What the filter of system calls leaves to Landlock and the overlay: see `seccomp.restrict`."""
        # from ABI 3 on Landlock guards against shortening, too; beside an overlay all is read-only
        open_still = "" if self.landlock_abi >= 3 or self.layers else "cut" if self.landlock_abi else "read"
        return self.landlock_abi >= 6, open_still

    @property
    def isolation(self) -> Dict[str, Any]:
        """How well it holds; `text` says it in a sentence."""
        level = "kernel" if self.seccomp else "audit"
        if level == "kernel":
            text = "The kernel keeps it from changing anything outside"
            text += "; files that it changes are thrown away." if self.layers else "; no file can be changed."
        elif self.landlock_abi:
            text = "The kernel keeps it from changing files (Landlock), an audit hook in Python from the rest."
        else:
            text = "Only an audit hook in Python and private descriptors keep it inside: C code could get past them."
        return {
            "landlock_abi": self.landlock_abi,
            "seccomp": self.seccomp,
            "overlay": bool(self.layers),
            "level": level,
            "text": text,
        }


class Walls:
    """The walls of this process, once they stand.

    Args:
        files: its stand-ins for what the parent has open.
        attempts: told what is tried.
    """

    def __init__(self, files: standins.Descriptors, watch: attempts.Attempts) -> None:
        self.files = files
        self.attempts = watch


def confine(plan: Plan, keep: Collection[int], tell: Callable[[str], None], note: Callable[[str], None]) -> Walls:
    """Take this process out of everything that it shares with its parent, for good.

    Args:
        keep: descriptors that it goes on to use.
        tell: is called with each attempt at a change outside.
        note: is called with what could not be had.

    Raises:
        overlay.Impossible: no overlay can be had here: a jail without is to be built in another process.
        OSError: the kernel refused another part.
    """
    import posix

    leaving.leave()
    _go_first()
    if plan.layers:
        overlay.enter(plan.scratch, plan.layers, plan.limits.file_size)
    files = standins.Descriptors(keep, note)
    standins.replace_mappings(note)
    _limit(plan, max([0, *(copy.state[0] for copy in files.copies)]))
    watch = attempts.Attempts(tell, plan.scratch, plan.layers, not plan.seccomp)
    if clib.LINUX:
        _give_up_rights()
        clib.prctl(38, 1)  # PR_SET_NO_NEW_PRIVS
    if plan.landlock_abi:
        landlock.restrict(plan.landlock_abi, [each for each in (plan.scratch, *plan.layers) if each])
    if plan.seccomp:
        seccomp.restrict(posix.getpid(), *plan.filter)
    watch.install()
    if plan.scratch:
        _set_temporary_folder(plan.scratch)
    return Walls(files, watch)


def _go_first() -> None:
    """Where memory runs out (a container's limit), the kernel is to end this process and not its parent."""
    import posix

    try:
        fd = posix.open("/proc/self/oom_score_adj", posix.O_WRONLY | posix.O_CLOEXEC)
    except OSError:
        return  # another system
    try:
        posix.write(fd, b"1000")
    except OSError:
        pass  # a container that does not allow it
    finally:
        posix.close(fd)


def _limit(plan: Plan, largest: int) -> None:
    import posix
    import resource

    limits = plan.limits
    _set(resource.RLIMIT_CORE, 0)
    _set(resource.RLIMIT_CPU, int(limits.seconds) * (posix.cpu_count() or 1) + 2)
    # with nothing that guards files, no byte is written to any: what C code does is not seen otherwise
    guarded = plan.seccomp or plan.landlock_abi
    _set(resource.RLIMIT_FSIZE, largest + limits.file_size if guarded else 0)
    others = clib.machine()[0]
    if others:
        _set(resource.RLIMIT_NPROC, others + limits.processes)
    size, data = _memory_size()
    if size:
        # threads reserve addresses that they never use
        _set(resource.RLIMIT_AS, size + limits.memory + _RESERVED)
        _set(resource.RLIMIT_DATA, data + limits.memory, 32 * 2**20)


def _set(which: int, value: int, more: int = 0) -> None:
    """Lower a limit; *more* is what a process may give itself on top, to say what has happened."""
    import resource

    hard = resource.getrlimit(which)[1]
    most = value + more if hard == resource.RLIM_INFINITY else min(value + more, hard)
    try:
        resource.setrlimit(which, (min(value, most), most))
    except (OSError, ValueError):
        return  # macOS takes some of them only in part; time and process group are held from outside


def last_memory() -> None:
    """Take what was held back of memory: the result has yet to be told."""
    import resource

    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    try:
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
    except (OSError, ValueError):
        return


def _memory_size() -> Tuple[int, int]:
    """Bytes of addresses and of data that this process has (proc_pid_statm(5)); 0 if that is not known."""
    import posix

    if not clib.LINUX:
        return 0, 0
    fd = posix.open("/proc/self/statm", posix.O_RDONLY | posix.O_CLOEXEC)
    try:
        fields, page = posix.read(fd, 200).split(), int(posix.sysconf("SC_PAGE_SIZE"))
        return int(fields[0]) * page, int(fields[5]) * page
    finally:
        posix.close(fd)


_KEPT = 0b110  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH: root still reads what is not its own


def _give_up_rights() -> None:
    """Root's rights, and those of a new user namespace."""
    for kept in (_KEPT, 0):
        header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this process
        sets = (ctypes.c_uint32 * 6)(kept, kept, 0, 0, 0, 0)
        try:
            clib.call("capset", header, sets)
            return
        except OSError as error:
            if error.errno == errno.ENOSYS:
                return  # a machine whose numbers are not known: then there is no filter either
            if error.errno != errno.EPERM or not kept:
                raise


def _set_temporary_folder(path: str) -> None:
    import os
    import sys

    for name in ("TMPDIR", "TEMP", "TMP"):
        os.environ[name] = path
    tempfile: Any = sys.modules.get("tempfile")
    if tempfile is not None:
        tempfile.tempdir = path
