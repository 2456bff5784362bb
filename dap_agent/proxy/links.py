"""One peer each, as asyncio protocols: bytes in, whole bodies out, and back-pressure. Used by `server` only."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable

from dap_agent.wire.framing import Decoder, FramingError

_LAST_WORDS = 0.5  # seconds between the first sign of an adapter's end and our telling of it
_MUCH = 16 * 1024 * 1024  # bytes waiting for a peer that does not read, before we stop reading what it sends
_BIG = 64 * 1024  # bytes of a body that is not worth copying


class Link(asyncio.Protocol):
    """One peer: a decoder in front of what it sends, a writer for what it is sent."""

    def __init__(self, received: "Callable[[list[bytes], FramingError | None], None]") -> None:
        self._received = received
        self._decoder = Decoder()
        self._reader: asyncio.ReadTransport | None = None
        self._writer: asyncio.WriteTransport | None = None
        self._holds: set[str] = set()  # why nothing is read at the moment
        self.reads = 0  # grows with everything read
        self.broken: FramingError | None = None  # why nothing more can be read from it
        self.on_pressure: Callable[[bool], None] = lambda high: None
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def use(self, reader: asyncio.BaseTransport | None, writer: asyncio.BaseTransport | None) -> None:
        """Give the link its transports; for a socket both are the same."""
        if isinstance(reader, asyncio.ReadTransport):
            self._reader = reader
        if isinstance(writer, asyncio.WriteTransport):
            self._writer = writer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._reader = transport if isinstance(transport, asyncio.ReadTransport) else self._reader
        if isinstance(transport, asyncio.Transport):
            self._writer = transport

    def data_received(self, data: bytes) -> None:
        if self.broken is not None:
            return
        self.reads += 1
        bodies: list[bytes] = []
        try:
            self._decoder.feed(data)
            while (body := self._decoder.next()) is not None:
                bodies.append(body)
        except FramingError as error:
            self.broken = error
        if bodies or self.broken is not None:
            self._received(bodies, self.broken)
        if self._writer is not None and self._writer.get_write_buffer_size() > _MUCH:
            self.hold("own")

    def eof_received(self) -> bool:
        try:
            self._decoder.eof()
        except FramingError as error:
            self.broken = error
        return False  # the transport closes itself, after what was written is out

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)

    def writer_lost(self) -> None:
        """Nothing can be written any more (asyncio's write pipes must not be aborted after that)."""
        self._writer = None

    def pause_writing(self) -> None:
        self.on_pressure(True)

    def resume_writing(self) -> None:
        self.release("own")
        self.on_pressure(False)

    def hold(self, why: str) -> None:
        """Stop reading from this peer until `release` was called for every reason to hold it."""
        if not self._holds and self._reader is not None and not self._reader.is_closing():
            self._reader.pause_reading()
        self._holds.add(why)

    def release(self, why: str) -> None:
        if why not in self._holds:
            return
        self._holds.discard(why)
        if not self._holds and self._reader is not None and not self._reader.is_closing():
            self._reader.resume_reading()

    @property
    def held(self) -> bool:
        return bool(self._holds)

    def send(self, bodies: Iterable[bytes]) -> None:
        """Write all *bodies*, the small ones at once; nothing if the peer is gone."""
        if self._writer is None or self._writer.is_closing():
            return
        parts: list[bytes] = []
        for body in bodies:
            parts.append(b"Content-Length: %d\r\n\r\n" % len(body))
            if len(body) < _BIG:
                parts.append(body)
            else:  # copying it costs more than one write more
                self._writer.write(b"".join(parts))
                self._writer.write(body)
                parts = []
        if parts:
            self._writer.write(b"".join(parts))

    def close_writing(self) -> None:
        """End what the peer reads, after what was written is out."""
        if self._writer is not None:
            self._writer.close()

    def close(self) -> None:
        """End the connection, after what was written is out."""
        for transport in (self._writer, self._reader):
            if transport is not None:
                transport.close()

    def abort(self) -> None:
        """End the connection at once."""
        if self._writer is not None:
            self._writer.abort()
        if self._reader is not None:
            self._reader.close()


class WriteSide(asyncio.BaseProtocol):
    """Protocol of a pipe that is only written."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def pause_writing(self) -> None:
        self._link.pause_writing()

    def resume_writing(self) -> None:
        self._link.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._link.writer_lost()
        self._link.connection_lost(exc)


class Child(asyncio.SubprocessProtocol):
    """The adapter as a child process: its standard output is the link, its standard error is kept."""

    def __init__(self, link: Link, stderr: deque[str]) -> None:
        self._link = link
        self._stderr = stderr
        self._line = b""
        self._timer: asyncio.TimerHandle | None = None
        self._reads = -1
        self.exited: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.SubprocessTransport):
            self._link.use(transport.get_pipe_transport(1), transport.get_pipe_transport(0))

    def pause_writing(self) -> None:
        self._link.pause_writing()

    def resume_writing(self) -> None:
        self._link.resume_writing()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 1:
            self._link.data_received(data)
            return
        *lines, self._line = (self._line + data).split(b"\n")
        self._line = self._line[-1000:]
        self._stderr.extend(line.decode("utf-8", "replace")[-1000:].rstrip() for line in lines)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 0:
            self._link.writer_lost()
        elif fd == 1:
            self._link.eof_received()
            self._ending()
        elif fd == 2 and self._line:
            self._stderr.append(self._line.decode("utf-8", "replace"))

    def process_exited(self) -> None:
        self.exited.set_result(None)
        self._ending()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not self.over.done():
            self.over.set_result(None)
        self._link.connection_lost(exc)

    def _ending(self) -> None:
        """A first sign of the end: the rest (status, last words, pipes held by grandchildren) gets a short while."""
        if self._timer is None and not self.over.done():
            self._timer = asyncio.get_running_loop().call_later(_LAST_WORDS, self._end)

    def _end(self) -> None:
        if self._link.held or self._link.reads != self._reads:  # there is still something to read
            self._reads = self._link.reads
            self._timer = asyncio.get_running_loop().call_later(_LAST_WORDS, self._end)
        else:
            self._link.connection_lost(None)
