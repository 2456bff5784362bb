"""The flight recorder in sessions of an editor: on where it is cheap, off at will, blind to what a user tries."""

from pathlib import Path
from typing import Any

import pytest

from dap_agent.session import payload
from dap_agent.session.api import InspectionError

from .guest_session import run, session

SHOP = """
import sys
def parse(row):
    name, price = row.split("=")
    return {"name": name.strip(), "price": price.strip() or None}
def load(rows):
    return [parse(row) for row in rows]
def total(lines):
    return sum(float(line["price"]) for line in lines)
def main():
    lines = load(["tea = 3.5", "gift ="])
    stop_here = 1
    return total(lines)
print("tools", [sys.monitoring.get_tool(n) for n in range(6)] if hasattr(sys, "monitoring") else 0, flush=True)
main()
"""
LINE = SHOP.split("\n").index("    stop_here = 1") + 1


@pytest.fixture(params=["3.8", "3.11", "3.13"])
def new_python(request: pytest.FixtureRequest, all_interpreters: dict[str, str]) -> Path:
    return Path(all_interpreters[request.param])


def called(snapshot: Any, on_stack: "bool | None" = None) -> list[str]:
    found = [each for each in snapshot.data["called"] if on_stack in (None, each["on_stack"])]
    return [each["function"].rpartition(".")[2] for each in found]


def play(
    tmp_path: Path, python: Path, at_stop: Any, text: str = SHOP, lines: tuple[int, ...] = (), **given: Any
) -> str:
    """Run to the first stop; the output."""
    program = tmp_path / "program.py"
    program.write_text(text, encoding="utf-8")
    printed: list[str] = []

    async def main() -> None:
        breakpoints = {str(program): list(lines)} if lines else {}
        async with session(side=payload, filters=["uncaught"], lines=breakpoints) as client:
            await client.launch(program, python, **given)
            event = await client.event("stopped", timeout=30)
            thread = event["body"]["threadId"]
            frames = await client.stack(thread)
            await at_stop(client, frames)
            while event["event"] == "stopped":
                await client.go_on(event["body"]["threadId"])
                event = await client.event("stopped", "terminated")
            printed.extend(e["body"]["output"] for e in client.log if e.get("event") == "output")
            await client.leave()

    run(main)
    return "".join(printed)


def test_what_returned_before_the_failure(tmp_path: Path, new_python: Path) -> None:
    async def at_stop(client: Any, frames: Any) -> None:
        live = await client.guest.program()
        assert called(live.snapshot) == ["main", "load", "parse", "total"]
        assert called(live.snapshot, on_stack=False) == ["load", "parse"]
        page = await live.history("parse")
        assert [call["arguments"][0]["value"]["text"] for call in page["functions"][0]["read"]] == [
            "'tea = 3.5'",
            "'gift ='",
        ]

    play(tmp_path, new_python, at_stop)


def test_what_the_user_tries_is_no_history(tmp_path: Path, new_python: Path) -> None:
    """At a breakpoint code is run in the debug console; afterwards the program goes on, and so does the recorder."""
    counts: list[int] = []

    async def at_stop(client: Any, frames: Any) -> None:
        await client.ask(
            "evaluate",
            {"expression": "[parse('a=1') for _ in range(50)]", "frameId": frames[0]["id"], "context": "repl"},
        )
        live = await client.guest.program()
        await live.evaluate(0, "[parse('a=1') for _ in range(50)]")
        counts.append((await live.history("parse"))["functions"][0]["calls"])
        await client.go_on(live.thread_id)
        await client.event("stopped", timeout=30)
        live = await client.guest.program()
        assert called(live.snapshot) == ["main", "load", "parse", "total"]
        counts.append((await live.history("parse"))["functions"][0]["calls"])

    play(tmp_path, new_python, at_stop, lines=(LINE,))
    assert counts == [2, 2]


def test_it_can_be_switched_off(tmp_path: Path, new_python: Path) -> None:
    async def at_stop(client: Any, frames: Any) -> None:
        live = await client.guest.program()
        assert "called" not in live.snapshot.data
        with pytest.raises(InspectionError, match="The recorder is off"):
            await live.history()

    printed = play(tmp_path, new_python, at_stop, dapAgent={"record": False})
    assert "'dap-agent'" not in printed and "tools" in printed


LISTENING = """
import pathlib, sys, time
sys.path.insert(0, sys.argv[1])
import debugpy
mark = pathlib.Path(sys.argv[2])
def worked(n): return n
def look():
    if sys.version_info < (3, 12):
        return any("profile" in str(cell) for cell in [getattr(sys.getprofile, "__wrapped__", sys.getprofile)()])
    mine = [n for n in range(6) if sys.monitoring.get_tool(n) == "dap-agent"]
    events = [sys.monitoring.get_events(n) or sys.monitoring.get_local_events(n, worked.__code__) for n in mine]
    return any(events)
debugpy.configure(python=sys.argv[3])  # the adapter does not start on 3.8
print(debugpy.listen(("127.0.0.1", 0))[1], flush=True)
while not look(): worked(1)
while look():
    worked(2)
    debugpy.breakpoint()
mark.touch()
"""


def test_a_running_program(tmp_path: Path, new_python: Path) -> None:
    """An editor attaches: the functions that are there already are recorded, until it leaves; the program goes on."""
    import asyncio
    import subprocess
    import sys

    import debugpy

    program, mark = tmp_path / "program.py", tmp_path / "mark"
    program.write_text(LISTENING, encoding="utf-8")
    folder = Path(debugpy.__file__).parents[1]

    async def main() -> None:
        command = [str(new_python), str(program), str(folder), str(mark), sys.executable]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            assert process.stdout is not None
            port = int(await asyncio.to_thread(process.stdout.readline))
            async with session(side=payload, address=("127.0.0.1", port), filters=["uncaught"]) as client:
                await client.start("attach", {"justMyCode": True})
                event = await client.event("stopped", timeout=20)
                assert (await client.guest.program()).snapshot.data["called"][-1]["function"] in ("worked", "look")
                threads = [m for m in client.log if m.get("event") == "thread" and m["body"]["reason"] == "exited"]
                assert not threads  # of ours
                assert event["body"]["reason"]
                await client.leave()
            assert await asyncio.to_thread(process.wait, 20) == 0
            assert mark.exists()
        finally:
            process.kill()
            process.wait()

    run(main)


@pytest.mark.network
def test_under_pytest_it_begins_at_the_call(tmp_path: Path, new_python: Path, with_packages: Any) -> None:
    (tmp_path / "test_shop.py").write_text(
        "import pytest\ndef setting_up(): return 1\ndef count(items): return len(items) + 1\n"
        "@pytest.fixture\ndef one(): return setting_up()\n"
        "def test_bad(one):\n    assert count([1]) == 1\n",
        encoding="utf-8",
    )
    python = with_packages(new_python, ("pytest",))

    async def main() -> None:
        async with session(side=payload, filters=["uncaught", "userUnhandled"]) as client:
            given = {"module": "pytest", "args": ["-q", "-p", "no:cacheprovider"], "cwd": str(tmp_path)}
            await client.start("launch", {**given, "console": "internalConsole", "python": [str(python)]})
            event = await client.event("stopped", timeout=30)
            live = await client.guest.program()
            assert called(live.snapshot) == ["test_bad", "count"]
            while event["event"] == "stopped":
                await client.go_on(event["body"]["threadId"])
                event = await client.event("stopped", "terminated")
            await client.leave()

    run(main)


def test_stops_work_where_it_cannot_begin(tmp_path: Path, new_python: Path) -> None:
    """The program's start-up file has taken all of the interpreter's tools for events."""
    taken = "for n in (3, 4, 5): sys.monitoring.use_tool_id(n, 'mine')"
    below = "sys.setprofile(lambda *event: None)"
    (tmp_path / "sitecustomize.py").write_text(
        f"import sys\nif hasattr(sys, 'monitoring'):\n    {taken}\nelse:\n    {below}\n", encoding="utf-8"
    )

    async def at_stop(client: Any, frames: Any) -> None:
        live = await client.guest.program()
        assert "called" not in live.snapshot.data and live.snapshot.headline.startswith("TypeError")
        with pytest.raises(
            InspectionError, match=r"uses the interpreter's tools for events itself|a profile function is there already"
        ):
            await live.history()

    printed = play(tmp_path, new_python, at_stop, env={"PYTHONPATH": str(tmp_path)})
    assert ("'mine'" in printed or "tools 0" in printed) and "dap-agent: " not in printed
