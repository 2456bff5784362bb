"""The assistant over a debug session by hand: what it does, what it refuses, and that the user wins."""

import asyncio
import dataclasses
import json
from typing import Any

import pytest

from dap_agent.control import assistant as module
from dap_agent.errors import DapAgentError
from dap_agent.fixes import applying
from dap_agent.fixes.edits import plan
from dap_agent.fixes.proposal import WriteFile
from dap_agent.models.base import ModelError


def ends_of(work: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in work.journal.path.read_text().splitlines()]


async def test_from_a_crash_to_a_fix_that_is_applied_and_taken_back(world: Any, model: Any, data: Any) -> None:
    w = world()
    w.guest.stops(data)
    w.turns(model.calls(("frame", {"number": 0})), model.calls(model.fix()))
    work = await w.assistant.autodebug("Keep total.")
    assert (work.task, work.status, w.assistant.working) == ("autodebug", "running", work)
    await w.over()
    assert (work.status, work.proposes, work.outcome.proved) == ("proposed", True, True)
    assert w.assistant.working is None
    assert "The user adds: Keep total." in w.script.sent[0]["messages"][0].text
    before = (w.root / "shop/orders.py").read_text()
    assert await w.assistant.apply() is work
    assert work.applied == ("shop/orders.py", "tests/test_gift.py")
    assert "or 0" in (w.root / "shop/orders.py").read_text()
    with pytest.raises(DapAgentError, match=r"applied already\. /undo"):
        await w.assistant.apply()
    undone = await w.assistant.undo()
    assert undone.label == "A line without a price is free"
    assert (w.root / "shop/orders.py").read_text() == before
    await w.assistant.apply()  # once more, as it is not there now
    await w.assistant.close()
    kinds = [record["kind"] for record in ends_of(work)]
    assert kinds.count("applied") == 2
    assert kinds.index("end") < kinds.index("applied")


async def test_what_is_taken_back_may_be_the_fix_of_another(world: Any, model: Any, data: Any) -> None:
    w = world()
    w.guest.stops(data)
    w.turns(model.calls(model.fix()))
    work = await w.assistant.autodebug()
    await w.over()
    await w.assistant.apply()
    other = plan(work.workspace, [WriteFile("notes.py", "NOTE = 1\n")])
    applying.apply(work.workspace, other, label="A note")
    assert (await w.assistant.undo()).label == "A note"
    assert work.applied and (await w.assistant.status())["proposal"]["applied"]
    assert (await w.assistant.undo()).label == work.title
    assert not work.applied
    await w.assistant.close()


async def test_an_unproved_fix_is_only_written_by_name(world: Any, model: Any, data: Any) -> None:
    w = world()
    w.guest.stops(data)
    green = "def test_nothing():\n    assert True\n"
    w.turns(*(model.calls(model.fix(green + "\n" * n)) for n in range(3)))
    work = await w.assistant.autodebug()
    await w.over()
    assert work.proposes
    assert not work.outcome.proved
    with pytest.raises(DapAgentError, match=r"not proved \(not red: .*/apply --unproved"):
        await w.assistant.apply()
    with pytest.raises(DapAgentError, match="not the newest"):
        await w.assistant.apply(unproved=True, id="x")
    await w.assistant.apply(unproved=True, id=work.id)
    await w.assistant.close()


async def test_what_is_missing_is_said(world: Any, model: Any, data: Any) -> None:
    w = world()
    for act in (w.assistant.autodebug, lambda: w.assistant.ask("Why?"), lambda: w.assistant.evaluate("1", None)):
        with pytest.raises(DapAgentError, match="The program is running"):
            await act()
    with pytest.raises(DapAgentError, match="no exception"):
        w.assistant.snapshot()
    with pytest.raises(DapAgentError, match=r"no fix to apply\. /fix looks"):
        await w.assistant.apply()
    with pytest.raises(DapAgentError, match="no applied fix to undo"):
        await w.assistant.undo()
    w.guest.stops({**data, "reason": "pause", "exception": None})
    with pytest.raises(DapAgentError, match="There is no exception at this stop"):
        await w.assistant.autodebug()
    with pytest.raises(DapAgentError, match="The question is empty"):
        await w.assistant.ask("  ")
    w.configuration = dataclasses.replace(w.configuration, model=None)
    with pytest.raises(DapAgentError, match="No model is configured") as caught:
        await w.assistant.ask("Why?")
    assert "launch configuration" in caught.value.message
    assert w.assistant.working is None
    w.guest.ends()
    with pytest.raises(DapAgentError, match="has ended"):
        await w.assistant.autodebug()
    assert w.made == []
    await w.assistant.close()


async def test_a_pause_can_be_asked_about(world: Any, model: Any, data: Any) -> None:
    w = world()
    w.guest.stops({**data, "reason": "pause", "exception": None, "notes": ["The program was paused."]})
    w.turns(model.say("It waits."))
    work = await w.assistant.ask("What does it do?")
    await w.over()
    assert (work.status, work.outcome.explanation) == ("answered", "It waits.")
    await w.assistant.close()


async def test_one_investigation_at_a_time(world: Any, model: Any, data: Any) -> None:
    w = world()
    w.guest.stops(data)
    w.turns(model.hang)
    first = asyncio.ensure_future(w.assistant.autodebug())
    for act in (w.assistant.autodebug, lambda: w.assistant.ask("Why?")):  # also while it is only beginning
        await asyncio.sleep(0)
        with pytest.raises(DapAgentError, match="runs already"):
            await act()
    work = await first
    with pytest.raises(DapAgentError, match=r"/cancel"):
        await w.assistant.autodebug()
    assert await w.assistant.cancel() is work
    assert (work.status, work.failure) == ("failed", module.CANCELLED)
    assert await w.assistant.cancel() is None
    w.turns(model.say("It is None."))
    await w.assistant.ask("Why?")
    await w.over()
    await w.assistant.close()


async def test_the_user_wins_while_the_model_is_asked(world: Any, model: Any, data: Any) -> None:
    w = world()
    w.guest.stops(data)
    asked = asyncio.Event()

    async def hang(messages: Any) -> Any:
        asked.set()
        await asyncio.Event().wait()

    w.turns(hang)
    work = await w.assistant.autodebug()
    await asked.wait()
    w.guest.goes_on()
    await w.over()
    assert (work.status, work.failure) == ("failed", module.RESUMED)
    assert ends_of(work)[-1]["explanation"] == "The program was resumed."
    await w.assistant.close()


async def test_the_user_wins_while_a_tool_waits(world: Any, model: Any, data: Any) -> None:
    w = world()
    stop = w.guest.stops(data)
    stop.hold = True
    w.turns(model.calls(("frame", {"number": 0})))
    work = await w.assistant.autodebug()
    await stop.held.wait()
    w.guest.goes_on()
    await w.over()
    assert work.failure == module.RESUMED
    result = next(record for record in ends_of(work) if record["kind"] == "result")
    assert "The program was resumed" in result["content"]
    assert result["error"]
    await w.assistant.close()


async def test_questions_at_one_stop_are_one_conversation_and_a_new_stop_begins_anew(
    world: Any, model: Any, data: Any
) -> None:
    w = world()
    for _ in range(2):
        w.guest.stops(dict(data))
        w.turns(model.say("It is None."), model.say("parse_line."))
        for question in ("What?", "Who?"):
            await w.assistant.ask(question)
            await w.over()
        w.guest.goes_on()
    assert [len(sent["messages"]) for sent in w.script.sent] == [1, 3, 1, 3]
    assert w.made == ["scripted:test"]
    await w.assistant.close()


async def test_after_the_end_the_last_snapshot_is_looked_at(world: Any, model: Any, data: Any) -> None:
    w = world()
    w.guest.stops(data)
    w.guest.ends()
    w.turns(model.calls(("frame", {"number": 0})), model.calls(model.fix()))
    work = await w.assistant.autodebug()
    await w.over()
    assert work.outcome.proved
    with pytest.raises(DapAgentError, match=r"has ended: nothing can be run .* /restart"):
        await w.assistant.evaluate("1", None)
    await w.assistant.restart()
    assert w.guest.restarts == 1
    await w.assistant.close()


@pytest.mark.parametrize(
    "error",
    [
        ModelError("There is no key: set X.", "missing-key"),
        DapAgentError("There is no provider x."),
    ],
)
async def test_a_model_that_cannot_be_made_is_one_sentence(
    world: Any, model: Any, data: Any, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    w = world()

    def create(name: str) -> Any:
        raise error

    monkeypatch.setattr("dap_agent.models.registry.create", create)
    w.guest.stops(data)
    work = await w.assistant.autodebug()
    await w.over()
    assert work.failure == str(error)
    assert (ends_of(work)[-1]["status"], ends_of(work)[-1]["explanation"]) == ("failed", str(error))
    await w.assistant.close()


async def test_a_model_that_cannot_be_reached_is_an_outcome(world: Any, model: Any, data: Any) -> None:
    w = world()
    w.guest.stops(data)
    w.turns(ModelError("The model cannot be reached.", "unreachable"))
    work = await w.assistant.ask("Why?")
    await w.over()
    assert (work.status, work.outcome.explanation) == ("model-error", "The model cannot be reached.")
    await w.assistant.close()


async def test_a_bug_of_ours_is_told_and_the_session_goes_on(world: Any, model: Any, data: Any) -> None:
    w = world()
    w.guest.stops(data)
    w.turns(RuntimeError("broken plug-in"))
    work = await w.assistant.ask("Why?")
    await w.over()
    assert "dap-agent itself failed with RuntimeError: broken plug-in" in (work.failure or "")
    await w.assistant.close()


async def test_money_is_for_the_session_the_rest_for_each_question(world: Any, model: Any, data: Any) -> None:
    w = world()
    w.configuration = dataclasses.replace(w.configuration, max_cost=2.0, max_turns=1)
    w.guest.stops(data)
    w.turns(model.say("Yes."), model.say("No."))
    for _ in range(2):  # 1100 tokens at $0.001
        await w.assistant.ask("Is it?")
        await w.over()
    with pytest.raises(DapAgentError, match=r"\$2\.20 of the \$2\.00 for this session are spent"):
        await w.assistant.ask("Is it?")
    await w.assistant.close()


async def test_what_was_cancelled_has_cost_what_it_has_cost(world: Any, model: Any, data: Any) -> None:
    w = world()
    stop = w.guest.stops(data)
    stop.hold = True
    w.turns(model.calls(("stack", {})), model.calls(("frame", {"number": 0})))
    await w.assistant.autodebug()
    await stop.held.wait()
    await w.assistant.cancel()
    assert (await w.assistant.status())["cost"] == 1.1
    await w.assistant.close()


async def test_closing_ends_what_runs_and_leaves_no_task(world: Any, model: Any, data: Any) -> None:
    w = world()
    w.guest.stops(data)
    w.turns(model.hang)
    work = await w.assistant.autodebug()
    await w.assistant.close()
    assert work.failure == module.CLOSED
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert w.guest._listeners == []


async def test_the_status_tells_what_goes_on(world: Any, model: Any, data: Any) -> None:
    w = world()
    empty = {"program": "running", "exception": None, "model": "scripted:test", "working": None, "proposal": None}
    assert await w.assistant.status() == {**empty, "cost": 0}
    w.guest.stops(data)
    w.turns(model.calls(model.fix()))
    work = await w.assistant.autodebug()
    assert (await w.assistant.status())["working"] == {"id": work.id, "task": "autodebug"}
    await w.over()
    status = await w.assistant.status()
    assert status["exception"].startswith("TypeError: float()")
    assert status["proposal"] == {"id": work.id, "title": "A line without a price is free", "applied": False}
    await w.assistant.close()
