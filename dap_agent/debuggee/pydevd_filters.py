"""What pydevd asks its debugger object at an exception, answered by us: no other module knows of these questions.

At each raise: `get_exception_breakpoint` (brings the class) and `exclude_exception_by_filter` (the traceback); before
each stop: `set_suspend`, `do_wait_suspend` and `do_stop_on_unhandled_exception` (the exception itself). Both ways of
pydevd's, trace functions below 3.12 and sys.monitoring, ask the object, also where they are compiled (debugpy 1.8.22).
"""

from __future__ import annotations

import contextlib
import itertools
import re
import socket
import sys
import threading
from types import FrameType, TracebackType
from typing import Any, Callable, Iterator, NamedTuple

RAISED, USER_UNHANDLED, UNCAUGHT = "raised", "userUnhandled", "uncaught"
"""debugpy's filters."""

WILL = "willBeUnhandled"
"""Ours."""

TROUBLE = "dapAgentTrouble"
"""Event: something of ours has failed, and pydevd's own way was taken; body: `text`."""

_KEY = "dap_agent"  # under which our breakpoints stand beside those of the client


class Due(NamedTuple):
    """A stop that pydevd is about to make.

    Args:
        filter: by which.
        wanted: whether a filter that the client has set asks for it; else only one of ours.
        shown: whether the client would see a frame of it.
        exc: the exception.
        trace: its traceback so far.
        stepping: whether the user steps in this thread.
        thread_id: by which the client knows it.
    """

    filter: str
    wanted: bool
    shown: bool
    exc: BaseException
    trace: TracebackType
    stepping: bool
    thread_id: int


class Policy:
    """Decides; everything here is stock pydevd but that crashes are asked about, too."""

    watches_raises = False  # whether `raised` is to be asked at all

    def ignores(self, exc_type: type, trace: TracebackType | None) -> bool:
        """Whether the raised and userUnhandled filters pass over an exception; without *trace* only by its class."""
        return False

    def raised(self, exc_type: type, trace: TracebackType) -> bool:
        """Whether there may be a stop of ours at a raise; then `due` is asked with the exception itself."""
        return False

    def due(self, stop: Due) -> bool:
        """Whether to stop."""
        return stop.wanted

    def over(self, stop: Due) -> None:
        """The stop was made, and is over."""

    def stands(self, begins: bool) -> None:
        """A stop of this thread's, whatever has made it, begins or is over: code that runs meanwhile is the user's."""

    def left(self) -> None:
        """The client has left."""


def debugger() -> Any:
    """pydevd's object in this process; None if there is none."""
    pydevd = sys.modules.get("pydevd")
    return pydevd.get_global_debugger() if pydevd is not None else None


def attached(found: Any) -> bool:
    """Whether a client is connected to that debugger."""
    return found is debugger() and found.is_attached() and not found.pydb_disposed


def no_delay(found: Any) -> None:
    """Send what is written to the client at once: pydevd writes a message in two parts (debugpy#2054)."""
    with contextlib.suppress(OSError, AttributeError):  # no TCP socket, or closed: then it does not stall either
        found.writer.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def unnumber(found: Any) -> None:
    """Give back the number that a thread of pydevd's has taken, which the evaluate that brought us here has started.

    The names of the program's threads, Thread-6 and so on, are then those that they have without us.
    """
    thread = getattr(found.timeout_tracker, "_thread", None)
    if thread is None or found.ready_to_run:
        return  # the program runs already, and may be starting threads
    counter = getattr(threading, "_counter", None)
    numbers = re.match(r"count\((\d+)\)$", repr(getattr(counter, "__self__", None)))
    if numbers is not None:
        threading._counter = itertools.count(int(numbers[1]) - 1).__next__  # type: ignore[attr-defined]


class Filters:
    """Answers for one debugger object until `take_out`."""

    _OVERRIDDEN = ("get_exception_breakpoint", "exclude_exception_by_filter", "on_breakpoints_changed", "set_suspend",
                   "do_wait_suspend", "do_stop_on_unhandled_exception", "on_disconnect")  # fmt: skip

    def __init__(self, found: Any, policy: Policy) -> None:
        self.debugger = found
        self.policy = policy
        self._here = threading.local()
        self._troubled = False
        self._stock = {name: getattr(found, name) for name in self._OVERRIDDEN}
        self._kept = {name: found.__dict__[name] for name in self._OVERRIDDEN if name in found.__dict__}
        make = sys.modules["_pydevd_bundle.pydevd_breakpoints"].ExceptionBreakpoint
        constants = sys.modules["_pydevd_bundle.pydevd_constants"]
        commands = sys.modules["_pydevd_bundle.pydevd_comm_constants"]
        self._kinds = {
            constants.EXCEPTION_TYPE_HANDLED: RAISED,
            constants.EXCEPTION_TYPE_USER_UNHANDLED: USER_UNHANDLED,
            constants.EXCEPTION_TYPE_UNHANDLED: UNCAUGHT,
        }
        self._at_raise, self._at_end = commands.CMD_STEP_CAUGHT_EXCEPTION, commands.CMD_ADD_EXCEPTION_BREAK
        # of pydevd's own options none is needed: the policy decides
        self._raises = make("BaseException", None, None, 1, 0, 0, 0, 0)
        self._crashes = make("BaseException", None, None, 0, 1, 0, 0, 0)

    def put_in(self) -> None:
        """Begin, or take the policy's new wishes over."""
        found = self.debugger
        found.get_exception_breakpoint = self._get
        found.exclude_exception_by_filter = self._exclude
        found.set_suspend = self._set_suspend
        found.do_wait_suspend = self._do_wait_suspend
        found.do_stop_on_unhandled_exception = self._do_stop_on_unhandled_exception
        found.on_disconnect = self._on_disconnect
        found.on_breakpoints_changed = self._changed
        self._changed()

    def take_out(self) -> None:
        """Leave the debugger as it was."""
        found = self.debugger
        for name in self._OVERRIDDEN:
            found.__dict__.pop(name, None)
        found.__dict__.update(self._kept)
        found.break_on_caught_exceptions = _without(found.break_on_caught_exceptions)
        found.break_on_uncaught_exceptions = _without(found.break_on_uncaught_exceptions)
        found.on_breakpoints_changed()

    def stop(self, exc: BaseException, trace: TracebackType | None) -> bool:
        """Stop this thread at *exc*, as at an uncaught one; returns when it is resumed. To be called within `unseen`.

        Args:
            trace: where; without one (a SyntaxError in a file that is imported) there is nothing to show.

        Returns:
            Whether there was a client to stop for, in a thread that it can be told of.
        """
        if trace is None or not attached(self.debugger) or _in_a_greenlet():
            return False
        frames = {}
        entry: TracebackType | None = trace
        innermost: FrameType = trace.tb_frame
        while entry is not None:
            frames[id(entry.tb_frame)] = innermost = entry.tb_frame
            entry = entry.tb_next
        thread = threading.current_thread()
        self.debugger.set_additional_thread_info(thread).pydev_message = "BaseException"
        arg = type(exc), exc, trace
        self._stock["do_stop_on_unhandled_exception"](thread, innermost, frames, arg)
        return True

    @contextlib.contextmanager
    def unseen(self) -> Iterator[None]:
        """Code of ours in a thread of the program: no breakpoint and no filter stops in it."""
        info = self.debugger.set_additional_thread_info(threading.current_thread())
        resume = _without_events()
        info.is_tracing += 1
        try:
            yield
        finally:
            info.is_tracing -= 1
            resume()

    def tell(self, name: str, body: dict[str, Any]) -> None:
        """Send the client's side the event *name*; what this thread sends afterwards comes after it."""
        command = sys.modules["_pydevd_bundle.pydevd_net_command"].NetCommand
        told = {"type": "event", "event": name, "body": body}
        self.debugger.writer.add_command(command(0, 0, told, is_json=True))

    def _ask(self, question: Callable[..., Any], stock: Any, *arguments: Any) -> Any:
        """The policy's answer; *stock* if it fails: an error in here would end all tracing of the thread."""
        try:
            return question(*arguments)
        except RecursionError:
            return stock  # the program is at its limit, and needs what is left itself
        except Exception as error:
            if not self._troubled:
                self._troubled = True
                with contextlib.suppress(Exception):  # the connection may be what has failed
                    self.tell(TROUBLE, {"text": "%s: %s" % (type(error).__name__, error)})
            return stock

    # The breakpoints

    def _changed(self, removed: bool = False) -> Any:
        """pydevd has new breakpoints from the client: ours were removed with them."""
        found = self.debugger
        self._crashes.ignore_libraries = self._raises.ignore_libraries = 1 if found.get_use_libraries_filter() else 0
        caught, uncaught = found.break_on_caught_exceptions, found.break_on_uncaught_exceptions
        if _KEY not in uncaught:
            found.break_on_uncaught_exceptions = {**uncaught, _KEY: self._crashes}
            removed = False  # else pydevd does not look again at what it has to trace
        if self.policy.watches_raises and _KEY not in caught:
            found.break_on_caught_exceptions = {**caught, _KEY: self._raises}
            removed = False
        elif _KEY in caught and not self.policy.watches_raises:
            found.break_on_caught_exceptions = _without(caught)
        return self._stock["on_breakpoints_changed"](removed=removed)

    def _get(self, exc_type: Any, breakpoints: Any) -> Any:
        """Which breakpoint applies: the client's own, else ours."""
        if not breakpoints:
            return None
        stock = self._stock["get_exception_breakpoint"]
        ours = breakpoints.get(_KEY)
        if ours is self._crashes:
            return ours
        clients = stock(exc_type, breakpoints if ours is None else _without(breakpoints))
        if clients is not None:
            return None if self._ask(self.policy.ignores, False, exc_type, None) else clients
        self._here.type = exc_type
        return ours

    def _exclude(self, breakpoint: Any, trace: Any) -> bool:
        """Whether not to stop, as far as it can be said without the exception."""
        here = self._here
        if breakpoint is self._crashes:
            return self._exclude_crash(trace)
        if breakpoint is self._raises:
            exc_type, here.type = here.type, None
            here.will = trace is not None and self._ask(self.policy.raised, False, exc_type, trace)
            return not here.will
        here.will = False
        return bool(self._stock["exclude_exception_by_filter"](breakpoint, trace))

    def _exclude_crash(self, trace: Any) -> bool:
        """Asked about every frame of the traceback, outermost first; where the client sees none, we see all."""
        here = self._here
        if getattr(here, "next", None) is not trace:
            here.shown = self.shows(trace)
        here.next = trace.tb_next
        return bool(here.shown and self._stock["exclude_exception_by_filter"](self._crashes, trace))

    def shows(self, trace: Any) -> bool:
        """Whether the client would see a frame of a traceback."""
        while trace is not None:
            if not self._stock["exclude_exception_by_filter"](self._crashes, trace):
                return True
            trace = trace.tb_next
        return False

    # The stops

    def _set_suspend(self, thread: Any, stop_reason: int, *args: Any, **kwargs: Any) -> Any:
        if stop_reason == self._at_raise:
            self._here.put_off = args, kwargs  # until it is known whether there will be a stop
            return None
        return self._stock["set_suspend"](thread, stop_reason, *args, **kwargs)

    def _do_wait_suspend(self, thread: Any, frame: Any, event: str, arg: Any, exception_type: Any = None) -> Any:
        """Asked for every stop; those at exceptions are decided here."""
        here = self._here
        put_off, here.put_off = getattr(here, "put_off", None), None
        stock = self._stock["do_wait_suspend"]
        if put_off is None:
            return self._stand(stock, thread, frame, event, arg, exception_type)
        kind = self._kinds.get(exception_type, RAISED)
        if kind == RAISED and getattr(here, "will", False):
            kind, here.will = WILL, False
        stop = self._due(kind, kind != WILL, True, thread, arg)
        if not self._ask(self.policy.due, stop.wanted, stop):
            return None
        reason = self._at_end if kind == WILL else self._at_raise  # by which pydevd tells that it is unhandled
        self._stock["set_suspend"](thread, reason, *put_off[0], **put_off[1])
        try:
            return self._stand(stock, thread, frame, event, arg, exception_type)
        finally:
            self._ask(self.policy.over, None, stop)

    def _stand(self, stock: Any, *arguments: Any) -> Any:
        self._ask(self.policy.stands, None, True)
        try:
            return stock(*arguments)
        finally:
            self._ask(self.policy.stands, None, False)

    def _do_stop_on_unhandled_exception(self, thread: Any, frame: Any, frames: Any, arg: Any) -> Any:
        clients = _without(self.debugger.break_on_uncaught_exceptions)
        wanted = self._stock["get_exception_breakpoint"](arg[0], clients) is not None
        stop = self._due(UNCAUGHT, wanted, bool(getattr(self._here, "shown", True)), thread, arg)
        if not self._ask(self.policy.due, stop.wanted, stop):
            return None
        try:
            return self._stock["do_stop_on_unhandled_exception"](thread, frame, frames, arg)
        finally:
            self._ask(self.policy.over, None, stop)

    @staticmethod
    def _due(kind: str, wanted: bool, shown: bool, thread: Any, arg: Any) -> Due:
        stepping = getattr(thread.additional_info, "pydev_step_cmd", -1) != -1
        return Due(kind, wanted and shown, shown, arg[1], arg[2], stepping, _thread_id(thread))

    def _on_disconnect(self) -> None:
        self._stock["on_disconnect"]()
        self.take_out()
        self._ask(self.policy.left, None)


def _in_a_greenlet() -> bool:
    """Whether gevent has put a thread of its own in this one's place: pydevd makes stops in it, and then loses it."""
    return "gevent" in sys.modules and isinstance(threading.current_thread(), threading._DummyThread)


def _without(breakpoints: dict[str, Any]) -> dict[str, Any]:
    return {name: entry for name, entry in breakpoints.items() if name != _KEY}


def _thread_id(thread: Any) -> int:
    """pydevd translates its ids when it writes a message of the protocol."""
    base = sys.modules["_pydevd_bundle._debug_adapter.pydevd_base_schema"].BaseSchema
    get = sys.modules["_pydevd_bundle.pydevd_constants"].get_thread_id
    return int(base._translate_id_to_dap(get(thread)))


def _without_events() -> Callable[[], Any]:
    """Meet no events of the debugger's in this thread until what is returned is called."""
    if sys.version_info >= (3, 12):
        from _pydevd_sys_monitoring import pydevd_sys_monitoring

        if pydevd_sys_monitoring.suspend_current_thread_tracing():
            return pydevd_sys_monitoring.resume_current_thread_tracing  # type: ignore[no-any-return]
        return lambda: None
    trace = sys.gettrace()
    # pydevd has put a function that warns in the place of sys.settrace
    settrace = sys.modules["pydevd_tracing"].TracingFunctionHolder._original_tracing or sys.settrace
    settrace(None)
    return lambda: settrace(trace)
