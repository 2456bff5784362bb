"""Which lines of some functions run: by sys.monitoring for these alone (3.12+), else by a trace function."""

from __future__ import annotations

import sys
import types
from typing import Any, Dict, List, Set

from . import codes

_TOOLS = (3, 4, 5, 1, 2, 0)  # from the least to the most used numbers of sys.monitoring's tools


class Watch:
    """Notes the lines that code objects run, from `start` on. For a process that is thrown away: it is never ended."""

    def __init__(self) -> None:
        self._lines: Dict[int, Set[int]] = {}
        self._kept: List[types.CodeType] = []
        self._tool = -1
        self.blind = False  # whether nothing can be seen here

    def add(self, code: types.CodeType) -> None:
        """Watch this one, too."""
        if id(code) in self._lines:
            return
        self._lines[id(code)] = set()
        self._kept.append(code)
        if self._tool >= 0:
            self._watch(code)

    def start(self) -> None:
        """Begin."""
        monitoring: Any = getattr(sys, "monitoring", None)
        if monitoring is None:
            self._trace()
            return
        free = [tool for tool in _TOOLS if monitoring.get_tool(tool) is None]
        if not free:
            self.blind = True
            return
        self._tool = free[0]
        monitoring.use_tool_id(self._tool, "dap-agent trial")
        monitoring.register_callback(self._tool, monitoring.events.LINE, self._line)
        # a function on one line has no event of that line
        monitoring.register_callback(self._tool, monitoring.events.PY_START, self._started)
        for code in self._kept:
            self._watch(code)

    def reached(self, code: types.CodeType) -> List[int]:
        """The lines of *code* that have run, in order."""
        wanted = set(codes.line_numbers(code))
        return sorted(line for line in self._lines.get(id(code), ()) if line in wanted)

    def _watch(self, code: types.CodeType) -> None:
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        monitoring.set_local_events(self._tool, code, monitoring.events.LINE | monitoring.events.PY_START)

    def _line(self, code: types.CodeType, line: int) -> Any:
        found = self._lines.get(id(code))
        if found is not None:
            found.add(line)
        return sys.monitoring.DISABLE  # type: ignore[attr-defined,unused-ignore]

    def _started(self, code: types.CodeType, offset: int) -> Any:
        return self._line(code, code.co_firstlineno)

    def _trace(self) -> None:
        import threading

        def called(frame: Any, event: str, arg: Any) -> Any:
            found = lines.get(id(frame.f_code))
            if found is None:
                return None
            found.add(frame.f_code.co_firstlineno)

            def ran(frame: Any, event: str, arg: Any) -> Any:
                if event == "line":
                    found.add(frame.f_lineno)
                return ran

            return ran

        lines = self._lines
        # pydevd puts a function in the place of sys.settrace that warns on stderr
        holder = getattr(sys.modules.get("pydevd_tracing"), "TracingFunctionHolder", None)
        settrace = getattr(holder, "_original_tracing", None) or sys.settrace
        threading.settrace(called)
        settrace(called)
