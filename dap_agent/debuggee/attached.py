"""A program that ran before we came (attach): hooks without a bootstrap, the stacks on demand, and leaving again."""

import os
import sys
import threading
from types import FrameType
from typing import Any, Callable, Dict, List, Optional

from . import api, bridge, children, hooks, net, output_tail, start, tracing
from .stop import Stop, debugger_folders

_settings: Optional[Dict[str, Any]] = None  # of the session that has been put into this process; None for `--connect`
_one_at_a_time = threading.Lock()
_forks_followed = False


def enter(settings: Dict[str, Any]) -> None:
    """Connect to dap-agent; runs in a thread of our own that was put into the process.

    Args:
        settings: as in `start.start`.

    Raises:
        RuntimeError: it is debugged already; the message says by whom.
    """
    global _settings
    occupant = bridge.occupant()
    if occupant is not None:
        raise RuntimeError(occupant)
    _settings = settings
    if not bridge.connect(
        settings["host"], settings["port"], settings["debugpy"], None, _alive(settings), running=True
    ):
        return  # dap-agent has gone meanwhile, and with it everybody to tell
    bridge.when_over(detach)


def _alive(settings: Dict[str, Any]) -> Callable[[], bool]:
    return lambda: start.locked(settings["alive"])


def attach(record: Optional[bool] = None) -> None:
    """Report exceptions from now on. The debugger is attached already; runs in its own thread.

    Args:
        record: whether calls are recorded; None: as far as it costs little.
    """
    with _one_at_a_time:
        bridge.adopt()
        settings = _settings
        connect = _connecting(settings) if settings is not None else _no_debugger
        if not hooks.installed():
            hooks.install(connect)
            hooks.watch_running_threads()
            output_tail.install()
        else:
            hooks.connect_by(connect)
        if settings is not None:
            net.spread(settings["folder"])
            _follow_forks()
            children.install(settings["bootstrap"], settings["config"], os.getpid())
        hooks.active(True)
    if record is not False:
        from . import recorder

        own = (settings["bootstrap"] + os.sep,) if settings is not None else ()
        recorder.start((*own, *debugger_folders()), True, bool(record))


def _no_debugger() -> bool:
    return False


def _connecting(settings: Dict[str, Any]) -> Callable[[], bool]:
    """How a forked child of this process gets a debugger when it fails."""
    root, alive = os.getpid(), _alive(settings)

    def connect() -> bool:
        if os.getpid() == root or bridge.was_connected() or not alive():
            return False  # a session that is over is not taken up again
        return bridge.connect(settings["host"], settings["port"], settings["debugpy"], root, alive)

    return connect


def _follow_forks() -> None:
    global _forks_followed
    if not _forks_followed and hasattr(os, "register_at_fork"):
        _forks_followed = True
        os.register_at_fork(after_in_child=hooks.after_fork)


def detach() -> None:
    """Report no more; what cannot be taken out of a process (an audit hook) stays and does nothing."""
    global _settings
    with _one_at_a_time:
        _settings = None
        hooks.active(False)
        children.forget()
        net.take_in()
        api.set_stop(None)
        tracing.untrace()
    recording: Any = sys.modules.get("%s.recorder" % __package__)
    if recording is not None:
        recording.stop_recording()


def pausable() -> None:
    """What a pause needs; to be called before it. A program that has debugpy listening is traced by that."""
    if _settings is not None:
        tracing.make_pausable()


def unpause() -> None:
    """Take a pause back: no thread has reached it, and none shall any more."""
    bridge.withdraw_pause()
    tracing.untrace()


def paused() -> Dict[str, Any]:
    """Make the main thread's present stack the current stop, and say which threads are there.

    It also works for threads that no debugger can pause, because they wait in C code.
    """
    frames = sys._current_frames()
    threads = [thread for thread in threading.enumerate() if not bridge.is_debugger_thread(thread)]
    main = threading.main_thread()
    for thread in [main, *(thread for thread in threads if thread is not main)]:
        stop = _at(thread, frames.get(thread.ident or 0))
        if stop is not None:
            stop.output = output_tail.lines()
            api.set_stop(stop)
            names: List[str] = [each.name for each in threads]
            return {"threads": names}
    raise RuntimeError("no thread of the program runs Python code")


def _at(thread: threading.Thread, frame: Optional[FrameType]) -> Optional[Stop]:
    if frame is None:
        return None
    stop = Stop.from_frame(frame, thread_name=thread.name, thread_id=thread.ident)
    return stop if stop.frames else None
