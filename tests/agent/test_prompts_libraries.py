"""The first message where the failure is in a library: its frame, whose code may be edited, what is installed."""

import copy
from pathlib import Path
from typing import Any

from dap_agent.agent.prompts import first_message
from dap_agent.control.render import crash, plain
from dap_agent.fixes.workspace import Workspace
from dap_agent.session.snapshot import Snapshot


def library(data: dict[str, Any], root: Path) -> tuple[dict[str, Any], Path]:
    """*data* with two more frames inside: a package's that called the standard library."""
    site = root / "env" / "lib" / "python3.12" / "site-packages"
    module = site / "pkg" / "mod.py"
    module.parent.mkdir(parents=True)
    module.write_text("def load(text):\n    kept = text\n    return parse(kept)\n")
    (site / "pkg-1.2.dist-info").mkdir()
    (site / "other-3.4.dist-info").mkdir()
    (site / "pip-25.0.dist-info").mkdir()
    found = copy.deepcopy(data)
    top = found["frames"][0]
    for frame in found["frames"]:
        frame["number"] += 2
    package = {**copy.deepcopy(top), "number": 1, "function": "load", "file": str(module), "line": 3, "user": False}
    package["package"] = {"name": "pkg", "version": "1.2"}
    package["source"] = {"first_line": 1, "lines": module.read_text().splitlines()}
    package["locals"] = [{"name": "kept", "value": {"type": "str", "text": "'it is here'"}}]
    package["arguments"] = []
    stdlib = {
        **copy.deepcopy(package),
        "number": 0,
        "function": "parse",
        "package": None,
        "stdlib": True,
        "file": "/x/p.py",
    }
    stdlib["locals"] = []
    found["frames"] = [stdlib, package, *found["frames"]]
    found["frames_total"] += 2
    return found, module


def test_the_package_is_shown_and_named(data: dict[str, Any], root: Path) -> None:
    found, _ = library(data, root)
    message = first_message(Snapshot(found), Workspace(root))
    part = message[message.index("# The package's code that led there") :]
    assert "->     3      return parse(kept)" in part and "'it is here'" in part
    assert "raised in standard library, called by package pkg 1.2, outside of the workspace: edits there" in message
    assert "installed: pkg 1.2, other 3.4\npytest is not among these: write the regression test without" in message
    report = plain(crash(Snapshot(found)))
    assert "in load" in report and "[package pkg 1.2]" in report and "it is here" in report


def test_an_installed_copy_of_the_workspaces_own_code(data: dict[str, Any], root: Path) -> None:
    found, module = library(data, root)
    own = root / "src/pkg/mod.py"
    own.parent.mkdir(parents=True)
    own.write_text(module.read_text())
    message = first_message(Snapshot(found), Workspace(root))
    assert (
        f"The program runs {module}, an installed copy of the workspace's own src/pkg/mod.py: fix that one." in message
    )
    assert "edits there are refused" not in message


def test_frozen_modules_are_in_no_workspace(data: dict[str, Any], root: Path) -> None:
    found, module = library(data, root)
    found["frames"][0]["file"] = "<frozen codecs>"
    message = first_message(Snapshot(found), Workspace(root, also=[module.parent]))
    assert (
        "The exception was raised in standard library, outside of the workspace. Frame #1 (package pkg 1.2)" in message
    )


def test_a_named_package_may_be_edited(data: dict[str, Any], root: Path) -> None:
    found, module = library(data, root)
    message = first_message(Snapshot(found), Workspace(root, also=[module.parent]))
    assert "Frame #1 (package pkg 1.2) is the innermost one that may be edited" in message
    assert "edits there are refused" not in message
    found["frames"] = found["frames"][1:]
    message = first_message(Snapshot(found), Workspace(module.parent))
    assert "The code of package pkg 1.2 was opened for edits" in message


def test_a_test_runners_frames_are_one_line(data: dict[str, Any], root: Path) -> None:
    found, _ = library(data, root)
    runner = next(frame for frame in found["frames"] if frame["number"] == 1)
    last = found["frames_total"]
    for number in range(last, last + 10):
        found["frames"].append({**copy.deepcopy(runner), "number": number, "function": f"hook{number}"})
    found["frames_total"] += 10
    message = first_message(Snapshot(found), Workspace(root))
    assert f"#{last} to #{last + 9}: what called the user's code [package pkg 1.2]" in message
    assert "hook" not in message
