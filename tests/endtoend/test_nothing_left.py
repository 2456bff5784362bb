"""Nothing is left, no process or file: after success, failure, Ctrl-C and the death of each process (issue 2)."""

import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from dap_agent.testing import ModelServer, Stall

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes through procfs")

CRASH = "import time\nvalue = {'a': 1}\nprint('running', flush=True)\nvalue['b']\n"
WAITS = "import sys\nprint('running', flush=True)\nsys.stdin.read()\nprint('done')\n"


def program(tmp_path, text):
    path = tmp_path / "program.py"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_after_success(trace, tmp_path):
    process = trace.start("run", program(tmp_path, "print('fine')"))
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "fine\n", "")
    trace.assert_nothing_is_left()


def test_after_a_crash(trace, tmp_path):
    process = trace.start("run", program(tmp_path, CRASH))
    process.communicate(timeout=60)
    assert process.returncode == 80
    trace.assert_nothing_is_left()


def test_after_a_child_has_crashed(trace, tmp_path):
    text = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {CRASH!r}])\n"
    process = trace.start("run", program(tmp_path, text))
    process.communicate(timeout=60)
    assert process.returncode == 80
    trace.assert_nothing_is_left()


def test_after_a_usage_error(trace, tmp_path):
    process = trace.start("run", str(tmp_path / "missing.py"))
    process.communicate(timeout=60)
    assert process.returncode != 0
    trace.assert_nothing_is_left()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_command_reaches_the_program(trace, tmp_path, number):
    # a session of its own: else a SIGINT would be taken for Ctrl-C at the terminal that the tests run in
    process = trace.start("run", program(tmp_path, WAITS), stdin=subprocess.PIPE, start_new_session=True)
    assert process.stdout.readline() == "running\n"
    process.send_signal(number)
    process.wait(30)
    assert process.returncode == -number, "the command ends as the program did"
    trace.assert_nothing_is_left()


class TestDuringAnInvestigation:
    """The program is stopped and a model that never answers is asked."""

    @pytest.fixture
    def investigation(self, trace, tmp_path):
        asked = threading.Event()

        def stall(request):
            asked.set()
            return Stall()

        with ModelServer([stall] * 4) as server:
            words = ("run", "--model", "openai:test-model", program(tmp_path, CRASH))
            process = trace.start(*words, environment=server.environment())
            assert process.stdout.readline() == "running\n"
            assert asked.wait(30), "the model was not asked"
            yield process

    def test_interrupt_ends_the_investigation(self, trace, investigation):
        investigation.send_signal(signal.SIGINT)
        _, err = investigation.communicate(timeout=30)
        assert "KeyError: 'b'" in err
        assert investigation.returncode == 80
        trace.assert_nothing_is_left()

    def test_the_command_is_killed(self, trace, investigation):
        investigation.kill()
        investigation.communicate(timeout=30)
        trace.assert_nothing_is_left()

    def test_the_adapter_is_killed(self, trace, investigation):
        os.kill(trace.one("debugpy.adapter"), signal.SIGKILL)
        investigation.communicate(timeout=30)
        assert investigation.returncode == 80
        trace.assert_nothing_is_left()

    def test_the_program_is_killed(self, trace, investigation):
        os.kill(trace.one("program.py", without="dap_agent"), signal.SIGKILL)
        investigation.communicate(timeout=30)
        assert investigation.returncode == 80
        trace.assert_nothing_is_left()


class TestWhileTheProgramRuns:
    @pytest.fixture
    def running(self, trace, tmp_path):
        process = trace.start("run", program(tmp_path, WAITS), stdin=subprocess.PIPE)
        assert process.stdout.readline() == "running\n"
        return process

    def test_the_command_is_killed_and_the_program_goes_on(self, trace, running):
        pid = trace.one("program.py", without="dap_agent")
        running.kill()
        running.wait(30)
        assert pid in trace.processes(), "the program is not ours to kill"
        running.stdin.close()
        assert running.stdout.read() == "done\n"
        trace.assert_nothing_is_left()

    def test_the_adapter_is_killed_and_the_program_goes_on(self, trace, running):
        os.kill(trace.one("debugpy.adapter"), signal.SIGKILL)
        out, _ = running.communicate("", timeout=30)
        assert out == "done\n"
        assert running.returncode == 0
        trace.assert_nothing_is_left()

    def test_the_program_is_killed(self, trace, running):
        os.kill(trace.one("program.py", without="dap_agent"), signal.SIGKILL)
        running.communicate(timeout=30)
        assert running.returncode == -signal.SIGKILL
        trace.assert_nothing_is_left()
