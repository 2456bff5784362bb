"""Content-Length framing: a byte stream in, message bodies out.

The DAP base protocol (https://microsoft.github.io/debug-adapter-protocol/overview#base-protocol): header fields, each
ended by CR LF, an empty line, then a body of Content-Length bytes.
"""

import re
from typing import NoReturn

from dap_agent.errors import DapAgentError

MAX_BODY = 64 * 1024 * 1024
MAX_HEADER = 8 * 1024
_SMALL = 4 * 1024  # pieces below this are gathered, so that a peer who sends byte by byte costs no memory
_BLOCK = 64 * 1024
_SHOWN = 60

_NAME = rb"[!#-'*+.0-9A-Z^-z|~-]+"  # a token of RFC 9110
_HEADER = re.compile(rb"(?:%b:[^\r\n]*\r\n)+" % _NAME)
# The beginning of such a header. Checked on every piece, so that a stray "Traceback (most ..." is told at once.
_HEADER_SO_FAR = re.compile(rb"(?:%b:[^\r\n]*\r\n)*(?:\r|%b(?::[^\r\n]*\r?)?)?" % (_NAME, _NAME))


class FramingError(DapAgentError):
    """The peer sent bytes that are not the Debug Adapter Protocol; the message says which."""


def encode(body: bytes) -> bytes:
    """*body* with its header, ready to be written."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class Decoder:
    """Takes a byte stream in pieces of any size and gives back the bodies in it.

    Args:
        max_body: the longest body accepted, in bytes.
        max_header: the longest header block accepted, in bytes.

    Holds at most one unfinished body plus what was fed since the last `next`. After a `FramingError` the place in the
    stream is lost for good: every later call of `next` raises it again and what is fed is dropped.
    """

    def __init__(self, max_body: int = MAX_BODY, max_header: int = MAX_HEADER) -> None:
        self._max_body = max_body
        self._max_header = max_header
        self._chunks: list[bytes] = []  # a list, since a growing buffer makes big bodies quadratic
        self._tail = bytearray()  # small pieces not yet in _chunks
        self._first = 0  # index of the first chunk with unread bytes
        self._offset = 0  # where they begin in it
        self._size = 0  # unread bytes in all
        self._expected: int | None = None  # length of the body that comes next; None: a header comes next
        self._error: FramingError | None = None

    def feed(self, data: bytes) -> None:
        """Add the next bytes of the stream."""
        if self._error is not None or not data:
            return
        self._size += len(data)
        if len(data) >= _SMALL:
            self._flush()
            self._chunks.append(bytes(data))
        else:
            self._tail += data
            if len(self._tail) >= _BLOCK:
                self._flush()

    def next(self) -> bytes | None:
        """The next whole body, or None when more bytes are needed.

        Raises:
            FramingError: the stream is not DAP, or a limit is passed.
        """
        if self._error is not None:
            raise self._error
        if self._expected is None:
            self._expected = self._read_header()
        if self._expected is None or self._size < self._expected:
            return None
        body = self._take(self._expected)
        self._expected = None
        return body

    def eof(self) -> None:
        """Tell that the stream has ended.

        Raises:
            FramingError: it ended within a message.
        """
        if self._error is not None:
            raise self._error
        if self._expected is not None:
            self._fail(f"the stream ended after {self._size} of the {self._expected} bytes of a body")
        if self._size:
            self._fail(f"the stream ended within a header: {_shown(self._peek(self._max_header))}")

    def _flush(self) -> None:
        if self._tail:
            self._chunks.append(bytes(self._tail))
            self._tail = bytearray()

    def _fail(self, what: str) -> NoReturn:
        self._error = FramingError(f"Not a Debug Adapter Protocol stream: {what}.")
        self._chunks, self._tail, self._first, self._offset, self._size = [], bytearray(), 0, 0, 0
        raise self._error

    def _peek(self, count: int) -> bytes:
        """The first *count* unread bytes (fewer if there are not so many), left where they are."""
        self._flush()
        if self._first == len(self._chunks):
            return b""
        first = self._chunks[self._first]
        if len(first) - self._offset >= count or self._first + 1 == len(self._chunks):
            return first[self._offset : self._offset + count]
        parts, missing, start = [], count, self._offset
        for chunk in self._chunks[self._first :]:
            parts.append(chunk[start : start + missing])
            missing -= len(parts[-1])
            start = 0
            if not missing:
                break
        return b"".join(parts)

    def _take(self, count: int) -> bytes:
        """Remove and return the first *count* unread bytes; there are so many."""
        self._flush()
        self._size -= count
        parts = []
        while count:
            chunk = self._chunks[self._first]
            part = chunk[self._offset : self._offset + count]
            parts.append(part)
            count -= len(part)
            self._offset += len(part)
            if self._offset == len(chunk):
                self._first += 1
                self._offset = 0
        if self._first == len(self._chunks):
            self._chunks, self._first = [], 0
        elif self._first >= 64:
            del self._chunks[: self._first]
            self._first = 0
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _read_header(self) -> int | None:
        if not self._size:
            return None
        seen = self._peek(256)  # nearly every header is 20 bytes long
        end = seen.find(b"\r\n\r\n")
        if end < 0 and self._size > len(seen):
            seen = self._peek(self._max_header + 4)
            end = seen.find(b"\r\n\r\n")
        if end < 0:
            if _HEADER_SO_FAR.fullmatch(seen) is None:
                self._fail(f"expected a header such as 'Content-Length: 119', got {_shown(seen)}")
            if len(seen) >= self._max_header + 4:
                self._fail(f"a header of more than {self._max_header} bytes: {_shown(seen)}")
            return None
        if end > self._max_header:
            self._fail(f"a header of more than {self._max_header} bytes: {_shown(seen)}")
        length = self._content_length(seen[:end])
        self._take(end + 4)
        return length

    def _content_length(self, header: bytes) -> int:
        if _HEADER.fullmatch(header + b"\r\n") is None:
            self._fail(f"expected a header such as 'Content-Length: 119', got {_shown(header)}")
        length: int | None = None
        for line in header.split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.lower() != b"content-length":
                continue
            value = value.strip(b" \t")
            if not value.isdigit() or len(value) > 19:
                self._fail(f"the length in the header {_shown(line)} is not a number")
            if length is not None and length != int(value):
                self._fail(f"two different lengths in one header: {_shown(header)}")
            length = int(value)
        if length is None:
            self._fail(f"the header {_shown(header)} has no Content-Length")
        if length > self._max_body:
            self._fail(f"a body of {length} bytes is over the limit of {self._max_body}")
        return length


def _shown(data: bytes) -> str:
    text = repr(bytes(data[:_SHOWN]))[1:]
    return text if len(data) <= _SHOWN else f"{text} and {len(data) - _SHOWN} bytes more"
