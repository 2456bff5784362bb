"""Evaluate in a frame: values, output, errors, time limit."""

import subprocess

import pytest

from dap_agent.session.payload import PACKAGE, bundle

PROGRAM = """
import sys, threading
base = 10
class Item:
    def __repr__(self):
        raise SystemExit("repr ran")
def work(items, rate):
    doubled = [i * 2 for i in items]
    thing = Item()
    def inner():
        return rate
    raise ValueError("x")
work([1, 2, 3], 5)
"""


def evaluate(ask, python, code, **more):
    return ask(python, PROGRAM, ("evaluate", {"number": 0, "code": code, **more}))[0]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("rate + base", "15"),
        ("[i * rate for i in items]", "[5, 10, 15]"),
        ("sorted(items, key=lambda i: -i * rate)", "[3, 2, 1]"),
        ("total = 0\nfor i in items:\n    total += i\ntotal", "6"),
        ("def f(n):\n    return n if n < 2 else f(n - 1) + f(n - 2)\nf(10)", "55"),
        ("    x = 1\n    x + 1", "2"),
        ("sorted(frame_locals)", "['doubled', 'inner', 'items', 'rate', 'thing']"),
        ("frame_source().splitlines()[0]", "'def work(items, rate):'"),
        ("inner()", "5"),
        ("thing", "<Item object>"),
        ("class A:\n    y = [rate for _ in items]\nA.y", "[5, 5, 5]"),
    ],
)
def test_values(python, ask, code, text) -> None:
    found = evaluate(ask, python, code)
    assert found["error"] is None
    assert found["value"]["text"] == text


def test_statements_have_no_value_and_change_no_names(python, ask) -> None:
    outcome = ask(
        python,
        PROGRAM,
        ("evaluate", {"number": 0, "code": "items.append(4); rate = 99; base = 1"}),
        ("evaluate", {"number": 0, "code": "(rate, base, items)"}),
        ("snapshot", {}),
    )
    assert outcome[0]["value"] is None
    assert outcome[0]["error"] is None
    assert outcome[1]["value"]["text"] == "(5, 10, [1, 2, 3, 4])"
    assert {pair["name"] for pair in outcome[2]["frames"][0]["locals"]} == {
        "items",
        "rate",
        "doubled",
        "thing",
        "inner",
    }


def test_output_is_captured_bounded_and_masked(every_python, ask) -> None:
    found = evaluate(
        ask, every_python, "print('password=hunter2')\nprint('e', file=sys.stderr)\nfor i in range(9000): print(i)"
    )
    assert found["stdout"].startswith("password=<masked>\n0\n1\n")
    assert found["stdout"].endswith("8998\n8999\n")
    assert "characters left out" in found["stdout"]
    assert len(found["stdout"]) < 9000
    assert found["stderr"] == "e\n"


def test_other_threads_write_where_they_did(python, ask) -> None:
    code = (
        "import io\nseen = []\nt = threading.Thread(target=lambda: print('from the thread', file=sys.stdout))\n"
        "t.start(); t.join()\nprint('mine')"
    )
    found = evaluate(ask, python, code)
    assert found["stdout"] == "mine\n"


def test_errors_show_the_evaluated_code_only(every_python, ask) -> None:
    found = evaluate(ask, every_python, "def f():\n    return items['x']\nf()")
    assert found["error"]["type"] == "TypeError"
    assert found["error"]["traceback"].splitlines()[:5] == [
        "Traceback (most recent call last):",
        '  File "<evaluate>", line 3, in <module>',
        "    f()",
        '  File "<evaluate>", line 2, in f',
        "    return items['x']",
    ]
    assert evaluate(ask, every_python, "raise SystemExit(3)")["error"]["type"] == "SystemExit"


def test_bad_code_is_told(python, ask) -> None:
    outcome = ask(
        python, PROGRAM, ("evaluate", {"number": 0, "code": "x = = 1"}), ("evaluate", {"number": 0, "code": "await x"})
    )
    assert "not valid Python" in outcome.error(0)["message"]
    assert "await" in outcome.error(1)["message"]


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "while True:\n    try:\n        while True: pass\n    except Exception: pass",
        "sum(1 for _ in iter(int, 1))",
        "def f(n):\n    while True:\n        if n: f(n - 1)\nf(100)",
    ],
)
def test_the_time_limit_interrupts(every_python, ask, code) -> None:
    outcome = ask(
        every_python,
        PROGRAM,
        ("evaluate", {"number": 0, "code": code, "timeout": 0.3}),
        ("evaluate", {"number": 0, "code": "rate"}),
    )
    assert outcome[0]["timed_out"] is True
    assert outcome[0]["error"]["type"] == "TimeoutError"
    assert outcome[0]["seconds"] < 5
    assert outcome[1]["value"]["text"] == "5"


def test_code_that_swallows_one_interruption_meets_the_next(python, ask) -> None:
    code = "n = 0\nwhile n < 3:\n    try:\n        while True: pass\n    except BaseException:\n        n += 1\nn"
    found = evaluate(ask, python, code, timeout=0.2)
    assert found["timed_out"] is True


def test_a_call_into_c_is_interrupted_when_it_returns(python, ask) -> None:
    code = "import itertools\nsum(itertools.repeat(1, 200_000_000))\nwhile True: pass"
    found = evaluate(ask, python, code, timeout=0.05)
    assert found["timed_out"] is True
    assert found["seconds"] > 0.55
    assert any("could not be kept" in note for note in found["notes"])


@pytest.mark.parametrize(
    "code",
    [
        "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()",
        "import queue\nqueue.Queue().get()",
        "import time\ntime.sleep(600)",
        "import socket\npair = socket.socketpair()\npair[0].recv(1)",
        "import threading\ntry:\n    threading.Event().wait()\nfinally:\n    print('cleaned')",
    ],
    ids=["lock", "queue", "sleep", "socket", "event"],
)
def test_a_wait_in_the_main_thread_is_interrupted(every_python, ask, code) -> None:
    outcome = ask(
        every_python,
        PROGRAM,
        ("evaluate", {"number": 0, "code": code, "timeout": 0.1}),
        ("evaluate", {"number": 0, "code": "print('out')"}),
        ("evaluate", {"number": 0, "code": "rate"}),
    )
    assert outcome[0]["timed_out"] is True and outcome[0]["error"]["type"] == "TimeoutError"
    assert outcome[0]["seconds"] < 30
    assert ("cleaned" in code) == (outcome[0]["stdout"] == "cleaned\n")
    assert outcome[1]["stdout"] == "out\n" and outcome[2]["value"]["text"] == "5"


def test_the_signal_that_wakes_is_put_back(python, ask) -> None:
    outcome = ask(
        python,
        "import signal\nrung = []\nsignal.signal(signal.SIGURG, lambda *_: rung.append(1))\n1/0",
        ("evaluate", {"number": 0, "code": "import time\ntime.sleep(600)", "timeout": 0.1}),
        ("evaluate", {"number": 0, "code": "signal.getsignal(signal.SIGURG).__name__"}),
        ("evaluate", {"number": 0, "code": "len(rung)"}),
    )
    assert outcome[0]["timed_out"] is True
    assert outcome[2]["value"]["text"] == "0"


def test_many_short_limits_leave_nothing_behind(every_python, ask) -> None:
    questions = [("evaluate", {"number": 0, "code": "for i in range(200000): pass", "timeout": 0.05})] * 40
    outcome = ask(every_python, PROGRAM, *questions, ("evaluate", {"number": 0, "code": "sum(items)"}))
    assert outcome[40]["value"]["text"] == "6"
    assert all(answer["ok"] for answer in outcome.answers)


def test_future_flags_and_other_frames(python, ask) -> None:
    program = "from __future__ import annotations\nx = 3\ndef f(y):\n    1/0\nf(4)"
    outcome = ask(
        python,
        program,
        ("evaluate", {"number": 0, "code": "def g(a: nowhere): ...\n(y, x)"}),
        ("evaluate", {"number": 1, "code": "x"}),
    )
    assert outcome[0]["value"]["text"] == "(4, 3)"
    assert outcome[1]["value"]["text"] == "3"


def test_a_traced_program_goes_on_after_it(every_python, tmp_path) -> None:
    """3.11 looped for ever in the next traced call, once an interruption had been taken back."""
    program = tmp_path / "traced.py"
    program.write_text(
        f"exec({bundle()!r}, {{}})\n"
        "import json, sys\n"
        f"api = sys.modules['{PACKAGE}.api']\n"
        f"Stop = sys.modules['{PACKAGE}'].load('stop').Stop\n"
        "def later():\n    return 5\n"
        "def trace(frame, event, arg):\n    return trace\n"
        "for code, timeout in (('1 + 1', 5.0), ('while True: pass', 0.05)):\n"
        "    api.set_stop(Stop.from_frame(sys._getframe()))\n"
        "    json.loads(api.call('evaluate', json.dumps({'number': 0, 'code': code, 'timeout': timeout})))['result']\n"
        "    sys.settrace(trace)\n"
        "    print(later())\n"
        "    sys.settrace(None)\n"
    )
    done = subprocess.run([every_python, program], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (0, "5\n5\n"), done.stderr
