"""Real programs under real debugpy: what a test writes is what happened, in order."""

import asyncio
import json
import os
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dap_agent.session.launch import Debuggee, Ended, ProgramCommand, Stopped, StopRules
from dap_agent.session.snapshot import Snapshot

PROGRAMS = Path(__file__).parent / "programs"
SCHEMA = jsonschema.Draft202012Validator(
    json.loads((Path(__file__).parents[2] / "schemas" / "snapshot.schema.json").read_text(encoding="utf-8"))
)


@dataclass
class Story:
    """What a program did under dap-agent: its stops in order, its end, its output."""

    stops: list[Snapshot] = field(default_factory=list)
    end: Ended = field(default_factory=lambda: Ended(None))
    out: str = ""
    err: str = ""

    @property
    def crashes(self) -> list[Snapshot]:
        return [crash.snapshot for crash in self.end.crashes]

    @property
    def headlines(self) -> list[str]:
        return [stop.headline for stop in self.stops]


AtStop = Callable[[Stopped], Awaitable[Any]]


@dataclass
class Native:
    """What the program does without us."""

    status: int
    out: str
    err: str


class Player:
    def __init__(self, capfd: pytest.CaptureFixture[str], folder: Path) -> None:
        self._capfd = capfd
        self.folder = folder

    def command(self, python: Path, *arguments: str, program: str | None = None) -> ProgramCommand:
        """`-m MODULE ...`, a file of programs/ with arguments, or *program*'s text as a file of its own."""
        if program is not None:
            file = self.folder / "program.py"
            file.write_text(program, encoding="utf-8")
            return ProgramCommand(python, str(file), False, arguments, self.folder)
        if arguments[0] == "-m":
            return ProgramCommand(python, arguments[1], True, arguments[2:], self.folder)
        return ProgramCommand(python, str(PROGRAMS / arguments[0]), False, arguments[1:], self.folder)

    def play(
        self,
        command: ProgramCommand,
        *,
        at_stop: AtStop | None = None,
        stdin: int | None = subprocess.DEVNULL,
        rules: StopRules | None = None,
    ) -> Story:
        self._capfd.readouterr()
        story = asyncio.run(asyncio.wait_for(self._play(command, at_stop, stdin, rules), 90))
        story.out, story.err = self._capfd.readouterr()
        for snapshot in [*story.stops, *story.crashes]:
            SCHEMA.validate(snapshot.data)
        return story

    @staticmethod
    async def _play(
        command: ProgramCommand, at_stop: AtStop | None, stdin: int | None, rules: StopRules | None
    ) -> Story:
        story = Story()
        debuggee = await Debuggee.launch(command, stdin=stdin, rules=rules)
        try:
            while isinstance(event := await debuggee.next_event(), Stopped):
                story.stops.append(event.program.snapshot)
                if at_stop is not None:
                    await at_stop(event)
                await event.resume()
            story.end = event
        finally:
            await debuggee.close()
        return story

    @staticmethod
    def natively(command: ProgramCommand, *, stdin: str | None = None) -> Native:
        done = subprocess.run(
            command.argv,
            cwd=command.cwd,
            env=dict(os.environ),  # not the C library's copy, to which readline adds LINES and COLUMNS
            capture_output=True,
            text=True,
            input="" if stdin is None else stdin,
            timeout=60,
        )
        return Native(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def player(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Player:
    return Player(capfd, tmp_path)
