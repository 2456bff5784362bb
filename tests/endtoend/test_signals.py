"""Ctrl-C at a terminal, which reaches the whole foreground group, and signals to dap-agent alone."""

import os
import pty
import select
import signal
import subprocess
import threading
import time

import pytest

from dap_agent.cli import exit_status
from dap_agent.testing import ModelServer, Stall

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="finds processes through procfs")


ADAPTER = "adapter_start.py"


class Terminal:
    """A terminal with dap-agent as its foreground process: a session leader, as under a shell's `exec`."""

    def __init__(self, trace, *words, environment=None):
        self.descriptor, inner = pty.openpty()
        self.text = ""
        self.process = trace.start(
            *words,
            environment={"NO_COLOR": "1", **(environment or {})},
            stdin=inner,
            stdout=inner,
            stderr=inner,
            preexec_fn=_take_terminal,
        )
        os.close(inner)

    def type(self, text):
        os.write(self.descriptor, text.encode())

    def read_until(self, words, seconds=30):
        """Read on until *words* have come; None: until the end."""
        until = time.monotonic() + seconds
        while words is None or words not in self.text:
            assert time.monotonic() < until, f"{words!r} has not come:\n{self.text}"
            if not select.select([self.descriptor], [], [], 0.5)[0]:
                continue
            try:
                self.text += os.read(self.descriptor, 65536).decode(errors="replace").replace("\r\n", "\n")
            except OSError:  # Linux: nobody has it open any more
                break
        assert words is None or words in self.text, f"{words!r} has not come:\n{self.text}"

    def end(self):
        self.read_until(None)
        return self.process.wait(30)


def _take_terminal():
    os.setsid()
    # opening a terminal makes it that of a session without one
    os.close(os.open(os.ttyname(0), os.O_RDWR))


@pytest.fixture
def terminal(trace):
    opened = []

    def start(*words, environment=None):
        opened.append(Terminal(trace, *words, environment=environment))
        return opened[-1]

    yield start
    trace.end()
    for each in opened:
        os.close(each.descriptor)


@pytest.fixture
def model():
    """A model that never answers, and the event that it was asked."""
    asked = threading.Event()

    def stall(request):
        asked.set()
        return Stall()

    with ModelServer([stall] * 4) as server:
        yield server, asked


def written(tmp_path, text):
    path = tmp_path / "program.py"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_interrupt_belongs_to_the_running_program(trace, terminal, python, tmp_path):
    text = "import sys\nprint('running', flush=True)\nsys.stdin.readline()\n"
    at = terminal("run", "--python", str(python), written(tmp_path, text))
    at.read_until("running\n")
    at.type("\x03")
    assert at.end() == -signal.SIGINT
    assert at.text.count("KeyboardInterrupt") == 1
    assert "dap-agent" not in at.text
    trace.assert_nothing_is_left()


def test_a_program_that_handles_the_interrupt_goes_on(trace, terminal, tmp_path):
    text = (
        "import sys\nprint('running', flush=True)\n"
        "try:\n    sys.stdin.readline()\nexcept KeyboardInterrupt:\n    print('saved')\n"
    )
    at = terminal("run", written(tmp_path, text))
    at.read_until("running\n")
    at.type("\x03")
    assert at.end() == 0
    assert at.text.endswith("saved\n")
    trace.assert_nothing_is_left()


THREAD = (
    "import threading\n"
    "def fail():\n    {}['b']\n"
    "thread = threading.Thread(target=fail)\nthread.start()\nthread.join()\nprint('joined')\n"
)


@pytest.mark.parametrize("text", ["{}['b']\n", THREAD], ids=["main", "thread"])
def test_interrupt_ends_the_investigation_only(trace, terminal, python, model, tmp_path, text):
    server, asked = model
    words = ("run", "--python", str(python), "--model", "openai:test-model", written(tmp_path, text))
    at = terminal(*words, environment=server.environment())
    at.read_until("investigates")
    assert asked.wait(30)
    at.type("\x03")
    assert at.end() == exit_status.CRASHED
    assert "the investigation was ended" in at.text
    _, _, after = at.text.partition("Traceback (most recent call last)")
    assert "KeyError: 'b'" in after, "the program meets its own exception"
    assert ("joined" in after) is (text == THREAD)
    assert "KeyboardInterrupt" not in at.text
    assert "<dap-agent>" not in at.text
    trace.assert_nothing_is_left()


def test_interrupt_while_printing_shows_no_frame_of_ours(trace, terminal, python, tmp_path):
    text = "print('running')\nwhile True:\n    print('.' * 2000)\n"
    at = terminal("run", "--python", str(python), written(tmp_path, text))
    at.read_until("running\n")
    at.type("\x03")
    assert at.end() == -signal.SIGINT
    end = at.text[at.text.rindex("Traceback") :]
    assert end.rstrip().endswith("KeyboardInterrupt")
    assert "<dap-agent>" not in end
    assert end.count("File ") == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_termination_during_an_investigation(trace, model, tmp_path, number):
    server, asked = model
    words = ("run", "--model", "openai:test-model", written(tmp_path, "{}['b']\n"))
    process = trace.start(*words, environment=server.environment(), start_new_session=True)
    assert asked.wait(30)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == exit_status.CRASHED
    assert "the program stopped at KeyError: 'b'" in err
    trace.assert_nothing_is_left()


def test_termination_before_the_program_runs(trace, tmp_path):
    process = trace.start("run", written(tmp_path, "input()\n"), stdin=subprocess.PIPE, start_new_session=True)
    until = time.monotonic() + 30
    while not any(ADAPTER in line for line in trace.processes().values()):
        assert time.monotonic() < until
        time.sleep(0.005)  # polling /proc: the command says nothing at this point
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGTERM
    trace.assert_nothing_is_left()
