"""The whole run against a fake debuggee: what is said, what is done, and the exit status."""

import asyncio
import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dap_agent.cli import exit_status, stops
from dap_agent.cli.command_line import UsageError
from dap_agent.cli.json_report import Report
from dap_agent.cli.run import run
from dap_agent.cli.settings import Settings
from dap_agent.cli.ui import PlainSink, Ui
from dap_agent.errors import DapAgentError
from dap_agent.models import registry
from dap_agent.models.base import ModelError, Usage
from dap_agent.session.launch import Ended, ProgramCommand, Stopped
from dap_agent.session.snapshot import Snapshot


@dataclass
class Program:
    """A stopped program that notes when it is resumed."""

    snapshot: Snapshot
    resumed: bool = False

    async def resume(self) -> None:
        self.resumed = True

    async def until_over(self) -> str:
        return await asyncio.get_running_loop().create_future()


@dataclass
class FakeDebuggee:
    """Plays events."""

    events: list[Any]
    closed: int = 0
    signals: list[int] = field(default_factory=list)

    async def next_event(self) -> Any:
        return self.events.pop(0)

    def send_signal(self, number: int) -> None:
        self.signals.append(number)

    async def close(self) -> None:
        self.closed += 1


class Terminal:
    """A terminal on which somebody types the given lines."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)

    def forget_typed(self) -> None:
        """Nothing was typed before."""

    async def read_line(self) -> str | None:
        return self.lines.pop(0) if self.lines else None


@dataclass
class World:
    """Everything around a run, with its results."""

    root: Path
    runs: list[FakeDebuggee]
    outcomes: list[Any] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    terminal: Any = None
    status: int = 0
    said: str = ""
    launched: list[dict[str, Any]] = field(default_factory=list)
    investigated: list[Any] = field(default_factory=list)
    applied: list[str] = field(default_factory=list)
    report: dict[str, Any] = field(default_factory=dict)


def settings_for(root: Path, **given: Any) -> Settings:
    defaults: dict[str, Any] = {
        "model": "scripted:turns.json",
        "fix": "never",
        "python": Path("/usr/bin/python3"),
        "python_given": False,
        "json": None,
        "show_prompt": False,
        "max_turns": 40,
        "max_tokens": 500_000,
        "max_cost": 5.0,
        "timeout": 900.0,
        "workspace": (),
        "stop_at_raise": "auto",
        "record": None,
        "ignore": (),
        "allow_evaluate": False,
    }
    return Settings(**{**defaults, **given})


def outcome(status: str = "proposed", kind: str | None = "proved", **more: Any) -> Any:
    proposal = SimpleNamespace(
        title="Read tiers without blanks",
        cause="A blank.",
        evidence=(),
        test=SimpleNamespace(file="tests/test_tier.py", source="def test_tier(): ...\n"),
        to_json=lambda: {
            "title": "Read tiers without blanks",
            "cause": "A blank.",
            "evidence": [{"text": "the tier has a blank"}],
            "edits": [{"kind": "str_replace", "file": "a.py", "old": "a", "new": "b"}],
            "test": {"file": "tests/test_tier.py", "source": "def test_tier(): ...\n"},
        },
    )
    run = SimpleNamespace(outcome="failed", exit_status=1, output="E\n", seconds=0.1)
    verdict = SimpleNamespace(
        kind=kind, summary="So it is.", breaks=(), runner="pytest", red=run, green=None, others=None
    )
    found = status == "proposed"
    given = {
        "status": status,
        "proposal": proposal if found else None,
        "changes": SimpleNamespace(diff=lambda: "-old\n+new\n", files=()) if found else None,
        "verdict": verdict if found and kind else None,
        "trial": None,
        "explanation": "" if found else "It is hard.",
        "usage": Usage(1000, 50),
        "cost": 0.01,
        "turns": 2,
        "seconds": 1.5,
        "proved": found and kind == "proved",
    }
    return SimpleNamespace(**{**given, **more})


@pytest.fixture
def play(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, validate_report: Callable[[Any], None]
) -> Callable[..., World]:
    """Plays a run with the given debuggees and outcomes."""

    def start(runs: list[list[Any]], *outcomes: Any, terminal: Any = None, **given: Any) -> World:
        world = World(tmp_path, [FakeDebuggee(events) for events in runs], list(outcomes), given, terminal)

        async def launch(command: ProgramCommand, **options: Any) -> Any:
            world.launched.append(options)
            debuggee = world.runs[len(world.launched) - 1]
            if debuggee.events and isinstance(debuggee.events[0], Exception):
                raise debuggee.events[0]
            return debuggee

        async def investigate(program: Any, backend: Any, workspace: Any, **options: Any) -> Any:
            world.investigated.append((program, options))
            found = world.outcomes.pop(0)
            if isinstance(found, BaseException):
                raise found
            return found

        async def aclose() -> None:
            pass

        def apply(workspace: Any, changes: Any, *, label: str) -> None:
            if world.settings.get("stale"):
                raise DapAgentError("shop/pricing.py has changed since the model read it; run again.")
            world.applied.append(label)

        backend = SimpleNamespace(name="scripted:turns.json", aclose=aclose)
        monkeypatch.setattr("dap_agent.models.registry.create", given.get("create", lambda spec: backend))
        monkeypatch.setattr("dap_agent.agent.loop.investigate", investigate)
        monkeypatch.setattr("dap_agent.fixes.applying.apply", apply)
        stream = io.StringIO()
        report = Report({"python": "/p", "target": "app.py", "module": False, "args": ["--token=abc"], "cwd": "/"})
        options = {name: value for name, value in given.items() if name not in ("stale", "unasked", "create")}
        world.status = asyncio.run(
            run(
                settings_for(tmp_path, **options),
                ProgramCommand(Path("/usr/bin/python3"), "app.py", False, ("a",), tmp_path),
                Ui(PlainSink(stream), terminal),
                root=tmp_path,
                report=report,
                unasked=given.get("unasked", "never"),
                launch=launch,
            )
        )
        world.said = stream.getvalue()
        world.report = report.to_json()
        validate_report(world.report)
        assert world.report["exit_status"] == world.status
        assert all(debuggee.closed for debuggee in world.runs[: len(world.launched)])
        return world

    return start


@pytest.fixture
def stop(snapshot: Callable[..., Snapshot]) -> Callable[..., Stopped]:
    """Makes a stop."""

    def make(child: bool = False, **more: Any) -> Stopped:
        program: Any = Program(snapshot(**more))
        return Stopped(program, 1, child)

    return make


Play = Callable[..., World]
Stop = Callable[..., Stopped]


@pytest.mark.parametrize("status", [0, 1, 3, -15])
def test_a_program_that_does_not_crash_keeps_its_status(status: int, play: Play) -> None:
    world = play([[Ended(status)]])
    assert world.status == status
    assert world.said == ""


def test_a_crash_without_a_model_is_reported_and_told_how_to_get_one(play: Play, stop: Stop) -> None:
    first, second = stop(), stop()
    world = play([[first, second, Ended(1)]], model=None)
    assert world.status == exit_status.CRASHED
    assert first.program.resumed and second.program.resumed  # type: ignore[attr-defined]
    assert world.said.count("no model is configured") == 1
    assert world.said.count("the program stopped at KeyError: 'Gold '") == 1
    assert world.said.count("also stopped at KeyError: 'Gold '") == 1
    assert world.report["stops"] == ["KeyError: 'Gold '"] * 2
    assert world.report["program_status"] == 1


def test_a_proposal_that_is_not_applied(play: Play, stop: Stop) -> None:
    world = play([[stop(), Ended(1)]], outcome())
    assert world.status == exit_status.PROPOSED
    assert "proposed fix: Read tiers without blanks" in world.said
    assert "nothing was changed" in world.said
    assert world.applied == []
    assert world.report["diff"] == "-old\n+new\n"
    assert world.report["usage"]["input_tokens"] == 1000


def test_a_proved_fix_is_applied_after_the_program_has_ended_and_the_program_runs_again(play: Play, stop: Stop) -> None:
    stopped = stop()
    world = play([[stopped, Ended(1)], [Ended(0)]], outcome(), fix="auto")
    assert world.status == exit_status.FIXED
    assert world.applied == ["Read tiers without blanks"]
    assert stopped.program.resumed  # type: ignore[attr-defined]
    assert "the program now runs through" in world.said
    assert len(world.launched) == 2
    assert world.report["rerun"]["passed"] is True


@pytest.mark.parametrize("kind", ["not red", "still red", "breaks", "unproven", "red-but-not-for-this-reason"])
def test_auto_applies_nothing_that_is_not_proved(kind: str, play: Play, stop: Stop) -> None:
    world = play([[stop(), Ended(1)]], outcome(kind=kind), fix="auto")
    assert world.status == exit_status.PROPOSED
    assert world.applied == []
    assert "not applied, as it is not proved" in world.said


def test_the_same_exception_again(play: Play, stop: Stop) -> None:
    again = stop()
    world = play([[stop(), Ended(1)], [again, Ended(1)]], outcome(), fix="auto")
    assert world.status == exit_status.STILL_FAILING
    assert again.program.resumed  # type: ignore[attr-defined]
    assert "the program still fails with KeyError: 'Gold '" in world.said
    assert world.report["rerun"]["same_exception"] is True


def test_another_exception_instead(play: Play, stop: Stop, exception_of: Callable[..., Any]) -> None:
    other = stop(exception=exception_of("TypeError", "no"))
    world = play([[stop(), Ended(1)], [other, Ended(1)]], outcome(), fix="auto")
    assert world.status == exit_status.STILL_FAILING
    assert "the exception is gone, but the program now fails with TypeError: no." in world.said


def test_a_second_run_with_another_status(play: Play, stop: Stop) -> None:
    world = play([[stop(), Ended(1)], [Ended(4)]], outcome(), fix="auto")
    assert world.status == exit_status.STILL_FAILING
    assert "ended with status 4" in world.said


@pytest.mark.parametrize(
    ("lines", "status"), [(["y"], exit_status.FIXED), (["n"], exit_status.PROPOSED), ([], exit_status.PROPOSED)]
)
def test_on_a_terminal_the_user_decides(lines: list[str], status: int, play: Play, stop: Stop) -> None:
    world = play([[stop(), Ended(1)], [Ended(0)]], outcome(kind="still red"), terminal=Terminal(*lines), fix=None)
    assert world.status == status
    assert bool(world.applied) is (status == exit_status.FIXED)
    assert "verdict: still red" in world.said


def test_without_anybody_to_ask_a_fix_is_only_shown(play: Play, stop: Stop) -> None:
    world = play([[stop(), Ended(1)]], outcome(), fix="ask")
    assert world.status == exit_status.PROPOSED
    assert "no terminal to ask on" in world.said
    assert play([[stop(), Ended(1)], [Ended(0)]], outcome(), fix=None, unasked="auto").status == exit_status.FIXED


def test_a_stale_file_is_told(play: Play, stop: Stop) -> None:
    world = play([[stop(), Ended(1)]], outcome(), fix="auto", stale=True)
    assert world.status == exit_status.PROPOSED
    assert "has changed since the model read it" in world.said
    assert world.report["error"].startswith("shop/pricing.py has changed")


def test_how_a_package_may_be_changed_is_told_where_no_fix_was_found(play: Play, stop: Stop, tmp_path: Path) -> None:
    stopped, again = stop(), stop()
    site = tmp_path / "env/lib/python3.12/site-packages"
    for one in (stopped, again):
        inner = one.program.snapshot.data["frames"][0]
        inner.update(file=str(site / "nice_dates/core.py"), user=False)
        inner["package"] = {"name": "nice-dates", "version": "1.2"}
    world = play([[stopped, Ended(1)]], outcome("gave-up"))
    named = f"--workspace {tmp_path.resolve()} --workspace {site.resolve() / 'nice_dates'}"
    assert f"package nice-dates 1.2 is changed only if you name its folder: {named}" in world.said
    opened = play([[again, Ended(1)]], outcome("gave-up"), workspace=(tmp_path, site / "nice_dates"))
    assert "you name its folder" not in opened.said


def test_a_fix_that_the_program_does_not_see_is_told(play: Play, stop: Stop, tmp_path: Path) -> None:
    own, copy = tmp_path / "src/nice_dates/core.py", tmp_path / "env/lib/python3.12/site-packages/nice_dates/core.py"
    own.parent.mkdir(parents=True)
    own.write_text("x = 1\n")
    stopped = stop()
    stopped.program.snapshot.data["frames"][0].update(file=str(copy), user=False)
    changes = SimpleNamespace(diff=lambda: "", files=(SimpleNamespace(path=own),))
    world = play([[stopped, Ended(1)], [stop(), Ended(1)]], outcome(changes=changes), fix="auto")
    assert f"the program runs {copy}, a copy of src/nice_dates/core.py: install the project anew" in world.said


def test_a_later_stop_is_investigated_if_the_first_had_no_proposal(play: Play, stop: Stop) -> None:
    world = play([[stop(), stop(), stop(), Ended(1)]], outcome("gave-up"), outcome())
    assert world.status == exit_status.PROPOSED
    assert len(world.investigated) == 2
    assert "the model found no fix: It is hard." in world.said
    assert world.said.count("only the first is fixed") == 1


def test_the_budget_is_for_the_whole_run(play: Play, stop: Stop) -> None:
    world = play([[stop(), stop(), Ended(1)]], outcome("gave-up"), outcome("gave-up"), max_turns=5)
    budgets = [options["budget"] for _, options in world.investigated]
    assert (budgets[0].turns, budgets[1].turns) == (5, 3)
    assert budgets[1].tokens == 500_000 - 1050
    assert budgets[1].cost == pytest.approx(4.99)
    assert budgets[1].seconds == pytest.approx(898.5)


@pytest.mark.parametrize("found", [outcome("out-of-budget"), outcome("model-error"), outcome("gave-up", turns=40)])
def test_no_further_investigation_without_budget_or_model(found: Any, play: Play, stop: Stop) -> None:
    world = play([[stop(), stop(), Ended(1)]], found)
    assert world.status == exit_status.CRASHED
    assert len(world.investigated) == 1


def test_a_crash_without_a_stop_is_investigated_when_the_program_has_ended(play: Play, stop: Stop) -> None:
    crash: Any = stop(exception=None, reason="exit", notes=["The process was killed by signal 11 (SIGSEGV)."]).program
    world = play([[Ended(-11, (crash,), ("dap-agent inside the program: x: y",))]], outcome())
    assert world.status == exit_status.PROPOSED
    assert "dap-agent: The process was killed by signal 11" in world.said
    assert "dap-agent inside the program: x: y" in world.said


def test_a_crash_of_a_child_is_told_as_such(play: Play, stop: Stop) -> None:
    assert "(a child process of it) stopped at" in play([[stop(child=True), Ended(0)]], model=None).said


def test_a_failure_in_the_investigation_lets_the_program_go_on(play: Play, stop: Stop, private_state: Path) -> None:
    stopped = stop()
    world = play([[stopped, Ended(1)]], ZeroDivisionError("oops"))
    assert world.status == exit_status.CRASHED
    assert stopped.program.resumed  # type: ignore[attr-defined]
    assert "dap-agent itself failed with ZeroDivisionError: oops" in world.said
    assert "Traceback" in (private_state / "last-failure.txt").read_text()


def no_key(spec: str) -> Any:
    raise ModelError("There is no key: set ANTHROPIC_API_KEY.", "missing-key")


def test_a_missing_key_is_told_and_crashes_are_reported(play: Play, stop: Stop) -> None:
    world = play([[stop(), Ended(1)]], create=no_key)
    assert world.status == exit_status.CRASHED
    assert world.said.startswith("dap-agent: There is no key: set ANTHROPIC_API_KEY. Crashes are only reported.\n")
    assert world.report["error"].startswith("There is no key")
    assert "no model is configured" not in world.said


def test_a_model_that_cannot_be_made_is_a_usage_error(play: Play) -> None:
    for spec, words in (
        ("nobody:x", "no model provider 'nobody'"),
        ("gpt-5", "names no provider"),
        ("scripted:/nowhere/turns.json", "The script /nowhere/turns.json cannot be read"),
    ):
        with pytest.raises(UsageError, match=words):
            play([[Ended(0)]], model=spec, create=registry.create)


def test_the_prompt_is_shown_and_nothing_sent(play: Play, stop: Stop) -> None:
    world = play([[stop(), Ended(1)]], show_prompt=True)
    assert world.status == exit_status.CRASHED
    assert world.investigated == []
    assert "=== system ===" in world.said
    assert world.report["prompt"].startswith("=== system ===")


def test_arguments_of_the_program_are_masked_in_the_report(play: Play) -> None:
    assert "abc" not in json.dumps(play([[Ended(0)]]).report["program"])


def test_an_adapter_that_does_not_start_is_raised(play: Play) -> None:
    with pytest.raises(DapAgentError, match="adapter"):
        play([[DapAgentError("debugpy's adapter does not answer.")]])


def test_the_journal_tells_what_was_applied_and_how_it_went(play: Play, stop: Stop) -> None:
    from dap_agent.agent import journal

    world = play([[stop(), Ended(1)], [Ended(0)]], outcome(), fix="auto")
    (info,) = journal.list_journals()
    assert str(info.path) == world.report["journal"]
    records = journal.read(info.path)
    assert [record["kind"] for record in records] == ["start", "applied", "rerun"]
    assert records[0]["command"] == ["/usr/bin/python3", "app.py", "a"]
    assert records[2]["passed"] is True


def test_decided_takes_what_was_said(tmp_path: Path) -> None:
    ui = Ui(PlainSink(io.StringIO()))
    assert stops.decided(settings_for(tmp_path, fix="auto"), ui, "never") == "auto"
    assert stops.decided(settings_for(tmp_path, fix=None), ui, "never") == "never"
