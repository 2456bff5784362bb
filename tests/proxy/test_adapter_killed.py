"""Whoever of a session is killed (-9), at whatever point: everyone else is told and nothing is left within 3 s.

By default each point meets one victim in turn; DAP_TEST_ALL_KILLS=1 runs every point with every victim.
"""

import contextlib
import os
import signal
import uuid

import pytest

from .editor_double import OURS, VSCODE, editor, environment
from .fakes import gone_within, processes_with, run

PROGRAM = """\
import subprocess
import sys
import time


def look(number):
    return number + 1


# with pipes of its own, as debugpy's launcher waits for whoever holds the program's
CHILD = "import time\\nwhile True:\\n    time.sleep(0.05)"
subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
for number in range(1_000_000):
    look(number)
    time.sleep(0.01)
"""
VICTIMS = ["dap-agent", "debugpy.adapter", "launcher", "program", "child", "editor"]
LIMIT = 3.0


async def points(client, program):
    """A session with a restart; yields the name of each point that it has reached."""
    yield "started"
    await client.ask("initialize", VSCODE)
    yield "initialize answered"
    launched = client.post("launch", {"program": program, "console": "internalConsole"})
    yield "launch sent"
    await client.event("initialized")
    yield "initialized"
    breakpoints = {"source": {"path": program}, "breakpoints": [{"line": 7}]}
    client.post("setBreakpoints", breakpoints)
    yield "setBreakpoints sent"
    await client.ask("setExceptionBreakpoints", {"filters": ["uncaught"]})
    yield "filters set"
    client.post("configurationDone")
    yield "configurationDone sent"
    await client.answer(launched)
    yield "launched"
    thread = (await client.event("stopped"))["body"]["threadId"]
    yield "stopped"
    client.post("stackTrace", {"threadId": thread})
    yield "stackTrace sent"
    frame = (await client.ask("stackTrace", {"threadId": thread}))["body"]["stackFrames"][0]["id"]
    await client.ask("scopes", {"frameId": frame})
    yield "scopes seen"
    client.post("evaluate", {"expression": "__import__('time').sleep(0.3)", "frameId": frame, "context": "repl"})
    yield "evaluating"
    await client.ask("next", {"threadId": thread})
    yield "stepping"
    await client.event("stopped")
    yield "stepped"
    client.post("setBreakpoints", {**breakpoints, "breakpoints": []})
    await client.ask("continue", {"threadId": thread})
    yield "running"
    client.post("pause", {"threadId": thread})
    yield "pause sent"
    await client.event("stopped")
    yield "paused"
    restart = client.post("restart", {})
    yield "restart sent"
    await client.answer(restart)
    yield "restarted"
    client.post("terminate")
    yield "terminate sent"


POINTS = [
    *("started", "initialize answered", "launch sent", "initialized", "setBreakpoints sent", "filters set"),
    *("configurationDone sent", "launched", "stopped", "stackTrace sent", "scopes seen", "evaluating", "stepping"),
    *("stepped", "running", "pause sent", "paused", "restart sent", "restarted", "terminate sent"),
]
ALL = os.environ.get("DAP_TEST_ALL_KILLS") == "1"
CASES = [(p, v) for n, p in enumerate(POINTS) for m, v in enumerate(VICTIMS) if ALL or n % len(VICTIMS) == m]


def find(victim, mark, program):
    """The process id of *victim*, None if it is not there yet."""
    for pid, line in processes_with(mark).items():
        kinds = {
            "dap-agent": "dap_agent adapter" in line,
            "debugpy.adapter": "adapter_start.py" in line,
            "launcher": "debugpy/launcher " in line and " -- " in line,
            "program": program in line and " --connect " in line,
            "child": "time.sleep(0.05)" in line and "-c" in line,
        }
        if kinds.get(victim):
            return pid
    return None


@pytest.mark.parametrize(("point", "victim"), CASES)
def test_a_death(tmp_path, point, victim):
    program = tmp_path / "looping.py"
    program.write_text(PROGRAM)
    mark = f"dap-kill-{uuid.uuid4().hex}"

    async def main():
        async with editor(OURS, env=environment(DAP_TEST_MARK=mark), initialize=VSCODE) as client:
            async for reached in points(client, str(program)):
                if reached == point:
                    break
            await death(client, point, victim, mark, str(program))
        assert await gone_within(mark, LIMIT) == {}

    run(main)


async def death(client, point, victim, mark, program):
    posted = list(client.posted)
    if victim == "editor":
        client._writer.transport.abort()
        client._task.cancel()
        client.process._transport.get_pipe_transport(1).close()
        for child in client.children:
            child._writer.transport.abort()
        assert await gone_within(mark, LIMIT) == {}
        return
    pid = find(victim, mark, program)
    if pid is None:
        pid = find("debugpy.adapter", mark, program)  # the victim does not live at this point
        victim = "debugpy.adapter"
    if pid is None:
        return  # nobody lives but us
    with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
        os.kill(pid, signal.SIGKILL)
    if victim == "child":
        return  # its parent may live on; the editor just leaves
    if victim == "dap-agent":
        await client.end(timeout=LIMIT)
        return
    # an adapter that was being replaced anyway is no loss
    restarted = client.posted[-1] if point == "restart sent" else 0
    end = await client.first(
        lambda m: m.get("event") == "terminated" or m.get("request_seq") == restarted, timeout=LIMIT
    )
    assert end.get("success", True), end
    for seq in posted:
        await client.answer(seq, timeout=LIMIT)
    client.post("disconnect")
