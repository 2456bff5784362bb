"""Ctrl-C and signals reach the program, and dap-agent ends as the program does."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dap_agent.cli import exit_status

ROOT = Path(__file__).parents[2]

PROGRAM = """
import os, time
os.write(1, b"ready\\n")
time.sleep(60)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path / "program.py"


def on_a_terminal(folder: Path, words: list[str], cue: str, typed: str) -> tuple[int, str]:
    """Run dap-agent on a pseudo terminal and type something when the cue is seen; exit status and screen."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "NO_COLOR": "1"}
        os.execve(sys.executable, [sys.executable, "-m", "dap_agent", *words], environment)
    seen, done, deadline = "", False, time.monotonic() + 100
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
        if cue in seen and not done:
            done = True
            os.write(terminal, typed.encode())
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen


def test_ctrl_c_on_a_terminal_is_the_programs(program: Path) -> None:
    status, seen = on_a_terminal(program.parent, ["run", program.name], "ready", "\x03")
    assert status == -signal.SIGINT
    assert seen.count("KeyboardInterrupt") == 1
    assert "dap-agent" not in seen


def test_ctrl_c_at_the_question_is_a_no_and_the_program_dies_of_its_own_exception(tmp_path: Path) -> None:
    status, seen = on_a_terminal(tmp_path, ["demo", "shop"], "apply this fix?", "\x03")
    assert status == exit_status.PROPOSED
    assert "the fix is not applied" in seen
    assert seen.rstrip().endswith("KeyError: 'Gold '")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_dap_agent_reaches_the_program(number: signal.Signals, program: Path) -> None:
    running = subprocess.Popen(
        [sys.executable, "-m", "dap_agent", "run", str(program)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n"
    running.send_signal(number)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == -number
    assert ("KeyboardInterrupt" in errors) is (number == signal.SIGINT)


def test_an_ignored_signal_stays_ignored_for_the_program(tmp_path: Path) -> None:
    (tmp_path / "asks.py").write_text("import signal; print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)")
    done = subprocess.run(
        ["nohup", sys.executable, "-m", "dap_agent", "run", str(tmp_path / "asks.py")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    assert done.stdout == "True\n"
