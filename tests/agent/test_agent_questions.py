"""Questions about a stop: the loop without a proposal, conversations, the user's own instructions."""

import asyncio
import json
from typing import Any

import pytest

from dap_agent.agent import loop
from dap_agent.agent.budget import Budget
from dap_agent.agent.jobs import Conversation
from dap_agent.agent.loop import answer
from dap_agent.agent.outcome import Outcome
from dap_agent.agent.stopping import while_stopped
from dap_agent.models.base import AssistantMessage, Turn, Usage, UserMessage
from dap_agent.session.api import StopOver


async def asked(run: Any, backend: Any, question: str, **options: Any) -> Outcome:
    return await answer(
        run.program,
        backend,
        run.workspace,
        question,
        python=run.python,
        budget=options.pop("budget", Budget()),
        journal=run.journal,
        on_progress=run.progress.append,
        **options,
    )


def records(run: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run.journal.path.read_text().splitlines()]


async def test_the_last_words_are_the_answer_and_nothing_can_be_proposed(run: Any, kit: Any) -> None:
    script = kit.Script(kit.calls(("stack", {}), text="Let me see."), kit.say("The gift has no price."))
    outcome = await asked(run, script, "Why is price None?")
    assert (outcome.status, outcome.explanation, outcome.turns) == ("answered", "The gift has no price.", 2)
    assert outcome.proposal is None
    first = script.sent[0]
    assert "propose" not in [tool.name for tool in first["tools"]]
    assert first["system"] == loop.ASK.system
    assert first["messages"][0].text.rstrip().endswith("# Task\nWhy is price None?")
    assert records(run)[-1]["status"] == "answered"


async def test_a_further_question_goes_on_from_the_first(run: Any, kit: Any) -> None:
    conversation = Conversation()
    await asked(run, kit.Script(kit.say("It is None.")), "What is price?", conversation=conversation)
    second = kit.Script(kit.say("parse_line made it."))
    await asked(run, second, "And who\x1b[31m made it?", conversation=conversation)
    sent = second.sent[0]["messages"]
    assert [type(message) for message in sent] == [UserMessage, AssistantMessage, UserMessage]
    assert sent[2].text == "And who made it?"
    assert len(conversation.messages) == 4


async def test_what_was_cut_short_leaves_the_conversation_as_it_was(run: Any, kit: Any) -> None:
    conversation = Conversation()
    await asked(run, kit.Script(kit.say("Yes.")), "Is it?", conversation=conversation)
    script = kit.Script(kit.calls(("stack", {})), kit.calls(("exception", {})))
    outcome = await asked(run, script, "Why?", conversation=conversation, budget=Budget(turns=1))
    assert outcome.status == "out-of-budget"
    assert len(conversation.messages) == 2


async def test_secrets_in_a_question_are_masked(run: Any, kit: Any) -> None:
    conversation = Conversation()
    secret = "ghp_" + "a1B2" * 9
    for script in (kit.Script(kit.say("No.")), kit.Script(kit.say("No."))):
        await asked(run, script, f"Is {secret} right?", conversation=conversation)
        assert secret not in str(script.sent)
    assert secret not in run.journal.path.read_text()


@pytest.mark.parametrize("turn", [Turn("", (), "end", Usage()), Turn("Half an ans", (), "length", Usage())])
async def test_no_answer_and_half_an_answer_are_asked_for_once_more(run: Any, kit: Any, turn: Turn) -> None:
    script = kit.Script(turn, kit.say("Because."))
    outcome = await asked(run, script, "Why?")
    assert (outcome.status, outcome.explanation) == ("answered", "Because.")
    assert script.sent[1]["messages"][-1].text in (loop.ASK.nudge, loop.ASK.cut_off)


async def test_silence_twice_is_no_answer(run: Any, kit: Any) -> None:
    outcome = await asked(run, kit.Script(kit.say(""), kit.say("")), "Why?")
    assert (outcome.status, outcome.explanation) == ("gave-up", "The model gave no explanation.")


async def test_the_users_instructions_are_part_of_the_task(run: Any, kit: Any) -> None:
    script = kit.Script(kit.say("No."), kit.say("No."))
    await run(script, instructions="  Keep the public API.  ")
    assert script.sent[0]["messages"][0].text.rstrip().endswith("The user adds: Keep the public API.")


async def test_the_end_of_the_stop_is_what_a_pending_call_ends_with(run: Any, kit: Any) -> None:
    pending, resumed = asyncio.Event(), asyncio.Event()

    async def frame(number: int) -> Any:
        pending.set()
        await asyncio.Event().wait()

    async def until_over() -> str:
        await resumed.wait()
        return "The program was resumed."

    run.program.frame, run.program.until_over = frame, until_over
    script = kit.Script(kit.calls(("frame", {"number": 0})))
    task = asyncio.create_task(while_stopped(run.program, asked(run, script, "Why?")))
    await pending.wait()
    resumed.set()
    with pytest.raises(StopOver, match=r"The program was resumed\. This ends the investigation\."):
        await task
    *_, result, end = records(run)
    assert (result["kind"], result["content"], result["error"]) == ("result", "The program was resumed.", True)
    assert (end["status"], end["explanation"]) == ("cancelled", "The program was resumed.")
