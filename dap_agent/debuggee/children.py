"""Processes that the debuggee starts: they carry the bootstrap along, and get a debugger only when they crash.

pydevd rewrites the command line of each child and attaches to it at once; here the environment of the one call gets the
bootstrap (so shell scripts in between do not matter) and the user's `os.environ` stays as it is. A child costs a few
milliseconds until it fails, and never waits for a client that may not come (debugpy#81, #655, #1096).
"""

import os
import sys
import threading
from typing import Any, Callable, Dict, List, Optional

from . import bridge, net
from .after_import import when_imported

_extra: Dict[str, str] = {}
_spawning = threading.local()
_ENV_POSITION = 5  # of fork_exec's env_list: the same from 3.8 to 3.13


def install(bootstrap: str, config: str, root_pid: int) -> None:
    """Give every process started from now on the bootstrap.

    Args:
        bootstrap: the folder that holds our sitecustomize.py.
        config: path of the configuration file of this run.
        root_pid: the process that dap-agent itself has started.
    """
    _extra.update(PYTHONPATH=bootstrap, DAP_AGENT_BOOTSTRAP=config, DAP_AGENT_ROOT=str(root_pid))
    if os.name != "posix":
        return
    os.register_at_fork(after_in_child=_after_fork)
    when_imported("_posixsubprocess", _wrap_fork_exec)
    if "subprocess" in sys.modules and hasattr(sys.modules["subprocess"], "_fork_exec"):
        sys.modules["subprocess"]._fork_exec = sys.modules["_posixsubprocess"].fork_exec  # type: ignore[attr-defined]
    _wrap_exec()
    if sys.version_info >= (3, 12):
        os.fork = _quietly(os.fork)
        os.forkpty = _quietly(os.forkpty)


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


def _with_bootstrap(env: Optional[Dict[Any, Any]]) -> Dict[str, str]:
    merged = {os.fsdecode(key): os.fsdecode(value) for key, value in (os.environ if env is None else env).items()}
    given = merged.get("PYTHONPATH")
    merged.update(_extra)
    if given:
        merged["PYTHONPATH"] = _extra["PYTHONPATH"] + os.pathsep + given
    return merged


def _wrap_fork_exec(module: Any) -> None:
    stock = module.fork_exec

    def fork_exec(*args: Any) -> Any:
        arguments = list(args)
        if not any(b"multiprocessing.resource_tracker" in os.fsencode(part) for part in arguments[0]):
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
    execve, spawn, spawnp, system = os.execve, os.posix_spawn, getattr(os, "posix_spawnp", None), os.system

    def execve_with_bootstrap(path: Any, argv: Any, env: Any) -> None:
        execve(path, argv, _with_bootstrap(env))

    def execv(path: Any, argv: Any) -> None:
        execve(path, argv, _with_bootstrap(None))

    def system_with_bootstrap(command: Any) -> int:
        # system() takes the process's environment: it is ours for the time of this call only
        before = {name: os.environ.get(name) for name in _extra}
        os.environ.update(_with_bootstrap(None))
        try:
            return system(command)
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value

    os.execve = execve_with_bootstrap  # type: ignore[assignment]
    os.execv = execv  # type: ignore[assignment]
    os.system = system_with_bootstrap
    os.posix_spawn = _spawning_with_bootstrap(spawn)  # type: ignore[assignment]
    if spawnp is not None:
        os.posix_spawnp = _spawning_with_bootstrap(spawnp)  # type: ignore[assignment]


def _spawning_with_bootstrap(spawn: Callable[..., int]) -> Callable[..., int]:
    def posix_spawn(path: Any, argv: Any, env: Any, **kwargs: Any) -> int:
        return spawn(path, argv, _with_bootstrap(env), **kwargs)

    return posix_spawn


def _after_fork() -> None:
    """A fork's child is a process of its own: its stacks go to a file of its own, its debugger comes when it crashes."""
    if getattr(_spawning, "now", False):
        return  # between fork and exec (preexec_fn)
    net.open_dump()
    bridge.stop_tracing()
