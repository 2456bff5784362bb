"""A forked child leaves its parent's debugger, event loop and reporting: nothing in it shall stop, trace or report."""

from __future__ import annotations

import sys
from typing import Any, Callable, List

_OURS = ("_dap_agent_debuggee", "pydevd", "_pydevd", "_pydev_", "debugpy")


def leave() -> None:
    """Stop all tracing in this process and take the debugger's and our functions out of the standard library's."""
    watching: Any = sys.modules.get((__package__ or "") + ".tracefunc")
    if watching is not None:
        watching.end()
    sys.settrace(None)
    sys.setprofile(None)
    threading: Any = sys.modules.get("threading")
    if threading is not None:
        threading._trace_hook = threading._profile_hook = None
        stock = getattr(threading, "__excepthook__", None)  # from 3.10 on
        if stock is not None:
            threading.excepthook = stock
    _stop_monitoring()
    _forget_debugger()
    _stop_reporting()
    loops: Any = sys.modules.get("_asyncio")
    if loops is not None:
        loops._set_running_loop(None)


def _stop_monitoring() -> None:
    monitoring: Any = getattr(sys, "monitoring", None)  # from 3.12 on
    if monitoring is None:
        return
    events = [value for name, value in vars(monitoring.events).items() if name.isupper() and value]
    for tool in range(6):
        if monitoring.get_tool(tool) is None:
            continue
        monitoring.set_events(tool, 0)
        for event in events:  # those that are set for single code objects call nobody then
            monitoring.register_callback(tool, event, None)


def _forget_debugger() -> None:
    constants: Any = sys.modules.get("_pydevd_bundle.pydevd_constants")
    if constants is not None:
        constants.GlobalDebuggerHolder.global_dbg = None
    evaluation: Any = sys.modules.get("_pydevd_frame_eval.pydevd_frame_eval_main")
    stop = getattr(evaluation, "stop_frame_eval", None)
    if stop is not None:
        stop()
    # pydevd keeps what it replaces (os.fork, _posixsubprocess.fork_exec) as `original_NAME` beside it
    for module in [sys.modules.get(name) for name in ("os", "_posixsubprocess", "subprocess")]:
        for name, value in list(vars(module).items()) if module is not None else []:
            if name.startswith("original_"):
                setattr(module, name[len("original_") :], value)


def _stop_reporting() -> None:
    package = __package__ or ""
    hooks: Any = sys.modules.get(package + ".hooks")
    if hooks is not None:
        hooks.active(False)
    children: Any = sys.modules.get(package + ".children")
    if children is not None:
        children.forget()


def run_hooks(functions: List[Callable[[], Any]]) -> None:
    """Run what libraries have registered for a fork's child (`os.register_at_fork`), now that it can do no harm.

    The state of the module `random` is as it was: the standard library renews it in each child.
    """
    logging: Any = sys.modules.get("logging")
    if logging is not None and sys.version_info < (3, 9):
        import threading

        logging._lock = threading.RLock()  # its own function waits for it
    random: Any = sys.modules.get("random")
    state = random.getstate() if random is not None else None
    for function in functions:
        if _is_ours(function):
            continue
        try:
            function()
        except BaseException:  # a lock is not held, a connection can't be made: the function for the parent did not run
            continue
    if state is not None:
        random.setstate(state)


def _is_ours(function: Any) -> bool:
    module = getattr(function, "__module__", None) or getattr(getattr(function, "__self__", None), "__module__", None)
    return type(module) is str and module.startswith(_OURS)
