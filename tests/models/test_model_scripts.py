"""Recorded turns, and journals played again."""

import json
from pathlib import Path
from typing import Any

import pytest

from dap_agent.models import registry
from dap_agent.models.base import (
    AssistantMessage,
    Call,
    Message,
    ModelError,
    ToolResult,
    ToolResults,
    Turn,
    Usage,
    UserMessage,
)
from dap_agent.testing import Reply


def script(path: Path, *turns: Any) -> Any:
    file = path / "script.json"
    file.write_text(json.dumps({"turns": turns}), encoding="utf-8")
    return registry.create(f"scripted:{file}")


def test_turns_are_played_in_order(kit: Any, tmp_path: Path) -> None:
    backend = script(
        tmp_path,
        {"text": "I look.", "calls": [{"name": "frame", "arguments": {"number": 0}}, {"name": "frame"}]},
        {"calls": [{"name": "frame", "arguments": {"number": 1}}], "usage": {"input_tokens": 5}},
        {"text": "Done."},
    )
    messages: list[Message] = [UserMessage("Why?")]
    heard: list[str] = []
    turns = []
    for _ in range(3):
        turn = kit.run(kit.ask(backend, messages, on_text=heard.append))
        turns.append(turn)
        messages.append(AssistantMessage(turn))
        messages.append(ToolResults(tuple(ToolResult(call.id, call.name, "r") for call in turn.calls)))
    assert heard == ["I look.", "Done."]
    assert [turn.stop for turn in turns] == ["calls", "calls", "end"]
    assert [call.arguments for turn in turns for call in turn.calls] == [{"number": 0}, {}, {"number": 1}]
    ids = [call.id for turn in turns for call in turn.calls]
    assert len(set(ids)) == 3
    assert turns[1].usage == Usage(5)
    assert backend.cost(Usage(10**6, 10**6)) == 0.0
    assert kit.failure(backend).message.endswith("record it again with a model.")
    assert kit.failure(backend).kind == "script"


def test_a_script_must_fit_the_program(kit: Any, tmp_path: Path) -> None:
    turns = [{"text": "a", "expect": "KeyError"}, {"text": "b", "expect": ["one", "two"]}]
    backend = script(tmp_path, *turns)
    error = kit.failure(backend, messages=[UserMessage("It raised TypeError.\n" + "x" * 500)])
    assert error.kind == "script"
    assert "before its turn 1 it expects 'KeyError' in the last message" in error.message
    assert "It raised TypeError." in error.message
    assert len(error.message) < 600
    assert kit.run(kit.ask(backend, [UserMessage("It raised KeyError.")])).text == "a"
    results = ToolResults((ToolResult("1", "frame", "one"), ToolResult("2", "frame", "two")))
    assert kit.run(kit.ask(backend, [results])).text == "b"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read (No such file"),
        (b"\xff\xfe", "not UTF-8"),
        (b"", "holds no turn"),
        (b"{}", 'holds no {"turns"'),
        (b"[1]", 'holds no {"turns"'),
        (b"nonsense\n{}", "no JSON, line 1"),
        (b'{"kind": "start"}', "holds no turn"),
        (b'{"kind": "start"}\n{"kind": "end"}\n', "holds no turn"),
        (b'{"turns": [{}, 5]}', "wrong at turn 2: it must be an object"),
        (b'{"turns": [{"calls": {}}]}', '"calls" a list'),
        (b'{"turns": [{"calls": [{}]}]}', 'call 1 must be an object with a "name"'),
        (b'{"turns": [{"calls": [{"name": "f", "arguments": 5}]}]}', '"arguments" of call 1 (f) must be an object'),
        (b'{"turns": [{"stop": "never"}]}', '"stop" must be one of'),
        (b'{"turns": [{"expect": 5}]}', '"expect" must be a string'),
        (b'{"turns": [{"usage": {"input_tokens": []}}]}', "wrong at turn 1"),
        (b'{"kind": "turn", "turn": {"text": 5}}\n{}', "wrong at line 1"),
    ],
)
def test_files_that_are_no_scripts(tmp_path: Path, content: bytes | None, words: str) -> None:
    file = tmp_path / "file"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ModelError) as caught:
        registry.create(f"scripted:{file}")
    assert caught.value.kind == "script"
    assert words in caught.value.message
    assert str(file) in caught.value.message


def test_a_turn_survives_json() -> None:
    turn = Turn(
        "ä", (Call("1", "f", None, "{bad"), Call("2", "g", {}, "")), "length", Usage(1, 2, 3, 4), {"api": "x", "y": [1]}
    )
    assert Turn.from_json(json.loads(json.dumps(turn.to_json()))) == turn


def test_usage_adds_up() -> None:
    assert Usage(1, 2, 3, 4) + Usage(10, 20, 30, 40) == Usage(11, 22, 33, 44)
    assert sum([Usage(1), Usage(2)], Usage()) == Usage(3)


@pytest.mark.parametrize("nested", [True, False])
def test_a_journal_plays_what_a_model_said(kit: Any, api: str, tmp_path: Path, nested: bool) -> None:
    """Recorded from a real SDK, written as a journal, cut off by a kill: the same turns come again."""
    server = kit.serve(
        Reply("I look.", [("frame", {"number": 0}), ("frame", "{broken")], thinking="hm"),
        Reply("Done: ä.", cached_tokens=50),
    )
    backend = kit.backend(api, server)

    async def talk(asked: Any) -> list[Turn]:
        messages: list[Message] = [UserMessage("Why?")]
        turns: list[Turn] = []
        for _ in range(2):
            turns.append(await kit.ask(asked, messages, close=False))
            messages.append(AssistantMessage(turns[-1]))
            messages.append(ToolResults(tuple(ToolResult(call.id, call.name, "r") for call in turns[-1].calls)))
        await asked.aclose()
        return turns

    said = kit.run(talk(backend))
    journal = tmp_path / "journal.jsonl"
    records: list[dict[str, Any]] = [{"t": "2026-01-01T00:00:00Z", "kind": "start"}]
    for turn in said:
        record = {"turn": turn.to_json()} if nested else turn.to_json()
        records += [{"t": "2026-01-01T00:00:01Z", "kind": "turn", **record}, {"kind": "result", "text": "r"}]
    text = "".join(json.dumps(record) + "\n" for record in records)
    journal.write_text(text + '{"kind": "turn", "te', encoding="utf-8")
    assert kit.run(talk(registry.create(f"scripted:{journal}"))) == said
