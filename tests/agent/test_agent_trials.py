"""The tool `try_fix`, and the trial that each proposal is given."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from dap_agent.agent import trying
from dap_agent.agent.journal import read, show
from dap_agent.agent.tools import Toolbox, ToolContext
from dap_agent.agent.toolset import tools
from dap_agent.cli.json_report import Report
from dap_agent.fixes.workspace import Workspace
from dap_agent.models.base import Call

EDIT = {"kind": "str_replace", "file": "shop/orders.py", "old": '["price"])', "new": '["price"] or 0)'}


@pytest.fixture
def passed(root: Path) -> dict[str, Any]:
    file = str(root / "shop/orders.py")
    return {
        "verdict": "passes",
        "summary": "total(['tea']) returned [3.5]",
        "frame": 0,
        "call": "total(['tea'])",
        "value": {"type": "list", "text": "[3.5, 4.5]", "length": 2},
        "error": None,
        "stdout": "sum\n",
        "stderr": "",
        "effects": ["tried to write /data/x"],
        "functions": [
            {"name": "total", "file": file, "swapped": True, "how": "its cache was emptied"},
            {"name": "C", "file": file, "swapped": False, "how": "not swapped: its bases differ"},
        ],
        "lines": [{"function": "total", "file": file, "reached": [11, 12, 13, 15], "lines": 5}],
        "seconds": 0.0012,
        "notes": ["lines may have been changed (line 12)."],
    }


@pytest.fixture
def failed(passed: dict[str, Any]) -> dict[str, Any]:
    error = {"type": "KeyError", "message": "'x'", "traceback": "Traceback:\n  in total\nKeyError: 'x'", "where": None}
    empty = {"value": None, "stdout": "", "effects": [], "functions": [], "lines": [], "notes": []}
    summary = "total(['tea']) raised KeyError: 'x' (total, line 12)"
    return {**passed, **empty, "verdict": "other failure", "summary": summary, "error": error}


def call(program: Any, workspace: Workspace, arguments: dict[str, Any]) -> Any:
    toolbox = Toolbox(tools(), ToolContext(program, workspace, Path(sys.executable)))
    return asyncio.run(toolbox.call(Call("c", "try_fix", arguments, ""), 1))


def test_results_as_text(program: Any, workspace: Workspace, passed: Any, failed: Any) -> None:
    program.trials = [passed, failed]
    answer = call(program, workspace, {"candidates": [[EDIT], [EDIT], [{**EDIT, "old": "nowhere"}]], "timeout": 2})
    assert not answer.error
    lines = answer.content.split("\n")
    assert lines[:9] == [
        "1. passes: total(['tea']) returned [3.5] [frame 0] (1.2 ms)",
        "   value: list = [3.5, 4.5]  [length 2]",
        "   stdout:",
        "| sum",
        "   effect: tried to write /data/x",
        "   total: its cache was emptied",
        "   C: not swapped: its bases differ",
        "   total (shop/orders.py): 4 of its 5 lines ran: 11-13, 15",
        "   note: lines may have been changed (line 12).",
    ]
    assert lines[9:13] == [
        "2. other failure: total(['tea']) raised KeyError: 'x' (total, line 12) [frame 0] (1.2 ms)",
        "| Traceback:",
        "|   in total",
        "| KeyError: 'x'",
    ]
    assert lines[13].startswith("3. cannot be tried: edit 1 (str_replace in shop/orders.py): old is not in the file")
    assert lines[-1] == "Locked."
    ((_, _, _, frame, timeout),) = program.asked
    assert (frame, timeout) == (None, 2.0)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({}, "missing 'candidates'"),
        ({"candidates": []}, "candidates"),
        ({"candidates": [[EDIT]] * 17}, "candidates"),
        ({"candidates": [[EDIT]], "frame": 9}, "There is no frame 9: frames are 0 to 2"),
        (
            {"candidates": [[EDIT], [{"kind": "str_replace", "file": "a.py"}]]},
            "$.candidates[1][0]: 'old' is a required",
        ),
        ({"candidates": [[{**EDIT, "new": "<masked>"}]]}, "candidates[0].new holds <masked>"),
        ({"candidates": [[EDIT]]}, "Nothing can be tried here."),
    ],
)
def test_wrong_calls(program: Any, workspace: Workspace, arguments: dict[str, Any], part: str) -> None:
    answer = call(program, workspace, arguments)
    assert answer.error
    assert part in answer.content


def test_the_same_call_again_is_answered(program: Any, workspace: Workspace, passed: Any) -> None:
    program.trials = [passed]
    for _ in range(2):
        assert not call(program, workspace, {"candidates": [[EDIT]], "frame": 1}).error
    assert [asked[3] for asked in program.asked] == [1, 1]


@pytest.mark.parametrize(("numbers", "text"), [([], ""), ([3], "3"), ([3, 4, 5, 8], "3-5, 8"), ([1, 3, 4], "1, 3-4")])
def test_ranges(numbers: list[int], text: str) -> None:
    assert trying.ranges(numbers) == text


def proposal(kit: Any) -> dict[str, Any]:
    source = kit.FIXED_TOTAL
    return {
        "title": "Count a gift as free",
        "cause": "No price.",
        "evidence": [{"text": "the price is None"}],
        "edits": [{"kind": "replace_symbol", "file": "shop/orders.py", "symbol": "total", "source": source}],
        "test": {"file": "tests/test_gift.py", "source": kit.REGRESSION_TEST},
    }


async def test_a_proposal_is_tried(run: Any, kit: Any, passed: Any) -> None:
    run.program.trials = [passed]
    outcome = await run(kit.Script(kit.calls(("propose", proposal(kit)))), prove=False)
    assert outcome.trial.verdict == "passes"
    told = {"verdict": "passes", "summary": passed["summary"], "frame": 0, "isolation": "Locked."}
    (record,) = [record for record in read(run.journal.path) if record["kind"] == "proposal"]
    assert record["trial"] == told
    assert "trial: passes: total(['tea'])" in show(run.journal.path)
    assert Report({}, outcome=outcome).to_json()["trial"] == told
    (asked,) = [asked for asked in run.program.asked if asked[0] == "try_fix"]
    ((files,),) = [asked[1]]
    assert [Path(file["path"]).name for file in files] == ["orders.py", "test_gift.py"]


async def test_a_proposal_is_not_tried_where_nothing_can_be(run: Any, kit: Any) -> None:
    outcome = await run(kit.Script(kit.calls(("propose", proposal(kit)))), prove=False)
    assert (outcome.status, outcome.trial) == ("proposed", None)
    (record,) = [record for record in read(run.journal.path) if record["kind"] == "proposal"]
    assert record["trial"] is None
    assert any("not tried in a copy of the program: Nothing can be tried" in note.text for note in run.told("note"))


async def test_a_trial_that_fails_is_told_with_the_verdict(run: Any, kit: Any, failed: Any) -> None:
    run.program.trials = [failed]
    given = proposal(kit)
    given["test"]["source"] = "def test_nothing():\n    assert True\n"
    model = kit.Script(kit.calls(("propose", given)), kit.say("a"), kit.say("I give up."))
    await run(model)
    (result,) = model.results()
    assert "Trial in a copy of the stopped program: other failure: total(['tea']) raised KeyError" in result.content
