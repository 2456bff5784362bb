"""What the language server knows of debug sessions, live and over, as far as lenses and actions follow from it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Stop:
    """An exception stop.

    Args:
        path: of the file, links resolved; None if there is none.
        line: from 0, in the file as it was at the stop.
        headline: type and message.
        frames: number in the snapshot, path and line (from 0) of the user's frames, innermost first.
        current: the program stands there.
        text: what the file held then; None: nothing is known of that.
    """

    path: str | None
    line: int
    headline: str
    frames: tuple[tuple[int, str, int], ...]
    current: bool
    text: str | None = field(default=None, compare=False, repr=False)

    def is_at(self, other: "Stop | None") -> bool:
        """Whether another one is at the same place with the same exception."""
        return other is not None and (self.path, self.line, self.headline) == (other.path, other.line, other.headline)

    def with_text(self, *others: "Stop | None") -> "Stop":
        """With what its file holds: as one of *others* at the same place knows it, else as it is now."""
        known = next((one.text for one in others if one is not None and one.text is not None and self.is_at(one)), None)
        if known is None and self.path is not None:
            known = read(self.path)
        return replace(self, text=known)


@dataclass(frozen=True)
class FixFile:
    """One file of a fix.

    Args:
        path: links resolved.
        old: its text when the fix was made; None: there was no such file.
        new: its text with the fix; None: it is no text.
    """

    path: str
    old: str | None
    new: str | None


@dataclass(frozen=True)
class Fix:
    """A fix.

    Args:
        id: of its investigation.
        title: of people's.
        root: of the workspace.
        proved: its regression test was red before and green after.
        applied: it is in the files.
        files: what it changes; empty if that is not known (any more).
        stop: the exception that it is for.
    """

    id: str
    title: str
    root: str
    proved: bool
    applied: bool
    files: tuple[FixFile, ...]
    stop: Stop | None


@dataclass(frozen=True)
class Working:
    """An investigation that runs.

    Args:
        id: of the investigation.
        task: `autodebug` or `ask`.
        message: its newest step.
    """

    id: str
    task: str
    message: str


@dataclass(frozen=True)
class Session:
    """A debug session.

    Args:
        id: its name.
        live: it goes on; else this is what was kept of it.
        program: what it does: `starting`, `running`, `stopped`, `ended`.
        workspace: its folders.
        stop: its newest exception.
        working: the investigation that runs.
        fix: the newest.
    """

    id: str
    live: bool
    program: str
    workspace: tuple[str, ...]
    stop: Stop | None = None
    working: Working | None = None
    fix: Fix | None = None

    @property
    def shown(self) -> Stop | None:
        """The exception that there is something to say of: the program stands there, or has ended of it."""
        return self.stop if self.stop is not None and (self.stop.current or self.program == "ended") else None

    def with_status(self, status: Mapping[str, Any]) -> "Session":
        """As the session's `state` says now (`schemas/control.schema.json`, `status`)."""
        working, fix, stop = status["working"], self.fix, parse_stop(status["stop"])
        if fix is not None:
            given = status["proposal"]
            fix = replace(fix, applied=given["applied"]) if given is not None and given["id"] == fix.id else fix
        return replace(
            self,
            program=status["program"],
            workspace=tuple(status["workspace"]) or self.workspace,
            stop=stop.with_text(self.stop) if stop is not None else None,
            working=Working(working["id"], working["task"], working["message"]) if working else None,
            fix=fix,
        )

    def with_step(self, message: str) -> "Session":
        """With the newest step of the investigation that runs."""
        return self if self.working is None else replace(self, working=replace(self.working, message=message))


def parse_stop(data: Mapping[str, Any] | None) -> Stop | None:
    """A `stop` of the schema."""
    if data is None:
        return None
    return Stop(
        path=real(data["path"]) if data["path"] is not None else None,
        line=max((data["line"] or 1) - 1, 0),
        headline=data["headline"],
        frames=tuple(
            (frame["number"], real(frame["path"]), max((frame["line"] or 1) - 1, 0)) for frame in data["frames"]
        ),
        current=data["current"],
    )


def parse_fix(data: Mapping[str, Any]) -> Fix:
    """A `proposal` of the schema."""
    return Fix(
        id=data["id"],
        title=data["title"],
        root=data["root"],
        proved=data["proved"],
        applied=data["applied"],
        files=tuple(FixFile(real(file["path"]), file["oldText"], file["newText"]) for file in data["files"]),
        stop=parse_stop(data["stop"]),
    )


def read(path: str) -> str | None:
    """The text of a file; None if there is none, or it is no text."""
    from dap_agent.fixes.failures import UnreadableFile
    from dap_agent.fixes.source_text import decode

    try:
        return decode(Path(path).read_bytes(), path).text
    except (OSError, UnreadableFile):
        return None


def real(path: str) -> str:
    """A path by which files are compared."""
    return os.path.realpath(path)
