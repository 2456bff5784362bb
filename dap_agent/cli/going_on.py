"""`run --continue`: the fix goes into the program as it stands at its raise, and the program goes on from there."""

from typing import TYPE_CHECKING

from dap_agent.cli.json_report import Report
from dap_agent.cli.live_fix import changed
from dap_agent.cli.stops import apply
from dap_agent.cli.ui import Ui
from dap_agent.errors import DapAgentError
from dap_agent.session.restart import FrameRestart, restart_innermost

if TYPE_CHECKING:
    from dap_agent.cli.investigator import Finding
    from dap_agent.session.api import StoppedProgram


class GoingOn:
    """What becomes of one run.

    Args:
        ui: told of everything.
        report: filled in.
    """

    def __init__(self, ui: Ui, report: Report) -> None:
        self.tried = False
        self.applied = False
        self.went_on = False
        self._ui = ui
        self._report = report

    async def after_fix(self, program: "StoppedProgram", finding: "Finding") -> None:
        """Apply an approved fix, put it into *program* and have it call the failing function again once it is resumed.

        `tried` says that this was asked for, `applied` whether the fix is written, `went_on` whether the program goes
        on with it.
        """
        self.tried = True
        self.applied = apply(finding, self._ui, self._report)
        if not self.applied:
            return
        try:
            found = await self._prepared(program, finding)
        except DapAgentError as error:
            found = FrameRestart(False, error.message, 0, "", "", "", (), {})
        self.went_on = found.allowed
        self._report.continued = {**found.to_json(), "passed": None}
        finding.journal.continued(found.allowed, found.text)
        if found.allowed:
            self._ui.note(f"the program goes on: {found.text}", "good")
        else:
            self._ui.note(f"the program can't go on with the fix: {found.text}", "bad")

    async def _prepared(self, program: "StoppedProgram", finding: "Finding") -> FrameRestart:
        report = await program.reload(changed(finding))
        if report.refused:
            return FrameRestart(False, f"{report.summary} Restart the program instead.", 0, "", "", "", (), {})
        trial = finding.outcome.trial
        if trial is None or trial.verdict != "passes":
            return await restart_innermost(program)
        return await restart_innermost(program, trial.frame, str((trial.value or {}).get("type", "")))

    def over(self, finding: "Finding", status: int, later: int) -> None:
        """The program that went on has ended.

        Args:
            status: its exit status.
            later: how many exceptions it has met after the restart.
        """
        passed = status == 0 and not later
        assert self._report.continued is not None, "it went on"
        self._report.continued["passed"] = passed
        if passed:
            text = "the fix is applied, and the program went on with it to its end (exit status 0)."
        elif later:
            text = "the fix is applied and the program went on with it, but met another exception then."
        else:
            text = f"the fix is applied and the program went on with it, but ended with status {status}."
        finding.journal.continued(True, text)
        self._ui.note(text, "good" if passed else "bad")
