"""attach against a fake debuggee."""

import asyncio
import io
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dap_agent.agent.stopping import root_of_attached
from dap_agent.cli import attach, exit_status
from dap_agent.cli.json_report import Report
from dap_agent.cli.settings import load
from dap_agent.cli.ui import PlainSink, Ui
from dap_agent.session.launch import Ended, Stopped
from dap_agent.session.snapshot import Snapshot


@dataclass
class Program:
    snapshot: Snapshot
    resumed: bool = False

    async def resume(self) -> None:
        self.resumed = True

    async def until_over(self) -> str:
        return await asyncio.get_running_loop().create_future()


@dataclass
class FakeDebuggee:
    events: list[Any]
    calls: list[str] = field(default_factory=list)

    async def pause(self) -> None:
        self.calls.append("pause")

    async def next_event(self) -> Any:
        if not self.events:
            asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()
        return self.events.pop(0)

    async def close(self) -> None:
        self.calls.append("close")


def run(root: Path, debuggee: FakeDebuggee, *, now: bool = False) -> tuple[int, str, Report]:
    async def connect() -> Any:
        return debuggee

    stream = io.StringIO()
    report = Report({"pid": 1})
    settings = load("attach", {}, environ={}, root=root)
    status = asyncio.run(attach.run(settings, Ui(PlainSink(stream)), connect, root=root, report=report, now=now))
    return status, stream.getvalue(), report


Make = Callable[..., Snapshot]


def test_the_next_exception_is_reported_and_the_program_goes_on(snapshot: Make, tmp_path: Path) -> None:
    program: Any = Program(snapshot())
    debuggee = FakeDebuggee([Stopped(program, 1, False)])
    status, said, report = run(tmp_path, debuggee)
    assert status == exit_status.CRASHED
    assert program.resumed
    assert debuggee.calls == ["close"]
    assert said.startswith("dap-agent: attached; waiting for an uncaught exception")
    assert "the program stopped at KeyError: 'Gold '" in said
    assert report.stops == ["KeyError: 'Gold '"]


def test_ctrl_c_detaches(tmp_path: Path) -> None:
    debuggee = FakeDebuggee([])
    status, said, _ = run(tmp_path, debuggee)
    assert status == 0
    assert debuggee.calls == ["close"]
    assert said.endswith("dap-agent: detached; the program goes on.\n")


def test_now_shows_what_the_threads_do(snapshot: Make, tmp_path: Path) -> None:
    program: Any = Program(snapshot(reason="pause", exception=None))
    debuggee = FakeDebuggee([Stopped(program, 1, False)])
    status, said, report = run(tmp_path, debuggee, now=True)
    assert status == 0
    assert program.resumed
    assert debuggee.calls == ["pause", "close"]
    assert "  thread MainThread\n    #0 discount" in said
    assert said.count("no model is configured, so nothing is investigated") == 1
    assert report.crash is program.snapshot


def test_an_end_is_told(tmp_path: Path) -> None:
    status, said, _ = run(tmp_path, FakeDebuggee([Ended(None)]))
    assert status == 0
    assert "the program has ended; no uncaught exception was seen." in said


@pytest.mark.parametrize("now", [False, True])
def test_a_crash_without_a_stop_is_reported(now: bool, snapshot: Make, tmp_path: Path) -> None:
    crash: Any = Program(snapshot())
    status, said, _ = run(tmp_path, FakeDebuggee([Ended(-11, (crash,))]), now=now)
    assert status == exit_status.CRASHED
    assert "the program ended with KeyError" in said


def test_the_workspace_of_an_attached_program_is_the_programs_project(
    snapshot: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    project = tmp_path / "project"
    for name in ("app.py", "shop/pricing.py", "env/bin/server"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).touch()
    inner = [{**frame, "file": str(project / "shop" / "pricing.py")} for frame in snapshot().data["frames"]]

    def root(*argv: str, cwd: Path = project) -> Path:
        return root_of_attached(snapshot(process={"pid": 1, "argv": list(argv), "cwd": str(cwd)}, frames=inner))

    assert root("app.py") == project
    assert root("env/bin/server") == project  # a script of an environment: the folder it was started in
    assert root("") == root("-c") == root() == project
    assert root("app.py", cwd=tmp_path / "elsewhere") == project / "shop"
    assert root(cwd=tmp_path) == project / "shop"  # the home folder is nobody's project
    inner[0]["file"] = str(tmp_path / "gone.py")
    assert root("app.py") == project
