"""An agent host as an MCP server meets it: the official SDK's client, and the server as its child."""

import contextlib
import os
import sys
from pathlib import Path
from typing import Any

import jsonschema
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from ..endtoend.conftest import ROOT

# what the SDK's own client gives to a server, and no more
GIVEN = ("HOME", "PATH", "USER", "SHELL", "TERM", "LOGNAME")


def server(root: Path | None, **environment: str) -> dict[str, Any]:
    """How the server is started for a workspace."""
    here = {name: os.environ[name] for name in (*GIVEN, "DAP_AGENT_STATE_DIR") if name in os.environ}
    return {
        "command": sys.executable,
        "args": ["-m", "dap_agent", "mcp", *(["--workspace", str(root)] if root else [])],
        "env": {**here, "PYTHONPATH": str(ROOT), **environment},
    }


class Host:
    """One host with one server."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.tools: dict[str, Any] = {}
        self.steps: list[str] = []

    async def ask(self, tool: str, **arguments: Any) -> Any:
        """The result of a call that has to succeed."""
        result = await self.call(tool, **arguments)
        assert not result.is_error, result.content[0].text
        return result

    async def text(self, tool: str, **arguments: Any) -> str:
        return str((await self.ask(tool, **arguments)).content[0].text)

    async def refused(self, tool: str, **arguments: Any) -> str:
        """The sentence of a call that cannot be done."""
        result = await self.call(tool, **arguments)
        assert result.is_error, result.content[0].text
        return str(result.content[0].text)

    async def call(self, tool: str, **arguments: Any) -> Any:
        result = await self.client.call_tool(tool, arguments, progress_callback=self._progress)
        assert [block.type for block in result.content] == ["text"]
        assert 0 < len(result.content[0].text) < 22_000
        output = self.tools[tool].output_schema
        if output is not None and not result.is_error:
            jsonschema.validate(result.structured_content, output)
        return result

    async def _progress(self, progress: float, total: float | None, message: str | None) -> None:
        assert message
        self.steps.append(message)


@contextlib.asynccontextmanager
async def host(root: Path | None, mode: str = "auto", **environment: str) -> Any:
    """A host that works in *root*."""
    parameters = StdioServerParameters(**server(root, **environment))
    async with Client(parameters, mode=mode) as client:
        found = Host(client)
        found.tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        yield found
