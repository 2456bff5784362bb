"""What is done at each stop of a program: report, investigation, decision, application of the fix."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from dap_agent.cli.interrupts import Interrupted, Interrupts
from dap_agent.cli.investigator import Finding, Investigator
from dap_agent.cli.json_report import Report
from dap_agent.cli.settings import Fix, Settings
from dap_agent.cli.ui import Ui
from dap_agent.control import render
from dap_agent.errors import DapAgentError
from dap_agent.session.rendering import owner_text

if TYPE_CHECKING:
    from dap_agent.fixes.workspace import Workspace
    from dap_agent.session.api import StoppedProgram
    from dap_agent.session.snapshot import Snapshot


def decided(settings: Settings, ui: Ui, unasked: Fix) -> Fix:
    """What happens to a fix: what the user said, as far as there is somebody to ask."""
    if settings.fix is None:
        return "ask" if ui.can_ask else unasked
    if settings.fix == "ask" and not ui.can_ask:
        ui.note("there is no terminal to ask on, so a fix would only be shown (--fix auto applies a proved one).")
        return "never"
    return settings.fix


class Stops:
    """What is done at each stop of a run, or of an attached program.

    The first is reported in full and investigated. Later ones get one line each, and an investigation as long as
    there is no proposal and something is left of the budget.

    Args:
        fix: what happens to a proposal.
    """

    def __init__(self, ui: Ui, report: Report, investigator: Investigator, interrupts: Interrupts, fix: Fix) -> None:
        self.finding: Finding | None = None
        self.approved = False
        self._ui = ui
        self._report = report
        self._investigator = investigator
        self._interrupts = interrupts
        self._fix = fix

    async def met(self, program: "StoppedProgram", *, child: bool = False, ended: bool = False) -> None:
        """Deal with one stop.

        Args:
            program: a `StoppedProgram`.
            child: a child process of the program has stopped.
            ended: the process has ended already.
        """
        snapshot = program.snapshot
        if self._investigator.watched is not None:
            self._investigator.watched.met(program, ended=ended)
        has_proposal = self.finding is not None and self.finding.outcome.proposal is not None
        if not self._report.stops:
            self._report.crash = snapshot
            verb = "ended with" if ended else "stopped at"
            self._ui.crash(snapshot, f"(a child process of it) {verb}" if child else verb)
        else:
            why = "only the first is fixed in this run" if has_proposal else "reported in short, as it is not the first"
            self._ui.show(render.later_stop(snapshot, why))
        self._report.stops.append(snapshot.headline.split("\n")[0])
        if not has_proposal:
            await self._examine(program)

    async def paused(self, program: "StoppedProgram") -> None:
        """Show what each thread of a program does that was paused on purpose, and investigate that.

        Args:
            program: the paused program.
        """
        self._report.crash = program.snapshot
        self._ui.show(render.threads(program.snapshot))
        await self._examine(program)

    async def _examine(self, program: "StoppedProgram") -> None:
        finding = await self._investigator.examine(program)
        if finding is None:
            return
        self.close()
        self.finding = finding
        await self._show(program.snapshot)

    async def _show(self, snapshot: "Snapshot") -> None:
        assert self.finding is not None
        outcome = self.finding.outcome
        if outcome.proposal is None:
            self._ui.show(render.unsuccessful(outcome))
            if outcome.status == "gave-up":
                self._tell_of_package(snapshot, self.finding.workspace)
        else:
            if outcome.status != "proposed":
                self._ui.show(render.unsuccessful(outcome))
            self._ui.show(render.proposal(outcome))
        self._ui.spent(outcome, self.finding.journal.path)
        if outcome.proposal is None or outcome.changes is None:
            return
        if self._fix == "auto":
            self.approved = outcome.proved
            if not outcome.proved:
                self._ui.note("the fix is not applied, as it is not proved.", "bad")
        elif self._fix == "ask":
            try:
                self.approved = await self._interrupts.interruptible(self._ui.approve(outcome))
            except Interrupted:
                self._ui.show([()])
            if not self.approved:
                self._ui.note("the fix is not applied.")
        else:
            self._ui.note("nothing was changed; --fix auto applies a proved fix, --fix ask asks on a terminal.")

    def _tell_of_package(self, snapshot: "Snapshot", workspace: "Workspace") -> None:
        """How the package may be changed whose code raised the exception, or called the standard library that did."""
        from dap_agent.fixes.protected import package_folder

        frame = snapshot.package_frame
        folder = package_folder(frame["file"]) if frame is not None else None
        if frame is None or folder is None or workspace.original_of(frame["file"]) is not None:
            return
        if not workspace.holds(frame["file"]):
            named = shlex.join(word for one in (*workspace.folders, folder) for word in ("--workspace", str(one)))
            self._ui.note(f"{owner_text(frame)} is changed only if you name its folder: {named}")

    def close(self) -> None:
        """Close the journal."""
        if self.finding is not None:
            self.finding.journal.close()


def apply(finding: Finding, ui: Ui, report: Report) -> bool:
    """Write an approved fix to the user's files.

    Returns:
        Whether it was written; if not, the user was told why.
    """
    from dap_agent.fixes import applying

    outcome = finding.outcome
    assert outcome.proposal is not None and outcome.changes is not None, "only a proposal that applies is approved"
    try:
        applying.apply(finding.workspace, outcome.changes, label=outcome.proposal.title)
    except DapAgentError as error:
        report.error = error.message
        ui.note(error.message, "bad")
        return False
    files = [finding.workspace.relative(change.path) for change in outcome.changes.files]
    report.applied = tuple(files)
    finding.journal.applied(files)
    ui.note(f"applied: {', '.join(files)} (`{undo_command(finding.workspace.root)}` takes it back).", "good")
    for frame in report.crash.frames if report.crash is not None else ():
        original = finding.workspace.original_of(frame["file"])
        name = finding.workspace.relative(original) if original is not None else ""
        if name in files:
            ui.note(
                f"the program runs {frame['file']}, a copy of {name}: install the project anew for it to see the fix."
            )
            break
    return True


def undo_command(root: Path) -> str:
    """What takes back a fix of the workspace *root*, typed in the current folder."""
    from dap_agent.fixes.workspace import find_root

    here = Path.cwd()
    if find_root(here) == root:
        return "dap-agent undo"
    named = root.relative_to(here) if root.is_relative_to(here) else root
    return shlex.join(["dap-agent", "undo", "--workspace", str(named)])
