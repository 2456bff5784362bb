"""`dap-agent mcp` beside real debug sessions: the SDK's client, debugpy, a DAP client, a scripted model."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dap_agent.control import kept, registry
from dap_agent.testing import ModelServer, Stall

from ..control.test_console_debugpy import LOOK, PROPOSE, TITLE
from ..proxy.fakes import run
from .mcp_host import host, server

FIX = PROPOSE["calls"][0]["arguments"]
GREEN = {**FIX["test"], "source": "def test_nothing():\n    assert True\n"}
READ_ONLY = {"debug_sessions", "exception", "stack", "frame", "variable", "members", "history", "proposal"}
DESTRUCTIVE = {"apply_fix", "undo_fix", "restart_frame"}


def orders(session: Any) -> Path:
    return Path(session.root / "shop/orders.py")


def test_a_hosts_own_model_from_the_values_to_a_program_that_goes_on(session: Any) -> None:
    """Two hosts, one started before the session, of the newest and of an older protocol; then the session is over."""

    async def main() -> None:
        old = orders(session).read_text()
        async with host(session.root) as one, host(session.root / "shop", mode="legacy") as two:
            for tool in one.tools.values():
                for schema in filter(None, (tool.input_schema, tool.output_schema)):
                    jsonschema.Draft202012Validator.check_schema(schema)
            hints = {name: tool.annotations for name, tool in one.tools.items()}
            assert {name for name, hint in hints.items() if hint.read_only_hint} == READ_ONLY
            assert {name for name, hint in hints.items() if hint.destructive_hint} == DESTRUCTIVE
            assert "No Python program is being debugged" in await one.text("debug_sessions")
            assert "dap-agent run PROGRAM" in await two.refused("exception")
            async with session.begun(filters=["willBeUnhandled"]) as client:
                await session.crashed()
                (found,) = (await one.ask("debug_sessions")).structured_content["sessions"]
                assert (found["kind"], found["program"], found["fix"]) == ("adapter", "stopped", None)
                assert found["place"] == f"{orders(session)}:13"
                seen = await one.text("exception")
                for words in ("TypeError: float() argument", "->    13", "shop/orders.py", "'gift ='", "main"):
                    assert words in seen
                # the powers of an investigation, in copies of the program
                assert "'gift ='" in await two.text("variable", frame=0, path="line", session=found["session"])
                said = await two.text("evaluate", frame=0, code=f"open({str(session.root / 'x')!r}, 'w'); 6 * 7")
                assert "42" in said
                assert not (session.root / "x").exists()
                assert "main" in await one.text("stack", count=5)
                tried = await one.text("try_fix", candidates=[FIX["edits"]])
                assert "3.5" in tried
                assert "result" in await two.text("trace", first_change="result")
                assert "Wrong arguments for frame: missing 'number'" in await one.refused("frame")
                assert "There is no frame 99" in await one.refused("frame", number=99)
                assert "no session 'ffff'" in await one.refused("stack", session="ffff")
                assert "There is no tool" in str((await one.client.call_tool("nothing", {})).content[0].text)
                # a fix of the host's own model
                assert "There is no fix yet" in await two.refused("apply_fix")
                refused = await one.refused("propose", **{**FIX, "test": GREEN})
                assert "passes on the old code" in refused or "red" in refused
                assert "not proved" in await one.refused("apply_fix")
                proved = await one.ask("propose", **FIX)
                assert (proved.structured_content["status"], proved.structured_content["proved"]) == ("proposed", True)
                assert "**proved**" in proved.content[0].text
                assert any("trial" in step or "red" in step or "proved" in step for step in one.steps), one.steps
                shown = (await two.ask("proposal")).structured_content
                assert (shown["title"], shown["applied"]) == (TITLE, False)
                assert "not the newest one" in await two.refused("apply_fix", proposal="ffff")
                applied = await two.ask("apply_fix", proposal=shown["id"])
                assert "The running program has the new code" in applied.content[0].text
                assert "or 0" in orders(session).read_text()
                went = await one.text("restart_frame", wait=30)
                assert went.endswith("It has ended."), went
                assert session.console("stdout").strip() == "sum 3.5"
                assert "does not stand (ended)" in await one.refused("restart_frame")
                await client.leave()
            while registry.entries():
                await asyncio.sleep(0.01)  # a file has to go
            # what is kept of it
            (over,) = (await two.ask("debug_sessions")).structured_content["sessions"]
            assert (over["kind"], over["fix"]["applied"]) == ("over", True)
            seen = await one.text("exception")
            assert seen.startswith("[The session is over") and "'gift ='" in seen
            assert "nothing can be evaluated" in await one.refused("evaluate", frame=0, code="1")
            assert "session is over" in await one.refused("autodebug")
            assert "Taken back" in await one.text("undo_fix")
            assert orders(session).read_text() == old
            assert TITLE in await two.text("apply_fix")
            assert "or 0" in orders(session).read_text()
            assert "already" in await one.refused("apply_fix")

    run(main, timeout=110)


def test_dap_agents_own_model_with_progress_and_waiting(session: Any) -> None:
    async def main() -> None:
        async with host(session.root) as one, session.begun(session.script(LOOK, PROPOSE)) as client:
            await session.crashed()
            begun = (await one.ask("autodebug", wait=0, instructions="keep the name")).structured_content
            assert begun["status"] in ("running", "proposed")
            found = (await one.ask("proposal")).structured_content
            assert (found["status"], found["title"], found["proved"]) == ("proposed", TITLE, True)
            assert "```diff" in found["report"]
            assert one.steps
            # the program goes on: nothing can be looked at
            await client.ask("continue", {"threadId": 1})
            await client.event("terminated")
            assert "TypeError" in await one.text("exception")
            assert "has ended" in await one.refused("evaluate", frame=0, code="1")
            await client.leave()

    run(main, timeout=60)


@pytest.mark.parametrize("who", ["session", "host", "call"])
def test_one_goes_in_the_middle_of_an_investigation(session: Any, trace: Any, who: str) -> None:
    async def main(model: ModelServer) -> None:
        mark = {"TEST_MARK": trace.mark}
        async with session.begun("anthropic:test-model", env=model.environment()) as client:
            await session.crashed()
            if who == "host":
                parameters = server(session.root, **mark)
                process = await asyncio.create_subprocess_exec(
                    parameters["command"],
                    *parameters["args"],
                    env=parameters["env"],
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                )
                assert process.stdin is not None
                about = {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {},
                    "clientInfo": {"name": "t", "version": "1"},
                }
                for message in (
                    {"id": 1, "method": "initialize", "params": about},
                    {"method": "notifications/initialized"},
                    {"id": 2, "method": "tools/call", "params": {"name": "autodebug", "arguments": {}}},
                ):
                    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
                while (await client.event("dapAgentProgress", timeout=30))["body"]["kind"] != "turn":
                    pass
                process.stdin.close()
                assert await asyncio.wait_for(process.wait(), 10) == 0
                end = await session.end_of_work()
                assert "cancelled" in end["text"]
                await client.leave()
            elif who == "call":
                async with host(session.root, **mark) as one:
                    asked = asyncio.ensure_future(one.ask("autodebug"))
                    while (await client.event("dapAgentProgress", timeout=30))["body"]["kind"] != "turn":
                        pass
                    assert "still investigates" in await one.text("proposal", wait=0.1)
                    asked.cancel()
                    assert "cancelled" in (await session.end_of_work())["text"]
                    assert "There is no fix yet" in await one.text("proposal")
                    await client.leave()
            else:
                async with host(session.root, **mark) as one:
                    asked = asyncio.ensure_future(one.refused("autodebug"))
                    while (await client.event("dapAgentProgress", timeout=30))["body"]["kind"] != "turn":
                        pass
                    client.process.kill()
                    assert "The debug session has ended" in await asked
                    await client.end()
                    assert "[The session is over" in await one.text("exception")
            trace.assert_nothing_is_left()

    with ModelServer([Stall(40)]) as model:
        run(lambda: main(model), timeout=60)
    assert kept.all_kept()


def test_a_program_in_a_terminal_is_looked_at_while_a_model_investigates(session: Any, trace: Any) -> None:
    async def main(started: Any) -> None:
        async with host(session.root) as one:
            while "investigating" not in await one.text("debug_sessions"):
                await asyncio.sleep(0.05)  # it has to begin
            assert "'gift ='" in await one.text("exception")
            assert "42" in await one.text("evaluate", frame=0, code="6 * 7")
            assert "runs already" in await one.refused("propose", **FIX)
            assert "only be looked at" in await one.refused("undo_fix")
            started.send_signal(signal.SIGINT)  # ends the investigation, and with it the run
            assert await asyncio.to_thread(started.wait, 20)
        trace.assert_nothing_is_left()

    with ModelServer([Stall(40)]) as model:
        words = ("run", "--model", "anthropic:test-model", "-m", "shop.main")
        started = trace.start(*words, cwd=session.root, environment=model.environment())
        run(lambda: main(started), timeout=60)
