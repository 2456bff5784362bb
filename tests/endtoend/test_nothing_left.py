"""Nothing is left, no process or file: after success, failure, Ctrl-C and the death of each process (issue 2)."""

import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from dap_agent.testing import ModelServer, Stall

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes through procfs")

ADAPTER = "adapter_start.py"
CRASH = "import time\nvalue = {'a': 1}\nprint('running', flush=True)\nvalue['b']\n"
# the child's first word comes when it runs, so that there is something to kill
CHILD = (
    "import subprocess, sys\n"
    "status = subprocess.run([sys.executable, '-c', {child!r}]).returncode\n"
    "print('child:', status)\n"
)
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


def outcome(process, text=None):
    """What the command said before it ended; it must end soon: whoever it could wait for is dead."""
    out, err = process.communicate(text, timeout=20)
    return process.returncode, out, err


class Model:
    """A model that never answers."""

    def __init__(self):
        self.asked = threading.Event()
        self.server = ModelServer([self._stall] * 4)

    def _stall(self, request):
        self.asked.set()
        return Stall()


class TestDuringAnInvestigation:
    """The program is stopped and a model that never answers is asked."""

    @pytest.fixture
    def model(self):
        made = Model()
        with made.server:
            yield made

    @pytest.fixture
    def start(self, trace, model, python, tmp_path):
        def start(text):
            words = ("run", "--python", str(python), "--model", "openai:test-model", program(tmp_path, text))
            process = trace.start(*words, environment=model.server.environment(), start_new_session=True)
            assert process.stdout.readline() == "running\n"
            assert model.asked.wait(30), "the model was not asked"
            return process

        return start

    def test_interrupt_ends_the_investigation(self, trace, start):
        process = start(CRASH)
        process.send_signal(signal.SIGINT)
        status, _, err = outcome(process)
        assert status == 80
        assert "the investigation was ended by a signal; the program goes on" in err
        assert err.endswith("KeyError: 'b'\n")
        trace.assert_nothing_is_left()

    def test_the_command_is_killed(self, trace, start):
        process = start(CRASH)
        process.kill()
        assert outcome(process)[2].endswith("KeyError: 'b'\n"), "the program ends by itself"
        trace.assert_nothing_is_left()

    def test_the_adapter_is_killed(self, trace, start):
        process = start(CRASH)
        os.kill(trace.one(ADAPTER), signal.SIGKILL)
        status, _, err = outcome(process)
        assert status == 80
        assert "has ended (killed by signal 9). The program goes on without it. This ends the investigation." in err
        assert "\nKeyError: 'b'\n" in err, "the program ends by itself"
        assert err.count("the program stopped at KeyError") == 1
        assert "the program ended with KeyError" not in err, "it was told already"
        trace.assert_nothing_is_left()

    def test_the_program_is_killed(self, trace, start):
        process = start(CRASH)
        os.kill(trace.one("program.py", without="dap_agent"), signal.SIGKILL)
        status, _, err = outcome(process)
        assert status == 80
        assert "The program has ended" in err
        assert "This ends the investigation." in err
        trace.assert_nothing_is_left()

    def test_a_child_is_killed(self, trace, start):
        process = start(CHILD.format(child=CRASH))
        os.kill(trace.one("value['b']", without="dap_agent"), signal.SIGKILL)
        status, out, err = outcome(process)
        assert (status, out) == (80, "child: -9\n")
        assert "This ends the investigation." in err
        trace.assert_nothing_is_left()

    @pytest.mark.parametrize("victim", [ADAPTER, "-m dap_agent"])
    def test_a_child_goes_on(self, trace, start, victim):
        process = start(CHILD.format(child=CRASH))
        os.kill(trace.one(victim), signal.SIGKILL)
        _, out, err = outcome(process)
        assert out == "child: 1\n"
        assert "KeyError: 'b'" in err
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
        os.kill(trace.one(ADAPTER), signal.SIGKILL)
        out, _ = running.communicate("", timeout=30)
        assert out == "done\n"
        assert running.returncode == 0
        trace.assert_nothing_is_left()

    def test_the_program_is_killed(self, trace, running):
        os.kill(trace.one("program.py", without="dap_agent"), signal.SIGKILL)
        running.communicate(timeout=30)
        assert running.returncode == -signal.SIGKILL
        trace.assert_nothing_is_left()

    def test_a_child_is_killed(self, trace, tmp_path):
        text = CHILD.format(child="import time\nprint('running', flush=True)\ntime.sleep(100)  # the child")
        process = trace.start("run", program(tmp_path, text))
        assert process.stdout.readline() == "running\n"
        os.kill(trace.one("# the child", without="dap_agent"), signal.SIGKILL)
        assert outcome(process) == (0, "child: -9\n", "")
        trace.assert_nothing_is_left()

    def test_the_adapter_is_killed_and_the_program_crashes_later(self, trace, tmp_path):
        text = WAITS + "{}['late']\n"
        process = trace.start("run", program(tmp_path, text), stdin=subprocess.PIPE)
        assert process.stdout.readline() == "running\n"
        os.kill(trace.one(ADAPTER), signal.SIGKILL)
        status, out, err = outcome(process, "")
        assert (status, out) == (80, "done\n")
        assert "has ended (killed by signal 9). The program went on without the debugger." in err
        assert "the program ended with KeyError: 'late'" in err
        trace.assert_nothing_is_left()

    @pytest.mark.parametrize("victim", [ADAPTER, "-m dap_agent"])
    def test_a_child_that_waits_to_be_taken_up_goes_on(self, trace, python, tmp_path, victim):
        child = "import sys\nsys.stdin.readline()\n{}['b']  # the child"
        words = (
            "run",
            "--python",
            str(python),
            program(tmp_path, "print('running', flush=True)\n" + CHILD.format(child=child)),
        )
        process = trace.start(*words, stdin=subprocess.PIPE)
        assert process.stdout.readline() == "running\n"
        wait_for(lambda: any("# the child" in line and "dap_agent" not in line for line in trace.processes().values()))
        command, crashing = trace.one("-m dap_agent"), trace.one("# the child", without="dap_agent")
        os.kill(command, signal.SIGSTOP)  # so that it does not take up the child
        process.stdin.write("\n")
        process.stdin.flush()
        wait_for(lambda: has_socket(crashing))
        os.kill(trace.one(victim), signal.SIGKILL)
        if victim == ADAPTER:
            os.kill(command, signal.SIGCONT)
        status, out, err = outcome(process)
        assert out == "child: 1\n"
        assert "KeyError: 'b'" in err
        assert status == (80 if victim == ADAPTER else -signal.SIGKILL)
        trace.assert_nothing_is_left()


def wait_for(condition, seconds=20):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)  # polling /proc: other processes tell nobody what they do


def has_socket(pid):
    folder = Path("/proc", str(pid), "fd")
    try:
        return any(os.readlink(entry).startswith("socket:") for entry in folder.iterdir())
    except FileNotFoundError:
        return False  # a file was closed between the listing and the look
