"""A fork of this process that neither the program nor its debugger takes notice of.

`os.fork` runs functions that the program and its libraries have registered (`os.register_at_fork`): in the live
process, where one may wait for a lock that a paused thread holds, and in the child before it is confined, where one may
say goodbye over a connection that belongs to the parent. Here those for the parent are left out and those for the child
are handed to the caller. From 3.12 on `os.fork` also warns, and the debugger puts a function of its own in its place.
"""

from __future__ import annotations

import collections
import ctypes
import errno
import functools
import gc
import itertools
import operator
import signal
import sys
import threading
from typing import Any, Callable, Dict, List, Optional, Sequence, Set

from . import clib, reading

_WORDS = 2**18  # of the interpreter's state, at most: the lists are within the first 2000 in 3.8 to 3.13
_THREAD_WORDS = 64  # of a thread's state, which has some 300 to 500 bytes in 3.8 to 3.13
_WAKING = 0.003  # seconds in which a thread that was woken for nothing waits again
_WALL = 0x40000000  # __WALL: also children whose end sends no signal

_hooks: List[Any] = []  # the interpreter's three lists, once found
_sought = [False]
_waited: Set[str] = set()  # threads that have been seen waiting for any child


class Forked:
    """What a fork has returned.

    Args:
        pid: of the child; 0 in the child.
        hooks: in the child: the functions registered for it, which have not run.
        pinned: in the child: what the other threads held, which must not be freed there.
    """

    def __init__(self, pid: int, hooks: List[Callable[[], Any]], pinned: Any) -> None:
        self.pid = pid
        self.hooks = hooks
        self.pinned = pinned


def possible() -> str:
    """Empty, or why no fork can be made here."""
    if sys.platform == "win32":
        return "Windows has no fork"
    if sys.implementation.name != "cpython":
        return "it takes CPython, this is %s" % sys.implementation.name
    gil = getattr(sys, "_is_gil_enabled", None)
    if gil is not None and not gil():
        return "the free-threaded build is not supported"
    return ""


def fork(unseen: bool) -> Forked:
    """Fork with all signals blocked, in the child, too: it unblocks them once it has left the parent's process group.

    Args:
        unseen: the child is one that `waitpid(-1)` of another thread does not find. Libraries in C (a pool of threads
            of OpenBLAS) are then not told that there is a fork.

    Raises:
        OSError: there is no room for another process.
    """
    lists = _lists()
    kept: List[List[Any]] = [each[:] for each in lists]
    pinned: Any = _held_by_other_threads()
    both = _fork_and_after(_identity_address() if unseen else 0, unseen)
    collecting = gc.isenabled()
    gc.disable()  # in the child it stays so: a collection would run the program's finalizers before it is confined
    for each in lists:
        each[:] = []
    clib.python.PyOS_BeforeFork()
    pid = both()
    for each, functions in zip(lists, kept):
        each[:] = functions
    if pid != 0:
        pinned = None
        if collecting:
            gc.enable()
    if pid < 0:
        raise OSError(errno.EAGAIN, "no process could be forked")
    return Forked(pid, kept[2] if kept else [], pinned)


def _fork_and_after(identity: int, unseen: bool) -> Callable[[], int]:
    """Forks, lets the interpreter know in parent and child, and returns the process id.

    Until it knows, no bytecode may run in the child: the interpreter would hand its lock to a thread that is not there,
    and wait for ever. So the calls follow one another in C alone: the result of `fork` is looked up in a dict (ctypes:
    `restype` may be a callable) that holds what is to be called in the child and makes up the rest for the parent.
    """
    child, parent = clib.python.PyOS_AfterFork_Child, clib.python.PyOS_AfterFork_Parent
    child.restype = parent.restype = None
    after = collections.defaultdict(itertools.repeat(parent).__next__, {0: child})
    if unseen:
        # CLONE_CHILD_SETTID: the C library keeps the thread's id, which fork() would have renewed; no exit signal
        last = (identity, 0) if clib.MACHINE == "x86_64" else (0, identity)
        numbers = (clib.number("clone"), 0x01000000 if identity else 0, 0, 0, *last)
        function = ctypes.PyDLL(None, use_errno=True).syscall
        call: Any = functools.partial(function, *[ctypes.c_long(each) for each in numbers])
    else:
        function = call = ctypes.PyDLL(None, use_errno=True).fork
    function.restype = after.__getitem__
    steps = map(operator.methodcaller("__call__"), iter(call, None))

    def both() -> int:
        next(steps)
        # a parent's entry was made up: its key is the process id
        return next((pid for pid in after if pid), 0)

    return both


def wait(pid: int, block: bool) -> Optional[int]:
    """The status of the child (as of `os.waitpid`), None if it still runs; -1 if nobody can know it any more."""
    import posix

    while True:
        try:
            found, status = posix.waitpid(pid, _WALL | (0 if block else posix.WNOHANG) if clib.LINUX else 0)
        except ChildProcessError:
            return -1  # the program ignores SIGCHLD: the kernel forgets its children; or another thread was faster
        except InterruptedError:
            continue
        return status if found else None


def _identity_address() -> int:
    """Where the C library keeps the id of this thread; 0 if it is not found."""
    import struct

    thread = threading.get_ident()  # the address of its descriptor (glibc, musl: pthread_self)
    wanted = clib.library.syscall(ctypes.c_long(clib.number("gettid")))
    with clib.Memory() as memory:
        data = struct.pack("=128Q", *(memory.words(thread, 128) or (0,) * 128))
    for offset in range(0, len(data), 4):
        if struct.unpack_from("=i", data, offset)[0] == wanted:
            return thread + offset
    return 0


def _lists() -> List[Any]:
    """The interpreter's lists of functions to run before a fork, in the parent and in the child; empty if not found.

    They follow one another in its state (PyInterpreterState, cpython/internal/pycore_interp.h), and no function gives
    them: a mark is registered in all three, and taken out again where it is found.
    """
    if not _sought[0]:
        _sought[0] = True
        if clib.LINUX:
            _hooks.extend(_found_lists())
    return _hooks


def _found_lists() -> List[Any]:
    import posix

    start = _interpreter()

    def mark() -> None:
        """Registered for a moment, to be found by."""

    posix.register_at_fork(before=mark, after_in_child=mark, after_in_parent=mark)
    with clib.Memory() as memory:
        for first in range(0, _WORDS, 512):
            words = memory.words(start + 8 * first, 514)
            for n in range(len(words) - 2):
                three = words[n : n + 3]
                if all(_plausible(word) for word in three) and all(_ends_with(memory, w, mark) for w in three):
                    lists = [ctypes.cast(word, ctypes.py_object).value for word in three]
                    for each in lists:
                        each.remove(mark)
                    return lists
            if len(words) < 514:
                break
    return []


def _plausible(word: int) -> bool:
    return 4096 < word < 2**56 and not word & 15


def _ends_with(memory: clib.Memory, address: int, item: Any) -> bool:
    header = memory.words(address, 4)  # PyListObject: reference count, type, size, items
    if len(header) < 4 or header[1] != id(list) or not 0 < header[2] < 10000:
        return False
    return memory.words(header[3] + 8 * (header[2] - 1), 1) == (id(item),)


def _held_by_other_threads() -> List[Any]:
    """What the states of other threads own: thread locals, contexts, exceptions that are being handled.

    A child clears those states (PyOS_AfterFork_Child), and a connection in a thread local would be closed in a way that
    its server notices.
    """
    held: List[Any] = [sys._current_frames()]
    if not clib.LINUX:
        return held
    python = clib.python
    python.PyInterpreterState_ThreadHead.restype = python.PyThreadState_Next.restype = ctypes.c_void_p
    python.PyThreadState_Get.restype = ctypes.c_void_p
    own = python.PyThreadState_Get()
    state = python.PyInterpreterState_ThreadHead(ctypes.c_void_p(_interpreter()))
    with clib.Memory() as memory:
        types: Dict[int, bool] = {}
        while state:
            if state != own:
                for word in memory.words(state, _THREAD_WORDS):
                    if _plausible(word) and _is_object(memory, word, types):
                        held.append(ctypes.cast(word, ctypes.py_object).value)
            state = python.PyThreadState_Next(ctypes.c_void_p(state))
    return held


def _is_object(memory: clib.Memory, address: int, types: Dict[int, bool]) -> bool:
    """Whether there is an object that is alive: of a class whose class is `type`."""
    header = memory.words(address, 2)
    if len(header) < 2 or not 0 < header[0] < 2**40 or not _plausible(header[1]):
        return False
    if header[1] not in types:
        cls = memory.words(header[1], 2)
        types[header[1]] = len(cls) == 2 and 0 < cls[0] < 2**40 and cls[1] == id(type)
    return types[header[1]]


def _interpreter() -> int:
    get = getattr(clib.python, "PyInterpreterState_Get" if sys.version_info >= (3, 9) else "_PyInterpreterState_Get")
    get.restype = ctypes.c_void_p
    return int(get())


class sigchld_held:  # noqa: N801 - a context manager, read as a verb
    """For a while, the end of a child calls no handler of the program's; what it has missed, it is told afterwards."""

    def __init__(self) -> None:
        self._old = (ctypes.c_ubyte * 256)()
        self._changed = False
        self._before: Any = None

    def __enter__(self) -> None:
        number = int(signal.SIGCHLD)
        if clib.library.sigaction(number, None, self._old) < 0:
            return
        # SIG_DFL and SIG_IGN call nobody; the handler is the first field
        if ctypes.c_void_p.from_buffer(self._old).value not in (None, 1):
            self._before = _ended_child()
            self._changed = clib.library.sigaction(number, (ctypes.c_ubyte * 256)(), None) == 0

    def __exit__(self, *exc: object) -> None:
        import posix

        if not self._changed:
            return
        clib.library.sigaction(int(signal.SIGCHLD), self._old, None)
        ended = _ended_child()
        if ended is not None and ended != self._before:
            posix.kill(posix.getpid(), signal.SIGCHLD)


def _ended_child() -> Any:
    import posix

    try:
        found = posix.waitid(posix.P_ALL, 0, posix.WEXITED | posix.WNOHANG | posix.WNOWAIT)
    except (AttributeError, OSError):
        return None
    return found.si_pid if found is not None else None


_WAITS = {"x86_64": (61, 247), "aarch64": (260, 95)}  # wait4, waitid


def any_child_awaited() -> bool:
    """Whether a thread of this process waits for whichever of its children ends first (`os.wait`).

    The end of any child, also of one that it does not wait for, wakes such a thread for a moment, in which the kernel
    says of it that it runs. So who runs is looked at again for some milliseconds, and counts as waiting if it once was:
    on a busy machine it takes its time.
    """
    import posix

    numbers = _WAITS.get(clib.MACHINE)
    if numbers is None:
        return False
    try:
        tasks = posix.listdir("/proc/self/task")
    except OSError:
        return False
    own = b"%d" % clib.library.syscall(ctypes.c_long(clib.number("gettid")))
    unknown = [task for task in tasks if task.encode() != own]
    looking = reading.Deadline(_WAKING)
    while unknown:
        found = [(task, _system_call(task)) for task in unknown]
        waiting = {task for task, words in found if _waits_for_any_child(words, numbers)}
        unknown = [task for task, words in found if words == [b"running"]]
        if waiting or _waited.intersection(unknown):
            _waited.update(waiting)
            return True
        if looking.passed():
            break
        if unknown:
            clib.library.sched_yield()
    return False


def _system_call(task: str) -> List[bytes]:
    """What a thread asks of the kernel: number and arguments; `running`, or nothing if it has ended."""
    import posix

    try:
        fd = posix.open("/proc/self/task/%s/syscall" % task, posix.O_RDONLY | posix.O_CLOEXEC)
    except OSError:
        return []
    try:
        return posix.read(fd, 400).split()
    except OSError:
        return []
    finally:
        posix.close(fd)


def _waits_for_any_child(words: List[bytes], numbers: Sequence[int]) -> bool:
    if len(words) > 2 and words[0] == b"%d" % numbers[0]:
        pid = int(words[1], 16) & 0xFFFFFFFF
        return pid == 0 or pid >= 0x80000000
    return len(words) > 2 and words[0] == b"%d" % numbers[1] and int(words[1], 16) in (0, 2)  # P_ALL, P_PGID
