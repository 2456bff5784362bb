"""The client's breakpoints after the program was given changed files: set again where their lines are now.

Pure, as the core is.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from dap_agent.proxy.core import Proxy
from dap_agent.proxy.effects import Effect
from dap_agent.proxy.restart import BreakpointIds, Record
from dap_agent.wire.messages import Message, body_of, event

Blocks = Sequence[Sequence[int]]
"""Lines that an old and a new text share: first old line, first new line (from 1), number of lines."""

_SET = "setBreakpoints"


class Moved:
    """The policy of one session.

    Args:
        core: the session.
        record: what the client has set.
        ids: the breakpoints' ids.

    Attributes:
        clock: gives the time in seconds, as files' times of change are counted; to be set before the client is served.
        real: gives the path that a path leads to; likewise.
    """

    def __init__(self, core: Proxy, record: Record, ids: BreakpointIds) -> None:
        self.clock: Callable[[], float] = lambda: 0.0
        self.real: Callable[[str], str] = str
        self._core = core
        self._record = record
        self._ids = ids
        self._set: dict[str, float] = {}  # key of a setting -> when the client has set it

    def was_set(self, key: str) -> None:
        """The client has set the breakpoints of a file."""
        self._set.pop(key, None)
        self._set[key] = self.clock()
        if len(self._set) > len(list(self._record.settings())) + 100:
            del self._set[next(iter(self._set))]

    def after(self, moved: Mapping[str, Blocks], changed: Mapping[str, float]) -> list[Effect]:
        """The program has new code.

        Args:
            moved: path of a file -> what its texts share.
            changed: path -> when the file was changed: a client that has set its breakpoints since has moved them
                itself (an editor moves them with the text).
        """
        if self._core.gone is not None:
            return []
        effects: list[Effect] = []
        for key, command, arguments in list(self._record.settings()):
            source, lines = arguments.get("source"), arguments.get("breakpoints")
            path = source.get("path") if command == _SET and isinstance(source, dict) else None
            if not isinstance(path, str) or not isinstance(lines, list) or not lines:
                continue
            real = self.real(path)
            found = next((each for each in moved if path == each or real == self.real(each)), None)
            if found is None:
                continue
            if self._set.get(key, 0.0) <= changed.get(found, float("inf")):
                arguments = {**arguments, "breakpoints": [_shifted(each, moved[found]) for each in lines]}
                arguments.pop("lines", None)  # the same in the manner of old clients
                self._record.setting(command, arguments)
            # also where no line has moved: the debugger has decided for each code object whether to stop in it
            effects.append(self._core.tell_adapter(_SET, arguments, partial(self._answered, key)))
        return effects

    def _answered(self, key: str, answer: Message | None) -> list[Effect]:
        changed = self._ids.repeated(key, body_of(answer or {}).get("breakpoints"))
        bodies = [{"reason": "changed", "breakpoint": one} for one in changed]
        return [effect for body in bodies for effect in self._core.tell_client(event("breakpoint", body))]


def _shifted(breakpoint_: Any, blocks: Blocks) -> Any:
    if not isinstance(breakpoint_, dict) or type(breakpoint_.get("line")) is not int:
        return breakpoint_
    return {**breakpoint_, "line": new_line(breakpoint_["line"], blocks)}


def new_line(line: int, blocks: Blocks) -> int:
    """Where a line of the old text is in the new one; of a line that is gone, the place that it had."""
    old_end, new_end = 1, 1  # the first lines after the block before
    for old, new, size in blocks:
        if line < old:
            return max(1, min(new_end + line - old_end, max(new - 1, new_end)))
        if line < old + size:
            return new + line - old
        old_end, new_end = old + size, new + size
    return max(1, new_end + line - old_end)
