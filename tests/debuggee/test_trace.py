"""Traces in jailed copies: every shape of code, first changes, conditions, limits, hostile values."""

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dap_agent.session.trace import trace_text

Trace = Callable[..., dict[str, Any]]


@pytest.fixture
def trace(ask: Any) -> Trace:
    """trace(python, program, ...): what came of it, and `text`; `after` if the program has a function of that name."""

    def run(python: Path, program: str, **asked: Any) -> dict[str, Any]:
        outcome = ask(python, textwrap.dedent(program), ("trace", asked))
        found: dict[str, Any] = outcome[0]
        return {**found, "text": trace_text(found), "after": outcome.after}

    return run


def ran(found: dict[str, Any], function: "str | None" = None) -> list[str]:
    """The source of the lines that were told, in order."""
    names = [each["name"] for each in found["functions"]]
    return [
        step["text"]
        for step in found["steps"]
        if step["kind"] == "line" and function in (None, names[step["function"]].rpartition(".")[2])
    ]


def kinds(found: dict[str, Any]) -> list[str]:
    return [step["kind"] for step in found["steps"] if step["kind"] != "line"]


def changes(found: dict[str, Any]) -> list[str]:
    return [
        f"{one['name']}={one['value'] and one['value']['text']}"
        for step in found["steps"]
        for one in step.get("changes", ())
    ]


# program; what is asked; what the text has to hold, in this order
SHAPES: "dict[str, tuple[str, dict[str, Any], list[str]]]" = {
    "function": (
        """
        def total(lines):
            found = 0
            for line in lines:
                found += line
            if found > 2:
                found = None
            return found + 1
        total([1, 2])
        """,
        {"first_change": "found"},
        ["total([1, 2]) raised TypeError", "first_change(found): set 0 at", "first changed from 0 to 1",
         "from 3 to None",
         "in total: found = None", "> total(lines=[1, 2])", "for line in lines:  -> next  # line = 1",
         "for line in lines:  -> ends", "if found > 2:  -> true", "found = None  # found = None", "raised TypeError",
         "total was left by the exception"],
    ),
    "method and property": (
        """
        class Cart:
            def __init__(self, lines):
                self.lines = lines
            @property
            def size(self):
                return len(self.lines) or None
            def total(self):
                self.rate = 2
                return self.rate * self.size
        Cart([]).total()
        """,
        {"variables": ["self.rate"], "first_change": "self.rate"},
        ["Cart.total() raised TypeError", "first_change(self.rate): given 2 at", "> Cart.total(self.rate=2)",
         "self.rate = 2", "> Cart.size(", "< Cart.size returned None"],
    ),
    "closure": (
        """
        def counter(step):
            count = 0
            def add(n):
                nonlocal count
                count += n * step
                return 1 / (count - 6)
            return add
        add = counter(2)
        add(1); add(1); add(1)
        """,
        {"variables": ["count", "n"]},
        ["add(1) returned 0.5", "> counter.<locals>.add(count=6, n=1)", "count += n * step  # count = 8"],
    ),
    "generator": (
        """
        def numbers(n):
            for i in range(n):
                yield 10 / (2 - i)
        def work():
            return list(numbers(3))
        work()
        """,
        {"number": 1},
        ["> numbers(n=3)", "< numbers yielded 5.0", "> numbers goes on", "< numbers yielded 10.0", "! line",
         "ZeroDivisionError", "numbers was left"],
    ),
    "coroutines": (
        """
        import asyncio
        async def fetch(n):
            await asyncio.sleep(0)
            return n - 1
        async def main(n):
            value = await fetch(n)
            return 1 / value
        asyncio.run(main(1))
        """,
        {"number": 0},
        ["main(1) raised ZeroDivisionError", "> main(n=1)", "> fetch(n=1)", "< fetch waits", "< main waits",
         "> main goes on, 7: value = await fetch(n)  # value = 0",
         "> fetch goes on", "return n - 1", "< fetch returned 0", "return 1 / value"],
    ),
    "recursion": (
        """
        def down(n):
            if n == 0:
                return {}["x"]
            return down(n - 1)
        down(30)
        """,
        {"number": 30, "when": "n < 2"},
        ["down(30) raised KeyError", "when: it held first at the call", "n = 1", "> down(n=1)", "> down(n=0)",
         "return {}"],
    ),
    "comprehension": (
        """
        def half(n):
            return n / (n - 2)
        def work(items):
            return {n: half(n) for n in items}
        work([0, 1, 2])
        """,
        {"number": 1},
        ["> half(n=0)", "< half returned -0.0", "> half(n=1)", "< half returned -1.0", "> half(n=2)",
         "ZeroDivisionError"],
    ),
    "handled exception and finally": (
        """
        def read(text):
            try:
                value = int(text)
            except ValueError:
                value = None
            finally:
                done = True
            return value
        def work():
            return read("x") + 1
        work()
        """,
        {"first_change": "value"},
        ["work() raised TypeError", "first_change(value): set None", "value = int(text)", "! line",
         "ValueError: invalid literal",
         "except ValueError:", "value = None  # value = None", "done = True", "< read returned None"],
    ),
    "class method, static method, *args": (
        """
        class A:
            rate = 2
            @classmethod
            def make(cls, *args, **more):
                return cls.twice(sum(args)) / more["by"]
            @staticmethod
            def twice(n):
                return 2 * n
        A.make(1, 2, by=0)
        """,
        {},
        ["raised ZeroDivisionError", "args=(1, 2)", "more={'by': 0}", "> A.twice(n=3)", "< A.twice returned 6"],
    ),
    "module": (
        """
        rows = ["1", "x"]
        found = []
        for row in rows:
            found.append(int(row))
        print(found)
        """,
        {},
        ["the module from line", "raised ValueError", "for row in rows:", "found.append(int(row))", "ValueError"],
    ),
    "an expression in a frame": (
        """
        def price(n):
            return None if n == 2 else n
        def work(items):
            return sum(map(price, items))
        work([1, 2])
        """,
        {"code": "[price(n) for n in items]", "number": 0},
        ["returned [1, None]", "> price(n=1)", "< price returned 1", "> price(n=2)", "< price returned None"],
    ),
    "in place": (
        """
        def drop(rows, bad):
            for row in list(rows):
                if row == bad:
                    rows.remove(row)
            return rows[2]
        drop([1, 2, 3], 2)
        """,
        {"code": "drop([1, 2, 3], 2)", "first_change": "rows"},
        ["first_change(rows): given [1, 2, 3]", "first changed from [1, 2, 3] to [1, 3]", "rows.remove(row)",
         "IndexError"],
    ),
}  # fmt: skip


@pytest.fixture(params=["3.8", "3.11", "3.12", "3.13"])
def some_python(request: pytest.FixtureRequest, all_interpreters: "dict[str, str]") -> Path:
    """The versions between which tracing differs."""
    return Path(all_interpreters[request.param])


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(trace: Trace, some_python: Path, shape: str) -> None:
    program, asked, parts = SHAPES[shape]
    text = trace(some_python, program, **asked)["text"]
    at = 0
    for part in parts:
        assert part in text[at:], (part, text)
        at = text.index(part, at) + len(part)


def test_a_long_loop_is_short_in_what_is_told(trace: Trace, python: Path) -> None:
    found = trace(
        python,
        """
        def work(n):
            found = None
            for i in range(n):
                found = i if i < n - 1 else None
            return found + 1
        work(2000)
        """,
        first_change="found",
    )
    lines = ran(found)
    assert len(lines) < 60 and lines[-1] == "return found + 1"
    (gap,) = [step for step in found["steps"] if step["kind"] == "gap"]
    assert gap["steps"] > 3000 and 1900 < gap["lines"][0]["times"] < 2000
    assert found["total"] == 4003
    assert "found = None" in found["text"].splitlines()[-5]
    first = found["first_change"]
    assert (first["began"]["value"]["text"], first["count"], len(first["changes"])) == ("None", 2000, 5)
    assert [found["first_change"]["other_type"][key]["text"] for key in ("before", "value")] == ["None", "0"]


def test_a_million_rounds_meet_the_limits(trace: Trace, python: Path) -> None:
    program = """
    def work(n):
        found = 0
        for i in range(n):
            found += i
        raise KeyError(found)
    work(1000000)
    """
    found = trace(python, program, most_lines=30000)
    assert found["total"] == 30001
    assert "KeyError: 499999500000" in found["outcome"]  # the rest ran untraced
    assert "Only the first 30000 lines" in found["limits"][0]
    slow = trace(python, program.replace("found += i", "found += sum(range(9))"), timeout=0.5, first_change="found")
    assert slow["seconds"] < 1.5
    assert "still ran after 0.5 s" in slow["outcome"] or "KeyError" in slow["outcome"]
    assert any("The time was up" in limit for limit in slow["limits"])
    assert slow["first_change"]["began"]["value"]["text"] == "0" and slow["steps"]
    for endless in ("while True: pass", "while True:\n            try: n += 1\n            except Exception: pass"):
        text = f"def work(n):\n    if n:\n        {endless}\n    return 1 / n\nwork(0)\n"
        stuck = trace(python, text, code="work(1)", timeout=0.3)
        assert "still ran after 0.3 s" in stuck["outcome"], stuck["outcome"]
        assert stuck["steps"]


def test_many_different_lines_meet_the_limit_of_steps(trace: Trace, python: Path) -> None:
    body = "\n".join(f"    v{n} = a + {n}" for n in range(600))
    found = trace(python, f"def work(a):\n{body}\n    return a / 0\nwork(1)\n", steps=50)
    assert "More than 50 steps" in found["limits"][0]
    assert len(found["steps"]) < 120
    assert ran(found)[0] == "v0 = a + 0" and ran(found)[-1] == "return a / 0"
    assert len(found["text"]) < 8000


HOSTILE = """
ran = []
class Meta(type):
    def __eq__(cls, other): ran.append("meta eq"); return False
    __hash__ = type.__hash__
class Hostile(metaclass=Meta):
    def __init__(self): self.x = 1
    def __getattribute__(self, name): ran.append(name); raise RuntimeError(name)
    def __repr__(self): ran.append("repr"); raise RuntimeError
    __str__ = __len__ = __iter__ = __bool__ = __repr__
    def __eq__(self, other): ran.append("eq"); raise RuntimeError
    def __hash__(self): ran.append("hash"); raise RuntimeError
class List(list):
    def __iter__(self): ran.append("iter"); raise RuntimeError
    def __len__(self): ran.append("len"); return 7
    def __eq__(self, other): ran.append("list eq"); return True
class Error(Exception):
    def __str__(self): ran.append("str of error"); raise RuntimeError
    __repr__ = __str__
def inner(a):
    b = a
    raise Error(a)
def work(a, many):
    try:
        inner(a)
    except Error:
        many = many
    password = "hunter2-very-secret"
    loop = []
    loop.append(loop)
    if ran: raise ValueError(list(ran))
    return [][0]
hostile = object.__new__(Hostile)
"""


def test_no_code_of_the_users_runs_for_it(trace: Trace, some_python: Path) -> None:
    found = trace(some_python, HOSTILE + "work(hostile, List([1, 2]))\n", first_change="many")
    assert "raised IndexError" in found["outcome"], found["outcome"]
    assert "hunter2" not in str(found)
    found = trace(some_python, HOSTILE + "work(hostile, List([1, 2]))\n", when="a == 1", variables=["a.x", "a.y[0]"])
    assert "The condition raised" in " ".join(found["notes"])  # its own code does, and is told of


def test_huge_values(trace: Trace, python: Path) -> None:
    found = trace(
        python,
        """
        def work():
            text = "x" * 10000000
            items = list(range(1000000))
            deep = {}
            for _ in range(2000):
                deep = {"a": deep}
            items.append(text)
            return items[len(items)]
        work()
        """,
        first_change="items",
        timeout=30,
    )
    assert "raised IndexError" in found["outcome"]
    assert len(str(found)) < 60000
    assert found["first_change"]["changes"][0]["value"]["length"] == 1000001


def test_variables_and_functions_can_be_chosen(trace: Trace, python: Path) -> None:
    program = """
    class Order:
        def __init__(self, n): self.n, self.total = n, 0
    def add(order, n):
        order.total += n
        unseen = n
    def check(order):
        if order.total > 2: order.total = -1
    def work(order):
        add(order, 1)
        check(order)
        add(order, 2)
        check(order)
        return [][order.total]
    work(Order(3))
    """
    found = trace(python, program, functions=["work"], variables=["order.total"], code="work(Order(3))")
    assert [each["name"] for each in found["functions"]] == ["work"]
    assert changes(found) == [f"order.total={n}" for n in (0, 1, 3, -1)]
    # whoever changes it: the object is the same one in all calls
    found = trace(python, program, first_change="order.total", when="order.total < 0", code="work(Order(3))")
    first = found["first_change"]
    assert [change["value"]["text"] for change in first["changes"]] == ["1", "3", "-1"]
    assert first["changes"][-1]["function"] == "check"
    assert found["when"]["first"]["text"] == "if order.total > 2: order.total = -1"
    assert "add" not in [each["name"] for each in found["functions"] if each["calls"] == 0]


def test_wrong_questions(ask: Any, python: Path) -> None:
    program = "def f(a):\n    return a / 0\nf(1)\n"
    wrong = [{"number": 9}, {"when": "a ="}, {"first_change": "a + 1"}, {"code": "a ="}, {"variables": ["f()"]}]
    outcome = ask(python, program, *(("trace", each) for each in wrong))
    for number in range(len(wrong)):
        error = outcome.error(number)
        assert error["type"] == "NotThere" and error["message"], error


ATTACK = """
import atexit, os, sqlite3, threading
seen, kept = [], {"n": 0}
database = sqlite3.connect("DATABASE")
database.execute("create table t (x)"); database.commit()
log = open("LOG", "w"); log.write("before ")
def rate(n):
    seen.append(n); kept["n"] += 1
    database.execute("insert into t values (1)"); database.commit()
    log.write("in "); log.flush()
    rate.calls = len(seen)
    os.environ["TRACED"] = "1"
    return n / 0
def work(n):
    return rate(n)
import sys
def after():
    log.flush()
    rows = database.execute("select count(*) from t").fetchone()[0]
    return [seen, kept, rate.calls, rows, open("LOG").read(), sys.gettrace() is None, threading.active_count(),
            work.__code__ is code and rate.__code__ is inner]
code, inner = work.__code__, rate.__code__
work(3)
"""


def test_the_live_process_is_as_it_was(trace: Trace, some_python: Path, tmp_path: Path) -> None:
    program = ATTACK.replace("DATABASE", str(tmp_path / "data.db")).replace("LOG", str(tmp_path / "log"))
    found = trace(some_python, program, number=1, when="n > 0", first_change="kept")
    assert "raised" in found["outcome"] and "rate" in str(found["functions"])
    assert found["after"] == [[3], {"n": 1}, 1, 1, "before in ", True, 1, True]


def test_code_that_traces_itself(trace: Trace, python: Path) -> None:
    program = "import sys\ndef f(n):\n    sys.settrace(None)\n    return g(n)\ndef g(n):\n    return n\n{}['x']\n"
    found = trace(python, program, code="f(1)")
    assert "trace function of its own" in found["text"] and "f(1) returned 1" in found["outcome"]
    assert "trace function" not in trace(python, program, code="g(1)")["text"]


def test_a_recursion_without_end(trace: Trace, some_python: Path) -> None:
    found = trace(some_python, "def down(n):\n    return down(n + 1)\ndown(0)\n", code="down(0)")
    assert "RecursionError" in found["outcome"]
    assert next(step for step in found["steps"] if step["kind"] == "call")["changes"][0]["value"]["text"] == "0"


@pytest.mark.network
def test_a_test_of_pytest(trace: Trace, python: Path, with_packages: Any, tmp_path: Path) -> None:
    (tmp_path / "test_shop.py").write_text(
        "import pytest\n@pytest.fixture\n"
        "def rows(tmp_path):\n    (tmp_path / 'a').write_text('1')\n    return [1, None]\n"
        "def total(rows):\n    found = 0\n    for row in rows:\n        found += row\n    return found\n"
        "@pytest.mark.parametrize('n', [1, 2])\n"
        "def test_total(rows, n):\n    assert total(rows[:1]) == 1\n    total(rows)\n",
        encoding="utf-8",
    )
    executable = with_packages(python, ("pytest",))
    test = f"{tmp_path}/test_shop.py::test_total[2]"
    found = trace(executable, "def f():\n    return 1 / 0\nf()\n", test=test, first_change="row", when="row is None")
    assert "raised TypeError" in found["outcome"] and "(total, line 9)" in found["outcome"], found["text"]
    assert found["when"]["first"]["line"] == 8
    assert found["first_change"]["other_type"]["value"]["text"] == "None"
    missing = trace(executable, "def f():\n    return 1 / 0\nf()\n", test=f"{tmp_path}/test_shop.py::test_nothing")
    assert "pytest ran no test" in missing["outcome"]
