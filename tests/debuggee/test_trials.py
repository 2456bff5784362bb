"""Candidates for a fix, tried in jailed copies: every shape of function, what is called again, verdicts and reports."""

import base64
import textwrap
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Trial = Callable[..., list[dict[str, Any]]]


def pack(text: str) -> str:
    return base64.b64encode(zlib.compress(text.encode())).decode()


def changed(text: str, edits: "list[tuple[str, str]]") -> str:
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


@pytest.fixture
def trials(ask: Any, tmp_path: Path) -> Trial:
    """trials(python, program, [(old, new), ...] for each candidate, frame=None): what came of each."""

    def run(
        python: Path, program: str, *candidates: "list[tuple[str, str]]", after: "list[Any] | None" = None, **more: Any
    ) -> list[dict[str, Any]]:
        program = textwrap.dedent(program)
        texts = [program, *(changed(program, edits) for edits in candidates)]
        path = str(tmp_path / "program.py")
        arguments = {
            "candidates": [[{"path": path, "old": 0, "new": number}] for number in range(1, len(texts))],
            "texts": [pack(text) for text in texts],
            **more,
        }
        outcome = ask(python, program, ("try_fix", arguments))
        if after is not None:
            after.append(outcome.after)
        found: list[dict[str, Any]] = outcome[0]["trials"]
        return found

    return run


SHAPES: "dict[str, tuple[str, list[tuple[str, str]], str]]" = {
    "function": (
        """
        def total(lines):
            return sum(lines) / 0
        total([1, 2])
        """,
        [(" / 0", "")],
        "total([1, 2]) returned 3",
    ),
    "arguments of all kinds": (
        """
        def f(a, b=2, *rest, c, d=4, **more):
            raise ValueError(a)
        f(1, 2, 3, c=5, e=6)
        """,
        [("raise ValueError(a)", "return a, b, rest, c, d, more")],
        "returned (1, 2, (3,), 5, 4, {'e': 6})",
    ),
    "method": (
        """
        class Cart:
            def __init__(self):
                self.lines = [1, 2]
            def total(self, factor):
                return sum(self.lines) * factor / 0
        Cart().total(3)
        """,
        [(" / 0", "")],
        "Cart.total(3) returned 9",
    ),
    "class method": (
        """
        class Cart:
            rate = 2
            @classmethod
            def make(cls, n):
                return cls.rate * n / 0
        Cart.make(3)
        """,
        [(" / 0", "")],
        "Cart.make(3) returned 6",
    ),
    "static method": (
        """
        class Cart:
            @staticmethod
            def add(a, b):
                return a + b / 0
        Cart.add(1, 2)
        """,
        [(" / 0", "")],
        "Cart.add(1, 2) returned 3",
    ),
    "property": (
        """
        class Cart:
            @property
            def total(self):
                return 1 / 0
            @total.setter
            def total(self, value):
                self.value = value
        Cart().total
        """,
        [("1 / 0", "1 / 2")],
        "Cart.total() returned 0.5",
    ),
    "property that a method uses": (
        """
        class Cart:
            @property
            def size(self):
                return None
            def total(self):
                return 2 * self.size + 1
        Cart().total()
        """,
        [("return None", "return 5")],
        "Cart.total() returned 11",
    ),
    "method that calls super": (
        """
        class Base:
            def total(self):
                return 7
        class Cart(Base):
            def total(self):
                return 1 / 0
        Cart().total()
        """,
        [("1 / 0", "super().total()")],
        "Cart.total() returned 7",
    ),
    "nested function": (
        """
        def outer(n):
            def inner(x):
                return x / 0
            return inner(n)
        outer(4)
        """,
        [("x / 0", "x / 2")],
        "inner(4) returned 2.0",
    ),
    "closure": (
        """
        def make(rate):
            seen = []
            def price(x):
                seen.append(x)
                return x * rate / 0
            def count():
                return len(seen)
            price.count = count
            return price
        price = make(3)
        def use(price):
            return price(2), price.count()
        use(price)
        """,
        [("rate / 0", "rate")],
        "price(2) returned 6",
    ),
    "closure that uses one variable more": (
        """
        def outer(rate, limit):
            def price(x):
                return x * rate / 0
            return price(2) + limit
        outer(3, 5)
        """,
        [("x * rate / 0", "min(x * rate, limit)")],
        "price(2) returned 5",
    ),
    "closure that uses one variable less": (
        """
        def outer(rate, limit):
            def price(x):
                return x * rate / 0 + limit
            return price(2)
        outer(3, 5)
        """,
        [("rate / 0 + limit", "rate")],
        "price(2) returned 6",
    ),
    "decorated function": (
        """
        import functools
        def logged(function):
            @functools.wraps(function)
            def wrapper(*args):
                return function(*args)
            return wrapper
        @logged
        @logged
        def total(n):
            return n / 0
        def main():
            return total(4)
        main()
        """,
        [("n / 0", "n / 2")],
        "total(4) returned 2.0",
    ),
    "decorated without wraps": (
        """
        class Registered:
            def __init__(self, function):
                self.inner = function
            def __call__(self, *args):
                return self.inner(*args)
        @Registered
        def total(n):
            return n / 0
        total(4)
        """,
        [("n / 0", "n / 2")],
        "total(4) returned 2.0",
    ),
    "cached function": (
        """
        import functools
        @functools.lru_cache(maxsize=None)
        def rate(name):
            return None
        rate("a")
        def price(n):
            return n * rate("a")
        price(2)
        """,
        [("return None", "return 4")],
        "price(2) returned 8",
    ),
    "function in a table": (
        """
        def rate():
            return None
        table = {"rate": [rate]}
        del rate
        def price(n):
            return n * table["rate"][0]()
        price(2)
        """,
        [("return None", "return 4")],
        "price(2) returned 8",
    ),
    "new decorator": (
        """
        class Cart:
            def size():
                return 3
            def total(self):
                return self.size() * 2
        Cart().total()
        """,
        [("def size", "@staticmethod\n    def size")],
        "Cart.total() returned 6",
    ),
    "new decorator of a function": (
        """
        def twice(function):
            return lambda: 2 * function()
        def size():
            return 3
        def total():
            assert size() == 6
            return size()
        total()
        """,
        [("def size", "@twice\ndef size")],
        "total() returned 6",
    ),
    "new property setter": (
        """
        class Cart:
            @property
            def size(self):
                return 3
            def grow(self):
                self.size = 4
                return self.new
        Cart().grow()
        """,
        [("    def grow", "    @size.setter\n    def size(self, value):\n        self.new = value\n    def grow")],
        "Cart.grow() returned 4",
    ),
    "default value": (
        """
        def rate(n, factor=None):
            return n * factor
        def total(n):
            return rate(n) + 1
        total(3)
        """,
        [("factor=None", "factor=2")],
        "rate(3) returned 6",
    ),
    "keyword default in a class": (
        """
        class Cart:
            two = 2
            def rate(self, n, *, factor=None):
                return n * factor
            def total(self, n):
                return self.rate(n) + 1
        Cart().total(3)
        """,
        [("factor=None", "factor=two")],
        "Cart.rate(3) returned 6",
    ),
    "coroutine": (
        """
        import asyncio
        async def rate():
            await asyncio.sleep(0)
            return 2
        async def total(n):
            return n / (await rate() - 2)
        asyncio.run(total(4))
        """,
        [(" - 2)", ")")],
        "total(4) returned 2.0",
    ),
    "function in a running loop": (
        """
        import asyncio
        def total(n):
            asyncio.get_running_loop()
            return n / 0
        async def main():
            return total(4)
        task = []
        async def outer():
            task.append(asyncio.current_task())
            await main()
        def make_stop(exc):
            stop = Stop.from_exception(exc, task=task[0])
            stop.frames = [pair for pair in stop.frames if "harness" not in pair[0].f_code.co_filename]
            return stop
        asyncio.run(outer())
        """,
        [("n / 0", "n / 2")],
        "total(4) returned 2.0",
    ),
    "generator": (
        """
        def numbers(n):
            for i in range(n):
                yield 1 / i
        list(numbers(3))
        """,
        [("1 / i", "1 / (i + 1)")],
        "numbers(3) yielded 3: [1.0, 0.5, 0.3333333333333333]",
    ),
    "generator without end": (
        """
        def numbers():
            i = 0
            while True:
                yield 1 / i
                i += 1
        list(numbers())
        """,
        [("1 / i", "i")],
        "numbers() yielded 1000 or more: [0, 1, 2",
    ),
    "async generator": (
        """
        import asyncio
        async def numbers(n):
            for i in range(n):
                yield 2 / i
        async def main():
            return [x async for x in numbers(2)]
        asyncio.run(main())
        """,
        [("2 / i", "2 * i")],
        "numbers(2) yielded 2: [0, 2]",
    ),
    "dataclass method": (
        """
        import dataclasses
        @dataclasses.dataclass
        class Line:
            price: float
            def total(self, n):
                return self.price * n / 0
        Line(2.5).total(2)
        """,
        [(" / 0", "")],
        "Line.total(2) returned 5.0",
    ),
    "module constant": (
        """
        RATES = {"a": None}
        def price(n):
            return n * RATES["a"]
        price(2)
        """,
        [('{"a": None}', '{"a": 5}')],
        "price(2) returned 10",
    ),
    "class attribute": (
        """
        class Cart:
            rate = None
            def price(self, n):
                return n * self.rate
        Cart().price(2)
        """,
        [("rate = None", "rate = 5")],
        "Cart.price(2) returned 10",
    ),
    "new function and import": (
        """
        def price(n):
            return n / 0
        price(2.5)
        """,
        [("def price", "import math\nfrom os import path as p\ndef up(x):\n    return math.floor(x)\ndef price"),
         ("n / 0", "up(n), p.basename('a/b')")],
        "price(2.5) returned (2, 'b')",
    ),
    "new method and nested class": (
        """
        class Cart:
            class Line:
                def price(self):
                    return 1 / 0
            def total(self):
                return self.Line().price()
        Cart().total()
        """,
        [("return 1 / 0", "return self.rate() * 2\n        def rate(self):\n            return __class__.__name__")],
        "Cart.Line.price() returned 'LineLine'",
    ),
    "new class": (
        """
        def price(n):
            return n / 0
        price(2)
        """,
        [("def price", "class M:\n    def __init__(self, n):\n        self.n = n\ndef price"), ("n / 0", "M(n).n")],
        "price(2) returned 2",
    ),
    "comprehension": (
        """
        def prices(ns):
            return [1 / n for n in ns]
        prices([1, 0])
        """,
        [("for n in ns", "for n in ns if n")],
        "prices([1, 0]) returned [1.0]",
    ),
    "generator expression": (
        """
        def prices(ns):
            return sum(1 / n for n in ns)
        prices([1, 0])
        """,
        [("for n in ns", "for n in ns if n")],
        "prices([1, 0]) returned 1.0",
    ),
    "lambda in a comprehension": (
        """
        def prices(ns):
            return [(lambda: 1 / n)() for n in ns]
        prices([1, 0])
        """,
        [("1 / n", "n")],
        "prices([1, 0]) returned [1, 0]",
    ),
    "lambda of the module": (
        """
        rate = lambda n: n / 0
        def main(n):
            return rate(n)
        main(4)
        """,
        [("n / 0", "n / 2")],
        "<lambda>(4) returned 2.0",
    ),
    "lambda as a key": (
        """
        def best(ns):
            return max(ns, key=lambda n: 1 / n)
        best([0, 2])
        """,
        [("1 / n", "-n")],
        "best([0, 2]) returned 0",
    ),
    "recursion": (
        """
        def depth(tree):
            return 1 + max(depth(part) for part in tree)
        depth([[], [[]]])
        """,
        [("max(depth(part) for part in tree)", "max([depth(part) for part in tree], default=0)")],
        "depth([]) returned 1",
    ),
    "renamed argument": (
        """
        def total(l):
            return sum(l) / 0
        total([1, 2])
        """,
        [("total(l)", "total(lines)"), ("sum(l) / 0", "sum(lines)")],
        "total([1, 2]) returned 3",
    ),
    "new argument with a default": (
        """
        def total(lines):
            return sum(lines) / 0
        total([1, 2])
        """,
        [("total(lines)", "total(lines, start=10)"), ("sum(lines) / 0", "sum(lines, start)")],
        "total([1, 2]) returned 13",
    ),
    "mangled name": (
        """
        class Cart:
            def __rate(self):
                return None
            def total(self):
                return 2 * self.__rate()
        Cart().total()
        """,
        [("return None", "return 4")],
        "Cart.total() returned 8",
    ),
    "caller": (
        """
        def price(n):
            return 1 / n
        def total(ns):
            return sum(map(price, ns))
        def main():
            return total([1, 0])
        main()
        """,
        [("map(price, ns)", "map(price, filter(None, ns))")],
        "total([1, 0]) returned 1.0",
    ),
    "origin that has returned": (
        """
        def parse(text):
            return None
        def price(n):
            return 2 * n
        def main(text):
            return price(parse(text))
        main("4")
        """,
        [("return None", "return int(text)")],
        "main('4') returned 8",
    ),
    "module": (
        """
        lines = [1, 2]
        seen = []
        seen.append(1)
        total = sum(lines) / 0
        result = total * len(seen)
        assert result == 3, result
        """,
        [(" / 0", "")],
        "the module from line 5 on ran to its end",
    ),
    "module under if": (
        """
        def main():
            raise SystemExit(0)
        if __name__ == "__main__":
            seen = [1]
            print(1 / 0)
            main()
        """,
        [("1 / 0", "len(seen)")],
        "the module from line 6 on ran to its end",
    ),
    "earlier statement of the module": (
        """
        lines = [1, None]
        double = lines * 2
        total = sum(double)
        assert total == 6
        """,
        [("None", "2")],
        "the module from line 2 on ran to its end",
    ),
    "function of the module": (
        """
        def parse(text):
            return None
        number = parse("4")
        print(2 * number)
        """,
        [("return None", "return int(text)"), ("2 * number", "2 * parse('4')")],
        "the module from line 5 on ran to its end",
    ),
    "class body": (
        """
        class Cart:
            rate = 1 / 0
        Cart()
        """,
        [("1 / 0", "1")],
        "the module from line 2 on ran to its end",
    ),
    "system exit": (
        """
        import sys
        def main():
            1 / 0
            sys.exit(0)
        main()
        """,
        [("    1 / 0\n", "")],
        "main() ran to its end",
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(every_python: Path, trials: Trial, shape: str) -> None:
    program, edits, summary = SHAPES[shape]
    (found,) = trials(every_python, program, edits)
    assert summary in found["summary"], found
    assert found["verdict"] == "passes", found
    assert found["error"] is None
    assert found["effects"] == []
    assert all(each["swapped"] for each in found["functions"]), found["functions"]


TOTAL = """
import sys
def total(lines):
    result = 0
    for line in lines:
        result += line / 0
    return result
def main(n):
    return total([n, 2])
def after():
    return [total.__code__.co_consts[1:], sorted(globals())[:3], total.__defaults__]
main(1)
"""


@pytest.mark.parametrize(
    ("edit", "verdict", "summary"),
    [
        (("line / 0", "line"), "passes", "total([1, 2]) returned 3"),
        (("line / 0", "0 // 0 * line"), "same failure", "raised ZeroDivisionError: "),
        (
            ("line / 0", "line[0]"),
            "other failure",
            "raised TypeError: 'int' object is not subscriptable (total, line 6)",
        ),
        (("line / 0", "int(sys.exit(3))"), "other failure", "raised SystemExit: 3 (total, line 6)"),
        (("result = 0", "import os; os._exit(3)"), "other failure", "ended its process with status 3"),
        (("result = 0", "result = 0\n    while True: pass"), "timeout", "still ran after 0.4 s (total, line 5)"),
        (("result = 0", "import time; time.sleep(9)"), "timeout", "still ran after 0.4 s (total, line 4)"),
        (("result = 0", "sum(iter(int, 1))"), "timeout", "could not be interrupted"),
        (("result = 0", "open('/etc/new', 'w')"), "refused effect", "It tried to write /etc/new, which a jail refuses"),
        (("(lines)", "(lines, rate)"), "other failure", "missing 1 required positional argument: 'rate'"),
        (("result = 0", "result = ("), "cannot be tried", "it does not compile"),
        (("result = 0", "result = 0  # nothing"), "cannot be tried", "The candidate changes nothing that runs"),
        (("import sys", "import sys, nosuchmodule"), "cannot be tried", "running it failed with ModuleNotFoundError"),
    ],
)
def test_verdicts(python: Path, trials: Trial, edit: "tuple[str, str]", verdict: str, summary: str) -> None:
    after: list[Any] = []
    (found,) = trials(python, TOTAL, [edit], timeout=0.4, after=after, without=["overlay"])
    assert (found["verdict"], summary in found["summary"]) == (verdict, True), found
    assert after[0][0][0] == 0 and after[0][2] is None


def test_no_changed_line_is_reached(python: Path, trials: Trial) -> None:
    edits = [("total([n, 2])", "total([])")]
    (found,) = trials(python, TOTAL, edits, number=0)
    assert found["verdict"] == "not reached"
    assert found["summary"].startswith("None of the changed lines ran: total([1, 2]) raised ZeroDivisionError")
    (found,) = trials(python, TOTAL, edits)
    assert (found["verdict"], found["frame"], found["summary"]) == ("passes", 1, "main(1) returned 0")


def test_many_at_once(python: Path, trials: Trial) -> None:
    found = trials(python, TOTAL, *[[("line / 0", f"line + {n}")] for n in range(16)])
    assert [each["summary"] for each in found] == [f"total([1, 2]) returned {3 + 2 * n}" for n in range(16)]


def test_too_many(python: Path, ask: Any) -> None:
    outcome = ask(python, TOTAL, ("try_fix", {"candidates": [[]] * 17, "texts": []}))
    assert "1 to 16" in outcome.error(0)["message"]


def test_frames_that_cannot_be_called_again(python: Path, trials: Trial, ask: Any, tmp_path: Path) -> None:
    program = "class Cart:\n    rate = 1 / 0\n"
    arguments = {"candidates": [[{"path": str(tmp_path / "program.py"), "old": 0, "new": 0}]], "texts": [pack(program)]}
    outcome = ask(python, program, ("try_fix", {**arguments, "number": 0}), ("try_fix", {**arguments, "number": 7}))
    assert "is the body of the class Cart" in outcome.error(0)["message"]
    assert "There is no frame 7" in outcome.error(1)["message"]


@pytest.mark.parametrize(
    ("body", "note"),
    [
        ("lines = lines[1:]\n    return 1 / 0", "lines was assigned again (line 3)"),
        ("for line in lines:\n        print(1 / line)\n        lines = []", "lines was assigned again (line 5)"),
        ("lines.append(3)\n    return 1 / 0", "lines may have been changed (line 3)"),
        ("lines[0] = 3\n    return 1 / 0", "lines may have been changed (line 3)"),
        ("del lines[0]\n    return 1 / 0", "lines may have been changed (line 3)"),
        ("lines = lines and 1 / 0", None),
        ("other = lines[:]\n    other.append(1)\n    return 1 / 0\n    lines.append(1)", None),
    ],
)
def test_arguments_that_have_changed(every_python: Path, trials: Trial, body: str, note: "str | None") -> None:
    program = f"\ndef total(lines):\n    {body}\ntotal([0, 2])\n"
    (found,) = trials(every_python, program, [("1 / ", "1 + ")])
    assert found["verdict"] == "passes", found
    assert (note is None) == (not found["notes"]), found["notes"]
    assert note is None or note in found["notes"][0]


def test_an_iterator_is_not_what_it_was(python: Path, trials: Trial) -> None:
    program = "def total(lines):\n    return [1 / n for n in lines]\ntotal(iter([1, 0, 2]))\n"
    (found,) = trials(python, program, [("1 / n", "n")])
    assert found["summary"].endswith("returned [2]")
    assert any("lines is an iterator" in note for note in found["notes"])


def test_a_deleted_argument(python: Path, trials: Trial) -> None:
    program = "def total(lines):\n    del lines\n    return 1 / 0\ntotal([])\n"
    (found,) = trials(python, program, [("1 / 0", "1")], number=0)
    assert found["verdict"] == "cannot be tried" and "lines was deleted" in found["summary"]


def test_an_argument_more(python: Path, trials: Trial) -> None:
    """The new parameter has no default: the failing call had no such argument, its caller gives one."""
    edits = [("total(lines)", "total(lines, rate)"), ("line / 0", "line * rate"), ("total([n, 2])", "total([n, 2], 3)")]
    (found,) = trials(python, TOTAL, edits)
    assert (found["verdict"], found["summary"]) == ("passes", "main(1) returned 9")
    (found,) = trials(python, TOTAL, edits, number=0)
    assert found["verdict"] == "cannot be tried" and "needs the argument rate" in found["summary"]


def test_the_report(python: Path, trials: Trial) -> None:
    edit = ("line / 0", "print(line) or sys.stderr.write('e') and open('/etc/hosts', 'a') and line")
    (found,) = trials(python, TOTAL, [edit], without=["overlay"])
    assert (found["stdout"], found["stderr"]) == ("1\n", "e")
    assert found["effects"] == ["tried to write /etc/hosts"]
    assert found["error"]["where"]["function"] == "total" and found["error"]["where"]["line"] == 6
    assert "line / 0" not in found["error"]["traceback"] and "print(line)" in found["error"]["traceback"]
    ((ran),) = found["lines"]
    assert (ran["function"], ran["reached"], ran["lines"]) == ("total", [4, 5, 6], 4)
    assert [(each["name"], each["swapped"]) for each in found["functions"]] == [("total", True)]
    assert 0 < found["seconds"] < 5


def test_a_function_on_one_line(every_python: Path, trials: Trial) -> None:
    (found,) = trials(every_python, "def f(n): return n / 0\nf(3)\n", [("n / 0", "n")])
    assert (found["verdict"], found["lines"][0]["reached"], found["lines"][0]["lines"]) == ("passes", [1], 1)


def test_lines_of_the_new_text(python: Path, trials: Trial) -> None:
    """Functions that have only moved are shown where the new text has them."""
    (found,) = trials(python, TOTAL, [("import sys", "import sys\n\n\nLIMIT = 3\n")])
    assert found["error"]["where"]["line"] == 10
    assert "result += line / 0" in found["error"]["traceback"]


@pytest.mark.parametrize(
    ("program", "edit", "name", "how"),
    [
        ("from dataclasses import *\n@dataclass\nclass C:\n    a: int\n    def f(self): return 1 / 0\nC(1).f()",
         ("@dataclass", "@dataclass(order=True)"), "C", "its decorators differ"),
        ("class A: pass\nclass C:\n    def f(self):\n        return 1 / 0\nC().f()\n", ("class C:", "class C(A):"), "C",
         "its bases differ"),
        ("import enum\nclass E(enum.Enum):\n    a = 1\ndef f():\n    return 1 / 0\nf()\n", ("    a = 1", "    a = 2"),
         "E.a", "the members of an Enum are made with its class"),
        ("seen = []\ndef f():\n    return 1 / 0\nif True:\n    f()\n", ("seen = []", "seen = []\nseen.append(1)"),
         "line 2", "runs at its start only"),
    ],
)  # fmt: skip
def test_what_cannot_be_swapped(
    python: Path, trials: Trial, program: str, edit: "tuple[str, str]", name: str, how: str
) -> None:
    (found,) = trials(python, program, [edit, ("1 / 0", "1")], number=0)
    assert found["verdict"] == "passes"
    (told,) = [each for each in found["functions"] if not each["swapped"]]
    assert told["name"] == name and how in told["how"]


def test_modules_that_are_imported_later(python: Path, ask: Any, tmp_path: Path) -> None:
    """A file that is not loaded, and one that does not exist yet, come from the candidate."""
    program = "import sys\nsys.path.insert(0, %r)\ndef main():\n    import rates\n    return 1 / rates.RATE\nmain()\n"
    program %= str(tmp_path)
    old = "RATE = 0\nif RATE == 0:\n    raise LookupError\n"
    (tmp_path / "rates.py").write_text(old)
    rates = "from newpackage.data import RATE\nRATE *= 2\n"
    paths = [str(tmp_path / name) for name in ("rates.py", "newpackage/__init__.py", "newpackage/data.py")]
    files = [{"path": path, "old": None if n else 3, "new": n} for n, path in enumerate(paths)]
    texts = [pack(text) for text in (rates, "", "RATE = 2\n", old)]
    arguments = {"candidates": [files], "texts": texts, "number": 1}
    (found,) = ask(python, program, ("try_fix", arguments))[0]["trials"]
    assert (found["verdict"], found["summary"]) == ("passes", "main() returned 0.25")
    assert not (tmp_path / "newpackage").exists()


def test_copies_in_other_modules(python: Path, ask: Any, tmp_path: Path) -> None:
    """What others have imported by name is renewed, too; the file is not the one that failed."""
    old = "RATE = None\ndef decorated(n):\n    return n\n"
    new = "import functools\nRATE = 4\n@functools.lru_cache(None)\ndef decorated(n):\n    return n + 1\n"
    (tmp_path / "rates.py").write_text(old)
    program = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nfrom rates import RATE, decorated as d\n"
    program += "def main(n):\n    return d(n) * RATE\nmain(2)\n"
    arguments = {
        "candidates": [[{"path": str(tmp_path / "rates.py"), "old": 0, "new": 1}]],
        "texts": [pack(old), pack(new)],
    }
    (found,) = ask(python, program, ("try_fix", arguments))[0]["trials"]
    assert (found["verdict"], found["summary"]) == ("passes", "main(2) returned 12")


def test_secrets_are_masked(python: Path, trials: Trial) -> None:
    program = "def login(password):\n    return 1 / 0\nlogin('cOrrect-h0rse-7')\n"
    (found,) = trials(python, program, [("1 / 0", "print(password) or [password]")])
    assert found["verdict"] == "passes"
    assert "cOrrect-h0rse-7" not in str(found)


def test_a_frozen_heap(python: Path, trials: Trial) -> None:
    """After gc.freeze() the collector does not tell who refers to a module."""
    program = (
        "import gc\nclass C:\n    def f(self):\n        return 1 / 0\ndef main():\n    C().f()\ngc.freeze()\nmain()\n"
    )
    (found,) = trials(python, program, [("1 / 0", "1")])
    assert (found["verdict"], found["summary"]) == ("passes", "C.f() returned 1")
