"""Where something in a trace is so for the first time: where a value changes, and where a condition holds."""

from __future__ import annotations

import types
from typing import Any, Dict, List, Optional, Tuple

from . import paths, reading
from .alarm import TimeUp
from .steps import Step
from .values import Formatter, Limits

_SHOWN = Limits(text=300, string=200, items=12, depth=3, nodes=60)
_MOST = 5  # changes that are told

identity: Any = object.__hash__  # id() is an audit event, which the jail listens to

_PLAIN = frozenset(map(identity, (int, float, bool, str, bytes, complex, type(None), range)))


class FirstChange:
    """Where a value changes.

    Args:
        path: the name of a local variable, which is each call's own, or a path that leads to an object of all.
        formatter: shows values.

    Attributes:
        began: where it was set or given first.
        changes: the first changes after that: `before`, `value` and the place.
        count: all changes.
        other_type: where it, in whatever call, first had a value of another type than before.
    """

    def __init__(self, path: str, formatter: Formatter) -> None:
        self.began: Optional[Dict[str, Any]] = None
        self.changes: List[Dict[str, Any]] = []
        self.count = 0
        self.other_type: Optional[Dict[str, Any]] = None
        self._path = path
        steps = paths.parse(path)
        self._root = steps[0][1] if len(steps) > 1 else ""
        self._formatter = formatter
        self._last: Optional[Dict[str, Any]] = None
        self._shared: Dict[int, Tuple[Any, Any]] = {}  # of a path: its root object -> what was there

    def look(self, call: Any, frame: types.FrameType, held: Dict[str, Any], step: Step) -> None:
        """A step is over.

        Args:
            call: keeps for us what was seen in it, in `watched`.
            frame, held: its frame and local variables.
            step: the one.
        """
        root: Any = None
        if self._root:
            try:
                root = paths.follow(self._root, held, frame.f_globals).value
                value = paths.follow(self._path, held, frame.f_globals).value
            except paths.NotThere:
                return
            before = self._shared[identity(root)][1] if identity(root) in self._shared else None
        else:
            value = held.get(self._path, reading.MISSING)
            if value is reading.MISSING:
                return
            before = call.watched
        if before is not None and before[0] is value and is_plain(value):
            return
        shown = self._formatter.value(value, self._path.rpartition(".")[2], _SHOWN)
        if before is not None and alike(before[1], shown):
            return
        if self._root:
            self._shared[identity(root)] = (root, (value, shown))
        else:
            call.watched = (value, shown)
        self._note(step, before, shown)

    def _note(self, step: Step, before: Any, shown: Dict[str, Any]) -> None:
        if self._last is not None and self.other_type is None and self._last["type"] != shown["type"]:
            self.other_type = {**step.place(), "before": self._last, "value": shown}
        self._last = shown
        if before is None:
            self.began = self.began or {**step.place(), "value": shown}
            return
        self.count += 1
        if len(self.changes) < _MOST:
            self.changes.append({**step.place(), "before": before[1], "value": shown})


class When:
    """Where a condition holds.

    Args:
        condition: compiled. It is the model's code, and may run the program's.
        formatter: shows values.
        notes: is told of an error in it.

    Attributes:
        first: where it held first, and the values that it is about.
        count: at how many steps.
        holding: whether it held after the last one.
    """

    def __init__(self, condition: types.CodeType, formatter: Formatter, notes: List[str]) -> None:
        self.first: Optional[Dict[str, Any]] = None
        self.count = 0
        self._condition = condition
        self._formatter = formatter
        self._notes = notes
        self._failed = False
        self.holding = False

    def ask(self, frame: types.FrameType, held: Dict[str, Any], step: Step) -> None:
        """Find out whether it holds after *step*; it is marked (`holds`) if so, and where that ends."""
        try:
            holds = bool(eval(self._condition, frame.f_globals, held))
        except TimeUp:
            raise
        except NameError:
            holds = False  # it is about another function's variables, or about some that have no value yet
        except BaseException as error:  # the condition's own, whatever it is
            holds = False
            if not self._failed:
                self._failed = True
                where = "line %d of %s" % (step.line, step.function.name if step.function else "?")
                self._notes.append("The condition raised %s at %s." % (reading.type_name(type(error)), where))
        step.holds = holds or self.holding
        self.holding = holds
        if holds:
            self.count += 1
            if self.first is None:
                names = [name for name in self._condition.co_names if name in held]
                values = [{"name": n, "value": self._formatter.value(held[n], n, _SHOWN)} for n in names]
                self.first = {**step.place(), "values": values}


def is_plain(value: Any) -> bool:
    """Whether it cannot change in place."""
    return identity(type(value)) in _PLAIN


def alike(one: Dict[str, Any], other: Dict[str, Any]) -> bool:
    """Whether two values are shown the same."""
    return one["text"] == other["text"] and one["type"] == other["type"] and one.get("length") == other.get("length")
