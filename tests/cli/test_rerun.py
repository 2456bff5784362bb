"""What a second run reads, and when it has passed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dap_agent.cli.rerun import Rerun

CODE = """
import os
from dap_agent.cli.rerun import Input
given = Input()
os.read(0, 4)
descriptor = given.again()
print(given.kind, os.read(0 if descriptor is None else descriptor, 100))
"""


def second_reading(**stdin: object) -> str:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True, **stdin)  # type: ignore[call-overload]
    return str(done.stdout).strip()


def test_a_file_is_rewound_to_where_the_first_run_began(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("0123456789")
    with open(tmp_path / "in", "rb") as file:
        os.lseek(file.fileno(), 2, os.SEEK_SET)
        assert second_reading(stdin=file) == "rewound b'23456789'"


def test_a_pipe_cannot_be_read_twice() -> None:
    assert second_reading(input="0123456789") == "empty b''"


def test_a_device_is_read_on() -> None:
    assert second_reading(stdin=subprocess.DEVNULL) == "same b''"


@pytest.mark.parametrize(
    ("again", "passed", "words"),
    [
        (Rerun(0, (), False, "same"), True, "now runs through"),
        (Rerun(1, ("KeyError: 'x'",), True, "same"), False, "still fails with KeyError: 'x'."),
        (
            Rerun(1, ("TypeError: y",), False, "same"),
            False,
            "the exception is gone, but the program now fails with TypeError",
        ),
        (Rerun(0, ("TypeError: y",), False, "same"), False, "now fails with TypeError"),
        (Rerun(3, (), False, "same"), False, "the exception is gone, but the program ended with status 3."),
        (Rerun(-11, (), False, "same"), False, "ended by signal SIGSEGV."),
        (Rerun(-250, (), False, "same"), False, "ended by signal 250."),
        (Rerun(0, (), False, "empty"), True, "so this run had an empty input."),
    ],
)
def test_it_passes_with_status_0_and_without_an_exception(again: Rerun, passed: bool, words: str) -> None:
    assert again.passed is passed
    assert words in again.summary
    assert again.to_json()["passed"] is passed
