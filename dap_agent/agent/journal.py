"""The journal: what was asked, answered, tried and found in one investigation, one JSON record a line.

`schemas/journal.schema.json` describes the records. Each one is written and flushed at once, so that the file is whole
up to the moment of a crash. Secrets are masked in it. `scripted:FILE` plays a journal's turns again.
"""

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TextIO

from dap_agent import __version__
from dap_agent.errors import DapAgentError
from dap_agent.models.base import Usage
from dap_agent.session.paths import state_dir
from dap_agent.session.redaction import mask_code, mask_json, mask_known, mask_text

VERSION = 1

# The model's words are kept as they are, so that they can be played again: it has seen masked text only. What it was
# sent is masked already; as code, so that the journal holds exactly what was sent.
_MASKS = {"turn": mask_known, "call": mask_known, "proposal": mask_known, "prompt": mask_code, "result": mask_code}


class JournalError(DapAgentError):
    """A journal cannot be made, found or read."""


class Journal:
    """One investigation's file, open for appending.

    The record `end` closes the investigation; `applied`, `continued` and `rerun` may follow it, since the user decides
    later.

    Args:
        path: the file.
        stream: the file, open for appending text.

    Attributes:
        trouble: the sentence that says why the file is not complete.
        ended: whether the record `end` was written.
    """

    def __init__(self, path: Path, stream: TextIO) -> None:
        self.path = path
        self.trouble: str | None = None
        self.ended = False
        self._stream = stream

    @property
    def id(self) -> str:
        """The short name that `dap-agent journal show` takes."""
        return self.path.stem.rpartition("-")[2]

    @classmethod
    def create(
        cls,
        workspace_root: Path,
        *,
        model: str = "",
        command: Sequence[str] = (),
        headline: str = "",
        python: str = "",
        cwd: str = "",
        directory: Path | None = None,
    ) -> "Journal":
        """A new journal with its `start` record, readable by the user alone.

        Args:
            workspace_root: the folder under investigation.
            model: the backend's name.
            command: the command that started the program.
            headline: the exception in one line.
            python: the debuggee's interpreter.
            cwd: the folder that *command* was given in.
            directory: where to put the file; default: `journal` in the state directory.

        Raises:
            JournalError: the file cannot be made.
        """
        now = datetime.now(timezone.utc)
        name = f"{now:%Y%m%dT%H%M%S}-{secrets.token_hex(4)}.jsonl"
        try:
            path = (directory if directory is not None else directory_of_journals()) / name
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        except OSError as error:
            raise JournalError(
                f"The journal {error.filename or name} cannot be made ({error.strerror or error}); "
                "set DAP_AGENT_STATE_DIR to a folder you may write."
            ) from error
        journal = cls(path, os.fdopen(descriptor, "w", encoding="ascii"))
        journal.write(
            "start",
            version=VERSION,
            dap_agent=__version__,
            workspace=str(workspace_root),
            model=model,
            command=list(command),
            headline=headline,
            python=python,
            cwd=cwd,
        )
        return journal

    def write(self, kind: str, **fields: Any) -> None:
        """Append one record of *kind* with *fields* (JSON values), masked and flushed.

        A full disk does not end an investigation: the first failure is kept in `trouble`, nothing more is written.
        """
        if self.trouble is not None or self._stream.closed:
            return
        self.ended = self.ended or kind == "end"
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        record = {"t": now, "kind": kind, **mask_json(fields, _MASKS.get(kind, mask_text))}
        try:
            self._stream.write(json.dumps(record) + "\n")
            self._stream.flush()
        except OSError as error:
            self.trouble = f"The journal {self.path} is not complete: {error.strerror or error}."

    def applied(self, files: Sequence[str]) -> None:
        """Note that the fix was written to *files* (paths relative to the workspace)."""
        self.write("applied", files=list(files))

    def failed(self, why: str) -> None:
        """Note that the investigation could not begin, if it has not."""
        if not self.ended:
            usage = Usage().to_json()
            zero = {"verdict": None, "usage": usage, "cost": 0.0, "turns": 0, "seconds": 0.0}
            self.write("end", status="failed", explanation=why, **zero)

    def continued(self, allowed: bool, text: str) -> None:
        """Note what became of the call that was to be made again in the live program."""
        self.write("continued", allowed=allowed, text=text)

    def rerun(self, exit_status: int, passed: bool) -> None:
        """Note how the program ended when it was run again."""
        self.write("rerun", exit_status=exit_status, passed=passed)

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        try:
            self._stream.close()
        except OSError as error:
            self.trouble = self.trouble or f"The journal {self.path} is not complete: {error.strerror or error}."

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class JournalInfo:
    """One line of the list of journals.

    Args:
        path: the file.
        id: its short name.
        began: ISO time, UTC.
        workspace: the folder under investigation.
        model: the backend's name.
        headline: the exception in one line.
        status: of the `end` record; `unfinished` when there is none.
        verdict: of the last proposal that was tried, None if none was.
        applied: whether the fix was written to the user's files.
        turns: model calls.
        tokens: prompt and output tokens.
        cost: US dollars, None if unknown.
        seconds: the investigation's duration.
    """

    path: Path
    id: str
    began: str
    workspace: str
    model: str
    headline: str
    status: str
    verdict: str | None
    applied: bool
    turns: int
    tokens: int
    cost: float | None
    seconds: float


def directory_of_journals() -> Path:
    """The folder that holds the journals; it may not exist yet."""
    return state_dir() / "journal"


def list_journals(directory: Path | None = None) -> list[JournalInfo]:
    """All journals, newest first; files that are no journals are left out."""
    folder = directory if directory is not None else directory_of_journals()
    if not folder.is_dir():
        return []
    found = []
    for path in sorted(folder.glob("*.jsonl"), key=lambda path: path.name, reverse=True):
        try:
            found.append(info(path))
        except JournalError:
            continue  # a foreign or damaged file must not hide the rest
    return found


def find(name: str, directory: Path | None = None) -> Path:
    """The journal with the file path, the id, the beginning of an id, or `last`.

    Raises:
        JournalError: there is none, or more than one.
    """
    as_path = Path(name)
    if as_path.is_file():
        return as_path
    folder = directory if directory is not None else directory_of_journals()
    paths = sorted(folder.glob("*.jsonl"), key=lambda path: path.name) if folder.is_dir() else []
    if name == "last" and paths:
        return paths[-1]
    matching = [path for path in paths if name and (path.stem.rpartition("-")[2].startswith(name) or path.stem == name)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise JournalError(
            f"{len(matching)} journals begin with {name!r}; give more of the id (dap-agent journal list)."
        )
    raise JournalError(f"There is no journal {name!r} in {folder}; dap-agent journal list shows the ids.")


def read(path: Path) -> list[dict[str, Any]]:
    """The records of a journal; a last line that a crash cut short is left out.

    Raises:
        JournalError: the file cannot be read or is no journal.
    """
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").rstrip("\n").split("\n")
    except OSError as error:
        raise JournalError(f"The journal {path} cannot be read: {error.strerror or error}.") from error
    records: list[dict[str, Any]] = []
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
        except ValueError as error:
            if number == len(lines) and records:
                break
            raise JournalError(f"{path} is no journal: line {number} is not JSON.") from error
        if not isinstance(record, dict) or not isinstance(record.get("kind"), str):
            raise JournalError(f"{path} is no journal: line {number} has no kind.")
        records.append(record)
    if not records or records[0]["kind"] != "start":
        raise JournalError(f"{path} is no journal: it does not begin with a start record.")
    return records


def info(path: Path) -> JournalInfo:
    """The summary of one journal.

    Raises:
        JournalError: see `read`.
    """
    records = read(path)
    try:
        return _info(path, records)
    except (KeyError, TypeError, ValueError) as error:
        raise JournalError(f"{path} is no journal that this version understands ({error!r}).") from error


def _info(path: Path, records: list[dict[str, Any]]) -> JournalInfo:
    start = records[0]
    turns = [record for record in records if record["kind"] == "turn"]
    verdicts = [record for record in records if record["kind"] == "verdict"]
    end = next((record for record in records if record["kind"] == "end"), None)
    usage: Mapping[str, Any] = end["usage"] if end else {}
    return JournalInfo(
        path=path,
        id=path.stem.rpartition("-")[2],
        began=str(start.get("t", "")),
        workspace=str(start.get("workspace", "")),
        model=str(start.get("model", "")),
        headline=str(start.get("headline", "")),
        status=str(end["status"]) if end else "unfinished",
        verdict=str(verdicts[-1]["verdict"]) if verdicts else None,
        applied=any(record["kind"] == "applied" for record in records),
        turns=len(turns),
        tokens=int(usage.get("input_tokens", 0)) + int(usage.get("output_tokens", 0)),
        cost=end["cost"] if end else None,
        seconds=float(end["seconds"]) if end else 0.0,
    )


def show(path: Path) -> str:
    """A journal for a reader at a terminal, without colours.

    Raises:
        JournalError: see `read`.
    """
    from dap_agent.session.rendering import clean

    records = read(path)
    try:
        return "\n".join(clean(_line(record)) for record in records)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise JournalError(f"{path} is no journal that this version understands ({error!r}).") from error


def _line(record: dict[str, Any]) -> str:
    kind, time = record["kind"], str(record.get("t", ""))[11:19]
    if kind == "start":
        text = f"{record['headline']}\n  workspace {record['workspace']}, model {record['model'] or '(none)'}"
    elif kind == "prompt":
        text = _indented(record["message"])
    elif kind == "turn":
        text = f"{record['number']}, {record['seconds']:.1f} s" + _indented(record["turn"].get("text", ""))
    elif kind == "call":
        text = f"{record['name']} " + json.dumps(record["arguments"], ensure_ascii=False)
    elif kind == "result":
        text = f"{record['name']}{' (error)' if record['error'] else ''}" + _indented(record["content"])
    elif kind == "proposal":
        text = record["proposal"]["title"] + _indented(record["diff"])
        if record.get("trial"):
            text += _indented(f"trial: {record['trial']['verdict']}: {record['trial']['summary']}")
    elif kind == "verdict":
        text = f"{record['verdict']}: {record['summary']}"
    elif kind == "applied":
        text = ", ".join(record["files"])
    elif kind == "continued":
        text = str(record["text"])
    elif kind == "rerun":
        text = f"exit status {record['exit_status']}, {'passed' if record['passed'] else 'failed'}"
    elif kind == "end":
        cost = "cost unknown" if record["cost"] is None else f"${record['cost']:.4f}"
        text = f"{record['status']}, {record['turns']} turns, {cost}, {record['seconds']:.1f} s" + _indented(
            record["explanation"]
        )
    else:
        text = str(record.get("message", ""))
    return f"{time} {kind}: {text}"


def _indented(text: str) -> str:
    return "".join(f"\n    {line}" for line in text.splitlines())
