"""What has happened in one debug session, for the user to read again."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from dap_agent.control.work import Work
from dap_agent.session.rendering import clip, one_line

Kind = Literal["stop", "end", "restart", "autodebug", "ask", "result", "apply", "undo", "reload"]

_MOST = 1000  # of a program that stops for hours the newest are kept
_VERBS = {
    "stop": "stopped at",
    "end": "",
    "restart": "",
    "autodebug": "looked for a fix of",
    "ask": "asked",
    "result": " ",
    "apply": "applied to",
    "undo": "took back",
    "reload": "",
}


@dataclass(frozen=True)
class Entry:
    """One thing that has happened.

    Args:
        time: of the day, `HH:MM:SS`.
        kind: what it was.
        text: more about it, in one line.
        journal: the id of the investigation it belongs to; may be empty.
    """

    time: str
    kind: Kind
    text: str
    journal: str = ""


class History:
    """The newest entries of a session, oldest first."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def add(self, kind: Kind, text: str, journal: str = "") -> None:
        """Note what has just happened."""
        now = datetime.now().astimezone().strftime("%H:%M:%S")
        self.entries.append(Entry(now, kind, clip(one_line(text.strip().split("\n")[0]), 200), journal))
        del self.entries[:-_MOST]

    def ended(self, work: Work) -> None:
        """Note how an investigation has ended."""
        outcome = work.outcome
        if work.failure is not None or outcome is None:
            text = work.failure or ""
        elif outcome.proposal is not None:
            verdict = outcome.verdict.kind if outcome.verdict is not None else "not tried"
            text = f"proposed: {outcome.proposal.title} ({verdict})"
        else:
            text = f"{outcome.status}: {outcome.explanation}"
        self.add("result", text, work.id)

    def lines(self) -> list[str]:
        """The entries for a reader."""
        return [
            f"{entry.time}  {' '.join(filter(None, (_VERBS[entry.kind], entry.text)))}"
            + (f"  [{entry.journal}]" if entry.journal else "")
            for entry in self.entries
        ]
