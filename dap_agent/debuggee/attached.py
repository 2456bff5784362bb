"""A program that was running before we came (attach): hooks without a bootstrap, the stacks on demand, and leaving again."""

import sys
import threading
from typing import Any, Dict, List

from . import api, bridge, hooks, output_tail
from .stop import Stop


def attach() -> None:
    """Report exceptions from now on. The debugger is attached already; runs in its own thread."""
    bridge.adopt()
    if not hooks.installed():
        hooks.install(lambda: False)
        hooks.watch_running_threads()
        output_tail.install()
    hooks.active(True)


def detach() -> None:
    """Report no more; what cannot be taken out of a process (an audit hook) stays and does nothing."""
    hooks.active(False)
    api.set_stop(None)


def paused() -> Dict[str, Any]:
    """Make the main thread's present stack the current stop, and say which threads are there.

    It also works for threads that no debugger can pause, because they wait in C code.
    """
    frames = sys._current_frames()
    main = threading.main_thread()
    frame = bridge.users_part(frames[main.ident]) if main.ident in frames else None
    if frame is None:
        others = [thread for thread in threading.enumerate() if not bridge.is_debugger_thread(thread)]
        main = next((thread for thread in others if thread.ident in frames), main)
        frame = bridge.users_part(frames[main.ident]) if main.ident in frames else None
    if frame is None:
        raise RuntimeError("no thread of the program runs Python code")
    stop = Stop.from_frame(frame, thread_name=main.name)
    stop.output = output_tail.lines()
    api.set_stop(stop)
    names: List[str] = [thread.name for thread in threading.enumerate() if not bridge.is_debugger_thread(thread)]
    return {"threads": names}
