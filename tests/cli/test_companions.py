"""Which settings a debug session has: launch configuration, flag, environment, the project's pyproject.toml."""

import sys
from pathlib import Path
from typing import Any

import pytest

from dap_agent.cli.companions import configuration
from dap_agent.control.work import Configuration


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "main.py").write_text("")
    (tmp_path / "pyproject.toml").write_text('[tool.dap-agent]\nmodel = "local:http://a"\nmax-turns = 7\n')
    return tmp_path


def found(started: dict[str, Any], **more: Any) -> tuple[Configuration, list[str]]:
    return configuration(more.get("flags", {}), started, more.get("keys", {}), more.get("environ", {}))


@pytest.mark.parametrize("how", ["program", "relative program", "cwd", "neither"])
def test_the_project_is_found_from_what_is_started(project: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    started = {
        "program": {"program": str(project / "app/main.py")},
        "relative program": {"program": "main.py", "cwd": str(project / "app")},
        "cwd": {"module": "app.main", "cwd": str(project / "app")},
        "neither": {"processId": 5},
    }[how]
    if how == "neither":
        monkeypatch.chdir(project)
    set_, told = found(started)
    assert (set_.model, set_.max_turns, told) == ("local:http://a", 7, [])
    assert (set_.workspace, set_.python, set_.allow_evaluate) == ((), None, False)


def test_each_place_comes_before_the_next(project: Path) -> None:
    started = {"program": str(project / "app/main.py")}
    environ, flags, keys = {"DAP_AGENT_MODEL": "local:b"}, {"model": "local:c"}, {"model": "local:d"}
    assert found(started, environ=environ)[0].model == "local:b"
    assert found(started, environ=environ, flags=flags)[0].model == "local:c"
    assert found(started, environ=environ, flags=flags, keys=keys)[0].model == "local:d"
    set_, told = found(started, keys={"model": 5, "python": sys.executable, "maxCost": "none", "allowEvaluate": True})
    assert (set_.model, set_.python, set_.max_cost, set_.allow_evaluate) == (
        "local:http://a",
        Path(sys.executable),
        None,
        True,
    )
    assert len(told) == 1
    assert told[0].startswith("The key model of dapAgent in the launch configuration wants a text")


@pytest.mark.parametrize("started", [{}, {"program": 5, "cwd": []}, {"program": "/nowhere/x.py", "cwd": "/nowhere"}])
def test_odd_configurations_do_no_harm(started: dict[str, Any]) -> None:
    assert found(started)[1] == []
