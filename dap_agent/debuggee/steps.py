"""What a trace tells of: each step where something new is reached, of what goes round and round the first and last."""

from __future__ import annotations

import types
from collections import deque
from typing import Any, Deque, Dict, List, Optional, Tuple

_TAIL = 6  # steps that are told before something new is reached
_LAST = 40  # steps that are told at the end


class Function:
    """A function that is traced.

    Args:
        number: its place in `Tracer.functions`.
        name, file, line: of it.
    """

    def __init__(self, number: int, name: str, code: types.CodeType) -> None:
        self.number = number
        self.name = name
        self.code = code
        self.calls = self.steps = 0
        self.visits: Dict[int, int] = {}


class Step:
    """One line that ran, a call, or how a call ended.

    Args:
        kind: `line`, `call`, `resume`, `return`, `yield`, `raise`, `left` (by an exception) or `gap` (left out).
        function, line, depth: where.
    """

    __slots__ = ("changes", "count", "depth", "function", "holds", "kind", "line", "next", "number", "text", "value")

    def __init__(self, kind: str, function: Optional[Function], line: int, depth: int, number: int) -> None:
        self.kind, self.function, self.line, self.depth, self.number = kind, function, line, depth, number
        self.changes: List[Dict[str, Any]] = []
        self.next = 0  # the line of the function that ran next; 0: none
        self.value: Any = None
        self.text = ""
        self.holds = False
        self.count: Dict[Tuple[int, int], int] = {}  # of a gap: function and line -> how often

    def place(self) -> Dict[str, Any]:
        """Where it is, as JSON."""
        number = self.function.number if self.function is not None else -1
        return {"function": number, "line": self.line, "step": self.number, "at_call": self.kind == "call"}


class Told:
    """The steps that are told, in order, with gaps for those that are left out.

    Args:
        most: steps that are told, at most, besides the last ones.

    Attributes:
        full: whether there were more.
    """

    def __init__(self, most: int) -> None:
        self.full = False
        self._most = most
        self._kept: List[Step] = []
        self._ring: Deque[Step] = deque()
        self._gap: Optional[Step] = None

    def push(self, step: Step, new: bool) -> None:
        """The next step.

        Args:
            new: whether it is told wherever it stands; else only if it is one of the last before something new.
        """
        if new and len(self._kept) < self._most:
            self._flush(_TAIL)
            self._kept.append(step)
            return
        self.full = self.full or new
        self._ring.append(step)
        if len(self._ring) > _LAST:
            self._leave_out(self._ring.popleft())

    def all(self) -> List[Step]:
        """What is told, when all is over."""
        self._flush(_LAST)
        return self._kept

    def _leave_out(self, step: Step) -> None:
        if self._gap is None:
            self._gap = Step("gap", None, 0, step.depth, step.number)
        if step.kind == "line" and step.function is not None:
            key = (step.function.number, step.line)
            self._gap.count[key] = self._gap.count.get(key, 0) + 1

    def _flush(self, most: int) -> None:
        while len(self._ring) > most:
            self._leave_out(self._ring.popleft())
        if self._gap is not None and self._gap.count:
            self._kept.append(self._gap)
        self._gap = None
        self._kept.extend(self._ring)
        self._ring.clear()
