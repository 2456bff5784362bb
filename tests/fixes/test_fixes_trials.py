"""Candidates as edits: planned against the workspace, sent as texts, each text once; what cannot be made says so."""

import asyncio
import base64
import zlib
from pathlib import Path
from typing import Any

import pytest

from dap_agent.fixes import trials
from dap_agent.fixes.proposal import ReplaceSymbol, StrReplace, WriteFile
from dap_agent.fixes.trials import try_fix
from dap_agent.fixes.workspace import Workspace
from dap_agent.session.api import InspectionError
from dap_agent.session.snapshot import Snapshot
from dap_agent.session.stopped import PostMortem

TOLD = {
    "verdict": "passes",
    "summary": "total([]) returned 0.",
    "frame": 2,
    "call": "total([])",
    "value": {"type": "int", "text": "0"},
    "error": None,
    "stdout": "",
    "stderr": "",
    "effects": [],
    "functions": [],
    "lines": [],
    "seconds": 0.001,
    "notes": [],
}


class Program:
    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def try_fix(self, candidates: Any, texts: Any, frame: Any, timeout: float) -> dict[str, Any]:
        self.asked.append((candidates, [zlib.decompress(base64.b64decode(text)).decode() for text in texts], frame))
        return {"trials": [dict(TOLD) for _ in candidates], "isolation": {"text": "Locked."}}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text("def total(lines):\n    return sum(lines) / 0\n")
    return tmp_path.resolve()


def run(program: Any, root: Path, *candidates: Any, **more: Any) -> list[trials.Trial]:
    return asyncio.run(try_fix(program, Workspace(root), candidates, **more))


def test_texts_are_sent_once(root: Path) -> None:
    program = Program()
    edit = StrReplace("shop.py", " / 0", "")
    symbol = ReplaceSymbol("shop.py", "total", "def total(lines):\n    return sum(lines)\n")
    found = run(program, root, [edit], [symbol], [edit, WriteFile("new.py", "x = 1\n")], frame=2)
    ((candidates, texts, frame),) = program.asked
    assert texts == ["def total(lines):\n    return sum(lines) / 0\n", symbol.source, "x = 1\n"]
    path = str(root / "shop.py")
    assert candidates == [
        [{"path": path, "old": 0, "new": 1}],
        [{"path": path, "old": 0, "new": 1}],
        [{"path": path, "old": 0, "new": 1}, {"path": str(root / "new.py"), "old": None, "new": 2}],
    ]
    assert frame == 2
    assert [trial.to_json() for trial in found] == 3 * [
        {"verdict": "passes", "summary": "total([]) returned 0", "frame": 2, "isolation": "Locked."}
    ]
    assert (root / "shop.py").read_text().endswith("/ 0\n")
    assert not (root / "new.py").exists()


def test_a_candidate_whose_edits_cannot_be_made_says_why(root: Path) -> None:
    program = Program()
    right = StrReplace("shop.py", " / 0", "")
    wrong, outside = StrReplace("shop.py", "minus", ""), StrReplace("../other.py", "a", "b")
    found = run(program, root, [wrong], [right], [outside])
    assert [trial.verdict for trial in found] == ["cannot be tried", "passes", "cannot be tried"]
    assert "old is not in the file" in found[0].summary
    assert "outside the workspace" in found[2].summary
    assert len(program.asked[0][0]) == 1


def test_nothing_is_asked_if_no_candidate_can_be_made(root: Path) -> None:
    program = Program()
    assert run(program, root, [StrReplace("shop.py", "minus", "")])[0].verdict == "cannot be tried"
    assert program.asked == []


@pytest.mark.parametrize("count", [0, 17])
def test_how_many(root: Path, count: int) -> None:
    with pytest.raises(InspectionError, match="1 to 16"):
        run(Program(), root, *[[StrReplace("shop.py", " / 0", "")]] * count)


def test_too_much_text(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "_MOST_TEXT", 60)
    with pytest.raises(InspectionError, match="try fewer"):
        run(Program(), root, [StrReplace("shop.py", " / 0", "")])


def test_after_the_end_of_the_program(root: Path) -> None:
    with pytest.raises(InspectionError, match="Use run_test"):
        run(PostMortem(Snapshot({})), root, [StrReplace("shop.py", " / 0", "")])
