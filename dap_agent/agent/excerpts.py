"""Source of the program's files, read on this side: the snapshot carries it for the failing frame only."""

import tokenize
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dap_agent.errors import DapAgentError
from dap_agent.session.redaction import mask_snapshot

if TYPE_CHECKING:
    from dap_agent.fixes.workspace import Workspace

_LARGEST = 2_000_000


def read_source(workspace: "Workspace", file: str) -> str:
    """The text of a file on the stack, newlines as \\n; it may lie outside of the workspace, but is no secret file.

    Args:
        workspace: a file in it counts as seen by the model.
        file: absolute path.

    Raises:
        DapAgentError: it cannot be read.
    """
    from dap_agent.fixes.failures import OutsideWorkspace, UnreadableFile

    try:
        return workspace.read(file)
    except OutsideWorkspace:
        path = Path(file)
        try:
            if not path.is_absolute() or not path.is_file() or path.stat().st_size > _LARGEST:
                raise UnreadableFile(f"{file} cannot be read: it is no source file of at most 2 MB.") from None
            with tokenize.open(path) as stream:
                return stream.read()
        except (OSError, SyntaxError, ValueError) as error:
            raise UnreadableFile(f"{file} cannot be read as Python source: {error}.") from error


class Excerpts:
    """Pieces of files for the prompt; reads each file once.

    Args:
        workspace: see `read_source`.
    """

    def __init__(self, workspace: "Workspace") -> None:
        self._workspace = workspace
        self._texts: dict[str, str | None] = {}

    def around(self, frame: dict[str, Any], before: int = 3, after: int = 3) -> dict[str, Any] | None:
        """The lines around a frame's line, as a frame's `source`; None if the file cannot be read."""
        return self._lines(frame, frame["line"] - before, frame["line"] + after)

    def function(self, frame: dict[str, Any], longest: int = 80) -> dict[str, Any] | None:
        """The frame's whole function; of a longer one the part around the line."""
        text = self._text(frame["file"])
        bounds = _function_bounds(text, frame["line"]) if text is not None else None
        if bounds is None:
            return self.around(frame, 10, 10)
        first, last = bounds
        if last - first >= longest:
            first = max(first, frame["line"] - longest * 2 // 3)
            last = min(last, first + longest - 1)
        return self._lines(frame, first, last)

    def _lines(self, frame: dict[str, Any], first: int, last: int) -> dict[str, Any] | None:
        text = self._text(frame["file"])
        lines = text.split("\n") if text is not None else []
        if not 1 <= frame["line"] <= len(lines):
            return None  # no file, or no longer the one that runs
        first = max(1, first)
        source: dict[str, Any] = mask_snapshot({"first_line": first, "lines": lines[first - 1 : last]})
        return source

    def _text(self, file: str) -> str | None:
        if file not in self._texts:
            try:
                self._texts[file] = read_source(self._workspace, file)
            except DapAgentError:
                self._texts[file] = None  # the prompt goes without it
        return self._texts[file]


def _function_bounds(text: str, line: int) -> tuple[int, int] | None:
    from dap_agent.fixes.symbols import module

    try:
        found = module(text).definitions
    except DapAgentError:
        return None
    around = [
        definition
        for definitions in found.values()
        for definition in definitions
        if definition.kind == "function" and definition.first_line <= line <= definition.last_line
    ]
    if not around:
        return None
    innermost = max(around, key=lambda definition: definition.first_line)
    return innermost.first_line, innermost.last_line
