"""All sessions over one debug adapter: the root and the children, which come through us by doors of ours.

With `server` and `links` the only files that open sockets.
"""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import IO, Any, Protocol

from dap_agent.proxy.core import Proxy
from dap_agent.proxy.editor import Editor
from dap_agent.proxy.effects import Adopt, Attached, ForHub, Release
from dap_agent.proxy.oddities import Address
from dap_agent.proxy.server import AdapterFailed, ProxyServer, RequestFailed
from dap_agent.proxy.stops import DebuggeeSide

LOOPBACK = "127.0.0.1"
RELEASE_AFTER = 20.0
"""Seconds that a child waits for its client before it is let run (debugpy#81, #655: in stock for ever)."""
_PARTING = 0.5  # seconds for the last words to the clients
_RELEASE_STEP = 10.0  # seconds for each answer on the way


class Companion(Protocol):
    """What goes along with one session."""

    async def close(self) -> None:
        """The session is over: leave nothing behind."""


OnSession = Callable[[ProxyServer, Editor], Companion]


class Hub:
    """One adapter and everything that is relayed to it.

    Args:
        command: starts the adapter, which speaks over its standard input and output; or
        address: where it listens.
        on_session: called for the root's session and for each child's before its client is served; what it returns is
            closed when that client has gone, before the connection to the adapter is ended.
        side: the code for the debuggee that decides on stops.
    """

    def __init__(
        self,
        *,
        command: Sequence[str] = (),
        address: Address | None = None,
        on_session: OnSession | None = None,
        side: DebuggeeSide | None = None,
    ) -> None:
        self._command = command
        self._side = side
        self._address = address
        self._on_session = on_session
        self._loop = asyncio.get_running_loop()
        self._doors: dict[Address, Address] = {}
        self._listeners: list[socket.socket] = []
        self._expected: dict[int, tuple[Address, asyncio.TimerHandle]] = {}  # children without a client, by process id
        self._births: dict[int, str] = {}  # children by process id -> when they were born, as the system tells it
        self._connected = 0  # children's clients
        self._sessions: set[asyncio.Task[None]] = set()  # children's, and releases
        self._accepting: set[asyncio.Task[None]] = set()
        self._root: Editor | None = None
        self.failure: AdapterFailed | None = None  # why there is no adapter

    async def serve_pipes(self, reader: IO[bytes], writer: IO[bytes]) -> None:
        """Serve the client that writes what *reader* reads. Returns when all is over and nothing is left."""
        await self._serve(lambda root: root.serve_pipes(reader, writer))

    async def serve_socket(self, connection: socket.socket) -> None:
        """Serve the client at the other end of *connection*."""
        await self._serve(lambda root: root.serve_client(connection))

    async def _serve(self, serve: Callable[[ProxyServer], Awaitable[None]]) -> None:
        core = Proxy()
        editor = self._root = Editor(core, doors=self._doors, spawned=self._address is None, side=self._side)
        try:
            root = await self._reach(core, editor)
        except AdapterFailed as error:
            self.failure = error
            root = ProxyServer.failed(error.message, core, editor)
        root.for_hub = lambda effect: self._do(root, editor, effect)
        serving = asyncio.ensure_future(self._accompanied(root, editor, serve))
        try:
            await asyncio.wait({serving})
            serving.result()
            while self._connected:  # children may outlive their parent (debugpy#1767)
                await asyncio.wait(self._sessions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await self._close(root, serving)

    async def _accompanied(
        self, server: ProxyServer, editor: Editor, serve: Callable[[ProxyServer], Awaitable[None]]
    ) -> None:
        companion = self._on_session(server, editor) if self._on_session is not None else None
        try:
            await serve(server)
        finally:
            if companion is not None:
                await companion.close()

    async def _reach(self, core: Proxy, editor: Editor) -> ProxyServer:
        if self._address is not None:
            return await ProxyServer.connect(*self._address, retry=True, core=core, editor=editor)
        return await ProxyServer.spawn(self._command, core=core, editor=editor)

    async def _close(self, root: ProxyServer, serving: asyncio.Future[None]) -> None:
        """End the adapter; whoever is still connected is told of it by his own session, and then let go."""
        for _, timer in self._expected.values():
            timer.cancel()
        for task in self._accepting:
            task.cancel()
        await root.close()
        tasks = {*self._accepting, *self._sessions, serving}
        await asyncio.wait(tasks, timeout=_PARTING)
        for left in tasks:
            left.cancel()
        await asyncio.wait(tasks)
        if self._root is not None and self._root.ends_children:
            self._end_children()
        for listener in self._listeners:
            listener.close()

    def _end_children(self) -> None:
        """What debugpy does at the end of a launched program; it misses some, above all when it was killed itself."""
        for process_id, birth in self._births.items():
            if birth and _birth(process_id) == birth:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(process_id, signal.SIGTERM)

    def _do(self, server: ProxyServer, editor: Editor, effect: ForHub) -> None:
        if isinstance(effect, Adopt):
            named = (effect.host, effect.port)
            address = self._address or named  # as seen from here, the root's adapter is where we have reached it
            door = self._doors.get(named) or self._open(named, address)
            if effect.process_id is not None:
                self._attached(effect.process_id)
                self._births[effect.process_id] = _birth(effect.process_id)
                timer = self._loop.call_later(RELEASE_AFTER, self._release, effect.process_id)
                self._expected[effect.process_id] = (address, timer)
            server.apply(editor.adopted(effect.token, *door))
        elif isinstance(effect, Attached):
            self._attached(effect.process_id)
        elif isinstance(effect, Release):
            self._release(effect.process_id)
        self._count()

    def _count(self) -> None:
        if self._root is not None:
            self._root.children = self._connected + len(self._expected)

    def _attached(self, process_id: int) -> None:
        if process_id in self._expected:
            self._expected.pop(process_id)[1].cancel()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._sessions.add(task)
        task.add_done_callback(self._sessions.discard)

    # Children

    def _open(self, named: Address, address: Address) -> Address:
        """A listener of ours that leads to *address*, which the adapter has *named*."""
        listener = socket.create_server((LOOPBACK, 0), backlog=100)
        listener.setblocking(False)
        self._listeners.append(listener)
        door = self._doors[named] = (LOOPBACK, listener.getsockname()[1])
        task = self._loop.create_task(self._accept(listener, address))
        self._accepting.add(task)
        task.add_done_callback(self._accepting.discard)
        return door

    async def _accept(self, listener: socket.socket, address: Address) -> None:
        while True:
            try:
                connection, _ = await self._loop.sock_accept(listener)
            except ConnectionError:
                continue  # it has left again
            self._start(self._child(connection, address))

    async def _child(self, connection: socket.socket, address: Address) -> None:
        core = Proxy()
        options = self._root.options if self._root is not None else None
        editor = Editor(core, options=options, doors=self._doors, side=self._side)
        self._connected += 1
        self._count()
        try:
            try:
                child = await ProxyServer.connect(*address, core=core, editor=editor)
            except AdapterFailed as error:
                child = ProxyServer.failed(error.message, core, editor)
            except BaseException:
                connection.close()
                raise
            child.for_hub = lambda effect: self._do(child, editor, effect)
            async with child:
                await self._accompanied(child, editor, lambda child: child.serve_client(connection))
        finally:
            self._connected -= 1
            self._count()

    def _release(self, process_id: int) -> None:
        if process_id in self._expected:
            address = self._expected[process_id][0]
            self._attached(process_id)
            self._start(self._let_go(address, process_id))
            self._count()

    async def _let_go(self, address: Address, process_id: int) -> None:
        """Attach to a child that nobody wants, and detach: it runs on without a debugger."""
        with contextlib.suppress(AdapterFailed, RequestFailed):  # it has ended in the meantime
            async with await ProxyServer.connect(*address) as child:
                ready = asyncio.Event()
                child.subscribe(lambda message: ready.set() if message["event"] == "initialized" else None)
                await child.request("initialize", {"adapterID": "debugpy"}, timeout=_RELEASE_STEP)
                attached = self._loop.create_task(
                    child.request("attach", {"subProcessId": process_id}, timeout=_RELEASE_STEP)
                )
                waiting = self._loop.create_task(ready.wait())
                try:
                    await asyncio.wait({attached, waiting}, return_when=asyncio.FIRST_COMPLETED)
                    if waiting.done():
                        await child.request("configurationDone", {}, timeout=_RELEASE_STEP)
                    await attached
                finally:
                    waiting.cancel()
                    attached.cancel()
                await child.request("disconnect", {"terminateDebuggee": False}, timeout=_RELEASE_STEP)


def _birth(process_id: int) -> str:
    """When a process of this machine was born (proc(5), field 22 of stat); empty if that cannot be known."""
    try:
        text = Path(f"/proc/{process_id}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[19]
