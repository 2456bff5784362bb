"""Real bugs of published packages, run as a user would run them: the snapshot names exception, frame, package, version.

`cases.json` and `triggers/` describe ten old releases that fail and the release that mended each.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CASES = json.loads((HERE / "cases.json").read_text(encoding="utf-8"))

pytestmark = pytest.mark.network


@pytest.mark.timeout(300)
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_the_snapshot_is_right(case, all_interpreters, with_packages, tmp_path):
    if case["python"] not in all_interpreters:
        pytest.skip(f"this machine has no CPython {case['python']}")
    base = Path(all_interpreters[case["python"]])
    python = with_packages(base, (f"{case['package']}=={case['buggy_version']}", *case["resolved_dependencies"]))
    report = tmp_path / "report.json"
    done = subprocess.run(
        [sys.executable, "-m", "dap_agent", "run", "--python", str(python), "--fix", "never", "--json", str(report),
         str(HERE / "triggers" / case["trigger"])],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 80, done.stderr
    snapshot = json.loads(report.read_text(encoding="utf-8"))["crash"]
    kind, _, message = case["exception"].partition(": ")
    exception = snapshot["exception"]
    assert exception["type"].rpartition(".")[2] == kind.rpartition(".")[2]
    assert exception["message"][:20] == message.replace("\\n", "\n")[:20] or "0x" in message
    assert chain(exception) == [name.rpartition(".")[2] for name in case["exception_chain"]]
    assert abs(snapshot["frames_total"] - case["stack_depth"]) <= 4
    culprit = case["on_stack_index"]
    if culprit is not None:
        packages = {
            (frame["package"]["name"].lower().replace("_", "-"), frame["package"]["version"])
            for frame in snapshot["frames"]
            if frame["package"] and frame["number"] <= culprit + 2
        }
        assert (case["package"], case["buggy_version"]) in packages
    assert snapshot["frames"][-1]["user"]
    assert snapshot["frames"][-1]["file"].endswith(case["trigger"])


def chain(exception):
    names = []
    while exception is not None:
        names.append(exception["type"].rpartition(".")[2])
        exception = exception["cause"] or exception["context"]
    return names
