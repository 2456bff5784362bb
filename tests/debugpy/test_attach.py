"""Attaching to programs that run already (issue 2, 'Attach')."""

import asyncio
import os
import shutil
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from dap_agent.errors import DapAgentError
from dap_agent.session.attach import attach_address, attach_pid, preflight
from dap_agent.session.launch import Ended, Stopped, debugpy_folder

SERVER = Path(__file__).parent / "programs" / "server.py"


@contextmanager
def running(command, **options):
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def say(process, line):
    process.stdin.write(line + "\n")
    process.stdin.flush()


async def one_exception(debuggee, process):
    """The stop of a request that fails, and the server going on after it."""
    say(process, "good")
    say(process, "bad")
    event = await asyncio.wait_for(debuggee.next_event(), 30)
    assert isinstance(event, Stopped)
    assert event.program.snapshot.headline == "ValueError: cannot handle 'bad' of size 3"
    assert event.program.snapshot.frames[0]["function"] == "handle"
    assert (await event.program.variable(0, "size"))["value"]["text"] == "3"
    await event.resume()
    await debuggee.close()
    say(process, "bad")  # nobody is attached any more: nothing stops
    assert [await asyncio.to_thread(process.stdout.readline) for _ in range(3)] == [
        "served good\n",
        "served bad\n",
        "served bad\n",
    ]


@pytest.mark.skipif(not (shutil.which("gdb") or shutil.which("lldb")), reason="injection needs gdb or lldb")
def test_attach_by_pid_stops_at_the_next_exception_and_leaves_the_program_running(every_python):
    async def story(process):
        debuggee = await attach_pid(process.pid)
        assert debuggee.process_id == process.pid
        await one_exception(debuggee, process)

    with running([str(every_python), str(SERVER)]) as process:
        asyncio.run(story(process))
        process.stdin.close()
        assert process.stdout.read() == "done\n"
        assert process.wait(30) == 0


def test_attach_to_a_listening_program(python):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "PYTHONPATH": str(debugpy_folder())}
    command = [str(python), "-m", "debugpy", "--listen", f"127.0.0.1:{port}", str(SERVER)]

    async def story(process):
        debuggee = await attach_address("127.0.0.1", port)
        with pytest.raises(DapAgentError, match="takes one client"):
            await attach_address("127.0.0.1", port)
        await one_exception(debuggee, process)
        again = await attach_address("127.0.0.1", port)
        process.stdin.close()
        assert isinstance(await asyncio.wait_for(again.next_event(), 30), Ended)
        await again.close()

    with running(command, env=environment, stderr=subprocess.DEVNULL) as process:
        asyncio.run(story(process))
        assert process.wait(30) == 0


@pytest.mark.skipif(not (shutil.which("gdb") or shutil.which("lldb")), reason="injection needs gdb or lldb")
def test_now_tells_where_every_thread_is_and_resumes(python):
    """The main thread waits in C code for its stdin: no debugger can pause it, its stack is told all the same."""

    async def story(process):
        debuggee = await attach_pid(process.pid)
        await debuggee.pause()
        event = await asyncio.wait_for(debuggee.next_event(), 30)
        snapshot = event.program.snapshot
        assert snapshot.reason == "pause"
        assert snapshot.exception is None
        assert snapshot.frames[0]["file"].endswith("server.py")
        assert [thread["name"] for thread in snapshot.data["threads"]] == ["MainThread"]
        assert snapshot.data["threads"][0]["stack"][0]["file"].endswith("server.py")
        await event.resume()
        await debuggee.close()
        say(process, "good")
        assert await asyncio.to_thread(process.stdout.readline) == "served good\n"

    with running([str(python), str(SERVER)]) as process:
        asyncio.run(story(process))


def test_nobody_listens():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(DapAgentError, match=f"127.0.0.1:{port}"):
        asyncio.run(attach_address("127.0.0.1", port))


class TestPreflight:
    """Each thing that may be missing is named with its remedy, before anything is tried."""

    @staticmethod
    def machine(tmp_path, *, maps="/usr/bin/python3.11", tracer="0", scope="0", namespace="mnt:[1]"):
        home = tmp_path / str(os.getpid())
        for folder, ns in ((home, namespace), (tmp_path / "self", "mnt:[1]")):
            (folder / "ns").mkdir(parents=True)
            (folder / "ns" / "mnt").symlink_to(ns)
        (home / "maps").write_text(maps)
        (home / "comm").write_text("prog")
        (home / "status").write_text(f"Name:\tprog\nTracerPid:\t{tracer}\n")
        yama = tmp_path / "sys/kernel/yama"
        yama.mkdir(parents=True)
        (yama / "ptrace_scope").write_text(scope + "\n")
        return tmp_path

    def ask(self, tmp_path, *, uid=None, which=lambda name: "/usr/bin/gdb", **machine):
        proc = self.machine(tmp_path, **machine)
        return preflight(os.getpid(), proc=proc, which=which, uid=os.getuid() if uid is None else uid)

    def test_nothing_is_missing(self, tmp_path):
        assert self.ask(tmp_path) == []

    def test_no_process(self):
        process = subprocess.Popen([sys.executable, "-c", ""])
        process.wait()
        assert "there is no process" in preflight(process.pid)[0]

    def test_no_debugger(self, tmp_path):
        assert "gdb" in self.ask(tmp_path, which=lambda name: None)[0]

    def test_another_user(self, tmp_path):
        assert "another user" in self.ask(tmp_path, uid=os.getuid() + 1)[0]

    def test_ptrace_scope(self, tmp_path, monkeypatch):
        owner = os.getuid()
        if owner == 0:  # root may trace anybody: ask as the (other) owner of the files
            monkeypatch.setattr("os.geteuid", lambda: 1)
            os.chown(tmp_path, 1, 1)
        proc = self.machine(tmp_path, scope="1")
        if owner == 0:
            os.chown(proc / str(os.getpid()), 1, 1)
        (problem,) = preflight(os.getpid(), proc=proc, which=lambda name: "/usr/bin/gdb", uid=1 if owner == 0 else owner)
        assert "ptrace_scope" in problem
        assert "sysctl" in problem

    def test_container(self, tmp_path):
        assert "container" in self.ask(tmp_path, namespace="mnt:[2]")[0]

    def test_traced(self, tmp_path):
        assert "process 77 traces it" in self.ask(tmp_path, tracer="77")[0]

    def test_debugged(self, tmp_path):
        maps = "/usr/bin/python3.11\n/x/_pydevd_bundle/pydevd_cython.so"
        assert "a debugger is in it" in self.ask(tmp_path, maps=maps)[0]

    def test_no_python(self, tmp_path):
        assert "no Python process" in self.ask(tmp_path, maps="/usr/bin/bash")[0]
