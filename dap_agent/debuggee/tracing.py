"""The debugger's events in the threads of a program that ran before us: none until they are needed, none afterwards.

pydevd sets its trace function in every thread when it connects, and leaves it there when it goes (fib: 18x on 3.11).
"""

import contextlib
import sys
import threading
from types import FrameType
from typing import Any, Iterator, List, Optional

_traced = False  # whether `make_pausable` has set a trace function in the program's threads


@contextlib.contextmanager
def suppressed() -> Iterator[None]:
    """For the time of connecting: no trace function in the threads that run, and nothing that sets one in new ones."""
    if sys.version_info >= (3, 12):
        yield
        return
    import pydevd

    names = ("enable_tracing", "patch_threads", "set_tracing_for_untraced_contexts", "set_trace_for_frame_and_parents")
    stock = {name: getattr(pydevd.PyDB, name) for name in names}
    for name in names:
        setattr(pydevd.PyDB, name, lambda *args, **kwargs: None)
    try:
        yield
    finally:
        for name in names:
            setattr(pydevd.PyDB, name, stock[name])


def make_pausable() -> None:
    """Let a pause reach the threads that run: only traced ones see it, and none is traced so far."""
    global _traced
    import pydevd

    debugger = pydevd.get_global_debugger()
    if debugger is None:
        return
    _traced = True
    if sys.version_info >= (3, 12):
        from _pydevd_sys_monitoring import pydevd_sys_monitoring

        pydevd_sys_monitoring.start_monitoring(all_threads=True)
        return
    import pydevd_tracing

    pydevd_tracing.set_trace_to_threads(debugger.trace_dispatch, _program_threads(), create_dummy_thread=False)


def _program_threads() -> List[int]:
    hidden = ("is_pydev_daemon_thread", "pydev_do_not_trace")
    threads = [thread for thread in threading.enumerate() if not any(getattr(thread, mark, False) for mark in hidden)]
    return [thread.ident for thread in threads if thread.ident is not None]


def untrace() -> None:
    """Undo `make_pausable`; below 3.12 in each thread with the next function that it calls or line that it runs."""
    global _traced
    if not _traced:
        return
    _traced = False
    if sys.version_info >= (3, 12):
        from _pydevd_sys_monitoring import pydevd_sys_monitoring

        pydevd_sys_monitoring.stop_monitoring(all_threads=True)
        return
    import pydevd_tracing

    for innermost in sys._current_frames().values():
        frame: Optional[FrameType] = innermost
        while frame is not None:
            if frame.f_trace is not None:
                frame.f_trace = _untrace
            frame = frame.f_back
    pydevd_tracing.set_trace_to_threads(_untrace, _program_threads(), create_dummy_thread=False)


def _untrace(frame: FrameType, event: str, arg: Any) -> None:
    """A trace function that ends the tracing of its thread: nobody else can do it from outside."""
    import pydevd_tracing

    settrace = pydevd_tracing.TracingFunctionHolder._original_tracing or sys.settrace
    settrace(None)
    current: Optional[FrameType] = frame
    while current is not None:
        current.f_trace = None
        current = current.f_back
