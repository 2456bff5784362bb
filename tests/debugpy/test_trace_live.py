"""Traces at real stops: at the raise and after the fact; script, thread, asyncio, an editor's session."""

from typing import Any

import pytest

from dap_agent.fixes.proposal import StrReplace
from dap_agent.fixes.trials import Trial, try_fix
from dap_agent.fixes.workspace import Workspace
from dap_agent.session.launch import StopRules
from dap_agent.session.trace import trace_text

from .guest_session import run, session

HEAD = """
import asyncio, atexit, threading
calls = []
def price(n):
    calls.append(n)
    found = n * 2
    if n == 3:
        found = None
    return found
def tell():
    print("calls", calls, flush=True)
"""
SHAPES = {
    "script": "def work(rows):\n    total = 0\n    for row in rows:\n        total += price(row)\nwork([1, 3])\n",
    "thread": "def work(rows):\n    total = 0\n    for row in rows:\n        total += price(row)\n"
    "t = threading.Thread(target=work, args=([1, 3],))\nt.start()\nt.join()\ntell()\n",
    "asyncio": "async def work(rows):\n    total = 0\n    for row in rows:\n        await asyncio.sleep(0)\n"
    "        total += price(row)\natexit.register(tell)\nasyncio.run(work([1, 3]))\n",
}


@pytest.mark.parametrize(("shape", "rule"), [("script", "never"), ("thread", "always"), ("asyncio", "always")])
def test_a_trace_at_a_stop(player: Any, every_python: Any, shape: str, rule: str) -> None:
    command = player.command(every_python, program=HEAD + SHAPES[shape])
    found: list[Any] = []

    async def at_stop(stopped: Any) -> None:
        found.append(await stopped.program.trace(first_change="found", when="found is None"))
        found.append(await stopped.program.trace(timeout=0.3, code="exec('while True: pass')"))

    story = player.play(command, at_stop=at_stop, rules=StopRules(rule))
    native = player.natively(command)
    assert (story.out, story.end.exit_status) == (native.out, native.status)
    text = trace_text(found[0])
    assert "raised TypeError" in text and "work([1, 3])" in text, text
    assert "when: it held first after" in text and "found = None" in text
    assert "first changed from 6 to None" in text
    assert "still ran after 0.3 s" in found[1]["outcome"]
    assert not story.end.failures


def test_in_an_editors_session(tmp_path: Any, python: Any) -> None:
    program = tmp_path / "program.py"
    program.write_text(HEAD + SHAPES["script"])

    async def main() -> None:
        async with session(filters=["raised"]) as client:
            await client.launch(program, python)
            event = await client.event("stopped")
            live = await client.guest.program()
            found = await live.trace(first_change="total", functions=["work"])
            assert "first changed from 0 to 2" in trace_text(found)
            assert [each["name"] for each in found["functions"]] == ["work"]
            await client.go_on(event["body"]["threadId"])
            await client.leave()

    run(main)


@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_a_trial_gets_arguments_that_were_rebound(player: Any, all_interpreters: Any, version: str) -> None:
    program = "def rate(text, by):\n    text = len(text)\n    by = None\n    return text / by\nrate('abcd', 2)\n"
    found: list[Trial] = []

    async def at_stop(stopped: Any) -> None:
        edit = StrReplace("program.py", "    by = None\n", "")
        found.extend(await try_fix(stopped.program, Workspace(player.folder), [[edit]]))

    for rule in ("always", "never"):
        player.play(player.command(all_interpreters[version], program=program), at_stop=at_stop, rules=StopRules(rule))
    for trial in found:
        assert (trial.verdict, trial.summary) == ("passes", "rate('abcd', 2) returned 2.0")
        assert [note.partition(" was assigned again")[0] for note in trial.notes] == ["text", "by"]
        assert all("recovered from the flight recorder" in note for note in trial.notes)
    assert len(found) == 2


@pytest.mark.network
def test_a_test_within_a_run_of_pytest(player: Any, python: Any, with_packages: Any) -> None:
    text = "def total(rows):\n    found = sum(rows)\n    found -= 1\n    return found\n"
    (player.folder / "shop.py").write_text(text)
    (player.folder / "conftest.py").write_text("import pytest\n@pytest.fixture\ndef rows():\n    return [1, 2]\n")
    (player.folder / "test_shop.py").write_text(
        "import shop\ndef test_total(rows, tmp_path):\n    print('hello')\n    assert shop.total(rows) == 3\n"
    )
    command = player.command(with_packages(python, ("pytest",)), "-m", "pytest", "-q", "-p", "no:cacheprovider")
    found: list[Any] = []

    async def at_stop(stopped: Any) -> None:
        found.append(await stopped.program.trace(first_change="found"))  # the test's call, as it failed
        found.append(await stopped.program.trace(test="test_shop.py::test_total", first_change="found", timeout=20))

    story = player.play(command, at_stop=at_stop)
    for each in found:
        text = trace_text(each)
        assert "AssertionError" in text.splitlines()[0], text
        assert "first changed from 3 to 2 at" in text and "in total: found -= 1" in text
    assert "1 failed" in story.out and story.end.exit_status == 1
