"""A client of a session's socket (`control.server`)."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from dap_agent.control import jsonrpc
from dap_agent.control.registry import Entry
from dap_agent.errors import DapAgentError
from dap_agent.proxy.patience import within

_CONNECT = 5.0  # seconds


class SessionGone(DapAgentError):
    """The session has ended."""


class Refused(DapAgentError):
    """The session has answered with an error; the message is its sentence."""


class ControlClient:
    """One connection to a session.

    Args:
        entry: the session, as the registry has it.
        heard: is told of each notification: method, parameters.
        gone: is called once when the connection has ended.
    """

    def __init__(
        self,
        entry: Entry,
        heard: Callable[[str, dict[str, Any]], None] = lambda method, params: None,
        gone: Callable[[], None] = lambda: None,
    ) -> None:
        self.entry = entry
        self._heard = heard
        self._gone = gone
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._number = 0

    async def connect(self, client: str) -> dict[str, Any]:
        """Connect and introduce ourselves.

        Args:
            client: our name, for the session's records.

        Returns:
            The result of `initialize`.

        Raises:
            SessionGone: nobody listens there.
            Refused: it does not let us in.
        """
        try:
            reader, self._writer = await within(self._open(), _CONNECT)
        except (OSError, asyncio.TimeoutError) as error:
            raise SessionGone(f"The session {self.entry.id} cannot be reached ({error or 'no answer'}).") from error
        self._reading = asyncio.get_running_loop().create_task(self._read(reader))
        params = {"client": client}
        if self.entry.address is not None:
            params["token"] = self.entry.address[2]
        return await self.request("initialize", params)

    async def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Ask, and wait for the answer.

        Raises:
            Refused: it is an error.
            SessionGone: there will be none.
        """
        if self._writer is None or self._reading is None or self._reading.done():
            raise SessionGone("The debug session has ended.")
        self._number += 1
        future = self._waiting[self._number] = asyncio.get_running_loop().create_future()
        try:
            self._writer.write(jsonrpc.request(self._number, method, params or {}))
            result: dict[str, Any] = await future
        finally:
            self._waiting.pop(self._number, None)
        return result

    async def close(self) -> None:
        """Hang up; `gone` is not called."""
        self._gone = lambda: None
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading})

    def _open(self) -> Any:
        limit = 256 * 1024
        if self.entry.socket is not None:
            return asyncio.open_unix_connection(self.entry.socket, limit=limit)
        assert self.entry.address is not None, "an entry has one of the two"
        return asyncio.open_connection(*self.entry.address[:2], limit=limit)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        lines = jsonrpc.Lines(jsonrpc.MAX_MESSAGE)
        try:
            with contextlib.suppress(OSError, jsonrpc.RpcError):  # it has gone, or is no session: both are the end
                while data := await reader.read(256 * 1024):
                    for line in lines.feed(data):
                        self._take(jsonrpc.read(line))
        finally:
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(SessionGone("The debug session has ended."))
            if self._writer is not None:
                self._writer.close()
            self._gone()

    def _take(self, message: jsonrpc.Call | jsonrpc.Answer) -> None:
        if isinstance(message, jsonrpc.Call):
            self._heard(message.method, message.params)
            return
        future = self._waiting.get(message.id) if isinstance(message.id, int) else None
        if future is None or future.done():
            return
        if message.error is not None:
            future.set_exception(Refused(message.error[1]))
        else:
            future.set_result(message.result)
