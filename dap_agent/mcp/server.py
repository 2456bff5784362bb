"""The protocol's side: the official SDK on standard input and output."""

import asyncio
import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dap_agent import __version__
from dap_agent.mcp.face import Face

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

NAME = "dap-agent"
INSTRUCTIONS = """\
The Python program that the user debugs, paused at its exception. Look at the real values (exception, frame, variable,
history) before you guess; test ideas with evaluate, trace and try_fix, which run in throw-away copies of the paused
program; then propose the fix with a regression test: it is proved, and apply_fix writes it. After you have edited files
yourself, restart_frame goes on from the failing call with the new code."""


def build(face: Face) -> "Server[Any]":
    """The server of one host.

    Args:
        face: what it offers.
    """
    import mcp_types as types
    from mcp.server.lowlevel import Server

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=tool.name,
                    title=tool.title,
                    description=tool.description,
                    input_schema=tool.schema,
                    output_schema=tool.output,
                    annotations=types.ToolAnnotations(
                        read_only_hint=tool.read_only,
                        destructive_hint=tool.destructive,
                        open_world_hint=tool.name == "autodebug",
                    ),
                )
                for tool in face.tools.values()
            ]
        )

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        told = 0

        async def tell(step: str) -> None:
            nonlocal told
            told += 1
            await context.session.report_progress(told, None, step)

        info = getattr(getattr(context.session, "client_params", None), "client_info", None)
        if info is not None:
            face.host = str(info.name)[:60]
        result = await face.call(params.name, params.arguments or {}, tell)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=result.text)],
            # an error need not have the shape of a result
            structured_content=result.data,
            is_error=result.error,
        )

    return Server(
        NAME,
        version=__version__,
        title="dap-agent: debug Python",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def serve(folders: Sequence[Path]) -> None:
    """Serve a host until it leaves.

    Args:
        folders: of the workspace, absolute, links resolved.
    """
    from mcp.server.stdio import stdio_server

    face = Face(folders)
    server = build(face)
    try:
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
    finally:
        await face.close()


def print_config(host: str, workspace: Sequence[str] = ()) -> str:
    """What a host's configuration has to say, as JSON.

    Args:
        host: one of `HOSTS`.
        workspace: folders for `--workspace`.
    """
    args = ["mcp", *(word for folder in workspace for word in ("--workspace", folder))]
    server: dict[str, Any] = {"type": "stdio", "command": NAME, "args": args}
    if host == "opencode":
        local = {"type": "local", "command": [NAME, *args], "enabled": True}
        return json.dumps({"mcp": {NAME: local}}, indent=2)
    return json.dumps({"servers" if host == "vscode" else "mcpServers": {NAME: server}}, indent=2)


HOSTS = ("claude", "opencode", "cursor", "vscode")


def run(folders: Sequence[Path]) -> None:
    """`serve`, in an event loop of its own; Ctrl-C ends it."""
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(folders))
