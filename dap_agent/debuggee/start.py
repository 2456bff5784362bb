"""The first call into the debuggee: connects the debugger and installs hooks, net and child handling."""

import atexit
import os
from typing import Any, Dict

from . import bridge, children, hooks, net, output_tail


def start(settings: Dict[str, Any]) -> None:
    """Make this process a debuggee.

    Args:
        settings: `host` and `port` of the adapter, `debugpy` (the folder of the package), `folder` (private, for what the
            net catches), `bootstrap` and `config` (for children), `root` (pid of the first process, None in that one),
            `host_pid` (dap-agent itself).
    """
    root = settings["root"] or os.getpid()

    def connect() -> bool:
        if not _alive(settings["host_pid"]):
            return False
        parent = None if root == os.getpid() else root
        return bridge.connect(settings["host"], settings["port"], settings["debugpy"], parent)

    if settings["root"] is None:
        atexit.register(_sweep, settings["folder"], settings["host_pid"])
    net.spread(settings["folder"])
    if settings["root"] is None and not connect():
        net.failed("the debugger could not be attached", RuntimeError("nobody answered on the adapter's port"))
    hooks.install(connect)
    os.register_at_fork(after_in_child=hooks.after_fork)
    children.install(settings["bootstrap"], settings["config"], root)
    output_tail.install()


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _sweep(folder: str, host_pid: int) -> None:
    """The last exit function of the first process: if dap-agent was killed, nobody else takes its folder away."""
    if _alive(host_pid) or not os.path.isdir(folder):
        return
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    os.rmdir(folder)
