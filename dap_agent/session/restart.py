"""A call on the stack of a stopped program that is made again: what the rehearsal has told of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dap_agent.session.rendering import clip, one_line

LIMIT = 5.0
"""Seconds that the call may take in the rehearsal."""


@dataclass(frozen=True)
class FrameRestart:
    """What can be said of a restart before it happens (`dap_agent/debuggee/restart.py`).

    Args:
        allowed: whether it happens as soon as the program goes on.
        reason: why not, and what to do instead; empty if it does.
        frame: number of the frame that is restarted.
        function: its function.
        ended: how the rehearsal has ended: `returned`, `raised`, `refused effect`, `not reached`, `timeout`, `crashed`;
            empty if there was none.
        summary: that as a sentence.
        notes: sentences on the arguments and the rehearsal.
        raw: all that the debuggee has told.
    """

    allowed: bool
    reason: str
    frame: int
    function: str
    ended: str
    summary: str
    notes: tuple[str, ...]
    raw: Mapping[str, Any]

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> "FrameRestart":
        """From what the debuggee has answered."""
        rehearsal = answer.get("rehearsal") or {}
        return cls(
            answer.get("allowed") is True,
            str(answer.get("reason") or ""),
            int(answer.get("frame") or 0),
            str(answer.get("function") or ""),
            str(rehearsal.get("ended") or ""),
            str(rehearsal.get("summary") or ""),
            tuple(str(note) for note in answer.get("notes") or ()),
            dict(answer),
        )

    @property
    def passes(self) -> bool:
        """Whether the call has returned in the rehearsal, or a copy may not do what it does."""
        return self.allowed and self.ended in ("returned", "refused effect")

    @property
    def text(self) -> str:
        """For the user: what happens, or why not."""
        if not self.allowed:
            return one_line(self.reason)
        rehearsed = f" Rehearsed in a copy of the program: {one_line(self.summary)}." if self.summary else ""
        notes = "".join(f" {one_line(note)}" for note in self.notes)
        return clip(f"{one_line(self.function)} (frame {self.frame}) is called again.{rehearsed}{notes}", 2000)

    def to_json(self) -> dict[str, Any]:
        """For a report."""
        return {
            "allowed": self.allowed,
            "reason": self.reason,
            "frame": self.frame,
            "function": self.function,
            "rehearsal": self.ended,
            "summary": self.summary,
            "notes": list(self.notes),
        }
