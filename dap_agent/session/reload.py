"""Changed files put into a live process, and what has become of each function (`dap_agent/debuggee/reload.py`)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dap_agent.session.asker import Asker
from dap_agent.session.rendering import clip, one_line

TIMEOUT = 30.0
"""Seconds for a process to take a change: other threads of it may hold the interpreter for a while."""

_SHOWN = 30  # lines of one file


@dataclass(frozen=True)
class Changed:
    """A file that has changed on the disk, or is to be taken as if it had.

    Args:
        path: absolute.
        old: its text when the process loaded it; None if that is not known: then only functions are put in.
        new: its text now.
    """

    path: str
    old: str | None
    new: str


@dataclass(frozen=True)
class Outcome:
    """What has become of a function, class or name.

    Args:
        name: qualified.
        outcome: `swapped`, `added`, `removed` or `refused`.
        reason: why it was refused, or what else is to be known.
    """

    name: str
    outcome: str
    reason: str = ""

    @property
    def line(self) -> str:
        """As a line of text."""
        return clip(one_line(f"{self.name}: {self.outcome}" + (f" ({self.reason})" if self.reason else "")), 400)


@dataclass(frozen=True)
class FileReport:
    """What has become of a file.

    Args:
        path: absolute.
        module: names of the modules made of it; empty: none is loaded.
        functions: functions and classes that differ.
        names: constants, imports and class attributes that differ.
        error: why nothing of it is in; None: something is, or nothing differs.
    """

    path: str
    module: str
    functions: tuple[Outcome, ...] = ()
    names: tuple[Outcome, ...] = ()
    error: str | None = None

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """Of functions, classes and names."""
        return self.functions + self.names

    def lines(self, show: Callable[[str], str]) -> list[str]:
        """As text."""
        name = one_line(show(self.path))
        if self.error is not None:
            return [f"{name}: not reloaded, {one_line(self.error)}."]
        if not self.module:
            return [f"{name}: not loaded by the program; it gets the new file if it imports it."]
        if not self.outcomes:
            return [f"{name}: nothing that the program has loaded differs."]
        rest = len(self.outcomes) - _SHOWN
        more = [f"  and {rest} more"] if rest > 0 else []
        return [f"{name}:", *(f"  {each.line}" for each in self.outcomes[:_SHOWN]), *more]


@dataclass(frozen=True)
class ReloadReport:
    """What a live process has taken of a change.

    Args:
        files: each of the change.
        moved: path -> blocks of lines that old and new text share: first old line, first new line, number of lines.
    """

    files: tuple[FileReport, ...]
    moved: Mapping[str, Sequence[Sequence[int]]] = field(default_factory=dict)

    @property
    def refused(self) -> list[Outcome]:
        """What the process did not take, a whole file by its path."""
        whole = [Outcome(each.path, "refused", each.error) for each in self.files if each.error is not None]
        return whole + [one for each in self.files for one in each.outcomes if one.outcome == "refused"]

    @property
    def taken(self) -> list[Outcome]:
        """What it has taken."""
        return [one for each in self.files for one in each.outcomes if one.outcome != "refused"]

    @property
    def summary(self) -> str:
        """One sentence."""
        taken, refused = len(self.taken), len(self.refused)
        if not taken and not refused:
            return "Nothing differs of what the running program has loaded."
        if not refused:
            return f"The running program has the new code ({_names(self.taken)})."
        lacking = "; ".join(one.line.replace(": refused", "", 1) for one in self.refused[:3])
        lacking += f"; and {refused - 3} more" if refused > 3 else ""
        if not taken:
            return f"The running program keeps its old code: {lacking}."
        return f"The running program has the new code ({_names(self.taken)}) but for {lacking}."

    def text(self, show: Callable[[str], str] = str) -> str:
        """All of it, line by line.

        Args:
            show: how a path is shown.
        """
        return "\n".join(line for each in self.files for line in each.lines(show))

    def to_json(self) -> dict[str, Any]:
        """For messages (`schemas/messages.schema.json`)."""
        return {
            "summary": self.summary,
            "files": [
                {
                    "path": each.path,
                    "module": each.module,
                    "error": each.error,
                    "functions": [vars(one) for one in each.functions],
                    "names": [vars(one) for one in each.names],
                }
                for each in self.files
            ],
        }


def _names(outcomes: Sequence[Outcome]) -> str:
    names = list(dict.fromkeys(one_line(each.name) for each in outcomes))
    return clip(", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else ""), 300)


async def reload(
    asker: Asker, changes: Iterable[Changed], *, dry: bool = False, epoch: int | None = None
) -> ReloadReport:
    """Put *changes* into the process that *asker* asks, whether it stands or runs.

    Args:
        dry: only find out which files compile, and what differs.
        epoch: the stop that this is a part of.

    Raises:
        InspectionError, ProgramResumed, RequestFailed: as `Asker.ask`.
    """
    files = [{"path": each.path, "old": each.old, "new": each.new} for each in changes]
    answer = await asker.ask("reload", {"files": files, "dry": dry}, timeout=TIMEOUT, epoch=epoch)
    return ReloadReport(tuple(_file(each) for each in answer["files"]), answer["moved"])


def _file(answer: Mapping[str, Any]) -> FileReport:
    functions, names = (
        tuple(Outcome(each["name"], each["outcome"], each["reason"]) for each in answer[kind])
        for kind in ("functions", "names")
    )
    return FileReport(answer["path"], answer["module"], functions, names, answer["error"])


def relative_to(root: Path) -> Callable[[str], str]:
    """Shows paths below *root* from there."""
    return lambda path: str(Path(path).relative_to(root)) if Path(path).is_relative_to(root) else path
