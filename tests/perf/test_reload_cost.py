"""What hot reload costs, in small and big modules: against `importlib.reload` and a new start, in one run."""

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dap_agent.session import payload


def text(count: int) -> str:
    return "".join(
        f"class C{n}:\n    size = {n}\n\n    def method(self, x):\n        return [x + y for y in range({n})]\n\n\n"
        f"def f{n}(a, b={n}):\n    total = 0\n    for y in range(a):\n        total += y * b\n    return total\n\n\n"
        for n in range(count)
    )


HARNESS = """
import importlib, json, sys, time
exec(open(sys.argv[1]).read(), {})
api = sys.modules["_dap_agent_debuggee.api"]
sys.path.insert(0, sys.argv[2])
sys.dont_write_bytecode = True
import big
path = big.__file__
texts = [open(path).read()]
texts.append("# moved" + chr(10) + texts[0].replace("total += y * b", "total += y * b + 1", 1))
heap = [[n] for n in range(int(sys.argv[3]))]  # what the collector has to look through

def once(number):
    files = [{"path": path, "old": texts[number % 2], "new": texts[(number + 1) % 2]}]
    asked = json.dumps({"files": files})
    began = time.perf_counter()
    answer = json.loads(api.call("reload", asked))
    seconds = time.perf_counter() - began
    assert answer["ok"] and answer["result"]["files"][0]["functions"][0]["outcome"] == "swapped", answer
    return seconds

ours = [once(number) for number in range(12)][2:]
theirs = []
for _ in range(10):
    began = time.perf_counter()
    importlib.reload(big)
    theirs.append(time.perf_counter() - began)
print(json.dumps([sorted(ours), sorted(theirs)]))
"""


def measured(folder: Path, count: int, heap: int) -> "tuple[float, float]":
    bundle = folder / "bundle.txt"
    bundle.write_text(payload.bundle(), encoding="utf-8")
    (folder / "big.py").write_text(text(count))
    words = [sys.executable, "-c", HARNESS, str(bundle), str(folder), str(heap)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    ours, theirs = json.loads(done.stdout)
    return statistics.median(ours), statistics.median(theirs)


@pytest.mark.perf
def test_a_reload_takes_a_fraction_of_a_new_start(tmp_path: Path) -> None:
    ours, theirs = measured(tmp_path, 10, 10_000)
    program = "import sys; sys.path.insert(0, sys.argv[1]); sys.dont_write_bytecode = True; import json, big"
    starts = []
    for _ in range(7):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)
        starts.append(time.perf_counter() - began)
    start = statistics.median(starts)
    print(f"reload {ours * 1e3:.1f} ms, importlib.reload {theirs * 1e3:.1f} ms, start {start * 1e3:.1f} ms")
    assert ours <= 0.6 * start


@pytest.mark.perf
def test_a_big_module_costs_a_few_times_what_the_interpreter_takes_to_import_it(tmp_path: Path) -> None:
    ours, theirs = measured(tmp_path, 150, 10_000)
    print(f"reload {ours * 1e3:.1f} ms, importlib.reload {theirs * 1e3:.1f} ms")
    assert ours <= 12 * theirs  # both texts are compiled, and their trees compared


@pytest.mark.perf
def test_the_size_of_the_heap_adds_little(tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    (tmp_path / "big").mkdir()
    small, _ = measured(tmp_path / "small", 10, 10_000)
    big, _ = measured(tmp_path / "big", 10, 1_000_000)
    print(f"10 000 objects {small * 1e3:.1f} ms, 1 000 000 objects {big * 1e3:.1f} ms")
    assert big - small < 0.2  # the collector's objects are looked through twice
