"""A shop that has crashed, a debug session by hand that stands at it, and a model that plays turns."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dap_agent.control.assistant import Assistant
from dap_agent.control.work import Configuration, Listener, Work
from dap_agent.errors import DapAgentError
from dap_agent.models import registry
from dap_agent.session.api import ProgramResumed
from dap_agent.session.snapshot import Snapshot
from dap_agent.session.stopped import PostMortem

from ..agent.conftest import (
    FIXED_TOTAL,
    REGRESSION_TEST,
    FakeProgram,
    Script,
    calls,
    data,
    pytest_pyfunc_call,
    root,
    say,
    state,
)

__all__ = ["data", "pytest_pyfunc_call", "root", "state"]


class FakeStop(FakeProgram):
    """A stop that can end; a `hold` keeps its answers back until then."""

    def __init__(self, data: dict[str, Any]) -> None:
        super().__init__(data)
        self.over = asyncio.Event()
        self.held = asyncio.Event()  # somebody waits for an answer
        self.hold = False

    async def frame(self, number: int) -> dict[str, Any]:
        if self.hold:
            self.held.set()
            await self.over.wait()
            raise ProgramResumed("The program was resumed: its frames and values can no longer be read.")
        return await super().frame(number)

    async def evaluate(self, frame: int, code: str, timeout: float = 5.0, *, jailed: bool = False) -> dict[str, Any]:
        self._note("evaluate", frame, code, timeout)
        value = {"type": "str", "text": f"{code} in {frame}"}
        return {"value": value, "error": None, "stdout": "", "stderr": "", "notes": []}

    async def until_over(self) -> str:
        await self.over.wait()
        return "The program was resumed."


class FakeGuest:
    """A debug session that does what the test says."""

    def __init__(self) -> None:
        self.state = "running"
        self.last: Snapshot | None = None
        self.stop: FakeStop | None = None
        self.restarts = 0
        self.frames = {7: 1}
        self._listeners: list[Any] = []

    def listen(self, listener: Any) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def program(self) -> Any:
        if self.state == "ended":
            if self.last is None:
                raise DapAgentError("The program has ended, and no exception has stopped it.")
            return PostMortem(self.last)
        if self.stop is None:
            raise DapAgentError("The program is running: pause it first.")
        return self.stop

    async def frame_number(self, frame_id: int | None) -> int:
        return 0 if frame_id is None else self.frames[frame_id]

    async def restart(self) -> None:
        self.restarts += 1

    # What the test does

    def stops(self, data: dict[str, Any]) -> FakeStop:
        self.state, self.stop = "stopped", FakeStop(data)
        if data["reason"] == "exception":
            self.last = self.stop.snapshot
            for listener in self._listeners:
                listener.stopped(self.stop.snapshot, 1)
        return self.stop

    def goes_on(self) -> None:
        assert self.stop is not None
        self.state = "running"
        self.stop.over.set()
        self.stop = None
        for listener in self._listeners:
            listener.resumed()

    def ends(self) -> None:
        if self.stop is not None:
            self.goes_on()
        self.state = "ended"
        for listener in self._listeners:
            listener.ended()


class Heard(Listener):
    """Keeps all that it is told; waits for the end of an investigation."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.over = asyncio.Event()

    def began(self, work: Work) -> None:
        self.over.clear()

    def progress(self, work: Work, event: Any) -> None:
        self.events.append(event)

    def ended(self, work: Work) -> None:
        self.over.set()


class World:
    """An assistant over a fake debug session, with a scripted model."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.guest = FakeGuest()
        self.configuration = Configuration(model="scripted:test", workspace=(root,))
        self.heard = Heard()
        self.script = Script(price=0.001)
        self.made: list[str] = []
        monkeypatch.setattr(registry, "create", self._create)
        self.assistant = Assistant(self.guest, self._configure)
        self.assistant.listen(self.heard)

    def _create(self, name: str) -> Script:
        self.made.append(name)
        return self.script

    async def _configure(self) -> Configuration:
        return self.configuration

    def turns(self, *turns: Any) -> None:
        self.script.turns = list(turns)

    async def over(self) -> None:
        await asyncio.wait_for(self.heard.over.wait(), 60)


def fix(test: str = REGRESSION_TEST, source: str = FIXED_TOTAL) -> tuple[str, Any]:
    return (
        "propose",
        {
            "title": "A line without a price is free",
            "cause": "parse_line gives None for a missing price.",
            "evidence": [{"text": "no price", "frame": 0, "expression": "line", "value": "'gift ='"}],
            "edits": [{"kind": "replace_symbol", "file": "shop/orders.py", "symbol": "total", "source": source}],
            "test": {"file": "tests/test_gift.py", "source": test},
        },
    )


async def hang(messages: Any) -> Any:
    await asyncio.Event().wait()


@pytest.fixture
def world(root: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], World]:
    """Makes the world, within the test's event loop."""
    return lambda: World(root, monkeypatch)


@pytest.fixture
def model() -> Any:
    """What a model says, for test files (which cannot import a conftest)."""
    from types import SimpleNamespace

    return SimpleNamespace(say=say, calls=calls, fix=fix, hang=hang)
