"""What has to be said again to a fresh adapter so that the program starts as it did, and under which numbers."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

# Requests that configure a session: a later one replaces an earlier one of the same key (`key_of`).
SETTINGS = frozenset(
    {
        "setBreakpoints",
        "setDataBreakpoints",
        "setDebuggerProperty",
        "setExceptionBreakpoints",
        "setFunctionBreakpoints",
        "setInstructionBreakpoints",
        "setPydevdSourceMap",
    }
)


MAX_SETTINGS = 10_000  # files with breakpoints; of a client that sets more, the oldest are not set again


class Record:
    """The client's words up to now.

    Attributes:
        initialize: arguments of its `initialize`.
        command: `launch` or `attach`; empty before that.
        given: its arguments, without our key.
        arguments: of that, as the adapter was told.
    """

    def __init__(self) -> None:
        self.initialize: dict[str, Any] = {}
        self.command = ""
        self.given: dict[str, Any] = {}
        self.arguments: dict[str, Any] = {}
        self._settings: dict[str, tuple[str, dict[str, Any]]] = {}

    def setting(self, command: str, arguments: Mapping[str, Any]) -> None:
        """Keep a request of `SETTINGS`."""
        key = key_of(command, arguments)
        self._settings.pop(key, None)  # the order is that of the last words
        self._settings[key] = (command, dict(arguments))
        if len(self._settings) > MAX_SETTINGS:
            del self._settings[next(iter(self._settings))]

    def settings(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Key, command and arguments of all that was set."""
        for key, (command, arguments) in self._settings.items():
            yield key, command, arguments


def key_of(command: str, arguments: Mapping[str, Any]) -> str:
    """What a request of `SETTINGS` sets: the breakpoints of a file are set apart from those of another."""
    if command not in ("setBreakpoints", "setPydevdSourceMap"):
        return command
    source = arguments.get("source")
    path = source.get("path") if isinstance(source, dict) else None
    return f"{command} {path}" if isinstance(path, str) else f"{command} {json.dumps(source, sort_keys=True)}"


class BreakpointIds:
    """Keeps the breakpoints' ids valid for a client whose adapter has been replaced by one that counts anew."""

    def __init__(self) -> None:
        self._offset = 0  # added to the ids of the adapter of now
        self._same: dict[int, int] = {}  # its ids -> those under which the client knows the same breakpoints
        self._known: dict[str, list[dict[str, Any]]] = {}  # setting's key -> breakpoints as the client knows them
        self._next = 0

    @property
    def differ(self) -> bool:
        """Whether the client knows other ids than the adapter."""
        return self._offset > 0 or bool(self._same)

    def fresh(self) -> None:
        """The adapter has been replaced."""
        self._offset = self._next
        self._same.clear()

    def told(self, key: str, breakpoints: object) -> object:
        """The answer to a setting of the client's: its breakpoints as the client may see them."""
        if not isinstance(breakpoints, list):
            return breakpoints
        shown = [self.shown(one) for one in breakpoints]
        self._known[key] = [one if isinstance(one, dict) else {} for one in shown]
        if len(self._known) > MAX_SETTINGS:
            del self._known[next(iter(self._known))]
        numbers = [one["id"] for one in self._known[key] if type(one.get("id")) is int]
        self._next = max([self._next, *(number + 1 for number in numbers)])
        return shown

    def repeated(self, key: str, breakpoints: object) -> list[dict[str, Any]]:
        """The answer to a repeated setting; gives those breakpoints that have changed, as the client may see them."""
        changed = []
        answered = breakpoints if isinstance(breakpoints, list) else []
        for known, one in zip(self._known.get(key, []), answered, strict=False):
            number = one.get("id") if isinstance(one, dict) else None
            if type(number) is not int or type(known.get("id")) is not int:
                continue
            self._same[number] = known["id"]
            if any(one.get(name) != known.get(name) for name in ("verified", "line")):
                known.update(one, id=known["id"])
                changed.append(dict(known))
        return changed

    def shown(self, breakpoint_: object) -> object:
        """A breakpoint with the id under which the client knows it."""
        if not isinstance(breakpoint_, dict) or type(breakpoint_.get("id")) is not int:
            return breakpoint_
        return {**breakpoint_, "id": self.number(breakpoint_["id"])}

    def number(self, number: int) -> int:
        """The client's id for the adapter's."""
        return self._same.get(number, number + self._offset)
