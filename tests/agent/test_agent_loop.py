"""The conversation: order, budgets, nudges, failures, cancellation, what is told and written."""

import asyncio
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dap_agent.agent import prompts
from dap_agent.agent.budget import Budget
from dap_agent.agent.journal import read
from dap_agent.models import scripted
from dap_agent.models.base import AssistantMessage, ModelError, Retry, ToolResults, Turn, Usage, UserMessage
from dap_agent.session.api import ProgramResumed

SCHEMA = Path(__file__).parents[2] / "schemas" / "journal.schema.json"


def kinds(run: Any) -> list[str]:
    """The kinds of the journal's records, all of which follow the schema."""
    import jsonschema

    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    records = read(run.journal.path)
    for record in records:
        validator.validate(record)
    return [record["kind"] for record in records]


def end(run: Any) -> dict[str, Any]:
    record = read(run.journal.path)[-1]
    assert record["kind"] == "end"
    return record


async def test_the_history_is_append_only(run: Any, kit: Any) -> None:
    model = kit.Script(
        kit.calls(("frame", {"number": 0}), ("stack", {})),
        kit.calls(("frame", {"number": 1})),
        kit.say("a"),
        kit.say("b"),
    )
    await run(model)
    sent = [request["messages"] for request in model.sent]
    for earlier, later in pairwise(sent):
        assert later[: len(earlier)] == earlier
    assert {request["system"] for request in model.sent} == {prompts.SYSTEM}
    assert len({str(request["tools"]) for request in model.sent}) == 1
    assert [type(message) for message in sent[-1]] == [
        UserMessage, AssistantMessage, ToolResults, AssistantMessage, ToolResults, AssistantMessage, UserMessage
    ]  # fmt: skip
    assert sent[0] == (UserMessage(prompts.render(run.program.snapshot, run.workspace).message),)


async def test_parallel_calls_are_answered_in_order(run: Any, kit: Any) -> None:
    turn = kit.calls(("stack", {}), ("frame", {"number": 99}), ("exception", {}))
    model = kit.Script(turn, kit.say("a"), kit.say("b"))
    await run(model)
    results = model.results(1)
    assert [(result.call_id, result.name, result.error) for result in results] == [
        (turn.calls[0].id, "stack", False),
        (turn.calls[1].id, "frame", True),
        (turn.calls[2].id, "exception", False),
    ]


async def test_words_without_a_call_get_one_nudge_then_end_it(run: Any, kit: Any) -> None:
    model = kit.Script(kit.say("I think..."), kit.say("The price is missing; nothing to fix."))
    outcome = await run(model)
    assert model.sent[1]["messages"][-1] == UserMessage(prompts.NUDGE)
    assert (outcome.status, outcome.explanation) == ("gave-up", "The price is missing; nothing to fix.")
    assert (outcome.proposal, outcome.verdict, outcome.turns) == (None, None, 2)
    assert outcome.usage == Usage(2000, 200)
    assert kinds(run) == ["start", "prompt", "turn", "prompt", "turn", "end"]


async def test_only_one_nudge_in_all(run: Any, kit: Any) -> None:
    model = kit.Script(kit.say("hm"), kit.calls(("stack", {})), kit.say("I give up."))
    assert (await run(model)).explanation == "I give up."


async def test_an_answer_cut_off_is_told(run: Any, kit: Any) -> None:
    model = kit.Script(kit.say("very long", stop="length"), kit.say(""))
    outcome = await run(model)
    assert model.sent[1]["messages"][-1] == UserMessage(prompts.CUT_OFF)
    assert outcome.explanation == "very long"


async def test_answers_cut_off_end_it_only_twice_in_a_row(run: Any, kit: Any) -> None:
    cut = kit.say("", stop="length")
    model = kit.Script(kit.say("hm"), kit.calls(("stack", {})), cut, kit.calls(("exception", {})), cut, cut)
    outcome = await run(model)
    assert outcome.turns == 6
    assert outcome.explanation == "The model's answers were cut off at the limit of output tokens. hm"


async def test_a_call_cut_off_is_told(run: Any, kit: Any) -> None:
    cut = replace(kit.calls(("propose", '{"title": "Fi')), stop="length")
    model = kit.Script(cut, kit.say("a"), kit.say("b"))
    await run(model)
    (result,) = model.results(1)
    assert result.error
    assert "The arguments of propose are no JSON object" in result.content
    assert result.content.endswith(f"[dap-agent: {prompts.CUT_OFF}]")


async def test_a_refusal(run: Any, kit: Any) -> None:
    outcome = await run(kit.Script(kit.say("I can't.", stop="refusal")))
    assert (outcome.status, outcome.explanation) == ("gave-up", "The model refused to go on. I can't.")


async def test_at_a_pause_the_explanation_is_the_answer(run: Any, kit: Any) -> None:
    run.program.data["reason"], run.program.data["exception"] = "pause", None
    outcome = await run(kit.Script(kit.say("It waits for a lock.")))
    assert (outcome.status, outcome.explanation, outcome.turns) == ("gave-up", "It waits for a lock.", 1)


async def test_turns_run_out_and_the_model_is_told_before(run: Any, kit: Any) -> None:
    model = kit.Script(
        kit.calls(("stack", {})),
        kit.calls(("exception", {}), ("frame", {"number": 0})),
        kit.calls(("frame", {"number": 1}), text="So."),
    )
    outcome = await run(model, Budget(turns=3))
    assert outcome.status == "out-of-budget"
    assert outcome.explanation == "The investigation stopped: all 3 model calls are used (--max-turns). So."
    told = [str(request["messages"]).count("This is your last turn.") for request in model.sent]
    assert told == [0, 0, 1]
    assert model.results(2)[-1].content.endswith(
        "[dap-agent: This is your last turn. Call propose now, or explain the cause and what the user can do.]"
    )


async def test_a_single_turn_is_told_with_the_first_message(run: Any, kit: Any) -> None:
    model = kit.Script(kit.say("The cause is x."))
    outcome = await run(model, Budget(turns=1))
    assert "This is your last turn." in model.sent[0]["messages"][0].text
    assert outcome.status == "out-of-budget"
    assert outcome.explanation.endswith("The cause is x.")


async def test_tokens_run_out(run: Any, kit: Any) -> None:
    usage = Usage(3_000, 100)
    model = kit.Script(
        kit.calls(("stack", {}), usage=usage),
        kit.calls(("exception", {}), usage=usage),
        kit.calls(("frame", {"number": 0}), usage=usage),
    )
    outcome = await run(model, Budget(tokens=7_000))
    assert outcome.status == "out-of-budget"
    assert "tokens are used (--max-tokens)" in outcome.explanation
    assert len(model.sent) == 3
    assert "The token budget is nearly used" in str(model.sent[-1]["messages"])
    assert [request["max_tokens"] for request in model.sent] == [7_000, 3_900, 1024]


async def test_money_runs_out(run: Any, kit: Any) -> None:
    model = kit.Script(*[kit.calls(("frame", {"number": n})) for n in range(3)], price=0.001)
    outcome = await run(model, Budget(cost=2.0))
    assert (outcome.status, outcome.turns, outcome.cost) == ("out-of-budget", 2, 2.2)
    assert "$2.20 of $2.00 are spent (--max-cost)" in outcome.explanation
    assert end(run)["cost"] == 2.2


async def test_an_unknown_price_is_told(run: Any, kit: Any) -> None:
    await run(kit.Script(kit.say("a"), kit.say("b")))
    assert run.told("note")[0].text == "The price of script:test is not known: the money budget cannot be kept."


async def test_time_runs_out_between_calls(run: Any, kit: Any) -> None:
    now = [0.0]

    def slow(messages: Any) -> Turn:
        now[0] += 40
        return kit.calls(("frame", {"number": len(messages) // 2}))

    model = kit.Script(slow, slow, slow, slow)
    outcome = await run(model, Budget(seconds=100), clock=lambda: now[0])
    assert (outcome.status, outcome.turns, outcome.seconds) == ("out-of-budget", 3, 120)
    assert "The time is nearly over" in str(model.sent[1]["messages"])


async def test_time_runs_out_within_a_call(run: Any, kit: Any) -> None:
    model = kit.Script(lambda messages: asyncio.Event().wait())
    outcome = await run(model, Budget(seconds=0.05))
    assert (outcome.status, outcome.turns) == ("out-of-budget", 0)
    assert "--timeout" in outcome.explanation


async def test_a_failing_model(run: Any, kit: Any) -> None:
    outcome = await run(
        kit.Script(kit.calls(("stack", {})), ModelError("The key is wrong: set ANTHROPIC_API_KEY.", "wrong-key"))
    )
    assert (outcome.status, outcome.explanation) == ("model-error", "The key is wrong: set ANTHROPIC_API_KEY.")
    assert kinds(run)[-2:] == ["error", "end"]
    assert read(run.journal.path)[-2]["error"] == "wrong-key"


async def test_the_program_goes_on(run: Any, kit: Any) -> None:
    run.program.fail = ProgramResumed("The program went on, so there is nothing to look at.")
    outcome = await run(kit.Script(kit.calls(("frame", {"number": 0}), ("frame", {"number": 1}))))
    assert (outcome.status, outcome.explanation) == ("resumed", "The program went on, so there is nothing to look at.")
    assert kinds(run) == ["start", "prompt", "turn", "call", "result", "end"]


async def test_a_bug_of_ours_is_kept_in_the_journal(run: Any, kit: Any) -> None:
    run.program.fail = ZeroDivisionError("oops")
    outcome = await run(kit.Script(kit.calls(("frame", {"number": 0})), kit.say("a"), kit.say("b")))
    assert outcome.status == "gave-up"
    (error,) = [record for record in read(run.journal.path) if record["kind"] == "error"]
    assert "ZeroDivisionError: oops" in error["message"]
    assert any("A bug in dap-agent: the tool frame failed" in event.text for event in run.told("note"))


async def test_cancelling_closes_the_journal(run: Any, kit: Any) -> None:
    started = asyncio.Event()

    async def hang(messages: Any) -> Turn:
        started.set()
        await asyncio.Event().wait()
        raise AssertionError

    task = asyncio.create_task(run(kit.Script(kit.calls(("stack", {})), hang)))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert kinds(run) == ["start", "prompt", "turn", "call", "result", "end"]
    assert (end(run)["status"], end(run)["turns"]) == ("cancelled", 1)


async def test_a_failure_of_a_backend_ends_the_journal_and_surfaces(run: Any, kit: Any) -> None:
    with pytest.raises(RuntimeError, match="broken plug-in"):
        await run(kit.Script(RuntimeError("broken plug-in")))
    assert kinds(run) == ["start", "prompt", "error", "end"]
    assert end(run)["status"] == "failed"


async def test_a_timeout_of_the_backend_itself_is_not_taken_for_ours(run: Any, kit: Any) -> None:
    with pytest.raises(asyncio.TimeoutError):
        await run(kit.Script(asyncio.TimeoutError()))


async def test_progress_for_a_live_display(run: Any, kit: Any) -> None:
    model = kit.Script(
        kit.calls(("variable", {"frame": 0, "path": "x\ny"}), text="Look:"), kit.say("a"), kit.say("b"), price=0
    )
    await run(model)
    first = [(event.kind, event.text) for event in run.progress[:4]]
    assert first == [
        ("turn", "turn 1"),
        ("text", "Look:"),
        ("tool", "variable frame=0 path=x y"),
        ("result", "no such name 'x\\ny'"),
    ]
    assert run.progress[3].data["error"] is True


async def test_retries_are_told(run: Any, kit: Any) -> None:
    model = kit.Script()
    model.on_retry = None

    def retrying(messages: Any) -> Turn:
        model.on_retry(Retry("Too many requests.", 1, 0.5))
        return kit.say("a")

    model.turns = [retrying, kit.say("b")]
    await run(model)
    assert run.told("model-retry")[0].text == "Too many requests. Trying again in 0.5 s."
    assert model.on_retry is None


async def test_the_journal_plays_again(run: Any, kit: Any, program: Any, workspace: Any) -> None:
    turns = [kit.calls(("frame", {"number": 0}), ("frame", '{"number"')), kit.say("a"), kit.say("The end.")]
    await run(kit.Script(*turns))
    again = kit.Run(program, workspace)
    outcome = await again(scripted.create(str(run.journal.path)))
    assert (outcome.status, outcome.explanation, outcome.cost) == ("gave-up", "The end.", 0.0)

    def essence(path: Path) -> list[dict[str, Any]]:
        varying = ("t", "seconds", "cost")
        return [{key: value for key, value in record.items() if key not in varying} for record in read(path)[1:]]

    assert essence(again.journal.path) == essence(run.journal.path)
