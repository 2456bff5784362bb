"""`anthropic:NAME` through the anthropic SDK 2.x: Messages API, streaming, tool use, prompt caching.

The raw event stream is read, not the SDK's message helper: that one parses the arguments of a call anew with each
piece, gives up the whole answer when they are malformed, and takes truncated ones for complete.

Caching: four marks (the API's limit) on the last tool, the system prompt and the last blocks of the last two user
messages. The marks move, what they mark does not change, so each request finds the one before in the cache.
"""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from dap_agent.models import prices
from dap_agent.models.base import (
    AssistantMessage,
    Call,
    Message,
    ModelError,
    Stop,
    ToolResults,
    ToolSpec,
    Turn,
    Usage,
    UserMessage,
)
from dap_agent.models.errors import BrokenStream, Endpoint, Failure, check_key, header_secrets, missing_key, public_url
from dap_agent.models.sdk import EMPTY, MAX_REPLY, NO_ANSWER, SdkBackend, TextSink, parse_arguments, sendable, unparsed
from dap_agent.models.sdk import whole as whole_text

_API = "anthropic"
_KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
_URL = "ANTHROPIC_BASE_URL"
_MARK = {"type": "ephemeral"}
_STOPS: dict[str, Stop] = {
    "tool_use": "calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}
_TOO_MANY = re.compile(r"max_tokens: \d+ > (\d+)")


def create(name: str, *, timeout: float = 120.0, max_retries: int = 4) -> "AnthropicBackend":
    """The backend for the model *name*.

    Keys and the base URL are those of the SDK: `ANTHROPIC_API_KEY`, `ANTHROPIC_AUTH_TOKEN`, `ANTHROPIC_BASE_URL`, or a
    profile of the SDK's own.

    Raises:
        ModelError: no key, or one that cannot be sent; a `DAP_AGENT_PRICE` that is none.
    """
    prices.from_environment()  # a wrong one must not come out after the first paid answer
    keys = {variable: os.environ[variable] for variable in _KEYS if os.environ.get(variable)}
    for variable, key in keys.items():
        check_key(key, variable)
    endpoint = Endpoint(
        label="Anthropic",
        model=name,
        url=public_url(os.environ.get(_URL) or "https://api.anthropic.com"),
        url_source=_URL,
        key_variables=_KEYS,
        secrets=(*keys.values(), *header_secrets("ANTHROPIC_CUSTOM_HEADERS")),
        timeout=timeout,
    )
    backend = AnthropicBackend(f"anthropic:{name}", endpoint, max_retries=max_retries)
    if not keys:
        backend.require_credentials()
    return backend


class AnthropicBackend(SdkBackend):
    """See `create`."""

    def __init__(self, name: str, endpoint: Endpoint, *, max_retries: int) -> None:
        super().__init__(name, endpoint, max_retries=max_retries)
        self._may_force = True
        self._most_tokens: int | None = None

    def require_credentials(self) -> None:
        """Look for the SDK's other sources of credentials (a profile, federation, custom headers).

        Raises:
            ModelError: there are none, or they cannot be read.
        """
        import anthropic

        try:
            client = self._make(anthropic)
        except anthropic.AnthropicError as error:
            why = self._endpoint.clean(str(error))
        else:
            headers = {header.lower() for header in client.default_headers}
            if client.credentials is not None or headers & {"authorization", "x-api-key"}:
                return
            why = ""
        failure = missing_key(self._endpoint)
        raise ModelError(f"{failure.message} ({why})" if why else failure.message, failure.kind)

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
        """See `Backend.complete`."""

        async def attempt(sink: TextSink) -> Turn:
            body = self._body(system, messages, tools, max_tokens, force)
            if self._client is None:
                self._client = self._make(await self._sdk("anthropic"))
            reply = _Reply(self._endpoint.model, sink)
            async with await self._client.messages.create(**body, stream=True) as stream:
                async for event in stream:
                    reply.feed(event)
                    if reply.size > MAX_REPLY:
                        break
            return reply.turn()

        return await self._ask(attempt, on_text)

    def _make(self, sdk: Any) -> Any:
        timeout = self._endpoint.timeout
        client = sdk.AsyncAnthropic(max_retries=0, timeout=sdk.Timeout(timeout, connect=min(10.0, timeout)))
        self._endpoint = replace(self._endpoint, url=public_url(str(client.base_url)))
        return client

    def _body(
        self, system: str, messages: Sequence[Message], tools: Sequence[ToolSpec], max_tokens: int, force: bool
    ) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._endpoint.model,
            "max_tokens": min(max_tokens, self._most_tokens or max_tokens),
            "messages": render(messages, self._endpoint.model),
        }
        if system:
            body["system"] = [{"type": "text", "text": system, "cache_control": _MARK}]
        if tools:
            body["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": tool.parameters} for tool in tools
            ]
            body["tools"][-1]["cache_control"] = _MARK
            if force and self._may_force:
                body["tool_choice"] = {"type": "any"}
        return dict(sendable(body))

    def _adapt(self, failure: Failure) -> bool:
        # Models that always think (Opus 5.5, Sonnet 5.5, Fable 5.1) answer 400 to a forced tool choice.
        if self._may_force and re.search(r"tool_choice|forced? tool", failure.detail, re.IGNORECASE):
            self._may_force = False
            return True
        limit = _TOO_MANY.search(failure.detail)
        if limit and self._most_tokens != int(limit[1]) > 0:
            self._most_tokens = int(limit[1])
            return True
        return False


def render(messages: Sequence[Message], model: str) -> list[dict[str, Any]]:
    """*messages* as the API wants them: alternating roles, and the cache marks."""
    rendered: list[dict[str, Any]] = []
    for message in messages:
        role = "assistant" if isinstance(message, AssistantMessage) else "user"
        blocks = _blocks(message, model)
        if rendered and rendered[-1]["role"] == role:
            rendered[-1]["content"].extend(blocks)
        else:
            rendered.append({"role": role, "content": blocks})
    for message_out in [each for each in rendered if each["role"] == "user"][-2:]:
        message_out["content"][-1] = {**message_out["content"][-1], "cache_control": _MARK}
    return rendered


def _blocks(message: Message, model: str) -> list[dict[str, Any]]:
    if isinstance(message, UserMessage):
        return [{"type": "text", "text": message.text if message.text.strip() else EMPTY}]
    if isinstance(message, ToolResults):
        return [
            {
                "type": "tool_result",
                "tool_use_id": _id(result.call_id),
                "content": result.content if result.content.strip() else EMPTY,
                **({"is_error": True} if result.error else {}),
            }
            for result in message.results
        ]
    turn = message.turn
    raw = turn.raw if isinstance(turn.raw, dict) else {}
    if raw.get("api") == _API and raw.get("model") == model and raw.get("content"):
        return list(raw["content"])  # thinking blocks are bound to their model and must come back unchanged
    blocks: list[dict[str, Any]] = [{"type": "text", "text": turn.text}] if turn.text.strip() else []
    for call in turn.calls:
        given = call.arguments if call.arguments is not None else unparsed(call.raw)
        blocks.append({"type": "tool_use", "id": _id(call.id), "name": call.name, "input": given})
    return blocks or [{"type": "text", "text": NO_ANSWER}]


def _id(text: str) -> str:
    """The API takes only these characters in ids; those of other providers may hold more."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", text)


class _Reply:
    """Collects the events of one answer."""

    def __init__(self, model: str, sink: TextSink) -> None:
        self._model = model
        self._sink = sink
        self._blocks: dict[int, dict[str, Any]] = {}
        self._pieces: dict[int, list[str]] = {}
        self._usage: dict[str, int] = {}
        self._stop: str | None = None
        self._explanation = ""
        self.size = 0

    def feed(self, event: Any) -> None:
        """Take one event of the stream; unknown ones (`ping`, future ones) are ignored."""
        kind = getattr(event, "type", None)
        if kind == "message_start":
            self._count(event.message.usage)
        elif kind == "content_block_start":
            self._blocks[event.index] = event.content_block.to_dict(mode="json", exclude_none=True)
            self._pieces[event.index] = []
        elif kind == "content_block_delta":
            self._delta(event.index, event.delta)
        elif kind == "message_delta":
            self._count(event.usage)
            self._stop = event.delta.stop_reason or self._stop
            self._explanation = getattr(event.delta.stop_details, "explanation", None) or ""

    def _delta(self, index: int, delta: Any) -> None:
        if index not in self._blocks:
            raise BrokenStream("a piece of a block that was not begun")
        if delta.type == "signature_delta":
            self._blocks[index]["signature"] = delta.signature
            return
        field = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}.get(delta.type)
        if field is None:
            return
        piece: str = getattr(delta, field)
        self._pieces[index].append(piece)
        self.size += len(piece)
        if field == "text":
            self._sink.feed(piece)

    def _count(self, usage: Any) -> None:
        for key in ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"):
            value = getattr(usage, key, None)
            if value is not None:  # counts of a message_delta are totals, and optional
                self._usage[key] = value

    def turn(self) -> Turn:
        """The answer, when the stream is over.

        Raises:
            BrokenStream: it ended too early.
        """
        cut = self.size > MAX_REPLY
        if self._stop is None and not cut:
            raise BrokenStream("the stream ended before the message did")
        texts: list[str] = []
        calls: list[Call] = []
        content: list[dict[str, Any]] = []
        for index, block in sorted(self._blocks.items()):
            joined = "".join(self._pieces[index])
            if block["type"] == "text":
                block["text"] = whole_text(block.get("text", "") + joined)
                texts.append(block["text"])
                if not block["text"].strip():
                    continue  # the API does not take empty text back
            elif block["type"] == "thinking":
                block["thinking"] = block.get("thinking", "") + joined
                if not block.get("signature"):
                    continue  # cut off while it thought: the API does not take a thought without its signature
            elif block["type"] == "tool_use":
                call = _call(block, joined)
                calls.append(call)
                block["input"] = call.arguments if call.arguments is not None else unparsed(call.raw)
            content.append(block)
        if content and content[-1]["type"] in ("thinking", "redacted_thinking"):
            content.append({"type": "text", "text": NO_ANSWER})  # nor a message that ends with one
        stop = "length" if cut else _STOPS.get(self._stop or "", "end")
        if stop == "end" and calls:
            stop = "calls"
        text = "".join(texts) or (self._explanation if stop == "refusal" else "")
        raw = {"api": _API, "model": self._model, "content": content}
        return Turn(text, tuple(calls), stop, self._total(), sendable(raw) if content else None)

    def _total(self) -> Usage:
        read = self._usage.get("cache_read_input_tokens", 0)
        written = self._usage.get("cache_creation_input_tokens", 0)
        plain = self._usage.get("input_tokens", 0)  # the API counts these three apart
        return Usage(plain + read + written, self._usage.get("output_tokens", 0), read, written)


def _call(block: dict[str, Any], raw: str) -> Call:
    if raw:
        return Call(str(block["id"]), str(block["name"]), parse_arguments(raw), raw)
    import json

    given = block.get("input") or {}
    return Call(str(block["id"]), str(block["name"]), dict(given), json.dumps(given, ensure_ascii=False))
