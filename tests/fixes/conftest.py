"""Fixtures for the fixes: a state folder of their own, a small project that crashes, interpreters to run tests with."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from dap_agent.fixes.workspace import Workspace


@pytest.fixture(autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Undo records and scratch copies of each test in folders of its own."""
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("DAP_AGENT_STATE_DIR", str(folder))
    return folder


@pytest.fixture
def temp(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder where scratch copies are made, empty at first."""
    import tempfile

    folder = tmp_path_factory.mktemp("temp")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Callable[[dict[str, str]], Workspace]:
    """Makes a workspace from {path: text} (dedented)."""

    def make(files: dict[str, str]) -> Workspace:
        root = tmp_path / "proj"
        root.mkdir(exist_ok=True)
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text), encoding="utf-8")
        return Workspace(root)

    return make


def _importable(python: str, module: str) -> bool:
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    try:
        return subprocess.run([python, "-c", code], capture_output=True, timeout=60).returncode == 0
    except OSError:
        return False


def _others() -> list[str]:
    """Interpreters named by the environment, then those of pyenv, if any."""
    named = [path for path in os.environ.get("DAP_AGENT_TEST_PYTHONS", "").split(os.pathsep) if path]
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    return named + [str(path) for path in sorted(home.glob("versions/3.*/bin/python"))]


def _at_least_38(python: str) -> bool:
    code = "import sys; sys.exit(sys.version_info < (3, 8))"
    try:
        return subprocess.run([python, "-c", code], capture_output=True, timeout=60).returncode == 0
    except OSError:
        return False


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`any_python`: ours, and the oldest and the newest of the named ones that have pytest."""
    if "any_python" in metafunc.fixturenames:
        given = [path for path in os.environ.get("DAP_AGENT_TEST_PYTHONS", "").split(os.pathsep) if path]
        named = [path for path in given if _importable(path, "pytest")]
        chosen = [Path(path) for path in dict.fromkeys([sys.executable, *named[:1], *named[-1:]])]
        metafunc.parametrize("any_python", chosen, ids=[path.parent.parent.name for path in chosen])


@pytest.fixture(scope="session")
def bare_python() -> Path:
    """An interpreter without pytest."""
    for python in [*_others(), "/usr/bin/python3"]:
        if _at_least_38(python) and not _importable(python, "pytest"):
            return Path(python)
    pytest.skip("no interpreter without pytest here: name one in DAP_AGENT_TEST_PYTHONS")
