"""What the vendors refuse: the protocol rules that a client can break, as checks for `dap_agent.testing`.

Each check returns the complaint that the vendor would answer with status 400, or None.
"""

import re
from collections.abc import Iterator
from typing import Any

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_ANTHROPIC_ID = re.compile(r"[a-zA-Z0-9_-]+")


def anthropic(body: Any) -> str | None:
    """Rules of `/v1/messages`."""
    return next(_anthropic(body), None)


def chat(body: Any) -> str | None:
    """Rules of `/v1/chat/completions`."""
    return next(_chat(body), None)


def responses(body: Any) -> str | None:
    """Rules of `/v1/responses`."""
    return next(_responses(body), None)


def _anthropic(body: Any) -> Iterator[str]:
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "model: Field required"
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        yield "max_tokens: Field required"
    for key in ("temperature", "top_p", "top_k"):
        if key in body:
            yield f"{key}: Extra inputs are not permitted"
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "messages: at least one message is required"
        return
    open_ids: list[str] = []
    for number, message in enumerate(messages):
        where = f"messages.{number}"
        role, content = message.get("role"), message.get("content")
        if role != ("assistant" if number % 2 else "user"):
            yield f"{where}: roles must alternate between user and assistant, beginning with user"
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not isinstance(blocks, list) or not blocks:
            yield f"{where}: content must be a non-empty string or list of blocks"
            return
        yield from _anthropic_answers(where, blocks, open_ids, role)
        for block in blocks:
            yield from _anthropic_block(where, block, role)
        if role == "assistant" and blocks[-1].get("type") in ("thinking", "redacted_thinking"):
            yield f"{where}: The final block in an assistant message cannot be `thinking`."
        open_ids = [block["id"] for block in blocks if block.get("type") == "tool_use"] if role == "assistant" else []
    if messages[-1]["role"] == "assistant":
        yield "This model does not support assistant message prefill. The conversation must end with a user message."
    yield from _anthropic_tools(body)
    marks = sum(1 for part in _walk(body) if "cache_control" in part)
    if marks > 4:
        yield f"A maximum of 4 blocks with cache_control may be provided. Found {marks}."


def _anthropic_answers(where: str, blocks: list[Any], open_ids: list[str], role: Any) -> Iterator[str]:
    """Each tool_use is answered at the beginning of the next message, and nothing else is."""
    answered = [block.get("tool_use_id") for block in blocks if block.get("type") == "tool_result"]
    leading = [block.get("tool_use_id") for block in blocks[: len(answered)] if block.get("type") == "tool_result"]
    missing = [id_ for id_ in open_ids if id_ not in leading]
    if missing:
        yield (
            f"{where}: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(missing)}. "
            "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
        )
    if len(leading) != len(answered):
        yield f"{where}: tool_result blocks must come first in the content"
    for id_ in answered:
        if id_ not in open_ids or role != "user" or answered.count(id_) > 1:
            yield f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {id_}"


def _anthropic_block(where: str, block: Any, role: Any) -> Iterator[str]:
    kind = block.get("type")
    if kind == "text" and not (isinstance(block.get("text"), str) and block["text"].strip()):
        yield f"{where}: text content blocks must contain non-whitespace text"
    if kind == "tool_use":
        if role != "assistant" or not isinstance(block.get("input"), dict):
            yield f"{where}.tool_use.input: Input should be a valid dictionary"
        if not _ANTHROPIC_ID.fullmatch(str(block.get("id"))):
            yield f"{where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
    if kind == "thinking" and not block.get("signature"):
        yield f"{where}.thinking.signature: Field required"
    if kind == "thinking" and "cache_control" in block:
        yield f"{where}.thinking.cache_control: Extra inputs are not permitted"
    if kind not in ("text", "tool_use", "tool_result", "thinking", "redacted_thinking"):
        yield f"{where}: unknown block type {kind!r}"


def _anthropic_tools(body: Any) -> Iterator[str]:
    tools = body.get("tools", [])
    names = [tool.get("name") for tool in tools]
    if len(names) != len(set(names)):
        yield "tools: Tool names must be unique."
    for number, tool in enumerate(tools):
        if not _TOOL_NAME.fullmatch(str(tool.get("name"))):
            yield f"tools.{number}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
        if tool.get("input_schema", {}).get("type") != "object":
            yield f"tools.{number}.input_schema.type: Input should be 'object'"
    if "tool_choice" in body and not tools:
        yield "tool_choice: tool_choice may only be specified while providing tools"


def _chat(body: Any) -> Iterator[str]:
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "you must provide a model parameter"
    if "max_tokens" in body and "max_completion_tokens" in body:
        yield "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "Invalid 'messages': empty array."
        return
    open_ids: list[str] = []
    for number, message in enumerate(messages):
        where = f"messages[{number}]"
        role, calls = message.get("role"), message.get("tool_calls")
        if role == "tool":
            id_ = message.get("tool_call_id")
            if id_ not in open_ids:
                yield f"Invalid parameter: {where} of role 'tool' must answer a preceding 'tool_calls', not {id_!r}."
            open_ids = [each for each in open_ids if each != id_]
            if not isinstance(message.get("content"), (str, list)):
                yield f"Invalid type for '{where}.content'."
            continue
        if open_ids:
            yield (
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(open_ids)}"
            )
            return
        if role not in ("system", "developer", "user", "assistant"):
            yield f"Invalid value for '{where}.role': {role!r}."
        if not isinstance(message.get("content"), (str, list)) and not (role == "assistant" and calls):
            yield f"Invalid value for '{where}.content': expected a string, got null."
        if calls is not None:
            yield from _chat_calls(where, calls, role)
            open_ids = [call.get("id") for call in calls]
    if open_ids:
        yield f"The following tool_call_ids did not have response messages: {', '.join(open_ids)}"
    yield from _chat_tools(body)
    for part in _walk(body.get("response_format", {})):  # llama-server
        pattern = part.get("pattern")
        if isinstance(pattern, str) and not (pattern.startswith("^") and pattern.endswith("$")):
            yield "failed to parse grammar: Pattern must start with '^' and end with '$'"


def _chat_calls(where: str, calls: Any, role: Any) -> Iterator[str]:
    if role != "assistant" or not isinstance(calls, list) or not calls:
        yield f"Invalid '{where}.tool_calls': expected a non-empty array of an assistant message."
        return
    ids = [call.get("id") for call in calls]
    if len(ids) != len(set(ids)) or not all(isinstance(id_, str) and id_ for id_ in ids):
        yield f"Invalid '{where}.tool_calls': ids must be unique strings."
    for call in calls:
        function = call.get("function", {})
        if call.get("type") != "function" or not _TOOL_NAME.fullmatch(str(function.get("name"))):
            yield f"Invalid '{where}.tool_calls': not a function call with a valid name."
        if not isinstance(function.get("arguments"), str):
            yield f"Invalid type for '{where}.tool_calls.function.arguments': expected a string."


def _chat_tools(body: Any) -> Iterator[str]:
    tools = body.get("tools")
    if tools is not None and not tools:
        yield "[] is too short - 'tools'"
    for number, tool in enumerate(tools or ()):
        function = tool.get("function", {})
        if tool.get("type") != "function" or not _TOOL_NAME.fullmatch(str(function.get("name"))):
            yield f"Invalid 'tools[{number}].function.name'."
        if function.get("parameters", {}).get("type") != "object":
            yield f"Invalid schema for function: schema must be of 'type: object' (tools[{number}])."
    if "tool_choice" in body and not tools:
        yield "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified."


def _responses(body: Any) -> Iterator[str]:
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "Missing required parameter: 'model'."
    open_ids: list[str] = []
    items = body.get("input") or ()
    for number, item in enumerate(items):
        kind = item.get("type")
        follows = items[number + 1] if number + 1 < len(items) else {}
        if kind == "reasoning" and (
            follows.get("role") == "user" or follows.get("type") in (None, "function_call_output")
        ):
            yield f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item."
        if kind == "function_call":
            open_ids.append(item.get("call_id"))
        elif kind == "function_call_output":
            if item.get("call_id") not in open_ids:
                yield f"No tool call found for function call output with call_id {item.get('call_id')}."
            open_ids = [each for each in open_ids if each != item.get("call_id")]
        elif kind == "message" and item.get("role") == "user" and open_ids:
            yield f"No tool output found for function call {open_ids[0]}."
        elif kind not in ("message", "reasoning"):
            yield f"Invalid value: {kind!r} (input[{number}].type)."
    if open_ids:
        yield f"No tool output found for function call {open_ids[0]}."
    for key in ("messages", "max_tokens", "max_completion_tokens"):
        if key in body:
            yield f"Unsupported parameter: '{key}'."


def _walk(value: Any) -> Iterator[dict[str, Any]]:
    """All objects in *value*."""
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from _walk(each)
    elif isinstance(value, list):
        for each in value:
            yield from _walk(each)
