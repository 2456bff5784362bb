"""What a stop costs: our one-call snapshot against plain DAP requests, and the way from the exception to the report."""

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from dap_agent.proxy.server import ProxyServer
from dap_agent.session.launch import Debuggee, ProgramCommand, Stopped

pytestmark = pytest.mark.perf

# thirty functions, so that the frames are no recursion, which a snapshot folds
DEEP = (
    """
class Order:
    def __init__(self, number):
        self.number, self.lines = number, [{"sku": "a%d" % n, "qty": n, "price": n * 1.5} for n in range(12)]

def level0(depth):
    raise KeyError("deep")
"""
    + "".join(
        f"""
def level{n}(depth):
    v0, v1, v2, v3, v4 = depth, "text %d" % depth, [depth] * 30, {{"k%d" % n: n for n in range(20)}}, Order(depth)
    v5, v6, v7, v8, v9 = 1.5, None, (1, 2, 3), {{1, 2, 3}}, b"bytes"
    w0, w1, w2, w3, w4 = depth + 1, "x" * 300, [[1, 2], [3, 4]], {{"a": {{"b": {{"c": 1}}}}}}, Order(depth)
    w5, w6, w7, w8 = True, frozenset((1, 2)), range(10), "end"
    return level{n - 1}(depth - 1)
"""
        for n in range(1, 31)
    )
    + "level30(30)\n"
)


@pytest.fixture
def deep(tmp_path: Path) -> Path:
    path = tmp_path / "deep.py"
    path.write_text(DEEP, encoding="utf-8")
    return path


def test_snapshot_against_plain_dap_requests(deep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Bar: at most 1/200 of the same by plain DAP as shipped (DESIGN.md section 4)."""
    plain, requests = asyncio.run(_plain(deep))
    ours = asyncio.run(_ours(deep))
    with capsys.disabled():
        print(f"\n30 frames x 20 locals by plain DAP as shipped: {1e3 * plain:.0f} ms in {requests} requests")
        for what, (wall, inside) in ours.items():
            ratio = f"1/{plain / wall:.0f} (bar 1/200)"
            print(f"  {what}: {1e3 * wall:.1f} ms, of it {inside:.1f} ms in the debuggee: {ratio}")
    for wall, inside in ours.values():
        assert plain / wall >= 200
        assert inside <= 20


async def _plain(program: Path) -> tuple[float, int]:
    """stackTrace, then scopes and variables of every frame, as an editor that shows everything would ask."""
    async with await ProxyServer.spawn([sys.executable, "-m", "debugpy.adapter"]) as proxy:
        stopped: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        initialized = asyncio.Event()

        def event(message: dict[str, Any]) -> None:
            if message["event"] == "initialized":
                initialized.set()
            elif message["event"] == "stopped" and not stopped.done():
                stopped.set_result(message["body"]["threadId"])

        proxy.subscribe(event)
        await proxy.request("initialize", {"adapterID": "debugpy", "pathFormat": "path"})
        launch = asyncio.ensure_future(
            proxy.request(
                "launch",
                {
                    "program": str(program),
                    "console": "internalConsole",
                    "justMyCode": False,
                    "python": [sys.executable],
                },
            )
        )
        await initialized.wait()
        await proxy.request("setExceptionBreakpoints", {"filters": ["uncaught"]})
        await proxy.request("configurationDone")
        await launch
        thread = await asyncio.wait_for(stopped, 30)
        began = time.perf_counter()
        requests = 1
        stack = await proxy.request("stackTrace", {"threadId": thread})
        frames = [
            frame for frame in stack["stackFrames"] if frame["name"].startswith("level") and frame["name"] != "level0"
        ]
        assert len(frames) == 30
        for frame in frames:
            (scope, *_) = (await proxy.request("scopes", {"frameId": frame["id"]}))["scopes"]
            found = await proxy.request("variables", {"variablesReference": scope["variablesReference"]})
            requests += 2
            for variable in found["variables"]:
                if variable["variablesReference"] and variable["name"] in ("v2", "v3", "v4", "w2", "w3", "w4"):
                    await proxy.request("variables", {"variablesReference": variable["variablesReference"]})
                    requests += 1
        taken = time.perf_counter() - began
        await proxy.request("disconnect", {"terminateDebuggee": True})
        return taken, requests


async def _ours(program: Path) -> dict[str, tuple[float, float]]:
    """Seconds and, of them, milliseconds in the debuggee: of the snapshot, and of one with every frame's locals."""
    found = {}

    async def at_stop(stopped: Stopped) -> None:
        target = stopped.program._asker
        for what, arguments in (("our snapshot", {}), ("with the locals of all frames", {"locals_of_all": True})):
            walls, inside = [], []
            for _ in range(15):
                began = time.perf_counter()
                data = await target.ask("snapshot", arguments)
                walls.append(time.perf_counter() - began)
                inside.append(data["elapsed_ms"])
            assert len(data["frames"]) == 32
            assert len(data["frames"][1]["locals"]) == (20 if arguments else 0)
            # other load can only add to it
            found[what] = (min(walls), min(inside))

    await _until_end(ProgramCommand(Path(sys.executable), str(program), False, (), program.parent), at_stop)
    return found


async def _until_end(command: ProgramCommand, at_stop: Callable[[Stopped], Awaitable[None]]) -> None:
    debuggee = await Debuggee.launch(command, stdin=subprocess.DEVNULL)
    try:
        while isinstance(event := await debuggee.next_event(), Stopped):
            await at_stop(event)
            await event.resume()
    finally:
        await debuggee.close()


def test_from_the_exception_to_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Wall time between `raise` in the program and our report on stderr, and what a run costs beyond a plain one."""
    program = tmp_path / "raises.py"
    program.write_text("import time\nprint(time.time(), flush=True)\nraise ValueError('now')\n", encoding="utf-8")

    def run(*command: str) -> tuple[float, float]:
        began = time.time()
        process = subprocess.Popen(
            [*command, str(program)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        raised = float(process.stdout.readline())
        for line in process.stderr:
            if "ValueError: now" in line:
                break
        reported = time.time() - raised
        process.communicate()
        return reported, time.time() - began

    plain = min(run(sys.executable)[1] for _ in range(3))
    reports, totals = zip(
        *(run(sys.executable, "-m", "dap_agent", "run", "--fix", "never") for _ in range(5)), strict=True
    )
    with capsys.disabled():
        print(
            f"\nfrom the exception to the report: {1e3 * statistics.median(reports):.0f} ms; "
            f"the whole run: {statistics.median(totals):.2f} s against {plain:.2f} s of the plain program"
        )
    assert statistics.median(reports) < 1.0


def test_the_program_runs_at_full_speed_until_it_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """debugpy alone traces every call (18x on CPython 3.11); under dap-agent nothing is traced before a stop."""
    program = tmp_path / "busy.py"
    program.write_text(
        "import json, time\ndef fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\n"
        "began = time.perf_counter()\nfib(24)\nprint(json.dumps(time.perf_counter() - began))\n",
        encoding="utf-8",
    )

    def seconds(*command: str) -> float:
        runs = [
            subprocess.run(
                [*command, str(program)], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=True
            )
            for _ in range(3)
        ]
        return min(float(json.loads(run.stdout)) for run in runs)

    plain = seconds(sys.executable)
    ours = seconds(sys.executable, "-m", "dap_agent", "run")
    with capsys.disabled():
        print(f"\nfib(24): {1e3 * ours:.0f} ms under dap-agent, {1e3 * plain:.0f} ms without: ratio {ours / plain:.2f}")
    assert ours / plain < 1.3


RAISES = """
import json, time
def handled():
    for n in range(1000000):
        try:
            raise ValueError
        except ValueError:
            pass
def of_c_code():
    for n in range(1000000):
        try:
            int("x")
        except ValueError:
            pass
def leaf(d): return d["k"]
def further_out():
    for n in range(1000000):
        try:
            leaf({})
        except KeyError:
            pass
found = []
for function in (handled, of_c_code, further_out):
    began = time.process_time()
    function()
    found.append(time.process_time() - began)
print(json.dumps(found))
"""


@pytest.mark.timeout(300)
def test_a_million_raises_that_are_handled(
    tmp_path: Path, all_interpreters: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Bar: 1.3 of the processor's time without us; a raise is an event for us, and so are its way's frames."""
    program = tmp_path / "raises.py"
    program.write_text(RAISES, encoding="utf-8")

    def seconds(*command: str) -> list[float]:
        runs = [
            subprocess.run(
                [*command, str(program)], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=True
            )
            for _ in range(3)
        ]
        return [min(times) for times in zip(*(json.loads(run.stdout) for run in runs), strict=True)]

    for version, python in all_interpreters.items():
        plain = seconds(python)
        ours = seconds(sys.executable, "-m", "dap_agent", "run", "--python", python)
        ratios = [mine / other for mine, other in zip(ours, plain, strict=True)]
        with capsys.disabled():
            told = ", ".join(f"{ratio:.2f}" for ratio in ratios)
            print(f"\n{version}: a million raises handled at once, out of C code, one frame further out: {told}")
        assert max(ratios) < 1.3
