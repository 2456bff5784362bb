"""How calls are checked and answered."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from dap_agent.agent.schemas import tools_schema
from dap_agent.agent.tools import RESULT_LIMIT, Answer, Tool, Toolbox, ToolContext, bounded
from dap_agent.agent.toolset import tools
from dap_agent.errors import DapAgentError
from dap_agent.fixes.workspace import Workspace
from dap_agent.models.base import Call
from dap_agent.session.api import InspectionError, ProgramResumed

SCHEMA = Path(__file__).parents[2] / "schemas" / "tools.schema.json"
NAMES = ["exception", "stack", "frame", "variable", "members", "history", "search", "read_file", "evaluate",
         "trace", "try_fix", "run_test", "propose"]  # fmt: skip


@pytest.fixture
def context(program: Any, workspace: Workspace) -> ToolContext:
    return ToolContext(program, workspace, Path(sys.executable))


@pytest.fixture
def ask(context: ToolContext) -> Any:
    """Call a tool by name and arguments; a text in their place is what the model wrote and does not parse."""
    toolbox = Toolbox(tools(), context)
    turn = iter(range(1, 1000))

    async def ask(name: str, arguments: Any) -> Answer:
        parsed = None if isinstance(arguments, str) else arguments
        return await toolbox.call(Call("c", name, parsed, arguments if isinstance(arguments, str) else ""), next(turn))

    return lambda name, arguments: _run(ask(name, arguments))


def _run(coroutine: Any) -> Any:
    import asyncio

    return asyncio.run(coroutine)


def test_the_schema_file_is_fresh() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == tools_schema(), (
        "python -m dap_agent.agent.schemas schemas/tools.schema.json"
    )


def test_names_and_size_of_what_is_sent() -> None:
    specs = [tool.spec for tool in tools()]
    assert [spec.name for spec in specs] == NAMES
    sent = json.dumps([{"name": s.name, "description": s.description, "input_schema": s.parameters} for s in specs])
    assert len(sent) < 8_800


def test_every_example_is_a_right_call() -> None:
    import jsonschema

    validator = jsonschema.Draft202012Validator(json.loads(tools_schema()))
    for tool in tools():
        validator.validate({"name": tool.name, "arguments": tool.example})
        assert not list(jsonschema.Draft202012Validator(tool.parameters).iter_errors(tool.example))


@pytest.mark.parametrize(
    ("name", "arguments", "parts"),
    [
        ("frame", {}, ["missing 'number' (frame number, 0 = innermost)", 'A right call: frame {"number": 0}']),
        ("frame", {"number": "zero"}, ['number must be of type integer, not "zero"', 'frame {"number": 0}']),
        ("frame", {"number": -1}, ["number: -1 is less than the minimum of 0"]),
        ("frame", {"nr": 0}, ["unknown 'nr' (known: number)", "missing 'number'"]),
        ("variable", {"frame": 0}, ["missing 'path' (like order.items[3].price)", 'variable {"frame": 0, "path": ']),
        ("variable", {"frame": 0, "path": ""}, ["path: '' should be non-empty"]),
        ("variable", {"frame": 0, "path": "a", "count": 100_000}, ["count: 100000 is greater than the maximum of 200"]),
        ("frame", '{"number": ', ["The arguments of frame are no JSON object", 'A right call: frame {"number": 0}']),
        ("frame", "[1]", ["they are list, not an object"]),
        (
            "frame",
            {"number": 99},
            ["There is no frame 99: frames are 0 to 2", "User frames: 0 total at", "2 <module> at"],
        ),
        ("members", {"frame": 7, "path": "x"}, ["There is no frame 7"]),
        ("evaluate", {"frame": 7, "code": "x"}, ["There is no frame 7"]),
        ("stack", {"start": 50}, ["start 50 is beyond the end: the stack has 3 lines"]),
        ("read_file", {"file": "shop/nothing.py"}, ["shop/nothing.py does not exist; look for it with search"]),
        ("read_file", {"file": "../outside.py"}, ["is outside the workspace"]),
        ("read_file", {"file": "shop/orders.py", "first_line": 99}, ["has 14 lines: first_line must be 1 to 14"]),
        ("fly", {}, ["There is no tool 'fly'. The tools are: exception, stack, frame, variable"]),
    ],
)
def test_wrong_calls_are_told_how_to_call_right(ask: Any, name: str, arguments: Any, parts: list[str]) -> None:
    answer = ask(name, arguments)
    assert answer.error
    for part in parts:
        assert part in answer.content


@pytest.mark.parametrize(("allowed", "question"), [(False, "evaluate_jailed"), (True, "evaluate")])
def test_evaluate_is_jailed_unless_the_live_program_is_allowed(
    context: ToolContext, program: Any, allowed: bool, question: str
) -> None:
    toolbox = Toolbox(tools(allow_evaluate=allowed), context)
    assert [spec.name for spec in toolbox.specs] == NAMES
    _run(toolbox.call(Call("c", "evaluate", {"frame": 0, "code": "1"}, ""), 1))
    assert program.asked[-1] == (question, 0, "1", 5.0)


def test_what_the_program_says_is_an_error_result(ask: Any) -> None:
    answer = ask("variable", {"frame": 0, "path": "ordr"})
    assert (answer.error, answer.content) == (True, "no such name 'ordr'")


def test_a_bug_of_ours_is_an_error_result_with_the_traceback_for_the_journal(ask: Any, program: Any) -> None:
    program.fail = ZeroDivisionError("secret detail")
    answer = ask("frame", {"number": 0})
    assert answer.error
    assert answer.content.startswith("frame failed inside dap-agent (ZeroDivisionError)")
    assert "secret detail" in answer.bug


def test_a_resumed_program_ends_it(ask: Any, program: Any) -> None:
    program.fail = ProgramResumed("The program went on.")
    with pytest.raises(ProgramResumed):
        ask("frame", {"number": 0})


def test_the_same_call_twice_is_told(ask: Any, program: Any) -> None:
    assert not ask("frame", {"number": 0}).error
    again = ask("frame", {"number": 0})
    assert again.error
    assert "You made this very call in turn 1" in again.content
    assert program.asked == [("frame", 0)]
    assert not ask("frame", {"number": 1}).error


def test_a_failed_call_is_tried_again_and_noted(ask: Any, program: Any) -> None:
    program.fail = InspectionError("not now")
    assert ask("frame", {"number": 0}).content == "not now"
    assert ask("frame", {"number": 0}).content == "(the same call as in turn 1)\nnot now"
    program.fail = None
    assert not ask("frame", {"number": 0}).error


def tool(text: str | Exception, **options: Any) -> Tool:
    async def handler(context: ToolContext, arguments: dict[str, Any]) -> str:
        if isinstance(text, Exception):
            raise text
        return text

    return Tool("probe", "", {"type": "object"}, {}, handler, **options)


def answer_of(context: ToolContext, text: str | Exception, **options: Any) -> Answer:
    answer: Answer = _run(Toolbox([tool(text, **options)], context).call(Call("c", "probe", {}, ""), 1))
    return answer


def test_results_are_bounded_and_say_how_to_see_more(context: ToolContext) -> None:
    content = answer_of(context, "line of text\n" * 5_000, more="use count").content
    assert RESULT_LIMIT * 0.9 < len(content) < RESULT_LIMIT + 100
    assert content.endswith("more characters; use count]")
    assert len(answer_of(context, "x" * 50_000).content) < RESULT_LIMIT + 100
    assert len(answer_of(context, DapAgentError("x" * 50_000)).content) < RESULT_LIMIT + 100


def test_bounded_leaves_short_text() -> None:
    assert bounded("abc", "more", 3) == "abc"


def test_results_are_masked_and_harmless(context: ToolContext) -> None:
    token = "ghp_" + "a1B2" * 9
    content = answer_of(context, f"\x1b[2J{token} \u202e \udc80").content
    assert token not in content
    assert content.startswith("<masked>")
    assert content.endswith(" \\u202e \\udc80")
