"""One debug session of one process: the handshake with the adapter, its stops, questions to the debuggee side."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from dap_agent.proxy.server import ProxyServer
from dap_agent.session.asker import ANSWER_TIMEOUT, Asker
from dap_agent.session.stopped import release
from dap_agent.wire.messages import Message


class Target:
    """A process that a debugger is attached to.

    Args:
        proxy: the connection to the adapter.
        on_stop: called with this target and the id of the thread that has stopped.
        on_child: called with the body of `debugpyAttach` when a child of the process has connected.
    """

    def __init__(
        self,
        proxy: ProxyServer,
        on_stop: Callable[["Target", int, str], None],
        on_child: Callable[[Mapping[str, Any]], None],
    ) -> None:
        self.proxy = proxy
        self.asker = Asker(proxy)
        self.process_id: int | None = None
        self.terminated = False  # the adapter has said that the process is gone
        self._gone = asyncio.Event()
        self._on_stop = on_stop
        self._on_child = on_child
        self._initialized = asyncio.Event()
        self._waiting_for_server: asyncio.Future[tuple[str, int]] = asyncio.get_running_loop().create_future()
        self._output: list[str] = []
        proxy.subscribe(self._event)

    async def initialize(self) -> None:
        """Say who we are (DAP: initialize)."""
        await self.proxy.request(
            "initialize",
            {
                "clientID": "dap-agent",
                "clientName": "dap-agent",
                "adapterID": "debugpy",
                "pathFormat": "path",
                "linesStartAt1": True,
                "columnsStartAt1": True,
                "supportsVariableType": True,
            },
        )

    async def attach(self, arguments: Mapping[str, Any], *, timeout: float) -> None:
        """Attach and configure: from then on the process runs.

        Args:
            arguments: of the DAP request `attach`.
            timeout: seconds until the debuggee must have answered.

        Raises:
            RequestFailed: the adapter could not attach.
        """
        attached = asyncio.ensure_future(self.proxy.request("attach", arguments, timeout=timeout))
        initialized = asyncio.ensure_future(self._initialized.wait())
        try:
            await asyncio.wait({attached, initialized}, return_when=asyncio.FIRST_COMPLETED)
            if initialized.done():
                # no filters of debugpy's: the hooks in the debuggee report each exception once (debuggee/hooks.py)
                await self.proxy.request("setExceptionBreakpoints", {"filters": []})
                await self.proxy.request("configurationDone", {}, timeout=timeout)
            await attached
        finally:
            initialized.cancel()
            attached.cancel()
            await asyncio.gather(initialized, attached, return_exceptions=True)

    @property
    def connected(self) -> bool:
        """Whether the process has ever been taken up by the adapter."""
        return self._initialized.is_set()

    async def server_address(self) -> tuple[str, int]:
        """Where the adapter waits for the debuggee (event `debugpyWaitingForServer`)."""
        return await self._waiting_for_server

    @property
    def adapter_output(self) -> str:
        """What the adapter has said on the way: the reason when an injection fails."""
        return "".join(self._output).strip()

    async def ask(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        frame_id: int | None = None,
        timeout: float = ANSWER_TIMEOUT,
    ) -> Any:
        """Call a function of the debuggee side (`dap_agent/debuggee/api.py`) by one evaluate.

        Args:
            frame_id: a DAP frame id: the call runs in that frame's thread; without one in the debugger's own.

        Raises:
            InspectionError: the debuggee side answered that it cannot; the message says why.
            RequestFailed: no answer.
        """
        return await self.asker.ask(name, arguments, frame_id=frame_id, timeout=timeout)

    async def evaluate(self, expression: str, *, frame_id: int | None = None, timeout: float = ANSWER_TIMEOUT) -> str:
        """The untruncated result of *expression*: context `clipboard` is the only one that does not cut it."""
        return await self.asker.evaluate(expression, frame_id=frame_id, timeout=timeout)

    async def release(self, thread_id: int) -> None:
        """Let the process go on whatever happens: when the adapter does not, its end does."""
        await release(self.proxy, thread_id)

    async def over(self) -> None:
        """Return when the process is gone, or the session."""
        ends = [asyncio.ensure_future(self._gone.wait()), asyncio.ensure_future(self.proxy.wait_closed())]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()

    async def detach(self) -> None:
        """End the session; the process goes on. Until it has connected there is nothing to end."""
        if not self.connected or self.terminated:
            return
        await self.proxy.request("disconnect", {"terminateDebuggee": False}, timeout=5.0)

    def _event(self, message: Message) -> None:
        body = message.get("body") or {}
        match message["event"]:
            case "initialized":
                self._initialized.set()
            case "debugpyWaitingForServer":
                if not self._waiting_for_server.done():
                    self._waiting_for_server.set_result((str(body["host"]), int(body["port"])))
            case "debugpyAttach":
                self._on_child(body)
            case "terminated":
                self.terminated = True
                self._gone.set()
            case "process":
                self.process_id = body.get("systemProcessId")
            case "output" if body.get("category") not in ("telemetry", "stdout"):
                self._output.append(str(body.get("output", "")))
            case "stopped":
                self._on_stop(self, int(body.get("threadId", 0)), str(body.get("reason", "")))
