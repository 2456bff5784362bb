"""A fix put into the program that still runs: a server goes on with it and is not started again."""

from pathlib import PurePath
from typing import TYPE_CHECKING

from dap_agent.cli import exit_status
from dap_agent.cli.json_report import Report
from dap_agent.cli.stops import apply
from dap_agent.cli.ui import Ui
from dap_agent.errors import DapAgentError

if TYPE_CHECKING:
    from dap_agent.cli.investigator import Finding
    from dap_agent.session.api import StoppedProgram
    from dap_agent.session.reload import Changed
    from dap_agent.session.snapshot import Snapshot

_PACKAGES = frozenset(
    {"uvicorn", "gunicorn", "hypercorn", "waitress", "daphne", "cheroot", "granian", "aiohttp", "tornado", "gevent"}
)
_FILES = frozenset({"socketserver.py", "http/server.py", "wsgiref/simple_server.py", "werkzeug/serving.py"})


def is_server(snapshot: "Snapshot") -> bool:
    """Whether the program serves requests, so that the failure of one does not end it: its stacks say so."""
    stacks = [snapshot.data["frames"]]
    if not snapshot.data["thread"]["main"]:  # a worker of a pool, which the server's own thread waits for
        stacks += [thread["stack"] for thread in snapshot.data["threads"]]
    for place in (place for stack in stacks for place in stack):
        path = PurePath(place["file"])
        if _PACKAGES.intersection(path.parts) or path.name in _FILES or "/".join(path.parts[-2:]) in _FILES:
            return True
    return False


def changed(finding: "Finding") -> "list[Changed]":
    """The Python files of a fix, for the live program."""
    from dap_agent.control.changes import python_texts
    from dap_agent.session.reload import Changed

    assert finding.outcome.changes is not None, "it proposes"
    return [Changed(path, old, new) for path, (old, new) in python_texts(finding.outcome.changes).items()]


class LiveFix:
    """What becomes of one fix.

    Args:
        ui: told of everything.
        report: filled in.

    Attributes:
        tried: whether a fix was to be written while the program lives.
        applied: whether it was.
        taken: whether the program goes on with all of it.
    """

    def __init__(self, ui: Ui, report: Report) -> None:
        self.tried = self.applied = self.taken = False
        self._ui = ui
        self._report = report

    async def give(self, program: "StoppedProgram", finding: "Finding") -> None:
        """Write an approved fix to the files and put it into the stopped *program*."""
        self.tried = True
        self.applied = apply(finding, self._ui, self._report)
        if not self.applied:
            return
        try:
            report = await program.reload(changed(finding))
        except DapAgentError as error:
            self._ui.note(f"the running program keeps its old code: {error.message}", "bad")
            return
        self._report.reloaded = report.to_json()
        self.taken = bool(report.taken) and not report.refused
        said = report.summary[0].lower() + report.summary[1:]
        lines = [f"\n  {one.line}" for each in report.files for one in each.outcomes if one.reason]
        self._ui.note(said + "".join(lines), "good" if self.taken else "bad")

    def over(self, finding: "Finding", again: bool) -> int:
        """The program that went on has ended.

        Args:
            again: whether it has met the same exception after that.

        Returns:
            The exit status.
        """
        if again:
            self._ui.note("the program was given the fix, and failed in the same way again.", "bad")
            return exit_status.STILL_FAILING
        self._ui.note("the program went on with the fix and did not fail in that way again.", "good")
        return exit_status.APPLIED
