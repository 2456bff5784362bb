"""A failing test is a stop, with the test's own exception and frames; debugpy's `uncaught` never fires there (debugpy#111)."""

import pytest

from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.network
def test_each_failing_test_is_one_stop(player, python, with_packages):
    command = player.command(
        with_packages(python, ("pytest",)), "-m", "pytest", "-q", "-p", "no:cacheprovider", str(PROGRAMS / "test_sample.py")
    )
    native = player.natively(command)
    story = player.play(command)
    assert [stop.exception["type"] for stop in story.stops] == ["KeyError", "AssertionError", "RuntimeError", "AssertionError"]
    assert [stop.user_frame["function"].rpartition(".")[2] for stop in story.stops] == [
        "lookup",
        "test_assertion",
        "broken",
        "test_equal",
    ]
    assert story.end.exit_status == native.status == 1
    assert without_times(story.out) == without_times(native.out)
    assert story.err == native.err


def test_unittest_failures_stop_too(player, python):
    program = (
        "import unittest\n"
        "class Case(unittest.TestCase):\n"
        "    def test_error(self):\n        {}['k']\n"
        "    def test_failure(self):\n        self.assertEqual(1, 2)\n"
        "    def test_raises(self):\n        self.assertRaises(KeyError, {}.__getitem__, 1)\n"
        "    @unittest.expectedFailure\n    def test_known(self):\n        self.fail('known')\n"
        "unittest.main()\n"
    )
    story = player.play(player.command(python, program=program))
    assert [stop.exception["type"] for stop in story.stops] == ["KeyError", "AssertionError"]
    assert story.end.exit_status == 1


@pytest.mark.network
def test_the_captured_output_of_a_test_is_quoted(player, python, with_packages):
    command = player.command(
        with_packages(python, ("pytest",)), "-m", "pytest", "-q", str(PROGRAMS / "test_sample.py"), "-k", "test_bug"
    )
    (stop,) = player.play(command).stops
    assert "said in the test" in stop.data["output"]["stdout"]


def without_times(text):
    import re

    return re.sub(r"in \d+\.\d+s", "in ...", text)
