"""A call on the stack of a stopped program that is made again: what the rehearsal has told of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dap_agent.session.rendering import clip, one_line

if TYPE_CHECKING:
    from dap_agent.session.api import StoppedProgram

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
        ended: how the rehearsal has ended: `returned`, `differs` (from what was expected), `raised`, `refused effect`,
            `not reached`, `timeout`, `crashed`; empty if there was none.
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


PATIENT_LIMIT = 30.0
"""The same where the alternative is to run the whole program again."""

_MOST = 8  # frames that are tried one after the other


async def restart_innermost(program: "StoppedProgram", first: int | None = None, expects: str = "") -> FrameRestart:
    """Restart the innermost frame of the user's code that returns then, by its rehearsal.

    Args:
        first: number of the frame to begin with, those inside of it are left out; None: the innermost.
        expects: name of the type that it is known to return.

    Returns:
        Of that one; if there is none, the refusal that tells most: the first after a rehearsal, else the first. No
        other frame is tried after one whose rehearsal has crashed, has taken too long, or has given something else.

    Raises:
        DapAgentError: the program could not be asked.
    """
    numbers = [int(frame["number"]) for frame in program.snapshot.frames if frame["user"]]
    wanted = [number for number in numbers if first is None or number >= first]
    refused: FrameRestart | None = None
    for number in wanted[:_MOST] or [first or 0]:
        expected = expects if number == first else ""
        found = await program.restart_frame(number, PATIENT_LIMIT, strict=True, expects=expected)
        if found.allowed or found.ended in ("timeout", "crashed", "differs"):
            return found
        if refused is None or (found.ended and not refused.ended):
            refused = found
    assert refused is not None, "one was tried"
    return refused
