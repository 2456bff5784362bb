"""The user's view of a run: live and coloured on a terminal, plain lines otherwise, nothing for `--json -`.

Everything here goes to standard error, as standard output is the program's.
"""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from dap_agent.control import render
from dap_agent.control.render import Line, Span
from dap_agent.session.rendering import clean

if TYPE_CHECKING:
    from dap_agent.agent.outcome import Outcome
    from dap_agent.agent.progress import Progress
    from dap_agent.cli.terminal import Terminal
    from dap_agent.session.snapshot import Snapshot

#: Our style names and what `rich` makes of them.
STYLES = {
    "dim": "dim",
    "strong": "bold",
    "error": "bold red",
    "good": "bold green",
    "bad": "yellow",
    "add": "green",
    "remove": "red",
    "hunk": "cyan",
    "code": "",
}

QUESTION = "apply this fix? [y]es, [n]o, [d]iff, [t]est, [o]utput of the proof, [e]xplain: "


class Sink(Protocol):
    """Where lines go."""

    def write(self, lines: Iterable[Line]) -> None:
        """Show finished lines."""

    def busy(self, text: str | None) -> None:
        """Show that something is going on, or with None that nothing is."""

    def ask(self, question: str) -> None:
        """Show a question, with the cursor behind it."""


class NullSink:
    """Says nothing."""

    def write(self, lines: Iterable[Line]) -> None:
        """Nothing."""

    def busy(self, text: str | None) -> None:
        """Nothing."""

    def ask(self, question: str) -> None:
        """Nothing."""


class PlainSink:
    """Plain text.

    Args:
        stream: where to.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, lines: Iterable[Line]) -> None:
        """Write and flush, so that the order with the program's own output is right."""
        self._put(render.plain(lines))

    def busy(self, text: str | None) -> None:
        """Nothing: a line for each wait would be noise in a log."""

    def ask(self, question: str) -> None:
        """Write the question without a line break."""
        self._put(f"dap-agent: {question}")

    def _put(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except BrokenPipeError:
            # who reads our messages has gone; the program and its fix go on without a reader
            return


class RichSink:
    """A terminal, through `rich`, which honours NO_COLOR and TERM=dumb.

    Args:
        stream: the terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console

        self._console = Console(file=stream, markup=False, emoji=False, highlight=False, soft_wrap=True)
        self._status: Any = None

    def write(self, lines: Iterable[Line]) -> None:
        """Print the lines above a running spinner."""
        from rich.text import Text

        for line in lines:
            self._console.print(Text.assemble(*((span.text, STYLES.get(span.style, "")) for span in line)))

    def busy(self, text: str | None) -> None:
        """A spinner with *text*; None ends it."""
        from rich.text import Text

        if self._status is not None and (text is None or not self._console.is_terminal):
            self._status.stop()
            self._status = None
        elif self._status is not None:
            self._status.update(Text(text or ""))
        elif text is not None and not self._console.is_dumb_terminal:
            self._status = self._console.status(Text(text))
            self._status.start()

    def ask(self, question: str) -> None:
        """Print the question without a line break."""
        self.busy(None)
        self._console.print(f"dap-agent: {question}", style="bold", end="")


class Ui:
    """Says what happens, and asks.

    Args:
        sink: where it says it.
        terminal: where it asks; None: nobody can be asked.
    """

    def __init__(self, sink: Sink, terminal: "Terminal | None" = None) -> None:
        self._sink = sink
        self._terminal = terminal
        self._words = ""

    @classmethod
    def create(cls, *, silent: bool = False, terminal: "Terminal | None" = None) -> "Ui":
        """The one that fits this process.

        Args:
            silent: say nothing at all (`--json -`).
            terminal: where to ask.
        """
        if silent:
            return cls(NullSink())
        sink: Sink = RichSink(sys.stderr) if sys.stderr.isatty() else PlainSink(sys.stderr)
        return cls(sink, terminal)

    @property
    def can_ask(self) -> bool:
        """Whether there is somebody to ask."""
        return self._terminal is not None

    def note(self, text: str, style: str = "") -> None:
        """One statement."""
        self.show(render.say(text, style))

    def show(self, lines: Iterable[Line]) -> None:
        """Finished lines, after the model's words so far."""
        self._end_words()
        self._sink.write(lines)

    def crash(self, snapshot: "Snapshot", verb: str = "stopped at") -> None:
        """The report of a crash."""
        self.show(render.crash(snapshot, verb))

    def progress(self, event: "Progress") -> None:
        """What the investigation does right now."""
        text = clean(event.text).strip()
        if event.kind == "text":
            self._words += clean(event.text)
            *finished, self._words = self._words.split("\n")
            self._sink.write([(Span("  "), Span(line, "dim")) for line in finished if line.strip()])
            return
        self._end_words()
        if event.kind == "turn":
            self._sink.busy(text)
            return
        lead, style = {
            "tool": ("  > ", "strong"),
            "result": ("    ", "dim"),
            "verdict": ("    ", "strong"),
            "model-retry": ("  ! ", "bad"),
        }.get(event.kind, ("  ", ""))
        # the call of propose has told the title, and the verdict how it went, unless it was sent back
        told = event.kind == "proposal" or (
            event.kind == "result" and event.data.get("name") == "propose" and not event.data.get("error")
        )
        if text and not told:
            self._sink.write([(Span(lead), Span(line, style)) for line in text.split("\n")])
        if event.kind in ("tool", "proposal"):
            self._sink.busy(text.split("\n")[0])

    def idle(self) -> None:
        """The investigation is over: no spinner any more."""
        self._end_words()
        self._sink.busy(None)

    async def approve(self, outcome: "Outcome") -> bool:
        """Ask whether to apply the proposal that was shown; no answer is a no."""
        if self._terminal is None:
            return False
        views: dict[str, Callable[[], list[Line]]] = {
            "d": lambda: render.diff(outcome.changes.diff()) if outcome.changes else [],
            "t": lambda: render.test_source(outcome),
            "o": lambda: render.proof_output(outcome),
            "e": lambda: render.proposal(outcome, full=False) + _explanation(outcome),
        }
        self._terminal.forget_typed()
        while True:
            self._sink.ask(QUESTION)
            answer = await self._terminal.read_line()
            if answer is None:
                self._sink.write([()])
                return False
            letter = answer.strip().lower()[:1]
            if letter == "y":
                return True
            if letter == "n":
                return False
            if letter in views:
                self._sink.write(views[letter]())
            else:
                self.note("please answer with one of the letters y, n, d, t, o, e.")

    def spent(self, outcome: "Outcome", journal: Path | None) -> None:
        """What the investigation used."""
        self.show(render.spent(outcome, journal))

    def _end_words(self) -> None:
        if self._words.strip():
            self._sink.write([(Span("  "), Span(self._words, "dim"))])
        self._words = ""


def _explanation(outcome: "Outcome") -> list[Line]:
    text = clean(outcome.explanation).strip()
    return [(Span("    "), Span(line)) for line in text.split("\n")] if text else []
