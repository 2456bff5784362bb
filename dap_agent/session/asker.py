"""Questions to the debuggee side of one process, each by one evaluate."""

import asyncio
from collections.abc import Mapping
from typing import Any

from dap_agent.proxy.patience import within
from dap_agent.proxy.server import ProxyServer, RequestFailed
from dap_agent.session import payload
from dap_agent.session.api import ProgramResumed

ANSWER_TIMEOUT = 20.0
"""Seconds to wait for the debuggee side; its own limits (1 s for a snapshot) are far below."""

_NEWS = 1.0  # seconds for the news of a process's death to come after its first effects

RESUMED = "This stop is over, as the program was resumed: its frames and values can no longer be read."

ENDED = "This stop is over, as the program has ended: its frames and values can no longer be read."


class Asker:
    """Asks over one session.

    Args:
        proxy: the session.
        installs: whether the debuggee side has to be brought there when it is first needed, and again in a process
            that has taken the old one's place; else it is there.
    """

    def __init__(self, proxy: ProxyServer, *, installs: bool = False) -> None:
        self.proxy = proxy
        self._installs = installs

    async def ask(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        frame_id: int | None = None,
        timeout: float = ANSWER_TIMEOUT,
        epoch: int | None = None,
    ) -> Any:
        """Call a function of the debuggee side (`dap_agent/debuggee/api.py`).

        Args:
            frame_id: a DAP frame id: the call runs in that frame's thread; without one in the debugger's own.
            timeout: seconds until it counts as failed.
            epoch: the stop that it is about.

        Raises:
            InspectionError: the debuggee side answered that it cannot; the message says why.
            ProgramResumed: the stop is over.
            RequestFailed: no answer.
        """
        given = dict(arguments or {})
        if not self._installs:
            expression = payload.call_expression(name, given)
            return payload.parse_reply(await self.evaluate(expression, frame_id=frame_id, timeout=timeout, epoch=epoch))
        expression = payload.guarded_call_expression(name, given)
        text = await self.evaluate(expression, frame_id=frame_id, timeout=timeout, epoch=epoch)
        if payload.is_absent(text):
            await self.evaluate(payload.install_expression(), timeout=timeout, epoch=epoch)
            text = await self.evaluate(expression, frame_id=frame_id, timeout=timeout, epoch=epoch)
        return payload.parse_reply(text)

    async def evaluate(
        self, expression: str, *, frame_id: int | None = None, timeout: float = ANSWER_TIMEOUT, epoch: int | None = None
    ) -> str:
        """The untruncated result of *expression*: context `clipboard` is the only one that does not cut it.

        Raises:
            ProgramResumed: the stop *epoch* is over.
            RequestFailed: no answer.
        """
        arguments: dict[str, Any] = {"expression": expression, "context": "clipboard"}
        if frame_id is not None:
            arguments["frameId"] = frame_id
        try:
            body = await self.proxy.request("evaluate", arguments, timeout=timeout, epoch=epoch)
        except RequestFailed as error:
            if error.reason == "resumed" or (error.reason == "refused" and await self._is_over(epoch)):
                raise ProgramResumed(ENDED if self.proxy.terminated else RESUMED) from error
            raise
        return str(body.get("result", ""))

    async def _is_over(self, epoch: int | None) -> bool:
        """Whether the stop is: a debuggee that dies fails what was asked before anybody is told of its death."""
        if epoch is None:
            return False
        changed = asyncio.Event()
        unwatch = self.proxy.watch(changed.set)
        try:
            if self.proxy.epoch == epoch:
                await within(changed.wait(), _NEWS)
        except asyncio.TimeoutError:
            return False
        finally:
            unwatch()
        return True
