"""Proposals as JSON: what is accepted, and how a wrong one is answered."""

import copy
import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from dap_agent.fixes.failures import ProposalError
from dap_agent.fixes.importers import test_files_of as files_that_import
from dap_agent.fixes.proposal import AddSymbol, InsertImport, ReplaceSymbol, StrReplace, WriteFile, parse, schema
from dap_agent.fixes.workspace import Workspace

GOOD: dict[str, Any] = {
    "title": "Handle unknown names",
    "cause": "price() looks the name up without a default.",
    "evidence": [{"text": "name is missing", "frame": 0, "expression": "name", "value": "'pear'"}, {"text": "more"}],
    "edits": [
        {"kind": "replace_symbol", "file": "a.py", "symbol": "f", "source": "def f(): pass", "first_line": 3},
        {"kind": "str_replace", "file": "a.py", "old": "a", "new": ""},
        {"kind": "insert_import", "file": "a.py", "statement": "import os"},
        {"kind": "add_symbol", "file": "a.py", "source": "X = 1", "after": None, "inside": "C"},
        {"kind": "write_file", "file": "b.py", "content": ""},
    ],
    "test": {"file": "tests/test_a.py", "source": "def test_a(): pass"},
}


def test_round_trip() -> None:
    proposal = parse(GOOD)
    assert [type(edit) for edit in proposal.edits] == [ReplaceSymbol, StrReplace, InsertImport, AddSymbol, WriteFile]
    assert parse(json.loads(json.dumps(proposal.to_json()))) == proposal
    jsonschema.Draft202012Validator.check_schema(schema())


def without(*path: Any) -> Callable[[dict[str, Any]], None]:
    def change(data: Any) -> None:
        for part in path[:-1]:
            data = data[part]
        del data[path[-1]]

    return change


def put(value: Any, *path: Any) -> Callable[[dict[str, Any]], None]:
    def change(data: Any) -> None:
        for part in path[:-1]:
            data = data[part]
        data[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (without("test"), ["$: 'test' is a required property"]),
        (without("cause"), ["$: 'cause' is a required property"]),
        (put([], "edits"), ["$.edits: must not be empty"]),
        (put([], "evidence"), ["$.evidence: must not be empty"]),
        (put("  ", "title"), ["$.title: must not be blank"]),
        (put(3, "cause"), ["$.cause: must be of type string, not int"]),
        (put("diff", "edits", 1, "kind"), ["$.edits[1].kind: must be one of replace_symbol, ", "not 'diff'"]),
        (without("edits", 0, "kind"), ["$.edits[0].kind: must be one of", "missing"]),
        (
            without("edits", 0, "source"),
            ["$.edits[0]: 'source' is a required", "(replace_symbol: file, symbol, source, first_line?)"],
        ),
        (put(1, "edits", 1, "line"), ["$.edits[1]: Additional properties", "'line' was unexpected"]),
        (put("", "edits", 1, "old"), ["$.edits[1].old: must not be empty"]),
        (put("x", "edits", 0), ["$.edits[0].kind: must be one of"]),
        (put("tests/check.py", "test", "file"), ["$.test.file: 'tests/check.py' must be a new file named test_*.py"]),
        (put("tests/test_a.txt", "test", "file"), ["must be a new file named"]),
        (put(-1, "evidence", 0, "frame"), ["$.evidence[0].frame"]),
    ],
)  # fmt: skip
def test_problems_are_told_with_their_path(change: Callable[[dict[str, Any]], None], words: list[str]) -> None:
    data = copy.deepcopy(GOOD)
    change(data)
    with pytest.raises(ProposalError) as caught:
        parse(data)
    for word in words:
        assert word in caught.value.message
    assert len(caught.value.problems) == 1


def test_every_problem_is_told() -> None:
    with pytest.raises(ProposalError) as caught:
        parse({"edits": [{"kind": "str_replace"}, {}]})
    assert len(caught.value.problems) >= 7
    for other in (None, [], "text", 3):
        with pytest.raises(ProposalError, match=r"\$: must be of type object"):
            parse(other)


@pytest.mark.parametrize("name", ["test_a.py", "a_test.py", "tests/deep/test_a.py", "x\\test_a.py"])
def test_names_of_tests(name: str) -> None:
    data = copy.deepcopy(GOOD)
    data["test"]["file"] = name
    assert parse(data).test.file == name


def test_tests_that_import_the_changed_files(project: Callable[[dict[str, str]], Workspace]) -> None:
    workspace = project(
        {
            "src/app/__init__.py": "from app.api import x\n",
            "src/app/core.py": "",
            "src/app/api.py": "from .core import y\n",
            "src/app/alone.py": "",
            "tests/test_direct.py": "import app.core\n",
            "tests/test_from.py": "def test_a():\n    from app import core\n",
            "tests/test_through.py": "from app.api import x\n",
            "tests/test_package.py": "import app\n",
            "tests/test_other.py": "import os\n",
            "tests/sub/conftest.py": "import app.core\n",
            "tests/sub/test_below.py": "",
            "tests/helper.py": "import app.core\n",
            "tests/by_name.py": "import app.core\ndef test_x(): pass\n",
            "core_test.py": "from app.core import z\n",
            "broken_test.py": "import app.core(\n",
        }
    )
    found = files_that_import(workspace, [workspace.root / "src/app/core.py"])
    assert found.note == ""
    direct = {
        "tests/test_direct.py",
        "tests/test_from.py",
        "tests/sub/test_below.py",
        "tests/by_name.py",
        "core_test.py",
    }
    # importing any module of app runs app/__init__.py, which imports api and through it core
    assert set(found.files) == direct | {"tests/test_through.py", "tests/test_package.py"}
    assert set(found.files[:5]) == direct
    few = files_that_import(workspace, [workspace.root / "src/app/core.py"], limit=2)
    assert len(few.files) == 2 and "2 nearest" in few.note
    assert files_that_import(workspace, [workspace.root / "src/app/alone.py"]).files == ()
    own = files_that_import(workspace, [workspace.root / "tests/test_other.py"])
    assert own.files == ("tests/test_other.py",)
