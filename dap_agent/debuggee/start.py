"""The first call into the debuggee: connects the debugger and installs hooks, net and child handling."""

import atexit
import contextlib
import os
import sys
from typing import Any, Callable, Dict

from . import at_raise, bridge, children, descriptors, hooks, net, originals, output_tail
from .judging import Ignored


def start(settings: Dict[str, Any]) -> None:
    """Make this process a debuggee.

    Args:
        settings: `host` and `port` of the adapter, `debugpy` (the folder of the package), `folder` (for what the
            net catches), `bootstrap` and `config` (for children), `root` (pid of the first process, None in that one),
            `alive` (a file that dap-agent holds locked as long as it lives), `imported` (modules there were before),
            `at_raise` (`auto`, `always`, `never`), `ignore` (`types` and `modules` whose exceptions are no stop),
            `record` (whether calls are recorded; None: as far as it costs little).
    """
    root = settings["root"] or os.getpid()

    def alive() -> bool:
        return locked(settings["alive"])

    def connect() -> bool:
        if not alive() or bridge.was_connected():  # a session that is over is not taken up again
            return False
        parent = None if root == os.getpid() else root
        return bridge.connect(settings["host"], settings["port"], settings["debugpy"], parent, alive)

    descriptors.install()
    atexit.register(_sweep, settings["folder"], alive)
    net.spread(settings["folder"])
    if root == os.getpid():  # also after an exec: the adapter waits for this process to come back
        try:
            attached = connect()
        except Exception as error:  # whatever keeps us from attaching, the program has to run
            net.failed("the debugger could not be attached", error)
        else:
            if not attached:
                net.failed("the debugger could not be attached", RuntimeError("nobody answered on the adapter's port"))
    ignored = Ignored(settings["ignore"]["types"], settings["ignore"]["modules"])
    hooks.install(connect)
    hooks.ignore(ignored)
    os.register_at_fork(after_in_child=hooks.after_fork)
    children.install(settings["bootstrap"], settings["config"], root)
    output_tail.install()
    originals.remember()
    if settings["record"] is not False:
        from . import recorder
    originals.when_started(set(sys.modules) - settings["imported"])
    at_raise.install(settings["at_raise"], ignored)
    if settings["record"] is not False:
        recorder.start((settings["bootstrap"] + os.sep,), in_full=bool(settings["record"]))


def locked(path: str) -> bool:
    """Whether dap-agent lives: the kernel drops its lock when it dies; its pid may be a zombie's, or reused."""
    import fcntl

    try:
        with open(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # it has ended and taken its folder along
    return False


def _sweep(folder: str, alive: Callable[[], bool]) -> None:
    """The last exit function: if dap-agent was killed, nobody else takes its folder away."""
    if alive():
        return
    with contextlib.suppress(OSError):  # it is gone already, or another process of the program is at it
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)
