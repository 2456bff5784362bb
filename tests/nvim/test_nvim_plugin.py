"""The plugin in a real Neovim, without a program: options, adapters, its command, help and health, and the wheel."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

import dap_agent

from .conftest import PLUGIN, Neovim

ROOT = Path(__file__).resolve().parents[2]
SUBCOMMANDS = [
    "apply",
    "ask",
    "autodebug",
    "cancel",
    "diff",
    "explain",
    "health",
    "help",
    "report",
    "restart",
    "restart_frame",
    "status",
    "undo",
]
KEYS = {"maxCost": 1, "model": "a:b", "unhandled": True, "enriched": True}
ADAPTER = ["first", "adapter"]


def test_options_adapters_command_help_and_health(nvim: Neovim, root: Path, tmp_path: Path) -> None:
    program = tmp_path / "dap-agent"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m dap_agent "$@"\n')
    program.chmod(0o755)
    for name, status in (("new", 0), ("old", 1)):  # what an interpreter says of its version
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {status}\n")
        (tmp_path / name).chmod(0o755)
    docs = tmp_path / "doc"
    shutil.copytree(PLUGIN / "doc", docs)
    notes = nvim.run(
        "checks.lua",
        cwd=root,
        env={"DAP_AGENT_MODEL": "anthropic:x", "ANTHROPIC_API_KEY": "never-shown-0123456789"},
        file=str(root / "shop/main.py"),
        program=str(program),
        nowhere=str(tmp_path / "nowhere"),
        new=str(tmp_path / "new"),
        old=str(tmp_path / "old"),
        docs=str(docs),
    )
    assert len(notes["wrong options"]) == 7
    for told, part in zip(
        notes["wrong options"],
        ["stop_at_raise", "no option modle; there are adapters, ", "command", "adapters", "lsp", "command", "options"],
        strict=True,
    ):
        assert told.startswith("dap-agent: ") and part in told and "\n" not in told
    assert notes["nothing registered"] is True
    assert [("nowhere cannot be run, so there are no lenses" in told) for told in notes["no program"]] == [True]

    assert (notes["keys"], notes["own keys"]) == (KEYS, {"maxCost": 1})
    assert (notes["own enrichment"], notes["untouched"]) == (True, True)
    assert (notes["old"], notes["old, tests"], notes["new, again"]) == (None, True, True)
    assert (notes["nowhere"], notes["attached"], notes["unseen"], notes["own filters"]) == (None, None, None, None)
    assert notes["own choice"] is False

    debugpy = [*ADAPTER, "--", "PY", "-m", "debugpy.adapter"]
    options = {"source_filetype": "python", "initialize_timeout_sec": 15}
    assert notes["executable"] == {
        "type": "executable",
        "command": str(program),
        "args": debugpy,
        "id": "my",
        "options": {**options, "cwd": "/tmp", "env": {"A": "b"}},
    }
    assert notes["server"]["args"] == [*ADAPTER, "--connect", "10.0.0.1:5678"]
    assert (notes["server"]["type"], notes["server"]["options"]) == ("executable", options)
    assert notes["server v6"] == [*ADAPTER, "--connect", "[::1]:5678"]
    assert notes["started server"] == "${port}"
    assert (notes["child"], notes["switched off"], notes["dap-agent itself"]) == ("server", "PY", ["adapter"])
    assert (notes["function"], notes["asked"]) == (debugpy, ["mine", True])
    assert notes["once"] is True
    assert (notes["without"], ":checkhealth dap_agent" in notes["sentence"]) == ("PY", True)

    assert notes["completion"] == SUBCOMMANDS
    assert notes["completion of a"] == ["apply", "ask", "autodebug"]
    assert notes["completion of more"] in ([], {})
    assert notes["unknown"] == "dap-agent: there is no :DapAgent nonsense; there are " + ", ".join(SUBCOMMANDS) + "."
    assert notes["too much"] == 'dap-agent: :DapAgent diff takes nothing more, but got "more".'
    assert notes["idle"] == ""

    assert (notes["lenses of 0.12"], notes["refresh of 0.12"]) == ([True, 7], True)
    assert notes["help"] == str(PLUGIN / "doc/dap-agent.txt")
    health = "\n".join(notes["health"])
    assert f"dap-agent {dap_agent.__version__}" in health
    for part in ("setup() was called", "nvim-dap was found", "dap.adapters.python", "ANTHROPIC_API_KEY is set"):
        assert part in health
    assert "never-shown" not in health
    assert not re.search(r"ERROR|WARNING", health), health
    assert notes["tags"] == (PLUGIN / "doc/tags").read_text().splitlines()

    for name in ("globals", "maps", "rest"):
        assert notes[name] in ([], {}), name
    assert (notes["sessions"], notes["clients"]) == (0, 0)


def test_it_runs_the_dap_agent_that_it_came_with(nvim: Neovim, tmp_path: Path) -> None:
    package = tmp_path / "env/lib/python3.12/site-packages/dap_agent/editors/nvim"
    shutil.copytree(PLUGIN, package)
    assert nvim.run("installed.lua", cwd=tmp_path, plugin=str(package))["command"] == ["dap-agent"]
    program = tmp_path / "env/bin/dap-agent"
    program.parent.mkdir()
    program.touch(0o755)
    assert nvim.run("installed.lua", cwd=tmp_path, plugin=str(package))["command"] == [str(program)]


def test_path_nvim_prints_the_folder(capfd: pytest.CaptureFixture[str]) -> None:
    subprocess.run([sys.executable, "-m", "dap_agent", "path", "nvim"], check=True)
    assert capfd.readouterr().out == f"{PLUGIN}\n"
    assert (PLUGIN / "plugin/dap_agent.lua").exists()


def test_all_of_it_is_in_the_wheel(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    with ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        packed = {name for name in wheel.namelist() if name.startswith("dap_agent/editors/nvim/")}
    files = {f"dap_agent/editors/nvim/{path.relative_to(PLUGIN)}" for path in PLUGIN.rglob("*") if path.is_file()}
    assert packed == files
