"""The socket's `tools`, `callTool` and `propose`: an investigation's tools and proof for a client's own model."""

from typing import Any

import pytest

from dap_agent.agent.toolset import tools
from dap_agent.control.client import Refused
from dap_agent.control.watched import Watched
from dap_agent.control.work import Configuration
from dap_agent.errors import DapAgentError

from .test_control_socket import TITLE, connected, shared


async def test_the_tools_of_an_investigation(world: Any, data: Any) -> None:
    import asyncio

    w = world()
    w.configuration = Configuration(workspace=(w.root,), allow_evaluate=True)
    async with shared(w):
        one = await connected(w)
        listed = (await one.ask("tools"))["tools"]
        assert [tool["name"] for tool in listed] == [tool.name for tool in tools(propose=False)]
        assert "throw-away copy" in next(tool["description"] for tool in listed if tool["name"] == "evaluate")
        with pytest.raises(Refused, match="running"):
            await one.ask("callTool", name="stack")
        stop = w.guest.stops(data)
        answer = await one.ask("callTool", name="frame", arguments={"number": 0})
        assert "def total" in answer["content"] and not answer["error"]
        again = await one.ask("callTool", name="frame", arguments={"number": 0})
        assert again == answer
        for name, arguments, words in (
            ("frame", {"number": "0"}, "A right call: frame"),
            ("nothing", {}, "There is no tool 'nothing'"),
            ("propose", {}, "There is no tool 'propose'"),
        ):
            answer = await one.ask("callTool", name=name, arguments=arguments)
            assert words in answer["content"] and answer["error"]
        # a fault of ours is the client's answer, and the user is told
        stop.fail = RuntimeError("broken")
        said: list[str] = []
        w.sharing.complain = said.append
        answer = await one.ask("callTool", name="frame", arguments={"number": 0})
        assert "failed inside dap-agent" in answer["content"] and answer["error"]
        assert "RuntimeError: broken" in said[0]
        stop.fail = None
        # the user goes on
        stop.hold = True
        asked = asyncio.ensure_future(one.ask("callTool", name="frame", arguments={"number": 0}))
        await stop.held.wait()
        w.guest.goes_on()
        with pytest.raises(Refused, match="resumed"):
            await asked
        await one.client.close()


async def test_a_clients_proposal_is_proved_without_a_model(world: Any, data: Any, model: Any) -> None:
    w = world()
    w.configuration = Configuration(workspace=(w.root,))
    async with shared(w):
        one = await connected(w)
        w.guest.stops(data)
        wrong = await one.ask("propose", arguments={"title": "x"}, client="my-agent")
        end = await one.until("progress", id=wrong["id"], kind="end")
        assert (end["status"], wrong["model"]) == ("gave-up", "my-agent")
        assert "Wrong arguments for propose" in (await one.until("progress", id=wrong["id"], kind="text"))["text"]
        right = await one.ask("propose", arguments=model.fix()[1])
        proposal = await one.until("proposal", id=right["id"])
        assert (proposal["title"], proposal["proved"], proposal["cost"]) == (TITLE, True, 0.0)
        await one.until("progress", id=right["id"], kind="end", status="proposed")
        assert (await one.ask("apply", proposal=right["id"]))["title"] == TITLE
        assert w.made == []
        await one.client.close()


async def test_a_program_in_a_terminal_can_be_looked_at(world: Any, data: Any) -> None:
    w = world()
    w.assistant = Watched(Configuration(workspace=(w.root,)))
    async with shared(w):
        one = await connected(w)
        with pytest.raises(Refused, match="nothing to look at"):
            await one.ask("callTool", name="exception")
        w.assistant.met(w.guest.stops(data), ended=False)
        assert "TypeError" in (await one.ask("callTool", name="exception"))["content"]
        with pytest.raises(Refused, match="only be looked at"):
            await one.ask("propose", arguments={})
        w.assistant.resumed_after()
        with pytest.raises(Refused, match="nothing to look at"):
            await one.ask("callTool", name="exception")
        w.assistant.over()
        assert "TypeError" in (await one.ask("callTool", name="exception"))["content"]
        with pytest.raises(DapAgentError):
            await w.assistant.restart()
        await one.client.close()
