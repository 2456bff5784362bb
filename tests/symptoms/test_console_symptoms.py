"""The debug console and what is said of itself: questions that used to freeze or fail, and clients that show little."""

import pytest

from ..proxy.editor_double import NVIM
from .debugging import BOTH, WILL, console, stops

OURS = BOTH["ours"]

PROGRAM = """\
import queue

answers = queue.Queue()


async def later():
    return 7


def work():
    limit = 3
    numbers = [1, 2, 3, 4, 5]
    raise ValueError(limit)


work()
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_19_debugpy_157_a_question_that_waits_for_other_threads_ends_and_the_session_goes_on(program):
    async def look(client, stop):
        waits = await console(client, "/try answers.get()", stop)
        threads = await client.ask("threads", timeout=2)
        return waits, threads["success"], await console(client, "1 + 1", stop, timeout=2)

    (stop,) = stops(OURS, program, look=look)
    waits, threads, plain = stop.seen
    assert "interrupted after 5" in waits and threads and plain == "2"


def test_21_debugpy_951_await_in_the_console_is_told_what_it_is(program):
    """A plain line is debugpy's, which runs it in a loop of its own; /try runs in the program, whose loop stands."""

    async def look(client, stop):
        return await console(client, "await later()", stop), await console(client, "/try await later()", stop)

    (stop,) = stops(OURS, program, look=look)
    plain, tried = stop.seen
    assert plain == "7"
    assert tried.startswith("ERROR") and "await is not possible here, the event loop is stopped" in tried


NESTED = {
    "[n for n in numbers if n < limit]": "[1, 2]",
    "(lambda: [n for n in numbers if n < limit])()": "[1, 2]",
    "sorted(numbers, key=lambda n: -n * limit)": "[5, 4, 3, 2, 1]",
    "sum(n for n in numbers if any(m == n for m in numbers if m < limit))": "3",
    "def inner():\n    return [n * limit for n in numbers]\ninner()": "[3, 6, 9, 12, 15]",
}


def test_22_debugpy_1236_comprehensions_and_lambdas_see_the_locals(program, every_python):
    async def look(client, stop):
        return [await console(client, f"/try {code}", stop) for code in NESTED]

    (stop,) = stops(OURS, program, python=every_python, look=look)
    for result, answer in zip(NESTED.values(), stop.seen, strict=True):
        assert result in answer, answer


def test_35_nvim_dap_ui_263_the_exception_is_told_in_the_console_of_any_client(program):
    """A client that asks for nothing sees what to type, and gets the report as text."""

    async def look(client, stop):
        return await console(client, "/why")

    found = stops(OURS, program, initialize=NVIM, look=look)
    assert "/why explains this exception" in found.printed("console")
    assert "ValueError: 3" in found[0].seen and "raise ValueError(limit)" in found[0].seen


def test_35_nvim_dap_736_filters_can_be_set_in_the_configuration(program):
    (stop,) = stops(OURS, program, initialize=NVIM, filters=[], dapAgent={"unhandled": True})
    assert (stop.functions, stop.alive) == (["work", "<module>"], True)
    found = stops(OURS, program, initialize=NVIM, filters=[], dapAgent={"unhandled": True, "ignore": ["ValueError"]})
    assert found == []


def test_37_chatdbg_53_a_syntax_error_of_the_program_is_told_although_nothing_of_it_has_run(tmp_path, every_python):
    program = tmp_path / "program.py"
    program.write_text("def f(:\n    pass\n")

    async def why(client):
        return await console(client, "/why")

    assert stops(BOTH["direct"], program, python=every_python) == []
    found = stops(OURS, program, python=every_python, after=why)
    assert found == [], "debugpy does not stop there either"
    assert "SyntaxError: invalid syntax" in found.after and "program.py:1" in found.after


@pytest.mark.parametrize("filters", [["uncaught"], WILL, ["raised", "uncaught", "userUnhandled"]], ids=str)
def test_37_debugpy_2069_one_exception_is_one_stop_on_every_version(tmp_path, all_interpreters, filters):
    """Python 3.10 has no columns (ChatDBG#1)."""
    program = tmp_path / "program.py"
    program.write_text("def work(n):\n    return {}[n]\n\n\ndef main():\n    work(5)\n\n\nmain()\n")

    async def look(client, stop):
        return await console(client, "/why")

    for version, python in all_interpreters.items():
        found = stops(OURS, program, python=python, filters=filters, look=look)
        assert [(stop.exception, stop.functions[0], stop.lines[0]) for stop in found] == [("KeyError", "work", 2)], (
            version
        )
        assert "return {}[n]" in found[0].seen
