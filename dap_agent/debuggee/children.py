"""Processes that the debuggee starts: they carry the bootstrap along, and get a debugger only when they crash.

pydevd rewrites the command line of each child and attaches to it at once; here the environment of the one call gets the
bootstrap (so shell scripts in between do not matter) and the user's `os.environ` stays as it is. A child costs a few
milliseconds until it fails, and never waits for a client that may not come (debugpy#81, #655, #1096).
"""

import contextlib
import functools
import os
import sys
import threading
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence

from . import bridge, net
from .after_import import when_imported

_extra: Dict[str, str] = {}
_wrapped = False
_spawning = threading.local()
_ENV_POSITION = 5  # of fork_exec's env_list: the same from 3.8 to 3.13


def install(bootstrap: str, config: str, root_pid: int) -> None:
    """Give every process started from now on the bootstrap.

    Args:
        bootstrap: the folder that holds our sitecustomize.py.
        config: path of the configuration file of this run.
        root_pid: the process that dap-agent itself has started.
    """
    global _wrapped
    _extra.update(PYTHONPATH=bootstrap, DAP_AGENT_BOOTSTRAP=config, DAP_AGENT_ROOT=str(root_pid))
    if _wrapped or os.name != "posix":
        return
    _wrapped = True
    os.register_at_fork(after_in_child=_after_fork)
    when_imported("_posixsubprocess", _wrap_fork_exec)
    if "subprocess" in sys.modules and hasattr(sys.modules["subprocess"], "_fork_exec"):
        sys.modules["subprocess"]._fork_exec = sys.modules["_posixsubprocess"].fork_exec  # type: ignore[attr-defined]
    _wrap_exec()
    if sys.version_info >= (3, 12):
        os.fork = _quietly(os.fork)
        os.forkpty = _quietly(os.forkpty)


def forget() -> None:
    """Children started from now on are none of ours."""
    _extra.clear()


def _quietly(fork: Callable[[], Any]) -> Callable[[], Any]:
    """From 3.12 on a fork beside other threads warns; the debugger's own threads are no reason to."""

    def fork_quietly() -> Any:
        import warnings

        if threading.active_count() > 1:  # pydevd hides its threads from the count
            text = "This process (pid=%d) is multi-threaded, use of %s() may lead to deadlocks in the child."
            warnings.warn(text % (os.getpid(), fork.__name__), DeprecationWarning, stacklevel=2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return fork()

    return fork_quietly


def _with_bootstrap(env: Optional[Mapping[Any, Any]]) -> Dict[str, str]:
    merged = {os.fsdecode(key): os.fsdecode(value) for key, value in (os.environ if env is None else env).items()}
    given = merged.get("PYTHONPATH")
    merged.update(_extra)
    if given is not None and _extra:
        merged["PYTHONPATH"] = _extra["PYTHONPATH"] + os.pathsep + given
    return merged


_LAUNCHERS = frozenset(
    "bash busybox chrt conda dash doas entr fish flock gdb gunicorn hatch honcho hyperfine ionice just ksh lldb "  # noqa: SIM905
    "ltrace make gmake mamba micromamba mpiexec mpirun ninja nice nohup nox numactl parallel pdm perf pipenv pixi "
    "poetry rr rye script setarch setsid sh srun stdbuf strace su sudo supervisord taskset tcsh time timeout tini "
    "tox uv uvx uwsgi valgrind watchexec xargs xvfb-run zsh".split()
)


def _may_be_python(paths: Iterable[Any], argv: Sequence[Any]) -> bool:
    """Whether a program is a Python or may start one; others (`printenv`) need not see us in their environment.

    Args:
        paths: where it may be; the first that exists is meant.
        argv: its command line.
    """
    for path in paths:
        try:
            with open(path, "rb") as file:
                script = file.read(2) == b"#!"
        except OSError:
            continue
        names = [os.path.basename(os.fsdecode(each)) for each in (path, os.path.realpath(path))]
        if any(name == "env" for name in names):  # alone it prints the environment
            return any(b"=" not in word and not word.startswith(b"-") for word in map(os.fsencode, argv[1:]))
        return script or any(name in _LAUNCHERS or name.startswith(("python", "pypy")) for name in names)
    return False


def _found(command: Any, env: Any) -> List[str]:
    if os.path.dirname(command):
        return [os.fsdecode(command)]
    return [os.path.join(folder, os.fsdecode(command)) for folder in os.get_exec_path(env)]


def _wrap_fork_exec(module: Any) -> None:
    stock = module.fork_exec

    def fork_exec(*args: Any) -> Any:
        arguments = list(args)
        tracker = any(b"multiprocessing.resource_tracker" in os.fsencode(part) for part in arguments[0])
        if _extra and not tracker and _may_be_python(arguments[1], arguments[0]):
            arguments[_ENV_POSITION] = _env_list(arguments[_ENV_POSITION])
        _spawning.now = True
        try:
            return stock(*arguments)
        finally:
            _spawning.now = False

    module.fork_exec = fork_exec


def _env_list(given: Optional[List[bytes]]) -> List[bytes]:
    env = None
    if given is not None:
        env = dict(entry.partition(b"=")[::2] for entry in given)
    return [os.fsencode(key) + b"=" + os.fsencode(value) for key, value in _with_bootstrap(env).items()]


def _wrap_exec() -> None:
    stock_execv, stock_execve, stock_system = os.execv, os.execve, os.system

    @functools.wraps(stock_execv)
    def execv(*args: Any) -> None:
        if len(args) == 2 and _carries([args[0]], args[1]):
            with _our_environment():
                _leave(stock_execv, *args)
        _leave(stock_execv, *args)

    @functools.wraps(stock_execve)
    def execve(*args: Any, **kwargs: Any) -> None:
        env = args[2] if len(args) == 3 else kwargs.get("env")
        # a descriptor as the path is for fexecve
        if isinstance(env, Mapping) and isinstance(args[0], (str, bytes, os.PathLike)) and _carries([args[0]], args[1]):
            args, kwargs = (*args[:2], _with_bootstrap(env)), {}
        _leave(stock_execve, *args, **kwargs)

    @functools.wraps(stock_system)
    def system(*args: Any, **kwargs: Any) -> int:
        with _our_environment():
            return stock_system(*args, **kwargs)

    os.execv, os.execve, os.system = execv, execve, system  # type: ignore[assignment]
    os.posix_spawn = _spawning_with_bootstrap(os.posix_spawn, search=False)
    if hasattr(os, "posix_spawnp"):
        os.posix_spawnp = _spawning_with_bootstrap(os.posix_spawnp, search=True)


def _leave(execute: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    bridge.about_to_be_replaced()
    execute(*args, **kwargs)


def _carries(paths: Any, argv: Any) -> bool:
    return bool(_extra) and isinstance(argv, (list, tuple)) and _may_be_python(paths, argv)


@contextlib.contextmanager
def _our_environment() -> Iterator[None]:
    """For calls that pass on the process's own environment: it is ours for their time only."""
    if not _extra:
        yield
        return
    before = dict(os.environ)
    os.environ.update(_with_bootstrap(None))
    try:
        yield
    finally:
        for name in _extra:
            if name in before:
                os.environ[name] = before[name]
            else:
                os.environ.pop(name, None)


def _spawning_with_bootstrap(spawn: Callable[..., int], search: bool) -> Callable[..., int]:
    @functools.wraps(spawn)
    def posix_spawn(*args: Any, **kwargs: Any) -> int:
        if len(args) == 3 and (args[2] is None or isinstance(args[2], Mapping)):  # None from 3.13 on: os.environ
            paths = _found(args[0], args[2]) if search else [args[0]]
            if _carries(paths, args[1]):
                args = (*args[:2], _with_bootstrap(args[2]))
        return spawn(*args, **kwargs)

    return posix_spawn


def _after_fork() -> None:
    """A fork's child is a process of its own: its stacks go to its own file, its debugger comes when it crashes."""
    if getattr(_spawning, "now", False):
        return  # between fork and exec (preexec_fn)
    net.open_dump()
    bridge.stop_tracing()
