"""The parts of the extension that need no editor: `npm test` in vscode-extension."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

EXTENSION = Path(__file__).resolve().parents[2] / "vscode-extension"


def test_the_extensions_own_tests() -> None:
    npm = shutil.which("npm")
    if npm is None or not (EXTENSION / "node_modules").is_dir():
        why = "the extension's tools are not installed: run tests/vscode/install.sh (needs npm)"
        if os.environ.get("DAP_TEST_VSCODE") == "1":
            pytest.fail(why)
        pytest.skip(why)
    done = subprocess.run([npm, "test"], cwd=EXTENSION, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# fail 0" in done.stdout
