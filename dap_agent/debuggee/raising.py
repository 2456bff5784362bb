"""The filter "raised and not going to be handled": stops at the raise, with all frames alive.

pydevd asks its debugger object at every raise which exception breakpoint applies. Two of its questions are answered by
us, for that one object: `get_exception_breakpoint` brings the class, `exclude_exception_by_filter` the traceback. Only
code in the debuggee can do this: DAP knows no such filter.
"""

from __future__ import annotations

import sys
import threading
from typing import Any, Iterable

from .judging import Ignored, Judge

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
    _filter.judge.ignored = Ignored(ignore_types, ignore_modules)
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
    judge = _filter.judge
    return {"enabled": True, "asked": judge.asked, "stops": judge.stops, "why": judge.why}


def _debugger() -> Any:
    pydevd = sys.modules.get("pydevd")
    return pydevd.get_global_debugger() if pydevd is not None else None


class _Filter:
    def __init__(self, debugger: Any) -> None:
        breakpoints = sys.modules["_pydevd_bundle.pydevd_breakpoints"]  # there, as the debugger is
        self.debugger = debugger
        self.judge = Judge(seen=lambda frame: not debugger.apply_files_filter(frame, frame.f_code.co_filename, True))
        self._here = threading.local()
        self._stock_get = debugger.get_exception_breakpoint
        self._stock_exclude = debugger.exclude_exception_by_filter
        self._stock_changed = debugger.on_breakpoints_changed
        # of pydevd's own options none is needed: `_exclude` decides
        self._breakpoint = breakpoints.ExceptionBreakpoint("BaseException", None, None, 1, 0, 0, 0, 0)

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
        return trace is None or not self.judge.stops_at(exc_type, trace)
