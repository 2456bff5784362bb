"""What a trace costs: against a trial of the same call, and for each line against the plain run."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dap_agent.session import payload

pytestmark = pytest.mark.perf

PROGRAM = """
import json, sys, time
def total(lines):
    return sum(lines) / 0
def loop(count):
    found = 0
    rows = []
    for i in range(count):
        found += i % 7
    rows.append(found)
    return rows
def main():
    return total([1, 2])
with open(sys.argv[1], encoding="utf-8") as file:
    exec(compile(file.read(), "<dap-agent>/payload.py", "exec"), {})
load = sys.modules["_dap_agent_debuggee"].load
api, stops = load("api"), load("stop")
try:
    main()
except ZeroDivisionError as error:
    api.set_stop(stops.Stop.from_exception(error))

def ask(name, **arguments):
    began = time.perf_counter()
    answer = json.loads(api.call(name, json.dumps(arguments)))
    assert answer["ok"], answer
    return 1e3 * (time.perf_counter() - began), answer["result"]

for name, more in (("evaluate_jailed", {"number": 0, "code": "1"}), ("trace", {})):
    ask(name, **more)
began = time.perf_counter()
loop(100000)
plain = 1e3 * (time.perf_counter() - began)
traced = ask("trace", code="loop(100000)", timeout=60)[1]
assert traced["total"] > 200000
print(json.dumps({
    "jail": min(ask("evaluate_jailed", number=0, code="1")[0] for _ in range(15)),
    "trace": min(ask("trace")[0] for _ in range(15)),
    "plain": plain,
    "loop": 1e3 * traced["seconds"],
    "line": 1e6 * traced["seconds"] / traced["total"],
}))
"""


@pytest.mark.parametrize("version", ["3.11", "3.13"])
def test_a_trace(
    version: str, all_interpreters: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bars of our own (the issue has none): a small call three times a jail, a line 60 microseconds."""
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "bundle.txt").write_text(payload.bundle(), encoding="utf-8")
    command = [all_interpreters[version], "program.py", "bundle.txt"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=110, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    with capsys.disabled():
        print(
            f"\n{version}: a trace of a small call {found['trace']:.1f} ms, {found['trace'] / found['jail']:.2f} x an "
            f"evaluate in a jail; a line {found['line']:.1f} us, a loop {found['loop'] / found['plain']:.0f} x"
        )
    assert found["trace"] <= 3 * found["jail"]
    assert found["line"] <= 60
