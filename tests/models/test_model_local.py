"""Servers that the user runs: addresses, the probe, the JSON envelope, calls written as text."""

import asyncio
import itertools
import json
import re
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dap_agent.models import envelope, registry
from dap_agent.models.base import (
    AssistantMessage,
    Call,
    Message,
    ModelError,
    ToolResult,
    ToolResults,
    ToolSpec,
    Turn,
    Usage,
    UserMessage,
)
from dap_agent.models.local import parse
from dap_agent.testing import ErrorReply, ModelServer, Reply, Request

FRAME_7 = Reply(calls=[("choose_frame", {"frame": 7})])


class TestAddresses:
    @pytest.mark.parametrize(
        ("name", "url", "model"),
        [
            ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1", ""),
            ("http://127.0.0.1:8080/v1#qwen", "http://127.0.0.1:8080/v1", "qwen"),
            ("http://host.example:1", "http://host.example:1/v1", ""),
            ("https://host.example/api/openai", "https://host.example/api/openai", ""),
            ("http://gpubox#m", "http://gpubox/v1", "m"),
            ("8080", "http://127.0.0.1:8080/v1", ""),
            ("gpubox:8000#org/model:7b", "http://gpubox:8000/v1", "org/model:7b"),
            ("localhost", "http://localhost/v1", ""),
            ("[::1]:8080", "http://[::1]:8080/v1", ""),
            ("ollama#qwen3:8b", "http://127.0.0.1:11434/v1", "qwen3:8b"),
            ("lmstudio", "http://127.0.0.1:1234/v1", ""),
            ("llama-server", "http://127.0.0.1:8080/v1", ""),
            ("vllm", "http://127.0.0.1:8000/v1", ""),
        ],
    )
    def test_good(self, name: str, url: str, model: str) -> None:
        assert parse(name) == (url, model)

    @pytest.mark.parametrize("name", ["#m", "qwen3", "ftp://host/v1", "http://", "host:port", "http://[::1", "99999"])
    def test_bad(self, name: str) -> None:
        with pytest.raises(ModelError, match="is no address of a model server") as caught:
            parse(name)
        assert caught.value.kind == "bad-request"

    def test_a_password_is_not_shown(self) -> None:
        backend = registry.create("local:http://user:hunter2hunter2@127.0.0.1:1/v1#m")
        assert backend.name == "local:http://127.0.0.1:1/v1#m"
        assert "hunter2" not in repr(backend)

    def test_the_name_is_as_given(self) -> None:
        assert registry.create("local:ollama#qwen3:8b").name == "local:ollama#qwen3:8b"


def local(server: ModelServer, model: str = "#m", **options: Any) -> Any:
    backend: Any = registry.create(f"local:{server.openai_url}{model}", **options)

    async def sleep(_: float) -> None:
        """No pause in tests."""

    backend.retries.sleep = sleep
    return backend


def test_the_model_is_found_out(kit: Any) -> None:
    server = kit.serve(Reply("ok"), models=["the-only-one"])
    kit.run(kit.ask(local(server, ""), tools=[]))
    assert server.requests[-1].body["model"] == "the-only-one"


@pytest.mark.parametrize(("models", "words"), [([], "has no model loaded"), (["a", "b"], "has 2 models (a, b)")])
def test_the_model_must_be_named(kit: Any, models: list[str], words: str) -> None:
    error = kit.failure(local(kit.serve(models=models), ""))
    assert words in error.message
    assert "local:URL#MODEL" in error.message


def test_tokens_cost_nothing() -> None:
    assert registry.create("local:8080").cost(Usage(10**9, 10**9)) == 0.0


class TestProbe:
    def ask_twice(self, kit: Any, server: ModelServer, **options: Any) -> tuple[Turn, Any]:
        backend = local(server)

        async def talk() -> Turn:
            await kit.ask(backend, close=False, **options)
            return await kit.ask(backend, **options)

        return kit.run(talk()), backend

    def test_native_calls(self, kit: Any) -> None:
        real = Reply(calls=[("frame", {"number": 1})])
        server = kit.serve(FRAME_7, real, real)
        turn, backend = self.ask_twice(kit, server)
        assert backend.mode == "native"
        assert turn.calls[0].arguments == {"number": 1}
        assert len(server.requests) == 3  # one probe
        assert not server.complaints

    @pytest.mark.parametrize(
        "probe",
        [
            Reply('```json\n{"name": "choose_frame", "arguments": {"frame": 7}}\n```'),
            Reply(calls=[("choose_frame", {"frame": 0})]),
            Reply(calls=[("choose_frame", '{"frame": 7')], stop="length"),
            ErrorReply(400, "m does not support tools"),
            ErrorReply(500, "tools param requires --jinja flag"),
            ErrorReply(200, "output that does not match the expected peg-native format", "server_error"),
        ],
    )
    def test_no_native_calls(self, kit: Any, probe: Any) -> None:
        real = Reply('{"name": "frame", "arguments": {"number": 1}}')
        server = kit.serve(probe, real, real)
        turn, backend = self.ask_twice(kit, server)
        assert backend.mode == "schema"
        assert turn.calls[0].arguments == {"number": 1}
        assert len(server.requests) == 3
        assert server.requests[-1].body["response_format"]["type"] == "json_schema"
        assert "tools" not in server.requests[-1].body

    def test_a_server_that_is_loading_is_waited_for(self, kit: Any) -> None:
        server = kit.serve(ErrorReply(503, "Loading model"), FRAME_7, Reply("ok"), Reply("ok"))
        assert self.ask_twice(kit, server)[1].mode == "native"

    def test_a_server_without_schemas(self, kit: Any) -> None:
        real = Reply('Sure!\n<tool_call>\n{"name": "frame", "arguments": {"number": 1}}\n</tool_call>')
        server = kit.serve(Reply("no"), ErrorReply(400, "response_format json_schema is not supported"), real, real)
        turn, backend = self.ask_twice(kit, server)
        assert backend.mode == "text"
        assert turn.calls[0].arguments == {"number": 1}
        assert "response_format" not in server.requests[-1].body

    def test_the_mode_can_be_set(self, kit: Any) -> None:
        kit.monkeypatch.setenv("DAP_AGENT_LOCAL_MODE", "text")
        server = kit.serve(Reply("words"), Reply("words"))
        assert self.ask_twice(kit, server)[0].text == "words"
        assert len(server.requests) == 2

    def test_a_mode_that_does_not_exist(self, kit: Any) -> None:
        kit.monkeypatch.setenv("DAP_AGENT_LOCAL_MODE", "magic")
        with pytest.raises(ModelError, match="native, schema, text"):
            registry.create("local:8080")


def schema_backend(server: ModelServer) -> Any:
    backend = local(server)
    backend.mode = "schema"
    return backend


def test_an_envelope_is_a_call_and_its_text_is_not_shown(kit: Any) -> None:
    server = kit.serve(Reply(' {"name": "frame", "arguments": {"number": 2}}  \n'))
    heard: list[str] = []
    turn = kit.run(kit.ask(schema_backend(server), on_text=heard.append))
    assert (turn.text, turn.stop, heard) == ("", "calls", [])
    assert turn.calls == (Call("call_0", "frame", {"number": 2}, '{"number": 2}'),)


def test_a_complete_envelope_counts_even_at_the_token_limit(kit: Any) -> None:
    server = kit.serve(Reply('{"name": "frame", "arguments": {"number": 2}}' + " " * 50, stop="length"))
    assert kit.run(kit.ask(schema_backend(server))).stop == "calls"


def test_an_envelope_cut_off_by_the_token_limit(kit: Any) -> None:
    server = kit.serve(Reply('{"name": "propose", "arguments": {"title": "Fix', stop="length"))
    turn = kit.run(kit.ask(schema_backend(server)))
    assert (turn.stop, turn.calls) == ("length", ())


def test_an_answer_in_words(kit: Any) -> None:
    server = kit.serve(Reply('{"name": "answer", "arguments": {"text": "It cannot be fixed."}}'))
    turn = kit.run(kit.ask(schema_backend(server)))
    assert (turn.text, turn.stop, turn.calls) == ("It cannot be fixed.", "end", ())


def test_500_is_tried_again(kit: Any) -> None:
    server = kit.serve(
        ErrorReply(500, "The model produced output that does not match the expected peg-native format"),
        Reply('{"name": "frame", "arguments": {"number": 2}}'),
    )
    assert kit.run(kit.ask(schema_backend(server))).stop == "calls"


def test_a_conversation_in_envelopes_only_grows(kit: Any) -> None:
    replies = [
        Reply('{"name": "frame", "arguments": {"number": 0}}'),
        Reply("nonsense"),
        Reply('{"name": "answer", "arguments": {"text": "Hm, ü."}}'),
        Reply('{"name": "propose", "arguments": {"title": "t", "source": "a\\nb"}}'),
    ]
    server = kit.serve(*replies)
    backend = schema_backend(server)

    async def talk() -> None:
        messages: list[Message] = [UserMessage("Why?")]
        for _ in replies:
            turn = await kit.ask(backend, messages, close=False)
            messages.append(AssistantMessage(turn))
            results = tuple(ToolResult(call.id, call.name, "result") for call in turn.calls)
            messages.append(ToolResults(results) if results else UserMessage("Use a tool."))
        await backend.aclose()

    kit.run(talk())
    assert not server.complaints
    sent = [request.body["messages"] for request in server.requests]
    for before, after in itertools.pairwise(sent):
        assert after[: len(before)] == before
    roles = [message["role"] for message in sent[-1]]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user", "assistant", "user"]
    assert sent[-1][2]["content"] == '{"name": "frame", "arguments": {"number": 0}}'
    assert sent[-1][3]["content"] == "Result of frame:\nresult"
    assert [request.body["response_format"] for request in server.requests].count(
        server.requests[0].body["response_format"]
    ) == len(replies)


def test_one_request_at_a_time_per_server(kit: Any) -> None:
    server = kit.serve(*[Reply(f"answer {number}" * 200, fragment=2) for number in range(6)])
    backends = [local(server) for _ in range(3)]

    async def talk() -> list[Turn]:
        asked = [kit.ask(backend, tools=[], close=False) for backend in backends for _ in range(2)]
        turns = await asyncio.gather(*asked)
        for backend in backends:
            await backend.aclose()
        return list(turns)

    assert len(kit.run(talk())) == 6
    assert server.most_active == 1


def test_native_mode_reads_calls_that_the_server_left_in_the_text(kit: Any) -> None:
    server = kit.serve(FRAME_7, Reply('<tools>\n{"name": "frame", "arguments": {"number": 3}}\n</tools>'))
    turn = kit.run(kit.ask(local(server)))
    assert (turn.stop, turn.calls[0].arguments) == ("calls", {"number": 3})


def test_thoughts_are_not_part_of_the_text(kit: Any) -> None:
    server = kit.serve(FRAME_7, Reply("<think>\nHm, {}...\n</think>\n\nIt is a typo."))
    assert kit.run(kit.ask(local(server))).text == "It is a typo."


CALL = '{"name": "frame", "arguments": {"number": 4}}'


@pytest.mark.parametrize(
    "text",
    [
        CALL,
        f"  {CALL}\n",
        f"[{CALL}]",
        f"<think>maybe</think>{CALL}",
        f"```json\n{CALL}\n```",
        f"I call it:\n```\n{CALL}\n```\nDone.",
        f"```json\n{CALL}",
        f"<tool_call>{CALL}</tool_call>",
        f"<tool_call>\n{CALL}",
        f"<tools>{CALL}</tools>",
        '<function=frame>{"number": 4}</function>',
        '{"name": "frame", "parameters": {"number": 4}}',
        '{"type": "function", "function": {"name": "frame", "arguments": "{\\"number\\": 4}"}}',
        f"Let me look at it. {CALL} That should help.",
        'The value {"name": 1} is odd, so ' + CALL,
    ],
)
def test_calls_written_as_text(kit: Any, text: str) -> None:
    assert envelope.find_calls(text, kit.TOOLS) == [("frame", {"number": 4})]


def test_several_calls_written_as_text(kit: Any) -> None:
    two = [("frame", {"number": 4})] * 2
    assert envelope.find_calls(f"[{CALL}, {CALL}]", kit.TOOLS) == two
    assert envelope.find_calls(f"{CALL}\n{CALL}", kit.TOOLS) == two
    assert envelope.find_calls(f"<tool_call>{CALL}</tool_call>\n<tool_call>{CALL}</tool_call>", kit.TOOLS) == two
    calls = envelope.to_calls(two, {"call_0", "call_2"})
    assert [call.id for call in calls] == ["call_1", "call_3"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain words",
        '{"name": "unknown_tool", "arguments": {}}',
        '{"name": "frame", "arguments": [4]}',
        '{"name": "frame", "arguments": "nonsense"}',
        '{"name": "frame", "arguments": {"number": 4',
        '{"orders": [{"qty": 1}]}',
        "[" * 100_000,
        '{"a":' * 100_000,
    ],
)
def test_text_without_calls(kit: Any, text: str) -> None:
    assert envelope.find_calls(text, kit.TOOLS) == []


@given(st.text(alphabet='{}[]",:<>/`\n frametool_c', max_size=200))
def test_any_text_can_be_searched_for_calls(text: str) -> None:
    tools = [ToolSpec("frame", "", {"type": "object"})]
    for name, arguments in envelope.find_calls(text, tools):
        assert name in ("frame", "answer")
        assert isinstance(arguments, dict)


RICH = ToolSpec(
    "rich",
    "Everything.",
    {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "description": "d",
        "properties": {
            "path": {"type": "string", "description": "d", "pattern": "[a-z]+", "default": "x"},
            "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 9},
            "ahead": {"type": "string", "pattern": "^(?!x)[a-z]+$"},
            "maybe": {"type": ["string", "null"]},
            "kind": {"enum": ["a", "b"]},
            "edits": {"type": "array", "items": {"$ref": "#/$defs/edit"}, "minItems": 1},
            "big": {"type": "string", "maxLength": 100000},
            "one": {"oneOf": [{"const": 1}, {"type": "string", "format": "uri"}]},
        },
        "required": ["edits"],
        "additionalProperties": False,
        "if": {"required": ["name"]},
        "then": {"required": ["path"]},
        "$defs": {
            "edit": {
                "type": "object",
                "properties": {"old": {"type": "string"}, "inner": {"$ref": "#/$defs/edit"}},
                "required": ["old"],
            }
        },
    },
)


class TestSchema:
    def every(self, value: Any) -> Any:
        if isinstance(value, dict):
            yield value
            for each in value.values():
                yield from self.every(each)
        elif isinstance(value, list):
            for each in value:
                yield from self.every(each)

    def test_only_what_a_grammar_can_express(self, kit: Any) -> None:
        schema = envelope.schema([*kit.TOOLS, RICH], force=False)
        jsonschema.Draft202012Validator.check_schema(schema)
        for part in self.every(schema):
            if part.get("type") == "string":
                assert part["maxLength"] <= 5000
            if isinstance(part.get("pattern"), str):
                assert re.fullmatch(r"\^.*\$", part["pattern"])
                assert "(?" not in part["pattern"]
            if part.get("type") == "array":
                assert part["maxItems"] <= 16
            assert not {"if", "then", "default", "$schema", "format", "description"} & (set(part) - {"properties"})
        rich = schema["oneOf"][2]["properties"]["arguments"]["properties"]
        assert rich["name"] == {"type": "string", "pattern": "^[a-z]+$", "maxLength": 9}
        assert "pattern" not in rich["path"]
        assert rich["edits"]["items"] == {"$ref": "#/$defs/rich.edit"}

    @pytest.mark.parametrize(
        ("instance", "good"),
        [
            ({"name": "frame", "arguments": {"number": 0}}, True),
            ({"name": "rich", "arguments": {"edits": [{"old": "x", "inner": {"old": "y"}}]}}, True),
            ({"name": "answer", "arguments": {"text": "no"}}, True),
            ({"name": "frame", "arguments": {"number": -1}}, False),
            ({"name": "frame", "arguments": {}}, False),
            ({"name": "frame", "arguments": {"number": 0, "more": 1}}, False),
            ({"name": "other", "arguments": {}}, False),
            ({"name": "rich", "arguments": {"edits": [{"new": "x"}]}}, False),
            ({"name": "frame"}, False),
        ],
    )
    def test_accepts_calls_and_nothing_else(self, kit: Any, instance: Any, good: bool) -> None:
        validator = jsonschema.Draft202012Validator(envelope.schema([*kit.TOOLS, RICH], force=False))
        assert validator.is_valid(instance) is good

    def test_no_words_when_a_call_is_forced(self, kit: Any) -> None:
        schema = envelope.schema(kit.TOOLS, force=True)
        names = [choice["properties"]["name"]["const"] for choice in schema["oneOf"]]
        assert names == ["frame", "propose"]

    def test_a_tool_may_be_named_answer(self) -> None:
        tools = [ToolSpec("answer", "", {"type": "object"})]
        assert envelope.answer_name(tools) == "answer_in_words"
        assert envelope.find_calls('{"name": "answer", "arguments": {}}', tools) == [("answer", {})]

    def test_the_model_is_told_of_each_tool(self, kit: Any) -> None:
        server = kit.serve(lambda request: Reply(json.dumps({"name": "answer", "arguments": {"text": told(request)}})))
        text = kit.run(kit.ask(schema_backend(server))).text
        assert text.startswith("You debug.")
        assert "- frame: Look at a stack frame." in text
        assert '"minimum":0' in text


def told(request: Request) -> str:
    return str(request.body["messages"][0]["content"])
