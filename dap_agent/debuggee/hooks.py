"""Where an exception that nobody handles comes to light, and the stop that is made there.

debugpy's own filters miss pytest, multiprocessing, forgotten tasks, RecursionError below 3.12 and SyntaxError, stop
several times for one exception, and stop for SystemExit (debugpy#111, #565, #756, #1873). So the places themselves
report: each takes the exception when the interpreter or the framework has given up on it, once.
"""

import contextlib
import os
import sys
import threading
from types import FrameType, FunctionType, TracebackType
from typing import Any, Callable, Iterator, Optional

from . import api, bridge, frameworks, judging, marks, net, originals, output_tail
from .after_import import when_imported
from .stop import Stop

# Read past what a class of the program's may have put in front: a `__getattribute__` or a metaclass that raises.
_traceback = BaseException.__dict__["__traceback__"].__get__
_cause = BaseException.__dict__["__cause__"].__get__
_context = BaseException.__dict__["__context__"].__get__
_name = type.__dict__["__name__"].__get__

_IGNORED = (SystemExit, KeyboardInterrupt, GeneratorExit)
_one_at_a_time = threading.Lock()
_here = threading.local()
_connect: Optional[Callable[[], bool]] = None
_instead: Optional[Callable[[BaseException, Optional[TracebackType]], None]] = None
_on_exec: Optional[Callable[[Any], None]] = None
_on_audit_hook: Optional[Callable[[], None]] = None
_after_audit: Optional[Callable[[str, Any], Any]] = None
_active = True
_ignored: Optional[judging.Ignored] = None
_capture: Any = None  # pytest's capture manager

LOGGERS = ("asyncio", "concurrent.futures", "django.request", "uvicorn.error", "gunicorn.error", "hypercorn.error",
           "tornado.application", "aiohttp.server", "celery.app.trace", "werkzeug",
           "waitress", "sanic.error")  # fmt: skip
"""Loggers to which a server or a scheduler reports an exception of user code that it has swallowed."""

_BELOW = tuple(name + "." for name in LOGGERS)


def install(
    connect: Callable[[], bool], instead: Optional[Callable[[BaseException, Optional[TracebackType]], None]] = None
) -> None:
    """Begin to report.

    Args:
        connect: attaches a debugger to a process that has none yet (a child), and says if it could.
        instead: makes the stop at an exception, in the session of an editor; without it that is done here.
    """
    global _connect, _instead
    _connect, _instead = connect, instead
    sys.addaudithook(_audit)
    _watch_threads()
    _watch_atexit()
    when_imported("asyncio.base_events", _watch_event_loops)
    when_imported("multiprocessing.process", _watch_processes)
    when_imported("_pytest.config", _watch_pytest)
    when_imported("unittest.result", _watch_unittest)
    when_imported("logging", _watch_loggers)
    frameworks.install(report)


def installed() -> bool:
    """Whether `install` has been called in this process."""
    return _connect is not None


def connect_by(connect: Callable[[], bool]) -> None:
    """From now on a child that fails is connected by *connect*: its parent has been attached to once more."""
    global _connect
    _connect = connect


def active(wanted: bool) -> None:
    """Switch reporting on or off: hooks of the interpreter cannot be taken out again."""
    global _active
    _active = wanted


def listen(on_exec: Callable[[Any], None], on_audit_hook: Callable[[], None]) -> None:
    """Have functions called at two audit events.

    Args:
        on_exec: with the code that is about to be executed.
        on_audit_hook: before the program adds an audit hook.
    """
    global _on_exec, _on_audit_hook
    _on_exec, _on_audit_hook = on_exec, on_audit_hook


def after_audit(function: Optional[Callable[[str, Any], Any]]) -> None:
    """Have *function* called at each audit event's end with name and arguments; the hook returns its result."""
    global _after_audit
    _after_audit = function


def after_fork() -> None:
    """In a fork's child: another thread of the parent may have held the lock, and the stop it waits in is not ours."""
    global _one_at_a_time
    _one_at_a_time = threading.Lock()
    _here.busy = False


def report(
    exc: Optional[BaseException], tb: Optional[TracebackType] = None, stoppable: bool = True, task: Any = None
) -> None:
    """Stop at *exc*, once; where no stop can be made leave its snapshot for dap-agent to find.

    Args:
        stoppable: False where a stop might block for good (inside a garbage collection).
        task: the asyncio task that it has ended.
    """
    if exc is None or not _active or getattr(_here, "busy", False):
        return
    _take_us_out(exc)
    if issubclass(type(exc), _IGNORED):
        return
    if marks.of(exc) is not None or _name(type(exc)) in ("CancelledError", "Cancelled"):
        return
    if _instead is None and marks.told_at_raise(exc):
        return
    marks.put(exc)
    if type(tb) is not TracebackType:  # Celery logs one that it has made itself
        tb = _traceback(exc)
    if _ignores(exc, tb):
        return
    _here.busy = True
    try:
        if _instead is not None:
            if stoppable and _can_stop():
                _instead(exc, tb)
            return
        with _one_at_a_time, bridge.own_tracing(), originals.restored(), bridge.interrupts_ignored():
            stop = Stop.from_exception(exc, tb, task=task)
            stop.output = output_tail.lines()
            if not (stoppable and _can_stop() and _stop(stop, exc, tb)):
                net.record(stop)
    except Exception as error:  # the program must meet its own exception, not one of ours
        net.failed("could not report %s" % _name(type(exc)), error)
    finally:
        _here.busy = False


@contextlib.contextmanager
def undisturbed() -> Iterator[bool]:
    """The standard library as it was, to look at the program with; gives False where another thread has it just now."""
    if getattr(_here, "busy", False) or not _one_at_a_time.acquire(blocking=False):
        yield False
        return
    _here.busy = True
    lock = _one_at_a_time
    try:
        with originals.restored():
            yield True
    finally:
        _here.busy = False
        lock.release()


AT_RAISE_NOTE = (
    "Stopped at the raise: all frames are alive, and no finally, with or except that the exception passes has run yet."
)


def stop_at_raise(exc: BaseException, frame: FrameType) -> None:
    """Stop where *exc* is raised, in *frame*, which still runs. If that can't be done its end is reported as ever."""
    if not _active or getattr(_here, "busy", False):
        return
    marks.put(exc, marks.AT_RAISE)
    _here.busy = True
    stopped = False
    try:
        with _one_at_a_time, bridge.own_tracing(), originals.restored(), bridge.interrupts_ignored():
            tb = TracebackType(None, frame, frame.f_lasti, frame.f_lineno or frame.f_code.co_firstlineno)
            stop = Stop.from_exception(exc, tb, live_frame=frame)
            stop.frames = [pair for pair in stop.frames if not _imports(pair[0])] or stop.frames
            with output_tail.instead(output_tail.captured_by(_capture)):
                stop.output = output_tail.lines()
            stop.notes.append(AT_RAISE_NOTE)
            stopped = _can_stop() and _stop(stop, exc, tb)
    except Exception as error:  # the program must meet its own exception, not one of ours
        net.failed("could not stop at the raise of %s" % _name(type(exc)), error)
    finally:
        _here.busy = False
        if not stopped:
            marks.take(exc)


def _imports(frame: FrameType) -> bool:
    """Whether it is the import system's, whose frames the interpreter takes out of tracebacks, too."""
    return frame.f_code.co_filename.startswith("<frozen importlib")


def ignore(ignored: judging.Ignored) -> None:
    """From now on, no stop at these."""
    global _ignored
    _ignored = ignored


def _ignores(exc: BaseException, tb: Optional[TracebackType]) -> bool:
    if _ignored is None:
        return False
    while tb is not None and tb.tb_next is not None:
        tb = tb.tb_next
    return _ignored.ignores_type(type(exc)) or (tb is not None and _ignored.ignores_module(tb.tb_frame))


def _can_stop() -> bool:
    return not (sys.is_finalizing() or bridge.is_debugger_thread(threading.current_thread()))


def _stop(stop: Stop, exc: BaseException, tb: Optional[TracebackType]) -> bool:
    """Stop in the debugger; False if there is none, or it died before it let the program go on."""
    try:
        if not bridge.connected() and not (_connect is not None and _connect()):
            return False
    except Exception as error:  # no adapter any more; no new threads in an interpreter that shuts down (3.12)
        net.failed("no debugger could be attached to process %d" % os.getpid(), error)
        return False
    api.set_stop(stop)
    try:
        bridge.stop(type(exc), exc, tb, _name(type(exc)))
    finally:
        api.set_stop(None)
    return bridge.connected()


def _take_us_out(exc: Optional[BaseException]) -> None:
    """Remove frames of ours (a wrapped os.execv that raised) from the tracebacks of *exc* and its causes."""
    done = set()
    left = [exc]
    while left:
        found = left.pop()
        if found is None or id(found) in done:
            continue
        done.add(id(found))
        left += [_cause(found), _context(found)]
        entry = _traceback(found)
        while entry is not None:
            after = entry.tb_next
            while after is not None and after.tb_frame.f_code.co_filename.startswith("<dap-agent>"):
                after = after.tb_next
            if after is not entry.tb_next:
                entry.tb_next = after
            entry = after


def _audit(event: str, args: Any) -> Any:
    """sys.excepthook and sys.unraisablehook, whatever the program has put there (PEP 578; audit events table)."""
    if not _active:  # also when the interpreter has cleared this module at its end
        return None
    if event == "sys.excepthook":
        _, _, exc, tb = args
        try:
            report(exc, tb)
        except BaseException as error:  # the program dies of its own exception, not of what its signal handler raised
            with contextlib.suppress(BaseException):  # an error here would keep the traceback from being printed
                net.failed("a signal handler raised while the program was stopped", error)
    elif event == "exec":
        if _on_exec is not None:
            _on_exec(args[0])
    elif event == "sys.addaudithook":
        if _on_audit_hook is not None:
            _on_audit_hook()
    elif event == "sys.unraisablehook":
        raised = args[1]
        exc = raised.exc_value if not _is_ours(raised.object) else None
        if (
            exc is None
            and raised.exc_value is None
            and raised.exc_type is not None
            and not issubclass(raised.exc_type, _IGNORED)
        ):
            exc = raised.exc_type()
        at_exit = "atexit" in (raised.err_msg or "")  # from 3.10 on; any other one may come out of a garbage collection
        report(exc, raised.exc_traceback, stoppable=at_exit)
    return _after_audit(event, args) if _after_audit is not None else None


def _is_ours(thing: Any) -> bool:
    """Whether it is a function of ours that C code calls."""
    return type(thing) is FunctionType and thing.__globals__.get("__package__") == __package__


def _watch_threads() -> None:
    """Before threading.excepthook, which a program may replace: the function that a Thread keeps to call it."""
    stock = threading._make_invoke_excepthook  # type: ignore[attr-defined]

    def make_invoke_excepthook() -> Callable[[Any], None]:
        invoke = stock()

        def invoke_excepthook(thread: Any) -> None:
            exc, tb = sys.exc_info()[1:]
            report(exc, tb)
            exc = tb = None
            invoke(thread)

        return invoke_excepthook

    threading._make_invoke_excepthook = make_invoke_excepthook  # type: ignore[attr-defined]


def watch_running_threads() -> None:
    """For threads that were started before we came (attach): they call threading.excepthook."""
    stock = threading.excepthook

    def excepthook(args: Any) -> None:
        report(args.exc_value, args.exc_traceback)
        stock(args)

    threading.excepthook = excepthook


class _AtExit:
    """A function registered with atexit; equal to it, so that atexit.unregister finds it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self.function(*args, **kwargs)
        except BaseException as exc:
            report(exc)
            raise

    def __eq__(self, other: object) -> bool:
        return self.function == other

    def __hash__(self) -> int:
        return hash(self.function)

    def __repr__(self) -> str:
        return repr(self.function)


def _watch_atexit() -> None:
    """Below 3.10, C code prints an exit function's exception without asking any hook."""
    if sys.version_info >= (3, 10):
        return
    import atexit

    stock = atexit.register

    def register(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
        if not callable(func):
            return stock(func, *args, **kwargs)  # its own TypeError
        stock(_AtExit(func), *args, **kwargs)
        return func

    register.__doc__ = stock.__doc__
    atexit.register = register


def _watch_event_loops(module: Any) -> None:
    """Fire-and-forget tasks and failing callbacks end in the loop's exception handler."""
    loop = module.BaseEventLoop
    stock = loop.call_exception_handler

    def call_exception_handler(self: Any, context: Any) -> Any:
        report(context.get("exception"), task=context.get("task") or context.get("future"))
        return stock(self, context)

    loop.call_exception_handler = call_exception_handler


def _watch_processes(module: Any) -> None:
    """A multiprocessing child prints its exception itself, without any hook (BaseProcess._bootstrap)."""
    process = module.BaseProcess
    stock = process._bootstrap

    def _bootstrap(self: Any, *args: Any, **kwargs: Any) -> Any:
        import traceback

        print_exc = traceback.print_exc

        def report_and_print(*a: Any, **k: Any) -> None:
            if sys._getframe(1).f_globals.get("__name__") == module.__name__:
                report(sys.exc_info()[1])
            print_exc(*a, **k)

        traceback.print_exc = report_and_print
        return stock(self, *args, **kwargs)

    process._bootstrap = _bootstrap


class _PytestPlugin:
    """Reports what pytest calls worth an interaction: failures and errors, not skips, xfails or `pytest.raises`."""

    def pytest_configure(self, config: Any) -> None:
        global _capture
        _capture = config.pluginmanager.getplugin("capturemanager")

    def pytest_exception_interact(self, node: Any, call: Any, report: Any) -> None:
        _report_pytest(call.excinfo, report)

    def pytest_internalerror(self, excrepr: Any, excinfo: Any) -> None:
        report(excinfo.value, excinfo.tb)


def _report_pytest(excinfo: Any, outcome: Any) -> None:
    captured = {"stdout": getattr(outcome, "capstdout", ""), "stderr": getattr(outcome, "capstderr", "")}
    exc, tb = excinfo.value, excinfo.tb
    if _name(type(exc)) == "CollectError" and _cause(exc) is not None:  # of an import: pytest only words it anew
        exc, tb = _cause(exc), None
    with output_tail.instead(captured):
        report(exc, tb)


def _watch_pytest(module: Any) -> None:
    manager = module.PytestPluginManager
    stock = manager.__init__

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        stock(self, *args, **kwargs)
        self.register(_PytestPlugin(), "dap-agent-debuggee")

    manager.__init__ = __init__
    module.hookimpl(tryfirst=True)(_PytestPlugin.pytest_exception_interact)  # before --pdb, which may end the run
    failure = module.ConftestImportFailure
    stock_failure = failure.__init__

    def failed(self: Any, *args: Any, **kwargs: Any) -> None:
        stock_failure(self, *args, **kwargs)
        report(getattr(self, "cause", None) or self.excinfo[1])  # pytest 8, and those before

    failure.__init__ = failed


def _watch_unittest(module: Any) -> None:
    result = module.TestResult
    for name in ("addError", "addFailure"):
        setattr(result, name, _reporting(getattr(result, name)))
    result.addSubTest = _reporting(result.addSubTest)


def _reporting(stock: Callable[..., Any]) -> Callable[..., Any]:
    def add(self: Any, test: Any, *args: Any) -> Any:
        err = args[-1]
        if err is not None:  # of a subtest that passed
            report(err[1], err[2])
        return stock(self, test, *args)

    return add


def _watch_loggers(module: Any) -> None:
    """Servers catch what a request handler raises and log it: the record is the last place that has the exception."""
    logger = module.Logger
    stock = logger.handle

    def handle(self: Any, record: Any) -> Any:
        if record.exc_info and record.levelno >= module.ERROR and _logs_for_others(record):
            report(record.exc_info[1], record.exc_info[2])
        return stock(self, record)

    logger.handle = handle


def _logs_for_others(record: Any) -> bool:
    if record.name in LOGGERS or record.name.startswith(_BELOW):
        return True
    # Flask logs with the application's own logger
    return bool(os.path.basename(os.path.dirname(record.pathname)) == "flask" and record.funcName == "log_exception")
