"""A command of dap-agent as a process of its own, and a look at everything it leaves behind."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


class Trace:
    """Finds the processes, sockets and files of one command by a mark in their environment."""

    def __init__(self, temporary: Path) -> None:
        self.mark = f"dap-agent-test-{uuid.uuid4().hex}"
        self.temporary = temporary
        self._started: list[subprocess.Popen[str]] = []

    def start(self, *words: str, environment: dict[str, str] | None = None, **options) -> "subprocess.Popen[str]":
        given = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(self.temporary),
            "TEST_MARK": self.mark,
            **(environment or {}),
        }
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen([sys.executable, "-m", "dap_agent", *words], env=given, **{**streams, **options})
        self._started.append(process)
        return process

    def processes(self) -> dict[int, str]:
        """Pid -> command line of every living process of the command."""
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if self.mark.encode() in (entry / "environ").read_bytes() and not zombie(entry):
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue  # it has just ended, or is not ours
        return found

    def one(self, part: str, without: str = "\0") -> int:
        """The pid of the process with *part* in its command line."""
        found = self.processes()
        pids = [pid for pid, line in found.items() if part in line and without not in line]
        assert len(pids) == 1, f"{part!r} is not one of {found}"
        return pids[0]

    def assert_nothing_is_left(self, within: float = 3.0) -> None:
        """No process and no temporary file, *within* seconds."""
        until = time.monotonic() + within
        while self.processes() and time.monotonic() < until:
            time.sleep(0.02)  # polling /proc: there is no event for "nothing is left"
        assert not self.processes()
        assert [path.name for path in self.temporary.iterdir()] == []

    def end(self) -> None:
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)
        for process in self._started:
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()


def zombie(entry: Path) -> bool:
    return (entry / "stat").read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.fixture
def trace(tmp_path: Path) -> Iterator[Trace]:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    found = Trace(temporary)
    yield found
    found.end()
