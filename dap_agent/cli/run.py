"""`dap-agent run`: from the program's start over a crash and its fix to the program running again."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dap_agent.cli import exit_status, failure
from dap_agent.cli.going_on import GoingOn
from dap_agent.cli.interrupts import Interrupts
from dap_agent.cli.investigator import Finding, Investigator
from dap_agent.cli.json_report import Report
from dap_agent.cli.live_fix import LiveFix, is_server
from dap_agent.cli.outputs import outputs
from dap_agent.cli.rerun import Input, Rerun
from dap_agent.cli.settings import Fix, Settings
from dap_agent.cli.stops import Stops, apply, decided
from dap_agent.cli.ui import Ui
from dap_agent.cli.watching import watched
from dap_agent.control import render
from dap_agent.session.launch import Debuggee, Ended, ProgramCommand, Stopped, StopRules

if TYPE_CHECKING:
    from dap_agent.control.watched import Watched
    from dap_agent.session.snapshot import Snapshot

Launch = Callable[..., Awaitable[Debuggee]]


def command(settings: Settings, program: ProgramCommand, root: Path, *, unasked: Fix = "never") -> int:
    """Run *program* under the debugger and deal with its crash.

    Args:
        settings: the user's.
        program: what to run.
        root: the workspace's root.
        unasked: what happens to a fix if nobody said and nobody can be asked.

    Returns:
        The exit status; negative: end by that signal.

    Raises:
        DapAgentError: dap-agent could not do its work.
    """
    report = Report(
        {
            "python": str(program.python),
            "target": program.target,
            "module": program.is_module,
            "args": list(program.args),
            "cwd": str(program.cwd),
        }
    )
    with outputs(settings, report) as ui:
        return asyncio.run(run(settings, program, ui, root=root, report=report, unasked=unasked))


async def run(
    settings: Settings,
    program: ProgramCommand,
    ui: Ui,
    *,
    root: Path,
    report: Report,
    unasked: Fix = "never",
    launch: Launch = Debuggee.launch,
) -> int:
    """The whole run; see `command`.

    Args:
        report: is filled in.
        launch: starts the debuggee.
    """
    failure.tell_on(asyncio.get_running_loop(), ui)
    with Interrupts() as interrupts:
        investigator = Investigator(settings, root, program, ui, report, interrupts)
        work = _Run(settings, program, ui, report, interrupts, investigator, launch, decided(settings, ui, unasked))
        try:
            investigator.start()
            folders = settings.workspace or (root,)
            async with watched("run", settings, folders, " ".join(program.argv)) as investigator.watched:
                report.exit_status = await work.all()
        except asyncio.CancelledError:
            if interrupts.ended_by is None:
                raise
            report.exit_status = -interrupts.ended_by
        finally:
            ui.idle()
            await investigator.aclose()
    return report.exit_status


class _Run:
    def __init__(
        self,
        settings: Settings,
        program: ProgramCommand,
        ui: Ui,
        report: Report,
        interrupts: Interrupts,
        investigator: Investigator,
        launch: Launch,
        fix: Fix,
    ) -> None:
        self._settings = settings
        self._program = program
        self._ui = ui
        self._report = report
        self._interrupts = interrupts
        self._investigator = investigator
        self._launch = launch
        self._rules = StopRules(settings.stop_at_raise, settings.ignore, settings.record)
        self._going_on = GoingOn(ui, report)
        self._live = LiveFix(ui, report)
        self._fix = fix
        self._stops_before = 0  # exceptions met before the program went on

    async def all(self) -> int:
        """First run, decision, application, second run; returns the exit status."""
        stdin = Input()
        stops = Stops(self._ui, self._report, self._investigator, self._interrupts, self._fix)
        status = await self._supervise(stops)
        self._report.program_status = status
        try:
            if not self._report.stops:
                return status
            finding = stops.finding
            if finding is None or finding.outcome.proposal is None:
                return exit_status.CRASHED
            going_on = self._going_on
            if going_on.went_on:
                going_on.over(finding, status, len(self._report.stops) - self._stops_before)
                return status
            if self._live.taken:
                later = self._report.stops[self._stops_before :]
                return self._live.over(finding, self._report.stops[0] in later)
            if self._live.tried:
                if not self._live.applied:
                    return exit_status.PROPOSED
            elif not going_on.tried:
                if not stops.approved or not apply(finding, self._ui, self._report):
                    return exit_status.PROPOSED
                self._told(lambda watched: watched.wrote_fix())
            elif not going_on.applied:
                return exit_status.PROPOSED
            return await self._again(stdin, finding)
        finally:
            stops.close()

    async def _supervise(self, stops: "Stops") -> int:
        debuggee = await self._launch(self._program, rules=self._rules)
        self._interrupts.program = debuggee
        try:
            while True:
                match await debuggee.next_event():
                    case Stopped() as stopped:
                        try:
                            await stops.met(stopped.program, child=stopped.is_child)
                            if self._settings.go_on and stops.approved and not self._going_on.tried:
                                await self._go_on(stops, stopped)
                            elif stops.approved and not self._live.tried and is_server(stopped.program.snapshot):
                                await self._serve_on(stops, stopped)
                        finally:
                            await stopped.resume()
                            self._told(lambda watched: watched.resumed_after())
                    case Ended() as ended:
                        for failure in ended.failures:
                            self._ui.note(failure, "bad")
                        for crash in ended.crashes:
                            await stops.met(crash, ended=True)
                        self._told(lambda watched: watched.over())
                        return _status(ended)
        finally:
            self._interrupts.program = None
            await debuggee.close()

    async def _go_on(self, stops: "Stops", stopped: Stopped) -> None:
        assert stops.finding is not None, "its fix is approved"
        await self._going_on.after_fix(stopped.program, stops.finding)
        self._stops_before = len(self._report.stops)
        if self._going_on.applied:
            self._told(lambda watched: watched.wrote_fix())

    async def _serve_on(self, stops: "Stops", stopped: Stopped) -> None:
        assert stops.finding is not None, "its fix is approved"
        await self._live.give(stopped.program, stops.finding)
        self._stops_before = len(self._report.stops)
        if self._live.applied:
            self._told(lambda watched: watched.wrote_fix())

    def _told(self, what: "Callable[[Watched], None]") -> None:
        if self._investigator.watched is not None:
            what(self._investigator.watched)

    async def _again(self, stdin: Input, finding: Finding) -> int:
        self._ui.note("running the program again.")
        first = self._report.crash
        met: list[Snapshot] = []
        descriptor = stdin.again()
        try:
            debuggee = await self._launch(self._program, stdin=descriptor, rules=self._rules)
            self._interrupts.program = debuggee
            try:
                status = await self._watch(debuggee, met)
            finally:
                self._interrupts.program = None
                await debuggee.close()
        finally:
            if descriptor is not None:
                os.close(descriptor)
        again = Rerun(
            status,
            tuple(snapshot.headline.split("\n")[0] for snapshot in met),
            any(_same(snapshot, first) for snapshot in met),
            stdin.kind,
        )
        self._report.rerun = again.to_json()
        finding.journal.rerun(status, again.passed)
        self._ui.note(again.summary, "good" if again.passed else "bad")
        return exit_status.FIXED if again.passed else exit_status.STILL_FAILING

    async def _watch(self, debuggee: Debuggee, met: "list[Snapshot]") -> int:
        while True:
            match await debuggee.next_event():
                case Stopped() as stopped:
                    met.append(stopped.program.snapshot)
                    self._ui.show(render.later_stop(stopped.program.snapshot, "in the second run"))
                    await stopped.resume()
                case Ended() as ended:
                    met.extend(crash.snapshot for crash in ended.crashes)
                    return _status(ended)


def _status(ended: Ended) -> int:
    assert ended.exit_status is not None, "only of an attached program the status is not known"
    return ended.exit_status


def _same(snapshot: "Snapshot", first: "Snapshot | None") -> bool:
    """Whether two stops are the same failure: exception type and the failing function."""
    if first is None:
        return False

    def key(of: "Snapshot") -> Sequence[object]:
        frame = of.failing_frame or {}
        exception = of.exception or {}
        return exception.get("type"), frame.get("function"), frame.get("file")

    return key(snapshot) == key(first)
