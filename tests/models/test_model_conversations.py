"""Turns, streams and whole conversations through the real SDKs."""

import asyncio
import copy
import itertools
import json
from typing import Any

import pytest

from dap_agent.models.base import (
    AssistantMessage,
    Call,
    Message,
    ToolResult,
    ToolResults,
    ToolSpec,
    Turn,
    Usage,
    UserMessage,
)
from dap_agent.models.sdk import MAX_REPLY
from dap_agent.testing import ErrorReply, RawStream, Reply, Stall


def test_text_and_calls_arrive_whole(kit: Any, api: str) -> None:
    server = kit.serve(
        Reply("Let me look: größer ≥ 😀.", [("frame", {"number": 0}), ("frame", {"number": 1})], fragment=3), write=1
    )
    heard: list[str] = []
    turn = kit.run(kit.ask(kit.backend(api, server), on_text=heard.append))
    assert turn.text == "".join(heard) == "Let me look: größer ≥ 😀."
    assert len(heard) > 3
    assert [(call.name, call.arguments) for call in turn.calls] == [("frame", {"number": 0}), ("frame", {"number": 1})]
    assert len({call.id for call in turn.calls}) == 2
    assert turn.stop == "calls"
    assert not server.complaints


def test_usage_counts_cached_tokens_as_part_of_the_prompt(kit: Any, api: str) -> None:
    server = kit.serve(Reply("ok", input_tokens=1000, cached_tokens=900, cache_write_tokens=60, output_tokens=7))
    turn = kit.run(kit.ask(kit.backend(api, server)))
    assert turn.usage == Usage(1000, 7, 900, 60)
    assert turn.stop == "end"


@pytest.mark.parametrize(("stop", "wanted"), [("length", "length"), ("refusal", "refusal"), (None, "end")])
def test_the_reason_to_stop(kit: Any, api: str, stop: str | None, wanted: str) -> None:
    server = kit.serve(Reply("Some words", stop=stop))
    assert kit.run(kit.ask(kit.backend(api, server))).stop == wanted


@pytest.mark.parametrize("raw", ['{"number": ', "[1]", "{'number': 0}", "nonsense"])
def test_malformed_arguments_are_kept_as_they_are(kit: Any, api: str, raw: str) -> None:
    server = kit.serve(Reply(calls=[("frame", raw)]), Reply("ok"))
    backend = kit.backend(api, server)

    async def talk() -> tuple[Turn, Turn]:
        first = await kit.ask(backend, close=False)
        answer = ToolResults((ToolResult(first.calls[0].id, "frame", "no JSON", error=True),))
        return first, await kit.ask(backend, [UserMessage("Why?"), AssistantMessage(first), answer])

    first, second = kit.run(talk())
    assert (first.calls[0].arguments, first.calls[0].raw) == (None, raw)
    assert second.text == "ok"
    assert not server.complaints


def test_a_call_cut_off_by_the_token_limit_is_not_taken_for_complete(kit: Any, api: str) -> None:
    server = kit.serve(Reply(calls=[("propose", '{"title": "Fix", "source": "def f')], stop="length"))
    turn = kit.run(kit.ask(kit.backend(api, server)))
    assert turn.stop == "length"
    assert turn.calls[0].arguments is None


def test_a_call_without_arguments(kit: Any, api: str) -> None:
    server = kit.serve(Reply(calls=[("frame", "")]))
    assert kit.run(kit.ask(kit.backend(api, server))).calls[0].arguments == {}


@pytest.mark.parametrize("force", [False, True])
def test_a_call_can_be_forced(kit: Any, api: str, force: bool) -> None:
    server = kit.serve(Reply(calls=[("frame", {"number": 0})]))
    kit.run(kit.ask(kit.backend(api, server), force=force))
    choice = server.requests[-1].body.get("tool_choice")
    assert choice == (({"type": "any"} if api == "anthropic" else "required") if force else None)


def test_no_tools_and_no_system_prompt(kit: Any, api: str) -> None:
    server = kit.serve(Reply("ok"))
    assert kit.run(kit.ask(kit.backend(api, server), system="", tools=[], force=True)).text == "ok"
    assert not server.complaints


def conversation(turns: list[Turn]) -> list[Message]:
    """A user's question, and for each turn so far its results."""
    messages: list[Message] = [UserMessage("Why does it crash?")]
    for turn in turns:
        messages.append(AssistantMessage(turn))
        if turn.calls:
            results = (ToolResult(call.id, call.name, f"result of {call.raw[:40]}", error=False) for call in turn.calls)
            messages.append(ToolResults(tuple(results)))
        else:
            messages.append(UserMessage("Go on."))
    return messages


def without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_marks(each) for key, each in value.items() if key != "cache_control"}
    return [without_marks(each) for each in value] if isinstance(value, list) else value


def test_each_request_begins_with_the_one_before(kit: Any, api: str) -> None:
    server = kit.serve(
        Reply("First I look.", [("frame", {"number": 0}), ("frame", {"number": 1})], thinking="Hm, ä."),
        Reply("", [("propose", {"title": "ü", "source": "x = '\\n'"})], thinking="So."),
        Reply("Words only."),
        Reply("", [("frame", "{broken")]),
        Reply("Done."),
    )
    backend = kit.backend(api, server)

    async def talk() -> None:
        turns: list[Turn] = []
        for _ in range(5):
            # as after a replay: through JSON and back
            kept = [Turn.from_json(json.loads(json.dumps(turn.to_json()))) for turn in turns]
            assert kept == turns
            turns.append(await kit.ask(backend, conversation(kept), close=False))
        await backend.aclose()

    kit.run(talk())
    assert not server.complaints
    assert len(server.requests) == 5
    key = "input" if api == "responses" else "messages"
    bodies = [without_marks(request.body) for request in server.requests]
    for before, after in itertools.pairwise(bodies):
        shorter, longer = before.pop(key), after[key]
        assert json.dumps(longer[: len(shorter)]) == json.dumps(shorter)
        assert json.dumps(before) == json.dumps({name: after[name] for name in after if name != key})
        after[key] = longer


@pytest.mark.parametrize("stop", ["length", "end"])
def test_an_answer_of_thoughts_only_does_not_end_the_conversation(kit: Any, api: str, stop: str) -> None:
    server = kit.serve(Reply("", stop=stop, thinking="Hm, so"), Reply("Done."))
    backend = kit.backend(api, server)

    async def talk() -> tuple[Turn, Turn]:
        first = await kit.ask(backend, close=False)
        return first, await kit.ask(backend, conversation([first]))

    first, second = kit.run(talk())
    assert (first.text, first.calls, first.stop) == ("", (), stop)
    assert not server.complaints
    assert second.text == "Done."


def test_anthropic_marks_what_to_cache(kit: Any) -> None:
    replies = [Reply(f"Look {number}", [("frame", {"number": number})]) for number in range(4)]
    server = kit.serve(*replies)
    backend = kit.backend("anthropic", server)

    async def talk() -> None:
        turns: list[Turn] = []
        for _ in replies:
            turns.append(await kit.ask(backend, conversation(turns), close=False))
        await backend.aclose()

    kit.run(talk())
    mark = {"type": "ephemeral"}
    for number, request in enumerate(server.requests):
        body = request.body
        assert body["system"][-1]["cache_control"] == mark
        assert [tool.get("cache_control") for tool in body["tools"]] == [None, mark]
        marked = [
            index
            for index, message in enumerate(body["messages"])
            for block in message["content"]
            if "cache_control" in block
        ]
        assert marked == ([0] if number == 0 else [2 * number - 2, 2 * number])
        assert "cache_control" in body["messages"][marked[-1]]["content"][-1]
        assert "temperature" not in body


def test_the_caller_s_messages_and_tools_are_not_changed(kit: Any, api: str) -> None:
    server = kit.serve(Reply(calls=[("frame", {"number": 0})]), Reply("ok"))
    backend = kit.backend(api, server)

    async def talk() -> None:
        first = await kit.ask(backend, close=False)
        messages = conversation([first])
        before, tools = copy.deepcopy(messages), copy.deepcopy(kit.TOOLS)
        await kit.ask(backend, messages)
        assert messages == before
        assert tools == kit.TOOLS

    kit.run(talk())


def test_thinking_goes_back_unchanged_to_its_own_model_only(kit: Any) -> None:
    server = kit.serve(Reply("", [("frame", {"number": 0})], thinking="secret thought"), Reply("ok"), Reply("ok"))

    async def talk() -> None:
        backend = kit.backend("anthropic", server)
        first = await kit.ask(backend)
        messages = conversation([first])
        await kit.ask(backend, messages)
        backend._endpoint = type(backend._endpoint)(**{**vars(backend._endpoint), "model": "another"})
        await kit.ask(backend, messages)

    kit.run(talk())
    blocks = [request.body["messages"][1]["content"] for request in server.requests[1:]]
    assert blocks[0][0] == {"type": "thinking", "thinking": "secret thought", "signature": "signature-1"}
    assert [block["type"] for block in blocks[1]] == ["tool_use"]
    assert not server.complaints


def test_turns_of_one_provider_can_be_continued_by_another(kit: Any, api: str) -> None:
    turns = [
        Turn("I look.", (Call("weird.id|1", "frame", {"number": 0}, '{"number": 0}'),), "calls", Usage(), {"api": "x"}),
        Turn("", (), "end", Usage()),
        Turn("", (Call("id2", "frame", None, "{broken"), Call("id3", "frame", {}, "")), "length", Usage()),
    ]
    server = kit.serve(Reply("ok"))
    assert kit.run(kit.ask(kit.backend(api, server), conversation(turns))).text == "ok"
    assert not server.complaints


def test_results_then_words_of_the_user(kit: Any, api: str) -> None:
    turn = Turn("", (Call("id1", "frame", {"number": 0}, '{"number": 0}'),), "calls", Usage())
    messages = [*conversation([turn]), UserMessage("Hurry up."), UserMessage(" ")]
    server = kit.serve(Reply("ok"))
    kit.run(kit.ask(kit.backend(api, server), messages))
    assert not server.complaints


def test_errors_of_tools_are_told(kit: Any, api: str) -> None:
    turn = Turn("", (Call("id1", "frame", {"number": 9}, '{"number": 9}'),), "calls", Usage())
    messages = [
        UserMessage("?"),
        AssistantMessage(turn),
        ToolResults((ToolResult("id1", "frame", "no frame 9", True),)),
    ]
    server = kit.serve(Reply("ok"))
    kit.run(kit.ask(kit.backend(api, server), messages))
    sent = server.requests[0].body["input" if api == "responses" else "messages"][-1]
    if api == "anthropic":
        assert sent["content"][0]["is_error"] is True
        assert sent["content"][0]["content"] == "no frame 9"
    else:
        assert sent.get("content", sent.get("output")) == "Error: no frame 9"


def test_lone_surrogates_do_not_stop_a_conversation(kit: Any, api: str) -> None:
    server = kit.serve(Reply("half \ud83d", [("frame", '{"number": 0, "note": "\\ud800"}')]), Reply("ok"))
    backend = kit.backend(api, server)
    heard: list[str] = []

    async def talk() -> None:
        first = await kit.ask(backend, [UserMessage("file \udcff.py")], close=False, on_text=heard.append)
        json.dumps(first.to_json(), ensure_ascii=False).encode()
        await kit.ask(backend, [*conversation([first])])

    kit.run(talk())
    "".join(heard).encode()
    assert not server.complaints


def test_a_surrogate_pair_cut_apart_by_the_stream_is_joined(kit: Any, api: str) -> None:
    server = kit.serve(Reply("\ud83d\ude00!", fragment=1))
    heard: list[str] = []
    turn = kit.run(kit.ask(kit.backend(api, server), on_text=heard.append))
    assert turn.text == "".join(heard) == "😀!"


def test_an_endless_answer_is_cut_off(kit: Any, api: str) -> None:
    server = kit.serve(Reply("x" * 8_000_000, fragment=64_000))
    turn = kit.run(kit.ask(kit.backend(api, server)))
    assert turn.stop == "length"
    assert len(turn.text) <= MAX_REPLY + 64_000


def test_endless_arguments_are_cut_off(kit: Any, api: str) -> None:
    server = kit.serve(Reply(calls=[("propose", {"source": "x" * 8_000_000})], fragment=64_000), Reply("ok"))
    backend = kit.backend(api, server)

    async def talk() -> Turn:
        turn = await kit.ask(backend, close=False)
        await kit.ask(backend, conversation([turn]))
        return turn

    turn = kit.run(talk())
    assert turn.stop == "length"
    assert all(call.arguments is None for call in turn.calls)
    assert len(json.dumps(server.requests[-1].body)) < 50_000


def test_cancelling_closes_the_connection(kit: Any, api: str) -> None:
    server = kit.serve(Stall(after=100))
    backend = kit.backend(api, server)

    async def talk() -> None:
        task = asyncio.create_task(kit.ask(backend, close=False))
        while not server.requests:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.disconnected.wait, 5)
        await backend.aclose()

    kit.run(talk())
    assert len(server.requests) == 1


def test_a_backend_works_in_a_second_event_loop_after_closing(kit: Any, api: str) -> None:
    server = kit.serve(Reply("one"), Reply("two"))
    backend = kit.backend(api, server)
    assert kit.run(kit.ask(backend)).text == "one"
    assert kit.run(kit.ask(backend)).text == "two"


def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return (
        b"data: " + json.dumps({"id": "c", "object": "chat.completion.chunk", "choices": [choice]}).encode() + b"\n\n"
    )


@pytest.mark.parametrize(
    ("case", "deltas"),
    [
        (
            "the same index for all, names repeated",
            [
                {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "frame", "arguments": '{"number"'}}]},
                {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "frame", "arguments": ": 0}"}}]},
                {"tool_calls": [{"index": 0, "id": "b", "function": {"name": "frame", "arguments": '{"number": 1}'}}]},
            ],
        ),
        (
            "no index, no id",
            [
                {"tool_calls": [{"id": "a", "function": {"name": "frame", "arguments": '{"number": 0}'}}]},
                {"tool_calls": [{"id": "b", "function": {"name": "frame", "arguments": '{"number"'}}]},
                {"tool_calls": [{"function": {"arguments": ": 1}"}}]},
            ],
        ),
        (
            "interleaved",
            [
                {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "frame", "arguments": '{"number": '}}]},
                {"tool_calls": [{"index": 1, "id": "b", "function": {"name": "frame", "arguments": '{"number": '}}]},
                {"tool_calls": [{"index": 0, "function": {"arguments": "0}"}}]},
                {"tool_calls": [{"index": 1, "function": {"arguments": "1}"}}]},
            ],
        ),
    ],
)
def test_odd_streams_of_compatible_servers(kit: Any, case: str, deltas: list[dict[str, Any]]) -> None:
    end = [chunk({}, "stop"), b"data: [DONE]\n\n"]  # "stop" although there are calls
    server = kit.serve(RawStream([*[chunk(delta) for delta in deltas], *end]))
    turn = kit.run(kit.ask(kit.backend("openai", server)))
    assert [call.arguments for call in turn.calls] == [{"number": 0}, {"number": 1}], case
    assert turn.stop == "calls"


def test_ids_that_a_server_uses_again_are_replaced(kit: Any) -> None:
    calls = [("frame", {"number": 0})]
    server = kit.serve(Reply(calls=calls, ids=["same"]), Reply(calls=calls, ids=["same"]), Reply("ok"))
    backend = kit.backend("openai", server)

    async def talk() -> list[Turn]:
        turns: list[Turn] = []
        for _ in range(3):
            turns.append(await kit.ask(backend, conversation(turns), close=False))
        await backend.aclose()
        return turns

    turns = kit.run(talk())
    assert turns[0].calls[0].id == "same"
    assert turns[1].calls[0].id != "same"
    assert not server.complaints


def test_fields_that_a_server_adds_to_a_call_go_back_to_it(kit: Any) -> None:
    call = {"index": 0, "id": "a", "function": {"name": "frame", "arguments": "{}"}, "extra_content": {"sig": "xyz"}}
    server = kit.serve(RawStream([chunk({"tool_calls": [call]}), chunk({}, "tool_calls")]), Reply("ok"))
    backend = kit.backend("openai", server)

    async def talk() -> None:
        turn = await kit.ask(backend, close=False)
        await kit.ask(backend, conversation([turn]))

    kit.run(talk())
    assert server.requests[1].body["messages"][2]["tool_calls"][0]["extra_content"] == {"sig": "xyz"}


class TestLearning:
    """Parameters that a model does not take are left out after its first refusal, for good."""

    def ask_twice(self, kit: Any, api: str, error: ErrorReply, **options: Any) -> list[Any]:
        server = kit.serve(error, Reply("one"), Reply("two"))
        backend = kit.backend(api, server, max_retries=0)

        async def talk() -> None:
            assert (await kit.ask(backend, close=False, force=True, **options)).text == "one"
            assert (await kit.ask(backend, force=True, **options)).text == "two"

        kit.run(talk())
        assert len(server.requests) == 3
        return list(server.requests[1:])

    def test_forced_tool_use(self, kit: Any) -> None:
        error = ErrorReply(400, "tool_choice: Forced tool use is not supported for this model.")
        for request in self.ask_twice(kit, "anthropic", error):
            assert "tool_choice" not in request.body

    def test_fewer_output_tokens_anthropic(self, kit: Any) -> None:
        words = "max_tokens: 1000 > 500, which is the maximum allowed number of output tokens for m"
        for request in self.ask_twice(kit, "anthropic", ErrorReply(400, words)):
            assert request.body["max_tokens"] == 500

    def test_fewer_output_tokens_openai(self, kit: Any) -> None:
        words = "max_tokens is too large: 1000. This model supports at most 500 completion tokens."
        for request in self.ask_twice(kit, "openai", ErrorReply(400, words)):
            assert request.body["max_completion_tokens"] == 500

    def test_the_old_name_of_the_limit(self, kit: Any) -> None:
        words = "Unrecognized request argument supplied: max_completion_tokens"
        for request in self.ask_twice(kit, "openai", ErrorReply(400, words)):
            assert request.body["max_tokens"] == 1000
            assert "max_completion_tokens" not in request.body

    def test_no_usage_in_streams(self, kit: Any) -> None:
        for request in self.ask_twice(kit, "openai", ErrorReply(400, "stream_options: extra fields not permitted")):
            assert "stream_options" not in request.body

    @pytest.mark.parametrize("status", [400, 404])
    def test_models_that_take_tools_over_responses_only(self, kit: Any, status: int) -> None:
        for request in self.ask_twice(kit, "openai", ErrorReply(status, kit.NOT_HERE)):
            assert request.api == "responses"
            assert request.body["store"] is False
            assert request.body["tool_choice"] == "required"

    def test_models_without_reasoning_over_responses(self, kit: Any) -> None:
        error = ErrorReply(400, "Encrypted content is not supported with this model.")
        for request in self.ask_twice(kit, "responses", error):
            assert "include" not in request.body

    def test_the_same_refusal_again_is_an_error(self, kit: Any) -> None:
        words = "tool_choice: Forced tool use is not supported for this model."
        server = kit.serve(*[ErrorReply(400, words)] * 5)
        error = kit.failure(kit.backend("anthropic", server), force=True)
        assert error.kind == "bad-request"
        assert len(server.requests) == 2


def test_tool_schemas_are_sent_as_they_are(kit: Any, api: str) -> None:
    parameters = {"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"type": "null"}}}
    server = kit.serve(Reply("ok"))
    kit.run(kit.ask(kit.backend(api, server), tools=[ToolSpec("one", "Does.", parameters)]))
    tool = server.requests[0].body["tools"][0]
    assert (tool.get("input_schema") or tool.get("parameters") or tool["function"]["parameters"]) == parameters
