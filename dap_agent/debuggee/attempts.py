"""What code in a jail does to the world around it: told, and refused where the kernel does not.

An audit hook (PEP 578) sees what Python's own functions are about to do. It sees nothing of what C code does by itself,
so as the only guard it holds against accidents, not against attacks.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

MOST = 30
"""Different attempts that are told of, at most."""

_WORDS: Dict[str, str] = {
    "os.remove": "remove", "os.rmdir": "remove", "os.mkdir": "make the folder", "os.truncate": "truncate",
    "os.chmod": "change the mode of", "os.chown": "change the owner of", "os.utime": "change the times of",
    "os.setxattr": "change attributes of", "os.removexattr": "change attributes of", "os.chflags": "change flags of",
    "os.lchflags": "change flags of",
}  # fmt: skip
_TWO = {"os.rename": "rename", "os.link": "link", "os.symlink": "link"}
_METADATA = ("os.chmod", "os.chown", "os.utime", "os.setxattr", "os.removexattr", "os.chflags", "os.lchflags")
_NETWORK = {
    "socket.connect": "connect to", "socket.bind": "listen on", "socket.sendto": "send to", "socket.sendmsg": "send to",
}  # fmt: skip
_LOOKUPS = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo")
_STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "pty.spawn")
_FORKS = ("os.fork", "os.forkpty")
_OTHERS = (
    "ctypes.dlopen", "ctypes.dlsym", "ctypes.dlsym/handle", "ctypes.call_function", "ctypes.cdata", "fcntl.flock",
    "fcntl.lockf", "syslog.syslog", "pty.spawn",
)  # fmt: skip

# functions that raise no event: with no kernel to refuse them, they are taken away
_UNSEEN: Tuple[Tuple[str, Tuple[str, ...]], ...] = (
    ("posix", ("mkfifo", "mknod", "setpriority", "sched_setaffinity", "sched_setscheduler", "sched_setparam", "lockf",
               "unshare", "setns", "chroot", "pidfd_open", "sync", "nice")),
    ("_posixsubprocess", ("fork_exec",)),
    ("_posixshmem", ("shm_open", "shm_unlink")),
    ("_multiprocessing", ("SemLock", "sem_unlink")),
    ("_signal", ("pidfd_send_signal",)),
    ("dbm", ("open",)), ("_gdbm", ("open",)), ("_dbm", ("open",)),
)  # fmt: skip


_installed: List[Attempts] = []
_REFUSALS = (errno.EACCES, errno.EPERM, errno.EROFS)


def refused(error: BaseException) -> None:
    """Tell of *error*, if it is a refusal that no audit event has announced: of C code, or by the kernel alone."""
    database = type(error).__name__ == "OperationalError" and type(error).__module__ == "sqlite3"
    for watch in _installed:
        if isinstance(error, OSError) and error.errno in _REFUSALS:
            # not each function of the C library's says which file it was about
            name = _shown(error.filename) if isinstance(error.filename, (str, bytes)) else "something"
            if not watch.has_told_of(name):
                watch.told("was refused %s: %s" % (name, error.strerror))
        elif database and any(word in str(error) for word in ("readonly", "unable to open", "disk I/O")):
            watch.told("tried to write to a database of sqlite3 (%s)" % str(error)[:100])


class Attempts:
    """The audit hook of a jail.

    Args:
        tell: is called with a sentence for each new attempt.
        scratch: the folder that may be written to; empty without.
        layers: folders whose changes are thrown away.
        refuse: whether nothing else refuses: then each attempt fails.
    """

    def __init__(self, tell: Callable[[str], None], scratch: str, layers: Sequence[str], refuse: bool) -> None:
        self._tell = tell
        self._scratch = scratch
        self._layers = tuple(layers)
        self._refuse = refuse
        self._told: Set[str] = set()
        self._pid = os.getpid()
        self._over = False

    def install(self) -> None:
        """From now on, for good."""
        if self._refuse:
            for name, functions in _UNSEEN:
                self._take_away(name, functions)
        _installed.append(self)
        sys.addaudithook(self._hook)

    def end(self) -> None:
        """What comes now is ours."""
        self._over = True

    def has_told_of(self, name: str) -> bool:
        """Whether something that was told has this in it."""
        return any(name in what for what in self._told) or (name == "something" and bool(self._told))

    def told(self, what: str) -> None:
        """Tell of *what*, once, if it is not one too many."""
        if what not in self._told and len(self._told) <= MOST:
            self._told.add(what)
            self._tell(what if len(self._told) <= MOST else "and more, which is left out")

    def _take_away(self, name: str, functions: Tuple[str, ...]) -> None:
        try:
            modules = [__import__(name)]
        except ImportError:
            return
        if name == "posix":
            modules.append(os)
        for function in functions:
            for module in modules:
                if hasattr(module, function):
                    setattr(module, function, _Refused("%s.%s" % (name, function), self.told))

    def _hook(self, event: str, args: Any) -> None:
        if self._over:
            return
        if event == "open":
            self._opens(args)
        elif event.startswith("os."):
            self._os(event, args)
        elif event.startswith("socket."):
            self._network(event, args)
        elif event == "subprocess.Popen":
            self._starts(args[1])
        elif event == "sqlite3.connect" and self._refuse:
            # its own C code opens and writes what belongs to the database
            if not (type(args[0]) is str and args[0] == ":memory:"):
                self._attempt("open the database %s" % _shown(args[0]), True)
        elif event in _OTHERS and self._refuse:
            self._attempt("use %s" % event, True)

    def _opens(self, args: Any) -> None:
        path, flags = args[0], args[2]
        if type(flags) is not int or isinstance(path, int):
            return
        if not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND):
            self._reads(path)
            return
        real = self._real(path)
        if self._refuse and not os.path.isabs(os.fsdecode(path)):
            real = ""  # what it is relative to is not told
        if real == os.devnull or (self._scratch and real.startswith(self._scratch + "/")):
            return
        self._writes("write %s" % _shown(path), real)

    def _reads(self, path: Any) -> None:
        """What is read of a pipe or a terminal is taken from others."""
        try:
            mode = os.stat(path).st_mode
        except (OSError, ValueError, TypeError):
            return
        if stat.S_ISFIFO(mode) or (stat.S_ISCHR(mode) and not self._real(path).startswith(("/dev/null", "/dev/ur"))):
            device = self._real(path)
            if device not in ("/dev/zero", "/dev/random", "/dev/full"):
                self._attempt("read from %s" % _shown(path), True)

    def _os(self, event: str, args: Any) -> None:
        if event in _WORDS:
            if isinstance(args[0], int):  # a descriptor: of a copy, but for what is open for reading
                if event in _METADATA and self._refuse:
                    self._attempt("%s an open file" % _WORDS[event], True)
                return
            real = self._real(args[0], _folder(event, args))
            self._writes("%s %s" % (_WORDS[event], _shown(args[0])), real, event in _METADATA)
        elif event in _TWO:
            what = "%s %s as %s" % (_TWO[event], _shown(args[0]), _shown(args[1]))
            self._writes(what, self._real(args[1], _folder(event, args)))
        elif event in ("os.kill", "os.killpg"):
            if args[0] != self._pid or event != "os.kill":
                self._attempt("send signal %s to process %s" % (args[1], args[0]), self._refuse)
        elif event in _STARTS:
            self._starts(args[0] if event == "os.system" else args[1] if len(args) > 1 else args[0])
        elif event in _FORKS and self._refuse:
            self._attempt("fork", True)

    def _starts(self, command: Any) -> None:
        if isinstance(command, (list, tuple)):
            command = " ".join(_shown(each) for each in command[:20])
        what = "run the program %s" % _shown(command)
        if self._refuse:
            self._attempt(what, True)
        else:
            self.told("ran the program %s, confined like itself" % _shown(command))

    def _network(self, event: str, args: Any) -> None:
        if event in _NETWORK:
            self._attempt("%s %s" % (_NETWORK[event], _address(args[1])), self._refuse)
        elif event in _LOOKUPS and args:
            self._attempt("look up %s" % _address(args[0]), self._refuse)

    def _writes(self, what: str, real: str, metadata: bool = False) -> None:
        if self._scratch and real.startswith(self._scratch + "/"):
            return
        if metadata and not self._refuse:
            self.told("tried to %s (left as it was)" % what)
        elif any(real.startswith(folder + "/") for folder in self._layers):
            self.told("would %s (thrown away)" % what)
        else:
            self._attempt(what, self._refuse)

    def _attempt(self, what: str, refuse: bool) -> None:
        self.told("tried to %s" % what)
        if refuse:
            raise PermissionError(errno.EACCES, "not allowed in a jail: %s" % what)

    def _real(self, path: Any, folder: int = -1) -> str:
        try:
            text = os.fsdecode(path)
            if folder >= 0 and not os.path.isabs(text):
                text = os.path.join("/proc/self/fd/%d" % folder, text)
            return os.path.realpath(text)
        except (OSError, ValueError, TypeError):
            return ""


class _Refused:
    """In the place of a function that a jail has no use for."""

    def __init__(self, name: str, told: Callable[[str], None]) -> None:
        self._name = name
        self._told = told

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._told("tried to use %s" % self._name)
        raise PermissionError(errno.EACCES, "not allowed in a jail: %s" % self._name)


# which argument of an event is the descriptor of the folder that the (last) path is relative to
_FOLDERS = {"os.remove": 1, "os.rmdir": 1, "os.mkdir": 2, "os.symlink": 2, "os.chmod": 2, "os.chown": 3, "os.utime": 3,
            "os.rename": 3, "os.link": 3}  # fmt: skip


def _folder(event: str, args: Any) -> int:
    place = _FOLDERS.get(event, 99)
    return args[place] if place < len(args) and type(args[place]) is int else -1


def _shown(value: Any) -> str:
    if isinstance(value, (bytes, bytearray)):
        value = bytes(value).decode("utf-8", "replace")
    elif not isinstance(value, (str, int)):
        fspath: Optional[Any] = getattr(type(value), "__fspath__", None)
        value = os.fsdecode(value) if fspath is not None else type(value).__name__
    return str(value)[:200]


def _address(value: Any) -> str:
    if isinstance(value, tuple) and len(value) >= 2:
        parts: List[str] = [_shown(each) for each in value[:2]]
        return ":".join(parts)
    return _shown(value)
