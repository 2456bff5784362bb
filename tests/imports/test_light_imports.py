"""Starting is cheap: no SDK, schema validator, test runner or terminal library before it is needed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {"anthropic", "openai", "jsonschema", "pygls", "lsprotocol", "mcp", "pydantic", "pytest", "_pytest", "rich"}
HEAVY |= {"httpx", "numpy", "pandas", "hypothesis"}


def loaded_by(statement: str) -> set[str]:
    """The top-level modules in `sys.modules` after *statement* ran in a fresh interpreter."""
    program = (
        f"import atexit, sys\natexit.register(lambda: print(*sys.modules, sep='\\n', file=sys.stderr))\n{statement}"
    )
    paths = [str(ROOT), *(path for path in sys.path if path)]
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=True,
    )
    return {name.split(".")[0] for name in done.stderr.splitlines()} | set(done.stderr.splitlines())


@pytest.mark.parametrize(
    "statement",
    [
        "sys.argv[1:] = ['--help']; import runpy; runpy.run_module('dap_agent', run_name='__main__')",
        "sys.argv[1:] = ['--version']; import runpy; runpy.run_module('dap_agent', run_name='__main__')",
        "import dap_agent.proxy.server",
        "import dap_agent.cli.main, dap_agent.cli.adapter",
        "import dap_agent.session.api",
        "import dap_agent.models.registry",
        "import dap_agent.fixes, dap_agent.agent",
    ],
)
def test_nothing_heavy_is_imported_at_the_start(statement: str) -> None:
    loaded = loaded_by(statement)
    assert "dap_agent" in loaded
    assert not loaded & HEAVY


def test_the_core_of_the_proxy_comes_without_asyncio_and_sockets() -> None:
    loaded = loaded_by("import dap_agent.proxy.core, dap_agent.wire.frames")
    assert "dap_agent.proxy.core" in loaded
    assert not loaded & {"asyncio", "socket", "selectors", "subprocess", "threading"}


def test_code_for_the_debuggee_is_never_imported_here() -> None:
    loaded = loaded_by("sys.argv[1:] = ['--help']; import runpy; runpy.run_module('dap_agent', run_name='__main__')")
    assert not [name for name in loaded if name.startswith("dap_agent.debuggee")]


def test_the_adapter_starts_without_the_rooms_that_investigate() -> None:
    loaded = loaded_by("import dap_agent.cli.main, dap_agent.cli.adapter, dap_agent.control.companion")
    assert "dap_agent.control.messages" in loaded
    heavy = ("dap_agent.agent", "dap_agent.fixes", "dap_agent.models")
    assert not [name for name in loaded if name.startswith(heavy)]
