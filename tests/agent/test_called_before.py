"""What was called before the failure: in the first message, in the report, and by the tool `history`."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from dap_agent.agent import prompts
from dap_agent.agent.tools import Toolbox, ToolContext
from dap_agent.agent.toolset import tools
from dap_agent.control import render
from dap_agent.models.base import Call
from dap_agent.session.api import InspectionError
from dap_agent.session.snapshot import Snapshot
from dap_agent.session.stopped import PostMortem

TITLE = "# Called before the failure"


def called(function: str, order: int, **more: Any) -> dict[str, Any]:
    return {
        "function": function,
        "file": "shop/orders.py",
        "line": 3,
        "calls": 1,
        "thinned": False,
        "order": order,
        "on_stack": False,
        "thread": "MainThread",
        "task": None,
        "left_with": None,
        "arguments": [],
        "arguments_of": order,
        "result": {"type": "NoneType", "text": "None"},
        **more,
    }


@pytest.fixture
def recorded(data: dict[str, Any]) -> dict[str, Any]:
    text = {"type": "str", "text": "'gift ='"}
    data["called"] = [
        called("main", 1, on_stack=True),
        called("configure", 2, left_with="KeyError", thread="worker", task="Task-3", result=None),
        called("total", 7, on_stack=True),
        called(
            "parse_line",
            9,
            calls=120,
            thinned=True,
            arguments=[
                {"name": "line", "value": text},
                {"name": "password", "value": {"type": "str", "text": "'hm!'"}},
            ],
            arguments_of=4,
            result={"type": "dict", "text": "{'name': 'gift', 'price': None}"},
        ),
    ]
    return data


def section(message: str) -> list[str]:
    after = message.partition(TITLE)[2].partition("\n\n# ")[0]
    return after.split("\n")[1:]


def test_what_has_returned_is_in_the_first_message(recorded: dict[str, Any], workspace: Any) -> None:
    message = prompts.first_message(Snapshot(recorded), workspace)
    assert section(message) == [
        "configure() at shop/orders.py:3  [1 call; left with KeyError; thread worker; task Task-3]",
        "parse_line(line='gift =', password=<masked>) -> {'name': 'gift', 'price': None} at shop/orders.py:3  "
        "[120+ calls; the values are of an earlier call]",
    ]


def test_it_keeps_to_the_budget_and_leaves_out_the_oldest(recorded: dict[str, Any], workspace: Any) -> None:
    recorded["called"] = [called(f"function_{n}", n + 1) for n in range(20)]
    full = prompts.first_message(Snapshot(recorded), workspace)
    small = prompts.first_message(Snapshot(recorded), workspace, 1500)
    assert len(section(full)) == 20
    assert prompts.tokens(small) <= 1500
    (first, *_, last) = section(small)
    assert first.endswith("more lines]")
    assert last.startswith("function_19()")


@pytest.mark.parametrize("entries", [None, []])
def test_nothing_is_said_where_nothing_was_recorded(entries: Any, data: dict[str, Any], workspace: Any) -> None:
    if entries is not None:
        data["called"] = entries
    assert TITLE not in prompts.first_message(Snapshot(data), workspace)
    assert "called before" not in render.plain(render.crash(Snapshot(data), "stopped at"))


def test_the_report_has_six_lines_of_it_at_most(recorded: dict[str, Any]) -> None:
    recorded["called"] += [called(f"function_{n}", n + 10) for n in range(9)]
    text = render.plain(render.crash(Snapshot(recorded), "stopped at"))
    (_, _, after) = text.partition("called before, newest last:\n")
    lines = [line.strip() for line in after.split("\n") if line.startswith("    function_")]
    assert [line.partition("(")[0] for line in lines] == [f"function_{n}" for n in range(4, 9)]


@pytest.fixture
def context(program: Any, workspace: Any) -> ToolContext:
    return ToolContext(program, workspace, Path(sys.executable))


def ask(context: ToolContext, **arguments: Any) -> Any:
    toolbox = Toolbox(tools(), context)
    return asyncio.run(toolbox.call(Call("c", "history", arguments, ""), 1))


def test_history_pages(recorded: dict[str, Any], context: ToolContext) -> None:
    names = [line.partition("(")[0] for line in ask(context).content.split("\n")]
    assert names == ["parse_line", "total", "configure", "main"]
    (line, more) = ask(context, start=1, count=1).content.split("\n")
    assert line.startswith("total()") and line.endswith("on the stack]")
    assert more == "[functions 1 to 1 of 4; the next: start 2]"
    assert ask(context, order="oldest", count=1).content.startswith("main()")
    assert ask(context, order="calls", count=1).content.startswith("parse_line(")
    assert ask(context, function="conf").content.startswith("configure()")
    assert "No function" in ask(context, function="nowhere").content
    assert "beyond the end: there are 4" in ask(context, start=4).content


def test_history_tells_the_calls_that_were_read(recorded: dict[str, Any], context: ToolContext) -> None:
    def read(order: int, text: str, **more: Any) -> dict[str, Any]:
        call = {"order": order, "arguments": [{"name": "line", "value": {"type": "str", "text": text}}], "result": None}
        return {**call, "left_with": None, "called_from": None, "thread": "MainThread", "task": None, **more}

    recorded["called"][3]["read"] = [
        read(3, "'tea = 3.5'", called_from={"file": "shop/orders.py", "line": 12}, left_with="ValueError"),
        read(4, "'gift ='"),
    ]
    assert ask(context, function="parse").content.split("\n")[1:] == [
        "  call 3: (line='tea = 3.5') left with ValueError, from shop/orders.py:12"
    ]


def test_history_without_a_recorder_says_so(data: dict[str, Any], context: ToolContext) -> None:
    answer = ask(context)
    assert answer.error


def test_after_the_end_the_snapshot_answers(recorded: dict[str, Any], root: Path) -> None:
    dead = PostMortem(Snapshot(recorded))
    found = asyncio.run(dead.history("parse"))
    assert [entry["function"] for entry in found["functions"]] == ["parse_line"]
    del recorded["called"]
    with pytest.raises(InspectionError, match="not recorded"):
        asyncio.run(dead.history())
