"""A jail: a fork of this process that computes what it likes and changes nothing outside itself.

`run` takes a function, runs it in a forked child behind walls (`confining`), and returns what it gave, what it printed
and what it tried to do to the world. The child is ended from outside when its time is up, with all that it has started.
"""

from __future__ import annotations

import signal
import sys
import threading
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from . import clib, forking, landlock, overlay, reading, seccomp
from .confining import DEFAULT, Limits, Plan
from .jail_child import Child, moved
from .jail_job import BUILDING, Job, ended
from .paths import NotThere

PARALLEL = 8
"""Jails that run at once, at most."""

_DYING = 0.5  # seconds to wait for what has been killed to be gone
_TICK = 20  # milliseconds between two looks at the number of processes
_MOST_PROCESSES = 400  # more than when it began, on the whole machine
_TRIES = 3  # of a fork past the C library: another thread may have held a lock of it

_means: Dict[str, Any] = {}  # what the machine offers, once asked; the reason why it has no overlay
_one_at_a_time = threading.Lock()


class Outcome(NamedTuple):
    """What became of one job.

    Args:
        result: what the function returned, as JSON can hold it; None if it did not come to that.
        failure: empty, or a sentence on why there is no result.
        timed_out: whether its time was up.
        stdout, stderr: what it printed, as text, the middle of too much left out.
        seconds: how long it ran.
        effects: sentences on what it tried to change outside.
        notes: sentences on what is different in there.
        isolation: see `confining.Plan.isolation`.
        status: how the process ended, as of `os.waitpid`; None or negative: not known.
    """

    result: Any
    failure: str
    timed_out: bool
    stdout: str
    stderr: str
    seconds: float
    effects: List[str]
    notes: List[str]
    isolation: Dict[str, Any]
    status: Optional[int] = None


def never() -> bool:
    """A jail that nobody ends."""
    return False


def run(
    function: Callable[[], Any],
    limits: Limits = DEFAULT,
    without: Sequence[str] = (),
    stopped: Callable[[], bool] = never,
) -> Outcome:
    """`run_all` of one job."""
    return run_all([function], limits, without, stopped)[0]


def run_all(
    functions: Sequence[Callable[[], Any]],
    limits: Limits = DEFAULT,
    without: Sequence[str] = (),
    stopped: Callable[[], bool] = never,
    goes_on: bool = False,
) -> List[Outcome]:
    """Run each function in a jail of its own, up to PARALLEL at once.

    Args:
        functions: without arguments; what they return is sent as JSON.
        limits: of each.
        without: means not to use: `landlock`, `seccomp`, `overlay`.
        stopped: asked every 20 ms: once it says True all jobs end, as if their time were up.
        goes_on: a job is not over with its result (`Child.tell`), but when its process ends by itself.

    Returns:
        One outcome for each function, in their order.

    Raises:
        NotThere: no process can be forked here; the message says why and what can be done instead.
    """
    reason = forking.possible()
    if reason:
        raise NotThere(
            "Nothing can be tried in a copy of this program: %s. It can be run in the program itself, with all its "
            "effects, if the user allows that (--allow-evaluate)." % reason
        )
    # now, as later there may be no descriptor to read a module by
    for name in ("fcntl", "resource", "select", "shutil"):
        __import__(name)
    if not _one_at_a_time.acquire(timeout=limits.seconds + BUILDING):
        raise NotThere("Another thread of the program is busy with a jail, or this is one.")
    try:
        with forking.sigchld_held():
            return _Run(functions, limits, without, stopped, goes_on).outcomes()
    except OSError as error:  # no descriptor is left, no process, no /proc
        raise NotThere("Nothing can be tried in a copy of this program: %s." % error) from None
    finally:
        _one_at_a_time.release()


def _plan(limits: Limits, without: Sequence[str], scratch: str) -> Plan:
    if not _means:
        _means.update(landlock=landlock.abi(), seccomp=seccomp.possible(), overlay="" if clib.KNOWN else "unknown")
    abi = 0 if "landlock" in without else _means["landlock"]
    filtered = _means["seccomp"] and "seccomp" not in without
    layers: List[str] = []
    if filtered and scratch and not _means["overlay"] and "overlay" not in without:
        layers = overlay.wanted(_places())
    plan = Plan(abi, filtered, layers, scratch, limits)
    if filtered:
        seccomp.prepared(*plan.filter)
    return plan


def _places() -> List[str]:
    """Folders that the program is likely to write to: where it stands, where it lies, home, for temporary files."""
    import os
    import posix
    import sys

    main = getattr(sys.modules.get("__main__"), "__file__", None)
    found = [main and os.path.dirname(os.path.abspath(main)), os.environ.get("HOME"), os.environ.get("TMPDIR")]
    try:
        found.append(posix.getcwd())
    except OSError:
        pass  # it has been deleted
    found += ["/tmp", "/var/tmp", "/dev/shm"]
    return [each for each in found if each]


class _Run:
    """Some jobs, from their forks to their ends."""

    def __init__(
        self,
        functions: Sequence[Callable[[], Any]],
        limits: Limits,
        without: Sequence[str],
        stopped: Callable[[], bool],
        goes_on: bool,
    ) -> None:
        self._stopped = stopped
        self._goes_on = goes_on
        self._functions = functions
        self._limits = limits
        self._without = without
        self._waiting = [(n, 1) for n in range(len(functions))]  # number, which try it is
        self._running: Dict[int, Job] = {}
        self._found: Dict[int, Outcome] = {}
        self._scratches: List[str] = []
        self._unseen = forking.any_child_awaited()

    def outcomes(self) -> List[Outcome]:
        """Run them all."""
        import select

        poll = select.poll()
        try:
            while self._waiting or self._running:
                while self._waiting and len(self._running) < PARALLEL:
                    job = self._start(*self._waiting.pop(0))
                    for fd in job.pipes:
                        self._running[fd] = job
                        poll.register(fd, select.POLLIN)
                jobs = set(self._running.values())
                soonest = min(job.clock.left() for job in jobs)
                for fd, _ in poll.poll(max(1, min(_TICK, int(1000 * soonest) + 1))):
                    if not self._hear(self._running[fd], fd):
                        poll.unregister(fd)
                        self._running[fd].open.discard(fd)
                for job in jobs:
                    self._look_after(job)
                    if job.done:
                        for fd in job.open:
                            poll.unregister(fd)
                        for fd in job.pipes:
                            del self._running[fd]
                        self._finish(job)
        finally:
            for job in set(self._running.values()):
                self._kill(job)
                _close(job.pipes)
            for scratch in self._scratches:
                _remove(scratch)
        return [self._found[n] for n in range(len(self._functions))]

    def _hear(self, job: Job, fd: int) -> bool:
        """Read what is there; False at the end."""
        import posix

        try:
            data = posix.read(fd, 2**16)
        except BlockingIOError:
            return True
        if data:
            job.heard(fd, data)
        elif fd == job.pipes[0]:
            job.end("")  # it ended by itself; its status says how
        return bool(data)

    def _look_after(self, job: Job) -> None:
        if job.done:
            return
        if job.status is None:
            job.status = forking.wait(job.pid, False)
        if job.status is not None:
            while job.pipes[0] in job.open and _has_more(job.pipes[0]) and self._hear(job, job.pipes[0]):
                pass
            job.end("")
        elif job.clock.left() <= 0 or self._stopped():
            job.timed_out = job.ready or job.clock.left() > 0
            job.end(
                "It was ended after %.1f s." % job.clock.elapsed()
                if job.ready
                else "The jail was not ready after %.0f s." % BUILDING
            )
        else:
            threads, shared = clib.machine()
            if threads > job.machine[0] + _MOST_PROCESSES:
                job.end("It started too many processes and was ended.")
            elif shared > job.machine[1] + 2 * self._limits.memory:
                job.end("It made too many files in memory and was ended.")

    def _start(self, number: int, attempt: int) -> Job:
        import posix

        raw: Any = sys.modules["_signal"]  # `signal` makes an enum of each number, which takes a millisecond
        scratch = _make_scratch()
        if scratch:
            self._scratches.append(scratch)
        plan = _plan(self._limits, self._without, scratch)
        ends = _pipes(3)
        parent = posix.getpid()
        allowed = raw.pthread_sigmask(signal.SIG_BLOCK, raw.valid_signals())
        try:
            forked = forking.fork(self._unseen)
            if forked.pid == 0:
                child = Child(plan, [write for _, write in ends], forked, allowed, self._unseen)
                child.live(parent, self._functions[number])
        except OSError:
            _close(read for read, _ in ends)
            raise
        finally:
            raw.pthread_sigmask(signal.SIG_SETMASK, allowed)
            _close(write for _, write in ends)
        for read, _ in ends:
            posix.set_blocking(read, False)
        unseen = self._unseen and attempt < _TRIES
        job = Job(number, attempt, forked.pid, unseen, plan, (ends[0][0], ends[1][0], ends[2][0]))
        job.goes_on = self._goes_on
        if unseen:
            job.clock = reading.Deadline(2.0)
        return job

    def _finish(self, job: Job) -> None:
        job.seconds = job.seconds or job.clock.elapsed()
        self._kill(job)
        for fd in job.open:
            while _has_more(fd) and self._hear(job, fd):
                pass
        _close(job.pipes)
        if job.no_overlay:
            _means["overlay"] = job.no_overlay
            self._waiting.insert(0, (job.number, 1))
            return
        if job.unseen and not job.ready:
            self._waiting.insert(0, (job.number, job.attempt + 1))
            return
        if not job.has_result and not job.failure:
            job.failure = ended(job.status)
        stdout, stderr = [kept.text() for kept in job.printed]
        self._found[job.number] = Outcome(
            job.result if job.has_result else None,
            job.failure,
            job.timed_out,
            stdout,
            stderr,
            job.seconds,
            job.effects,
            job.notes,
            job.plan.isolation,
            job.status,
        )

    @staticmethod
    def _kill(job: Job) -> None:
        """End the child and all that it has started, and have the kernel forget it."""
        import posix
        import select

        try:
            posix.killpg(job.pid, signal.SIGKILL)
        except OSError:
            pass  # it has no group of its own yet, or none any more
        if job.status is None:
            try:
                posix.kill(job.pid, signal.SIGKILL)
            except OSError:
                pass  # the program ignores the ends of its children: it is gone without a trace
            job.status = forking.wait(job.pid, True)
        gone = reading.Deadline(_DYING)
        while not gone.passed():
            try:
                posix.killpg(job.pid, 0)
            except OSError:
                return
            select.select([], [], [], 0.002)


def _pipes(count: int) -> List[Tuple[int, int]]:
    import posix

    ends: List[Tuple[int, int]] = []
    try:
        for _ in range(count):
            read, write = posix.pipe()
            ends.append((moved(read), moved(write)))
    except OSError:
        _close(fd for pair in ends for fd in pair)
        raise
    return ends


def _close(descriptors: Iterable[int]) -> None:
    import posix

    for fd in descriptors:
        posix.close(fd)


def _make_scratch() -> str:
    """A new folder of our own; empty if there is no place for one."""
    import os
    import posix

    # not by tempfile: it writes to find out where it may
    name = "dap-agent-jail-%d-%s" % (posix.getpid(), posix.urandom(6).hex())
    for folder in (os.environ.get("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm"):
        if not folder or not folder.startswith("/"):
            continue
        path = os.path.join(os.path.realpath(folder), name)
        try:
            posix.mkdir(path, 0o700)
        except OSError:
            continue
        return path
    return ""


def _remove(path: str) -> None:
    import posix
    import shutil

    try:
        posix.rmdir(path)
    except OSError:
        shutil.rmtree(path, ignore_errors=True)


def _has_more(fd: int) -> bool:
    import select

    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))
