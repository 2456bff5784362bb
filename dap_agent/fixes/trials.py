"""Candidates for a fix, tried on the failing call in jailed copies of the stopped program (`debuggee/trial.py`)."""

import asyncio
import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dap_agent.errors import DapAgentError
from dap_agent.fixes.edits import ChangeSet, FileChange, plan
from dap_agent.fixes.failures import UnreadableFile
from dap_agent.fixes.proposal import Edit
from dap_agent.fixes.source_text import decode, is_python
from dap_agent.fixes.workspace import Workspace
from dap_agent.session.api import InspectionError, StoppedProgram

MOST = 16
"""Candidates that are tried at once, at most."""

_MOST_TEXT = 12 * 2**20  # characters of all files of one question


@dataclass(frozen=True)
class Trial:
    """What became of one candidate.

    Args:
        verdict: `passes` (it returned where it failed before), `same failure`, `other failure`, `not reached` (none of
            the changed lines ran), `timeout`, `refused effect` (it failed because of what a jail refuses),
            `cannot be tried`.
        summary: one sentence, without a stop.
        frame: number of the frame that was called again, None if it did not come to that.
        value: what it returned, a Value of `schemas/snapshot.schema.json`.
        error: `type`, `message`, `traceback`, `where` of what it raised.
        stdout, stderr: what it printed.
        effects: sentences on what it tried to change outside.
        functions: what was changed: `name`, `file`, `swapped`, `how`.
        lines: lines of these that ran: `function`, `file`, `reached` (numbers in the new text), `lines` (how many).
        seconds: of the call.
        notes: sentences on what is to be known of it: arguments that had changed since the call began.
        isolation: how the copy was locked, as a sentence.
    """

    verdict: str
    summary: str
    frame: int | None = None
    value: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    stdout: str = ""
    stderr: str = ""
    effects: tuple[str, ...] = ()
    functions: tuple[dict[str, Any], ...] = ()
    lines: tuple[dict[str, Any], ...] = ()
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    isolation: str = ""

    def to_json(self) -> dict[str, Any]:
        """What a proposal's record keeps of it."""
        return {"verdict": self.verdict, "summary": self.summary, "frame": self.frame, "isolation": self.isolation}


async def try_fix(
    program: StoppedProgram,
    workspace: Workspace,
    candidates: Sequence[Sequence[Edit]],
    *,
    frame: int | None = None,
    timeout: float = 5.0,
) -> list[Trial]:
    """Try each candidate on the call that failed.

    Args:
        program: the stop.
        workspace: where the edits' files are; nothing is changed there.
        candidates: 1 to `MOST`, each a list of edits as in a proposal.
        frame: number of the frame to call again; None: the innermost of the user's code, then its callers as long as
            nothing of what was changed is reached.
        timeout: seconds for each call.

    Returns:
        One trial for each candidate; one that cannot be made says so.

    Raises:
        InspectionError: nothing can be tried at this stop, or the question is too big.
        ProgramResumed: the stop is over.
    """
    if not 1 <= len(candidates) <= MOST:
        raise InspectionError(f"{len(candidates)} candidates were given; 1 to {MOST} can be tried at once.")
    planned = [await asyncio.to_thread(_planned, workspace, edits) for edits in candidates]
    return await try_changes(program, planned, frame=frame, timeout=timeout)


async def try_changes(
    program: StoppedProgram,
    planned: Sequence[ChangeSet | str],
    *,
    frame: int | None = None,
    timeout: float = 5.0,
) -> list[Trial]:
    """`try_fix` with candidates whose edits are planned already; a text is why one could not be."""
    texts = _Texts()
    asked = [texts.files(changes) for changes in planned if isinstance(changes, ChangeSet)]
    found: list[dict[str, Any]] = []
    isolation = ""
    if asked:
        answer = await program.try_fix(asked, texts.packed(), frame, timeout)
        found, isolation = answer["trials"], answer["isolation"]["text"]
    trials = iter(found)
    return [
        Trial("cannot be tried", changes) if isinstance(changes, str) else _trial(next(trials), isolation)
        for changes in planned
    ]


def _planned(workspace: Workspace, edits: Sequence[Edit]) -> ChangeSet | str:
    try:
        # the debuggee compiles the texts itself, by its own grammar
        return plan(workspace, edits, check=False)
    except DapAgentError as error:
        return error.message


class _Texts:
    """The texts of all candidates' files, each once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._size = 0

    def files(self, changes: ChangeSet) -> list[dict[str, Any]]:
        """The files of a candidate, as `debuggee/trial.py` takes them."""
        return [
            {
                "path": str(change.path),
                "old": None if change.old is None else self._number(change, change.old),
                "new": self._number(change, change.new),
            }
            for change in changes.files
        ]

    def _number(self, change: FileChange, data: bytes) -> int:
        try:
            text = decode(data, change.name).text if is_python(change.path.name) else ""
        except UnreadableFile as error:
            raise InspectionError(error.message) from None
        if text not in self._numbers:
            self._size += len(text)
            if self._size > _MOST_TEXT:
                raise InspectionError("The files of the candidates are too big to be tried at once: try fewer.")
            self._numbers[text] = len(self._numbers)
        return self._numbers[text]

    def packed(self) -> list[str]:
        """All of them, for the way to the debuggee."""
        return [base64.b64encode(zlib.compress(text.encode("utf-8", "replace"))).decode() for text in self._numbers]


def _trial(told: dict[str, Any], isolation: str) -> Trial:
    return Trial(
        told["verdict"],
        told["summary"].rstrip("."),
        told["frame"],
        told["value"],
        told["error"],
        told["stdout"],
        told["stderr"],
        tuple(told["effects"]),
        tuple(told["functions"]),
        tuple(told["lines"]),
        told["seconds"],
        tuple(told["notes"]),
        isolation,
    )
