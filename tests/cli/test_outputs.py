"""Where the report goes, and that nothing else does with `--json -`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dap_agent.cli.json_report import Report, write
from dap_agent.errors import DapAgentError

CODE = """
import os, subprocess, sys
from pathlib import Path
from dap_agent.cli.outputs import outputs
from dap_agent.cli.json_report import Report
from dap_agent.cli.settings import load
settings = load("run", {"json": sys.argv[1]}, environ={}, root=Path.cwd())
with outputs(settings, Report({"pid": 1}, exit_status=80)) as ui:
    ui.note("hello")
    subprocess.run([sys.executable, "-c", "print('from the program')"])
    if len(sys.argv) > 2:
        from dap_agent.errors import DapAgentError
        raise DapAgentError("the adapter is ill")
print("after")
"""


def outputs(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", CODE, *arguments], capture_output=True, text=True, check=False)


def test_with_a_dash_standard_output_has_the_report_alone() -> None:
    done = outputs("-")
    report, rest = done.stdout.rsplit("}", 1)
    assert json.loads(report + "}")["exit_status"] == 80
    assert rest == "\nafter\n"
    assert done.stderr == "from the program\n"


def test_with_a_file_everything_else_is_as_usual(tmp_path: Path) -> None:
    done = outputs(str(tmp_path / "report.json"))
    assert done.stdout == "from the program\nafter\n"
    assert done.stderr == "dap-agent: hello\n"
    assert json.loads((tmp_path / "report.json").read_text())["exit_status"] == 80
    assert (tmp_path / "report.json").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_a_failure_is_in_the_report() -> None:
    done = outputs("-", "fail")
    report = json.loads(done.stdout)
    assert (report["exit_status"], report["error"]) == (70, "the adapter is ill")


def test_a_report_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(DapAgentError, match="cannot be written"):
        write(Report({"pid": 1}), str(tmp_path / "nowhere" / "report.json"), None)
