"""Stops at exceptions in an editor's session: what the client has asked for, once per exception, and nothing else.

The client's filters decide; two of ours are beside them. "Raised and not going to be handled" stops at the raise, with
all frames alive, where nothing will handle the exception; where that cannot be known, at its end. And every crash is
told to dap-agent with its snapshot, also those at which the client does not want to stop: without stopping.
"""

from __future__ import annotations

import builtins
import sys
import threading
import time
from types import TracebackType
from typing import Any, Iterable

from . import api, judging, marks, pydevd_filters
from .pydevd_filters import RAISED, UNCAUGHT, WILL, Due, Filters

CRASH = "dapAgentCrash"
"""Event: a crash at which the client does not stop; body: `snapshot`."""

STOP = "dapAgentStop"
"""Event, before `stopped`: this stop is by our filter; body: `threadId`, `why`."""

_TOLD = "told"  # how an exception is marked that only we have been told of
_ENDS = (SystemExit, KeyboardInterrupt, GeneratorExit)  # no crashes
_group = getattr(builtins, "BaseExceptionGroup", None)

_policy: _Policy | None = None


def configure(
    will_be_unhandled: bool = False,
    ignore_types: Iterable[str] = (),
    ignore_modules: Iterable[str] = (),
    nodelay: bool = True,
    record: bool = False,
) -> dict[str, Any]:
    """Begin, or take over new wishes.

    Args:
        will_be_unhandled: whether to stop where an exception is raised that nothing will handle.
        ignore_types: names of exception classes, bare or qualified; their subclasses are ignored too.
        ignore_modules: names of modules and packages; what is raised in their code is ignored.
        nodelay: whether to spare the client 44 ms for each of its requests (debugpy#2054).
        record: whether to remember the last calls of the user's functions, as far as that costs little.

    Returns:
        `enabled`, `asked`: how many raises it has judged, `stops`: how many stops it has made at raises, `why` of the
        last one.

    Raises:
        RuntimeError: there is no debugger in this process.
    """
    global _policy
    found = pydevd_filters.debugger()
    if found is None:
        raise RuntimeError("no debugger is attached to this process")
    if _policy is None or _policy.filters.debugger is not found:
        pydevd_filters.unnumber(found)
        _policy = _Policy(found)
    if will_be_unhandled:
        judging.load()
    _policy.watches_raises = will_be_unhandled
    _policy.judge.ignored = judging.Ignored(ignore_types, ignore_modules)
    _policy.filters.put_in()
    if nodelay:
        pydevd_filters.no_delay(found)
    _net(True)
    _record(record, bool(found.ready_to_run))
    return state()


def disable() -> dict[str, Any]:
    """Leave the debugger as it was."""
    global _policy
    told = state()
    if _policy is not None:
        _policy.filters.take_out()
        _policy = None
    if _netted:
        _net(False)
    _record(False)
    return told


def _record(wanted: bool, running: bool = False) -> None:
    """Have the flight recorder on or off.

    Args:
        running: whether the program runs already.
    """
    if wanted:
        from . import recorder, stop

        recorder.start(stop.debugger_folders(), running)
    else:
        recording: Any = sys.modules.get("%s.recorder" % __package__)
        if recording is not None:
            recording.stop_recording()


def state() -> dict[str, Any]:
    """See `configure`."""
    if _policy is None:
        return {"enabled": False, "asked": 0, "stops": 0, "why": ""}
    judge = _policy.judge
    return {"enabled": True, "asked": judge.asked, "stops": _policy.stops, "why": judge.why}


class _Policy(pydevd_filters.Policy):
    def __init__(self, found: Any) -> None:
        self.judge = judging.Judge(lambda frame: not found.apply_files_filter(frame, frame.f_code.co_filename, True))
        self.stops = 0
        self.filters = Filters(found, self)

    def ignores(self, exc_type: type, trace: TracebackType | None) -> bool:
        ignored = self.judge.ignored
        if trace is None:
            return ignored.ignores_type(exc_type)
        while trace.tb_next is not None:
            trace = trace.tb_next
        return ignored.ignores_module(trace.tb_frame)

    def raised(self, exc_type: type, trace: TracebackType) -> bool:
        if self.ignores(exc_type, trace):
            return False
        if _group is not None and issubclass(exc_type, _group):
            return trace.tb_next is None  # who handles it depends on what is in it: `due` gets it
        return self.judge.stops_at(exc_type, trace)

    def due(self, stop: Due) -> bool:
        exc = stop.exc
        how = marks.of(exc)
        if how is not None and how != _TOLD:
            # the user who steps goes where the exception goes
            return stop.filter == RAISED and stop.stepping
        if stop.filter == UNCAUGHT:
            return self._crash(stop)
        if self.ignores(type(exc), stop.trace):
            return False
        if stop.filter == RAISED:
            return True
        if marks.told_at_raise(exc):
            return False
        if stop.filter == WILL:
            grouped = _group is not None and issubclass(type(exc), _group)
            if grouped and not self.judge.stops_at(type(exc), stop.trace, exc):
                return False
            self.stops += 1
            self.filters.tell(STOP, {"threadId": stop.thread_id, "why": self.judge.why})
        return True

    def _crash(self, stop: Due) -> bool:
        exc = stop.exc
        if marks.told_at_raise(exc):
            return False
        if stop.wanted:
            return True
        if issubclass(type(exc), _ENDS):
            return False
        if self.watches_raises and stop.shown and not self.judge.ignored.ignores_type(type(exc)):
            return True  # it could not be known at the raise
        if marks.of(exc) is None:
            marks.put(exc, _TOLD)
            _tell(self.filters, exc, stop.trace)
        return False

    def in_own_code(self, trace: TracebackType | None) -> bool:
        """Whether a traceback leads through the user's code."""
        while trace is not None:
            if self.judge.seen(trace.tb_frame):
                return True
            trace = trace.tb_next
        return False

    def over(self, stop: Due) -> None:
        marks.put(stop.exc, stop.filter)

    def stands(self, begins: bool) -> None:
        recording: Any = sys.modules.get("%s.recorder" % __package__)
        if recording is not None:
            (recording.freeze if begins else recording.thaw)("stop of %d" % threading.get_ident())

    def left(self) -> None:
        _record(False)


def _tell(filters: Filters, exc: BaseException, trace: TracebackType | None) -> None:
    """Send dap-agent the snapshot of a crash; whatever fails in it, the program goes its way."""
    from .stop import Stop

    try:
        filters.tell(CRASH, {"snapshot": api.snapshot_of(Stop.from_exception(exc, trace))})
    except Exception as error:
        filters.tell(CRASH, {"error": type(error).__name__})


# Where no filter of debugpy's stops: test runners, forgotten tasks, servers that log what a request has raised

_netted = False
_SHARE = 20  # times as long as a snapshot has taken there is none of what only dap-agent is told of here
_quiet_until = 0.0


def _net(wanted: bool) -> None:
    from . import hooks

    global _netted
    if not hooks.installed():
        hooks.install(lambda: False, _caught_by_net)
        hooks.watch_running_threads()
    _netted = True
    hooks.active(wanted)


def _caught_by_net(exc: BaseException, trace: TracebackType | None) -> None:
    policy = _policy
    if policy is None or marks.told_at_raise(exc) or not pydevd_filters.attached(policy.filters.debugger):
        return
    exc, trace = _origin(policy, exc, trace)
    if policy.judge.ignored.ignores_type(type(exc)):
        return
    with policy.filters.unseen():
        # a stop in libraries alone would have an empty stack
        shown = policy.watches_raises and policy.filters.shows(trace)
        if not (shown and policy.filters.stop(exc, trace)):
            marks.put(exc, _TOLD)  # the client's own filters may still stop at it
            _tell_in_time(policy.filters, exc, trace)


def _tell_in_time(filters: Filters, exc: BaseException, trace: TracebackType | None) -> None:
    global _quiet_until
    began = time.perf_counter()
    if began >= _quiet_until:
        _tell(filters, exc, trace)
        ended = time.perf_counter()
        _quiet_until = ended + _SHARE * (ended - began)


def _origin(
    policy: _Policy, exc: BaseException, trace: TracebackType | None
) -> tuple[BaseException, TracebackType | None]:
    """Of a group that only a library's code has made (a nursery): the first member that comes from the user's code."""
    if _group is None or not issubclass(type(exc), _group) or policy.in_own_code(trace):
        return exc, trace
    left: list[Any] = [exc]
    for _ in range(1000):
        if not left:
            break
        member = left.pop(0)
        if issubclass(type(member), _group):
            left[:0] = _group.exceptions.__get__(member)
        elif policy.in_own_code(found := BaseException.__dict__["__traceback__"].__get__(member)):
            return member, found
    return exc, trace
