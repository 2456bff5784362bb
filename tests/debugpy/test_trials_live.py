"""Trials at real stops: at the raise and after the fact; script, thread, asyncio, pytest, library frame."""

import hashlib
from typing import Any

import pytest

from dap_agent.fixes.proposal import StrReplace
from dap_agent.fixes.trials import Trial, try_fix
from dap_agent.fixes.workspace import Workspace
from dap_agent.session.launch import StopRules

from .guest_session import run, session

RULES = {"at the raise": StopRules("always"), "after the fact": StopRules("never")}

# the state that a trial could spoil: a counter, a function's code, an open database, a file half written
HEAD = """
import asyncio, atexit, hashlib, json, os, sqlite3, threading
calls = []
database = sqlite3.connect("data.db", check_same_thread=False)
database.execute("create table if not exists t (x)")
log = open("log", "w")
log.write("half ")
def rate(n):
    calls.append(n)
    database.execute("insert into t values (?)", (n,))
    database.commit()
    log.write("%d " % n)
    return n / 0
def codes():
    found = [each.__code__.co_code for each in (rate, work)]
    return hashlib.sha256(b"".join(found)).hexdigest()[:8], id(rate.__code__) == first, rate.__defaults__
def tell():
    log.close()
    print("calls", calls, database.execute("select x from t").fetchall(), open("log").read(), codes(), flush=True)
atexit.register(tell)
"""
SHAPES = {
    "script": "def work(n):\n    return rate(n) + 1\nfirst = id(rate.__code__)\nwork(4)\n",
    "thread": "def work(n):\n    return rate(n) + 1\nfirst = id(rate.__code__)\n"
    "t = threading.Thread(target=work, args=(4,))\nt.start()\nt.join()\n",
    "asyncio": "async def inner(n):\n    await asyncio.sleep(0)\n    return rate(n) + 1\n"
    "async def work(n):\n    return await inner(n)\nfirst = id(rate.__code__)\nasyncio.run(work(4))\n",
    "library": "def work(n):\n    return json.loads('{\"n\": %d}' % n, object_hook=lambda d: rate(d['n']))\n"
    "first = id(rate.__code__)\nwork(4)\n",
}
WRONG = [StrReplace("program.py", "return n / 0", "return n / None")]
RIGHT = [StrReplace("program.py", "return n / 0", "return n / 2")]
ENDLESS = [StrReplace("program.py", "return n / 0", "while True: pass")]


@pytest.mark.parametrize("when", RULES)
@pytest.mark.parametrize("shape", SHAPES)
def test_nothing_is_changed_by_trials(player: Any, every_python: Any, shape: str, when: str) -> None:
    program = HEAD + SHAPES[shape]
    command = player.command(every_python, program=program)
    found: list[list[Trial]] = []

    async def at_stop(stopped: Any) -> None:
        workspace = Workspace(player.folder)
        found.append(await try_fix(stopped.program, workspace, [WRONG, RIGHT, ENDLESS], timeout=0.5))
        found.append(await try_fix(stopped.program, workspace, [RIGHT], frame=place_of(stopped, "work")))

    story = player.play(command, at_stop=at_stop, rules=RULES[when])
    assert len(story.stops) == 1
    wrong, right, endless = found[0]
    assert (right.verdict, right.summary) == ("passes", "rate(4) returned 2.0")
    assert (wrong.verdict, endless.verdict) == ("other failure", "timeout")
    assert "(rate, line" in wrong.summary and "(rate, line" in endless.summary
    assert right.lines[0]["reached"], right
    (caller,) = found[1]
    assert caller.verdict == "passes", caller
    assert not story.end.failures
    lines = [line for line in story.out.splitlines() if line.startswith("calls")]
    assert "[4] [(4,)] half 4" in lines[0] and "True, None" in lines[0], story.out
    (player.folder / "data.db").unlink()
    native = player.natively(command)
    assert native.out == story.out
    assert story.end.exit_status == native.status


def place_of(stopped: Any, function: str) -> int:
    return next(f["number"] for f in stopped.program.snapshot.frames if f["function"] == function)


@pytest.mark.parametrize("when", RULES)
def test_a_failing_call_into_a_library(player: Any, python: Any, when: str) -> None:
    """The failing frame is the library's: the user's function that called it is called again."""
    program = "import json\ndef parse(text):\n    return json.loads(text)\nparse('{')\n"
    found: list[Trial] = []

    async def at_stop(stopped: Any) -> None:
        edit = StrReplace("program.py", "json.loads(text)", "json.loads(text + '}')")
        found.extend(await try_fix(stopped.program, Workspace(player.folder), [[edit]]))

    player.play(player.command(python, program=program), at_stop=at_stop, rules=RULES[when])
    assert [(trial.verdict, trial.summary) for trial in found] == [("passes", "parse('{') returned {}")]


def test_pytest(player: Any, python: Any, with_packages: Any) -> None:
    (player.folder / "shop.py").write_text("def total(lines):\n    return sum(lines)\n")
    (player.folder / "test_shop.py").write_text(
        "import shop\ndef test_total(tmp_path):\n    assert shop.total([1, 2]) == 6\n"
    )
    command = player.command(with_packages(python, ("pytest",)), "-m", "pytest", "-q", "-p", "no:cacheprovider")
    found: list[Trial] = []

    async def at_stop(stopped: Any) -> None:
        edits = [[StrReplace("shop.py", "sum(lines)", new)] for new in ("2 * sum(lines)", "3 * sum(lines)")]
        found.extend(await try_fix(stopped.program, Workspace(player.folder), edits))

    story = player.play(command, at_stop=at_stop)
    right, wrong = found
    assert right.verdict == "passes", right
    assert right.lines[0]["reached"] == [2]
    assert wrong.verdict in ("same failure", "other failure") and "AssertionError" in wrong.summary
    assert "1 failed" in story.out
    assert story.end.exit_status == 1


def test_in_an_editors_session(tmp_path: Any, every_python: Any) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "def total(lines):\n    return sum(lines) / 0\ndef main(n):\n    total([n])\nmain(2)\nprint('end')\n"
    )
    before = hashlib.sha256(program.read_bytes()).digest()

    async def main() -> None:
        async with session(filters=["raised"]) as client:
            await client.launch(program, every_python)
            event = await client.event("stopped")
            await client.stack(event["body"]["threadId"])
            live = await client.guest.program()
            edits = [[StrReplace("program.py", " / 0", "")], [StrReplace("program.py", "[n]", "[]")]]
            right, wrong = await try_fix(live, Workspace(tmp_path), edits)
            assert (right.verdict, right.summary) == ("passes", "total([2]) returned 2")
            assert right.lines[0]["reached"] == [2]
            assert (wrong.verdict, wrong.frame) == ("same failure", 1)
            while event["event"] == "stopped":
                await client.go_on(event["body"]["threadId"])
                event = await client.event("stopped", "terminated")
            await client.leave()

    run(main)
    assert hashlib.sha256(program.read_bytes()).digest() == before


def test_500_trials_leave_nothing(player: Any, python: Any) -> None:
    """A soak: descriptors, memory, children and time of the paused process are as in the beginning."""
    program = HEAD + SHAPES["script"]
    taken: list[dict[str, Any]] = []
    look = (
        "import resource, os, time, gc\n[len(os.listdir('/proc/self/fd')), "
        "int(open('/proc/self/statm').read().split()[1]), open('/proc/self/task/%d/children' % os.getpid()).read(), "
        "len(os.listdir('/proc/self/task'))]"
    )

    async def at_stop(stopped: Any) -> None:
        import ast
        import time

        workspace = Workspace(player.folder)

        async def round_of_trials() -> float:
            began = time.perf_counter()
            for trial in await try_fix(stopped.program, workspace, [WRONG, RIGHT] * 8):
                assert trial.verdict in ("other failure", "passes")
            return time.perf_counter() - began

        await round_of_trials()
        seconds = [await round_of_trials() for _ in range(4)]
        before = ast.literal_eval((await stopped.program.evaluate(0, look))["value"]["text"])
        seconds += [await round_of_trials() for _ in range(24)]
        seconds += [await round_of_trials() for _ in range(4)]
        after = ast.literal_eval((await stopped.program.evaluate(0, look))["value"]["text"])
        taken.append({"before": before, "after": after, "first": min(seconds[:4]), "last": min(seconds[-4:])})

    player.play(player.command(python, program=program), at_stop=at_stop)
    (found,) = taken
    before, after = found["before"], found["after"]
    assert after[0] == before[0], found
    assert after[1] - before[1] < 256, found  # pages: 1 MB
    assert after[2].strip() == "" and after[3] == before[3], found
    assert found["last"] < 1.5 * found["first"] + 0.05, found
