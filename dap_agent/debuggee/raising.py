"""The filter "raised and not going to be handled": stops at the raise, with all frames alive.

pydevd asks its debugger object at every raise which exception breakpoint applies. Two of its questions are answered by
us, for that one object: `get_exception_breakpoint` brings the class, `exclude_exception_by_filter` the traceback. Only
code in the debuggee can do this: DAP knows no such filter.
"""

from __future__ import annotations

import sys
import threading
from typing import Any, Iterable

from . import predict, reading

_KEY = "dap_agent.willBeUnhandled"

_filter: _Filter | None = None


def enable(ignore_types: Iterable[str] = (), ignore_modules: Iterable[str] = ()) -> dict[str, Any]:
    """Stop from now on where an exception is raised that nothing will handle.

    Asked again, it takes over the new lists. The client's own filters go on to work.

    Args:
        ignore_types: names of exception classes, bare or qualified; their subclasses are ignored too.
        ignore_modules: names of modules and packages; what is raised in their code is ignored.

    Returns:
        `stops`: how many it has made, `asked`: how many raises it has judged, so far.

    Raises:
        RuntimeError: there is no debugger in this process.
    """
    global _filter
    debugger = _debugger()
    if debugger is None:
        raise RuntimeError("no debugger is attached to this process")
    if _filter is None or _filter.debugger is not debugger:
        disable()
        _filter = _Filter(debugger)
    _filter.ignore(ignore_types, ignore_modules)
    _filter.put_in()
    return state()


def disable() -> dict[str, Any]:
    """Make no such stop any more, and leave the debugger as it was."""
    global _filter
    told = state()
    if _filter is not None:
        _filter.take_out()
        _filter = None
    return told


def state() -> dict[str, Any]:
    """`enabled`, `asked`, `stops`, and `why` of the last stop."""
    if _filter is None:
        return {"enabled": False, "asked": 0, "stops": 0, "why": ""}
    return {"enabled": True, "asked": _filter.asked, "stops": _filter.stops, "why": _filter.why}


def _debugger() -> Any:
    pydevd = sys.modules.get("pydevd")
    return pydevd.get_global_debugger() if pydevd is not None else None


class _Filter:
    def __init__(self, debugger: Any) -> None:
        breakpoints = sys.modules["_pydevd_bundle.pydevd_breakpoints"]  # there, as the debugger is
        self.debugger = debugger
        self.asked = 0
        self.stops = 0
        self.why = ""
        self._types: frozenset[str] = frozenset()
        self._modules: tuple[str, ...] = ()
        self._here = threading.local()
        self._stock_get = debugger.get_exception_breakpoint
        self._stock_exclude = debugger.exclude_exception_by_filter
        self._stock_changed = debugger.on_breakpoints_changed
        # of pydevd's own options none is needed: `_exclude` decides
        self._breakpoint = breakpoints.ExceptionBreakpoint("BaseException", None, None, 1, 0, 0, 0, 0)

    def ignore(self, types: Iterable[str], modules: Iterable[str]) -> None:
        self._types = frozenset(types)
        self._modules = tuple(modules)

    def put_in(self) -> None:
        debugger = self.debugger
        debugger.get_exception_breakpoint = self._get
        debugger.exclude_exception_by_filter = self._exclude
        debugger.on_breakpoints_changed = self._changed
        debugger.on_breakpoints_changed()

    def take_out(self) -> None:
        debugger = self.debugger
        for name in ("get_exception_breakpoint", "exclude_exception_by_filter", "on_breakpoints_changed"):
            debugger.__dict__.pop(name, None)
        debugger.get_exception_breakpoint = self._stock_get  # pydevd keeps this one in the instance itself
        debugger.break_on_caught_exceptions = self._without(debugger.break_on_caught_exceptions)
        debugger.on_breakpoints_changed()

    @staticmethod
    def _without(breakpoints: dict[str, Any]) -> dict[str, Any]:
        return {name: entry for name, entry in breakpoints.items() if name != _KEY}

    def _changed(self, removed: bool = False) -> Any:
        """pydevd has new breakpoints from the client: ours was removed with them."""
        breakpoints = self.debugger.break_on_caught_exceptions
        if _KEY not in breakpoints:
            self.debugger.break_on_caught_exceptions = {**breakpoints, _KEY: self._breakpoint}
            removed = False  # else pydevd does not look again at what it has to trace
        return self._stock_changed(removed=removed)

    def _get(self, exc_type: Any, breakpoints: Any) -> Any:
        """Which breakpoint applies to a raise: the client's own, else ours; it is decided in `_exclude`."""
        if not breakpoints or _KEY not in breakpoints:
            return self._stock_get(exc_type, breakpoints)
        clients = self._stock_get(exc_type, self._without(breakpoints))
        if clients is not None:
            return clients
        self._here.type = exc_type
        return self._breakpoint

    def _exclude(self, breakpoint: Any, trace: Any) -> bool:
        """Whether not to stop."""
        if breakpoint is not self._breakpoint:
            return bool(self._stock_exclude(breakpoint, trace))
        exc_type, self._here.type = self._here.type, None
        if trace is None or self._asked_before(trace) or self._ignored(exc_type, trace.tb_frame):
            return True
        self.asked += 1
        verdict = predict.will_be_unhandled(exc_type, None, trace.tb_frame)
        if not (verdict.unhandled and verdict.certain) or self._consequence():
            return True
        self._here.stopped = _place(trace)
        self.stops += 1
        self.why = verdict.why
        return False

    def _asked_before(self, trace: Any) -> bool:
        """Whether this is a caller's frame that the exception gets to, and its raise was judged already.

        Below 3.12 frames of libraries are not traced with justMyCode: then the user's first frame is asked about.
        """
        raise_ = _place(trace)
        before, self._here.asked = getattr(self._here, "asked", None), raise_
        if raise_ == before and trace.tb_next is not None:
            return True
        inner = trace.tb_next
        while inner is not None:
            frame = inner.tb_frame
            if not self.debugger.apply_files_filter(frame, frame.f_code.co_filename, True):
                return True
            inner = inner.tb_next
        return False

    def _ignored(self, exc_type: type, frame: Any) -> bool:
        module = reading.text_of(frame.f_globals.get("__name__")) or ""
        for ignored in self._modules:
            if module == ignored or module.startswith(ignored + "."):
                return True
        for cls in reading.mro(exc_type):
            name = reading.qualname(cls)
            if name in self._types or "%s.%s" % (reading.module(cls), name) in self._types:
                return True
        return False

    def _consequence(self) -> bool:
        """Whether it is raised while the exception of the last stop is being dealt with: `raise X from e`."""
        last = getattr(self._here, "stopped", None)
        if last is None:
            return False
        handled = sys.exc_info()[1]
        for _ in range(20):
            if handled is None:
                return False
            if _place(BaseException.__dict__["__traceback__"].__get__(handled)) == last:
                return True
            handled = BaseException.__dict__["__context__"].__get__(handled)
        return False


def _place(trace: Any) -> tuple[int, int] | None:
    """Stands for the raise that a traceback leads to; its frame is not kept alive for it, but by the exception."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return None if trace is None else (id(trace.tb_frame), trace.tb_lasti)
