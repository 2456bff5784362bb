"""The forked process of a jail: builds the walls around itself, runs what it was made for, tells the result."""

from __future__ import annotations

import json
import signal
from typing import Any, Callable, List, NoReturn

from . import clib, confining, forking, leaving, overlay, reading
from .confining import Plan

_HIGH = 512  # descriptors from here on are rarely anybody's

here: List[Child] = []
"""In the forked process: it."""


class Child:
    """The forked process."""

    def __init__(self, plan: Plan, pipes: List[int], forked: forking.Forked, allowed: Any, unseen: bool) -> None:
        self._plan = plan
        self._pipes = pipes
        self._forked = forked
        self._allowed = allowed
        self._unseen = unseen
        self._built = False

    def live(self, parent: int, function: Callable[[], Any]) -> NoReturn:
        """Build the walls, run *function* and tell its result; never returns."""
        import posix

        try:
            self._live(parent, function)
        except BaseException as error:  # the frames above are the program's: nothing may reach them
            try:
                where = "What ran in the jail raised" if self._built else "The jail could not be built:"
                self._say("failed", "%s %s: %s." % (where, type(error).__name__, error))
            except BaseException:  # not even that: the parent sees the end
                posix._exit(70)
        finally:
            posix._exit(0)

    def _live(self, parent: int, function: Callable[[], Any]) -> None:
        import posix

        self._apart(parent)
        posix.dup2(self._pipes[1], 1)
        posix.dup2(self._pipes[2], 2)
        self._pipes[0] = moved(self._pipes[0])
        try:
            keep = (1, 2, self._pipes[0])
            walls = confining.confine(
                self._plan, keep, lambda what: self._say("effect", what), lambda what: self._say("note", what)
            )
        except overlay.Impossible as error:
            self._say("overlay", str(error))
            return
        signal.pthread_sigmask(signal.SIG_SETMASK, self._allowed)
        if self._unseen:
            clib.take_locks()
        self._built = True
        self._say("ready", True)
        leaving.run_hooks(self._forked.hooks)
        self._walls = walls
        here.append(self)
        self._clock = reading.Deadline(0)
        self.tell(function())

    def tell(self, result: Any) -> None:
        """Tell *result*; a function that does not return does so itself."""
        seconds = self._clock.elapsed()
        confining.last_memory()
        for path in self._walls.files.changed():
            self._walls.attempts.told("would write %s, which was open already (thrown away)" % path)
        self._walls.attempts.end()
        data = json.dumps(result)
        self._end_descendants()
        self._write(b'{"kind": "result", "seconds": %.6f, "value": %s}\n' % (seconds, data.encode()))

    @staticmethod
    def _apart(parent: int) -> None:
        """Out of the parent's session and process group; gone when the parent is gone."""
        import posix

        posix.setsid()
        if clib.LINUX:
            clib.prctl(1, int(signal.SIGKILL))  # PR_SET_PDEATHSIG
            clib.prctl(36, 1)  # PR_SET_CHILD_SUBREAPER
            if posix.getppid() != parent:
                posix._exit(0)

    def _say(self, kind: str, value: Any) -> None:
        self._write(json.dumps({"kind": kind, "value": value}).encode() + b"\n")

    def _write(self, data: bytes) -> None:
        import posix

        view = memoryview(data)
        while len(view):
            view = view[posix.write(self._pipes[0], view) :]

    @staticmethod
    def _end_descendants() -> None:
        """End and forget what was started: those whose parents are gone have become our own children."""
        import posix

        for _ in range(1000):
            try:
                found, _status = posix.waitpid(-1, posix.WNOHANG)
            except ChildProcessError:
                return
            if found:
                continue
            for pid in _children():
                try:
                    posix.kill(pid, signal.SIGKILL)
                except OSError:
                    continue
            try:
                posix.waitpid(-1, 0)
            except ChildProcessError:
                return


def _children() -> List[int]:
    import posix

    found: List[int] = []
    for task in posix.listdir("/proc/self/task") if clib.LINUX else []:
        try:
            fd = posix.open("/proc/self/task/%s/children" % task, posix.O_RDONLY | posix.O_CLOEXEC)
        except OSError:
            continue
        found += [int(word) for word in posix.read(fd, 2**16).split()]
        posix.close(fd)
    return found


def moved(fd: int) -> int:
    """The same, out of the way of a program that closes all it has."""
    import fcntl
    import posix
    import resource

    room = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    try:
        high = fcntl.fcntl(
            fd, fcntl.F_DUPFD_CLOEXEC, _HIGH if room == resource.RLIM_INFINITY else min(_HIGH, room // 2)
        )
    except OSError:
        return fd
    posix.close(fd)
    return int(high)
