"""What a trial costs: one, eight at once, and against running the program again."""

import base64
import json
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import pytest

from dap_agent.session import payload

pytestmark = pytest.mark.perf

PROGRAM = """
import json, statistics, sys, time
def total(lines):
    return sum(lines) / 0
def main():
    began = time.process_time()
    while time.process_time() - began < float(sys.argv[2]):
        pass  # a program that computes before it fails
    return total([1, 2])
"""
MEASURE = """
with open(sys.argv[1], encoding="utf-8") as file:
    exec(compile(file.read(), "<dap-agent>/payload.py", "exec"), {})
load = sys.modules["_dap_agent_debuggee"].load
api, stops = load("api"), load("stop")
try:
    main()
except ZeroDivisionError as error:
    api.set_stop(stops.Stop.from_exception(error))

def trials(count):
    arguments = json.loads(sys.argv[3])
    arguments["candidates"] *= count
    answer = json.loads(api.call("try_fix", json.dumps(arguments)))
    assert [each["summary"] for each in answer["result"]["trials"]] == ["total([1, 2]) returned 3"] * count, answer

def took(count, times):
    found = []
    for _ in range(times):
        began = time.perf_counter()
        trials(count)
        found.append(1e3 * (time.perf_counter() - began))
    return [min(found), statistics.median(found)]

trials(1)
print(json.dumps({"one": took(1, 20), "eight": took(8, 10)}))
"""


def pack(text: str) -> str:
    return base64.b64encode(zlib.compress(text.encode())).decode()


def measured(folder: Path, seconds: float) -> dict[str, Any]:
    text = PROGRAM + MEASURE
    program = folder / "program.py"
    program.write_text(text, encoding="utf-8")
    (folder / "bundle.txt").write_text(payload.bundle(), encoding="utf-8")
    asked = {
        "candidates": [[{"path": str(program), "old": 0, "new": 1}]],
        "texts": [pack(text), pack(text.replace("sum(lines) / 0", "sum(lines)"))],
    }
    command = [sys.executable, "program.py", "bundle.txt", str(seconds), json.dumps(asked)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=110, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_trial(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Bars: one <= 15 ms, eight in parallel <= 120 ms, in the debuggee (best: the median is the machine's)."""
    found = measured(tmp_path, 0)
    with capsys.disabled():
        print("\na trial in a small process, milliseconds (best, median)")
        for name, (best, median) in found.items():
            print(f"  {name}: {best:.1f}, {median:.1f}")
    assert found["one"][0] <= 15
    assert found["eight"][0] <= 120


def test_against_running_the_program_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Bar: one trial at most 1/20 of a run that needs 2 s until it fails."""
    found = measured(tmp_path, 2)
    (tmp_path / "again.py").write_text(PROGRAM + "main()\n", encoding="utf-8")
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "again.py", "", "2"], cwd=tmp_path, capture_output=True, timeout=60)
    seconds = time.perf_counter() - began
    assert b"ZeroDivisionError" in done.stderr
    with capsys.disabled():
        print(f"\na trial: 1/{1e3 * seconds / found['one'][1]:.0f} of running the program again ({seconds:.1f} s)")
    assert 1e3 * seconds / found["one"][1] >= 20
