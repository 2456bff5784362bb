"""Waits for an investigation of a session, and tells how it goes on."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from dap_agent.control import registry
from dap_agent.control.client import ControlClient, SessionGone
from dap_agent.mcp.sessions import connected
from dap_agent.proxy.patience import within
from dap_agent.session.rendering import clip, one_line

Tell = Callable[[str], Awaitable[None]]
"""Shows the user of a host one step, in a line."""

_STEPS = ("turn", "tool", "note", "verdict", "retry")


class Following:
    """One connection that hears what its session tells.

    Args:
        client: asks the session.
        status: of the session when the connection was made; nothing since is missed.
    """

    def __init__(self, client: ControlClient, status: dict[str, Any], told: "asyncio.Queue[Any]") -> None:
        self.client = client
        self.status = status
        self.step = ""
        self.text = ""  # the model's words
        self._told = told

    async def end_of(self, id: str, wait: float, tell: Tell) -> dict[str, Any] | None:
        """The notification `progress` that an investigation has ended; None after *wait* seconds without it.

        Raises:
            SessionGone: the session has ended before.
        """

        async def until() -> dict[str, Any]:
            async for method, params in self.heard():
                if method != "progress" or params["id"] != id:
                    continue
                if params["kind"] == "end":
                    return params
                if params["kind"] == "text":
                    self.text += params["text"]
                elif params["kind"] in _STEPS:
                    self.step = clip(one_line(params["text"]), 200)
                    await tell(self.step)
            raise SessionGone("The debug session has ended, and the investigation with it.")

        try:
            return await within(until(), wait)
        except asyncio.TimeoutError:
            return None

    async def heard(self) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """All notifications since the connection was made, in order, until the session ends."""
        while (message := await self._told.get()) is not None:
            yield message


@contextlib.asynccontextmanager
async def following(entry: registry.Entry) -> AsyncIterator[Following]:
    """Connect to a session, and hear what it tells.

    Raises:
        SessionGone: it is over.
    """
    told: asyncio.Queue[Any] = asyncio.Queue()

    def heard(method: str, params: dict[str, Any]) -> None:
        told.put_nowait((method, params))

    async with connected(entry, heard, lambda: told.put_nowait(None)) as (client, status):
        yield Following(client, status, told)
