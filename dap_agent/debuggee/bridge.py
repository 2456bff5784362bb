"""Everything of debugpy and pydevd that is not public, in one file, each oddity with its source.

Written against debugpy 1.8.21 and 1.8.22; other modules of the debuggee side do not know pydevd.
"""

import atexit
import contextlib
import itertools
import os
import signal
import socket
import sys
import threading
import time
from types import FrameType, TracebackType
from typing import Any, Callable, ContextManager, Dict, Iterator, List, Optional, Tuple, Type

from . import descriptors, originals, tracing

ATTACH_TIMEOUT = 20.0
"""Seconds to wait for dap-agent to take up a process that has connected; after that the program goes on without us."""

_beside_stops: Callable[[], ContextManager[None]] = contextlib.nullcontext

_connected_pid = None  # the process whose debugger is connected: a fork's child is not


def connected() -> bool:
    """Whether this very process (not the one it was forked from) has a debugger attached."""
    if _connected_pid != os.getpid():
        return False
    debugger = _debugger()
    return debugger is not None and debugger.is_attached() and not debugger.pydb_disposed


def was_connected() -> bool:
    """Whether this very process has had a debugger."""
    return _connected_pid == os.getpid()


def connect(
    host: str,
    port: int,
    debugpy_path: str,
    parent_pid: Optional[int],
    alive: Callable[[], bool],
    running: bool = False,
) -> bool:
    """Connect this process to the adapter that listens on *host*:*port* and wait until it is attached to.

    Args:
        debugpy_path: the folder that holds the package `debugpy` to use.
        parent_pid: the debuggee whose session the adapter shall announce this process to; None for the first process.
        alive: whether dap-agent still lives.
        running: whether the program's own threads run meanwhile: this one is not theirs.

    Returns:
        False if nobody attached within ATTACH_TIMEOUT, or whoever should has died.

    Raises:
        Exception: there is no adapter any more.
    """
    global _connected_pid
    with _debugpy_environment(), _as_before(counter=not running), _somewhere():
        with originals.importable(debugpy_path):
            import debugpy

            debugpy.configure(subProcess=False)  # its first call puts pydevd on the path
            import pydevd

            _silence()
        if _debugger() is not None:
            _forget_parents_debugger()
        give_up = threading.Event()
        met: List[Any] = []
        watch = threading.Thread(target=_watch, args=(alive, give_up, met), daemon=True)
        watch.start()
        try:
            with tracing.suppressed(), _out_of_the_way(met):
                debugpy.connect((host, port), parent_session_pid=parent_pid)
            atexit.unregister(pydevd.stoptrace)
            atexit.register(_end)
            if not give_up.is_set():
                pydevd._wait_for_attach(cancel=give_up)  # debugpy.wait_for_client; sets the event when it is attached
        finally:
            give_up.set()
            watch.join()  # the program may count its threads
    _connected_pid = os.getpid()
    if not connected():
        for debugger in met:
            for thread in list(debugger.created_pydb_daemon_threads):
                thread.do_kill_pydev_thread()  # one is no daemon: the interpreter would wait for it at its end
        stop_tracing()
        return False
    adopt()
    _let_go()
    return True


def _let_go() -> None:
    """Take pydevd's marks off the program between stops: wrapped threads, its sys.settrace and its sys.monitoring tool.

    With a debugger there pytest-timeout is switched off, and the program can use none itself.
    """
    sys.modules["_pydev_bundle.pydev_monkey"].undo_patch_thread_modules()
    _give_settrace_back()
    if sys.version_info >= (3, 12):
        from _pydevd_sys_monitoring import pydevd_sys_monitoring

        pydevd_sys_monitoring.stop_monitoring(all_threads=True)


@contextlib.contextmanager
def _monitoring() -> Iterator[None]:
    """For the time of a stop, so that other threads are paused, too."""
    if sys.version_info < (3, 12) or sys.monitoring.get_tool(sys.monitoring.DEBUGGER_ID) is not None:
        yield  # in use, perhaps by a debugger of the program's own: then its other threads run on
        return
    from _pydevd_sys_monitoring import pydevd_sys_monitoring

    pydevd_sys_monitoring.start_monitoring(all_threads=True)
    try:
        yield
    finally:
        pydevd_sys_monitoring.stop_monitoring(all_threads=True)


@contextlib.contextmanager
def own_tracing() -> Iterator[None]:
    """Take the program's tracers (coverage) out of our way and give them back: pydevd's may be in their place."""
    hooks = threading._trace_hook, threading._profile_hook  # type: ignore[attr-defined]
    _set_thread_hooks(None, None)
    trace, frames = sys.gettrace(), []
    frame: Optional[FrameType] = sys._getframe() if trace is not None else None
    while frame is not None:
        if frame.f_trace is not None:
            frames.append((frame, frame.f_trace))
        frame = frame.f_back
    with _beside_stops():
        if trace is not None:
            sys.settrace(None)
        try:
            yield
        finally:
            _give_settrace_back()
            if trace is not None or sys.gettrace() is not None:
                sys.settrace(trace)
            for frame, trace in frames:
                frame.f_trace = trace
            _set_thread_hooks(*hooks)


def beside_stops(context: Callable[[], ContextManager[None]]) -> None:
    """Have a context of *context* around each stop."""
    global _beside_stops
    _beside_stops = context


def _set_thread_hooks(trace: Any, profile: Any) -> None:
    threading._trace_hook, threading._profile_hook = trace, profile  # type: ignore[attr-defined]


def _give_settrace_back() -> None:
    """pydevd puts a function in its place that warns on stderr: coverage calls it, and every tracer."""
    tracing_module = sys.modules.get("pydevd_tracing")
    if tracing_module is not None:
        sys.settrace = tracing_module.TracingFunctionHolder._original_tracing or sys.settrace


@contextlib.contextmanager
def _somewhere() -> Iterator[None]:
    """pydevd asks for the working directory, which the program may have deleted; then stand in another meanwhile."""
    try:
        os.getcwd()
    except OSError:
        here = os.open(".", os.O_RDONLY)
        os.chdir(os.sep)
        try:
            yield
        finally:
            os.fchdir(here)
            os.close(here)
    else:
        yield


@contextlib.contextmanager
def _out_of_the_way(met: List[Any]) -> Iterator[None]:
    """Let pydevd's connection have a descriptor that no program gets or closes; the debugger goes into *met*."""
    import pydevd

    stock = pydevd.start_client

    def start_client(host: str, port: int) -> Any:
        met.append(_debugger())  # once it is disposed, pydevd knows it no more
        connection = stock(host, port)
        return _Connection(fileno=descriptors.move(connection.detach()))

    pydevd.start_client = start_client
    try:
        yield
    finally:
        pydevd.start_client = stock


class _Connection(socket.socket):
    def close(self) -> None:
        descriptors.release(self.fileno())
        super().close()


def _end() -> None:
    """pydevd's own exit function, past whatever the program has replaced or closed until now."""
    import pydevd

    with originals.restored(), contextlib.suppress(Exception):  # nobody is left to be told
        pydevd.stoptrace()


def about_to_be_replaced() -> None:
    """This process will run another program in the same place (exec): its session is taken over, not ended."""
    if connected():
        _debugger().send_process_about_to_be_replaced()


def _watch(alive: Callable[[], bool], over: threading.Event, met: List[Any]) -> None:
    """Set *over* when it is no use to wait any longer: the adapter tells nobody that dap-agent has died.

    debugpy.connect itself waits for good if the adapter dies before it has answered (PyDB.wait_for_ready_to_run).
    """
    until = time.monotonic() + ATTACH_TIMEOUT
    while not over.wait(0.05):
        if met and (met[-1].pydb_disposed or time.monotonic() > until or not alive()):
            met[-1].ready_to_run = True
            over.set()


def _silence() -> None:
    """pydevd's complaints would go to the program's stderr."""
    from _pydevd_bundle.pydevd_constants import DebugInfoHolder

    DebugInfoHolder.DEBUG_TRACE_LEVEL = -1
    sys.modules["_pydev_bundle.pydev_log"].exception = lambda *args: None  # type: ignore[attr-defined]
    for name in ("_pydevd_bundle.pydevd_daemon_thread", "_pydevd_bundle.pydevd_comm"):
        sys.modules[name].notify_about_gevent_if_needed = lambda: False  # type: ignore[attr-defined]


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
    _silence()
    debugger.suspended_frames_manager._variable_reference_to_frames_tracker = _Forgiving()
    _keep_main_thread_alive()
    debugger.timeout_tracker = _NoTimeouts()
    keeper = debugger.check_alive_thread
    if keeper is not None:
        keeper.do_kill_pydev_thread()  # not a daemon thread: it would hold up the program's end by half a second
    stop_tracing()


class _Forgiving(Dict[Any, Any]):
    """Frames that two stopped threads have in common (an exception of one raised in the other) are forgotten twice."""

    def __delitem__(self, key: Any) -> None:
        self.pop(key, None)


class _NoTimeouts:
    """Instead of pydevd's tracker, which starts a thread for each evaluate: impossible while 3.12+ shuts down."""

    def call_on_timeout(self, timeout: float, on_timeout: Any, kwargs: Any = None) -> Any:
        return contextlib.nullcontext()


def _keep_main_thread_alive() -> None:
    """pydevd ends the session when the main thread has run out; exit functions come after that, and may fail too."""
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
        threading.settrace(None)


def stop(exc_type: Type[BaseException], exc: BaseException, tb: Optional[TracebackType], message: str) -> None:
    """Stop this thread in the debugger as at an unhandled exception; returns when it is resumed.

    Args:
        tb: where the stop is shown; without one (a SyntaxError in the program file) the caller's frame stands in.
        message: what the debugger calls the reason.
    """
    import pydevd

    with _monitoring():
        stop_tracing()  # of this thread: it must not be paused once more in the middle of the stop
        _stop(pydevd.set_additional_thread_info(threading.current_thread()), (exc_type, exc, tb), message)


def _stop(info: Any, exc_info: Any, message: str) -> None:
    debugger = _debugger()
    exc_type, exc, tb = exc_info
    if tb is None:
        here = sys._getframe(2)
        tb = TracebackType(None, here, here.f_lasti, here.f_lineno)
    frame, frames = _innermost(tb)
    info.is_tracing += 1
    try:
        info.pydev_message = message
        debugger.do_stop_on_unhandled_exception(threading.current_thread(), frame, frames, (exc_type, exc, tb))
    finally:
        info.is_tracing -= 1
        _untrace_frames()


@contextlib.contextmanager
def interrupts_ignored() -> Iterator[None]:
    """While the program is stopped, a Ctrl-C at its terminal is meant for dap-agent alone.

    By the C library: Python's signal.signal works in the main thread only, and does not know handlers set by C code.
    """
    import ctypes

    library = ctypes.CDLL(None)  # an object of its own: declarations made on it are not the program's
    before = ctypes.create_string_buffer(1024)  # struct sigaction, which has up to 152 bytes
    known = library.sigaction(signal.SIGINT, None, before) == 0
    if known:
        library.signal(signal.SIGINT, ctypes.c_void_p(1))  # SIG_IGN
    try:
        yield
    finally:
        if known:
            library.sigaction(signal.SIGINT, before, None)


def _untrace_frames() -> None:
    """A frame marked for tracing that is not traced shows a stale line in tracebacks (CPython below 3.10)."""
    if sys.version_info >= (3, 12):
        return
    for innermost in sys._current_frames().values():
        frame: Optional[FrameType] = innermost
        while frame is not None:
            frame.f_trace = None
            frame = frame.f_back


def is_debugger_thread(thread: Optional[threading.Thread]) -> bool:
    """Whether *thread* is one of the debugger's own: it must never be stopped."""
    return bool(getattr(thread, "is_pydev_daemon_thread", False) or getattr(thread, "pydev_do_not_trace", False))


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
    """In a fork's child: the parent's debugger is a copy without threads; start anew (pydevd.settrace_forked)."""
    import pydevd

    pydevd.settrace_forked(setup_tracing=False)
    pydevd.SetupHolder.setup = None
    pydevd.connected = False
    pydevd.bufferStdOutToServer = pydevd.bufferStdErrToServer = False
    pydevd.forked = True


@contextlib.contextmanager
def _as_before(counter: bool) -> Iterator[None]:
    """Give the program back what pydevd takes for itself: its breakpoint() and the numbers in its threads' names.

    Args:
        counter: whether to set the numbers back: not while the program may start threads.
    """
    hook, numbers = sys.breakpointhook, repr(threading._counter.__self__)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        sys.breakpointhook = hook
        if counter:
            first = int(numbers[len("count(") : -1])
            threading._counter = itertools.count(first).__next__  # type: ignore[attr-defined]


def occupant() -> Optional[str]:
    """Who debugs this process already, as a sentence; None if nobody does."""
    if connected():
        return "dap-agent debugs it already: end that session first."
    server = sys.modules.get("debugpy.server.api")
    if getattr(getattr(server, "listen", None), "called", False):
        return "debugpy listens in it: use --connect HOST:PORT with the address that it was given."
    debugger = _debugger()
    if debugger is not None and not debugger.pydb_disposed:
        return "another debugger (pydevd) is in it: end that session first."
    return None


def withdraw_pause() -> None:
    """Let the threads go on that a pause has stopped or has yet to stop.

    The request `continue` is no use: it is answered, and with it all later ones, when a thread that stood has gone on.
    """
    if _debugger() is not None:
        from _pydevd_bundle.pydevd_thread_lifecycle import resume_threads

        resume_threads("*")


def when_over(callback: Callable[[], None]) -> None:
    """Call *callback* when the session ends, on which side ever, and let go of the adapter then.

    After dap-agent was killed, the adapter would wait until this process ends (debugpy/adapter/__main__.py).
    """
    debugger = _debugger()
    if debugger is None:
        return
    stock_dispose, stock_disconnect = debugger.dispose_and_kill_all_pydevd_threads, debugger.on_disconnect

    def dispose(*args: Any, **kwargs: Any) -> None:
        try:
            stock_dispose(*args, **kwargs)
        finally:
            callback()

    def disconnect() -> None:
        stock_disconnect()
        # a little later: the request has yet to be answered
        timer = threading.Timer(0.3, debugger.dispose_and_kill_all_pydevd_threads)
        timer.daemon = True
        timer.is_pydev_daemon_thread = timer.pydev_do_not_trace = True  # type: ignore[attr-defined]
        timer.start()

    debugger.on_disconnect = disconnect
    debugger.dispose_and_kill_all_pydevd_threads = dispose


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
