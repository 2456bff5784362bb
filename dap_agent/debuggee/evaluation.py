"""Code that the model or the user wants to run in a frame: its value, what it printed, and its error.

It runs in the live process, in the thread that is stopped. Names that it binds do not change the frame; objects that it
changes are changed.
"""

from __future__ import annotations
import __future__

import ast
import ctypes
import signal
import sys
import threading
import types
from collections import deque
from typing import Any

from . import reading, snapshot, sources
from .failures import Teller
from .inspection import _frame
from .paths import NotThere
from .stop import Stop, is_hidden
from .values import WIDE

FILENAME = "<evaluate>"
OUTPUT = 8000
"""Characters kept of each captured stream: the first and the last half."""

_AGAIN = 0.05  # seconds after which code that has swallowed the interruption is interrupted once more
_ALARM = getattr(signal, "SIGURG", None)  # wakes the main thread where it waits in C; ignored by default
FUTURES = 0
"""The compiler's flags of all `__future__` imports."""
for _name in __future__.all_feature_names:
    FUTURES |= getattr(__future__, _name).compiler_flag


_running: list[_Run] = []
_void: deque[str] = deque(maxlen=100)  # tickets of those that are over, even if they have not begun


class OutOfTime(BaseException):
    """Raised inside evaluated code when its time is up."""


def interrupt(ticket: str) -> None:
    """End the evaluation that was given *ticket*, as if its time were up; if it is yet to begin, it will not."""
    _void.append(ticket)
    for run in list(_running):
        if run.ticket == ticket:
            run.hurry()


def is_void(ticket: str) -> bool:
    """Whether the evaluation with this ticket was ended by `interrupt`."""
    return ticket in _void


def evaluate(stop: Stop, number: int, code: str, timeout: float = 5.0, ticket: str = "") -> dict[str, Any]:
    """Run *code* with the names of frame *number*; the value of its last expression is the result.

    Args:
        timeout: seconds after which Python code is interrupted, and what waits in C in the main thread (locks, queues,
            sockets); any other call into C is interrupted when it returns.
        ticket: by which it can be interrupted from outside.

    Returns:
        `value` (a Value, or None where the code ends with a statement or failed), `stdout`, `stderr`, `error` (None, or
        `type`, `message`, `traceback`), `timed_out`, `seconds`, `notes`.

    Raises:
        NotThere: no such frame, or *code* is not Python.
    """
    frame, line = _frame(stop, number)
    body, last = compiled(code, frame.f_code.co_flags & FUTURES)
    namespace = namespace_of(frame, line)
    run = _Run(timeout, ticket)
    result, error = run(body, last, namespace)
    picture = snapshot.Picture()
    notes: list[str] = list(run.notes)
    found: dict[str, Any] = {
        "value": None,
        "stdout": picture.mask(run.output.text(0)),
        "stderr": picture.mask(run.output.text(1)),
        "error": None,
        "timed_out": run.timed_out,
        "seconds": round(run.seconds, 3),
        "notes": notes,
    }
    if error is not None:
        found["error"] = told(error, code, picture, notes)
    elif result is not reading.MISSING:
        found["value"] = picture.formatter.value(result, None, WIDE)
    cleaned: dict[str, Any] = picture.clean(found)
    return cleaned


def namespace_of(frame: types.FrameType, line: int) -> dict[str, Any]:
    """What code in *frame* sees: globals and locals in one, so that inner functions see the locals, too."""
    names = snapshot.locals_of(frame)
    namespace = dict(frame.f_globals)
    namespace.update(names)
    namespace["frame_locals"] = names
    namespace["frame_source"] = lambda: _source_text(frame, line)
    return namespace


def told(error: BaseException, code: str, picture: snapshot.Picture, notes: list[str]) -> dict[str, Any]:
    """`type`, `message` and `traceback` of what *code* has raised; *notes* is added to."""
    teller = Teller(picture.formatter, notes)
    return {
        "type": reading.type_name(type(error)),
        "message": teller.message(error),
        "traceback": picture.mask(_traceback(error, code, teller)),
    }


def compiled(code: str, flags: int, awaiting: bool = False) -> tuple[Any, Any]:
    """Code objects of the statements and of the last expression (None: there is none).

    Args:
        flags: of the compiler: the `__future__` imports.
        awaiting: whether `await` is allowed: then a code object may be a coroutine's.

    Raises:
        NotThere: *code* is not Python.
    """
    import textwrap

    text = textwrap.dedent(code).strip("\n")
    if awaiting:
        flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        tree = compile(text, FILENAME, "exec", flags | ast.PyCF_ONLY_AST, True)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = compile(ast.Expression(tree.body.pop().value), FILENAME, "eval", flags, True)
        return compile(tree, FILENAME, "exec", flags, True), last
    except SyntaxError as error:
        said = "%s (line %s: %s)" % (error.msg, error.lineno, (error.text or "").strip()[:200])
        if "await" in str(error.msg) and not awaiting:
            said += "; await is not possible here, the event loop is stopped"
        raise NotThere("The code is not valid Python: %s." % said) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise NotThere("The code can't be compiled: %s." % error) from None


def _source_text(frame: types.FrameType, line: int) -> str:
    found = sources.function_source(frame.f_code, line, frame.f_globals)
    return "\n".join(found[1]) if found is not None else ""


class _Run:
    """One execution with captured output and a time limit."""

    def __init__(self, timeout: float, ticket: str) -> None:
        self.ticket = ticket
        self.timeout = max(0.05, min(float(timeout), 600.0))
        self.timed_out = False
        self.seconds = 0.0
        self.notes: list[str] = []
        self.output = _Output()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._ended = False
        self._ident = threading.get_ident()
        self._wakes = False  # whether _ALARM may be sent

    def hurry(self) -> None:
        """The time is up."""
        self._wake.set()

    def __call__(self, body: Any, last: Any, namespace: dict[str, Any]) -> tuple[Any, BaseException | None]:
        """Value (MISSING without one) and error."""
        clock = reading.Deadline(self.timeout)
        watch = threading.Thread(target=self._watch, name="dap-agent time limit", daemon=True)
        watch.is_pydev_daemon_thread = watch.pydev_do_not_trace = True  # type: ignore[attr-defined]
        result: Any = reading.MISSING
        error: BaseException | None = None
        try:
            try:
                _running.append(self)
                if self.ticket and self.ticket in _void:
                    self.timed_out = True
                    raise OutOfTime
                watch.start()
                with self.output, _Alarm(self):
                    exec(body, namespace)
                    if last is not None:
                        result = eval(last, namespace)
            finally:
                self._end()
                self._take_interruption()
        except OutOfTime:
            result = reading.MISSING
        except BaseException as raised:  # the code may raise anything, SystemExit too: it is its result
            error = raised
        finally:
            self._end()
            _running[:] = [run for run in _running if run is not self]
        self.seconds = clock.elapsed()
        if self.timed_out:
            if self.seconds > self.timeout + 0.5:
                self.notes.append(
                    "The limit of %.1f s could not be kept: a call into C, or code that catches everything, ended only "
                    "after %.1f s." % (self.timeout, self.seconds)
                )
            if error is None and result is reading.MISSING:
                error = TimeoutError(
                    "The code was interrupted after %.1f s (limit %.1f s)." % (self.seconds, self.timeout)
                )
        return result, error

    def _end(self) -> None:
        with self._lock:
            self._ended = True
        self._wake.set()

    def _take_interruption(self) -> None:
        """An interruption that was ordered but not delivered yet must not hit what runs next: it is delivered here.

        To take it back (PyThreadState_SetAsyncExc with NULL) leaves the interpreter looking for one at every step, and
        3.11 then loops for ever in the next traced call (ceval.c, DO_TRACING).
        """
        if not self.timed_out:
            return
        _take()

    def _watch(self) -> None:
        wait = self.timeout
        while True:
            self._wake.wait(wait)
            self._wake.clear()
            with self._lock:
                if self._ended:
                    return
                self.timed_out = True
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._ident), ctypes.py_object(OutOfTime))
                if self._wakes and wait == _AGAIN and _ALARM is not None:
                    signal.pthread_kill(self._ident, _ALARM)
            wait = _AGAIN


class _Alarm:
    """In the main thread: lets a signal end a wait in C, which an exception from another thread does not reach."""

    def __init__(self, run: _Run) -> None:
        self._run = run
        self._before: Any = None

    def __enter__(self) -> None:
        if _ALARM is None or threading.current_thread() is not threading.main_thread():
            return
        self._before = signal.getsignal(_ALARM)
        if self._before is not None:  # else somebody else's, which could not be put back
            signal.signal(_ALARM, _ring)
            self._run._wakes = True

    def __exit__(self, *exc: object) -> None:
        if not self._run._wakes or _ALARM is None:
            return
        try:
            with self._run._lock:
                self._run._wakes = False
            _take()  # of a signal that was sent just now
        except OutOfTime:
            pass
        finally:
            signal.signal(_ALARM, self._before)


def _ring(*_: Any) -> None:
    _take()  # the interruption that was ordered, too, else it would hit what cleans up after this one
    raise OutOfTime


def _take() -> None:
    try:
        for _ in range(1000):  # each time around, it is looked for
            pass
    except OutOfTime:
        pass


class _Output:
    """Takes sys.stdout and sys.stderr for one thread; other threads write where they did before."""

    def __init__(self) -> None:
        self._ident = threading.get_ident()
        self._kept: list[list[str]] = [[], []]
        self._size = [0, 0]
        self._before: list[Any] = []
        self._streams: list[Any] = []

    def __enter__(self) -> None:
        self._before = [sys.stdout, sys.stderr]
        self._streams = [_Stream(self, which, stream) for which, stream in enumerate(self._before)]
        sys.stdout, sys.stderr = self._streams

    def __exit__(self, *exc: object) -> None:
        if sys.stdout is self._streams[0]:
            sys.stdout = self._before[0]
        if sys.stderr is self._streams[1]:
            sys.stderr = self._before[1]

    def write(self, which: int, text: str) -> None:
        """Keep *text*, the middle of too much left out."""
        kept = self._kept[which]
        kept.append(text)
        self._size[which] += len(text)
        if sum(map(len, kept[-1:])) > OUTPUT or len(kept) > 2000:
            whole = "".join(kept)
            self._kept[which] = [shortened(whole)]

    def mine(self) -> bool:
        """Whether the calling thread is the one whose output is taken."""
        return threading.get_ident() == self._ident

    def text(self, which: int) -> str:
        """What was written to stdout (0) or stderr (1)."""
        return shortened("".join(self._kept[which]))


def shortened(text: str) -> str:
    """*text*, or its beginning and end if it is longer than OUTPUT."""
    if len(text) <= OUTPUT:
        return text
    half = OUTPUT // 2
    return "%s\n... %d characters left out ...\n%s" % (text[:half], len(text) - OUTPUT, text[-half:])


class _Stream:
    """A text stream that keeps one thread's output and hands the others' on."""

    def __init__(self, output: _Output, which: int, real: Any) -> None:
        self._output = output
        self._which = which
        self._real = real

    def write(self, text: str) -> int:
        if not self._output.mine():
            written: int = self._real.write(text)
            return written
        if not isinstance(text, str):
            raise TypeError("write() argument must be str, not %s" % type(text).__name__)
        self._output.write(self._which, str.__str__(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        if not self._output.mine() and self._real is not None:
            self._real.flush()

    def isatty(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def _traceback(error: BaseException, code: str, teller: Teller) -> str:
    """The traceback from the evaluated code inwards, as Python prints it."""
    lines = code.split("\n")
    entry = BaseException.__dict__["__traceback__"].__get__(error)
    told: list[str] = []
    while entry is not None:
        frame, line = entry.tb_frame, entry.tb_lineno
        entry = entry.tb_next
        if is_hidden(frame):
            continue
        filename = frame.f_code.co_filename
        text = lines if filename == FILENAME else sources.lines_of(filename, frame.f_globals) or []
        told.append('  File "%s", line %s, in %s' % (filename, line, frame.f_code.co_name))
        if line is not None and 0 < line <= len(text):
            told.append("    " + text[line - 1].strip()[:200])
    if len(told) > 40:
        told = told[:20] + ["  ..."] + told[-20:]
    head = ["Traceback (most recent call last):"] if told else []
    message = teller.message(error)
    kind = reading.type_name(type(error))
    return "\n".join(head + told + ["%s: %s" % (kind, message) if message else kind])
