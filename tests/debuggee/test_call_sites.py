"""Which call an instruction is, where the interpreter tells its line alone."""

import json
import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "programs" / "call_sites.py"
MODULES = ("argparse.py", "ast.py", "functools.py", "pickle.py", "subprocess.py", "traceback.py", "typing.py")


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.10"])
def test_it_is_the_one_that_the_compiler_says(
    version: str, all_interpreters: dict[str, str], bundle_file: Path
) -> None:
    if version not in all_interpreters:
        pytest.skip(f"there is no Python {version} on this machine")
    done = subprocess.run(
        [all_interpreters[version], str(PROGRAM), str(bundle_file), *MODULES],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    right, wrong, unknown = json.loads(done.stdout)
    assert wrong == 0
    assert right > 1500
    assert unknown < 0.03 * right
