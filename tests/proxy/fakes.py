"""Peers of the proxy for tests: a raw DAP client over a socket, an adapter in this process, adapters as scripts."""

import asyncio
import contextlib
import gc
import os
import socket
import sys
from pathlib import Path

from dap_agent.proxy.server import ProxyServer
from dap_agent.wire import Decoder, encode
from dap_agent.wire.messages import dumps, parse, request, response

DEBUGPY = [sys.executable, "-m", "debugpy.adapter"]
INITIALIZE = {
    "clientID": "raw",
    "adapterID": "debugpy",
    "linesStartAt1": True,
    "columnsStartAt1": True,
    "pathFormat": "path",
}


class Stream:
    """Messages over a pair of asyncio streams."""

    def __init__(self, reader, writer):
        self._reader, self._writer, self._decoder = reader, writer, Decoder()

    async def receive(self):
        """The next message; None at the end of the stream."""
        while (body := self._decoder.next()) is None:
            data = await self._reader.read(1 << 16)
            if not data:
                return None
            self._decoder.feed(data)
        return parse(body)

    def send(self, *messages):
        self._writer.write(b"".join(encode(dumps(m) if isinstance(m, dict) else m) for m in messages))

    async def close(self):
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()


class RawClient(Stream):
    """A small client: numbers its requests, keeps what it receives in order, answers reverse requests."""

    def __init__(self, reader, writer):
        super().__init__(reader, writer)
        self.seq = 0
        self.log = []  # everything received
        self._seen = 0  # how much of it `event` has gone through
        self._asked_at = {}  # number of a request -> how much had been received before it
        self._changed = asyncio.Event()
        self.ended = False
        self._task = asyncio.get_running_loop().create_task(self._read())

    async def _read(self):
        with contextlib.suppress(ConnectionError):
            while (message := await self.receive()) is not None:
                self.log.append(message)
                if message["type"] == "request":
                    self.seq += 1
                    self.send(response(message["seq"], message["command"], {}, seq=self.seq))
                self._changed.set()
        self.ended = True
        self._changed.set()

    def post(self, command, arguments=None):
        """Send a request; its number."""
        self.seq += 1
        self.send(request(command, arguments, seq=self.seq))
        self._asked_at[self.seq] = len(self.log)
        return self.seq

    async def ask(self, command, arguments=None, *, timeout=20):
        """Send a request; its whole response."""
        return await self.answer(self.post(command, arguments), timeout=timeout)

    async def answer(self, seq, *, timeout=20):
        """The response to request number *seq*."""

        position = self._asked_at[seq]

        def find():
            nonlocal position
            while position < len(self.log):  # each message once: a client may have thousands
                message = self.log[position]
                position += 1
                if message["type"] == "response" and message["request_seq"] == seq:
                    return message
            return None

        return await self._until(find, timeout)

    async def event(self, *names, timeout=20):
        """The next event of one of these names after the last one asked for."""

        def find():
            for index in range(self._seen, len(self.log)):
                if self.log[index].get("event") in names:
                    self._seen = index + 1
                    return self.log[index]
            return None

        return await self._until(find, timeout)

    async def end(self, *, timeout=10):
        """The stream is over."""
        await self._until(lambda: self.ended or None, timeout)

    async def _until(self, find, timeout):
        async def wait():
            while (found := find()) is None:
                if self.ended:
                    raise ConnectionError(f"the stream ended; the last messages: {self.log[-3:]}")
                self._changed.clear()
                await self._changed.wait()
            return found

        return await asyncio.wait_for(wait(), timeout)

    async def close(self):
        await super().close()
        self._task.cancel()
        await asyncio.wait({self._task})


@contextlib.asynccontextmanager
async def client_of(proxy: ProxyServer):
    """A raw client before *proxy*, over a socket."""
    ours, theirs = socket.socketpair()
    serving = asyncio.get_running_loop().create_task(proxy.serve_client(theirs))
    client = RawClient(*await asyncio.open_connection(sock=ours))
    try:
        yield client
    finally:
        await client.close()
        await asyncio.wait_for(serving, 10)


@contextlib.asynccontextmanager
async def adapter_process(command, env=None):
    """A raw client that speaks with the adapter *command* directly."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=env,
    )
    client = RawClient(process.stdout, process.stdin)
    try:
        yield client
    finally:
        await client.close()
        try:
            await asyncio.wait_for(process.wait(), 5)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        process._transport.close()


@contextlib.asynccontextmanager
async def fake_adapter(handler):
    """An adapter on loopback: `await handler(message, stream)` for every message; gives host and port."""
    tasks = set()

    async def serve(reader, writer):
        tasks.add(asyncio.current_task())
        stream = Stream(reader, writer)
        try:
            while (message := await stream.receive()) is not None:
                await handler(message, stream)
        except ConnectionError:
            pass  # the test has hung up
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()
    finally:
        server.close()
        await server.wait_closed()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


async def echo(message, stream):
    """Handler of an adapter that answers every request with its arguments."""
    if message["type"] == "request":
        stream.send(response(message["seq"], message["command"], message.get("arguments"), seq=1))


def script(text):
    """Command of an adapter whose whole program is *text*."""
    return [sys.executable, "-c", text]


def run(main, *, timeout=60):
    """Run the coroutine function *main* with asyncio's checks on; nothing may be left of it."""
    before = _descriptors()

    async def checked():
        await asyncio.wait_for(main(), timeout)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks left: {left}"

    asyncio.run(checked(), debug=True)
    left = {number: what for number, what in _descriptors().items() if before.get(number) != what}
    assert not left, f"descriptors left open: {left}"


def _descriptors():
    """This process's descriptors as {number: what it is}, an earlier test's garbage is closed first."""
    gc.collect()
    found = {}
    for entry in Path("/proc/self/fd").iterdir() if Path("/proc/self/fd").exists() else ():
        with contextlib.suppress(OSError):  # the listing's own one is closed by now
            found[entry.name] = os.readlink(entry)
    return found


def processes_with(mark):
    """Processes whose environment holds *mark*, as {pid: command line}; the dead ones not reaped yet left out."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if (
                    mark.encode() in (entry / "environ").read_bytes()
                    and (entry / "stat").read_text().split(") ")[1][0] != "Z"
                ):
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found


async def gone_within(mark, seconds):
    """What is left of the processes with *mark* after at most *seconds*."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while (left := processes_with(mark)) and loop.time() < deadline:
        await asyncio.sleep(0.05)  # polling: there is no event for the death of a process that is not a child
    return left
