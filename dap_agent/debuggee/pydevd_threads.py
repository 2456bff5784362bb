"""Threads that pydevd has suspended: their frames, their exception, and the numbers that a DAP client knows them by.

Private parts of debugpy 1.8.21 and 1.8.22: `suspended_frames_manager` of its `PyDB` (pydevd_suspended_frames.py), the
`FramesList` of a stop (pydevd_frame_utils.py), the translation of ids (pydevd_base_schema.py), the handles of
pydevd_timeout.py.
"""

from __future__ import annotations

import sys
import threading
import types
from typing import Any

from .paths import NotThere

_RUNS = "The thread is not stopped any more: the program was resumed."


class Suspended:
    """One thread that stands in the debugger.

    Args:
        key: pydevd's name of the thread.
        thread: the `threading.Thread`.
        frames: pydevd's `FramesList`, which lives as long as the stop.
    """

    def __init__(self, key: str, thread: threading.Thread, frames: Any) -> None:
        self.key = key
        self.thread = thread
        self.frames = frames

    @property
    def ident(self) -> int:
        """The thread's identifier (`threading.get_ident`)."""
        return self.thread.ident or 0

    @property
    def shown(self) -> list[Any]:
        """The frames as pydevd shows them, innermost first."""
        return list(self.frames)

    @property
    def exception(self) -> tuple[BaseException, types.TracebackType] | None:
        """What it has stopped at, and its traceback; None at any other stop."""
        exc, trace = self.frames.exc_desc, self.frames.trace_obj
        if not issubclass(type(exc), BaseException) or type(trace) is not types.TracebackType:
            return None
        return exc, trace

    @property
    def live_frame(self) -> types.FrameType | None:
        """The innermost frame that still runs: one of the debugger's, in which the thread waits."""
        return sys._current_frames().get(self.ident)

    @property
    def number(self) -> int:
        """The DAP id of the frame that the thread is evaluated in."""
        return _number_of(id(self.shown[0]))


def suspended(number: int) -> Suspended:
    """The thread that a DAP client knows as *number*.

    Raises:
        NotThere: it is not suspended.
    """
    key = _object_of(number)
    frames = _manager().get_frames_list(key) if type(key) is str else None
    if type(key) is not str or frames is None:
        raise NotThere(_RUNS)
    from _pydevd_bundle.pydevd_thread_lifecycle import pydevd_find_thread_by_id

    thread = pydevd_find_thread_by_id(key)
    if thread is None:
        raise NotThere("The thread that has stopped is none of Python's (a greenlet?); it cannot be looked into.")
    return Suspended(key, thread, frames)


def frame_of(number: int) -> tuple[Any, str | None]:
    """The frame that a DAP client knows as *number*, and pydevd's name of its thread; (None, None) if there is none."""
    key = _object_of(number)
    manager = _manager()
    thread = manager.get_thread_id_for_variable_reference(key) if key is not None else None
    if thread is None:
        return None, None
    frame = manager.find_frame(thread, key)
    # frames of a cause have a wrapper each, as one frame may be in several tracebacks
    return getattr(frame, "_base_frame", frame), thread


def hush() -> None:
    """Take back pydevd's warning, printed after 3 s, that the evaluation which runs in this thread takes long."""
    tracker = _debugger().timeout_tracker
    thread = getattr(tracker, "_thread", None)
    if thread is None:
        return
    with tracker._lock:
        for handle in list(thread._handles):
            names = getattr(getattr(handle.on_timeout, "__code__", None), "co_freevars", ())
            cells = dict(zip(names, getattr(handle.on_timeout, "__closure__", None) or ()))
            if "curr_thread" in cells and cells["curr_thread"].cell_contents is threading.current_thread():
                handle.disposed, handle.on_timeout, handle.kwargs = True, None, None


def _debugger() -> Any:
    pydevd = sys.modules.get("pydevd")
    debugger = pydevd.get_global_debugger() if pydevd is not None else None
    if debugger is None:
        raise NotThere("There is no debugger in this process any more.")
    return debugger


def _manager() -> Any:
    return _debugger().suspended_frames_manager


def _schema() -> Any:
    return sys.modules["_pydevd_bundle._debug_adapter.pydevd_base_schema"].BaseSchema


def _object_of(number: int) -> Any:
    return _schema()._dap_id_to_obj_id.get(number)


def _number_of(key: int) -> int:
    number: int = _schema()._translate_id_to_dap(key)
    return number
