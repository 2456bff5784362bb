"""Everything of debugpy and pydevd that is not public, in one file, each oddity with its source.

Written against debugpy 1.8.21 and 1.8.22; other modules of the debuggee side do not know pydevd.
"""

import contextlib
import itertools
import os
import socket
import sys
import threading
from types import FrameType, TracebackType
from typing import Any, Dict, Iterator, Optional, Tuple, Type

ATTACH_TIMEOUT = 20.0
"""Seconds to wait for dap-agent to take up a process that has connected; after that the program goes on without us."""

_connected_pid = None  # the process whose debugger is connected: a fork's child is not


def connected() -> bool:
    """Whether this very process (not the one it was forked from) has a debugger attached."""
    if _connected_pid != os.getpid():
        return False
    debugger = _debugger()
    return debugger is not None and debugger.is_attached() and not debugger.pydb_disposed


def connect(host: str, port: int, debugpy_path: str, parent_pid: Optional[int]) -> bool:
    """Connect this process to the adapter that listens on *host*:*port* and wait until it is attached to.

    Args:
        debugpy_path: the folder that holds the package `debugpy` to use.
        parent_pid: the debuggee whose session the adapter shall announce this process to; None for the first process.

    Returns:
        False if there is no adapter any more or nobody attached within ATTACH_TIMEOUT.
    """
    global _connected_pid
    with _debugpy_environment(), _as_before():
        inserted = "debugpy" not in sys.modules
        if inserted:
            sys.path.insert(0, debugpy_path)
        try:
            import debugpy
        finally:
            if inserted:
                sys.path.remove(debugpy_path)
        if _debugger() is not None:
            _forget_parents_debugger()
        debugpy.configure(subProcess=False)
        debugpy.connect((host, port), parent_session_pid=parent_pid)
        timer = threading.Timer(ATTACH_TIMEOUT, lambda: debugpy.wait_for_client.cancel())
        timer.daemon = True
        timer.start()
        try:
            debugpy.wait_for_client()
        finally:
            timer.cancel()
    _connected_pid = os.getpid()
    if not connected():
        return False
    adopt()
    return True


def adopt() -> None:
    """Make an attached debugger cheap: no tracing until it stops, no 44 ms per answer (debugpy#2054)."""
    global _connected_pid
    _connected_pid = os.getpid()
    debugger = _debugger()
    if debugger is None:
        return
    writer = getattr(debugger, "writer", None)
    if writer is not None:
        with contextlib.suppress(OSError):  # not a TCP socket: then it does not stall either
            writer.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    from _pydevd_bundle.pydevd_constants import DebugInfoHolder

    DebugInfoHolder.DEBUG_TRACE_LEVEL = -1  # its complaints would go to the program's stderr
    _keep_main_thread_alive()
    debugger.timeout_tracker = _NoTimeouts()
    keeper = debugger.check_alive_thread
    if keeper is not None:
        keeper.do_kill_pydev_thread()  # not a daemon thread: it would hold up the program's end by half a second
    stop_tracing()


class _NoTimeouts:
    """Instead of pydevd's tracker, which starts a thread for each evaluate: impossible while 3.12+ shuts down."""

    def call_on_timeout(self, timeout: float, on_timeout: Any, kwargs: Any = None) -> Any:
        return contextlib.nullcontext()


def _keep_main_thread_alive() -> None:
    """pydevd ends the session when the main thread has run out; but exit functions come after that, and may fail too."""
    import pydevd

    main, stock = threading.main_thread(), pydevd.is_thread_alive
    if getattr(stock, "main", None) is main:
        return

    def is_thread_alive(thread: threading.Thread) -> bool:
        return thread is main or bool(stock(thread))

    is_thread_alive.main = main  # type: ignore[attr-defined]
    pydevd.is_thread_alive = is_thread_alive


def stop_tracing() -> None:
    """Give the program its full speed back: without breakpoints there is nothing to trace (fib: 18x on 3.11)."""
    if "pydevd" not in sys.modules:
        return
    if sys.version_info >= (3, 12):
        from _pydevd_sys_monitoring import pydevd_sys_monitoring

        # this thread only: the others meet no event until a stop, and are then paused by it
        pydevd_sys_monitoring.suspend_current_thread_tracing()
    else:
        import pydevd_tracing

        # pydevd replaces sys.settrace by a function that warns on stderr; this is the real one
        pydevd_tracing.TracingFunctionHolder._original_tracing(None)
        threading.settrace(None)  # type: ignore[arg-type]


def stop(exc_type: Type[BaseException], exc: BaseException, tb: Optional[TracebackType], message: str) -> None:
    """Stop this thread in the debugger as at an unhandled exception; returns when it is resumed.

    Args:
        tb: where the stop is shown; without one (a SyntaxError in the program file) the caller's frame stands in.
        message: what the debugger calls the reason.
    """
    import pydevd

    stop_tracing()  # of this thread: it must not be paused once more in the middle of the stop
    debugger = _debugger()
    thread = threading.current_thread()
    info = pydevd.set_additional_thread_info(thread)
    if tb is None:
        here = sys._getframe(1)
        tb = TracebackType(None, here, here.f_lasti, here.f_lineno)
    frame, frames = _innermost(tb)
    info.is_tracing += 1
    try:
        info.pydev_message = message
        debugger.do_stop_on_unhandled_exception(thread, frame, frames, (exc_type, exc, tb))
    finally:
        info.is_tracing -= 1
        _untrace_frames()


def _untrace_frames() -> None:
    """A frame marked for tracing that is not traced shows a stale line in tracebacks (CPython below 3.10)."""
    if sys.version_info >= (3, 12):
        return
    for innermost in sys._current_frames().values():
        frame: Optional[FrameType] = innermost
        while frame is not None:
            frame.f_trace = None
            frame = frame.f_back


def is_debugger_thread(thread: threading.Thread) -> bool:
    """Whether *thread* is one of the debugger's own: it must never be stopped."""
    return bool(getattr(thread, "is_pydev_daemon_thread", False) or getattr(thread, "pydev_do_not_trace", False))


def users_part(frame: Optional[FrameType]) -> Optional[FrameType]:
    """*frame* or the nearest caller of it that is not the debugger's or ours: a paused thread waits inside pydevd."""
    found = None
    current = frame
    while current is not None:
        if _is_ours(current):
            found = None
        elif found is None:
            found = current
        current = current.f_back
    return found


def _is_ours(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    return file.startswith("<dap-agent>") or "pydevd" in os.path.basename(file) or os.sep + "_pydev" in file


def _innermost(tb: TracebackType) -> Tuple[FrameType, Dict[int, FrameType]]:
    frames = []
    entry: Optional[TracebackType] = tb
    while entry is not None:
        frames.append(entry.tb_frame)
        entry = entry.tb_next
    return frames[-1], {id(frame): frame for frame in frames}


def _debugger() -> Any:
    pydevd = sys.modules.get("pydevd")
    return pydevd.get_global_debugger() if pydevd is not None else None


def _forget_parents_debugger() -> None:
    """In a fork's child: the parent's debugger object is a copy without threads; start anew (pydevd.settrace_forked)."""
    import pydevd

    pydevd.settrace_forked(setup_tracing=False)
    pydevd.SetupHolder.setup = None
    pydevd.connected = False
    pydevd.bufferStdOutToServer = pydevd.bufferStdErrToServer = False
    pydevd.forked = True


@contextlib.contextmanager
def _as_before() -> Iterator[None]:
    """Give the program back what pydevd takes for itself: its breakpoint() and the numbers in its threads' names."""
    hook, counter = sys.breakpointhook, repr(threading._counter.__self__)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        sys.breakpointhook = hook
        first = int(counter[len("count(") : -1])
        threading._counter = itertools.count(first).__next__  # type: ignore[attr-defined]


@contextlib.contextmanager
def _debugpy_environment() -> Iterator[None]:
    """The variables that debugpy reads at its import, and none that it leaves behind."""
    before = dict(os.environ)
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # else it warns on stderr about frozen modules
    try:
        yield
    finally:
        for name in set(os.environ) - set(before):
            if name.startswith(("PYDEVD", "DEBUGPY")):
                del os.environ[name]
