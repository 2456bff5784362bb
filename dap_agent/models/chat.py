"""Chat Completions (OpenAI and compatible servers): how a conversation is written, and how the stream is read."""

import json
from collections.abc import Sequence
from typing import Any

from dap_agent.models.base import AssistantMessage, Call, Message, Stop, ToolResult, ToolSpec, Turn, Usage, UserMessage
from dap_agent.models.errors import BrokenStream
from dap_agent.models.sdk import EMPTY, MAX_REPLY, NO_ANSWER, TextSink, parse_arguments, sendable, unparsed, whole

API = "openai-chat"
_STOPS: dict[str, Stop] = {
    "tool_calls": "calls",
    "function_call": "calls",
    "length": "length",
    "content_filter": "refusal",
}


def render(system: str, messages: Sequence[Message], model: str) -> list[dict[str, Any]]:
    """The conversation with native tool calls."""
    rendered: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    for message in messages:
        if isinstance(message, UserMessage):
            rendered.append({"role": "user", "content": message.text if message.text.strip() else EMPTY})
        elif isinstance(message, AssistantMessage):
            rendered.append(_assistant(message.turn, model))
        else:
            rendered.extend(
                {"role": "tool", "tool_call_id": result.call_id, "content": result_text(result)}
                for result in message.results
            )
    return rendered


def render_tools(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    """The tools as functions."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in tools
    ]


def result_text(result: ToolResult) -> str:
    """The content of a tool message; the API has no mark for an error, so the text tells it."""
    content = result.content if result.content.strip() else EMPTY
    return f"Error: {content}" if result.error and not content.lower().startswith("error") else content


def _assistant(turn: Turn, model: str) -> dict[str, Any]:
    raw = turn.raw if isinstance(turn.raw, dict) else {}
    if raw.get("api") == API and raw.get("model") == model and isinstance(raw.get("message"), dict):
        return dict(raw["message"])
    return assistant(turn.text, [(function(call), {}) for call in turn.calls])


def function(call: Call) -> tuple[str, str, str]:
    """(id, name, arguments as JSON) of a call, as the API takes it back."""
    if call.arguments is not None:
        return call.id, call.name, call.raw if call.raw.strip() else "{}"
    return call.id, call.name, json.dumps(unparsed(call.raw))


def assistant(text: str, calls: Sequence[tuple[tuple[str, str, str], dict[str, Any]]]) -> dict[str, Any]:
    """An assistant message from its text and its calls ((id, name, arguments as JSON), extra fields of the server)."""
    message: dict[str, Any] = {"role": "assistant", "content": text or (None if calls else NO_ANSWER)}
    if calls:
        message["tool_calls"] = [
            {**extra, "id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
            for (id_, name, arguments), extra in calls
        ]
    return message


class Reply:
    """Collects the chunks of one answer.

    Args:
        model: the model asked, for `Turn.raw`.
        sink: gets the text.
        taken: ids of calls in the conversation so far; a server's id that is among them is replaced.
    """

    def __init__(self, model: str, sink: TextSink, taken: set[str]) -> None:
        self._model = model
        self._sink = sink
        self._taken = set(taken)
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls: list[dict[str, Any]] = []
        self._slots: dict[int, dict[str, Any]] = {}
        self._usage = Usage()
        self._finish: str | None = None
        self.size = 0

    def feed(self, chunk: Any) -> None:
        """Take one chunk."""
        if getattr(chunk, "usage", None) is not None:
            self._usage = usage_of(chunk.usage)
        for choice in getattr(chunk, "choices", None) or ():
            delta = choice.delta
            if delta is not None:
                self._delta(delta)
            self._finish = choice.finish_reason or self._finish

    def _delta(self, delta: Any) -> None:
        if delta.content:
            self._text.append(delta.content)
            self.size += len(delta.content)
            self._sink.feed(delta.content)
        if getattr(delta, "refusal", None):
            self._refusal.append(delta.refusal)
        extra = delta.model_extra or {}
        hidden = extra.get("reasoning_content") or extra.get("reasoning")
        self.size += len(hidden) if isinstance(hidden, str) else 0
        for part in delta.tool_calls or ():
            self._part(part)

    def _part(self, part: Any) -> None:
        slot = self._slot(part.index, part.id)
        extra = {key: value for key, value in (part.model_extra or {}).items() if value is not None}
        slot["extra"].update(extra)  # some servers want such fields (signatures) back
        if part.function is None:
            return
        if part.function.name and not slot["name"]:  # some servers repeat the name in each piece
            slot["name"] = part.function.name
        if part.function.arguments:
            slot["pieces"].append(part.function.arguments)
            self.size += len(part.function.arguments)

    def _slot(self, index: int | None, id_: str | None) -> dict[str, Any]:
        """The call that a piece belongs to. Some servers send no index, or 0 for each of several calls."""
        key = index if index is not None else max(0, len(self._calls) - (0 if id_ else 1))
        slot = self._slots.get(key)
        if slot is None or (id_ and slot["id"] and id_ != slot["id"]):
            slot = {"id": "", "name": "", "pieces": [], "extra": {}}
            self._slots[key] = slot
            self._calls.append(slot)
        slot["id"] = id_ or slot["id"]
        return slot

    def turn(self) -> Turn:
        """The answer, when the stream is over.

        Raises:
            BrokenStream: it ended too early.
        """
        cut = self.size > MAX_REPLY
        if self._finish is None and not cut:
            raise BrokenStream("the stream ended before the message did")
        calls = tuple(self._call(slot, number) for number, slot in enumerate(self._calls, 1))
        stop: Stop = "length" if cut else _STOPS.get(self._finish or "", "end")
        text = whole("".join(self._text))
        if self._refusal and not calls:
            stop, text = "refusal", text or whole("".join(self._refusal))
        if stop == "end" and calls:
            stop = "calls"
        if stop == "calls" and not calls:
            stop = "end"
        extras = [slot["extra"] for slot in self._calls]
        message = assistant(text, list(zip(map(function, calls), extras, strict=True)))
        return Turn(text, calls, stop, self._usage, sendable({"api": API, "model": self._model, "message": message}))

    def _call(self, slot: dict[str, Any], number: int) -> Call:
        id_ = slot["id"]
        if not id_ or id_ in self._taken:
            id_ = next(
                name for turn in range(len(self._taken) + 1) if (name := f"call_{turn}_{number}") not in self._taken
            )
        self._taken.add(id_)
        raw = "".join(slot["pieces"])
        return Call(id_, slot["name"], parse_arguments(raw), raw)


def usage_of(usage: Any) -> Usage:
    """`CompletionUsage` as `Usage`."""
    details = usage.prompt_tokens_details
    cached = getattr(details, "cached_tokens", None) or 0
    written = getattr(details, "cache_write_tokens", None) or 0
    return Usage(usage.prompt_tokens or 0, usage.completion_tokens or 0, cached, written)
