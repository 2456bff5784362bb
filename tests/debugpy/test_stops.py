"""Which failures stop, how often, and with which frames (issue 2, 'Run')."""

import re
from pathlib import Path

import pytest

from dap_agent.session.remains import CRASH_SIGNALS

ONE_STOP = {
    # scenario: functions expected on the stack, innermost first, in this order (others may stand between)
    "plain": ["boom", "plain", "<module>"],
    "thread": ["boom"],
    "pool": ["boom", "pool", "<module>"],
    "awaited_task": ["boom", "boom_later", "main", "<module>"],
    "forgotten_task": ["boom", "boom_later"],
    "generator": ["boom", "numbers", "generator", "<module>"],
    "chained": ["chained", "<module>"],
    "recursion": ["deeper", "recursion", "<module>"],
    "child_process": ["boom", "plain", "<module>"],
    "child_of_a_shell": ["boom", "plain", "<module>"],
    "forked": ["boom", "forked", "<module>"],
    "multiprocessing_fork": ["boom", "run"],
    "multiprocessing_spawn": ["boom", "run"],
    "multiprocessing_forkserver": ["boom", "run"],
    "own_excepthook": ["boom", "own_excepthook", "<module>"],
    "exit_function": ["boom"],
    "caught_twice": ["boom", "work"],
}
NO_STOP = ["handled", "system_exit", "system_exit_text", "keyboard_interrupt", "environment"]


def functions(snapshot):
    return [frame["function"].rpartition(".")[2] for frame in snapshot.frames]


def in_order(wanted, found):
    rest = iter(found)
    return all(name in rest for name in wanted)


@pytest.mark.parametrize("scenario", ONE_STOP)
def test_one_exception_is_one_stop_with_the_right_frames(player, python, scenario):
    story = player.play(player.command(python, "scenarios.py", scenario))
    assert len(story.stops) == 1, story.headlines
    (stop,) = story.stops
    assert in_order(ONE_STOP[scenario], functions(stop)), functions(stop)
    assert not story.crashes
    assert not story.end.failures


@pytest.mark.parametrize("scenario", NO_STOP)
def test_what_is_no_crash_does_not_stop(player, python, scenario):
    story = player.play(player.command(python, "scenarios.py", scenario))
    assert not story.stops
    assert not story.crashes
    assert not story.end.failures


@pytest.mark.parametrize("scenario", [*ONE_STOP, *NO_STOP, "finalizer", "aborted"])
def test_output_and_exit_status_are_those_of_a_run_without_us(player, python, scenario):
    command = player.command(python, "scenarios.py", scenario)
    native = player.natively(command)
    story = player.play(command)
    assert story.end.exit_status == native.status
    assert plain(story.out) == plain(native.out)
    assert plain(story.err) == plain(native.err)


def plain(text):
    """Without addresses, and without the one line that a hook of ours adds below 3.10 (exit functions).

    Whether a result is asked for before or after it is there depends on how long the worker was stopped.
    """
    text = re.sub(r'(concurrent/futures/_base.py", line )\d+(, in result)', r"\1N\2", text)
    text = re.sub(r'  File "<dap-agent>/debuggee/hooks.py", line \d+, in __call__\n', "", text)
    return re.sub(r"0x[0-9a-f]+", "0x...", text)


def test_an_exception_group_stops_with_its_members(player, every_python):
    if "3.8" in str(every_python) or not has_groups(player, every_python):
        pytest.skip("exception groups are part of the language from 3.11 on")
    (stop,) = player.play(player.command(every_python, "scenarios.py", "group")).stops
    members = stop.exception["group"]
    assert [member["message"] for member in members] == ["'k2'", "'k3'"]
    assert members[0]["where"]["function"].endswith("boom")
    assert "boom" in functions(stop), "the frames of a member are where the failure is"


def has_groups(player, python):
    return player.natively(player.command(python, program="ExceptionGroup")).status == 0


def test_a_chain_is_told_with_its_causes(player, python):
    (stop,) = player.play(player.command(python, "scenarios.py", "chained")).stops
    assert stop.headline == "RuntimeError: outer"
    assert stop.exception["cause"]["type"] == "KeyError"
    assert stop.exception["cause"]["where"]["function"].endswith("boom")


def test_a_deep_recursion_is_folded(player, every_python):
    (stop,) = player.play(player.command(every_python, "scenarios.py", "recursion")).stops
    assert stop.exception["type"] == "RecursionError"
    assert stop.data["frames_total"] > 900
    assert len(stop.frames) < 100
    assert stop.data["folds"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("def broken(:\n    pass\n", "SyntaxError"),
        ("if True:\nprint(1)\n", "IndentationError"),
        ("import no_such_module_at_all\n", "ModuleNotFoundError"),
        ("from os import no_such_name\n", "ImportError"),
        ("raise ValueError('at the top')\n", "ValueError"),
    ],
)
def test_errors_at_the_start_stop_too(player, python, text, kind):
    command = player.command(python, program=text)
    native = player.natively(command)
    story = player.play(command)
    (stop,) = story.stops
    assert stop.exception["type"] == kind
    assert story.end.exit_status == native.status == 1
    assert story.err == native.err
    if kind in ("SyntaxError", "IndentationError"):
        assert stop.exception["syntax"]["file"].endswith("program.py")
        assert stop.exception["syntax"]["line"] in (1, 2)


def test_an_exception_in_a_finalizer_is_reported_without_a_stop(player, python):
    story = player.play(player.command(python, "scenarios.py", "finalizer"))
    assert not story.stops
    (crash,) = story.crashes
    assert crash.exception["type"] == "KeyError"
    assert functions(crash)[0] == "boom"
    assert crash.frames[0]["locals"]


@pytest.mark.parametrize("scenario", ["segmentation_fault", "aborted"])
def test_a_death_by_signal_is_reported_with_its_stack(player, every_python, scenario):
    story = player.play(player.command(every_python, "scenarios.py", scenario))
    assert -story.end.exit_status in CRASH_SIGNALS
    (crash,) = story.crashes
    assert crash.reason == "exit"
    assert scenario in functions(crash)
    assert crash.data["python"]["version"].startswith("3.")
    assert crash.user_frame["file"].endswith("scenarios.py")


def test_every_version_stops_once_and_can_be_asked(player, every_python):
    asked = {}

    async def ask(stopped):
        asked["frame"] = await stopped.program.frame(0)
        asked["variable"] = await stopped.program.variable(0, "number")
        asked["evaluate"] = await stopped.program.evaluate(0, "[number + n for n in (1, 2)]")

    story = player.play(player.command(every_python, "scenarios.py", "plain"), at_stop=ask)
    assert story.headlines == ["KeyError: 'k2'"]
    assert {entry["name"] for entry in asked["frame"]["locals"]} == {"number", "key"}
    assert asked["variable"]["value"]["text"] == "1"
    assert "[2, 3]" in str(asked["evaluate"])
    assert Path(story.stops[0].frames[0]["file"]).name == "scenarios.py"
