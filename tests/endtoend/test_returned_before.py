"""A bug whose cause had returned before the failure: the model finds it by what was called before (issue 4)."""

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
        return int(text[:-1]).__mul__(60.0)
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
TURNS = [
    {
        "text": "The timeout is NotImplemented. Who has made it? read_number was called before and has returned.",
        "calls": [{"name": "history", "arguments": {"function": "read_number"}}],
        "expect": [
            "Called before the failure, and returned",
            "read_number(options={",
            "-> NotImplemented",
            "TypeError",
        ],
    },
    {
        "text": "The second call, for timeout='5m', has given NotImplemented; the first one an int.",
        "calls": [
            {
                "name": "propose",
                "arguments": {
                    "title": "Minutes are numbers, too",
                    "cause": "read_number gives NotImplemented for a text in minutes: int.__mul__ refuses a float.",
                    "evidence": [{"text": "What read_number has returned for '5m'."}],
                    "edits": [
                        {"kind": "replace_symbol", "file": "settings.py", "symbol": "read_number", "source": FIXED}
                    ],
                    "test": {"file": "test_minutes.py", "source": TEST},
                },
            }
        ],
        "expect": ["name='retries'", "-> 2", "name='timeout'", "settings.py:4"],
    },
]


@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_the_cause_is_found_by_history(version, all_interpreters, trace, tmp_path):
    folder = tmp_path / "client"
    folder.mkdir()
    for name, text in (("settings.py", SETTINGS), ("client.py", CLIENT), ("pyproject.toml", "[project]\nname = 'c'\n")):
        (folder / name).write_text(text, encoding="utf-8")
    script = tmp_path / "turns.json"
    script.write_text(json.dumps({"turns": TURNS}), encoding="utf-8")
    process = trace.start(
        "run", "--python", all_interpreters[version], "--model", f"scripted:{script}", "--fix", "auto", "client.py",
        environment={"PYTHONPATH": os.pathsep.join([str(ROOT)])},
        cwd=folder,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    out, err = process.communicate(timeout=100)
    trace.assert_nothing_is_left()
    assert process.returncode == exit_status.FIXED, err
    assert "called before, newest last:\n" in err
    assert "read_number(" in err.partition("called before, newest last:")[2]
    assert out.splitlines()[-1] == "500"
