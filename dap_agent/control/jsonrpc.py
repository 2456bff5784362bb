"""JSON-RPC 2.0 (https://www.jsonrpc.org/specification) as lines: one JSON text a line, UTF-8, ended by LF.

Knows nothing of sockets. A line that is no message is answered by an error and the next one is read.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
REFUSED = -32000
"""It cannot be done; the message is a sentence for the user."""
NOT_INITIALIZED = -32001
"""`initialize` has to come first, or its token is wrong."""

MAX_REQUEST = 1024 * 1024
"""Bytes of a line that a client may send."""
MAX_MESSAGE = 64 * 1024 * 1024
"""Bytes of a line that a session may send."""

Id = int | str


class RpcError(Exception):
    """What a request is answered with instead of a result.

    Args:
        code: as the constants above.
        message: one sentence.
        id: of the request, as far as that can be known.
    """

    def __init__(self, code: int, message: str, id: Id | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.id = id


@dataclass(frozen=True)
class Call:
    """A request, or a notification.

    Args:
        method: its name.
        params: its arguments, by name.
        id: None for a notification.
    """

    method: str
    params: dict[str, Any]
    id: Id | None


@dataclass(frozen=True)
class Answer:
    """The answer to a request of ours.

    Args:
        id: of the request; None if the other side could not read it.
        result: what it has given.
        error: code and message instead.
    """

    id: Id | None
    result: Any = None
    error: tuple[int, str] | None = None


class Lines:
    """Takes a byte stream in pieces of any size and gives back its lines.

    Args:
        limit: the longest line accepted, in bytes.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._searched = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Add the next bytes.

        Returns:
            The lines that they end, without LF.

        Raises:
            RpcError: a line is longer than the limit; the stream cannot be read on.
        """
        self._buffer += data
        found = []
        while (end := self._buffer.find(b"\n", self._searched)) >= 0:
            if end > self._limit:
                self._too_long()
            found.append(bytes(self._buffer[:end]))
            del self._buffer[: end + 1]
            self._searched = 0
        self._searched = len(self._buffer)
        if self._searched > self._limit:
            self._too_long()
        return found

    def _too_long(self) -> None:
        self._buffer.clear()
        self._searched = 0
        raise RpcError(INVALID_REQUEST, f"A message is longer than {self._limit} bytes; the connection is closed.")


def read(line: bytes) -> Call | Answer:
    """The message in a line.

    Raises:
        RpcError: it is none; the error is what the other side is to be told.
    """
    try:
        data = json.loads(line.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise RpcError(PARSE_ERROR, f"Not JSON: {str(error)[:200]}.") from None
    if isinstance(data, list):
        raise RpcError(INVALID_REQUEST, "Batches are not supported: send one message a line.")
    if not isinstance(data, dict):
        raise RpcError(INVALID_REQUEST, "A message is an object.")
    id = data.get("id")
    known = id if type(id) is int or isinstance(id, str) else None
    if data.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, 'A message has "jsonrpc": "2.0".', known)
    if "method" not in data and ("result" in data or "error" in data):
        return _answer(data, known)
    if "id" in data and known is None:
        raise RpcError(INVALID_REQUEST, "An id is a whole number or a string.")
    if not isinstance(data.get("method"), str):
        raise RpcError(INVALID_REQUEST, "A request has a method, which is a string.", known)
    params = data.get("params", {})
    if not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, "Parameters are given by name, as an object.", known)
    return Call(data["method"], params, known)


def _answer(data: Mapping[str, Any], id: Id | None) -> Answer:
    error = data.get("error")
    if error is None:
        return Answer(id, data.get("result"))
    if not isinstance(error, dict) or type(error.get("code")) is not int:
        raise RpcError(INVALID_REQUEST, "An error has a code and a message.", id)
    return Answer(id, None, (error["code"], str(error.get("message"))))


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def request(id: Id, method: str, params: Mapping[str, Any]) -> bytes:
    """The line of a request."""
    return _line({"id": id, "method": method, "params": params})


def notification(method: str, params: Mapping[str, Any]) -> bytes:
    """The line of a notification."""
    return _line({"method": method, "params": params})


def result(id: Id, value: Mapping[str, Any]) -> bytes:
    """The line of an answer."""
    return _line({"id": id, "result": value})


def error(failure: RpcError, id: Id | None = None) -> bytes:
    """The line of an answer that is an error.

    Args:
        failure: what it says.
        id: of the request; None for that of *failure*.
    """
    told = {"code": failure.code, "message": failure.message}
    return _line({"id": failure.id if id is None else id, "error": told})


def _line(message: Mapping[str, Any]) -> bytes:
    # ASCII only: text of a program may hold half of a surrogate pair, which UTF-8 does not have
    return json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode("ascii") + b"\n"
