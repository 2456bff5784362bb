"""One debug session of one process: the handshake with the adapter, its stops, questions to the debuggee side."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from dap_agent.proxy.server import ProxyServer, RequestFailed
from dap_agent.session import payload
from dap_agent.session.api import InspectionError, ProgramResumed
from dap_agent.session.snapshot import Snapshot
from dap_agent.wire.messages import Message

ANSWER_TIMEOUT = 20.0
"""Seconds to wait for the debuggee side; its own limits (1 s for a snapshot) are far below."""


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
        expression = payload.call_expression(name, dict(arguments or {}))
        return payload.parse_reply(await self.evaluate(expression, frame_id=frame_id, timeout=timeout))

    async def evaluate(self, expression: str, *, frame_id: int | None = None, timeout: float = ANSWER_TIMEOUT) -> str:
        """The untruncated result of *expression*: context `clipboard` is the only one that does not cut it."""
        arguments: dict[str, Any] = {"expression": expression, "context": "clipboard"}
        if frame_id is not None:
            arguments["frameId"] = frame_id
        body = await self.proxy.request("evaluate", arguments, timeout=timeout)
        return str(body["result"])

    async def resume(self, thread_id: int) -> None:
        """Let the process go on."""
        await self.proxy.request("continue", {"threadId": thread_id})

    async def release(self, thread_id: int) -> None:
        """Let the process go on whatever happens: when the adapter does not, its end does."""
        try:
            await self.resume(thread_id)
        except RequestFailed as error:
            if error.reason == "timeout":
                await self.proxy.close()

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


class LiveStop:
    """A process paused at an exception: the `StoppedProgram` of the tools, over one evaluate per question.

    Args:
        target: the process.
        thread_id: of the thread that stands; None if none does, since all of them wait in C code.
        snapshot: the picture taken of it.
    """

    def __init__(self, target: Target, thread_id: int | None, snapshot: Snapshot) -> None:
        self._target = target
        self._thread_id = thread_id
        self._epoch = target.proxy.epoch
        self._snapshot = snapshot

    @property
    def snapshot(self) -> Snapshot:
        """The picture taken at the stop."""
        return self._snapshot

    async def frame(self, number: int) -> dict[str, Any]:
        """See `StoppedProgram.frame`."""
        return await self._ask("frame", {"number": number})

    async def variable(self, frame: int, path: str, start: int = 0, count: int = 50) -> dict[str, Any]:
        """See `StoppedProgram.variable`."""
        return await self._ask("variable", {"number": frame, "path": path, "start": start, "count": count})

    async def members(self, frame: int, path: str) -> dict[str, Any]:
        """See `StoppedProgram.members`."""
        return await self._ask("members", {"number": frame, "path": path})

    async def evaluate(self, frame: int, code: str, timeout: float = 5.0) -> dict[str, Any]:
        """See `StoppedProgram.evaluate`: runs in the thread that failed."""
        self._check()
        if self._thread_id is None:
            raise InspectionError("Nothing can be evaluated: every thread of the program waits in C code.")
        stack = await self._target.proxy.request(
            "stackTrace", {"threadId": self._thread_id, "startFrame": 0, "levels": 1}
        )
        frame_id = int(stack["stackFrames"][0]["id"])
        return await self._ask(
            "evaluate", {"number": frame, "code": code, "timeout": timeout}, frame_id=frame_id, timeout=timeout + 15.0
        )

    async def resume(self) -> None:
        """Let the program go on; harmless if it has gone on already, or has ended."""
        if self._thread_id is not None and self._epoch == self._target.proxy.epoch:
            await self._target.release(self._thread_id)

    async def until_over(self) -> str:
        """See `StoppedProgram.until_over`."""
        proxy = self._target.proxy
        changed = asyncio.Event()
        unsubscribe = proxy.subscribe(lambda _: changed.set())
        closed = asyncio.ensure_future(proxy.wait_closed())
        closed.add_done_callback(lambda _: changed.set())
        try:
            while self._epoch == proxy.epoch and not closed.done():
                await changed.wait()
                changed.clear()
        finally:
            unsubscribe()
            closed.cancel()
        if self._target.terminated or proxy.gone is None:
            return "The program has ended, or was let go on by somebody else, while it was stopped."
        return f"{proxy.gone} The program goes on without it."

    async def _ask(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        frame_id: int | None = None,
        timeout: float = ANSWER_TIMEOUT,
    ) -> dict[str, Any]:
        self._check()
        answer = await self._target.ask(name, arguments, frame_id=frame_id, timeout=timeout)
        if not isinstance(answer, dict):
            raise InspectionError(f"The debuggee answered {name} with {type(answer).__name__} instead of an object.")
        return answer

    def _check(self) -> None:
        if self._epoch != self._target.proxy.epoch:
            raise ProgramResumed("The program was resumed: its frames and values can no longer be read.")


class PostMortem:
    """A process that is gone: answers what its snapshot holds, and says so for the rest."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    @property
    def snapshot(self) -> Snapshot:
        """What could be had of the crash."""
        return self._snapshot

    async def frame(self, number: int) -> dict[str, Any]:
        """The frame as it stands in the snapshot."""
        for frame in self._snapshot.frames:
            if frame["number"] == number:
                return frame
        raise InspectionError(f"There is no frame {number} in the snapshot; {self._numbers()}")

    async def variable(self, frame: int, path: str, start: int = 0, count: int = 50) -> dict[str, Any]:
        """A local or argument by its name, as the snapshot has it."""
        found = await self.frame(frame)
        for entry in [*found["locals"], *found["arguments"]]:
            if entry["name"] == path:
                return {"path": path, "value": entry["value"], "children": [], "total": 0, "start": start}
        names = sorted({entry["name"] for entry in [*found["locals"], *found["arguments"]]})
        raise InspectionError(
            f"The process has ended, so only what its snapshot holds can be read; frame {frame} has "
            f"{', '.join(names) if names else 'no values'}."
        )

    async def members(self, frame: int, path: str) -> dict[str, Any]:
        """Not possible any more."""
        raise InspectionError("The process has ended: members can't be listed. Read its source instead.")

    async def evaluate(self, frame: int, code: str, timeout: float = 5.0) -> dict[str, Any]:
        """Not possible any more."""
        raise InspectionError("The process has ended: nothing can be evaluated in it. Use run_test to try code.")

    async def resume(self) -> None:
        """Nothing is left to resume."""

    async def until_over(self) -> str:
        """Never: what has ended cannot end."""
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    def _numbers(self) -> str:
        numbers = [frame["number"] for frame in self._snapshot.frames]
        return f"it has frames {numbers[0]} to {numbers[-1]}." if numbers else "it has no frames."
