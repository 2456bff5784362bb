"""What every model backend takes and gives: tools, messages, turns, usage, errors.

Nothing here knows a vendor. The dataclasses are frozen and JSON-able, because a conversation is journalled and played
again (`Turn.to_json`, `Turn.from_json`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from dap_agent.errors import DapAgentError

ErrorKind = Literal[
    "missing-key",
    "wrong-key",
    "rate-limit",
    "server",
    "timeout",
    "context-overflow",
    "bad-request",
    "unreachable",
    "script",
]
Stop = Literal["end", "calls", "length", "refusal"]
_STOPS: tuple[Stop, ...] = ("end", "calls", "length", "refusal")


class ModelError(DapAgentError):
    """The model could not be asked, or gave no usable answer.

    Args:
        message: one sentence: what happened, why, what to do. Never holds a key.
        kind: what kind of failure it is, for code that reacts to it.
    """

    def __init__(self, message: str, kind: ErrorKind) -> None:
        super().__init__(message)
        self.kind: ErrorKind = kind


@dataclass(frozen=True)
class ToolSpec:
    """A tool that the model may call.

    Args:
        name: letters, digits, `_` and `-` (both vendors' rule).
        description: what it does, for the model.
        parameters: JSON Schema of the arguments, an object schema.
    """

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True)
class Call:
    """One tool call of a turn.

    Args:
        id: ties the call to its `ToolResult`.
        name: the tool's name as the model wrote it (it may not exist).
        arguments: the arguments, or None when the model's JSON does not parse to an object.
        raw: the arguments as the model wrote them.
    """

    id: str
    name: str
    arguments: dict[str, Any] | None
    raw: str

    def to_json(self) -> dict[str, Any]:
        """The call as a JSON object."""
        return {"id": self.id, "name": self.name, "arguments": self.arguments, "raw": self.raw}


@dataclass(frozen=True)
class Usage:
    """Tokens of one request, or of several added up.

    Args:
        input_tokens: all tokens of the prompt, those read from or written to a cache included.
        output_tokens: all generated tokens, hidden reasoning included.
        cached_tokens: the part of *input_tokens* that was read from a prompt cache.
        cache_write_tokens: the part of *input_tokens* that was written to a prompt cache.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
        )

    def to_json(self) -> dict[str, int]:
        """The four counts as a JSON object."""
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cached_tokens": self.cached_tokens,
            "cache_write_tokens": self.cache_write_tokens,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Usage":
        """The opposite of `to_json`; absent counts are 0."""
        return cls(
            int(data.get("input_tokens", 0)),
            int(data.get("output_tokens", 0)),
            int(data.get("cached_tokens", 0)),
            int(data.get("cache_write_tokens", 0)),
        )


@dataclass(frozen=True)
class Turn:
    """One answer of the model.

    Args:
        text: what it said.
        calls: what it wants called. They may be there with stop `length` too (the last one may then be incomplete);
            each call needs its `ToolResult` before the next request.
        stop: why it ended: it was done, it calls tools, the token limit (or our size limit), it refused.
        usage: tokens of this request.
        raw: the provider's own form of the answer, JSON-able, sent back unchanged in later requests (thinking blocks
            and signatures must not change).
    """

    text: str
    calls: tuple[Call, ...]
    stop: Stop
    usage: Usage
    raw: Any = None

    def to_json(self) -> dict[str, Any]:
        """The turn as a JSON object, as the journal keeps it."""
        data: dict[str, Any] = {
            "text": self.text,
            "calls": [call.to_json() for call in self.calls],
            "stop": self.stop,
            "usage": self.usage.to_json(),
        }
        if self.raw is not None:
            data["raw"] = self.raw
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Turn":
        """The opposite of `to_json`.

        Raises:
            ValueError: *data* is not such an object; the message says what is wrong.
        """
        given = {key: value for key, value in data.items() if value is not None}
        text, calls, usage = given.get("text", ""), given.get("calls", []), given.get("usage", {})
        if not isinstance(text, str) or not isinstance(calls, list) or not isinstance(usage, Mapping):
            raise ValueError('"text" must be a string, "calls" a list, "usage" an object')
        made = tuple(_call(call, number) for number, call in enumerate(calls, 1))
        stop = data.get("stop") or ("calls" if made else "end")
        if stop not in _STOPS:
            raise ValueError(f'"stop" must be one of {", ".join(_STOPS)}, not {stop!r}')
        return cls(text, made, stop, Usage.from_json(usage), data.get("raw"))


def _call(data: Any, number: int) -> Call:
    import json

    if not isinstance(data, Mapping) or not isinstance(data.get("name"), str):
        raise ValueError(f'call {number} must be an object with a "name"')
    arguments = data.get("arguments")
    if arguments is not None and not isinstance(arguments, dict):
        raise ValueError(f'"arguments" of call {number} ({data["name"]}) must be an object')
    if arguments is None and "raw" not in data:
        arguments = {}
    raw = data.get("raw")
    if not isinstance(raw, str):
        raw = json.dumps(arguments, ensure_ascii=False)
    return Call(str(data.get("id") or f"call_{number}"), data["name"], arguments, raw)


@dataclass(frozen=True)
class UserMessage:
    """What we tell the model."""

    text: str


@dataclass(frozen=True)
class AssistantMessage:
    """What the model answered before."""

    turn: Turn


@dataclass(frozen=True)
class ToolResult:
    """The answer to one call.

    Args:
        call_id: the `Call.id`.
        name: the tool's name.
        content: the result, as text for the model.
        error: the call failed; *content* tells how to call right.
    """

    call_id: str
    name: str
    content: str
    error: bool = False


@dataclass(frozen=True)
class ToolResults:
    """The answers to all calls of the turn before, in the order of the calls."""

    results: tuple[ToolResult, ...]


Message = UserMessage | AssistantMessage | ToolResults


@dataclass(frozen=True)
class Retry:
    """Told to a backend's `on_retry` before a request is repeated.

    Args:
        reason: what went wrong, one sentence.
        attempt: the number of the attempt that failed, from 1.
        delay: seconds until the next attempt.
        discarded: how many characters already given to `on_text` are void, because the answer starts again.
    """

    reason: str
    attempt: int
    delay: float
    discarded: int = 0

    def __str__(self) -> str:
        return f"{self.reason} Trying again in {self.delay:.1f} s."


OnRetry = Callable[[Retry], None]


@runtime_checkable
class Backend(Protocol):
    """A model. Backends of this package also have an attribute `on_retry: OnRetry | None`, called before each retry."""

    @property
    def name(self) -> str:
        """The model as given, for example `anthropic:claude-sonnet-4-5`."""

    async def complete(
        self,
        *,
        system: str,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        max_tokens: int,
        force: bool = False,
        on_text: Callable[[str], None] | None = None,
    ) -> Turn:
        """Ask for the next turn.

        Args:
            system: the system prompt; keep it and *tools* the same for a whole conversation, so that caches hold.
            messages: the conversation; append only, for the same reason. Each call of an assistant message must be
                answered in the `ToolResults` that follows.
            tools: what the model may call.
            max_tokens: at most so many tokens are generated.
            force: the model must call a tool (where the provider can enforce that; check the turn).
            on_text: is given the text as it arrives.

        Raises:
            ModelError: no answer; retries are used up or pointless.
        """

    def cost(self, usage: Usage) -> float | None:
        """US dollars for *usage*, None if the price is not known."""

    async def aclose(self) -> None:
        """Close connections. The backend cannot be used after that."""
