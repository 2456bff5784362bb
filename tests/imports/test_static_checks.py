"""`mypy --strict`, `ruff check` and `ruff format` are clean (configured in pyproject.toml)."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


# The folders are named: the README's demo, a virtual environment or a user's notes may lie beside them.
OURS = ["dap_agent", "tests"]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "words",
    [["mypy"], ["ruff", "check", *OURS], ["ruff", "format", "--check", *OURS]],
    ids=["types", "style", "format"],
)
def test_the_tree_is_clean(words: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
