"""One investigation of the agent's: what it is given, and the model and the conversation that outlive it.

Imports the heavy rooms (agent, fixes, models) when they are first needed, as it is part of every debug session's start.
"""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from dap_agent.control.work import Configuration, Task, Work

if TYPE_CHECKING:
    from dap_agent.agent.budget import Budget
    from dap_agent.agent.jobs import Conversation
    from dap_agent.agent.journal import Journal
    from dap_agent.agent.outcome import Outcome
    from dap_agent.agent.progress import OnProgress, Progress
    from dap_agent.models.base import Backend
    from dap_agent.session.api import StoppedProgram
    from dap_agent.session.snapshot import Snapshot


class Investigator:
    """Does the work of one debug session, one piece after the other.

    Args:
        tell: is told of the progress of a work.
    """

    def __init__(self, tell: Callable[[Work, "Progress"], None]) -> None:
        self._tell = tell
        self._backend: tuple[str, Backend] | None = None
        self._talk: tuple[Snapshot, Conversation] | None = None  # the questions at one stop

    async def close(self) -> None:
        """Let go of the model."""
        if self._backend is not None:
            await self._backend[1].aclose()
            self._backend = None

    async def run(
        self,
        work: Work,
        program: "StoppedProgram",
        configuration: Configuration,
        *,
        left: float | None,
        backend: "Backend | None" = None,
    ) -> "Outcome":
        """Do *work*; it ends when the program is resumed.

        Args:
            work: of `prepare`.
            program: as it stands.
            configuration: what the user has set.
            left: US dollars that it may cost; None: as many as it takes.
            backend: instead of the configured model.

        Raises:
            DapAgentError: it cannot be done.
        """
        from dap_agent.agent.stopping import while_stopped

        return await while_stopped(program, self._investigate(work, program, configuration, left, backend))

    async def _investigate(
        self,
        work: Work,
        program: "StoppedProgram",
        configuration: Configuration,
        left: float | None,
        backend: "Backend | None",
    ) -> "Outcome":
        from dap_agent.agent import loop
        from dap_agent.agent.budget import Budget
        from dap_agent.agent.stopping import python_of

        common: _Common = {
            "python": configuration.python or python_of(program.snapshot, Path(sys.executable)),
            "budget": Budget(configuration.max_turns, configuration.max_tokens, left, configuration.timeout),
            "journal": work.journal,
            "allow_evaluate": configuration.allow_evaluate,
            "on_progress": lambda event: self._tell(work, event),
        }
        backend = backend or await self._model(work.model)
        if work.task == "autodebug":
            return await loop.investigate(program, backend, work.workspace, instructions=work.question, **common)
        talk = self._conversation(program.snapshot)
        return await loop.answer(program, backend, work.workspace, work.question, conversation=talk, **common)

    def _conversation(self, snapshot: "Snapshot") -> "Conversation":
        """The questions at this stop so far: a new stop begins anew."""
        from dap_agent.agent.jobs import Conversation

        if self._talk is None or self._talk[0].data is not snapshot.data:
            self._talk = (snapshot, Conversation())
        return self._talk[1]

    async def _model(self, name: str) -> "Backend":
        from dap_agent.models import registry

        if self._backend is not None and self._backend[0] != name:
            await self.close()
        if self._backend is None:
            # importing an SDK takes a second or two, in which the editor must not wait
            self._backend = (name, await asyncio.to_thread(registry.create, name))
        return self._backend[1]


class _Common(TypedDict):
    """What both kinds of investigation are given."""

    python: Path
    budget: "Budget"
    journal: "Journal"
    allow_evaluate: bool
    on_progress: "OnProgress"


def prepare(program: "StoppedProgram", configuration: Configuration, task: Task, question: str) -> Work:
    """Find the workspace and begin a journal."""
    from dap_agent.agent import loop  # noqa: F401 - so that it need not be imported on the event loop
    from dap_agent.agent.journal import Journal
    from dap_agent.agent.stopping import root_of_attached
    from dap_agent.fixes.workspace import Workspace

    snapshot, model = program.snapshot, configuration.model or ""
    folders = configuration.workspace or (root_of_attached(snapshot),)
    workspace = Workspace(folders[0], also=folders[1:])
    process = snapshot.data["process"]
    journal = Journal.create(
        workspace.root,
        model=model,
        command=[str(word) for word in process["argv"]],
        headline=snapshot.headline,
        python=str(snapshot.data["python"]["executable"]),
        cwd=str(process["cwd"]),
    )
    return Work(journal.id, task, question, model, snapshot, workspace, journal)
