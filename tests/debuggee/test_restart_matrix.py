"""Calls made again at their raises: each supported shape many times in one process, and what is refused.

1000 times each, as they were run for the release, with DAP_TEST_ALL_RESTARTS=1.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parent / "programs" / "restarting.py"
TIMES = 1000 if os.environ.get("DAP_TEST_ALL_RESTARTS") else 50
ALLOWED = ("3.11", "3.12", "3.13")
SHAPES = {
    "plain", "ancestor", "recursion", "C frames", "finally and with", "finally and with, ancestor", "coroutine",
    "coroutine, ancestor", "tasks", "without a return", "one value on the stack", "method and __init__", "property",
    "closure", "generator between", "comprehension", "fails again", "thread",
}  # fmt: skip

REFUSED = {
    "generator": "is a generator, whose values so far have been taken",
    "asynchronous generator": "is an asynchronous generator, whose values so far have been taken",
    "class body": "is the body of the class Body",
    "module": "is the code of a module",
    "deleted argument": "The argument item was deleted",
    "too short": "The function nothing is too small",
    "handled on its way": "the exception did not come to frame 2",
    "hangs": "waits still ran after 0.5 s",
    "crashes": "it crashed (SIGSEGV)",
    "no such frame": "There is no frame 1000000",
    "ended": "not at its raise: the frames that it has passed have ended",
    "pause": "the program does not stand at one",
}


def run(python: str, bundle: Path, times: int, *names: str) -> dict[str, Any]:
    done = subprocess.run(
        [python, "-X", "faulthandler", str(PROGRAM), str(bundle), str(times), *names],
        capture_output=True,
        text=True,
        timeout=60 + times,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("version", ALLOWED)
def test_every_shape_many_times(version: str, all_interpreters: dict[str, str], bundle_file: Path) -> None:
    if version not in all_interpreters:
        pytest.skip(f"there is no Python {version} on this machine")
    said = run(all_interpreters[version], bundle_file, TIMES)
    among_threads = said.pop("among threads")
    assert said.keys() == SHAPES
    for name, found in said.items():
        rehearsal = found["rehearsal"]
        assert rehearsal is not None and found["reason"] == "", (name, found)
        assert rehearsal["ended"] == ("raised" if name == "fails again" else "returned"), (name, rehearsal)
        assert found["value"] and found["good"] == TIMES and found["refused"] == [], (name, found)
        assert found["alive"] == 0 and found["grown"] <= 10, (name, found)
        assert found["mapped"] <= 20, (name, found)  # threads map some memory; a leak would be two for each time
        assert found.get("as before", True), name
    # all of this thread's calls have got the other value, all of the other threads' their exception
    assert among_threads == [True, True]


@pytest.mark.parametrize("version", ALLOWED)
def test_what_cannot_be_restarted_is_left_alone(
    version: str, all_interpreters: dict[str, str], bundle_file: Path
) -> None:
    if version not in all_interpreters:
        pytest.skip(f"there is no Python {version} on this machine")
    said = run(all_interpreters[version], bundle_file, 1, "refusals")
    assert said.keys() == REFUSED.keys()
    for name, words in REFUSED.items():
        assert not said[name]["allowed"]
        assert words in said[name]["reason"] and said[name]["reason"].endswith("Restart the program instead."), name
    assert said["handled on its way"]["came"] == ["handled", False]
    assert {each["came"] for name, each in said.items() if name != "handled on its way"} == {"raised"}
    ends = {name: each["ended"] for name, each in said.items() if each["ended"] is not None}
    assert ends == {"handled on its way": "not reached", "hangs": "timeout", "crashes": "crashed"}


def test_no_other_version_is_on_the_list(every_python: Path, ask: Any) -> None:
    said = ask(every_python, "def f():\n    raise ValueError(1)\nf()\n", ("restart_frame", {"frame": 0}))[0]
    listed = "that is possible on CPython 3.11, 3.12, 3.13, this is" not in said["reason"]
    version = subprocess.run(
        [str(every_python), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True
    ).stdout.strip()
    assert not said["allowed"] and listed == (version in ALLOWED)
