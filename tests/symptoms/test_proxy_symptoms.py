"""What users of debugpy report and the adapter cures, each test named after the symptom's number and first issue."""

import asyncio
import socket
import statistics
import sys
import time
import uuid

import pytest

from dap_agent.proxy import hub as hub_module
from dap_agent.proxy.hub import Hub

from ..proxy.editor_double import BOTH, NVIM, OLD, OURS, VSCODE, EditorDouble, editor, environment
from ..proxy.fakes import DEBUGPY, RawClient, gone_within, run
from ..proxy.test_server_debugpy import WEDGING

PARENT = """\
import subprocess
import sys

code = "import sys; sys.stdout.write('the child ran')"
print(subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, timeout=60).stdout.decode(), flush=True)
"""
LOOP = "import time\n\n\ndef look(n):\n    return n\n\n\nfor number in range(3):\n    look(number)\n"
LAUNCH = {"console": "internalConsole", "subProcess": True}


@pytest.fixture
def loop(tmp_path):
    path = tmp_path / "loop.py"
    path.write_text(LOOP)
    return str(path)


@pytest.fixture
def parent(tmp_path):
    path = tmp_path / "parent.py"
    path.write_text(PARENT)
    return str(path)


@pytest.fixture
def mark():
    return f"dap-symptom-{uuid.uuid4().hex}"


def printed(client):
    outputs = [m["body"] for m in client.log if m.get("event") == "output"]
    return "".join(body["output"] for body in outputs if body["category"] == "stdout")


def test_20_debugpy_1729_a_runaway_evaluate_does_not_keep_disconnect(loop, mark):
    async def main():
        async with editor(OURS, env=environment(DAP_TEST_MARK=mark), initialize=VSCODE, lines={loop: [5]}) as client:
            await client.start("launch", {"program": loop, **LAUNCH})
            thread = (await client.event("stopped"))["body"]["threadId"]
            frames = (await client.ask("stackTrace", {"threadId": thread}))["body"]["stackFrames"]
            forever = {"expression": "exec('while True: pass')", "frameId": frames[0]["id"], "context": "repl"}
            client.post("evaluate", forever)
            assert (await client.ask("threads", timeout=10))["success"]
            assert (await client.ask("disconnect", {"terminateDebuggee": True}, timeout=5))["success"]
            assert await gone_within(mark, 3) == {}

    run(main)


def test_23_debugpy_81_a_child_whose_client_says_no_runs_on(parent):
    async def main():
        async with editor(OURS, initialize=NVIM, refuse=True) as client:
            await client.start("launch", {"program": parent, **LAUNCH})
            await client.to_end()
            assert "the child ran" in printed(client)

    run(main)


def test_23_debugpy_81_a_child_whose_client_never_comes_runs_on(parent, monkeypatch):
    monkeypatch.setattr(hub_module, "RELEASE_AFTER", 0.5)

    class Deaf(EditorDouble):
        async def _adopt(self, configuration):
            """As a client that does not know the event."""

    async def main():
        ours, theirs = socket.socketpair()
        serving = asyncio.ensure_future(Hub(command=DEBUGPY).serve_socket(theirs))
        client = Deaf(*await asyncio.open_connection(sock=ours), initialize=OLD)
        await client.start("launch", {"program": parent, **LAUNCH})
        await client.to_end()
        assert "the child ran" in printed(client)
        await client.close()
        await serving

    run(main)


def test_24_debugpy_1269_the_childs_address_is_ready_and_answers_as_an_adapter(parent):
    class Late(EditorDouble):
        async def _adopt(self, configuration):
            where = configuration["connect"]
            child = RawClient(*await asyncio.open_connection(where["host"], where["port"]))
            assert (await child.ask("initialize", VSCODE))["success"]
            child.post("attach", configuration)
            await child.event("initialized")
            await child.ask("configurationDone")
            await child.event("terminated")
            await child.close()
            self.adopted = True

    async def main():
        ours, theirs = socket.socketpair()
        serving = asyncio.ensure_future(Hub(command=DEBUGPY).serve_socket(theirs))
        client = Late(*await asyncio.open_connection(sock=ours), initialize=VSCODE)
        await client.start("launch", {"program": parent, **LAUNCH})
        await client.to_end()
        assert "the child ran" in printed(client) and client.adopted
        await client.close()
        await serving

    run(main)


def test_26_debugpy_1266_that_children_of_a_process_attached_by_id_are_not_reported_is_told():
    async def main():
        async with editor(OURS, initialize=VSCODE) as client:
            await client.ask("initialize", VSCODE)
            client.post("attach", {"processId": 2**22 + 1})  # no such process
            told = await client.first(lambda m: "attached to by its id" in (m.get("body") or {}).get("output", ""))
            assert told["body"]["category"] == "console"
            client.post("disconnect")

    run(main)


def test_30_debugpy_556_requests_that_are_not_supported_are_answered_and_the_session_goes_on(loop):
    async def main():
        async with editor(OURS, initialize=VSCODE, lines={loop: [5]}) as client:
            await client.start("launch", {"program": loop, **LAUNCH})
            await client.event("stopped")
            for command, arguments in WEDGING.items():
                if command not in ("restart", "restartFrame"):  # these work
                    answer = await client.ask(command, arguments, timeout=2)
                    assert not answer["success"] and command in answer["message"], answer
                    assert (await client.ask("threads", timeout=2))["success"]
            await client.ask("disconnect", {"terminateDebuggee": True})

    run(main)


def test_30_debugpy_556_restart_works_and_keeps_the_breakpoints(loop):
    async def main():
        async with editor(OURS, initialize=VSCODE, lines={loop: [5]}) as client:
            await client.start("launch", {"program": loop, **LAUNCH})
            for _ in range(2):
                hit = (await client.event("stopped"))["body"]["hitBreakpointIds"]
                process = [m["body"]["systemProcessId"] for m in client.log if m.get("event") == "process"]
                assert (await client.ask("restart", {}))["success"]
            stopped = (await client.event("stopped"))["body"]
            assert stopped["hitBreakpointIds"] == hit and stopped["reason"] == "breakpoint"
            assert (
                len({*process, *[m["body"]["systemProcessId"] for m in client.log if m.get("event") == "process"]}) == 3
            )
            assert not [m for m in client.log if m.get("event") in ("terminated", "exited")]
            assert len([m for m in client.log if m.get("event") == "initialized"]) == 1
            await client.ask("setBreakpoints", {"source": {"path": loop}, "breakpoints": []})
            await client.ask("continue", {"threadId": stopped["threadId"]})
            await client.to_end()

    run(main)


def test_31_debugpy_2054_requests_are_fast_after_the_first_stop(loop):
    async def milliseconds(command, **ours):
        async with editor(command, initialize=VSCODE, lines={loop: [5]}) as client:
            await client.start("launch", {"program": loop, **LAUNCH, **ours})
            await client.event("stopped")
            await client.ask("threads")  # the cure may be still on its way
            times = []
            for _ in range(9):
                began = time.perf_counter()
                await client.ask("threads")
                times.append((time.perf_counter() - began) * 1000)
            await client.ask("disconnect", {"terminateDebuggee": True})
        return statistics.median(times)

    async def main():
        direct = await milliseconds(BOTH["direct"])
        cured = await milliseconds(OURS)
        off = await milliseconds(OURS, dapAgent={"nodelay": False})
        assert cured < direct / 4, (cured, direct)
        assert off > direct / 2, "and the cure can be turned off"

    run(main)


def test_32_debugpy_83_a_flood_of_output_does_not_keep_the_answers(tmp_path):
    program = tmp_path / "flood.py"
    program.write_text("for number in range(50_000):\n    print('line', number)\nprint('the last')\n")

    async def main():
        async with editor(OURS, initialize=VSCODE) as client:
            await client.start("launch", {"program": str(program), **LAUNCH})
            assert (await client.ask("threads"))["success"]
            await client.event("terminated")
            lines = printed(client).split("\n")
            assert len(lines) == 50_002 and lines[-2] == "the last"
            await client.ask("disconnect")

    run(main)


def test_33_debugpy_672_nothing_lives_on_after_disconnect(loop, mark):
    async def main():
        async with editor(OURS, env=environment(DAP_TEST_MARK=mark), initialize=NVIM, lines={loop: [5]}) as client:
            await client.start("launch", {"program": loop, **LAUNCH})
            await client.event("stopped")
            await client.ask("disconnect", {"terminateDebuggee": True})
            assert await gone_within(mark, 3) == {}  # though the client has not hung up

    run(main)


def test_34_debugpy_1767_a_child_outlives_its_attached_parent(tmp_path):
    child = tmp_path / "child.py"
    child.write_text(
        "import time\n\n\ndef look(n):\n    return n\n\n\nfor n in range(40):\n    look(n)\n    time.sleep(0.05)\n"
    )
    done = tmp_path / "done"
    with child.open("a") as file:
        file.write(f"open({str(done)!r}, 'w').write('to the end')\n")
    program = tmp_path / "leaving.py"
    program.write_text(
        "import subprocess, sys\n"
        f"subprocess.Popen([sys.executable, {str(child)!r}], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
        "sys.stdin.readline()\n"
    )

    async def main():
        async with editor(OURS, initialize=VSCODE) as client:
            attaching = asyncio.ensure_future(client.start("attach", {"listen": {"host": "127.0.0.1", "port": 0}}))
            where = (await client.event("debugpyWaitingForServer"))["body"]
            process = await asyncio.create_subprocess_exec(
                *(
                    sys.executable,
                    "-m",
                    "debugpy",
                    "--connect",
                    f"{where['host']}:{where['port']}",
                    "--wait-for-client",
                ),
                str(program),
                env=environment(),
                stdin=asyncio.subprocess.PIPE,
            )
            await attaching
            await client.first(lambda m: m.get("command") == "startDebugging")
            while not (client.children and client.children[0].posted[3:]):  # attached, configuring
                await asyncio.sleep(0.05)
            process.stdin.close()  # the parent ends
            await client.event("terminated")
            assert await process.wait() == 0
            process._transport.close()
            await client.leave()
            (one,) = client.children
            breakpoints = {"source": {"path": str(child)}, "breakpoints": [{"line": 5}]}
            assert (await one.ask("setBreakpoints", breakpoints))["success"]
            await one.first(lambda m: m.get("event") == "stopped")
            await one.ask("setBreakpoints", {**breakpoints, "breakpoints": []})
            await client.all_children_over(1)
            assert done.read_text() == "to the end"

    run(main)
