"""Runs end with all their children: at the end, at a time-out, when cancelled, and when dap-agent itself is killed."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from dap_agent.fixes.processes import Finished, run

# a child in the group, one in a session of its own, and a daemon (double fork) with an empty environment
SPAWN = """
import os, subprocess, sys, time
pids = []
sleep = [sys.executable, "-c", "import time; time.sleep(300)"]
pids.append(subprocess.Popen(sleep).pid)
pids.append(subprocess.Popen(sleep, start_new_session=True).pid)
read, write = os.pipe()
if os.fork() == 0:
    os.setsid()
    pid = os.fork()
    if pid == 0:
        os.execve(sys.executable, sleep, {})
    os.write(write, b"%d" % pid)
    os._exit(0)
pids.append(int(os.read(read, 20)))
tmp = sys.argv[1] + ".tmp"
open(tmp, "w").write(" ".join(map(str, [os.getpid(), *pids])))
os.replace(tmp, sys.argv[1])
"""


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            return stream.read().rpartition(b")")[2].split()[0] not in {b"Z", b"X"}
    except OSError:
        return False


def started(script: str, tmp_path: Path, **options: float) -> Finished:
    command = [sys.executable, "-c", script, str(tmp_path / "pids")]
    return asyncio.run(run(command, cwd=tmp_path, env=dict(os.environ), folder=tmp_path, **{"timeout": 60, **options}))


def pids_in(tmp_path: Path) -> list[int]:
    return [int(pid) for pid in (tmp_path / "pids").read_text().split()]


linux = pytest.mark.skipif(sys.platform != "linux", reason="subreapers and /proc are Linux's")


@linux
def test_children_left_behind_are_killed_at_the_end(tmp_path: Path) -> None:
    done = started(SPAWN, tmp_path)
    assert (done.exit_status, done.timed_out) == (0, False)
    pids = pids_in(tmp_path)
    assert len(pids) == 4
    assert [pid for pid in pids if alive(pid)] == []


@linux
def test_children_are_killed_at_the_time_limit(tmp_path: Path) -> None:
    done = started(SPAWN + "time.sleep(300)", tmp_path, timeout=3)
    assert (done.exit_status, done.timed_out) == (None, True)
    assert 3 <= done.seconds < 10
    assert [pid for pid in pids_in(tmp_path) if alive(pid)] == []


@linux
def test_children_are_killed_on_cancellation(tmp_path: Path) -> None:
    async def main() -> None:
        command = [sys.executable, "-c", SPAWN + "time.sleep(300)", str(tmp_path / "pids")]
        task = asyncio.ensure_future(run(command, cwd=tmp_path, env=dict(os.environ), folder=tmp_path, timeout=60))
        while not (tmp_path / "pids").exists():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [pid for pid in pids_in(tmp_path) if alive(pid)] == []

    asyncio.run(main())


def wait_until_gone(pids: list[int], seconds: float = 10) -> list[int]:
    end = time.monotonic() + seconds
    while (left := [pid for pid in pids if alive(pid)]) and time.monotonic() < end:
        os.sched_yield()
    return left


@linux
@pytest.mark.parametrize("victim", ["dap-agent", "supervisor", "test"])
def test_kill_9_of_each_process_leaves_nothing(tmp_path: Path, victim: str) -> None:
    folder = tmp_path / "scratch"
    folder.mkdir()
    program = textwrap.dedent(
        f"""
        import asyncio, os, sys
        from pathlib import Path
        from dap_agent.fixes.processes import run
        command = [sys.executable, "-c", {SPAWN + "time.sleep(300)"!r}, {str(tmp_path / "pids")!r}]
        folder = Path({str(folder)!r})
        done = asyncio.run(run(command, cwd=folder.parent, env=dict(os.environ), folder=folder, timeout=60))
        print(done.exit_status)
        """
    )
    ours = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        while not (tmp_path / "pids").exists():
            assert ours.poll() is None
        pids = pids_in(tmp_path)
        supervisor = int(Path(f"/proc/{pids[0]}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill({"dap-agent": ours.pid, "supervisor": supervisor, "test": pids[0]}[victim], signal.SIGKILL)
        out, _ = ours.communicate(timeout=30)
        # a daemon with an emptied environment whose supervisor was killed is the one that cannot be found
        assert wait_until_gone([*(pids[:3] if victim == "supervisor" else pids), supervisor]) == []
        assert out == {"dap-agent": "", "supervisor": "None\n", "test": "-9\n"}[victim]
        if victim == "dap-agent":
            end = time.monotonic() + 10
            while folder.exists() and time.monotonic() < end:
                os.sched_yield()
            assert not folder.exists()
    finally:
        ours.kill()
        if (tmp_path / "pids").exists():
            for pid in pids_in(tmp_path):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)


def test_output_is_bounded_and_stdin_is_closed(tmp_path: Path) -> None:
    script = "import sys\nsys.stdout.write('a' * 5_000_000)\nprint('the end', repr(sys.stdin.read()))"
    done = started(script, tmp_path, limit=2000)
    assert len(done.output) < 2100
    assert done.output.startswith("[... 49")
    assert done.output.endswith("the end ''\n")


def test_status_signal_and_missing_program(tmp_path: Path) -> None:
    assert started("raise SystemExit(7)", tmp_path).exit_status == 7
    assert started("import os; os.kill(os.getpid(), 11)", tmp_path).exit_status == -11
    missing = asyncio.run(run(["/no/such"], cwd=tmp_path, env={}, folder=tmp_path, timeout=9))
    assert missing.exit_status is None
    assert missing.error is not None and "/no/such" in missing.error
