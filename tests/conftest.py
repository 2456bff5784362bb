"""Fixtures for all tests: the interpreters of this machine, a state directory of the test's own."""

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

VERSIONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13")
CACHE = Path(__file__).parents[1] / ".cache" / "test-environments"
ALL_PYTHONS = bool(os.environ.get("DAP_TEST_ALL_PYTHONS"))


@cache
def interpreters() -> dict[str, str]:
    """Version -> executable, of the CPythons that a debuggee may run on.

    From DAP_AGENT_TEST_PYTHONS (separated like PATH), pyenv's folder and the PATH, in this order.
    """
    found: dict[str, str] = {f"{sys.version_info[0]}.{sys.version_info[1]}": sys.executable}
    given = [entry for entry in os.environ.get("DAP_AGENT_TEST_PYTHONS", "").split(os.pathsep) if entry]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    ours = map(str, sorted(pyenv.glob("3.*/bin/python")))
    candidates = [*given, *ours, *(f"python{version}" for version in VERSIONS)]
    for candidate in candidates:
        path = shutil.which(candidate)
        if path is None:
            continue
        asked = subprocess.run([path, "-c", "import sys; print(sys.version)"], capture_output=True, text=True)
        version = re.match(r"3\.\d+", asked.stdout)
        if asked.returncode == 0 and version and version[0] in VERSIONS:
            found.setdefault(version[0], path)
    return found


def pytest_configure() -> None:
    """A shell's background job ignores Ctrl-C, one under nohup SIGHUP; the programs of tests would inherit that."""
    for number, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, default)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`python` runs a test on the oldest and the newest debuggee of this machine, `every_python` on all of them.

    Sessions of the debugger take seconds each: there `every_python` is the two and 3.11, all with DAP_TEST_ALL_PYTHONS.
    """
    versions = sorted(interpreters(), key=VERSIONS.index)
    if "python" in metafunc.fixturenames:
        metafunc.parametrize("python", list(dict.fromkeys([versions[0], versions[-1]])), indirect=True)
    if "every_python" in metafunc.fixturenames:
        if metafunc.definition.path.parent.name in ("debugpy", "symptoms") and not ALL_PYTHONS:
            versions = [version for version in versions if version in (versions[0], "3.11", versions[-1])]
        metafunc.parametrize("every_python", versions, indirect=True)


@pytest.fixture
def python(request: pytest.FixtureRequest) -> Path:
    return Path(interpreters()[request.param])


@pytest.fixture
def every_python(request: pytest.FixtureRequest) -> Path:
    return Path(interpreters()[request.param])


@pytest.fixture(scope="session")
def with_packages() -> Callable[[Path, tuple[str, ...]], Path]:
    """Gives an environment of the same Python version with packages from the index, kept between runs."""

    def make(python: Path, packages: tuple[str, ...]) -> Path:
        version = next(version for version, path in interpreters().items() if path == str(python))
        folder = CACHE / "-".join([version, *(re.sub(r"[^\w.]+", "", name) for name in packages)])
        executable = folder / "bin" / "python"
        if not (folder / "ready").exists():
            shutil.rmtree(folder, ignore_errors=True)
            subprocess.run([str(python), "-m", "venv", str(folder)], check=True)
            subprocess.run([str(executable), "-m", "pip", "install", "-q", *packages], check=True)
            (folder / "ready").touch()
        return executable

    return make


@pytest.fixture(autouse=True)
def private_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test reads or writes the user's own journals, settings and undo records."""
    folder = tmp_path_factory.mktemp("state")
    for name in list(os.environ):
        if name.startswith("DAP_AGENT_") and name != "DAP_AGENT_TEST_PYTHONS":
            monkeypatch.delenv(name)
    monkeypatch.setenv("DAP_AGENT_STATE_DIR", str(folder))
    return folder


@pytest.fixture(scope="session")
def all_interpreters() -> dict[str, str]:
    """Version -> executable."""
    return interpreters()


@pytest.fixture(autouse=True)
def _no_bombs_beside_others(request: pytest.FixtureRequest) -> Iterator[None]:
    """Attacks on a jail fill the machine with processes, which ends other jails: nothing else runs beside them."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    name = f"pytest-{os.getuid()}-{os.environ['PYTEST_XDIST_TESTRUNUID']}.lock"
    with open(os.path.join(tempfile.gettempdir(), name), "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX if request.path.name == "test_jail_attacks.py" else fcntl.LOCK_SH)
        yield
