"""One host's view of the sessions, without the protocol: what its tools work with."""

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dap_agent.control import failure
from dap_agent.control.client import Refused, SessionGone
from dap_agent.errors import DapAgentError
from dap_agent.mcp.following import Tell
from dap_agent.mcp.sessions import Sessions, connected
from dap_agent.mcp.tools import HostTool, Result, host_tools

if TYPE_CHECKING:
    from dap_agent.control.registry import Entry

_PARTING = 2.0  # seconds


class Face:
    """See the module.

    Args:
        folders: of the workspace, absolute, links resolved.

    Attributes:
        host: who is served, for records.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self.sessions = Sessions(folders)
        self.host = "an MCP host"
        self.tools: dict[str, HostTool] = {tool.name: tool for tool in host_tools()}
        self._tasks: set[asyncio.Task[None]] = set()

    async def call(self, name: str, arguments: dict[str, Any], tell: Tell) -> Result:
        """Answer a call; whatever is wrong is told in the result."""
        from dap_agent.agent.tools import problems_of

        tool = self.tools.get(name)
        if tool is None:
            return Result(f"There is no tool {name!r:.60}. The tools are: {', '.join(self.tools)}.", error=True)
        problems = await asyncio.to_thread(problems_of, tool.schema, arguments)
        if problems:
            return Result(f"Wrong arguments for {name}: {'; '.join(problems[:5])}.", error=True)
        try:
            return await tool.handler(self, arguments, tell)
        except SessionGone as error:
            return Result(f"{error.message} debug_sessions says what there is now.", error=True)
        except DapAgentError as error:
            return Result(error.message, error=True)
        except Exception as error:  # noqa: BLE001 - whatever goes wrong in here, the host waits for an answer
            return Result(failure.describe(error), error=True)

    @contextlib.contextmanager
    def cancelling(self, entry: "Entry") -> Iterator[None]:
        """An investigation that was begun for a call ends with the call, if that is given up."""
        try:
            yield
        except asyncio.CancelledError:
            task = asyncio.get_running_loop().create_task(_cancel(entry))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            raise

    async def close(self) -> None:
        """Finish what has to be told."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_PARTING)


async def _cancel(entry: "Entry") -> None:
    with contextlib.suppress(SessionGone, Refused):
        async with connected(entry) as (client, _):
            await client.request("cancel")
