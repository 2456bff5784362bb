"""The demo, for real: debugpy, snapshot, tools, proof, application, second run; only the model's turns are recorded."""

import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dap_agent.agent import journal
from dap_agent.cli import exit_status

ROOT = Path(__file__).parents[2]

INVOICES_BEFORE = "Abendroth Books      1 orders     274.71\n"
END = "invoiced in 2024-05: 7760.17\n"


def dap_agent(*words: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "dap_agent", *words],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_the_demo_ends_with_a_fixed_program(tmp_path: Path) -> None:
    done = dap_agent("demo", "shop", cwd=tmp_path)
    assert done.returncode == exit_status.FIXED, done.stderr
    shop = tmp_path / "shop"
    assert 'tier=row["tier"].strip().lower() or "basic"' in (shop / "billing" / "loading.py").read_text()
    assert (shop / "tests" / "test_tier_as_exported.py").exists()
    # the program's output of both runs, and nothing of ours
    first, second = done.stdout.split(INVOICES_BEFORE)[1:]
    assert END not in first
    assert second.endswith(END)
    for words in (
        "no model is configured, so the demo plays recorded turns",
        "the program stopped at KeyError: 'Gold '",
        "> variable frame=0 path=customer.tier",
        "verdict: proved",
        "applied: billing/loading.py, tests/test_tier_as_exported.py",
        "the program now runs through",
    ):
        assert words in done.stderr, words
    assert "Traceback (most recent call last)" in done.stderr, "the first run dies of its own exception"

    (info,) = journal.list_journals()
    assert (info.status, info.verdict, info.applied) == ("proposed", "proved", True)

    assert dap_agent("undo", cwd=shop).returncode == 0
    assert not (shop / "tests" / "test_tier_as_exported.py").exists()

    again = dap_agent("journal", "replay", "last", cwd=shop)
    assert again.returncode == exit_status.PROPOSED, again.stderr
    assert "verdict: proved" in again.stderr
    assert 'tier=row["tier"] or "basic"' in (shop / "billing" / "loading.py").read_text()


def test_with_json_the_report_is_all_there_is(tmp_path: Path, validate_report: Callable[[Any], None]) -> None:
    done = dap_agent("demo", "shop", "--json", "-", "--fix", "never", cwd=tmp_path)
    report = json.loads(done.stdout)
    validate_report(report)
    assert done.returncode == report["exit_status"] == exit_status.PROPOSED
    assert report["verdict"]["verdict"] == "proved"
    assert report["crash"]["exception"]["type"] == "KeyError"
    assert report["program_status"] == 1
    assert "+++ b/billing/loading.py" in report["diff"]
    assert INVOICES_BEFORE in done.stderr
    assert "dap-agent:" not in done.stderr


@pytest.mark.parametrize(("answer", "status"), [("y\n", exit_status.FIXED), ("n\n", exit_status.PROPOSED)])
def test_on_a_terminal_the_demo_asks(answer: str, status: int, tmp_path: Path) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "NO_COLOR": "1"}
        os.execve(sys.executable, [sys.executable, "-m", "dap_agent", "demo", "shop"], environment)
    seen, answered, deadline = "", False, time.monotonic() + 100
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            data = os.read(terminal, 65536)
        except OSError:
            break  # Linux: the other end is closed
        if not data:
            break
        seen += data.decode(errors="replace")
        if "apply this fix?" in seen and not answered:
            answered = True
            os.write(terminal, answer.encode())
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == status, seen
    assert answered
    assert ("the program now runs through" in seen) is (status == exit_status.FIXED)
