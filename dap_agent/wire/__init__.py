"""The Debug Adapter Protocol as bytes and dictionaries: no I/O, standard library only.

`framing` splits a byte stream into bodies, `frames` reads the head of a body without decoding all of it,
`messages` builds and parses whole messages.
"""

from dap_agent.wire.framing import Decoder, FramingError, encode
from dap_agent.wire.messages import InvalidMessage, Message

__all__ = ["Decoder", "FramingError", "InvalidMessage", "Message", "encode"]
