"""From a stop to an outcome: the model, the workspace, the journal and the budget of one run."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dap_agent.agent.budget import Budget
from dap_agent.cli.command_line import UsageError
from dap_agent.cli.interrupts import Interrupted, Interrupts
from dap_agent.cli.json_report import Report
from dap_agent.cli.settings import Settings
from dap_agent.cli.ui import Ui
from dap_agent.control.work import Work
from dap_agent.errors import DapAgentError

if TYPE_CHECKING:
    from dap_agent.agent.journal import Journal
    from dap_agent.agent.outcome import Outcome
    from dap_agent.agent.progress import Progress
    from dap_agent.control.watched import Watched
    from dap_agent.fixes.workspace import Workspace
    from dap_agent.models.base import Backend
    from dap_agent.session.api import StoppedProgram
    from dap_agent.session.launch import ProgramCommand
    from dap_agent.session.snapshot import Snapshot

NO_MODEL = (
    "no model is configured, so nothing is investigated. Give one with --model, with DAP_AGENT_MODEL, or as `model` "
    "in [tool.dap-agent] of pyproject.toml: anthropic:NAME (key in ANTHROPIC_API_KEY), openai:NAME (key in "
    "OPENAI_API_KEY), or local:URL for a server of your own."
)

_ENDED = "The investigation was ended."


@dataclass(frozen=True)
class Finding:
    """An investigation that is over.

    Args:
        outcome: its result.
        journal: its file, still open for what the user decides.
        workspace: where its changes go.
    """

    outcome: "Outcome"
    journal: "Journal"
    workspace: "Workspace"


class Investigator:
    """Looks into the stops of one run, with one budget for all of them.

    Args:
        settings: the user's.
        root: the workspace's root; None for an attached program: its project, as found from its code.
        program: how and where the program is started, for the journal; None for an attached one.
        ui: told of everything.
        report: gets the outcome.
        interrupts: Ctrl-C ends an investigation.

    `watched` may be set to what tells others of it.
    """

    def __init__(
        self,
        settings: Settings,
        root: Path | None,
        program: "ProgramCommand | None",
        ui: Ui,
        report: Report,
        interrupts: Interrupts,
    ) -> None:
        self.watched: Watched | None = None
        self._settings = settings
        self._root = root
        self._program = program
        self._ui = ui
        self._report = report
        self._interrupts = interrupts
        self._budget = Budget(settings.max_turns, settings.max_tokens, settings.max_cost, settings.timeout)
        self._backend: Backend | None = None
        self._over = False

    def start(self) -> None:
        """Make the model's backend ready; a missing key is told before the program starts, not at its crash.

        Raises:
            UsageError: there is no such model, or it cannot be used for another reason than its key.
        """
        if self._settings.model is None or self._settings.show_prompt:
            return
        from dap_agent.models import registry
        from dap_agent.models.base import ModelError

        try:
            self._backend = registry.create(self._settings.model)
        except DapAgentError as error:
            if not isinstance(error, ModelError) or error.kind not in ("missing-key", "wrong-key"):
                raise UsageError(error.message) from error
            # a project's settings may name a model that not everybody who runs the project has a key for
            self._over = True
            self._report.error = error.message
            self._ui.note(f"{error.message} Crashes are only reported.", "bad")

    async def examine(self, program: "StoppedProgram") -> Finding | None:
        """Investigate a stop if that is possible and still wanted.

        Returns:
            The finding; None if there was no investigation, or none that came to an end.
        """
        if self._over:
            return None
        try:
            if self._settings.show_prompt:
                self._over = True
                self._show_prompt(program)
                return None
            if self._backend is not None:
                return await self._investigate(program, self._backend)
            self._over = True
            self._ui.note(NO_MODEL)
        except Interrupted:
            self._over = True
            self._ui.idle()
            self._ui.note("the investigation was ended by a signal; the program goes on.", "bad")
        except DapAgentError as error:
            self._ui.idle()
            self._ui.note(error.message, "bad")
            self._report.error = error.message
        except Exception as error:  # noqa: BLE001 - whatever goes wrong in here, the user's program has to go on
            from dap_agent.cli import failure

            self._over = True
            self._ui.idle()
            self._report.error = failure.describe(error)
            self._ui.note(self._report.error, "bad")
        return None

    async def aclose(self) -> None:
        """Let the model go."""
        if self._backend is not None:
            await self._backend.aclose()

    def _workspace(self, snapshot: "Snapshot") -> "Workspace":
        from dap_agent.agent.stopping import root_of_attached
        from dap_agent.fixes.workspace import Workspace

        root = self._root or root_of_attached(snapshot)
        return Workspace(root, also=self._settings.workspace[1:])

    def _python(self, snapshot: "Snapshot") -> Path:
        """The interpreter for tests: an attached program's own, unless another was asked for."""
        from dap_agent.agent.stopping import python_of

        if self._program or self._settings.python_given:
            return self._settings.python
        return python_of(snapshot, self._settings.python)

    def _show_prompt(self, program: "StoppedProgram") -> None:
        from dap_agent.agent import prompts
        from dap_agent.control.render import Span

        prompt = prompts.render(
            program.snapshot, self._workspace(program.snapshot), allow_evaluate=self._settings.allow_evaluate
        )
        self._report.prompt = prompt.text()
        self._ui.note("this would be sent to the model; nothing is sent.")
        self._ui.show([(Span(line),) for line in self._report.prompt.splitlines()])

    async def _investigate(self, program: "StoppedProgram", backend: "Backend") -> Finding:
        from dap_agent.agent.journal import Journal
        from dap_agent.agent.loop import investigate
        from dap_agent.agent.stopping import while_stopped

        workspace, python = self._workspace(program.snapshot), self._python(program.snapshot)
        journal = Journal.create(
            workspace.root,
            model=backend.name,
            command=self._program.argv if self._program else (),
            headline=program.snapshot.headline,
            python=str(python),
            cwd=str(self._program.cwd if self._program else Path.cwd()),
        )
        self._report.journal = journal.path
        work = Work(journal.id, "autodebug", "", backend.name, program.snapshot, workspace, journal)
        if self.watched is not None:
            self.watched.begin(work)
        self._ui.note(f"{backend.name} investigates (Ctrl-C ends the investigation)")
        try:
            outcome = await self._interrupts.interruptible(
                while_stopped(
                    program,
                    investigate(
                        program,
                        backend,
                        workspace,
                        python=python,
                        budget=self._budget,
                        journal=journal,
                        allow_evaluate=self._settings.allow_evaluate,
                        on_progress=self._progress,
                    ),
                )
            )
        except BaseException as error:
            journal.close()
            if self.watched is not None:
                self.watched.finish(None, error.message if isinstance(error, DapAgentError) else _ENDED)
            raise
        self._ui.idle()
        self._report.outcome = outcome
        if self.watched is not None:
            self.watched.finish(outcome)
        self._spend(outcome)
        return Finding(outcome, journal, workspace)

    def _progress(self, event: "Progress") -> None:
        self._ui.progress(event)
        if self.watched is not None:
            self.watched.step(event)

    def _spend(self, outcome: "Outcome") -> None:
        """Take what an investigation used from the run's budget; without enough left there is no further one."""
        self._budget = self._budget.less(outcome)
        self._over = self._over or self._budget.spent or outcome.status in ("model-error", "out-of-budget")
