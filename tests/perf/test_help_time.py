"""`dap-agent --help` against `python -c pass` (DESIGN.md section 4: at most 100 ms above it)."""

import statistics
import subprocess
import sys
import time

import pytest


def seconds(*arguments: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


@pytest.mark.perf
def test_help_takes_at_most_100_ms_more_than_python_itself() -> None:
    helps, bares = [], []
    for _ in range(15):
        helps.append(seconds("-m", "dap_agent", "--help"))
        bares.append(seconds("-c", "pass"))
    above = statistics.median(helps) - statistics.median(bares)
    print(f"help: {above * 1000:.0f} ms above python -c pass")
    assert above <= 0.1
