"""What print() raises is what it raises without us: no frame of ours in a traceback, whoever prints it."""

import os
import subprocess

import pytest

PROGRAMS = {
    "a broken pipe": (
        "import sys, traceback\n"
        "def show():\n    print('x' * 1000000)\n    sys.stdout.flush()\n"
        "sys.stdin.readline()\n"
        "try:\n    show()\nexcept BrokenPipeError:\n    traceback.print_exc()\n    sys.stdout = None\n"
    ),
    "a character without a code": (
        "import traceback\n"
        "def show():\n    print('\\u20ac')\n"
        "try:\n    show()\nexcept UnicodeEncodeError:\n    traceback.print_exc()\nshow()\n"
    ),
    "no text": (
        "import sys, traceback\n"
        "def show():\n    sys.stdout.write(5)\n"
        "try:\n    show()\nexcept TypeError:\n    traceback.print_exc()\n"
    ),
    "a failing exec": "import os\nos.execv('/nowhere', ['nowhere'])\n",
}


def outcome(start):
    process = start()
    process.stdout.close()
    process.stdin.write("\n")
    process.stdin.close()
    err = process.stderr.read()
    process.wait(60)
    return err


@pytest.mark.parametrize("case", PROGRAMS)
def test_the_traceback_is_the_programs_own(trace, python, tmp_path, case):
    path = tmp_path / "program.py"
    path.write_text(PROGRAMS[case], encoding="utf-8")
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    encoding = {"PYTHONIOENCODING": "ascii"}
    native = outcome(lambda: subprocess.Popen([python, path], env={**os.environ, **encoding}, **streams))
    traced = outcome(
        lambda: trace.start("run", "--python", str(python), str(path), environment=encoding, stdin=subprocess.PIPE)
    )
    assert native.startswith("Traceback")
    told = [line for line in traced.splitlines() if not line.startswith(("dap-agent:", "  in "))]
    assert "<dap-agent>" not in traced
    first = native.split("Error: ")[0]
    assert first in traced, told
    trace.assert_nothing_is_left()
