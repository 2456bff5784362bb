"""What an assistant works on, how it is configured, and who listens to it."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from dap_agent.agent.journal import Journal
    from dap_agent.agent.outcome import Outcome
    from dap_agent.agent.progress import Progress
    from dap_agent.fixes.workspace import Workspace
    from dap_agent.session.snapshot import Snapshot

Task = Literal["autodebug", "ask"]


@dataclass(frozen=True)
class Configuration:
    """What the user has set for a debug session.

    Args:
        model: `PROVIDER:NAME`, None for none.
        workspace: absolute folders where edits may go, the first is the root; empty: found from the program.
        project: the project around the program as it is started, as far as that can be seen.
        python: the interpreter for tests; None: the program's own.
        max_turns, max_tokens, timeout: of each investigation; *timeout* in seconds.
        max_cost: US dollars that the whole session may cost, None for no limit.
        allow_evaluate: whether the model may run code in the live program; else in a jailed copy of it.
    """

    model: str | None = None
    workspace: tuple[Path, ...] = ()
    project: Path | None = None
    python: Path | None = None
    max_turns: int = 40
    max_tokens: int = 500_000
    max_cost: float | None = 5.0
    timeout: float = 900.0
    allow_evaluate: bool = False


@dataclass
class Work:
    """One investigation, from its beginning on.

    Args:
        id: its journal's.
        task: what it is to do.
        question: the user's words: the question, or instructions for a fix; may be empty.
        model: the backend's name.
        snapshot: the stop that it is about.
        workspace: where its changes go.
        journal: its file, open until the work is over; with a proposal until the next one, or the session's end.
        cost: US dollars so far, as far as that is known.
        outcome: what it ended with.
        failure: the sentence that says why it ended without an outcome.
        applied: the files that its fix is written to (relative to the workspace); empty while it is not.
    """

    id: str
    task: Task
    question: str
    model: str
    snapshot: "Snapshot"
    workspace: "Workspace"
    journal: "Journal"
    cost: float = 0.0
    outcome: "Outcome | None" = None
    failure: str | None = None
    applied: tuple[str, ...] = ()

    @property
    def proposes(self) -> bool:
        """Whether it has ended with a fix that can be applied."""
        return self.failure is None and self.outcome is not None and self.outcome.changes is not None

    @property
    def title(self) -> str:
        """The title of its fix; empty if it has none."""
        outcome = self.outcome
        return outcome.proposal.title if outcome is not None and outcome.proposal is not None else ""

    @property
    def status(self) -> str:
        """How it ended, in one word: an outcome's status, `failed`, or `running`."""
        if self.failure is not None:
            return "failed"
        return self.outcome.status if self.outcome is not None else "running"


class Listener:
    """Told of what happens in a session, on the event loop, in order. A subclass overrides what it wants to hear."""

    def stopped(self, snapshot: "Snapshot", thread_id: int) -> None:
        """The program has stopped at an exception."""

    def began(self, work: Work) -> None:
        """An investigation has begun."""

    def progress(self, work: Work, event: "Progress") -> None:
        """It goes on."""

    def ended(self, work: Work) -> None:
        """It is over."""

    def reloaded(self, text: str) -> None:
        """The live program was given saved files, or what it was asked to take; *text* says what came of it."""

    def changed(self) -> None:
        """A fix was written to the files, or taken back, or the program was started again."""
