"""The test double itself: what it refuses, and that nothing of it is left."""

import copy
import threading
from typing import Any

import anthropic
import openai
import pytest

from dap_agent.models import rules
from dap_agent.testing import ModelServer, Reply, Request, Stall

TOOL_USE = {"type": "tool_use", "id": "t1", "name": "frame", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "r"}
GOOD_ANTHROPIC: dict[str, Any] = {
    "model": "m",
    "max_tokens": 9,
    "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
    "tools": [{"name": "frame", "description": "d", "input_schema": {"type": "object"}}],
    "messages": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "text", "text": "x"}, TOOL_USE]},
        {"role": "user", "content": [RESULT, {"type": "text", "text": "go on"}]},
    ],
}
GOOD_CHAT: dict[str, Any] = {
    "model": "m",
    "tools": [{"type": "function", "function": {"name": "frame", "parameters": {"type": "object"}}}],
    "messages": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "frame", "arguments": "{}"}},
                {"id": "c2", "type": "function", "function": {"name": "frame", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c2", "content": "r"},
        {"role": "tool", "tool_call_id": "c1", "content": "r"},
        {"role": "user", "content": "go on"},
    ],
}


def changed(body: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """*body* with one place changed, or removed when *value* is `...`."""
    body = copy.deepcopy(body)
    *parents, last = [int(part) if part.isdecimal() else part for part in path.split("/")]
    place: Any = body
    for part in parents:
        place = place[part]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return body


def test_good_requests_are_not_complained_about() -> None:
    assert rules.anthropic(GOOD_ANTHROPIC) is None
    assert rules.chat(GOOD_CHAT) is None


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("max_tokens", ..., "max_tokens: Field required"),
        ("model", ..., "model: Field required"),
        ("temperature", 0.5, "temperature"),
        ("messages", [], "at least one message"),
        ("messages/0", {"role": "assistant", "content": "x"}, "roles must alternate"),
        ("messages/0/content", "", "non-whitespace"),
        ("messages/0/content", [], "non-empty"),
        ("messages/1/content/1/input", "text", "valid dictionary"),
        ("messages/1/content/1/id", "a b", "should match pattern"),
        ("messages/1/content/0", {"type": "thinking", "thinking": "x"}, "signature: Field required"),
        ("messages/1/content/1", {"type": "thinking", "thinking": "x", "signature": "s"}, "final block"),
        ("messages/1/content/0", {"type": "image"}, "unknown block type"),
        ("messages/2/content/0", {"type": "text", "text": "x"}, "without `tool_result` blocks immediately after: t1"),
        ("messages/2/content", [{"type": "text", "text": "x"}, RESULT], "without `tool_result` blocks immediately"),
        ("messages/2/content/1", {**RESULT, "tool_use_id": "t9"}, "unexpected `tool_use_id`"),
        ("messages/2/content/1", RESULT, "unexpected `tool_use_id`"),
        ("messages/2", ..., "must end with a user message"),
        ("tools/0/name", "a.b", "should match pattern"),
        ("tools/0/input_schema", {}, "should be 'object'"),
        ("tool_choice", {"type": "any"}, None),
    ],
)
def test_rules_of_anthropic(path: str, value: Any, words: str | None) -> None:
    complaint = rules.anthropic(changed(GOOD_ANTHROPIC, path, value))
    assert words in complaint if words and complaint else complaint is words


def test_more_rules_of_anthropic() -> None:
    twice = changed(GOOD_ANTHROPIC, "tools", GOOD_ANTHROPIC["tools"] * 2)
    assert "unique" in (rules.anthropic(twice) or "")
    assert "tool_choice" in (rules.anthropic({**changed(GOOD_ANTHROPIC, "tools", ...), "tool_choice": {}}) or "")
    marked = [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}] * 5
    assert "maximum of 4" in (rules.anthropic({**GOOD_ANTHROPIC, "system": marked}) or "")


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("model", ..., "model parameter"),
        ("messages", [], "empty array"),
        ("messages/3", ..., "did not have response messages: c2"),
        ("messages/4", {"role": "tool", "tool_call_id": "c9", "content": "r"}, "must answer a preceding"),
        ("messages/4/tool_call_id", "c2", "must answer a preceding"),
        ("messages/4/content", None, "Invalid type"),
        ("messages/1/content", None, "expected a string"),
        ("messages/1/role", "human", "Invalid value"),
        ("messages/2", {"role": "assistant", "content": "x", "tool_calls": []}, "non-empty array"),
        ("messages/2/tool_calls/0/id", "c2", "must be unique"),
        ("messages/2/tool_calls/0/function/arguments", {}, "expected a string"),
        ("messages/2/tool_calls/0/function/name", "a b", "valid name"),
        ("tools", [], "too short"),
        ("tools/0/function/name", "a.b", "tools[0].function.name"),
        ("tools/0/function/parameters", {}, "schema must be"),
    ],
)
def test_rules_of_chat(path: str, value: Any, words: str) -> None:
    assert words in (rules.chat(changed(GOOD_CHAT, path, value)) or "no complaint")


def test_more_rules_of_chat() -> None:
    assert "same time" in (rules.chat({**GOOD_CHAT, "max_tokens": 1, "max_completion_tokens": 1}) or "")
    assert "tool_choice" in (rules.chat({**changed(GOOD_CHAT, "tools", ...), "tool_choice": "required"}) or "")
    unanchored = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"pattern": "[a-z]"}}}
    assert "Pattern must start" in (rules.chat({**GOOD_CHAT, "response_format": unanchored}) or "")
    unanswered = changed(GOOD_CHAT, "messages", GOOD_CHAT["messages"][:3])
    assert "c1, c2" in (rules.chat(unanswered) or "")


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([{"type": "function_call", "call_id": "c1"}], "No tool output found"),
        ([{"type": "function_call", "call_id": "c1"}, {"type": "message", "role": "user"}], "No tool output found"),
        ([{"type": "function_call_output", "call_id": "c1"}], "No tool call found"),
        ([{"type": "image"}], "Invalid value"),
    ],
)
def test_rules_of_responses(items: list[Any], words: str) -> None:
    assert words in (rules.responses({"model": "m", "input": items}) or "")
    assert rules.responses({"model": "m", "input": [{"type": "message", "role": "user"}]}) is None


def test_a_wrong_request_gets_the_vendor_s_error(kit: Any) -> None:
    server = kit.serve(Reply("never"))
    wrong: list[Any] = [{"role": "assistant", "content": "x"}]
    with anthropic.Anthropic() as client, pytest.raises(anthropic.BadRequestError) as caught:
        client.messages.create(model="m", max_tokens=9, messages=wrong)
    assert "roles must alternate" in str(caught.value)
    wrong = [{"role": "tool", "tool_call_id": "c", "content": "x"}]
    with openai.OpenAI() as other, pytest.raises(openai.BadRequestError) as caught_too:
        other.chat.completions.create(model="m", messages=wrong)
    assert "must answer a preceding" in str(caught_too.value)
    assert len(server.complaints) == 2


def test_without_streams_and_the_other_paths(kit: Any) -> None:
    calls = [("frame", {"number": 0})]
    server = kit.serve(Reply("a", calls, thinking="t"), Reply("b", calls), models=["x", "y"])
    hello: list[Any] = [{"role": "user", "content": "hi"}]
    with anthropic.Anthropic() as client:
        message = client.messages.create(model="m", max_tokens=9, messages=hello)
        assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
        assert client.messages.count_tokens(model="m", messages=hello).input_tokens > 0
    with openai.OpenAI() as other:
        choice = other.chat.completions.create(model="m", messages=hello).choices[0]
        assert choice.message.content == "b"
        assert choice.message.tool_calls
        assert [model.id for model in other.models.list()] == ["x", "y"]
        with pytest.raises(openai.NotFoundError):
            other.embeddings.create(model="m", input="x")
    assert not server.complaints


def test_a_step_can_react_to_the_request(kit: Any) -> None:
    def react(request: Request) -> Reply:
        return Reply(f"You said {request.body['messages'][-1]['content']!r} over {request.api}.")

    kit.serve(react)
    with openai.OpenAI() as client:
        hello: list[Any] = [{"role": "user", "content": "hi"}]
        answer = client.chat.completions.create(model="m", messages=hello)
    assert answer.choices[0].message.content == "You said 'hi' over chat."


def test_running_out_of_steps_is_an_error_that_is_not_repeated(kit: Any, api: str) -> None:
    server = kit.serve()
    assert "no step left" in kit.failure(kit.backend(api, server)).message
    assert server.complaints == ["the test server has no step left for this request"]
    assert len(server.requests) == 1


def test_nothing_is_left_after_closing() -> None:
    before = set(threading.enumerate())
    with ModelServer([Reply("x"), Stall()]) as server:
        client = openai.OpenAI(base_url=server.openai_url, api_key="k", timeout=0.2, max_retries=0)
        hello: list[Any] = [{"role": "user", "content": "hi"}]
        client.with_options(timeout=10).chat.completions.create(model="m", messages=hello)
        with pytest.raises(openai.APITimeoutError):
            client.chat.completions.create(model="m", messages=hello)
        client.with_options(timeout=10).models.list()  # its connection stays open while the server closes
    assert set(threading.enumerate()) <= before
    client.close()
