"""What the core asks `server` to do. Plain data, in the order in which it is to be done."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from dap_agent.wire.frames import Frame
from dap_agent.wire.messages import Message

# refused: the adapter answered `success: false`; unsupported: not sent, the adapter did not announce it; closed: the
# adapter is gone; resumed: the stop it was about is over; invalid: the answer cannot be read; busy: too many at once.
# `server` adds timeout.
Reason = Literal["refused", "unsupported", "closed", "resumed", "invalid", "busy", "timeout"]


@dataclass(slots=True)
class ToAdapter:
    """Write this body to the adapter."""

    body: bytes


@dataclass(slots=True)
class ToClient:
    """Write this body to the client."""

    body: bytes


@dataclass(slots=True)
class Publish:
    """An event came from the adapter: tell our own subscribers."""

    frame: Frame


@dataclass(slots=True)
class Answer:
    """Our own request number *token* was answered with success."""

    token: int
    response: Message


@dataclass(slots=True)
class Fail:
    """Our own request number *token* has failed or will not be answered; *text* is a sentence for the user."""

    token: int
    reason: Reason
    text: str


@dataclass(slots=True)
class Serve:
    """The adapter asks something that we answer ourselves, by `Proxy.reply(token, ...)`."""

    token: int
    request: Message


@dataclass(slots=True)
class ForAgent:
    """The client asks us, not the adapter: answer by `Proxy.answer_client(seq, command, ...)`, once."""

    seq: int
    command: str
    arguments: dict[str, Any]


@dataclass(slots=True)
class Note:
    """Something odd happened that has no other addressee; keep it for error messages."""

    text: str


@dataclass(slots=True)
class HangUp:
    """End the connection to the client, after what was written to it is out."""


@dataclass(slots=True)
class Adopt:
    """A child of the debuggee waits for its client at an address of the adapter's.

    Open a way there that leads through us, then call `Editor.adopted(token, host, port)` with its address.
    """

    token: int
    host: str
    port: int
    process_id: int | None


@dataclass(slots=True)
class Release:
    """The client will not come for this child, which waits: let it run."""

    process_id: int


@dataclass(slots=True)
class Attached:
    """The client of this session has come for the child *process_id*."""

    process_id: int


@dataclass(slots=True)
class Respawn:
    """End the adapter and start a fresh one, then call `Editor.respawned` (or `Proxy.adapter_gone`)."""


@dataclass(slots=True)
class Abandon:
    """End the adapter; the client has been told all that there is to tell."""


@dataclass(slots=True)
class Later:
    """After so many *seconds* carry out what *then* gives, which may be nothing."""

    seconds: float
    then: "Callable[[], list[Effect]]"


ForHub = Adopt | Release | Attached
Effect = (
    ToAdapter
    | ToClient
    | Publish
    | Answer
    | Fail
    | Serve
    | ForAgent
    | Note
    | HangUp
    | Later
    | ForHub
    | Respawn
    | Abandon
)
