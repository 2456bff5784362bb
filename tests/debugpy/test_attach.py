"""Attaching to programs that run already (issue 2, 'Attach')."""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from dap_agent.errors import DapAgentError
from dap_agent.session import injection
from dap_agent.session.adapter import debugpy_folder
from dap_agent.session.attach import attach_address, attach_pid, preflight
from dap_agent.session.launch import Ended, Stopped

SERVER = Path(__file__).parent / "programs" / "server.py"
WORKLOAD = Path(__file__).parent / "programs" / "workload.py"


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
    told = event.program.snapshot.data
    # without what another attach has brought in
    called = [(each["function"], each["calls"]) for each in told["called"] if each["file"] != "<string>"]
    assert called == [("worker", 2), ("handle", 2)]
    await event.resume()
    await debuggee.close()
    say(process, "bad")  # nobody is attached any more: nothing stops
    assert [await asyncio.to_thread(process.stdout.readline) for _ in range(3)] == [
        "served good\n",
        "served bad\n",
        "served bad\n",
    ]


injecting = pytest.mark.skipif(not (shutil.which("gdb") or shutil.which("lldb")), reason="injection needs gdb or lldb")


@pytest.fixture(autouse=True, scope="module")
def one_rehearsal():
    """One for all tests of this file that do not ask about it: that is a second less for each."""
    real, chosen = injection.choose, []

    async def choose(folder, which=shutil.which):
        if which is not shutil.which:
            return await real(folder, which)
        if not chosen:
            chosen.append(await real(folder))
        return chosen[0]

    injection.choose = choose
    yield
    injection.choose = real


@injecting
def test_attach_by_pid_stops_at_the_next_exception_and_leaves_the_program_running(every_python):
    async def story(process):
        for _ in range(2):  # once more after it has been let go
            debuggee = await attach_pid(process.pid)
            assert debuggee.process_id == process.pid
            await one_exception(debuggee, process)

    with running([str(every_python), str(SERVER)]) as process:
        asyncio.run(story(process))
        process.stdin.close()
        assert process.stdout.read() == "done\n"
        assert process.wait(30) == 0


@injecting
def test_the_program_runs_as_fast_as_before(every_python):
    """While attached, and after a pause and a detach: no thread is traced (fib under a trace: 18x on 3.11)."""

    def speed(process):
        say(process, "measure")
        return float(process.stdout.readline())

    async def story(process):
        before = speed(process)
        debuggee = await attach_pid(process.pid)
        attached = speed(process)
        await debuggee.pause()
        event = await asyncio.wait_for(debuggee.next_event(), 30)
        await event.resume()
        await debuggee.close()
        speed(process)  # what the pause has left behind goes with the first call
        assert max(attached, speed(process)) < 2 * before

    with running([str(every_python), str(WORKLOAD), "measuring"]) as process:
        asyncio.run(story(process))


LISTENING = """
import debugpy, runpy, sys
debugpy.configure(python=sys.argv[2])
debugpy.listen(("127.0.0.1", int(sys.argv[1])))
runpy.run_path(sys.argv[3], run_name="__main__")
"""


def listening(python, port):
    # its adapter under our interpreter: that of debugpy 1.8.22 does not start on 3.8 and 3.9
    command = [str(python), "-c", LISTENING, str(port), sys.executable, str(SERVER)]
    return running(command, env={**os.environ, "PYTHONPATH": str(debugpy_folder())}, stderr=subprocess.DEVNULL)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_attach_to_a_listening_program(python):
    port = free_port()

    async def story(process):
        debuggee = await attach_address("127.0.0.1", port)
        with pytest.raises(DapAgentError, match="takes one client"):
            await attach_address("127.0.0.1", port)
        await one_exception(debuggee, process)
        again = await attach_address("127.0.0.1", port)
        process.stdin.close()
        assert isinstance(await asyncio.wait_for(again.next_event(), 30), Ended)
        await again.close()

    with listening(python, port) as process:
        asyncio.run(story(process))
        assert process.wait(30) == 0


@injecting
def test_a_program_that_is_debugged_already_is_left_alone():
    async def twice(process):
        debuggee = await attach_pid(process.pid)
        with pytest.raises(DapAgentError, match="dap-agent debugs it already"):
            await attach_pid(process.pid)
        await one_exception(debuggee, process)

    async def once(process):
        with pytest.raises(DapAgentError, match=r"debugpy listens in it: use --connect"):
            await attach_pid(process.pid)

    with running([sys.executable, str(SERVER)]) as process:
        asyncio.run(twice(process))
    with listening(sys.executable, free_port()) as process:
        asyncio.run(once(process))


@injecting
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
        assert snapshot.data["thread"]["name"] == "MainThread"
        assert snapshot.data["thread"]["main"]
        assert snapshot.data["threads"] == []
        await event.resume()
        await debuggee.close()
        say(process, "good")
        assert await asyncio.to_thread(process.stdout.readline) == "served good\n"

    with running([str(python), str(SERVER)]) as process:
        asyncio.run(story(process))


@injecting
def test_now_pauses_a_busy_loop(python):
    """The paused thread waits inside the debugger: what is told begins with the program's frames, and it runs on."""

    def rounds(process):
        say(process, "rounds")
        return int(process.stdout.readline())

    async def story(process):
        debuggee = await attach_pid(process.pid)
        await debuggee.pause()
        event = await asyncio.wait_for(debuggee.next_event(), 30)
        snapshot = event.program.snapshot
        assert [frame["function"] for frame in snapshot.frames] == ["spin", "spinning", "<module>"]
        (other,) = snapshot.data["threads"]
        assert (other["name"], other["stack"][0]["function"]) == ("watch", "spinning.<locals>.watch")
        counted = [(await event.program.variable(0, "state['rounds']"))["value"]["text"] for _ in range(2)]
        assert counted[0] == counted[1]  # it stands still
        await event.resume()
        await debuggee.close()
        before, until = rounds(process), time.monotonic() + 10
        while rounds(process) == before:
            assert time.monotonic() < until

    with running([str(python), str(WORKLOAD), "spinning"]) as process:
        asyncio.run(story(process))
        process.stdin.close()
        assert process.wait(30) == 0


@injecting
def test_a_death_by_signal_is_reported(python):
    async def story(process):
        debuggee = await attach_pid(process.pid)
        say(process, "die")
        event = await asyncio.wait_for(debuggee.next_event(), 30)
        assert isinstance(event, Ended)
        (crash,) = event.crashes
        assert "signal 6 (SIGABRT)" in crash.snapshot.data["notes"][0]
        assert crash.snapshot.frames[0]["function"] == "dying"
        await debuggee.close()

    with running([str(python), str(WORKLOAD), "dying"], stderr=subprocess.DEVNULL) as process:
        asyncio.run(story(process))
        assert process.wait(30) == -signal.SIGABRT


CHILD = "print('child', flush=True)\n1 / 0\n"


@injecting
def test_its_children_are_followed(python, tmp_path):
    """Those that it starts while we are attached, and no later ones."""
    (tmp_path / "child.py").write_text(CHILD)

    async def story(process):
        debuggee = await attach_pid(process.pid)
        for kind in ("run", "fork"):
            say(process, kind)
            event = await asyncio.wait_for(debuggee.next_event(), 30)
            assert event.is_child
            assert event.program.snapshot.headline == "ZeroDivisionError: division by zero"
            await event.resume()
        await debuggee.close()
        for kind in ("run", "fork"):
            say(process, kind)

    with running([str(python), str(WORKLOAD), "parent"], cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
        asyncio.run(story(process))
        process.stdin.close()
        assert process.stdout.read().split("\n").count("child over 1") == 4
        assert process.wait(30) == 0


@injecting
def test_no_wait_of_the_program_ends_early(python):
    """The kernel remembers one interrupted wait per thread: a call that was interrupted too would take its place."""

    async def story(process):
        debuggee = await attach_pid(process.pid)
        await debuggee.close()

    with running([str(python), str(WORKLOAD), "waiting"]) as process:
        asyncio.run(story(process))
        say(process, "over")
        assert process.stdout.read() == "early: []\ndone\n"


@injecting
class TestCommand:
    """`dap-agent attach` as a process of its own."""

    @staticmethod
    def start(process, folder):
        command = [sys.executable, "-m", "dap_agent", "attach", "--pid", str(process.pid)]
        return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    @staticmethod
    def until(agent, text):
        said = ""
        while text not in said:
            line = agent.stdout.readline()
            assert line, said
            said += line

    def unharmed(self, process):
        for line in ("good", "bad"):
            say(process, line)
            assert process.stdout.readline() == f"served {line}\n"

    def test_ctrl_c_detaches(self, tmp_path):
        with running([sys.executable, str(SERVER)]) as process, self.start(process, tmp_path) as agent:
            self.until(agent, "waiting for an uncaught exception")
            agent.send_signal(signal.SIGINT)
            assert "detached; the program goes on" in agent.stdout.read()
            self.unharmed(process)

    def test_our_death_lets_the_program_go_on(self, tmp_path):
        with running([sys.executable, str(SERVER)]) as process, self.start(process, tmp_path) as agent:
            self.until(agent, "waiting for an uncaught exception")
            agent.kill()
            agent.wait()
            self.unharmed(process)
            asyncio.run(self.again(process))

    @staticmethod
    async def again(process):
        await one_exception(await attach_pid(process.pid), process)

    def test_our_death_in_the_middle_of_attaching(self, tmp_path):
        """The tool brings its call to an end by itself, and the program finds nobody to connect to."""
        with running([sys.executable, str(SERVER)]) as process:
            with self.start(process, tmp_path) as agent:
                traced(process.pid)
                agent.kill()
            self.unharmed(process)

    def test_the_program_dies_in_the_middle_of_attaching(self, tmp_path):
        with running([sys.executable, str(SERVER)]) as process, self.start(process, tmp_path) as agent:
            traced(process.pid)
            process.kill()
            assert f"Process {process.pid} " in agent.stdout.read()
            assert agent.wait(30) != 0


def traced(pid):
    """Return when a tool has stopped process *pid*."""
    until = time.monotonic() + 30
    while "TracerPid:\t0\n" in Path(f"/proc/{pid}/status").read_text():
        assert time.monotonic() < until


class TestRehearsal:
    """No tool touches the user's process before it has proved itself on one of ours."""

    @staticmethod
    def tool(tmp_path, text):
        path = tmp_path / "gdb"
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        return lambda name: str(path) if name == "gdb" else None

    def refusal(self, tmp_path, which):
        with pytest.raises(DapAgentError) as raised:
            asyncio.run(injection.choose(tmp_path, which))
        return raised.value.message

    def test_a_tool_that_fails_is_not_used(self, tmp_path):
        said = self.refusal(tmp_path, self.tool(tmp_path, "echo 'Could not write it.' >&2; exit 1\n"))
        assert 'gdb is not fit for it: it said "Could not write it."' in said
        assert "lldb is not installed" in said
        assert "apt-get install lldb" in said

    def test_a_tool_that_claims_success_is_not_believed(self, tmp_path):
        said = self.refusal(tmp_path, self.tool(tmp_path, "echo 'dap_done = 2'\n"))
        assert "gdb is not fit for it: the process that it had called" in said

    def test_a_tool_that_kills_is_not_used(self, tmp_path):
        said = self.refusal(tmp_path, self.tool(tmp_path, 'while [ "$1" != --pid ]; do shift; done; kill -9 $2\n'))
        assert "gdb is not fit for it" in said

    def test_without_any_tool(self, tmp_path):
        assert "gdb is not installed; lldb is not installed" in self.refusal(tmp_path, lambda name: None)

    @injecting
    @pytest.mark.parametrize("name", ["gdb", "lldb"])
    def test_it_is_quick(self, name, tmp_path):
        path = shutil.which(name)
        if path is None:
            pytest.skip(f"{name} is not installed")
        begin = time.monotonic()
        try:
            asyncio.run(injection.rehearse(injection.Tool(name, path), tmp_path))
        except injection.ToolFailed as error:
            assert "sleep" in error.message or "said" in error.message  # there are machines where one of them fails
        assert time.monotonic() - begin < 5  # 0.5 s; the bound is for a machine under load


def test_nobody_listens():
    port = free_port()
    with pytest.raises(DapAgentError, match=f"127.0.0.1:{port}"):
        asyncio.run(attach_address("127.0.0.1", port))


class TestPreflight:
    """Each thing that may be missing is named with its remedy, before anything is tried."""

    @staticmethod
    def machine(tmp_path, *, maps="/usr/bin/python3.11", tracer="0", scope="0", namespace="mnt:[1]", cmdline=""):
        home = tmp_path / str(os.getpid())
        for folder, ns in ((home, namespace), (tmp_path / "self", "mnt:[1]")):
            (folder / "ns").mkdir(parents=True)
            (folder / "ns" / "mnt").symlink_to(ns)
        (home / "maps").write_text(maps)
        (home / "comm").write_text("prog")
        (home / "cmdline").write_text(cmdline)
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
        uid = 1 if owner == 0 else owner
        (problem,) = preflight(os.getpid(), proc=proc, which=lambda name: "/usr/bin/gdb", uid=uid)
        assert "ptrace_scope" in problem
        assert "sysctl" in problem

    def test_container(self, tmp_path):
        assert "container" in self.ask(tmp_path, namespace="mnt:[2]")[0]

    def test_traced(self, tmp_path):
        assert "process 77 traces it" in self.ask(tmp_path, tracer="77")[0]

    def test_listening(self, tmp_path):
        cmdline = "python\0-X\0dev\0-m\0debugpy\0--wait-for-client\0--listen\0localhost:5678\0program.py\0"
        assert "use --connect localhost:5678" in self.ask(tmp_path, cmdline=cmdline)[0]

    def test_no_python(self, tmp_path):
        assert "no Python process" in self.ask(tmp_path, maps="/usr/bin/bash")[0]
