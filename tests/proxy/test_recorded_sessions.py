"""What VS Code and nvim-dap once said is said again, to debugpy alone and to us before it: they see the same."""

import asyncio
import copy
import difflib
import json
import re

import pytest

from .differences import DIFFERENCES, comparable
from .editor_double import OURS, ROOT
from .fakes import DEBUGPY, run
from .player import RECORDINGS, Recording, play
from .protocol_schema import check

RECORDED = {path.stem: Recording(path) for path in sorted(RECORDINGS.glob("*.jsonl"))}
BOTH = [name for name, recording in RECORDED.items() if recording.needs is None]
THROUGH = [*OURS, "--connect"]


def lines(found):
    return json.dumps(found, sort_keys=True, indent=1).splitlines()


@pytest.mark.parametrize("name", BOTH)
def test_the_same_is_seen(name, tmp_path):
    async def main():
        direct, ours = await asyncio.gather(
            play(RECORDED[name], DEBUGPY, tmp_path), play(RECORDED[name], OURS, tmp_path, through=THROUGH)
        )
        for messages in ours.values():
            for message in messages:
                check(message)
        direct, ours = comparable(direct, ours=False), comparable(ours, ours=True)
        told = difflib.unified_diff(lines(direct), lines(ours), "direct", "ours", n=8, lineterm="")
        assert ours == direct, "\n".join(told)

    run(main, timeout=100)


def test_restart_of_a_client_that_was_told_of_it(tmp_path):
    """VS Code asks for `restart` where it is announced, and keeps its session; debugpy alone would be wedged."""

    async def main():
        (messages,) = (await play(RECORDED["vscode-restart-announced"], OURS, tmp_path)).values()
        for message in messages:
            check(message)
        assert [m["command"] for m in messages if m["type"] == "response" and not m["success"]] == []
        stops = [m["body"] for m in messages if m.get("event") == "stopped"]
        assert len(stops) == 2 and stops[0] == stops[1]
        output = "".join(m["body"]["output"] for m in messages if m.get("event") == "output")
        assert output.count("total 12") == 1

    run(main)


# The recordings


def said(name):
    """What the client asked for in a recording."""
    return [line["request"] for part in RECORDED[name].sessions.values() for line in part if "request" in line]


@pytest.mark.parametrize("editor", ["vscode", "nvim"])
def test_both_editors_were_recorded_in_every_kind_of_session(editor):
    kinds = {name.removeprefix(f"{editor}-") for name in RECORDED if name.startswith(editor)}
    assert kinds >= {
        *("launch", "attach", "attach-children", "subprocess", "spawn", "fork", "terminal", "no-debug", "restart"),
        *("attach-disconnect", "exception", "pause"),
    }
    for kind, children in {"subprocess": 1, "spawn": 2, "fork": 1, "attach-children": 1}.items():
        sessions = RECORDED[f"{editor}-{kind}"].sessions.values()
        assert sum("child_of" in part[0] for part in sessions) == children
    answers = [line for line in RECORDED[f"{editor}-terminal"].sessions[1] if "response" in line]
    assert [line["response"] for line in answers] == ["runInTerminal 1"]


def test_what_the_clients_ask_for():
    asked = {command for name in RECORDED for command in said(name)}
    assert asked >= {
        *("attach", "completions", "configurationDone", "continue", "disconnect", "evaluate", "exceptionInfo", "goto"),
        *("gotoTargets", "initialize", "launch", "next", "pause", "restart", "scopes", "setBreakpoints"),
        *("setExceptionBreakpoints", "setFunctionBreakpoints", "setVariable", "stackTrace", "stepIn", "stepOut"),
        *("terminate", "threads", "variables"),
    }
    contexts = {
        line["arguments"].get("context")
        for recording in RECORDED.values()
        for part in recording.sessions.values()
        for line in part
        if line.get("request") == "evaluate"
    }
    assert contexts >= {"repl", "hover"}


def test_nothing_of_the_machine_is_in_them():
    for path in RECORDINGS.glob("*.jsonl"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r'"/|[0-9a-f]{8}-[0-9a-f]{4}-|"(?:port|subProcessId|processId)": [1-9]', text), path


# The comparison


def test_the_comparison_finds_what_is_missing_changed_or_late(tmp_path):
    async def main():
        direct = await play(RECORDED["vscode-exception"], DEBUGPY, tmp_path)
        plain = comparable(direct, ours=False)
        assert plain == comparable(copy.deepcopy(direct), ours=False)
        for number, message in enumerate(direct[1]):
            if message.get("event") in ("stopped", "exited") or message.get("command") == "stackTrace":
                without = {1: [*direct[1][:number], *direct[1][number + 1 :]]}
                assert comparable(without, ours=True) != plain, message
                changed = {1: [*direct[1][:number], {**message, "body": {"x": 1}}, *direct[1][number + 1 :]]}
                assert comparable(changed, ours=True) != plain, message
        late = [one for one in direct[1] if one.get("event") != "exited"]
        late += [one for one in direct[1] if one.get("event") == "exited"]
        assert comparable({1: late}, ours=True) != plain

    run(main)


def test_the_documented_differences_are_those_of_the_readme():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = readme.partition("What differs for the editor:\n\n")[2].partition("\n\n")[0]
    entries = [" ".join(entry.split()).rstrip(";.") for entry in listed.removeprefix("* ").split("\n* ")]
    assert entries == [row.text for row in DIFFERENCES]
