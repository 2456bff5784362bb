"""The socket of one session: clients of this user connect, ask, and are told what happens.

A unix socket in a folder that nobody else can enter, and the peer's user id is asked of the kernel besides; where there
are no unix sockets, a port of the loopback interface with a token that stands in the session's registry entry.
"""

import asyncio
import contextlib
import hmac
import os
import secrets
import socket
import struct
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from dap_agent.control import failure, jsonrpc
from dap_agent.errors import DapAgentError
from dap_agent.session.paths import runtime_dir

Answer = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Answers a method with parameters; raises DapAgentError or RpcError."""

MAX_UNREAD = 16 * 1024 * 1024
"""Bytes that a client may leave unread; then it is disconnected, as nobody must wait for it."""
MAX_REQUESTS = 16
"""Requests of one client that are dealt with at once; it is read on when one of them is answered."""
_MAX_PATH = 100  # bytes of a unix socket's path: 104 with its NUL on macOS, 108 on Linux
_PARTING = 0.5  # seconds for the last words


class ControlServer:
    """See the module.

    Args:
        answer: answers everything but `initialize`.
        greet: gives the result of `initialize`.
    """

    def __init__(self, answer: Answer, greet: Callable[[], Awaitable[Mapping[str, Any]]]) -> None:
        self.path: Path | None = None
        self.address: tuple[str, int, str] | None = None
        self._answer = answer
        self._greet = greet
        self._token: str | None = None
        self._server: asyncio.AbstractServer | None = None
        self._folder: Path | None = None  # made for the socket alone
        self._clients: set[_Client] = set()

    async def open(self, name: str) -> None:
        """Listen.

        Args:
            name: of the socket's file, without suffix.

        Raises:
            DapAgentError: there is no place for the socket.
            OSError: it cannot be made.
        """
        if not hasattr(socket, "AF_UNIX"):
            self._token = secrets.token_urlsafe(32)
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
            host, port = self._server.sockets[0].getsockname()[:2]
            self.address = (host, port, self._token)
            return
        path = await asyncio.to_thread(self._place, name)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(str(path))
            path.chmod(0o600)
        except OSError:
            listener.close()
            raise
        self.path = path
        self._server = await asyncio.start_unix_server(self._serve, sock=listener)

    @property
    def clients(self) -> int:
        """How many have been let in."""
        return sum(client.initialized for client in self._clients)

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification to all clients that have been let in."""
        line = None
        for client in tuple(self._clients):
            if client.initialized:
                line = line or jsonrpc.notification(method, params)
                client.send(line)

    async def close(self) -> None:
        """Let the clients go; leave nothing behind."""
        if self._server is not None:
            self._server.close()
        tasks = {client.task for client in self._clients}
        for client in tuple(self._clients):
            client.part()
        if tasks:
            await asyncio.wait(tasks, timeout=_PARTING)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        if self.path is not None:
            self.path.unlink(missing_ok=True)
        if self._folder is not None:
            with contextlib.suppress(OSError):
                self._folder.rmdir()

    def _place(self, name: str) -> Path:
        path = runtime_dir() / f"{name}.sock"
        if len(os.fsencode(path)) > _MAX_PATH:
            self._folder = Path(tempfile.mkdtemp(prefix="dap-agent-"))  # readable by this user alone
            path = self._folder / "sock"
        return path

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._token is None and not _is_mine(writer.get_extra_info("socket")):
            writer.close()
            return
        task = asyncio.current_task()
        assert task is not None, "a coroutine runs in a task"
        client = _Client(reader, writer, self._dispatch, task)
        self._clients.add(client)
        try:
            await client.run()
        except asyncio.CancelledError:
            pass  # by `close`; the stream's own callback would call it an error
        finally:
            self._clients.discard(client)

    async def _dispatch(self, client: "_Client", call: jsonrpc.Call) -> Mapping[str, Any]:
        if call.method == "initialize":
            given = call.params.get("token")
            if self._token is not None and not (
                isinstance(given, str) and hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode())
            ):
                raise jsonrpc.RpcError(jsonrpc.NOT_INITIALIZED, "The token is not that of the session's entry.")
            if not isinstance(call.params.get("client"), str):
                raise jsonrpc.RpcError(jsonrpc.INVALID_PARAMS, 'initialize wants "client", a name for people.')
            greeting = await self._greet()
            client.initialized = True  # nothing comes between the two: the client misses nothing
            return greeting
        if not client.initialized:
            raise jsonrpc.RpcError(jsonrpc.NOT_INITIALIZED, "The first request has to be initialize.")
        return await self._answer(call.method, call.params)


class _Client:
    """One connection."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        dispatch: "Callable[[_Client, jsonrpc.Call], Awaitable[Mapping[str, Any]]]",
        task: "asyncio.Task[Any]",
    ) -> None:
        self.initialized = False
        self.task = task
        self._reader = reader
        self._writer = writer
        self._dispatch = dispatch
        self._room = asyncio.Semaphore(MAX_REQUESTS)
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Read and answer until it has gone, and what it has asked for is done."""
        lines = jsonrpc.Lines(jsonrpc.MAX_REQUEST)
        try:
            with contextlib.suppress(ConnectionError):
                while data := await self._reader.read(64 * 1024):
                    for line in lines.feed(data):
                        if line.strip():
                            await self._take(line)
            # it may have shut down its side only, and wait for its answers; and a fix is not left half written
            if self._tasks:
                await asyncio.wait(self._tasks)
        except jsonrpc.RpcError as error:
            self.send(jsonrpc.error(error))
        finally:
            for task in self._tasks:
                task.cancel()
            await self._hang_up()

    def send(self, line: bytes) -> None:
        """Send a line; a client that reads too little is let go."""
        transport = self._writer.transport
        if transport.is_closing():
            return
        if transport.get_write_buffer_size() > MAX_UNREAD:
            transport.abort()
            return
        self._writer.write(line)

    def part(self) -> None:
        """Send what is left to send, and end."""
        self._reader.feed_eof()
        for task in self._tasks:
            task.cancel()

    async def _take(self, line: bytes) -> None:
        try:
            message = jsonrpc.read(line)
        except jsonrpc.RpcError as error:
            self.send(jsonrpc.error(error))
            return
        if isinstance(message, jsonrpc.Answer):
            return  # we ask clients nothing
        await self._room.acquire()
        if message.method == "initialize":
            await self._do(message)  # what follows relies on it
            return
        task = asyncio.get_running_loop().create_task(self._do(message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _do(self, call: jsonrpc.Call) -> None:
        try:
            try:
                value = await self._dispatch(self, call)
                line = b"" if call.id is None else jsonrpc.result(call.id, value)
            except jsonrpc.RpcError as error:
                line = jsonrpc.error(error, call.id)
            except DapAgentError as error:
                line = jsonrpc.error(jsonrpc.RpcError(jsonrpc.REFUSED, error.message), call.id)
            except Exception as error:  # noqa: BLE001 - whatever goes wrong in here, the client waits for an answer
                told = jsonrpc.RpcError(jsonrpc.INTERNAL_ERROR, failure.describe(error))
                line = jsonrpc.error(told, call.id)
            if call.id is not None:
                self.send(line)
        finally:
            self._room.release()

    async def _hang_up(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


def _is_mine(connection: Any) -> bool:
    """Whether the process at the other end of a unix socket is this user's (unix(7), SO_PEERCRED; Linux).

    Elsewhere the folder's mode alone keeps the others out.
    """
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return bool(struct.unpack("3i", found)[1] == os.geteuid())
