"""The vendors' wire formats from the server's side: one `Answer` as Messages, Chat Completions or Responses.

For `dap_agent.testing`; nothing here is used when a real model is asked.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")
Event = tuple[str | None, Any]  # (name of the server-sent event, its data: JSON-able, or text as it is)


@dataclass(frozen=True)
class Answer:
    """What the server says, whatever the vendor.

    Args:
        text: the text.
        calls: (name, arguments); arguments that are a string are sent as they are, malformed or not.
        stop: `end`, `calls`, `length` or `refusal`; None: `calls` if there are calls, else `end`.
        input_tokens: all tokens of the prompt.
        output_tokens: generated tokens.
        cached_tokens: the part of *input_tokens* that came from a cache.
        cache_write_tokens: the part of *input_tokens* that was written to a cache.
        fragment: characters per piece of streamed text or arguments.
        thinking: hidden reasoning before the answer.
        ids: ids of the calls; made up if there are too few.
    """

    text: str = ""
    calls: Sequence[tuple[str, Any]] = ()
    stop: str | None = None
    input_tokens: int = 100
    output_tokens: int = 20
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    fragment: int = 7
    thinking: str = ""
    ids: Sequence[str] = ()

    @property
    def reason(self) -> str:
        """Why the answer ends."""
        return self.stop or ("calls" if self.calls else "end")

    def functions(self, number: int, prefix: str) -> list[tuple[str, str, str]]:
        """(id, name, arguments as text) of the calls; *number* is that of the request, so that ids differ."""
        made = []
        for index, (name, arguments) in enumerate(self.calls):
            text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            id_ = self.ids[index] if index < len(self.ids) else f"{prefix}_{number}_{index}"
            made.append((id_, name, text))
        return made

    def pieces(self, text: str) -> list[str]:
        """*text* in fragments."""
        return [text[start : start + self.fragment] for start in range(0, len(text), self.fragment)]


_ANTHROPIC_STOPS = {"end": "end_turn", "calls": "tool_use", "length": "max_tokens", "refusal": "refusal"}
_CHAT_STOPS = {"end": "stop", "calls": "tool_calls", "length": "length", "refusal": "content_filter"}


def _anthropic_blocks(answer: Answer, number: int) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """(block as it begins, its deltas)."""
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    if answer.thinking:
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in answer.pieces(answer.thinking)]
        if answer.text or answer.calls or answer.reason != "length":  # else it was cut off while it thought
            deltas.append({"type": "signature_delta", "signature": f"signature-{number}"})
        blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, deltas))
    if answer.text:
        deltas = [{"type": "text_delta", "text": piece} for piece in answer.pieces(answer.text)]
        blocks.append(({"type": "text", "text": ""}, deltas))
    for id_, name, arguments in answer.functions(number, "toolu"):
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in answer.pieces(arguments)]
        blocks.append(({"type": "tool_use", "id": id_, "name": name, "input": {}}, deltas))
    return blocks


def _anthropic_head(answer: Answer, model: str, number: int) -> dict[str, Any]:
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": answer.input_tokens - answer.cached_tokens - answer.cache_write_tokens,
            "output_tokens": 1,
            "cache_read_input_tokens": answer.cached_tokens,
            "cache_creation_input_tokens": answer.cache_write_tokens,
        },
    }


def anthropic_events(answer: Answer, model: str, number: int) -> list[Event]:
    """The stream of `/v1/messages`."""
    events: list[Event] = [
        ("message_start", {"type": "message_start", "message": _anthropic_head(answer, model, number)}),
        ("ping", {"type": "ping"}),
    ]
    for index, (block, deltas) in enumerate(_anthropic_blocks(answer, number)):
        start = {"type": "content_block_start", "index": index, "content_block": block}
        events.append(("content_block_start", start))
        for delta in deltas:
            event = {"type": "content_block_delta", "index": index, "delta": delta}
            events.append(("content_block_delta", event))
        events.append(("content_block_stop", {"type": "content_block_stop", "index": index}))
    end = {
        "type": "message_delta",
        "delta": {"stop_reason": _ANTHROPIC_STOPS[answer.reason], "stop_sequence": None},
        "usage": {"output_tokens": answer.output_tokens},
    }
    events += [("message_delta", end), ("message_stop", {"type": "message_stop"})]
    return events


def anthropic_message(answer: Answer, model: str, number: int) -> dict[str, Any]:
    """The answer of `/v1/messages` without a stream."""
    message = _anthropic_head(answer, model, number)
    for block, deltas in _anthropic_blocks(answer, number):
        for delta in deltas:
            for key, value in delta.items():
                if key in block and key != "type":
                    block[key] += value
        if block["type"] == "tool_use":
            block["input"] = json.loads("".join(delta["partial_json"] for delta in deltas) or "{}")
        message["content"].append(block)
    message["stop_reason"] = _ANTHROPIC_STOPS[answer.reason]
    message["usage"]["output_tokens"] = answer.output_tokens
    return message


def _chat_usage(answer: Answer) -> dict[str, Any]:
    details = {"cached_tokens": answer.cached_tokens, "cache_write_tokens": answer.cache_write_tokens}
    return {
        "prompt_tokens": answer.input_tokens,
        "completion_tokens": answer.output_tokens,
        "total_tokens": answer.input_tokens + answer.output_tokens,
        "prompt_tokens_details": details,
    }


def chat_chunks(answer: Answer, model: str, number: int, *, usage: bool) -> list[Event]:
    """The stream of `/v1/chat/completions`; *usage*: the request asked for it."""
    head = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": 1, "model": model}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> Event:
        return None, {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    events = [chunk({"role": "assistant", "content": ""})]
    events += [chunk({"reasoning_content": piece}) for piece in answer.pieces(answer.thinking)]
    events += [chunk({"content": piece}) for piece in answer.pieces(answer.text)]
    for index, (id_, name, arguments) in enumerate(answer.functions(number, "call")):
        begin = {"index": index, "id": id_, "type": "function", "function": {"name": name, "arguments": ""}}
        events.append(chunk({"tool_calls": [begin]}))
        for piece in answer.pieces(arguments):
            events.append(chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))
    events.append(chunk({}, _CHAT_STOPS[answer.reason]))
    if usage:
        events.append((None, {**head, "choices": [], "usage": _chat_usage(answer)}))
    events.append((None, "[DONE]"))
    return events


def chat_completion(answer: Answer, model: str, number: int) -> dict[str, Any]:
    """The answer of `/v1/chat/completions` without a stream."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None, "refusal": None}
    calls = answer.functions(number, "call")
    if calls:
        message["tool_calls"] = [
            {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
            for id_, name, arguments in calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": _CHAT_STOPS[answer.reason], "logprobs": None}
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [choice],
        "usage": _chat_usage(answer),
    }


def responses_events(answer: Answer, model: str, number: int) -> list[Event]:
    """The stream of `/v1/responses`."""
    response: dict[str, Any] = {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1,
        "model": model,
        "status": "in_progress",
        "output": [],
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
    }
    events: list[Event] = []

    def emit(kind: str, **fields: Any) -> None:
        events.append((kind, {"type": kind, "sequence_number": len(events), **fields}))

    emit("response.created", response=dict(response))
    for index, item in enumerate(response_items(answer, number)):
        emit("response.output_item.added", output_index=index, item=item)
        where = {"output_index": index, "item_id": item["id"]}
        if item["type"] == "message":
            for piece in answer.pieces(answer.text):
                emit("response.output_text.delta", **where, content_index=0, delta=piece, logprobs=[])
        elif item["type"] == "function_call":
            for piece in answer.pieces(item["arguments"]):
                emit("response.function_call_arguments.delta", **where, delta=piece)
        emit("response.output_item.done", output_index=index, item=item)
        response["output"].append(item)
    details = {"cached_tokens": answer.cached_tokens, "cache_write_tokens": answer.cache_write_tokens}
    response["usage"] = {
        "input_tokens": answer.input_tokens,
        "input_tokens_details": details,
        "output_tokens": answer.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": answer.input_tokens + answer.output_tokens,
    }
    reason = {"length": "max_output_tokens", "refusal": "content_filter"}.get(answer.reason)
    response["status"] = "incomplete" if reason else "completed"
    response["incomplete_details"] = {"reason": reason} if reason else None
    emit(f"response.{response['status']}", response=response)
    return events


def response_items(answer: Answer, number: int) -> list[dict[str, Any]]:
    """The output items of a response."""
    items: list[dict[str, Any]] = []
    if answer.thinking:
        items.append(
            {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": f"sealed-{number}"}
        )
    if answer.text:
        part = {"type": "output_text", "text": answer.text, "annotations": []}
        items.append(
            {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": [part]}
        )
    for id_, name, arguments in answer.functions(number, "call"):
        items.append({"type": "function_call", "id": f"fc_{id_}", "call_id": id_, "name": name, "arguments": arguments})
    return items


def error_body(api: str, status: int, message: str, kind: str | None = None, code: str | None = None) -> Any:
    """An error in the vendor's shape; *api* is `anthropic` or `openai`."""
    kinds = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error"}
    kinds |= {413: "request_too_large", 429: "rate_limit_error", 529: "overloaded_error"}
    kind = kind or kinds.get(status, "api_error")
    if api == "anthropic":
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_test"}
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def encode_events(events: Sequence[Event]) -> bytes:
    """The events as they go over the wire; not ASCII only, so that a stream can be cut inside of a character."""
    lines = []
    for name, data in events:
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        if _SURROGATE.search(text):
            text = json.dumps(data)  # lone surrogates can only travel as escapes
        lines.append((f"event: {name}\n" if name else "") + f"data: {text}\n\n")
    return "".join(lines).encode()
