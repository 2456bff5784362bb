"""A failing test is a stop, with its own exception and frames; debugpy's `uncaught` never fires there (debugpy#111)."""

import shutil
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.network
def test_each_failing_test_is_one_stop(player, python, with_packages):
    shutil.copy(PROGRAMS / "test_sample.py", player.folder)  # away from our own conftest.py
    command = player.command(
        with_packages(python, ("pytest",)), "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_sample.py"
    )
    native = player.natively(command)
    story = player.play(command)
    assert [stop.exception["type"] for stop in story.stops] == [
        "KeyError",
        "AssertionError",
        "RuntimeError",
        "AssertionError",
    ]
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
        "    def test_subtests(self):\n"
        "        for n in (1, 2):\n            with self.subTest(n=n):\n                self.assertLess(n, 2)\n"
        "    def test_raises(self):\n        self.assertRaises(KeyError, {}.__getitem__, 1)\n"
        "    @unittest.expectedFailure\n    def test_known(self):\n        self.fail('known')\n"
        "unittest.main()\n"
    )
    story = player.play(player.command(python, program=program))
    assert [stop.exception["type"] for stop in story.stops] == ["KeyError", "AssertionError", "AssertionError"]
    assert story.end.exit_status == 1


@pytest.mark.network
@pytest.mark.parametrize(
    ("conftest", "options", "kind", "function"),
    [
        ("", ["--pdb"], "KeyError", "test_fails"),
        ("def pytest_collection_modifyitems(): {}['k']", [], "KeyError", "pytest_collection_modifyitems"),
        ("import no_such_module_at_all", [], "ModuleNotFoundError", "<module>"),
    ],
    ids=["pdb", "internal error", "conftest"],
)
def test_failures_outside_of_tests(player, python, with_packages, conftest, options, kind, function):
    (player.folder / "conftest.py").write_text(conftest)
    (player.folder / "test_it.py").write_text("def test_fails():\n    {}['k']\n")
    command = player.command(
        with_packages(python, ("pytest",)), "-m", "pytest", "-q", "-p", "no:cacheprovider", *options
    )
    native = player.natively(command)
    story = player.play(command)
    assert [stop.exception["type"] for stop in story.stops] == [kind]
    assert story.stops[0].user_frame["function"].rpartition(".")[2] == function
    assert story.end.exit_status == native.status
    assert without_times(story.out) == without_times(native.out)


@pytest.mark.network
def test_a_module_that_cannot_be_imported_is_told_as_it_is(player, python, with_packages):
    (player.folder / "test_it.py").write_text("import no_such_module_at_all\n")
    command = player.command(with_packages(python, ("pytest",)), "-m", "pytest", "-q", "-p", "no:cacheprovider")
    (stop,) = player.play(command).stops
    assert stop.headline == "ModuleNotFoundError: No module named 'no_such_module_at_all'"
    assert stop.user_frame["file"].endswith("test_it.py")


@pytest.mark.network
def test_coverage_counts_on_after_a_stop(player, python, with_packages):
    """It runs the program within itself, and prints what the program raises."""
    (player.folder / "test_it.py").write_text(
        "import threading\ndef work():\n    return 1\ndef test_fails():\n    {}['k']\n"
        "def test_goes_on():\n    worker = threading.Thread(target=work)\n    worker.start()\n    worker.join()\n"
    )
    environment = with_packages(python, ("pytest", "coverage"))
    command = player.command(environment, "-m", "coverage", "run", "-m", "pytest", "-q", "-p", "no:cacheprovider")
    native = player.natively(command)
    story = player.play(command)
    assert [stop.headline for stop in story.stops] == ["KeyError: 'k'"]
    assert (story.end.exit_status, story.err) == (native.status, native.err)
    measured = player.command(environment, "-m", "coverage", "report")
    assert "test_it.py" in player.natively(measured).out
    assert "100%" in player.natively(measured).out
    program = "def boom():\n    return {}['k']\nboom()\n"
    (player.folder / "prog.py").write_text(program)
    story = player.play(player.command(environment, "-m", "coverage", "run", "prog.py"))
    assert [stop.headline for stop in story.stops] == ["KeyError: 'k'"]


@pytest.mark.network
def test_the_captured_output_of_a_test_is_quoted(player, python, with_packages):
    shutil.copy(PROGRAMS / "test_sample.py", player.folder)
    command = player.command(
        with_packages(python, ("pytest",)), "-m", "pytest", "-q", "test_sample.py", "-k", "test_bug"
    )
    (stop,) = player.play(command).stops
    assert "said in the test" in stop.data["output"]["stdout"]


def without_times(text):
    import re

    return re.sub(r"in \d+\.\d+s", "in ...", text)
