"""Which session is meant, what a host's configuration says, and a host whose program runs elsewhere."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from dap_agent.control import registry
from dap_agent.control.toolcalls import offered
from dap_agent.errors import DapAgentError
from dap_agent.mcp import server, sessions
from dap_agent.mcp.doing import _become
from dap_agent.mcp.sessions import Found, Sessions
from dap_agent.mcp.tools import host_tools

STOP = {"headline": "ValueError: x", "path": "/w/a.py", "line": 3, "frames": [], "current": True}


def found(id: str, program: str, stop: dict[str, Any] | None = None, fix: Any = None) -> Found:
    entry = registry.Entry(id, "adapter", 1, ("/w",), "a.py", "/s", None, "0", "m")
    return Found(id, entry, {"program": program, "stop": stop, "proposal": fix, "working": None})


@pytest.mark.parametrize(
    ("there", "chosen"),
    [
        ([found("a", "running"), found("b", "stopped", STOP)], "b"),
        ([found("a", "stopped"), found("b", "ended", STOP)], "a"),
        ([found("a", "ended", STOP), found("b", "running")], "a"),
        ([found("a", "running")], "a"),
        ([found("a", "stopped", STOP), found("b", "stopped", STOP)], "Several debug sessions can be meant"),
        ([], "No Python program is being debugged through dap-agent in /w"),
    ],
)
async def test_the_session_that_is_meant(there: Any, chosen: str, monkeypatch: pytest.MonkeyPatch, state: Path) -> None:
    by_id = {one.id: one for one in there}

    async def look(entry: registry.Entry) -> Found:
        return by_id[entry.id]

    monkeypatch.setattr(registry, "find", lambda folders: [one.entry for one in there])
    monkeypatch.setattr(sessions, "_look", look)
    wanted = Sessions([Path("/w")])
    if len(chosen) == 1:
        assert (await wanted.choose(None)).id == chosen
        with pytest.raises(DapAgentError, match="There is no session 'z'"):
            await wanted.choose("z")
    else:
        with pytest.raises(DapAgentError, match=chosen):
            await wanted.choose(None)
        for one in there:
            assert (await wanted.choose(one.id)).id == one.id


async def test_what_a_program_says_is_masked_on_the_way_to_a_model() -> None:
    said = {**STOP, "headline": "LoginError: password=hunter2-secret refused"}
    one = found("a", "stopped", said)
    assert "hunter2" not in json.dumps(one.to_json()) + one.line
    assert "LoginError" in one.line

    class Told:
        def __init__(self, method: str, params: dict[str, Any]) -> None:
            self._told = method, params

        async def heard(self) -> AsyncIterator[tuple[str, dict[str, Any]]]:
            yield self._told

    over = {"program": "ended", "exception": said["headline"], "stop": {**said, "threadId": None}}
    for told in (Told("snapshot", said), Told("state", over)):
        become = await _become(told, 5)  # type: ignore[arg-type]
        assert "LoginError" in become
        assert "hunter2" not in become


def test_the_tools_are_those_of_an_investigation_and_small() -> None:
    tools = {tool.name: tool for tool in host_tools()}
    for own in offered():
        if own.name in ("search", "read_file", "exception"):  # a host has the first two; the third is richer here
            continue
        schema = dict(tools[own.name].schema)
        schema["properties"] = {key: one for key, one in schema["properties"].items() if key != "session"}
        assert schema == own.parameters
        assert tools[own.name].description == own.description
    sent = [{"name": one.name, "description": one.description, "inputSchema": one.schema} for one in tools.values()]
    assert len(json.dumps(sent)) < 12_500


@pytest.mark.parametrize("host", server.HOSTS)
def test_configurations(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    from dap_agent.cli.main import main

    assert main(["mcp", "--print-config", host, "--workspace", "/w"]) == 0
    config = json.loads(capsys.readouterr().out)
    words = ["mcp", "--workspace", "/w"]
    if host == "opencode":
        assert config["mcp"]["dap-agent"] == {"type": "local", "command": ["dap-agent", *words], "enabled": True}
    else:
        entry = config["servers" if host == "vscode" else "mcpServers"]["dap-agent"]
        assert entry == {"type": "stdio", "command": "dap-agent", "args": words}
