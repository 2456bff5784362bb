"""The main job from end to end: a program of several files crashes, and ends fixed, tested and running (issue 2)."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dap_agent.agent import journal
from dap_agent.cli import exit_status
from dap_agent.testing import ModelServer, Reply

ROOT = Path(__file__).parents[2]
PROJECT = Path(__file__).parent / "programs" / "tally"
HERE = Path(sys.executable)

LOOK = [("frame", {"number": 0}), ("variable", {"frame": 0, "path": "text"})]
READ = [("read_file", {"file": "src/tally/readings.py"}), ("search", {"pattern": "kWh"})]
FIXED = 'return float(text.replace("kWh", "").replace(",", "."))'
TEST = "tests/test_values_with_a_unit.py"


def propose(body=FIXED):
    source = f'def parse_value(text: str) -> float:\n    """The value of a reading."""\n    {body}\n'
    test = 'from tally.readings import parse_value\n\n\ndef test_unit():\n    assert parse_value("90,5 kWh") == 90.5\n'
    return (
        "propose",
        {
            "title": "Accept the unit after a value",
            "cause": "Some gateways write the unit after the value, and parse_value gives the whole text to float().",
            "evidence": [
                {"text": "The text ends with the unit.", "frame": 0, "expression": "text", "value": "'90 kWh'"}
            ],
            "edits": [
                {"kind": "replace_symbol", "file": "src/tally/readings.py", "symbol": "parse_value", "source": source}
            ],
            "test": {"file": TEST, "source": test},
        },
    )


TURNS = [
    ("float() gets a text with a unit. Which?", LOOK, ["ValueError", "parse_value"]),
    ("Now the code around it.", READ, ["kWh"]),
    ("The unit has to go before the conversion.", [propose()], ["def parse_value"]),
]


def steps(turns):
    """The turns as a server's answers; what a turn expects is checked against the whole request."""

    def step(text, calls, expected):
        def answer(request):
            sent = json.dumps(request.body)
            missing = [words for words in expected if words not in sent]
            return Reply("I was told nothing of " + ", ".join(missing)) if missing else Reply(text, calls)

        return answer

    return [step(*turn) for turn in turns]


class Workspace:
    """A copy of the project, and dap-agent run in it."""

    def __init__(self, trace, folder):
        self.root = folder
        self._trace = trace
        shutil.copytree(PROJECT, folder, ignore=shutil.ignore_patterns("__pycache__", ".*"))

    def scripted(self, *turns):
        script = self.root.parent / "turns.json"
        named = [
            {"text": text, "calls": [{"name": name, "arguments": given} for name, given in calls], "expect": expected}
            for text, calls, expected in turns
        ]
        script.write_text(json.dumps({"turns": named}), encoding="utf-8")
        return f"scripted:{script}"

    def run(self, python, model, *command, fix="auto", environment=None, text=None):
        options = ("run", "--python", str(python), "--model", model, "--fix", fix)
        process = self._trace.start(
            *options,
            *command,
            environment={"PYTHONPATH": os.pathsep.join([str(ROOT), "src"]), **(environment or {})},
            cwd=self.root,
            stdin=subprocess.DEVNULL if text is None else subprocess.PIPE,
        )
        out, err = process.communicate(text, timeout=100)
        self._trace.assert_nothing_is_left()
        return process.returncode, out, err

    def read(self, name):
        return (self.root / name).read_text(encoding="utf-8")

    def is_untouched(self):
        return (
            self.read("src/tally/readings.py") == (PROJECT / "src/tally/readings.py").read_text(encoding="utf-8")
            and not (self.root / TEST).exists()
        )

    def assert_fixed(self, python):
        assert FIXED in self.read("src/tally/readings.py")
        assert 'parse_value("90,5 kWh")' in self.read(TEST)
        tests = subprocess.run(
            [str(python), "-m", "pytest", "-q"], cwd=self.root, capture_output=True, text=True, timeout=60
        )
        assert tests.returncode == 0, tests.stdout
        assert "4 passed" in tests.stdout


@pytest.fixture
def workspace(trace, tmp_path):
    return Workspace(trace, tmp_path / "tally")


def assert_told(err, *words):
    for each in words:
        assert each in err, f"{each!r} is not in:\n{err}"


@pytest.mark.network
def test_a_crash_ends_fixed(workspace, python, with_packages):
    python = with_packages(python, ("pytest",))
    status, out, err = workspace.run(python, workspace.scripted(*TURNS), "-m", "tally", "data/may.csv")
    assert status == exit_status.FIXED, err
    assert out == "a1 10.0\nb7 5.0\ndone\n", "the first run dies before it prints anything"
    assert_told(
        err,
        "the program stopped at ValueError: could not convert string to float: '90 kWh'",
        "in parse_value (src/tally/readings.py:19)",
        "verdict: proved",
        f"applied: src/tally/readings.py, {TEST}",
        "the program now runs through (exit status 0)",
    )
    workspace.assert_fixed(python)


@pytest.mark.network
def test_a_failing_test_ends_fixed(workspace, python, with_packages):
    python = with_packages(python, ("pytest",))
    test = "\n\ndef test_the_unit_may_be_there():\n    assert parse_value('3 kWh') == 3\n"
    (workspace.root / "tests/test_tally.py").write_text(workspace.read("tests/test_tally.py") + test, encoding="utf-8")
    status, out, err = workspace.run(python, workspace.scripted(*TURNS), "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert status == exit_status.FIXED, err
    assert_told(err, "stopped at ValueError", "in parse_value (src/tally/readings.py:19)", "verdict: proved")
    second = out.split("1 failed, 3 passed")[1]
    assert "5 passed" in second
    assert "dap-agent" not in out
    assert FIXED in workspace.read("src/tally/readings.py")


def candidate(body):
    (edit,) = propose(body)[1]["edits"]
    return [edit]


def test_two_candidates_are_tried_and_the_right_one_is_proposed(workspace):
    """One looks for the wrong unit, the other takes it off; both are seen on the call that failed."""
    wrong, right = candidate('return float(text.replace("kwh", ""))'), candidate(FIXED)
    turns = [
        TURNS[0],
        ("Two ways to read it.", [("try_fix", {"candidates": [wrong, right]})], ["90 kWh"]),
        ("Only one of them works.", [propose()], ["2. passes: parse_value('90 kWh') returned 90.0"]),
    ]
    status, _, err = workspace.run(HERE, workspace.scripted(*turns), "-m", "tally", "data/may.csv")
    assert status == exit_status.FIXED, err
    assert_told(err, "1. same failure: parse_value('90 kWh') raised ValueError", "verdict: proved")
    assert_told(err, "trial: passes in a locked copy of the stopped program: parse_value('90 kWh') returned 90.0")
    workspace.assert_fixed(HERE)
    (info,) = journal.list_journals()
    (written,) = [record for record in journal.read(info.path) if record["kind"] == "proposal"]
    assert (written["trial"]["verdict"], written["trial"]["frame"]) == ("passes", 0)


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_with_a_model_over_http(workspace, provider):
    with ModelServer(steps(TURNS), write=11) as server:
        given = server.environment()
        status, _, err = workspace.run(HERE, f"{provider}:test-model", "-m", "tally", "data/may.csv", environment=given)
        assert status == exit_status.FIXED, err
        assert server.complaints == []
        asked = [request for request in server.requests if request.body]
    assert len(asked) == len(TURNS)
    assert all(request.body["stream"] for request in asked)
    assert_told(err, "verdict: proved", "the program now runs through")
    workspace.assert_fixed(HERE)


def test_an_input_from_a_pipe_is_empty_the_second_time(workspace):
    text = (PROJECT / "data/may.csv").read_text(encoding="utf-8")
    status, out, err = workspace.run(HERE, workspace.scripted(*TURNS), "-m", "tally", "-", text=text)
    assert status == exit_status.FIXED, err
    assert out == "done\n"
    assert_told(err, "Its input is a pipe and could not be read twice, so this run had an empty input.")
    workspace.assert_fixed(HERE)


def test_another_exception_in_the_second_run(workspace):
    status, out, err = workspace.run(HERE, workspace.scripted(*TURNS), "-m", "tally", "data/june.csv")
    assert status == exit_status.STILL_FAILING, err
    assert out == ""
    assert_told(err, "the exception is gone, but the program now fails with ZeroDivisionError")
    assert FIXED in workspace.read("src/tally/readings.py"), "the fix is right, and stays"


def test_a_journal_is_played_again(workspace):
    status, out, err = workspace.run(HERE, workspace.scripted(*TURNS), "-m", "tally", "data/may.csv", fix="never")
    assert status == exit_status.PROPOSED, err
    assert out == ""
    assert_told(
        err, "verdict: proved", "nothing was changed", "ValueError: could not convert string to float: '90 kWh'"
    )
    assert workspace.is_untouched()
    (info,) = journal.list_journals()
    assert (info.status, info.verdict, info.applied) == ("proposed", "proved", False)

    status, _, err = workspace.run(HERE, f"scripted:{info.path}", "-m", "tally", "data/may.csv")
    assert status == exit_status.FIXED, err
    workspace.assert_fixed(HERE)
    again = max(journal.list_journals(), key=lambda info: info.path.stat().st_mtime_ns)
    assert (again.status, again.verdict, again.applied) == ("proposed", "proved", True)


def test_a_wrong_patch_is_sent_back(workspace):
    wrong = propose('return float(text.replace(" ", "").replace(",", "."))')
    turns = [
        ("A blank is in the way.", [wrong], ["ValueError", "parse_value"]),
        ("It is the unit.", [propose()], ["still red", "90.5kWh"]),
    ]
    status, _, err = workspace.run(HERE, workspace.scripted(*turns), "-m", "tally", "data/may.csv")
    assert status == exit_status.FIXED, err
    assert_told(err, "still red", "verdict: proved")
    workspace.assert_fixed(HERE)
