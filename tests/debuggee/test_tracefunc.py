"""Below Python 3.12 a function in a thread's state is told of exceptions, and of nothing else."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

WATCHING = Path(__file__).parent / "programs" / "watching.py"
SECONDS = float(os.environ.get("DAP_TEST_SOAK", "1.5"))
"""How long each interpreter is under stress."""


@pytest.fixture(params=["3.8", "3.9", "3.10", "3.11"])
def version(request: pytest.FixtureRequest, all_interpreters: dict[str, str]) -> Any:
    if request.param not in all_interpreters:
        pytest.skip("needs Python " + request.param)
    return request.param


@pytest.fixture
def watched(version: str, all_interpreters: dict[str, str], bundle_file: Path) -> Any:
    def run(scenario: str, *arguments: float) -> Any:
        command = [all_interpreters[version], str(WATCHING), str(bundle_file), scenario, *map(str, arguments)]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=60 + sum(arguments),
            env={**os.environ, "PYTHONMALLOC": "debug", "PYTHONFAULTHANDLER": "1"},
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout)

    return run


def test_places(watched, version):
    """Include/cpython/pystate.h of each version, on a 64 bit machine."""
    assert watched("places") == {"slot": 9 if version == "3.11" else 8, "depth": 8}


def test_exceptions_and_nothing_else(watched):
    assert watched("nothing_else") == {"seen": 400, "others": 0, "gettrace": None, "getprofile": None}


def test_tracers_of_the_program_s_own(watched):
    told = watched("others_tracers")
    assert told["tracer"] == [[["call", "exception", "line", "return"], True]] * 5
    assert {"call", "return"} <= set(told["profiler"])
    assert told["again"]
    assert told["gettrace"] is None


def test_threads_and_forks(watched):
    told = watched("threads_and_forks")
    assert told["threads"] == [11] * 10
    assert told["child"] == [5, 7]
    assert told["parent"] == 3
    assert told["left"] == 1
    assert told["kept"] <= 2


def test_at_the_limit_of_recursion(watched):
    assert watched("limits") == {"errors": 250, "again": True}


def test_a_signal_s_exception_arrives(watched):
    told = watched("signals")
    # before 3.10 there is an instruction on the way out of ours at which it is lost, and others may be lost in C code
    assert told["met"] >= 147


def test_stress(watched):
    told = watched("stress", SECONDS)
    assert told["errors"] == []
    assert told["seen"] > 100
