"""The commands of a debug console, `/help` and the others, as text over an `Assistant`. Knows nothing of DAP.

A command is answered by one text. What takes long goes on after that and is said line by line, in order.
"""

import shlex
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dap_agent.control import render
from dap_agent.control.assistant import Assistant
from dap_agent.control.work import Listener, Work
from dap_agent.errors import DapAgentError
from dap_agent.session.answers import evaluation_text
from dap_agent.session.rendering import clean, clip, one_line

if TYPE_CHECKING:
    from dap_agent.agent.progress import Progress
    from dap_agent.session.snapshot import Snapshot

Category = Literal["console", "important"]
Say = Callable[[str, Category], None]

UNPROVED = "--unproved"
FRAME = "frame"


@dataclass(frozen=True)
class Command:
    """One command.

    Args:
        name: with its slash.
        usage: the words after the name, empty for none.
        help: one line.
    """

    name: str
    usage: str
    help: str

    @property
    def line(self) -> str:
        """Name and usage."""
        return f"{self.name} {self.usage}".rstrip()


COMMANDS = (
    Command("/why", "", "the exception, where it was raised, values and causes; with a model also the explanation"),
    Command("/fix", "[HINTS]", "look for a fix, prove it by a test, and show it; nothing is written"),
    Command("/ask", "QUESTION", "ask about the stopped program; further questions at this stop go on from there"),
    Command("/try", "CODE", "run Python in the selected frame of the live program, for at most 5 seconds"),
    Command("/show", "", "the last fix again: cause, evidence, change, verdict"),
    Command("/apply", f"[{UNPROVED}]", "write the last fix to the files"),
    Command("/undo", "", "take back the last fix that was written"),
    Command(
        "/reload", "[FILE...]", "put what files hold now into the live program; without names all that have changed"
    ),
    Command(
        "/restart",
        "[frame [N]]",
        "start the program again; frame: only make the call of the selected frame, or of frame N, again, and go on",
    ),
    Command("/cancel", "", "end the investigation that runs"),
    Command("/history", "", "stops, questions, fixes of this session, with the ids for dap-agent journal show"),
    Command("/help", "", "this list"),
)
NAMES = tuple(command.name for command in COMMANDS)
_OLD_CODE = "The running program keeps its old code; /restart runs the new one."
_FAILED = "At a raise /restart frame makes the failing call again and goes on; /restart starts the program again."
_OVER = "/restart runs the program with it."
_WHY_RUNS = "The explanation has to wait: an investigation runs already."


class Console(Listener):
    """See the module.

    Args:
        assistant: does the work.
        say: is given text that is said beside the answers: whole lines or pieces, with a category of DAP's `output`.
    """

    def __init__(self, assistant: Assistant, say: Say) -> None:
        self._assistant = assistant
        self._say = say
        self._said_hint = False
        self._line_begun = False  # the last piece that was said has not ended its line
        self._asked = False  # /reload is being answered
        self._words = 0  # characters of the model's present turn that were said
        self._handlers: dict[str, Callable[[str, int | None], Awaitable[str]]] = {
            "/why": self._why,
            "/fix": self._fix,
            "/ask": self._ask,
            "/try": self._try,
            "/show": self._show,
            "/apply": self._apply,
            "/undo": self._undo,
            "/reload": self._reload,
            "/restart": self._restart,
            "/cancel": self._cancel,
            "/history": self._history,
            "/help": self._help,
        }
        assistant.listen(self)

    async def run(self, line: str, frame_id: int | None = None) -> str:
        """Do what a *line* of the console says.

        Args:
            frame_id: the client's selected frame.

        Returns:
            The answer; what takes longer is said later.

        Raises:
            DapAgentError: it cannot be done; the message says why.
        """
        name, rest = split(line)
        handler = self._handlers.get(name)
        if handler is None:
            raise DapAgentError(
                f"There is no command {clip(one_line(name), 40)}; there are {', '.join(NAMES)} (/help says more). "
                "A line that begins with // goes to the debugger."
            )
        command = COMMANDS[NAMES.index(name)]
        if not rest and command.usage and not command.usage.startswith("["):
            raise DapAgentError(f"Usage: {command.line} - {command.help}.")
        if rest and not command.usage:
            raise DapAgentError(f"{name} takes nothing behind it. Usage: {command.line} - {command.help}.")
        return await handler(rest, frame_id)

    # The commands

    async def _help(self, _: str, __: int | None) -> str:
        width = max(len(command.line) for command in COMMANDS)
        lines = [f"  {command.line:{width}}  {command.help}" for command in COMMANDS]
        model = (await self._assistant.configuration()).model
        return "\n".join(
            [
                *lines,
                f"Model: {one_line(model)}." if model else "No model is configured: /fix says how to do that.",
                "Stepping on, continuing or stopping ends an investigation. All other lines go to the debugger.",
            ]
        )

    async def _why(self, _: str, __: int | None) -> str:
        assistant = self._assistant
        guest = assistant.guest
        if guest.state == "stopped":
            snapshot = (await guest.program()).snapshot
            if snapshot.reason == "pause":
                raise DapAgentError(
                    "There is no exception at this stop: it is a breakpoint, a step or a pause. /ask QUESTION looks at "
                    "it."
                )
        else:
            snapshot = assistant.snapshot()
        verb = "stopped at" if guest.state == "stopped" else "was last stopped at"
        with render.read_in(Path(snapshot.data["process"]["cwd"])):
            text = render.plain(render.crash(snapshot, verb)).rstrip("\n")
        if guest.state not in ("stopped", "ended") or (await assistant.configuration()).model is None:
            return text
        if assistant.working is not None:
            return f"{text}\n{_WHY_RUNS}"
        from dap_agent.agent.prompts import WHY

        try:
            await assistant.ask(WHY, called="/why")
        except DapAgentError as error:
            return f"{text}\n{error.message}"
        return text

    async def _fix(self, rest: str, _: int | None) -> str:
        work = await self._assistant.autodebug(rest or None)
        return f"{work.model} looks for a fix of {render.headline(work.snapshot)} (journal {work.id})."

    async def _ask(self, rest: str, _: int | None) -> str:
        work = await self._assistant.ask(rest)
        return f"{work.model} looks (journal {work.id})."

    async def _try(self, rest: str, frame_id: int | None) -> str:
        return evaluation_text(await self._assistant.evaluate(rest, frame_id))

    async def _show(self, _: str, __: int | None) -> str:
        work = self._assistant.proposed or self._assistant.last
        if work is None:
            raise DapAgentError("There is nothing to show: /fix looks for a fix.")
        return result_text(work)

    async def _apply(self, rest: str, _: int | None) -> str:
        if rest not in ("", UNPROVED):
            raise DapAgentError(f"Usage: /apply, or /apply {UNPROVED} for a fix that is not proved.")
        work = await self._assistant.apply(unproved=rest == UNPROVED)
        return f"Applied to {', '.join(map(one_line, work.applied))}. /undo takes it back. {self._given()}"

    async def _undo(self, _: str, __: int | None) -> str:
        undone = await self._assistant.undo()
        words = []
        if undone.restored:
            words.append("restored " + ", ".join(one_line(path) for path in undone.restored))
        if undone.removed:
            words.append("removed " + ", ".join(one_line(path) for path in undone.removed))
        said = f"Took back {one_line(undone.label)!r}: {'; '.join(words) or 'the files had their old content already'}."
        return f"{said} {self._assistant.given.text()}".rstrip()

    def _given(self) -> str:
        text, state = self._assistant.given.text(), self._assistant.guest.state
        if text and state == "stopped" and self._assistant.given.report is not None:
            first, newline, rest = text.partition("\n")
            return f"{first} {_FAILED}{newline}{rest}"
        return text or (_OVER if state == "ended" else _OLD_CODE)

    async def _reload(self, rest: str, _: int | None) -> str:
        configuration = await self._assistant.configuration()
        here = configuration.workspace[0] if configuration.workspace else configuration.project or Path.cwd()
        try:
            files = [str(here / name) for name in shlex.split(rest)]
        except ValueError as error:
            raise DapAgentError(f"These names cannot be read ({error}). Usage: /reload [FILE...].") from None
        self._asked = True  # the answer says what the listener is told
        try:
            await self._assistant.reload(files or None)
        finally:
            self._asked = False
        return self._assistant.given.text()

    async def _restart(self, rest: str, frame_id: int | None) -> str:
        what, _, number = rest.partition(" ")
        if not rest:
            await self._assistant.restart()
            return "The program was started again."
        if what != FRAME or not (number.strip().isdigit() or not number.strip()):
            raise DapAgentError(f"Usage: /restart, or /restart {FRAME}, or /restart {FRAME} N with a frame's number.")
        if number.strip():
            found = await self._assistant.restart_frame(int(number))
        else:
            found = await self._assistant.restart_frame(0, frame_id)
        return found.text

    async def _cancel(self, _: str, __: int | None) -> str:
        if await self._assistant.cancel() is None:
            raise DapAgentError("There is no investigation to cancel.")
        return "Cancelled."

    async def _history(self, _: str, __: int | None) -> str:
        return "\n".join(self._assistant.history.lines()) or "Nothing has happened in this session so far."

    # What is said beside the answers

    def stopped(self, snapshot: "Snapshot", thread_id: int) -> None:
        """See `Listener`: the first time, what can be done is told."""
        if not self._said_hint:
            self._said_hint = True
            self._lines("dap-agent: /why explains this exception, /fix looks for a fix, /help lists all commands.")

    def began(self, work: Work) -> None:
        """See `Listener`."""
        self._words = 0

    def progress(self, work: Work, event: "Progress") -> None:
        """See `Listener`: the model's words as they come, and one line for each step."""
        text = clean(event.text)
        if event.kind == "text":
            self._pieces(text, "" if work.task == "ask" else "  ")
            self._words += len(text)
        elif event.kind == "turn":
            self._words = 0
        elif event.kind == "tool":
            self._lines(f"  > {text.strip()}")
        elif event.kind in ("note", "verdict"):
            self._lines("\n".join(f"    {line}" for line in text.strip().split("\n")))
        elif event.kind == "model-retry":
            self._lines(f"  ! {text.strip()}")

    def reloaded(self, text: str) -> None:
        """See `Listener`."""
        if not self._asked:
            self._lines(f"dap-agent: {text}")

    def ended(self, work: Work) -> None:
        """See `Listener`."""
        outcome = work.outcome
        if work.failure is not None or outcome is None:
            self._lines(f"dap-agent: {work.failure}")
            return
        answered = outcome.status == "answered"
        if not answered or not self._words:
            self._lines(result_text(work))
        self._lines(render.plain(render.spent(outcome, None)).rstrip("\n"))
        if work.proposes:
            proved = (
                "/apply writes it" if outcome.proved else f"It is not proved: /apply {UNPROVED} writes it all the same"
            )
            self._lines(
                f"dap-agent: a fix is proposed: {one_line(work.title)}. {proved}, /show shows it again.", "important"
            )

    def _lines(self, text: str, category: Category = "console") -> None:
        """Whole lines, after the line that the model is in is ended."""
        self._say(("\n" if self._line_begun else "") + text + "\n", category)
        self._line_begun = False

    def _pieces(self, text: str, indent: str) -> None:
        """A piece of a line or of several."""
        if not text:
            return
        begun = self._line_begun or not indent
        *finished, last = text.split("\n")
        shown = ""
        for line in finished:
            shown += ("" if begun or not line else indent) + line + "\n"
            begun = not indent
        if last:
            shown += ("" if begun else indent) + last
        self._line_begun = bool(last) or (not finished and self._line_begun)
        if shown:
            self._say(shown, "console")


def split(line: str) -> tuple[str, str]:
    """A line of the console as (command, the words after it)."""
    name, _, rest = line.strip().partition(" ")
    first, newline, below = name.partition("\n")
    return (first, (below + " " + rest).strip()) if newline else (name, rest.strip())


def result_text(work: Work) -> str:
    """What a work has ended with, for a reader."""
    outcome = work.outcome
    if work.failure is not None or outcome is None:
        return f"dap-agent: {work.failure}"
    if outcome.status == "answered":
        return clean(outcome.explanation)
    lines = [] if outcome.status == "proposed" else render.unsuccessful(outcome)
    if outcome.proposal is not None:
        lines += render.proposal(outcome)
        if work.applied:
            lines += render.say("this fix is applied.")
    return render.plain(lines).rstrip("\n")


def completions(text: str) -> list[tuple[str, str]]:
    """The commands that *text*, which begins with a slash, may become, each with its help; other words: none."""
    typed = text.lstrip()
    if typed.startswith("/apply ") and UNPROVED.startswith(typed.removeprefix("/apply ").lstrip()):
        return [(f"/apply {UNPROVED}", "also if it is not proved")]
    if typed.startswith("/restart ") and FRAME.startswith(typed.removeprefix("/restart ").lstrip()):
        return [(f"/restart {FRAME}", "make the call of the selected frame again, and go on")]
    return [(command.name, command.help) for command in COMMANDS if command.name.startswith(typed)]
