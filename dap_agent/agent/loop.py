"""The investigation: one append-only conversation with a model, its tool calls answered, within a budget."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dap_agent.agent import prompts
from dap_agent.agent.budget import Budget, Meter
from dap_agent.agent.jobs import ASK, FIX, Conversation, Job
from dap_agent.agent.journal import Journal
from dap_agent.agent.outcome import Outcome, Status
from dap_agent.agent.progress import OnProgress, Progress, ProgressKind
from dap_agent.agent.proposing import Desk
from dap_agent.agent.tools import TEST_TIMEOUT, Toolbox, ToolContext
from dap_agent.agent.toolset import tools
from dap_agent.errors import DapAgentError
from dap_agent.models.base import (
    AssistantMessage,
    Backend,
    Call,
    Message,
    ModelError,
    ToolResult,
    ToolResults,
    Turn,
    UserMessage,
)
from dap_agent.proxy.patience import within
from dap_agent.session.api import ProgramResumed, StoppedProgram
from dap_agent.session.redaction import mask_code
from dap_agent.session.rendering import clean, clip

if TYPE_CHECKING:
    from dap_agent.fixes.edits import ChangeSet
    from dap_agent.fixes.trials import Trial
    from dap_agent.fixes.workspace import Workspace


async def investigate(
    program: StoppedProgram,
    backend: Backend,
    workspace: "Workspace",
    *,
    python: Path,
    budget: Budget,
    journal: Journal,
    allow_evaluate: bool = False,
    on_progress: OnProgress | None = None,
    prove: bool = True,
    token_budget: int = prompts.FIRST_MESSAGE_TOKENS,
    instructions: str | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Let a model look at a stopped program until it proposes a fix, gives up, or the budget is used.

    Args:
        program: the stop.
        backend: the model.
        workspace: where files may be read and changed; nothing is changed here.
        python: the debuggee's interpreter, for the proof.
        budget: the limits.
        journal: gets every step and an `end` record in any case; it stays open.
        allow_evaluate: whether the model may run code in the live program; else in a jailed copy of it.
        on_progress: told of every step, on the event loop.
        prove: whether proposals are proved; without it the first one that applies is the outcome.
        token_budget: of the first message.
        instructions: the user's own words for the model, added to its task.
        clock: seconds, monotonic.

    Returns:
        The outcome. Failures of the model and the end of the stop are outcomes too.

    Raises:
        asyncio.CancelledError: the task was cancelled; the journal has its `end` record.
    """
    investigation = _Investigation(
        program, backend, workspace, python, budget, journal, allow_evaluate, on_progress, prove, clock
    )
    first = partial(prompts.first_message, program.snapshot, workspace, token_budget, instructions=instructions)
    return await _to_the_end(investigation, first)


async def answer(
    program: StoppedProgram,
    backend: Backend,
    workspace: "Workspace",
    question: str,
    *,
    python: Path,
    budget: Budget,
    journal: Journal,
    conversation: Conversation | None = None,
    allow_evaluate: bool = False,
    on_progress: OnProgress | None = None,
    token_budget: int = prompts.FIRST_MESSAGE_TOKENS,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Let a model look at a stopped program until it answers a question about it; nothing is proposed.

    Args:
        question: the user's.
        conversation: what was asked and answered at this stop so far; goes on with this question if it is answered.

    The other arguments and what is raised are those of `investigate`.

    Returns:
        The outcome; `answered` with the answer as its explanation, or what was in the way.
    """
    before = conversation.messages if conversation is not None else []
    investigation = _Investigation(
        program, backend, workspace, python, budget, journal, allow_evaluate, on_progress, False, clock, ASK, before
    )
    if before:
        first: Callable[[], str] = partial(mask_code, clean(question.strip()))
    else:
        first = partial(prompts.first_message, program.snapshot, workspace, token_budget, question=clean(question))
    outcome = await _to_the_end(investigation, first)
    if conversation is not None and outcome.status == "answered":
        conversation.messages = investigation.messages
    return outcome


async def _to_the_end(investigation: "_Investigation", first: Callable[[], str]) -> Outcome:
    journal = investigation.journal
    try:
        with investigation.hearing_of_retries():
            outcome = await investigation.run(first)
    except asyncio.CancelledError as error:
        investigation.end("cancelled", _why_cancelled(error))
        raise
    except BaseException as error:
        journal.write("error", message=f"{type(error).__name__}: {error}")
        investigation.end("failed", f"{type(error).__name__}: {error}")
        raise
    investigation.end(outcome.status, outcome.explanation)
    return outcome


def _why_cancelled(error: asyncio.CancelledError) -> str:
    # who cancels may say why (`Task.cancel`)
    return str(error.args[0]) if error.args and error.args[0] else "The investigation was cancelled."


class _Investigation:
    def __init__(
        self,
        program: StoppedProgram,
        backend: Backend,
        workspace: "Workspace",
        python: Path,
        budget: Budget,
        journal: Journal,
        allow_evaluate: bool,
        on_progress: OnProgress | None,
        prove: bool,
        clock: Callable[[], float],
        job: Job = FIX,
        before: Sequence[Message] = (),
    ) -> None:
        self.program = program
        self.backend = backend
        self.workspace = workspace
        self.journal = journal
        self.clock = clock
        self.meter = Meter(budget, backend.cost, clock)
        self.job = job
        self.messages: list[Message] = list(before)
        self._on_progress = on_progress
        self.desk = Desk(
            workspace, program.snapshot, python, prove=prove, journal=journal, tell=self.tell, attempt=self.attempt
        )
        self.toolbox = Toolbox(
            tools(allow_evaluate=allow_evaluate, propose=job.proposes),
            ToolContext(program, workspace, python, self.desk),
        )
        self.words = ""

    async def attempt(self, changes: "ChangeSet") -> "Trial | None":
        """A trial of a proposal's changes; None where none can be made."""
        from dap_agent.fixes.trials import try_changes

        if self.program.snapshot.exception is None:
            return None
        try:
            (trial,) = await try_changes(self.program, [changes], timeout=min(5.0, max(0.5, self.meter.seconds_left)))
        except ProgramResumed:
            raise
        except DapAgentError as error:
            self.tell("note", f"The fix was not tried in a copy of the program: {error.message}")
            return None
        return trial

    def tell(self, kind: ProgressKind, text: str, **data: Any) -> None:
        if self._on_progress is not None:
            self._on_progress(Progress(kind, text, data))

    def end(self, status: str, explanation: str) -> None:
        if self.journal.trouble:
            self.tell("note", self.journal.trouble)
        verdict = self.desk.verdict
        self.journal.write(
            "end",
            status=status,
            explanation=explanation,
            verdict=verdict.kind if verdict else None,
            usage=self.meter.usage.to_json(),
            cost=self.meter.cost,
            turns=self.meter.turns,
            seconds=round(self.meter.seconds, 3),
        )

    def outcome(self, status: Status, explanation: str) -> Outcome:
        return Outcome(
            status,
            self.desk.proposal,
            self.desk.changes,
            self.desk.verdict,
            explanation,
            self.meter.usage,
            self.meter.cost,
            self.meter.turns,
            self.meter.seconds,
            self.desk.trial,
        )

    @contextmanager
    def hearing_of_retries(self) -> Iterator[None]:
        """Tell of each repeated request, where the backend can (`Backend`'s attribute `on_retry`)."""
        if not hasattr(self.backend, "on_retry"):
            yield
            return
        before = self.backend.on_retry
        self.backend.on_retry = lambda retry: self.tell("model-retry", str(retry), discarded=retry.discarded)
        try:
            yield
        finally:
            self.backend.on_retry = before

    async def run(self, make_first: Callable[[], str]) -> Outcome:
        first = await asyncio.to_thread(make_first)
        specs = self.toolbox.specs
        self.journal.write(
            "prompt",
            system=self.job.system,
            message=first,
            tools=[
                {"name": spec.name, "description": spec.description, "parameters": spec.parameters} for spec in specs
            ],
        )
        self.messages.append(UserMessage(first))
        if self.meter.budget.cost is not None and self.meter.cost is None:
            self.tell("note", f"The price of {self.backend.name} is not known: the money budget cannot be kept.")
        nudged = warned = cut = False
        while True:
            why = self.meter.exhausted()
            if why:
                return self.outcome("out-of-budget", self._without_proposal(f"The investigation stopped: {why}."))
            nearly = self.meter.nearly()
            if nearly and not warned:
                warned = True
                self.remark(prompts.LITTLE_LEFT[nearly] + self.job.last_words)
            try:
                turn = await self.ask()
            except ModelError as error:
                self.journal.write("error", message=error.message, error=error.kind)
                return self.outcome("model-error", error.message)
            except asyncio.TimeoutError:
                if self.meter.seconds_left > 0:
                    raise  # not ours
                why = f"{self.meter.budget.seconds:.0f} seconds are over (--timeout)"
                return self.outcome("out-of-budget", self._without_proposal(f"The investigation stopped: {why}."))
            if turn.text.strip():
                self.words = clean(turn.text.strip())
            if turn.stop == "refusal":
                return self.outcome("gave-up", f"The model refused to go on. {self.words}".strip())
            if turn.calls:
                cut = False
                try:
                    await self.answer(turn)
                except ProgramResumed as error:
                    return self.outcome("resumed", error.message)
                if self.desk.done:
                    assert self.desk.proposal is not None
                    return self.outcome("proposed", self.desk.proposal.cause)
            elif self._is_final(turn) or (cut if turn.stop == "length" else nudged):
                return self._last_word(turn)
            else:
                # an answer that was cut off is no decision to say no more: only twice in a row it ends it
                nudged, cut = True, turn.stop == "length"
                self.say(self.job.cut_off if cut else self.job.nudge)

    def _is_final(self, turn: Turn) -> bool:
        # at a pause the explanation is what was asked for
        asked = not self.job.proposes or self.program.snapshot.exception is None
        return asked and turn.stop == "end" and bool(turn.text.strip())

    def _last_word(self, turn: Turn) -> Outcome:
        if not self.job.proposes and turn.text.strip():
            return self.outcome("answered", self.words)
        cut = "The model's answers were cut off at the limit of output tokens." if turn.stop == "length" else ""
        said = f"{cut} {self.words}".strip()
        return self.outcome("gave-up", said or "The model gave no explanation.")

    def _without_proposal(self, why: str) -> str:
        return f"{why} {self.words}".strip() if self.desk.proposal is None else why

    def say(self, text: str) -> None:
        self.messages.append(UserMessage(text))
        self.journal.write("prompt", message=text)
        self.tell("note", f"the model is told: {text}")

    def remark(self, text: str) -> None:
        """Add to the last message, which has not been sent: two messages of ours in a row break some chat templates."""
        last = self.messages[-1]
        note = f"\n\n[dap-agent: {text}]"
        if isinstance(last, UserMessage):
            self.messages[-1] = UserMessage(last.text + note)
        elif isinstance(last, ToolResults):
            *before, result = last.results
            self.messages[-1] = ToolResults((*before, replace(result, content=result.content + note)))
        self.journal.write("prompt", message=text)
        self.tell("note", f"the model is told: {text}")

    async def ask(self) -> Turn:
        number = self.meter.turns + 1
        self.tell("turn", f"turn {number}", turn=number, of=self.meter.budget.turns, cost=self.meter.cost)
        began = self.clock()
        turn = await within(
            self.backend.complete(
                system=self.job.system,
                messages=tuple(self.messages),
                tools=self.toolbox.specs,
                max_tokens=self.meter.output_limit(),
                on_text=lambda piece: self.tell("text", clean(piece)),
            ),
            self.meter.seconds_left,
        )
        seconds = self.clock() - began
        self.meter.add(turn.usage, seconds)
        self.messages.append(AssistantMessage(turn))
        self.journal.write(
            "turn", number=number, turn=turn.to_json(), seconds=round(seconds, 3), cost=self.backend.cost(turn.usage)
        )
        return turn

    async def answer(self, turn: Turn) -> None:
        """Answer the calls of a turn, in order; all of them, so that the history stays whole."""
        results = []
        for call in turn.calls:
            results.append(await self.one(call))
            if self.desk.done:
                return
        self.messages.append(ToolResults(tuple(results)))
        if turn.stop == "length":
            self.remark(self.job.cut_off)

    async def one(self, call: Call) -> ToolResult:
        number = self.meter.turns
        self.tell("tool", call_line(call), name=call.name, arguments=call.arguments)
        self.journal.write("call", turn=number, id=call.id, name=call.name, arguments=call.arguments, raw=call.raw)
        began = self.clock()
        self.toolbox.context.test_timeout = max(1.0, min(TEST_TIMEOUT, self.meter.seconds_left))
        try:
            result = await self.toolbox.call(call, number)
        except ProgramResumed as error:
            self._note_result(call, error.message, True, began)
            raise
        except asyncio.CancelledError as error:
            self._note_result(call, _why_cancelled(error), True, began)
            raise
        if result.bug is not None:
            self.journal.write("error", message=result.bug)
            self.tell("note", f"A bug in dap-agent: the tool {call.name} failed; see {self.journal.path}.")
        self._note_result(call, result.content, result.error, began)
        return ToolResult(call.id, call.name, result.content, result.error)

    def _note_result(self, call: Call, content: str, error: bool, began: float) -> None:
        self.journal.write(
            "result",
            turn=self.meter.turns,
            id=call.id,
            name=call.name,
            content=content,
            error=error,
            seconds=round(self.clock() - began, 3),
        )
        self.tell("result", clip(content.split("\n")[0], 160), name=call.name, error=error, content=content)


def call_line(call: Call) -> str:
    """A call in one line for a display: `variable frame=0 path=order.items`."""
    if call.arguments is None:
        return clean(call.name)
    if call.name == "propose":
        return f"propose: {clip(clean(str(call.arguments.get('title', ''))), 120)}"
    words = [f"{name}={clip(str(value), 60)}" for name, value in call.arguments.items()]
    return clean(" ".join([call.name, *words])).replace("\n", " ")
