"""`dap-agent attach`: the next exception of a running program, or with `--now` what it does at the moment."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from dap_agent.cli import exit_status, failure
from dap_agent.cli.interrupts import Interrupted, Interrupts
from dap_agent.cli.investigator import Investigator
from dap_agent.cli.json_report import Report
from dap_agent.cli.live_fix import LiveFix
from dap_agent.cli.outputs import outputs
from dap_agent.cli.settings import Settings
from dap_agent.cli.stops import Stops, apply, decided
from dap_agent.cli.ui import Ui
from dap_agent.cli.watching import watched
from dap_agent.fixes.workspace import find_root
from dap_agent.session.launch import Debuggee, Ended, Stopped, StopRules

Attach = Callable[[], Awaitable[Debuggee]]


def command(
    settings: Settings, root: Path | None, *, pid: int | None, address: tuple[str, int] | None, now: bool
) -> int:
    """Attach to a program and deal with its next exception.

    Args:
        settings: the user's.
        root: the workspace's root; None: found from the program.
        pid: the process, or None for *address*.
        address: host and port where debugpy listens.
        now: pause it instead of waiting for an exception.

    Returns:
        The exit status.

    Raises:
        DapAgentError: attaching failed; the message says what is missing.
    """
    from dap_agent.session import attach as session

    async def attach() -> Debuggee:
        rules = StopRules(record=settings.record)
        if pid is not None:
            return await session.attach_pid(pid, rules)
        assert address is not None, "the parser asks for one of the two"
        return await session.attach_address(*address, rules)

    report = Report({"pid": pid} if address is None else {"host": address[0], "port": address[1]})
    with outputs(settings, report) as ui:
        return asyncio.run(run(settings, ui, attach, root=root, report=report, now=now))


async def run(settings: Settings, ui: Ui, attach: Attach, *, root: Path | None, report: Report, now: bool) -> int:
    """The whole of it; see `command`.

    Args:
        attach: connects to the program.
        report: is filled in.
    """
    failure.tell_on(asyncio.get_running_loop(), ui)
    # the program belongs to somebody else: a signal to us only ends what we do
    with Interrupts(pass_on_interrupt=False) as interrupts:
        investigator = Investigator(settings, root, None, ui, report, interrupts)
        stops = Stops(ui, report, investigator, interrupts, decided(settings, ui, "never"))
        live = LiveFix(ui, report)
        folders = settings.workspace or (root or find_root(Path.cwd()),)
        try:
            investigator.start()
            debuggee = await interrupts.interruptible(_attached(attach))
            async with watched("attach", settings, folders, "an attached program") as investigator.watched:
                try:
                    event = await interrupts.interruptible(_event(debuggee, ui, now))
                    await _deal_with(event, stops, ui, now, live)
                finally:
                    await debuggee.close()
                report.exit_status = _decide(stops, ui, report, live)
                if report.exit_status == exit_status.APPLIED:
                    investigator.watched.wrote_fix()
        except Interrupted:
            ui.note("detached; the program goes on.")
        finally:
            ui.idle()
            stops.close()
            await investigator.aclose()
    return report.exit_status


async def _attached(attach: Attach) -> Debuggee:
    return await attach()


async def _event(debuggee: Debuggee, ui: Ui, now: bool) -> Stopped | Ended:
    if now:
        await debuggee.pause()
    else:
        ui.note("attached; waiting for an uncaught exception (Ctrl-C detaches, the program goes on).")
    return await debuggee.next_event()


async def _deal_with(event: Stopped | Ended, stops: Stops, ui: Ui, now: bool, live: LiveFix) -> None:
    match event:
        case Ended() as ended:
            for crash in ended.crashes:
                await stops.met(crash, ended=True)
            if not ended.crashes:
                ui.note("the program has ended; no uncaught exception was seen.")
        case Stopped() as stopped:
            try:
                if now:
                    await stops.paused(stopped.program)
                else:
                    await stops.met(stopped.program, child=stopped.is_child)
                if stops.approved and stops.finding is not None:
                    await live.give(stopped.program, stops.finding)
            finally:
                await stopped.resume()


def _decide(stops: Stops, ui: Ui, report: Report, live: LiveFix) -> int:
    finding = stops.finding
    if finding is None or finding.outcome.proposal is None:
        return exit_status.CRASHED if report.stops else 0
    if live.tried:
        return exit_status.APPLIED if live.applied else exit_status.PROPOSED
    if not stops.approved or not apply(finding, ui, report):  # it has ended
        return exit_status.PROPOSED
    return exit_status.APPLIED
