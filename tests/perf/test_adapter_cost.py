"""What `dap-agent adapter` costs and gains an editor, against debugpy's adapter alone (bars: DESIGN.md section 4).

Sessions with and without it are run in turns, so that other load on the machine meets both alike.
"""

import asyncio
import statistics
import time
from pathlib import Path

import pytest

from ..proxy.editor_double import BOTH, VSCODE, editor

pytestmark = pytest.mark.perf

ROUNDS = 7
QUESTIONS = 30
PROGRAM = """\
def fails(items):
    return items["missing"]

fails({"k%d" % n: [n] * 5 for n in range(20)})
"""


async def session(program: Path, command: list[str]) -> tuple[float, float, float]:
    """Milliseconds from `launch` to the stop, milliseconds of a `threads` then, megabytes of the adapter process."""
    async with editor(command, initialize=VSCODE, filters=["uncaught"]) as client:
        began = time.perf_counter()
        await client.start("launch", {"program": str(program), "console": "internalConsole"})
        stop = await client.event("stopped")
        first = 1000 * (time.perf_counter() - began)
        thread = stop["body"]["threadId"]
        await client.ask("stackTrace", {"threadId": thread})
        times = []
        for _ in range(QUESTIONS):
            began = time.perf_counter()
            await client.ask("threads")
            times.append(1000 * (time.perf_counter() - began))
        await client.ask("evaluate", {"expression": "/why" if command is BOTH["ours"] else "1", "context": "repl"})
        status = Path(f"/proc/{client.process.pid}/status").read_text(encoding="utf-8")
        await client.ask("continue", {"threadId": thread})
        await client.event("terminated")
        await client.leave()
    return first, statistics.median(times), int(status.split("VmRSS:")[1].split()[0]) / 1024


def test_an_editor_gains(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    measured: dict[str, list[tuple[float, float, float]]] = {name: [] for name in BOTH}
    for _ in range(ROUNDS):
        for name, command in BOTH.items():
            measured[name].append(asyncio.run(session(program, command)))
    first, threads, memory = (
        {name: statistics.median(row[column] for row in rows) for name, rows in measured.items()} for column in range(3)
    )
    with capsys.disabled():
        print(f"\n{'':>24} {'debugpy':>10} {'dap-agent':>10}   median of {ROUNDS} sessions")
        print(f"{'launch to first stop':>24} {first['direct']:>10.0f} {first['ours']:>10.0f}   ms")
        print(f"{'threads':>24} {threads['direct']:>10.2f} {threads['ours']:>10.2f}   ms")
        print(f"{'adapter process':>24} {memory['direct']:>10.0f} {memory['ours']:>10.0f}   MB")
    assert first["ours"] - first["direct"] <= 250
    assert threads["ours"] <= threads["direct"] / 30
    assert memory["ours"] <= 60
