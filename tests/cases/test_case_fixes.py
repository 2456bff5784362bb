"""The whole loop on real bugs: stop, tools, proof, fix inside the installed package, second run, undo.

`turns/` holds for some of the cases what a model could have said; `folder` is the package's folder, which is the
workspace.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CASES = {case["id"]: case for case in json.loads((HERE / "cases.json").read_text(encoding="utf-8"))}

pytestmark = pytest.mark.network


def dap_agent(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "dap_agent", *map(str, arguments)],
        cwd=cwd, capture_output=True, text=True, timeout=200, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def sources(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.suffix == ".py"}


@pytest.mark.timeout(400)
@pytest.mark.parametrize("turns", sorted((HERE / "turns").glob("*.json")), ids=lambda path: path.stem)
def test_fixed_inside_of_the_installed_package(turns, all_interpreters, with_packages, tmp_path):
    case = CASES[turns.stem]
    if case["python"] not in all_interpreters:
        pytest.skip(f"this machine has no CPython {case['python']}")
    base = Path(all_interpreters[case["python"]])
    kept = with_packages(base, (f"{case['package']}=={case['buggy_version']}", *case["resolved_dependencies"]))
    environment, project = tmp_path / "env", tmp_path / "project"
    shutil.copytree(kept.parents[1], environment, symlinks=True)
    project.mkdir()
    program = shutil.copy(HERE / "triggers" / case["trigger"], project / "trigger.py")
    python = environment / "bin" / "python"
    folder = json.loads(turns.read_text(encoding="utf-8"))["folder"]
    (package,) = environment.glob(f"lib/python3*/site-packages/{folder}")
    before = sources(package)

    done = dap_agent(
        "run", "--python", python, "--workspace", package, "--fix", "auto", "--model", f"scripted:{turns}", program,
        cwd=project,
    )  # fmt: skip

    assert done.returncode == 82, done.stderr
    assert "verdict: proved" in done.stderr
    after = sources(package)
    assert len(after) == len(before) + 1  # the regression test
    assert len([name for name in before if before[name] != after[name]]) == 1
    assert os.listdir(project) == ["trigger.py"]
    plain = subprocess.run([str(python), str(program)], capture_output=True, text=True, timeout=60)
    assert plain.returncode == 0, plain.stderr

    undone = dap_agent("undo", "--workspace", package, cwd=project)
    assert undone.returncode == 0, undone.stderr
    assert sources(package) == before
