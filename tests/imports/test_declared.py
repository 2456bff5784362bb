"""What the code and its tests import is declared in pyproject.toml, so a fresh environment has it."""

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def declared(key: str) -> set[str]:
    """The packages of a list in pyproject.toml, as module names (no `tomllib` before Python 3.11)."""
    entries = re.search(rf"^{key} = \[\n(.*?)^\]", PYPROJECT, re.MULTILINE | re.DOTALL)
    assert entries, key
    names = re.findall(r'^ *"([\w-]+)', entries[1], re.MULTILINE)
    return {name.replace("-", "_") for name in names}


def foreign(folder: Path, skipped: set[str]) -> dict[str, str]:
    """Top-level modules imported under *folder* that are neither the standard library's nor ours -> where."""
    ours = {"dap_agent", *(path.stem for path in folder.rglob("*.py"))}
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*.py")):
        if skipped.intersection(path.relative_to(folder).parts):
            continue
        for node in ast.walk(ast.parse(path.read_bytes())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [str(node.module)]
            for name in names:
                top = name.partition(".")[0]
                if top not in sys.stdlib_module_names and top not in ours:
                    found.setdefault(top, str(path.relative_to(ROOT)))
    return found


# Run under a debuggee, which has modules of its own.
DEBUGGEES = {"tests": {"programs", "triggers", "turns"}, "dap_agent": {"debuggee", "demo_project"}}


@pytest.mark.parametrize("name", ["tests", "dap_agent"])
def test_every_package_is_declared(name: str) -> None:
    known = declared("dependencies") | (declared("test") if name == "tests" else set())
    found = foreign(ROOT / name, DEBUGGEES[name])
    assert {module: where for module, where in found.items() if module not in known} == {}
