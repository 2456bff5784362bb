"""Live output, plain and on a terminal, and the question."""

import asyncio
import io
import os
import pty
import select
import sys
import termios
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dap_agent.agent.progress import Progress
from dap_agent.cli.terminal import Terminal
from dap_agent.cli.ui import NullSink, PlainSink, RichSink, Ui

EVENTS = [
    Progress("turn", "turn 1"),
    Progress("text", "I look at "),
    Progress("text", "the value.\nThen "),
    Progress("text", "the parser."),
    Progress("tool", "variable frame=0 path=customer.tier"),
    Progress("result", "customer.tier: str = 'Gold '\x1b[2J"),
    Progress("model-retry", "the provider is busy, again in 2 s"),
    Progress("turn", "turn 2"),
    Progress("tool", "propose: Read tiers without blanks"),
    Progress("proposal", "Read tiers without blanks"),
    Progress("verdict", "proved: red, then green"),
    Progress("result", "Verdict: proved.", {"name": "propose", "error": False}),
    Progress("result", "The proposal is sent back.", {"name": "propose", "error": True}),
    Progress("note", "the budget is small"),
]

TRANSCRIPT = """\
  I look at the value.
  Then the parser.
  > variable frame=0 path=customer.tier
    customer.tier: str = 'Gold '
  ! the provider is busy, again in 2 s
  > propose: Read tiers without blanks
    proved: red, then green
    The proposal is sent back.
  the budget is small
"""


def test_progress_is_plain_lines_when_piped() -> None:
    stream = io.StringIO()
    ui = Ui(PlainSink(stream))
    for event in EVENTS:
        ui.progress(event)
    ui.idle()
    assert stream.getvalue() == TRANSCRIPT


def test_a_reader_that_has_gone_does_not_matter() -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    Ui(PlainSink(Closed())).note("hello")


def test_silent_means_silent(capfd: pytest.CaptureFixture[str]) -> None:
    ui = Ui.create(silent=True)
    ui.note("hello")
    for event in EVENTS:
        ui.progress(event)
    assert capfd.readouterr() == ("", "")
    assert not ui.can_ask


def test_without_a_terminal_the_output_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    Ui.create().note("hello", "good")
    assert sys.stderr.getvalue() == "dap-agent: hello\n"  # type: ignore[attr-defined]
    assert Terminal.open() is None


class Screen:
    """A pseudo terminal: the end that dap-agent has, and what was written to it."""

    def __init__(self) -> None:
        self.keyboard, self.terminal = pty.openpty()
        self.stream = os.fdopen(os.dup(self.terminal), "w", encoding="utf-8")

    def type(self, text: str) -> None:
        os.write(self.keyboard, text.encode())

    def text(self) -> str:
        self.stream.flush()
        data = b""
        while select.select([self.keyboard], [], [], 0.2)[0]:
            data += os.read(self.keyboard, 65536)
        return data.decode()

    def close(self) -> None:
        self.stream.close()
        os.close(self.keyboard)
        os.close(self.terminal)


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Screen]:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    screen = Screen()
    yield screen
    screen.close()


def test_a_terminal_gets_colours_and_a_spinner(screen: Screen) -> None:
    ui = Ui(RichSink(screen.stream))
    for event in EVENTS:
        ui.progress(event)
    ui.idle()
    text = screen.text()
    assert "\x1b[1m  > variable frame=0" in text or "\x1b[1mvariable frame=0" in text
    assert "turn 2" in text
    assert "Gold '" in text
    assert "\x1b[2J" not in text, "the program's escape sequence is not obeyed"
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h"), "the cursor is shown again"


def test_no_color_is_honoured(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    ui = Ui(RichSink(screen.stream))
    ui.note("bad news", "error")
    assert "\x1b[31m" not in screen.text()


OUTCOME: Any = SimpleNamespace(
    proposal=SimpleNamespace(
        title="Fix it",
        cause="A blank.",
        evidence=(),
        test=SimpleNamespace(file="tests/test_it.py", source="def test_it(): ...\n"),
    ),
    changes=SimpleNamespace(diff=lambda: "-old\n+new\n"),
    verdict=SimpleNamespace(kind="proved", summary="Red, then green.", red=None, green=None, others=None),
    explanation="Because of the blank.",
    trial=None,
)


def asked(typed: str, screen: Screen) -> tuple[bool, str]:
    stream = io.StringIO()

    async def ask() -> bool:
        asking = asyncio.ensure_future(Ui(PlainSink(stream), terminal).approve(OUTCOME))
        await asyncio.sleep(0)
        screen.type(typed)
        return await asking

    screen.type("y\n")  # meant for the program: no answer
    with Terminal(os.dup(screen.terminal)) as terminal:
        return asyncio.run(ask()), stream.getvalue()


@pytest.mark.parametrize(("typed", "answer"), [("y\n", True), ("Yes\n", True), ("n\n", False), ("\x04", False)])
def test_an_answer_is_read_from_the_terminal(typed: str, answer: bool, screen: Screen) -> None:
    assert asked(typed, screen)[0] is answer


def test_everything_can_be_looked_at_before_the_answer(screen: Screen) -> None:
    answer, text = asked("d\nt\no\ne\nwhat\ny\n", screen)
    assert answer
    for shown in ("+new", "def test_it()", "There was no proof run", "Because of the blank.", "one of the letters"):
        assert shown in text
    assert text.count("apply this fix?") == 6


def test_the_programs_terminal_modes_are_put_aside_for_the_question(screen: Screen) -> None:
    with Terminal(os.dup(screen.terminal)) as terminal:
        raw = termios.tcgetattr(screen.terminal)
        raw[3] &= ~(termios.ICANON | termios.ECHO)
        termios.tcsetattr(screen.terminal, termios.TCSANOW, raw)

        async def ask() -> str | None:
            reading = asyncio.ensure_future(terminal.read_line())
            await asyncio.sleep(0)
            assert termios.tcgetattr(screen.terminal)[3] & termios.ICANON
            screen.type("y\n")
            return await reading

        assert asyncio.run(ask()) == "y"
        assert not termios.tcgetattr(screen.terminal)[3] & termios.ICANON


def test_nobody_to_ask_is_a_no() -> None:
    assert asyncio.run(Ui(NullSink()).approve(OUTCOME)) is False


def test_a_terminal_is_needed_to_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("dap_agent.cli.terminal.TTY", str(tmp_path / "none"))
    assert Terminal.open() is None
