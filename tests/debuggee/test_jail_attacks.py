"""Each attack is made in a jail of one process; afterwards that process, its files and its peers are as they were."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
_spec = spec_from_file_location("jail_attacks", HERE / "jail_attacks.py")
assert _spec is not None and _spec.loader is not None
attacks = module_from_spec(_spec)
_spec.loader.exec_module(attacks)

LEVELS: dict[str, tuple[str, ...]] = {
    "overlay": (),
    "read-only": ("overlay",),
    "filter alone": ("overlay", "landlock"),
    "Landlock alone": ("overlay", "seccomp"),
    "audit": ("overlay", "landlock", "seccomp"),
}
"""Name -> means not to use."""

# What C code does by functions that the program has at hand already is not seen by an audit hook.
NOT_HELD: dict[str, set[str]] = {
    "Landlock alone": {"attach System V memory", "make System V memory"},
    "audit": {"attach System V memory", "make System V memory"},
}

ENDED = {
    "log": "log\nbuffered once\n",
    "text": "text\nend",
    "rows": [[1], [2]],
    "answer": "all is well",
    "value": ["untouched", "by a thread"],
}


def _as_nobody(python: Path) -> list[str]:
    return ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", str(python)]


@cache
def _works_as_nobody(python: Path) -> bool:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        return False
    return subprocess.run([*_as_nobody(python), "-c", "import ctypes, sqlite3"], capture_output=True).returncode == 0


class Attacked:
    """Runs `programs/attacked.py` once for each interpreter, level and user; all attacks in one process."""

    def __init__(self, bundle: Path) -> None:
        self._bundle = bundle
        self._found: dict[tuple[Path, str, bool], dict[str, Any]] = {}

    def __call__(self, python: Path, level: str, nobody: bool = False) -> dict[str, Any]:
        key = python, level, nobody
        if key not in self._found:
            self._found[key] = self._run(python, level, nobody)
        return self._found[key]

    def _run(self, python: Path, level: str, nobody: bool) -> dict[str, Any]:
        # not tmp_path: its parents are closed to others
        with tempfile.TemporaryDirectory() as folder:
            Path(folder).chmod(0o755)
            world = Path(folder, "world")
            world.mkdir()
            files = [shutil.copy(each, folder) for each in (HERE / "programs" / "attacked.py", self._bundle)]
            for file in files:
                Path(file).chmod(0o644)
            command = [str(python)]
            if nobody:
                os.chown(world, 65534, 65534)
                command = _as_nobody(python)
            done = subprocess.run(
                [*command, str(files[0]), str(files[1]), str(world)],
                input=json.dumps({"attacks": attacks.questions(), "without": LEVELS[level]}),
                capture_output=True,
                text=True,
                timeout=110,
                env={**os.environ, "DAP_AGENT_ATTACKED": "1"},
                preexec_fn=_limited,
            )
        assert done.returncode == 0, done.stderr[-3000:]
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found


def _limited() -> None:
    """Bounds for a jail that should leak: the machine is not to suffer."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (8 * 2**30, 8 * 2**30))
    resource.setrlimit(resource.RLIMIT_CPU, (100, 100))


@pytest.fixture(scope="module")
def attacked(bundle_file: Path) -> Iterator[Attacked]:
    yield Attacked(bundle_file)


def _check(found: dict[str, Any], level: str, names: "list[str] | None" = None) -> None:
    held = NOT_HELD.get(level, set())
    changed = {name: result["changed"] for name, result in found["results"].items() if result["changed"]}
    assert {name: what for name, what in changed.items() if name not in held} == {}
    assert found["ended"] == ENDED
    for name, result in found["results"].items():
        answer = result["answer"]
        assert answer["ok"], (name, answer)
        assert answer["result"]["isolation"]["level"] == ("kernel" if "seccomp" not in LEVELS[level] else "audit")


@pytest.mark.parametrize("name", sorted(attacks.ATTACKS))
def test_nothing_is_changed(attacked: Attacked, newest: Path, name: str) -> None:
    result = attacked(newest, "overlay")["results"][name]
    assert result["answer"]["ok"], result["answer"]
    assert result["changed"] == {}


@pytest.mark.parametrize("level", LEVELS)
def test_every_level(attacked: Attacked, newest: Path, level: str) -> None:
    """What a level does not hold is in NOT_HELD, and only that may have changed anything."""
    _check(attacked(newest, level), level)


@pytest.mark.parametrize("level", ["overlay", "read-only"])
def test_every_version(attacked: Attacked, every_python: Path, level: str) -> None:
    _check(attacked(every_python, level), level)


@pytest.mark.parametrize("level", LEVELS)
def test_an_unprivileged_user(attacked: Attacked, newest: Path, level: str) -> None:
    if not _works_as_nobody(newest):
        pytest.skip("it takes root, setpriv and an interpreter that everybody may run")
    _check(attacked(newest, level, nobody=True), level)


EFFECTS = {
    "write a file by its path": ("would write {}/text (thrown away)", "tried to write {}/text"),
    "remove a file": ("would remove {}/text (thrown away)", "tried to remove {}/text"),
    "change the mode": ("tried to change the mode of {}/text (left as it was)",) * 2,
    "signal the parent": ("tried to send signal 10 to process",) * 2,
    "TCP connection": ("tried to connect to 127.0.0.1:",) * 2,
    "a program by os.system": ("ran the program rm -rf",) * 2,
    "append to an open log": ("would write {}/log, which was open already (thrown away)",) * 2,
}


def test_effects_that_only_an_error_tells_of(attacked: Attacked, newest: Path) -> None:
    results = attacked(newest, "read-only")["results"]
    told = [results[name]["answer"]["result"]["effects"] for name in ("commit to the database", "device node")]
    assert any("tried to write to a database of sqlite3" in each for each in told[0]), told
    assert any(each.startswith("was refused ") and each.endswith("ed") for each in told[1]), told


@pytest.mark.parametrize(("name", "texts"), EFFECTS.items())
def test_effects_are_named(attacked: Attacked, newest: Path, name: str, texts: tuple[str, str]) -> None:
    for level, text in zip(("overlay", "read-only"), texts, strict=True):
        effects = attacked(newest, level)["results"][name]["answer"]["result"]["effects"]
        before, _, after = text.partition("{}")
        assert any(each.startswith(before) and after in each for each in effects), effects


ENDS = {
    "endless call into C": ("TimeoutError", "ended after 0.5 s (limit 0.5 s)"),
    "deaf to signals": ("TimeoutError", "ended after 0.5 s (limit 0.5 s)"),
    "exit": ("RuntimeError", "It ended its process with status 3 before it had a result."),
    "crash": ("RuntimeError", "Its process was ended by SIGSEGV."),
    "memory bomb": ("MemoryError", ""),
    "output flood": ("RuntimeError", "It printed more than"),
    "memory bomb of files": ("RuntimeError", "too many files in memory"),
}


@pytest.mark.parametrize(("name", "told"), ENDS.items())
def test_ends_are_told(attacked: Attacked, newest: Path, name: str, told: tuple[str, str]) -> None:
    found = attacked(newest, "overlay")["results"][name]["answer"]["result"]
    assert found["error"]["type"] == told[0]
    assert told[1] in found["error"]["message"]
    assert found["timed_out"] == (told[0] == "TimeoutError")


@pytest.fixture
def newest() -> Path:
    """The interpreter that runs the tests: the one that everybody has."""
    import sys

    return Path(sys.executable)
