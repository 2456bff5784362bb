"""The Responses API of OpenAI, stateless: for models that take no tools over Chat Completions.

gpt-5.4 and later reason by default, and Chat Completions refuses function tools together with reasoning.
"""

from collections.abc import Sequence
from typing import Any

from dap_agent.models.base import AssistantMessage, Call, Message, Stop, ToolSpec, Turn, Usage, UserMessage
from dap_agent.models.chat import function, result_text
from dap_agent.models.errors import BrokenStream, StreamError
from dap_agent.models.sdk import EMPTY, MAX_REPLY, NO_ANSWER, TextSink, parse_arguments, sendable, unparsed, whole

API = "openai-responses"


def render(messages: Sequence[Message], model: str) -> list[dict[str, Any]]:
    """The conversation as input items."""
    items: list[dict[str, Any]] = []
    for message in messages:
        if isinstance(message, UserMessage):
            items.append(_message("user", "input_text", message.text if message.text.strip() else EMPTY))
        elif isinstance(message, AssistantMessage):
            items.extend(_assistant(message.turn, model))
        else:
            items.extend(
                {"type": "function_call_output", "call_id": result.call_id, "output": result_text(result)}
                for result in message.results
            )
    return items


def render_tools(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    """The tools; not strict, which would demand that every parameter is required."""
    return [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
            "strict": False,
        }
        for tool in tools
    ]


def _assistant(turn: Turn, model: str) -> list[dict[str, Any]]:
    raw = turn.raw if isinstance(turn.raw, dict) else {}
    if raw.get("api") == API and raw.get("model") == model and raw.get("output"):
        return list(raw["output"])  # reasoning items are encrypted and bound to what follows them
    items = [_message("assistant", "output_text", turn.text)] if turn.text else []
    for call in turn.calls:
        id_, name, arguments = function(call)
        items.append({"type": "function_call", "call_id": id_, "name": name, "arguments": arguments})
    return items or [_message("assistant", "output_text", NO_ANSWER)]


def _message(role: str, kind: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


class Reply:
    """Collects the events of one answer; see `chat.Reply`."""

    def __init__(self, model: str, sink: TextSink) -> None:
        self._model = model
        self._sink = sink
        self._items: list[dict[str, Any]] = []
        self._usage = Usage()
        self._status: str | None = None
        self._reason = ""
        self.size = 0

    def feed(self, event: Any) -> None:
        """Take one event."""
        kind = getattr(event, "type", "") or ""
        if kind.endswith(".delta") and isinstance(getattr(event, "delta", None), str):
            self.size += len(event.delta)
            if kind == "response.output_text.delta":
                self._sink.feed(event.delta)
        elif kind == "response.output_item.done":
            self._items.append(event.item.to_dict(mode="json", exclude_none=True))
        elif kind in ("response.completed", "response.incomplete"):
            self._status = kind.rpartition(".")[2]
            self._usage = _usage(event.response.usage)
            self._reason = getattr(event.response.incomplete_details, "reason", None) or ""
        elif kind == "response.failed":
            error = event.response.error
            raise StreamError(error.to_dict(mode="json") if error is not None else {"message": "no reason given"})
        elif kind == "error":
            raise StreamError(event.to_dict(mode="json"))

    def turn(self) -> Turn:
        """The answer, when the stream is over.

        Raises:
            BrokenStream: it ended too early.
        """
        cut = self.size > MAX_REPLY
        if self._status is None and not cut:
            raise BrokenStream("the stream ended before the message did")
        texts: list[str] = []
        refusals: list[str] = []
        calls: list[Call] = []
        for item in self._items:
            if item.get("type") == "message":
                for part in item.get("content") or ():
                    texts.append(part.get("text") or "")
                    refusals.append(part.get("refusal") or "")
            elif item.get("type") == "function_call":
                raw = item.get("arguments") or ""
                call = Call(item["call_id"], item["name"], parse_arguments(raw), raw)
                calls.append(call)
                if call.arguments is None:
                    import json

                    item["arguments"] = json.dumps(unparsed(raw))
        text, refusal = whole("".join(texts)), whole("".join(refusals))
        stop: Stop = "calls" if calls else "end"
        if cut or self._reason == "max_output_tokens":
            stop = "length"
        elif self._reason == "content_filter" or (refusal and not calls):
            stop, text = "refusal", text or refusal
        items = self._items
        while items and items[-1].get("type") == "reasoning":
            items = items[:-1]  # cut off while it thought: the API does not take a thought without what follows it
        raw_turn = sendable({"api": API, "model": self._model, "output": items}) if items else None
        return Turn(text, tuple(calls), stop, self._usage, raw_turn)


def _usage(usage: Any) -> Usage:
    if usage is None:
        return Usage()
    details = usage.input_tokens_details
    return Usage(
        usage.input_tokens or 0,
        usage.output_tokens or 0,
        getattr(details, "cached_tokens", None) or 0,
        getattr(details, "cache_write_tokens", None) or 0,
    )
