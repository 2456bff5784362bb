"""A bug whose cause had returned before the failure: found by what was called before, and by a trace (issue 4)."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from dap_agent.cli import exit_status

ROOT = Path(__file__).parents[2]

SETTINGS = '''\
"""Options of a client, as they stand in a file."""


def read_number(options, name):
    """The number called *name*, 30 if it is not there."""
    text = options.get(name, "30").strip()
    if text.endswith("s"):
        text = text[:-1]
    elif text.endswith("m"):
        number = int(text[:-1])
        number = number.__mul__(60.0)
        return number
    return int(text)
'''
CLIENT = """\
from settings import read_number


class Client:
    def __init__(self, options):
        self.retries = read_number(options, "retries")
        self.timeout = read_number(options, "timeout")


def connect(options):
    return Client(options)


def deadlines(client, now):
    return [now + n * client.timeout for n in range(client.retries)]


def main():
    client = connect({"retries": "2", "timeout": "5m"})
    print(sum(deadlines(client, 100)))


if __name__ == "__main__":
    main()
"""
FIXED = '''\
def read_number(options, name):
    """The number called *name*, 30 if it is not there."""
    text = options.get(name, "30").strip()
    if text.endswith("s"):
        text = text[:-1]
    elif text.endswith("m"):
        return int(text[:-1]) * 60
    return int(text)
'''
TEST = """\
from client import connect, deadlines


def test_minutes():
    assert deadlines(connect({"retries": "2", "timeout": "5m"}), 0) == [0, 300]
"""
HISTORY = {
    "text": "The timeout is NotImplemented. Who has made it? read_number was called before and has returned.",
    "calls": [{"name": "history", "arguments": {"function": "read_number"}}],
    "expect": ["Called before the failure, and returned", "read_number(options={", "-> NotImplemented", "TypeError"],
}
TRACE = {
    "text": "The call for timeout='5m' gives NotImplemented. How does that come?",
    "calls": [
        {
            "name": "trace",
            "arguments": {
                "frame": 1,
                "code": "connect({'retries': '2', 'timeout': '5m'})",
                "functions": ["read_number"],
                "first_change": "number",
            },
        }
    ],
}
OF_HISTORY = ["name='retries'", "-> 2", "name='timeout'", "settings.py:4"]
OF_TRACE = [
    "first_change(number): set 5 at settings.py:10 in read_number: number = int(text[:-1])",
    "first changed from 5 to NotImplemented at settings.py:11 in read_number: number = number.__mul__(60.0)",
    'elif text.endswith("m"):  -> true',
    "< read_number returned NotImplemented",
]
PROPOSE = {
    "text": "int.__mul__(5, 60.0) is NotImplemented: a number of minutes is never multiplied.",
    "calls": [
        {
            "name": "propose",
            "arguments": {
                "title": "Minutes are numbers, too",
                "cause": "read_number gives NotImplemented for a text in minutes: int.__mul__ refuses a float.",
                "evidence": [{"text": "The first change of number in read_number for '5m': from 5 to NotImplemented."}],
                "edits": [{"kind": "replace_symbol", "file": "settings.py", "symbol": "read_number", "source": FIXED}],
                "test": {"file": "test_minutes.py", "source": TEST},
            },
        }
    ],
    "expect": OF_TRACE,
}


@pytest.mark.parametrize("version", ["3.8", "3.11", "3.12", "3.13"])
def test_the_cause_is_found_by_history_and_trace(version, all_interpreters, trace, tmp_path):
    turns = [HISTORY, {**TRACE, "expect": OF_HISTORY}, PROPOSE]
    folder = tmp_path / "client"
    folder.mkdir()
    for name, text in (("settings.py", SETTINGS), ("client.py", CLIENT), ("pyproject.toml", "[project]\nname = 'c'\n")):
        (folder / name).write_text(text, encoding="utf-8")
    script = tmp_path / "turns.json"
    script.write_text(json.dumps({"turns": turns}), encoding="utf-8")
    process = trace.start(
        "run", "--python", all_interpreters[version], "--model", f"scripted:{script}", "--fix", "auto", "client.py",
        environment={"PYTHONPATH": os.pathsep.join([str(ROOT)])},
        cwd=folder,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    out, err = process.communicate(timeout=100)
    trace.assert_nothing_is_left()
    assert process.returncode == exit_status.FIXED, err
    assert "read_number(" in err.partition("called before, newest last:\n")[2]
    assert out.splitlines()[-1] == "500"
