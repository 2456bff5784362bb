"""The tool `trace`: what is asked of the program, and the answer as text."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from dap_agent.agent.prompts import ASK_SYSTEM, SYSTEM
from dap_agent.agent.tools import Answer, Toolbox, ToolContext
from dap_agent.agent.toolset import tools
from dap_agent.fixes.workspace import Workspace
from dap_agent.models.base import Call
from dap_agent.session.snapshot import Snapshot
from dap_agent.session.stopped import PostMortem


def ask(program: Any, workspace: Workspace, **arguments: Any) -> Answer:
    toolbox = Toolbox(tools(), ToolContext(program, workspace, Path(sys.executable)))
    return asyncio.run(toolbox.call(Call("c", "trace", arguments, ""), 1))


def shown(text: str, kind: str = "int") -> dict[str, Any]:
    return {"type": kind, "text": text}


@pytest.fixture
def traced(root: Path) -> dict[str, Any]:
    file = str(root / "shop/orders.py")
    at = {"function": "total", "file": file, "line": 12, "text": "found += price", "step": 3, "at_call": False}
    step = {"function": 0, "depth": 1, "changes": [], "branch": "", "value": None, "text": ""}
    password = {"name": "password", "before": None, "value": shown("'hunter22'", "str"), "late": False}
    return {
        "call": "total([1])", "frame": 0, "outcome": "total([1]) raised TypeError: no (total, line 12)", "value": None,
        "error": None, "functions": [{"name": "total", "file": file, "line": 10, "calls": 1, "steps": 9}], "total": 9,
        "steps": [
            {**step, "kind": "call", "line": 10, "changes": [{**password, "name": "lines", "value": shown("[1]")}]},
            {**step, "kind": "line", "line": 11, "text": "if lines:", "branch": "true", "changes": [password]},
            {"kind": "gap", "depth": 1, "steps": 40, "lines": [{"function": 0, "first": 11, "last": 12, "times": 20}]},
            {**step, "kind": "line", "line": 12, "text": "found += price",
             "changes": [{"name": "found", "before": "1", "value": shown("None\x1b[2J", "NoneType"), "late": True}]},
            {**step, "kind": "raise", "line": 12, "text": "TypeError: no"},
            {**step, "kind": "left", "line": 12},
        ],
        "first_change": {
            "name": "found", "began": {**at, "value": shown("1")}, "count": 1, "other_type": None,
            "changes": [{**at, "before": shown("1"), "value": shown("None", "NoneType")}],
        },
        "when": {"first": {**at, "values": [{"name": "found", "value": shown("None")}]}, "count": 2},
        "limits": ["Only the first 9 lines."], "stdout": "hello\n", "stderr": "", "effects": ["tried to write x"],
        "notes": ["a note"], "seconds": 0.001, "isolation": {"level": "kernel", "text": "Locked."},
    }  # fmt: skip


def test_the_answer(program: Any, workspace: Workspace, traced: dict[str, Any]) -> None:
    program.traced = traced
    answer = ask(
        program, workspace, frame=1, functions=["total"], first_change="found", when="found is None", timeout=2
    )
    assert not answer.error
    assert program.asked == [
        ("trace", 2.0, {"number": 1, "functions": ["total"], "first_change": "found", "when": "found is None"})
    ]
    assert "\x1b" not in answer.content and "hunter22" not in answer.content
    for part in (
        "total([1]) raised TypeError: no (total, line 12) (9 lines ran, 1.0 ms)",
        "first_change(found): set 1 at shop/orders.py:12 in total: found += price",
        "  first changed from 1 to None at shop/orders.py:12",
        "when: it held first after shop/orders.py:12 in total: found += price (at 2 steps): found = None",
        "limit: Only the first 9 lines.",
        "effect: tried to write x",
        "  > total(lines=[1])",
        "  11: if lines:  -> true",
        "  ... 40 steps left out: lines 11-12 of total up to 20 times",
        "(changed meanwhile)",
        "  ! line 12 raised TypeError: no",
        "  < total was left by the exception",
    ):
        assert part in answer.content, answer.content


def test_source_is_masked_as_code(program: Any, workspace: Workspace, traced: dict[str, Any]) -> None:
    (line,) = [step for step in traced["steps"] if step.get("text") == "if lines:"]
    token = {"name": "token", "before": None, "value": shown("<lexer.Token kind=3>", "lexer.Token"), "late": False}
    line["text"], line["changes"] = "if token.is_space:", [token]
    traced["first_change"]["began"]["text"] = "token_list = list(tokens)"
    traced["when"]["first"]["text"] = "password = 'hunter22'"
    traced["outcome"] = "total(token=<lexer.Token kind=3>) raised ValueError: password=hunter22"
    program.traced = traced
    content = ask(program, workspace).content
    assert "  11: if token.is_space:  -> true  # token = <lexer.Token kind=3>\n" in content
    assert "token_list = list(tokens)\n" in content
    assert "total(token=<lexer.Token kind=3>) raised ValueError: password=<masked>" in content
    assert "hunter22" not in content


def test_wrong_calls(program: Any, workspace: Workspace, data: dict[str, Any]) -> None:
    assert "not both" in ask(program, workspace, code="f()", test="tests/test_a.py::test_b").content
    assert "There is no frame 99" in ask(program, workspace, frame=99).content
    ended = ask(PostMortem(Snapshot(data)), workspace)
    assert ended.error and "The process has ended: nothing can be traced in it." in ended.content


def test_the_model_is_told_of_it() -> None:
    for word in ("reproduce, locate the origin of the bad value, fix, prove", "history", "trace", "first_change"):
        assert word in SYSTEM
    assert "history" in ASK_SYSTEM and "trace" in ASK_SYSTEM
    names = [tool.name for tool in tools(propose=False)]
    assert {"frame", "evaluate", "trace", "history", "try_fix"} <= set(names) and "propose" not in names
