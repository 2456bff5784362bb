"""Whole DAP messages as dictionaries: builders, parser, predicates.

Shapes and names are those of the specification's `ProtocolMessage`, `Request`, `Response`, `Event`.
"""

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from dap_agent.wire.framing import FramingError

Message = dict[str, Any]

_SHOWN = 60


class InvalidMessage(FramingError):
    """A body that is not a DAP message. The stream goes on after it.

    Args:
        message: the sentence for the user.
        seq: the sequence number of a broken request that can be answered, else None.
        command: its command, if it could be read.
    """

    def __init__(self, message: str, *, seq: int | None = None, command: str | None = None) -> None:
        super().__init__(message)
        self.seq = seq
        self.command = command


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{text[:20]} is too big")  # it could not be written again
    return value


_decoder = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)


def request(command: str, arguments: Mapping[str, Any] | None = None, *, seq: int = 0) -> Message:
    """A request; *arguments* is left out when None."""
    message: Message = {"seq": seq, "type": "request", "command": command}
    if arguments is not None:
        message["arguments"] = dict(arguments)
    return message


def response(request_seq: int, command: str, body: Mapping[str, Any] | None = None, *, seq: int = 0) -> Message:
    """A successful response to the request with sequence number *request_seq*."""
    message: Message = {"seq": seq, "type": "response", "request_seq": request_seq, "success": True, "command": command}
    if body is not None:
        message["body"] = dict(body)
    return message


def error_response(request_seq: int, command: str, text: str, *, show: bool = False, seq: int = 0) -> Message:
    """A failed response whose sentence is *text*.

    Args:
        show: whether the client should put the sentence before the user (`Message.showUser`).
    """
    # `format` is a template, hence the variable: braces in the text are not to be filled in.
    error = {"id": 9000, "format": "{reason}", "variables": {"reason": text}, "showUser": show}
    return {
        "seq": seq,
        "type": "response",
        "request_seq": request_seq,
        "success": False,
        "command": command,
        "message": text,
        "body": {"error": error},
    }


def event(name: str, body: Mapping[str, Any] | None = None, *, seq: int = 0) -> Message:
    """An event."""
    message: Message = {"seq": seq, "type": "event", "event": name}
    if body is not None:
        message["body"] = dict(body)
    return message


def dumps(message: Mapping[str, Any]) -> bytes:
    """The body of *message*: compact ASCII JSON.

    Raises:
        ValueError: it holds NaN or an infinity, or holds itself.
        TypeError: it holds something that JSON has not.
        RecursionError: it is nested too deep.
    """
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode("ascii")


def parse(body: bytes) -> Message:
    """The message in *body*, checked as far as routing needs it.

    Raises:
        InvalidMessage: it is not a JSON object in UTF-8 with a usable `type` and the fields that go with it.
    """
    try:
        message = _decoder.decode(str(body, "utf-8"))
    except RecursionError:
        raise InvalidMessage(f"A message is nested too deep to be read ({len(body)} bytes).") from None
    except ValueError as error:
        raise InvalidMessage(f"A message is not JSON ({str(error)[:100]}): {_shown(body)}.") from None
    if not isinstance(message, dict):
        raise InvalidMessage(f"A message is not a JSON object: {_shown(body)}.")
    kind, seq, command = message.get("type"), message.get("seq"), message.get("command")
    if kind == "request":
        valid = is_number(seq) and isinstance(command, str)
    elif kind == "response":
        valid = is_number(message.get("request_seq")) and isinstance(message.get("success"), bool)
    elif kind == "event":
        valid = isinstance(message.get("event"), str)
    else:
        valid = isinstance(kind, str)
    if not valid:
        raise InvalidMessage(
            f"A message lacks what a DAP message must have: {_shown(body)}.",
            seq=seq if kind == "request" and is_number(seq) else None,
            command=command if isinstance(command, str) else None,
        )
    return message


def is_number(value: object) -> bool:
    """Whether *value* can be a sequence number (JSON's true is an `int` to Python)."""
    return type(value) is int


def is_request(message: Mapping[str, Any], command: str | None = None) -> bool:
    """Whether it is a request (with this *command*)."""
    return message.get("type") == "request" and command in (None, message.get("command"))


def is_response(message: Mapping[str, Any], command: str | None = None) -> bool:
    """Whether it is a response (to this *command*)."""
    return message.get("type") == "response" and command in (None, message.get("command"))


def is_event(message: Mapping[str, Any], name: str | None = None) -> bool:
    """Whether it is an event (of this *name*)."""
    return message.get("type") == "event" and name in (None, message.get("event"))


def body_of(message: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a response or event; an empty one if it has none (debugpy's failed responses have not)."""
    body = message.get("body")
    return body if isinstance(body, dict) else {}


def arguments_of(message: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a request; empty ones if it has none."""
    arguments = message.get("arguments")
    return arguments if isinstance(arguments, dict) else {}


def failure_of(message: Message) -> str:
    """The sentence in a failed response: debugpy's is in `message`, the specification's also in `body.error`."""
    text = message.get("message")
    error = body_of(message).get("error")
    if isinstance(error, dict) and isinstance(error.get("format"), str):
        long: str = error["format"]
        variables = error.get("variables")
        for name, value in variables.items() if isinstance(variables, dict) else ():
            long = long.replace("{" + str(name) + "}", str(value))
        if not isinstance(text, str) or len(long) > len(text):
            text = long
    return text if isinstance(text, str) and text else "The debug adapter gave no reason."


def _shown(body: bytes) -> str:
    text = repr(bytes(body[:_SHOWN]))[1:]
    return text if len(body) <= _SHOWN else f"{text} and {len(body) - _SHOWN} bytes more"
