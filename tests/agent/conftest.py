"""A small shop that crashes, its snapshot by hand, a stopped program over it, and a model that plays turns."""

import asyncio
import copy
import inspect
import itertools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dap_agent.agent.budget import Budget
from dap_agent.agent.journal import Journal
from dap_agent.agent.loop import investigate
from dap_agent.agent.outcome import Outcome
from dap_agent.agent.progress import Progress
from dap_agent.fixes.workspace import Workspace
from dap_agent.models.base import Call, Message, ModelError, ToolSpec, Turn, Usage
from dap_agent.session.api import InspectionError
from dap_agent.session.history import page_of
from dap_agent.session.snapshot import Snapshot

ORDERS = '''\
"""Orders of the shop."""


def parse_line(text):
    name, _, price = text.partition("=")
    return {"name": name.strip(), "price": price.strip() or None}


def total(lines):
    """The sum of all prices."""
    result = 0.0
    for line in lines:
        result += float(parse_line(line)["price"])
    return result
'''
MAIN = """\
import sys

from shop.orders import total


def main(argv):
    lines = ["tea = 3.5", "gift ="]
    print("sum", total(lines))


if __name__ == "__main__":
    main(sys.argv)
"""
EXISTING_TEST = """\
from shop.orders import parse_line, total


def test_total():
    assert total(["a = 1", "b = 2"]) == 3


def test_no_price_is_none():
    assert parse_line("gift =")["price"] is None
"""
FIXED_TOTAL = '''\
def total(lines):
    """The sum of all prices; what has no price is free."""
    return sum(float(parse_line(line)["price"] or 0) for line in lines)
'''
REGRESSION_TEST = """\
from shop.orders import total


def test_a_gift_is_free():
    assert total(["tea = 3.5", "gift ="]) == 3.5
"""


def value(type_: str, text: str, **more: Any) -> dict[str, Any]:
    return {"type": type_, "text": text, **more}


def named(name: str, type_: str, text: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "value": value(type_, text, **more)}


def exception(type_: str, message: str, **more: Any) -> dict[str, Any]:
    return {
        "type": type_,
        "message": message,
        "notes": [],
        "attributes": [],
        "where": None,
        "cause": None,
        "context": None,
        "group": [],
        "syntax": None,
        **more,
    }


def frame(number: int, function: str, file: str, line: int, **more: Any) -> dict[str, Any]:
    return {
        "number": number,
        "function": function,
        "module": "shop.orders",
        "file": file,
        "line": line,
        "first_line": max(1, line - 2),
        "user": True,
        "package": None,
        "stdlib": False,
        "arguments": [],
        "locals": [],
        "locals_total": 0,
        "source": None,
        **more,
    }


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run the coroutine tests of this folder."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory of its own for each test."""
    path = tmp_path / "state"
    monkeypatch.setenv("DAP_AGENT_STATE_DIR", str(path))
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The project's files."""
    root = tmp_path / "project"
    for name, text in {
        "shop/__init__.py": "",
        "shop/orders.py": ORDERS,
        "shop/main.py": MAIN,
        "tests/test_orders.py": EXISTING_TEST,
        "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root.resolve()


@pytest.fixture
def workspace(root: Path) -> Workspace:
    return Workspace(root)


@pytest.fixture
def data(root: Path) -> dict[str, Any]:
    """The snapshot's JSON: `total` got None from `parse_line`."""
    orders, main = str(root / "shop/orders.py"), str(root / "shop/main.py")
    message = "float() argument must be a string or a real number, not 'NoneType'"
    lines = named("lines", "list", "['tea = 3.5', 'gift =']", length=2)
    return {
        "version": 1,
        "reason": "exception",
        "python": {"version": "3.12.1", "implementation": "CPython", "executable": "python", "platform": "linux"},
        "process": {"pid": 4711, "argv": ["shop/main.py"], "cwd": str(root)},
        "thread": {"id": 1, "name": "MainThread", "main": True},
        "task": None,
        "exception": exception("TypeError", message, where={"function": "total", "file": orders, "line": 13}),
        "frames": [
            frame(
                0,
                "total",
                orders,
                13,
                first_line=9,
                arguments=[lines],
                locals=[lines, named("result", "float", "3.5"), named("line", "str", "'gift ='", length=6)],
                locals_total=3,
                source={"first_line": 9, "lines": ORDERS.split("\n")[8:14]},
            ),
            frame(
                1, "main", main, 8, module="shop.main", arguments=[named("argv", "list", "['shop/main.py']", length=1)]
            ),
            frame(2, "<module>", main, 12, module="__main__"),
        ],
        "frames_total": 3,
        "folds": [],
        "output": {"stdout": ["starting"], "stderr": []},
        "threads": [],
        "elapsed_ms": 1.5,
        "notes": [],
    }


class FakeProgram:
    """A stopped program that answers from its snapshot; `fail` makes every question fail."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.fail: Exception | None = None
        self.asked: list[tuple[Any, ...]] = []
        self.trials: list[dict[str, Any]] | None = None
        self.traced: dict[str, Any] | None = None

    @property
    def snapshot(self) -> Snapshot:
        return Snapshot(self.data)

    def _note(self, *question: Any) -> None:
        self.asked.append(question)
        if self.fail is not None:
            raise self.fail

    async def frame(self, number: int) -> dict[str, Any]:
        self._note("frame", number)
        return copy.deepcopy(self.data["frames"][number])

    async def variable(self, frame: int, path: str, start: int = 0, count: int = 50) -> dict[str, Any]:
        self._note("variable", frame, path, start, count)
        raise InspectionError(f"no such name {path!r}")

    async def members(self, frame: int, path: str) -> dict[str, Any]:
        self._note("members", frame, path)
        raise InspectionError(f"no such name {path!r}")

    async def history(
        self, function: str = "", order: str = "newest", start: int = 0, count: int = 20
    ) -> dict[str, Any]:
        self._note("history", function, order, start, count)
        found = page_of(self.snapshot, function, order, start, count)
        if found is None:
            raise InspectionError("nothing was recorded")
        return found

    async def evaluate(self, frame: int, code: str, timeout: float = 5.0, *, jailed: bool = False) -> dict[str, Any]:
        self._note("evaluate_jailed" if jailed else "evaluate", frame, code, timeout)
        raise InspectionError("not here")

    async def try_fix(
        self, candidates: list[list[dict[str, Any]]], texts: list[str], frame: int | None, timeout: float = 5.0
    ) -> dict[str, Any]:
        self._note("try_fix", candidates, texts, frame, timeout)
        if self.trials is None:
            raise InspectionError("Nothing can be tried here.")
        return {"trials": copy.deepcopy(self.trials[: len(candidates)]), "isolation": {"text": "Locked."}}

    async def trace(self, timeout: float = 5.0, **wanted: Any) -> dict[str, Any]:
        self._note("trace", timeout, wanted)
        if self.traced is None:
            raise InspectionError("Nothing can be traced here.")
        return copy.deepcopy(self.traced)


@pytest.fixture
def program(data: dict[str, Any]) -> FakeProgram:
    return FakeProgram(data)


USAGE = Usage(1000, 100)


def say(text: str, stop: Any = "end", usage: Usage = USAGE) -> Turn:
    """A turn without calls."""
    return Turn(text, (), stop, usage)


_ids = itertools.count(1)


def calls(*pairs: tuple[str, Any], text: str = "", usage: Usage = USAGE) -> Turn:
    """A turn with calls; a text in the place of the arguments is what the model wrote and does not parse."""
    made = tuple(
        Call(f"c{next(_ids)}", name, None, arguments)
        if isinstance(arguments, str)
        else Call(f"c{next(_ids)}", name, arguments, "")
        for name, arguments in pairs
    )
    return Turn(text, made, "calls", usage)


class Script:
    """A model that plays turns (or raises, or computes one from the messages) and keeps what it was sent."""

    name = "script:test"

    def __init__(
        self, *turns: Turn | Exception | Callable[[Sequence[Message]], Any], price: float | None = None
    ) -> None:
        self.turns = list(turns)
        self.price = price
        self.sent: list[dict[str, Any]] = []

    async def complete(
        self,
        *,
        system: str,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        max_tokens: int,
        force: bool = False,
        on_text: Callable[[str], None] | None = None,
    ) -> Turn:
        self.sent.append(
            {"system": system, "messages": tuple(messages), "tools": tuple(tools), "max_tokens": max_tokens}
        )
        if not self.turns:
            raise ModelError("The script has no more turns.", "script")
        turn = self.turns.pop(0)
        if isinstance(turn, Exception):
            raise turn
        if not isinstance(turn, Turn):
            turn = turn(messages)
            if not isinstance(turn, Turn):
                turn = await turn
        assert isinstance(turn, Turn)
        if on_text is not None and turn.text:
            on_text(turn.text)
        return turn

    def cost(self, usage: Usage) -> float | None:
        return None if self.price is None else self.price * (usage.input_tokens + usage.output_tokens)

    async def aclose(self) -> None:
        pass

    def results(self, request: int = -1) -> list[Any]:
        """The tool results that the request's last `ToolResults` holds."""
        found = [message for message in self.sent[request]["messages"] if hasattr(message, "results")]
        return list(found[-1].results)


BUDGET = Budget()


class Run:
    """One investigation and all that came of it."""

    def __init__(self, program: FakeProgram, workspace: Workspace) -> None:
        self.program = program
        self.workspace = workspace
        self.progress: list[Progress] = []
        self.python = Path(sys.executable)
        self.journal = Journal.create(
            workspace.root, model="script:test", command=["shop/main.py"], headline="TypeError: float()"
        )

    async def __call__(self, backend: Script, budget: Budget = BUDGET, **options: Any) -> Outcome:
        return await investigate(
            self.program,
            backend,
            self.workspace,
            python=self.python,
            budget=budget,
            journal=self.journal,
            on_progress=self.progress.append,
            **options,
        )

    def told(self, kind: str) -> list[Progress]:
        return [event for event in self.progress if event.kind == kind]


@pytest.fixture
def run(program: FakeProgram, workspace: Workspace) -> Run:
    return Run(program, workspace)


@pytest.fixture
def kit() -> Any:
    """The helpers above, for test files (which cannot import a conftest)."""
    from types import SimpleNamespace

    return SimpleNamespace(
        value=value,
        named=named,
        exception=exception,
        frame=frame,
        say=say,
        calls=calls,
        Script=Script,
        FakeProgram=FakeProgram,
        Run=Run,
        FIXED_TOTAL=FIXED_TOTAL,
        REGRESSION_TEST=REGRESSION_TEST,
    )
