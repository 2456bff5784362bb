"""`dap-agent adapter` before the real debugpy: an editor observes the same messages with and without it.

The documented differences: `supportsRestartRequest` (and that it is withdrawn for `attach`), one exception filter more,
the events `dapAgent...`, ports, cleaned stop texts.
"""

import asyncio
import contextlib
import difflib
import json
import sys

import pytest

from .differences import comparable
from .editor_double import BOTH, NVIM, OLD, OURS, VSCODE, EditorDouble, editor, environment
from .fakes import gone_within, run

FAMILY = """\
import multiprocessing
import subprocess
import sys

GRANDCHILD = "print('the grandchild')"
CHILD = f"import subprocess, sys; print('the child'); subprocess.run([sys.executable, '-c', {GRANDCHILD!r}])"


def work(number):
    total = number + 1
    return total


if __name__ == "__main__":
    if sys.argv[1] == "subprocess":
        subprocess.run([sys.executable, "-c", CHILD])
    else:
        process = multiprocessing.get_context(sys.argv[1]).Process(target=work, args=(1,))
        process.start()
        process.join()
    print("done", flush=True)
"""
PLAIN = """\
import os
import sys


def double(number):
    return number * 2


print(double(1), double(2), flush=True)
print("to stderr", file=sys.stderr, flush=True)
if "fail" in sys.argv:
    {}["missing"]
"""


@pytest.fixture
def programs(tmp_path):
    (tmp_path / "family.py").write_text(FAMILY)
    (tmp_path / "plain.py").write_text(PLAIN)
    return tmp_path


def family(client, *, ours):
    """What an editor notices of all its sessions, the children in no order."""

    def observed(one):
        return json.dumps(comparable({1: one.log}, ours=ours), sort_keys=True, indent=1)

    return [observed(client), *sorted(observed(one) for one in client.children)]


async def both(session, **options):
    """*session* with the adapter as it is and with ours, at the same time."""

    async def one(command):
        async with editor(command, **options) as client:
            result = await session(client)
        return result if result is not None else family(client, ours=command == OURS)

    direct, ours = await asyncio.gather(*(one(command) for command in BOTH.values()))
    same(ours, direct)
    return direct


def same(ours, direct):
    """Told by lines, so that a difference can be read."""
    lines = [[line for one in side for line in one.splitlines()] for side in (direct, ours)]
    assert ours == direct, "\n".join(difflib.unified_diff(*lines, "direct", "ours", n=8, lineterm=""))


@pytest.mark.parametrize(
    ("initialize", "kind", "children"), [(VSCODE, "subprocess", 2), (NVIM, "spawn", 2), (OLD, "fork", 1)]
)
def test_children_and_grandchildren(programs, initialize, kind, children):
    program = str(programs / "family.py")

    async def session(client):
        configuration = {"program": program, "args": [kind], "console": "internalConsole", "subProcess": True}
        await client.start("launch", configuration)
        await client.to_end()
        assert len(client.children) == children

    async def main():
        direct = await both(session, initialize=initialize, lines={program: [11]})
        assert len(direct) == 1 + children
        if kind != "subprocess":
            assert '"breakpoint"' in "".join(direct[1:]), "a child stopped"

    run(main)


def test_children_come_through_us(programs):
    program = str(programs / "family.py")

    async def main():
        async with editor(OURS, initialize=VSCODE) as client:
            await client.start("launch", {"program": program, "args": ["subprocess"], "console": "internalConsole"})
            await client.to_end()
            sockets = [m for m in client.log if m.get("event") == "debugpySockets"]
            (door,) = {entry["port"] for entry in sockets[-1]["body"]["sockets"] if not entry["internal"]}
            assert [child.configuration["connect"]["port"] for child in client.children] == [door, door]

    run(main)


def test_a_terminal(programs):
    program = str(programs / "plain.py")

    async def session(client):
        configuration = {"program": program, "console": "integratedTerminal", "cwd": str(programs)}
        await client.start("launch", configuration)
        await client.to_end()
        assert len(client.terminals) == 1

    run(lambda: both(session, initialize=VSCODE, lines={program: [6]}))


def test_no_debug(programs):
    configuration = {
        "program": str(programs / "plain.py"),
        "console": "internalConsole",
        "noDebug": True,
        "args": ["fail"],
    }

    async def session(client):
        assert (await client.start("launch", configuration))["success"]
        await client.to_end()

    async def main():
        direct = await both(session, initialize=VSCODE)
        assert "KeyError: 'missing'" in direct[0]

    run(main)


def test_a_launch_that_is_refused(programs):
    async def session(client):
        assert not (await client.start("launch", {"console": "internalConsole"}))["success"]
        await client.ask("disconnect")

    run(lambda: both(session, initialize=VSCODE))


@pytest.mark.parametrize("how", [{"terminateDebuggee": True}, {}, None])
def test_the_user_ends_it_at_a_stop(programs, how):
    program = str(programs / "plain.py")

    async def session(client):
        await client.start("launch", {"program": program, "console": "internalConsole"})
        await client.event("stopped")
        if how is None:
            await client.ask("terminate")
            await client.event("terminated")
        await client.leave(**(how or {}))

    run(lambda: both(session, initialize=VSCODE, lines={program: [6]}))


def test_attach_to_a_program_that_connects(programs):
    program = str(programs / "plain.py")

    async def session(client):
        attaching = asyncio.ensure_future(client.start("attach", {"listen": {"host": "127.0.0.1", "port": 0}}))
        where = (await client.event("debugpyWaitingForServer"))["body"]
        address = f"{where['host']}:{where['port']}"
        process = await debuggee("--connect", address, "--wait-for-client", program)
        await attaching
        await client.to_end()
        assert await process.wait() == 0
        process._transport.close()

    run(lambda: both(session, initialize=VSCODE, lines={program: [6]}))


async def debuggee(*arguments, **more):
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "debugpy", *arguments, env=environment(**more), stdout=asyncio.subprocess.DEVNULL
    )


@contextlib.asynccontextmanager
async def listening(program, ours, **options):
    """A program that listens, and an editor that is connected to it directly or through us."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", LISTENING.format(program=program), env=environment(), stdout=asyncio.subprocess.PIPE
    )
    port = int(await process.stdout.readline())
    try:
        if ours:
            async with editor([*OURS, "--connect", f"127.0.0.1:{port}"], **options) as client:
                yield client
        else:
            client = EditorDouble(*await asyncio.open_connection("127.0.0.1", port), **options)
            yield client
            await client.close()
        await asyncio.wait_for(process.communicate(), 20)
        assert process.returncode == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        process._transport.close()


LISTENING = """
import debugpy, runpy, sys
print(debugpy.listen(("127.0.0.1", 0))[1], flush=True)
debugpy.wait_for_client()
sys.argv = ["x", "subprocess"]
runpy.run_path({program!r}, run_name="__main__")
"""


@pytest.mark.parametrize("detach", [True, False])
def test_attach_to_a_program_that_listens(programs, detach):
    program = str(programs / ("plain.py" if detach else "family.py"))

    async def session(client):
        await client.start("attach", {"justMyCode": True})
        if detach:
            await client.event("stopped")
            await client.leave(terminateDebuggee=False)
        else:
            await client.to_end()
            await client.all_children_over(2)

    async def one(ours):
        async with listening(program, ours, initialize=VSCODE, lines={program: [6]}) as client:
            await session(client)
        return family(client, ours=ours)

    async def main():
        direct, ours = await asyncio.gather(one(False), one(True))
        same(ours, direct)
        assert len(direct) == (1 if detach else 3)

    run(main)


# How it is started


def test_it_wraps_the_command_that_an_editor_had(programs):
    program = str(programs / "plain.py")
    wrapped = [*OURS, "--", sys.executable, "-m", "debugpy.adapter"]

    async def main():
        async with editor(wrapped, initialize=VSCODE, lines={program: [6]}) as client:
            await client.start("launch", {"program": program, "console": "internalConsole"})
            await client.to_end()
        assert client.process.returncode == 0

    run(main)


def test_a_module_of_the_working_folder_does_not_get_into_the_adapter(tmp_path):
    """An editor starts us in the project's folder, which may have a module called like one of the library's."""
    for name in ("queue", "socket", "json", "argparse"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('not yours')\n")
    program = tmp_path / "sub" / "plain.py"
    program.parent.mkdir()
    program.write_text("print('here')\n")

    async def main():
        command = [sys.executable, "-I", "-m", "dap_agent", "adapter"]
        async with editor(command, cwd=tmp_path, initialize=VSCODE) as client:
            await client.start("launch", {"program": str(program), "console": "internalConsole"})
            await client.to_end()
            assert any(m.get("event") == "output" and "here" in m["body"]["output"] for m in client.log)

    run(main)


def test_an_adapter_that_cannot_be_started_is_told_to_the_editor():
    async def main():
        process = await asyncio.create_subprocess_exec(
            *OURS,
            *("--", "/no/such/adapter"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment(),
        )
        client = EditorDouble(process.stdout, process.stdin, initialize=VSCODE)
        answer = await client.ask("initialize", VSCODE)
        assert not answer["success"] and "'/no/such/adapter' cannot be started" in answer["message"]
        await client.close()
        assert b"'/no/such/adapter' cannot be started" in await process.stderr.read()
        assert await process.wait() == 70
        process._transport.close()

    run(main)


def test_a_server_that_ends_when_the_last_client_has_left(programs):
    program = str(programs / "plain.py")
    mark = "dap-agent-listen-test"

    async def main():
        process = await asyncio.create_subprocess_exec(
            *OURS, "--listen", "127.0.0.1:0", stdout=asyncio.subprocess.PIPE, env=environment(DAP_TEST_MARK=mark)
        )
        port = int((await process.stdout.readline()).decode().rpartition(":")[2])
        clients = [
            EditorDouble(*await asyncio.open_connection("127.0.0.1", port), initialize=VSCODE, lines={program: [6]})
            for _ in range(2)
        ]
        for client in clients:
            await client.start("launch", {"program": program, "console": "internalConsole"})
        await clients[0].to_end()
        await clients[1].event("stopped")
        await clients[1].close()  # without a word, as an editor does that is killed
        await clients[0].close()
        assert await asyncio.wait_for(process.wait(), 10) == 0
        process._transport.close()
        assert await gone_within(mark, 3) == {}

    run(main)
