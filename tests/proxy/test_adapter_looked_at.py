"""An editor that dwells on its stops sees nothing of our looking at them: compared with debugpy's own, by messages."""

import asyncio

import pytest

from dap_agent.wire.messages import is_event

from .editor_double import BOTH, NVIM, OURS, VSCODE, editor
from .fakes import run
from .test_adapter_transparent import family, same

PROGRAM = """\
import threading
import warnings


class Order:
    def __init__(self, lines):
        self.lines = lines

    @property
    def total(self):
        print("a property ran")
        return sum(self.lines)

    def __repr__(self):
        return "Order(%r)" % self.lines


def fails(order):
    missing = {"a": 1}
    return missing["b"]


for name in ("first", "second"):
    thread = threading.Thread(target=fails, args=(Order([1, 2]),), name=name)
    thread.start()
    thread.join()
warnings.warn("once")
fails(Order([3]))
"""


async def dwell(client, ours):
    """Look at each stop as a user does, with time for us to look, too; in between and after that."""
    looked = 0
    while (found := await client.event("stopped", "terminated"))["event"] == "stopped":
        thread = found["body"]["threadId"]
        await client.ask("threads")
        frames = (await client.ask("stackTrace", {"threadId": thread}))["body"]["stackFrames"]
        if ours:
            looked += 1
            await client.first(
                lambda _, wanted=looked: sum(is_event(m, "dapAgentSnapshot") for m in client.log) == wanted
            )
        again = (await client.ask("stackTrace", {"threadId": thread}))["body"]["stackFrames"]
        assert [frame["id"] for frame in again] == [frame["id"] for frame in frames]
        await client.ask("exceptionInfo", {"threadId": thread})
        scopes = (await client.ask("scopes", {"frameId": frames[0]["id"]}))["body"]["scopes"]
        found = await client.ask("variables", {"variablesReference": scopes[0]["variablesReference"]})
        await client.ask("variables", {"variablesReference": found["body"]["variables"][-1]["variablesReference"]})
        for context, expression in (("repl", "extra = 5"), ("watch", "missing"), ("hover", "order"), ("repl", "1 / 0")):
            await client.ask("evaluate", {"expression": expression, "frameId": frames[0]["id"], "context": context})
        await client.ask("modules", {})
        await client.ask("continue", {"threadId": thread})
    await client.leave()
    return looked


@pytest.mark.parametrize(("initialize", "just_my_code"), [(VSCODE, True), (NVIM, False)])
def test_an_editor_that_takes_its_time_sees_the_same(tmp_path, python, initialize, just_my_code):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)

    async def one(command):
        async with editor(command, initialize=initialize, filters=["uncaught"]) as client:
            configuration = {"program": str(program), "console": "internalConsole", "justMyCode": just_my_code}
            await client.start("launch", {**configuration, "python": [str(python)]})
            looked = await dwell(client, command == OURS)
        return looked, family(client, ours=command == OURS)

    async def main():
        (_, direct), (looked, ours) = await asyncio.gather(*(one(command) for command in BOTH.values()))
        assert looked == 3
        same(ours, direct)

    run(main)
