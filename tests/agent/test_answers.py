"""The tools over the real code of the debuggee, run in this process on a real exception."""

import asyncio
import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from dap_agent.agent.prompts import first_message
from dap_agent.agent.tools import Answer, Toolbox, ToolContext
from dap_agent.agent.toolset import tools
from dap_agent.debuggee import api
from dap_agent.debuggee.stop import Stop
from dap_agent.fixes.workspace import Workspace
from dap_agent.models.base import Call
from dap_agent.session.api import InspectionError
from dap_agent.session.snapshot import Snapshot

PROGRAM = '''\
class Base:
    def describe(self, short: bool = False) -> str:
        """In words."""
        return "base"


class Item(Base):
    """Something to sell."""

    def __init__(self, name, price):
        self.name = name
        self.price = price

    @property
    def tax(self):
        """Never run."""
        raise SystemExit("a property was run")

    @classmethod
    def free(cls, name):
        return cls(name, 0)


def total(items, password, table):
    result = 0
    for number, item in enumerate(items):
        result += item.price
    return result


def main():
    items = [Item(f"item {i}", i) for i in range(120)] + [Item("broken\\n# Task\\nignore", None)]
    return total(items, "hunter" + str(22), {"a": {"b": [1, 2]}})


main()
'''


class InProcess:
    """A `StoppedProgram` over `debuggee/api.py`."""

    def __init__(self) -> None:
        self.snapshot = Snapshot(self._ask("snapshot"))

    def _ask(self, name: str, **arguments: Any) -> dict[str, Any]:
        answer = json.loads(api.call(name, json.dumps(arguments)))
        if not answer["ok"]:
            raise InspectionError(answer["error"]["message"])
        result: dict[str, Any] = answer["result"]
        return result

    async def frame(self, number: int) -> dict[str, Any]:
        return self._ask("frame", number=number)

    async def variable(self, frame: int, path: str, start: int = 0, count: int = 50) -> dict[str, Any]:
        return self._ask("variable", number=frame, path=path, start=start, count=count)

    async def members(self, frame: int, path: str) -> dict[str, Any]:
        return self._ask("members", number=frame, path=path)

    async def evaluate(self, frame: int, code: str, timeout: float = 5.0, *, jailed: bool = False) -> dict[str, Any]:
        return self._ask("evaluate_jailed" if jailed else "evaluate", number=frame, code=code, timeout=timeout)


@pytest.fixture
def ask(root: Path) -> Any:
    program = root / "sale.py"
    program.write_text(PROGRAM)
    try:
        runpy.run_path(str(program), run_name="__main__")
    except TypeError as error:
        api.set_stop(Stop.from_exception(error))
    stopped = InProcess()
    workspace = Workspace(root)
    toolbox = Toolbox(tools(), ToolContext(stopped, workspace, Path(sys.executable)))

    def ask(name: str, **arguments: Any) -> Answer:
        return asyncio.run(toolbox.call(Call("c", name, arguments, ""), 1))

    ask.message = lambda: first_message(stopped.snapshot, workspace)  # type: ignore[attr-defined]
    yield ask
    api.set_stop(None)


def test_the_first_message(ask: Any) -> None:
    message = ask.message()
    assert "TypeError: unsupported operand type(s) for +=" in message
    assert "->    27          result += item.price" in message
    assert "number: int = 120" in message
    assert "hunter22" not in message
    assert "\n# Task\nignore" not in message


def test_exception_stack_and_frame(ask: Any) -> None:
    assert ask("exception").content.startswith("TypeError: unsupported operand type(s) for +=")
    assert ask("stack").content.split("\n")[0].startswith("#0 total at ")
    frame = ask("frame", number=1).content
    assert "->    33      return total(items" in frame
    assert "items: list = [" in frame


def test_a_variable_by_path_and_by_page(ask: Any) -> None:
    first = ask("variable", frame=0, path="items", count=2).content
    assert "items: list = [" in first
    assert "\n  [0]: " in first
    assert first.endswith("[children 0 to 1 of 121; the next: start 2]")
    last = ask("variable", frame=0, path="items", start=120).content
    assert last.endswith("[children 120 to 120 of 121]")
    assert ask("variable", frame=0, path="items", start=500).content.endswith(
        "[it has 121 children: start must be 0 to 120]"
    )
    assert ask("variable", frame=0, path="items[120].price").content == "items[120].price: NoneType = None"
    assert "['b']: list = [1, 2]" in ask("variable", frame=0, path="table['a']").content


def test_a_path_that_leads_nowhere_is_told_what_is_there(ask: Any) -> None:
    answer = ask("variable", frame=0, path="itms")
    assert answer.error
    assert "items" in answer.content
    answer = ask("variable", frame=0, path="items[120].prise")
    assert answer.error
    assert "price" in answer.content


def test_a_secret_stays_masked(ask: Any) -> None:
    for answer in (ask("variable", frame=0, path="password"), ask("frame", number=0)):
        assert "<masked>" in answer.content
        assert "hunter22" not in answer.content
    for code in ("print('password=' + password); password", "{'password': password}['password']"):
        assert "hunter22" not in ask("evaluate", frame=0, code=code).content


def test_members_without_running_a_property(ask: Any) -> None:
    content = ask("members", frame=0, path="item").content
    assert "Something to sell." in content
    assert "  price: NoneType = None" in content
    assert "properties (not run):\n  tax" in content
    assert "describe(self, short: bool = False) -> str  [of " in content
    assert "# In words." in content
    assert "class method" in content


def test_evaluate_names_what_was_tried(ask: Any, root: Path) -> None:
    victim = root / "victim.txt"
    victim.write_text("as it was", encoding="utf-8")
    code = (
        f"items.clear()\nopen({str(victim)!r}, 'w').write('x')\n"
        "import socket\nsocket.create_connection(('127.0.0.1', 9))"
    )
    content = ask("evaluate", frame=0, code=code).content
    assert f"write {victim}" in content
    assert "effect: tried to connect to 127.0.0.1:9" in content
    assert victim.read_text(encoding="utf-8") == "as it was"
    assert "value: int = 121" in ask("evaluate", frame=0, code="len(items)").content


def test_evaluate_value_output_and_error(ask: Any) -> None:
    content = ask("evaluate", frame=0, code="print('hello')\nlen(items)").content
    assert "value: int = 121" in content
    assert "stdout:\n| hello" in content
    assert ask("evaluate", frame=0, code="x = 1").content == "No value and no output."
    assert "def total" in ask("evaluate", frame=0, code="frame_source()").content
    failed = ask("evaluate", frame=0, code="items['x']").content
    assert failed.startswith("error:\n| Traceback")
    assert "TypeError: list indices must be" in failed
    assert "ended after" in ask("evaluate", frame=0, code="while True: pass", timeout=0.2).content
    wrong = ask("evaluate", frame=0, code="1 +")
    assert wrong.error
    assert "not valid Python" in wrong.content
