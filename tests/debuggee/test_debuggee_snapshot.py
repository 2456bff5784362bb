"""The snapshot: what it says of exceptions, frames, threads and tasks, on every supported Python."""

import time

import pytest


def test_exception_failing_frame_and_callers(every_python, ask, value_of) -> None:
    program = '''
class Order:
    """An order."""

    def __init__(self, rows):
        self.rows = rows

    def total(self, rate, *extra, currency="EUR", **more):
        # the sum
        result = 0
        for row in self.rows:
            result += row["price"] * rate
        return result

    @classmethod
    def load(cls, rows):
        def inner(order):
            return order.total(2, 3, note="n")
        return inner(cls(rows))


Order.load([{"price": 5}, {"cost": 7}])
'''
    snapshot = ask(every_python, program, "snapshot", arguments=("--api-key", "tiny", "--name=x"))[0]
    assert snapshot["reason"] == "exception"
    assert snapshot["exception"]["type"] == "KeyError"
    assert snapshot["exception"]["message"] == "'price'"
    names = [frame["function"] for frame in snapshot["frames"]]
    assert names == ["Order.total", "Order.load.<locals>.inner", "Order.load", "<module>"]
    assert snapshot["exception"]["where"]["function"] == "Order.total"
    failing = snapshot["frames"][0]
    assert failing["line"] == 12
    assert failing["source"]["first_line"] == failing["first_line"] == 8
    assert failing["source"]["lines"][0] == '    def total(self, rate, *extra, currency="EUR", **more):'
    assert failing["source"]["lines"][-1] == "        return result"
    assert [pair["name"] for pair in failing["arguments"]] == ["self", "rate", "currency", "extra", "more"]
    assert value_of(failing, "row")["text"] == "{'cost': 7}"
    assert value_of(failing, "result") == {"type": "int", "text": "10"}
    assert value_of(failing, "self")["text"] == "<Order rows=[{'price': 5}, {'cost': 7}]>"
    assert value_of(failing, "more")["text"] == "{'note': 'n'}"
    assert snapshot["frames"][2]["locals"] == []
    assert snapshot["frames"][2]["source"] is None
    assert all(frame["user"] and frame["package"] is None and not frame["stdlib"] for frame in snapshot["frames"])
    assert snapshot["process"]["argv"][-3:] == ["--api-key", "<masked>", "--name=x"]
    assert snapshot["thread"]["name"] == "MainThread"
    assert snapshot["thread"]["main"] is True
    assert snapshot["python"]["version"].startswith("3.")


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("class A:\n    @property\n    def x(self):\n        return 1/0\nA().x", "A.x"),
        ("class A:\n    class B:\n        @staticmethod\n        def f():\n            1/0\nA.B.f()", "A.B.f"),
        ("import functools\ndef deco(f):\n    @functools.wraps(f)\n    def g(*a):\n        return f(*a)\n    return g\n"
         "class A:\n    @deco\n    def f(self):\n        1/0\nA().f()", "A.f"),
        ("class P:\n    def f(self):\n        1/0\nclass C(P):\n    def f(self):\n        super().f()\nC().f()", "P.f"),
        ("def f():\n    x = (lambda y:\n         1/0)\n    x(1)\nf()", "f.<locals>.<lambda>"),
        ("def f():\n    def g():\n        '''doc\nat the margin\n'''\n        1/0\n    g()\nf()", "f.<locals>.g"),
        ("async def f():\n    1/0\nf().send(None)", "f"),
        ("def f():\n    return list(1/i for i in [0])\nf()", "f.<locals>.<genexpr>"),
        ("class A:\n    x = 1/0", "A"),
    ],
)  # fmt: skip
def test_qualified_names(every_python, ask, code, name) -> None:
    snapshot = ask(every_python, code, "snapshot")[0]
    assert snapshot["frames"][0]["function"] == name


def test_chain_notes_and_attributes(every_python, ask) -> None:
    program = """
class Failed(Exception):
    def __init__(self, code):
        super().__init__("failed with", code)
        self.code = code
        self.auth_token = "abc123"

def low():
    open("/does/not/exist")

def middle():
    try:
        low()
    except OSError:
        {}["key"]

try:
    middle()
except KeyError as error:
    last = Failed(7)
    last.__notes__ = ["first note", "second"]
    raise last from error
"""
    found = ask(every_python, program, "snapshot")[0]["exception"]
    assert found["type"] == "Failed"
    assert found["message"] == "('failed with', 7)"
    assert found["notes"] == ["first note", "second"]
    values = {pair["name"]: pair["value"] for pair in found["attributes"]}
    assert values["code"]["text"] == "7"
    assert values["auth_token"] == {"type": "str", "text": "<masked>", "masked": True}
    assert found["cause"]["type"] == "KeyError"
    assert found["context"] is None
    inner = found["cause"]["context"]
    assert inner["type"] == "FileNotFoundError"
    assert inner["message"] == "[Errno 2] No such file or directory: '/does/not/exist'"
    assert {pair["name"]: pair["value"]["text"] for pair in inner["attributes"]} == {
        "errno": "2", "filename": "'/does/not/exist'"}  # fmt: skip
    assert inner["where"]["function"] == "low"


@pytest.mark.parametrize(
    "expression",
    [
        "KeyError('a')", "KeyError()", "KeyError('a', 1)", "ValueError('text')", "ValueError()", "ValueError(1, 'b')",
        "ValueError(3.5)", "OSError(2, 'gone', 'file.txt')", "OSError('only')", "OSError(2, 'gone', 'a', None, 'b')",
        "ImportError('no', name='x')", "SyntaxError('bad', ('/a/f.py', 3, 2, 'x y'))", "StopIteration(5)",
        "UnicodeDecodeError('utf-8', b'ab\\xff', 2, 3, 'invalid')", "UnicodeEncodeError('ascii', 'h\\xe9', 1, 2, 'no')",
        "json.JSONDecodeError('Expecting value', '{', 1)", "subprocess.CalledProcessError(2, ['a', 'b'])",
        "configparser.NoSectionError('db')", "AssertionError('a' * 50)",
        "urllib.error.HTTPError('u', 404, 'no', {}, None)",
        "decimal.InvalidOperation([decimal.ConversionSyntax])", "AssertionError({'a': [1, 2]})", "Empty()",
    ],
)  # fmt: skip
def test_messages_are_those_of_str(python, ask, expression) -> None:
    program = f"""
import configparser, decimal, json, subprocess, urllib.error
from queue import Empty
error = {expression}
def after():
    return str(error)
raise error
"""
    outcome = ask(python, program, "snapshot")
    assert outcome[0]["exception"]["message"] == outcome.after


def test_exception_group(every_python, ask) -> None:
    program = """
import sys
if sys.version_info < (3, 11):
    class BaseExceptionGroup(BaseException):
        "as the package exceptiongroup keeps it"
        def __init__(self, message, members):
            super().__init__(message, members)
            self._message, self._exceptions = message, tuple(members)
    class ExceptionGroup(BaseExceptionGroup, Exception):
        pass

def fail(n):
    raise ValueError(n)

members = []
for n in range(2):
    try:
        fail(n)
    except ValueError as error:
        members.append(error)
raise ExceptionGroup("two", members + [ExceptionGroup("inner", [KeyError("k")])])
"""
    found = ask(every_python, program, "snapshot")[0]["exception"]
    assert found["type"] == "ExceptionGroup"
    assert found["message"] == "two (3 sub-exceptions)"
    assert [member["message"] for member in found["group"]] == ["0", "1", "inner (1 sub-exception)"]
    assert found["group"][0]["where"]["function"] == "fail"
    assert found["group"][2]["group"][0]["message"] == "'k'"


def test_syntax_error_of_an_imported_file(every_python, ask, tmp_path) -> None:
    (tmp_path / "broken.py").write_text("x = 1\ny = (2,\n", encoding="utf-8")
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nimport broken\n"
    snapshot = ask(every_python, program, "snapshot")[0]
    assert snapshot["exception"]["type"] == "SyntaxError"
    assert snapshot["exception"]["syntax"]["file"] == str(tmp_path / "broken.py")
    assert snapshot["exception"]["syntax"]["line"] == 2 or every_python.name
    assert snapshot["frames"][-1]["function"] == "<module>"


def test_recursion_is_folded(every_python, ask) -> None:
    program = """
import sys
sys.setrecursionlimit(1000)
def even(n):
    return odd(n + 1)
def odd(n):
    return even(n + 1)
even(0)
"""
    snapshot = ask(every_python, program, "snapshot")[0]
    assert snapshot["exception"]["type"] == "RecursionError"
    assert snapshot["frames_total"] > 900
    assert len(snapshot["frames"]) < 40
    (fold,) = snapshot["folds"]
    assert fold["period"] == 2
    assert fold["last"] - fold["first"] + 1 == fold["period"] * fold["count"]
    numbers = [frame["number"] for frame in snapshot["frames"]]
    assert numbers[:20] == list(range(20))
    missing = sorted(set(range(snapshot["frames_total"])) - set(numbers))
    assert missing == list(range(fold["first"], fold["last"] + 1))
    assert snapshot["frames"][-1]["function"] == "<module>"


def test_a_long_stack_without_repetition_is_cut(python, ask) -> None:
    program = "\n".join(f"def f{i}(): f{i + 1}()" for i in range(150)) + "\ndef f150(): 1/0\nf0()"
    snapshot = ask(python, program, "snapshot")[0]
    assert snapshot["frames_total"] == 152
    assert len(snapshot["frames"]) == 60
    assert snapshot["frames"][0]["function"] == "f150"
    assert snapshot["frames"][-1]["function"] == "<module>"
    assert any("92 of the 152 frames" in note for note in snapshot["notes"])


def test_the_recursion_limit_does_not_stop_us(every_python, ask) -> None:
    # live frames: the question is asked on top of a stack that is at its limit (a stop at the raise)
    program = """
import json, sys
answers = []
def down(n):
    try:
        down(n + 1)
    except RecursionError as error:
        if not answers:
            api = sys.modules["_dap_agent_debuggee.api"]
            answers.append(json.loads(api.call("threads")))
        raise
sys.modules["_dap_agent_debuggee"].load("inspection")
sys.modules["_dap_agent_debuggee"].load("evaluation")
def after():
    return [answers[0]["ok"], sys.getrecursionlimit() >= 1000]
down(0)
"""
    outcome = ask(every_python, program, "snapshot")
    assert outcome.after == [True, True]


def test_huge_values_are_fast_and_small(every_python, ask, value_of) -> None:
    program = """
import collections, decimal
def f(items, mapping, text, data, number, ring, deep, wide, tuple_, ranged, digits, set_, keys):
    loop = [1]
    loop.append(loop)
    raise ValueError(text)

deep = []
for _ in range(100000):
    deep = [deep]
f(list(range(10000000)), dict.fromkeys(range(1000000)), "x" * 50000000, b"y" * 50000000, 7 ** 200000,
  collections.deque(range(100000)), deep, [["a" * 1000] * 1000] * 1000, tuple(range(100000)), range(10 ** 20),
  decimal.Decimal("1" * 100000), set(range(100000)), {"k" * 100000: 1})
"""
    started = time.perf_counter()
    outcome = ask(every_python, program, "snapshot", "snapshot")
    assert time.perf_counter() - started < 60
    snapshot = outcome[1]
    assert snapshot["elapsed_ms"] < 1000
    assert len(str(snapshot)) < 60000
    frame = snapshot["frames"][0]
    assert value_of(frame, "items")["length"] == 10000000
    assert value_of(frame, "mapping")["length"] == 1000000
    assert value_of(frame, "text")["length"] == 50000000
    assert value_of(frame, "number")["text"].startswith("<int of 561471 bits")
    assert value_of(frame, "loop")["text"] == "[1, [...]]"
    assert len(snapshot["exception"]["message"]) < 5000


def test_a_hundred_big_locals_stay_below_the_limit_of_size(python, ask) -> None:
    names = ", ".join(f"v{i}" for i in range(100))
    program = (
        f"def f():\n    {names} = [[{{'k' * 50: ['x' * 500] * 100}}] * 100] * 100\n    1/0\n"
        + "\n".join(
            f"def g{i}(a, b={{'k': ['y' * 300] * 50}}, *c): {'f()' if i == 0 else f'g{i - 1}(a, b, *c)'}"
            for i in range(50)
        )
        + "\ng49(['z' * 300] * 50, {'k': ['y' * 300] * 50}, *range(50))"
    )
    snapshot = ask(python, program, "snapshot")[0]
    import json

    assert len(json.dumps(snapshot)) < 200000


def test_threads_and_their_names(every_python, ask) -> None:
    program = """
import threading
ready, done = threading.Event(), threading.Event()
def wait_here():
    ready.set()
    done.wait()
threading.Thread(target=wait_here, name="waiter", daemon=True).start()
ready.wait()
caught = []
def fail():
    try:
        1/0
    except ZeroDivisionError as error:
        caught.append(Stop.from_exception(error))
thread = threading.Thread(target=fail, name="failer")
thread.start()
thread.join()
def make_stop(exc):
    return caught[0]
"""
    snapshot = ask(every_python, program, "snapshot")[0]
    assert snapshot["thread"]["name"] == "failer"
    assert snapshot["thread"]["main"] is False
    stacks = {thread["name"]: thread["stack"] for thread in snapshot["threads"]}
    assert "wait_here" in [entry["function"] for entry in stacks["waiter"]]
    assert "MainThread" in stacks


def test_asyncio_task(every_python, ask) -> None:
    program = """
import asyncio
caught = []
async def boom(n):
    await asyncio.sleep(0)
    try:
        return 1 / n
    except ZeroDivisionError as error:
        caught.append(Stop.from_exception(error))
        raise
async def main():
    task = asyncio.get_running_loop().create_task(boom(0))
    task_name = getattr(task, "set_name", None)
    if task_name:
        task.set_name("worker 3")
    await task
try:
    asyncio.run(main())
except ZeroDivisionError:
    pass
def make_stop(exc):
    return caught[0]
"""
    snapshot = ask(every_python, program, "snapshot")[0]
    assert snapshot["task"] == {"name": "worker 3", "coroutine": "boom"}
    assert snapshot["frames"][0]["function"] == "boom"


def test_nothing_of_asyncio_is_imported(python, ask) -> None:
    outcome = ask(
        python,
        "import sys\ndef after():\n    return [name for name in ('asyncio', 'numpy') if name in sys.modules]\n1/0",
        "snapshot",
        ("variable", {"number": 0, "path": "sys"}),
    )
    assert outcome.after == []


def test_pause_with_live_frames(every_python, ask, value_of) -> None:
    program = """
import sys
def inner(x):
    return Stop.from_frame(sys._getframe())
def outer():
    y = 5
    return inner(1)
stop = outer()
def make_stop(exc):
    return stop
"""
    snapshot = ask(every_python, program, "snapshot")[0]
    assert snapshot["reason"] == "pause"
    assert snapshot["exception"] is None
    assert [frame["function"] for frame in snapshot["frames"]][:3] == ["inner", "outer", "<module>"]
    assert value_of(snapshot["frames"][0], "x")["text"] == "1"


def test_live_frames_complete_a_traceback(every_python, ask) -> None:
    program = """
import sys
stops = []
def low():
    1/0
def catches():
    try:
        low()
    except ZeroDivisionError as error:
        stops.append(Stop.from_exception(error, live_frame=sys._getframe()))
def outer():
    catches()
outer()
def make_stop(exc):
    return stops[0]
"""
    snapshot = ask(every_python, program, "snapshot")[0]
    assert [frame["function"] for frame in snapshot["frames"]][:4] == ["low", "catches", "outer", "<module>"]


def test_source_in_another_coding_a_missing_file_and_generated_code(every_python, ask, tmp_path) -> None:
    (tmp_path / "latin.py").write_bytes(
        "# -*- coding: latin-1 -*-\r\ndef f():\r\n    name = 'Müller'\r\n    1/0\r\n".encode("latin-1")
    )
    (tmp_path / "gone.py").write_text("def f():\n    1/0\n", encoding="utf-8")
    program = f"""
import os, sys
sys.path.insert(0, {str(tmp_path)!r})
import latin, gone
os.remove(gone.__file__)
names = {{}}
exec("def generated():\\n    1/0", names)
stops = []
for function in (latin.f, gone.f, names["generated"]):
    try:
        function()
    except ZeroDivisionError as error:
        stops.append(Stop.from_exception(error))
api = sys.modules["_dap_agent_debuggee.api"]
def after():
    return [api.snapshot_of(stop)["frames"][0] for stop in stops]
def make_stop(exc):
    return stops[0]
"""
    latin, gone, generated = ask(every_python, program, "snapshot").after
    assert latin["source"]["lines"] == ["def f():", "    name = 'Müller'", "    1/0"]
    assert gone["source"] is None
    assert generated["source"] is None
    assert generated["file"] == "<string>"
    assert generated["user"] is True


def test_source_of_a_changed_file_is_noted(python, ask, tmp_path) -> None:
    (tmp_path / "edited.py").write_text("def f():\n    1/0\n", encoding="utf-8")
    program = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import edited
with open(edited.__file__, "w") as file:
    file.write("# one\\n" * 40)
edited.f()
"""
    snapshot = ask(python, program, "snapshot")[0]
    assert any("on disk" in note for note in snapshot["notes"])


def test_output_tail_is_masked_and_bounded(python, ask) -> None:
    program = """
def make_stop(exc):
    stop = Stop.from_exception(exc)
    stop.output = {"stdout": ["line %d " % i + "x" * 400 for i in range(100)], "stderr": ["password=hunter2", "ok"]}
    return stop
1/0
"""
    snapshot = ask(python, program, "snapshot")[0]
    assert snapshot["output"]["stderr"] == ["password=<masked>", "ok"]
    assert snapshot["output"]["stdout"][-1].startswith("line 99")
    assert sum(map(len, snapshot["output"]["stdout"])) < 13000


def test_a_dict_that_another_thread_changes(every_python, ask) -> None:
    program = """
import threading
shared = {i: i for i in range(1000)}
stop_it = []
def churn():
    i = 0
    while not stop_it:
        i += 1
        shared[i % 3000] = i
        shared.pop((i * 7) % 3000, None)
threading.Thread(target=churn, daemon=True).start()
def f(shared):
    raise ValueError
def after():
    stop_it.append(1)
f(shared)
"""
    outcome = ask(every_python, program, *(["snapshot", ("variable", {"number": 0, "path": "shared[5000]"})] * 10))
    for answer in outcome.answers[1::2]:
        assert answer["error"]["type"] == "NotThere"


def test_the_users_frame_below_a_library_is_told_in_full(python, ask, value_of) -> None:
    program = "import json\ndef load(text):\n    wanted = 3\n    return json.loads(text)\nload('{')"
    snapshot = ask(python, program, "snapshot")[0]
    assert snapshot["frames"][0]["stdlib"] is True
    assert snapshot["frames"][0]["user"] is False
    user = next(frame for frame in snapshot["frames"] if frame["user"])
    assert value_of(user, "wanted")["text"] == "3"
    assert user["source"]["lines"][0] == "def load(text):"


def test_module_locals_show_data_first(python, ask) -> None:
    snapshot = ask(python, "import os, sys\ndef f(): pass\nclass C: pass\nlimit = 5\n1/0", "snapshot")[0]
    assert [pair["name"] for pair in snapshot["frames"][0]["locals"]][:1] == ["limit"]
    assert "__builtins__" not in [pair["name"] for pair in snapshot["frames"][0]["locals"]]


def test_a_replaced_import_and_open_are_not_met(every_python, ask) -> None:
    program = """
import builtins, io, sys
ran = []
def trap(*args, **kwargs):
    ran.append(args[:1])
    raise RuntimeError("not yours")
def after():
    builtins.__import__, builtins.open = saved
    return [str(args) for args in ran]
saved = builtins.__import__, builtins.open
def f():
    builtins.__import__ = builtins.open = trap
    1/0
f()
"""
    outcome = ask(every_python, program, "snapshot")
    assert outcome[0]["frames"][0]["source"] is not None
    assert outcome.after == []


def test_comprehension_shows_its_function(python, ask, value_of) -> None:
    snapshot = ask(python, "def f(rows):\n    k = 2\n    return [r / 0 for r in rows]\nf([1])", "snapshot")[0]
    frame = next(frame for frame in snapshot["frames"] if frame["function"] == "f")
    assert value_of(frame, "k")["text"] == "2"
    assert frame["source"]["lines"][0] == "def f(rows):"
