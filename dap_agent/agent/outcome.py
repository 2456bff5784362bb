"""What an investigation ended with."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from dap_agent.models.base import Usage

if TYPE_CHECKING:
    from dap_agent.fixes.edits import ChangeSet
    from dap_agent.fixes.proof import Verdict
    from dap_agent.fixes.proposal import Proposal
    from dap_agent.fixes.trials import Trial

Status = Literal["proposed", "answered", "gave-up", "out-of-budget", "model-error", "resumed"]


@dataclass(frozen=True)
class Outcome:
    """What an investigation ended with.

    Args:
        status: `proposed` (the verdict says whether it is proved), `answered` (a question: the explanation is the
            answer), `gave-up` (the explanation is all there is), `out-of-budget`, `model-error`, `resumed` (the
            program went on). The last three carry the best proposal so far, if there was one.
        proposal: the fix, None if there is none.
        changes: the proposal's edits and its test as changes of files, ready to be applied.
        verdict: of the proof, None if it was not asked for.
        explanation: the cause as the model tells it, or why there is no proposal.
        usage: tokens of all model calls.
        cost: US dollars, None if the price is unknown.
        turns: model calls that were answered.
        seconds: wall clock.
        trial: of the proposal in a copy of the stopped program, None if none could be made.
    """

    status: Status
    proposal: "Proposal | None"
    changes: "ChangeSet | None"
    verdict: "Verdict | None"
    explanation: str
    usage: Usage
    cost: float | None
    turns: int
    seconds: float
    trial: "Trial | None" = None

    @property
    def proved(self) -> bool:
        """Whether there is a proposal whose proof succeeded."""
        return self.verdict is not None and self.verdict.kind == "proved"
