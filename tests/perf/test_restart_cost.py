"""What it costs to have a call made again: the rehearsal in a jailed copy, and the restart itself."""

import json
import statistics
import subprocess
import time
from pathlib import Path

import pytest

from dap_agent.session import payload

pytestmark = pytest.mark.perf

RESTARTING = Path(__file__).parents[1] / "debuggee" / "programs" / "restarting.py"
JOB = """
import time
began = time.process_time()
while time.process_time() - began < 2:
    pass  # a program that computes before it fails
[1, 2] / 0
"""


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_a_rehearsal_against_running_the_program_again(
    version: str, all_interpreters: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bars: a rehearsal at most 1/10 of a run that needs 2 s until it fails; the restart itself at most 20 ms."""
    python = all_interpreters[version]
    bundle = tmp_path / "bundle.txt"
    bundle.write_text(payload.bundle(), encoding="utf-8")
    command = [python, str(RESTARTING), str(bundle), "200", "cost"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    (tmp_path / "job.py").write_text(JOB, encoding="utf-8")
    began = time.perf_counter()
    subprocess.run([python, str(tmp_path / "job.py")], capture_output=True, timeout=60)
    again = time.perf_counter() - began
    rehearsal = statistics.median(found["rehearsals"])
    with capsys.disabled():
        print(
            f"\n{version}: a rehearsal {1e3 * rehearsal:.0f} ms (up to 50 of them: a look at what comes after it): "
            f"1/{again / rehearsal:.0f} of running again; the restart {1e3 * found['restart']:.2f} ms"
        )
    assert again / rehearsal >= 10
    assert found["restart"] <= 0.02
