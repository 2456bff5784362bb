"""The report of one run as JSON: `schemas/report.schema.json`."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dap_agent.errors import DapAgentError
from dap_agent.session.redaction import mask_json

if TYPE_CHECKING:
    from dap_agent.agent.outcome import Outcome
    from dap_agent.session.snapshot import Snapshot

VERSION = 1


@dataclass
class Report:
    """What is known of a run so far; the run fills it in.

    Args:
        program: how it was started, or what was attached to.
        exit_status: the exit status of dap-agent.
        program_status: the program's own exit status, negative for a signal; None if it is not known.
        crash: the first stop's snapshot.
        stops: the headlines of all stops, the first included.
        outcome: of the investigation, None if there was none.
        applied: the files a fix was written to, relative to the workspace.
        reloaded: what the live program has taken of the fix.
        continued: what became of `--continue`.
        rerun: how the program did after the fix.
        prompt: what `--show-prompt` printed.
        journal: the investigation's file.
        error: what kept dap-agent from its work.
    """

    program: dict[str, Any]
    exit_status: int = 0
    program_status: int | None = None
    crash: "Snapshot | None" = None
    stops: list[str] = field(default_factory=list)
    outcome: "Outcome | None" = None
    applied: tuple[str, ...] = ()
    reloaded: dict[str, Any] | None = None
    continued: dict[str, Any] | None = None
    rerun: dict[str, Any] | None = None
    prompt: str | None = None
    journal: Path | None = None
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The document, masked once more: the program's arguments did not pass through the debuggee's masking."""
        outcome = self.outcome
        verdict = outcome.verdict if outcome else None
        document: dict[str, Any] = {
            "version": VERSION,
            "program": self.program,
            "exit_status": self.exit_status,
            "program_status": self.program_status,
            "crash": self.crash.data if self.crash else None,
            "stops": self.stops,
            "outcome": None,
            "proposal": outcome.proposal.to_json() if outcome and outcome.proposal else None,
            "diff": outcome.changes.diff() if outcome and outcome.changes else None,
            "verdict": None,
            "trial": outcome.trial.to_json() if outcome and outcome.trial else None,
            "applied": list(self.applied),
            "reloaded": self.reloaded,
            "continued": self.continued,
            "rerun": self.rerun,
            "usage": None,
            "cost": outcome.cost if outcome else None,
            "prompt": self.prompt,
            "journal": str(self.journal) if self.journal else None,
            "error": self.error,
        }
        if outcome:
            document["outcome"] = {
                "status": outcome.status,
                "explanation": outcome.explanation,
                "turns": outcome.turns,
                "seconds": round(outcome.seconds, 3),
            }
            document["usage"] = outcome.usage.to_json()
        if verdict:
            from dap_agent.agent.report import verdict_json

            document["verdict"] = verdict_json(verdict)
        masked: dict[str, Any] = mask_json(document)
        return masked


class StandardOutput:
    """Standard output kept for the report: all else that writes there, the program too, goes to standard error."""

    def __init__(self) -> None:
        self._kept = os.dup(1)
        os.set_inheritable(self._kept, False)
        os.dup2(2, 1)

    def write(self, text: str) -> None:
        """Write to the real standard output."""
        data = text.encode()
        while data:
            data = data[os.write(self._kept, data) :]

    def close(self) -> None:
        """Put standard output back; a second call does nothing."""
        if self._kept >= 0:
            os.dup2(self._kept, 1)
            os.close(self._kept)
            self._kept = -1


def write(report: Report, target: str, stdout: StandardOutput | None) -> None:
    """Write the report.

    Args:
        report: what to write.
        target: a file, or `-` for *stdout*.
        stdout: the real standard output.

    Raises:
        DapAgentError: it cannot be written.
    """
    text = json.dumps(report.to_json(), indent=2) + "\n"
    try:
        if target == "-":
            assert stdout is not None, "--json - keeps standard output from the beginning"
            stdout.write(text)
        else:
            path = Path(target)
            temporary = path.with_name(f".{path.name}.{os.getpid()}")
            # values of the program may be in it: for the user alone, like a journal
            with os.fdopen(
                os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
            ) as file:
                file.write(text)
            temporary.replace(path)
    except OSError as error:
        raise DapAgentError(f"The report cannot be written to {target}: {error.strerror or error}.") from error
