"""A body on its way through: its head read, the rest left alone.

Decoding 1 MB of JSON costs 12 ms, reading its head 2 us; the relay needs no more than the head of most messages.
"""

import re

from dap_agent.wire.messages import InvalidMessage, Message, dumps, is_number, parse

# debugpy writes these keys first and in this order (seen in 1.8.22). Anchored at the start, so what is
# matched is the top level of the object. Anything else is parsed whole.
_EVENT = re.compile(
    rb'\{\s*"seq"\s*:\s*\d{1,18}()\s*,\s*"type"\s*:\s*"event"\s*,\s*"event"\s*:\s*"([\w/.-]*)"(?=\s*[,}])'
)
_RESPONSE = re.compile(
    rb'\{\s*"seq"\s*:\s*\d{1,18}\s*,\s*"type"\s*:\s*"response"\s*,\s*"request_seq"\s*:\s*(\d{1,18})()'
    rb'\s*,\s*"success"\s*:\s*(true|false)\s*,\s*"command"\s*:\s*"([\w/.-]*)"(?=\s*[,}])'
)
_NUMBER = {key: re.compile(rb'"%b"\s*:\s*(-?\d+)' % key.encode()) for key in ("seq", "request_seq")}

_ESCAPED_LETTER = re.compile(rb"\\u00[567]")


class Frame:
    """One message: the body as received and what routing needs of it.

    Attributes:
        body: the bytes, as received.
        kind: "request", "response", "event", or whatever its `type` says.
        name: the command or the event's name.
        seq: its sequence number; 0 for a response or event whose head only was read.
        request_seq: of a response, the request's number, else 0.
        success: of a response.
    """

    __slots__ = ("_cut", "_message", "body", "kind", "name", "request_seq", "seq", "success")

    def __init__(self, body: bytes, kind: str, name: str, seq: int, request_seq: int, success: bool) -> None:
        self.body = body
        self.kind = kind
        self.name = name
        self.seq = seq
        self.request_seq = request_seq
        self.success = success
        self._cut = 0  # end of the last number in a head read by regular expression
        self._message: Message | None = None

    @classmethod
    def peek(cls, body: bytes) -> "Frame":
        """Read the head only, if it has the usual form, else the whole.

        A broken rest of such a message goes unnoticed until `message` is asked for.

        Raises:
            InvalidMessage: it is not a DAP message.
        """
        found = _EVENT.match(body)
        if found is not None and body.endswith(b"}"):
            frame = cls(body, "event", found[2].decode(), 0, 0, False)
            frame._cut = found.start(1)
            return frame
        found = _RESPONSE.match(body)
        if found is not None and body.endswith(b"}"):
            frame = cls(body, "response", found[4].decode(), 0, int(found[1]), found[3] == b"true")
            frame._cut = found.start(2)
            return frame
        return cls.parse(body)

    @classmethod
    def parse(cls, body: bytes) -> "Frame":
        """Read the whole.

        Raises:
            InvalidMessage: it is not a DAP message.
        """
        message = parse(body)
        name = message.get("event" if message["type"] == "event" else "command")
        seq, request_seq = message.get("seq"), message.get("request_seq")
        frame = cls(
            body,
            message["type"],
            name if isinstance(name, str) else "",
            seq if isinstance(seq, int) else 0,
            request_seq if isinstance(request_seq, int) else 0,
            message.get("success") is True,
        )
        frame._message = message
        return frame

    @classmethod
    def of(cls, message: Message) -> "Frame":
        """A frame made of *message*.

        Raises:
            InvalidMessage: it is not a DAP message, or is nested too deep to be written.
        """
        return cls.parse(_written(message))

    @property
    def message(self) -> Message:
        """The whole message, parsed once.

        Raises:
            InvalidMessage: the rest of the message does not keep what its head promised.
        """
        if self._message is None:
            message = parse(self.body)
            name = message.get("event" if message["type"] == "event" else "command")
            whole = (message["type"], name, message.get("request_seq", 0), message.get("success", False))
            if whole[:2] != (self.kind, self.name) or (
                self.kind == "response" and whole[2:] != (self.request_seq, self.success)
            ):
                raise InvalidMessage(
                    f"A message says two things at once: {self.kind} {self.name}, {whole[0]} {name!r:.80}."
                )
            self._message = message
        return self._message

    def renumbered(self, seq: int, request_seq: int | None = None) -> bytes:
        """The body with other numbers and otherwise, wherever possible, byte for byte the same.

        Args:
            seq: the new sequence number.
            request_seq: of a response, the new number of the request; None leaves it.

        Raises:
            InvalidMessage: it would have to be written anew and is nested too deep for that.
        """
        if self._cut and self._message is None:  # only the head is known
            head = b'{"seq": %d' % seq
            if self.kind == "response":
                head += b', "type": "response", "request_seq": %d' % (
                    self.request_seq if request_seq is None else request_seq
                )
            return b"".join((head, memoryview(self.body)[self._cut :]))
        numbers = {"seq": seq} if request_seq is None else {"seq": seq, "request_seq": request_seq}
        spliced = _splice(self.body, self.message, numbers)
        return _written({**self.message, **numbers}) if spliced is None else spliced


def _written(message: Message) -> bytes:
    try:
        return dumps(message)
    except RecursionError:  # the depth was just not too much for the parser
        raise InvalidMessage("A message is nested too deep to be passed on.") from None


def _splice(body: bytes, message: Message, numbers: dict[str, int]) -> bytes | None:
    """*body* with the *numbers* put in place, or None when it is not certain where their place is.

    A key of the top level is written once, so if its quoted name is in the body just once that is the place. A name
    written with escapes (\\u0073eq) would not be found; a body with any such letter is not spliced.
    """
    if _ESCAPED_LETTER.search(body):
        return None
    for key, number in numbers.items():
        if body.count(b'"%b"' % key.encode()) != 1 or not is_number(message.get(key)):
            return None
        found = _NUMBER[key].search(body)
        if found is None or int(found[1]) != message[key]:
            return None
        body = b"%b%d%b" % (body[: found.start(1)], number, body[found.end(1) :])
    return body
