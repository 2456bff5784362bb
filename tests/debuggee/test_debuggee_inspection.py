"""A frame, a value by path with its children, the members of an object."""

import pytest

PROGRAM = '''
import collections, functools, types
class Base:
    limit = 10
    def inherited(self, a: int, b="x" * 500, *, token="abcdef", **more) -> str:
        """Does a thing.

        More text.
        """
class Order(Base):
    "One order."
    def __init__(self, items):
        self.items = items
        self.meta = {"a.b": 1, 5: "five", (1, "x"): "pair", b"k": 2, None: 3, True: 4, "password": {"x": "hunter2"}}
        self.auth = types.SimpleNamespace(user="bob", key="abcdefg")
    @property
    def total(self):
        "The sum."
        raise SystemExit("ran")
    @functools.cached_property
    def slow(self):
        raise SystemExit("ran")
    @classmethod
    def load(cls, path, /=None): ...
    @staticmethod
    def check(x, y=1): ...
    def price(self, *rates, scale: "float" = 1.0): ...
'''.replace("path, /=None", "path")

MAIN = """
Item = collections.namedtuple("Item", "name price")
glob = 7
def work(order, text, numbers):
    headers = [("Authorization", "zzz"), ("Accept", "x")]
    queue = collections.deque([1, 2, 3])
    raise ValueError("x")
work(Order([Item("a", 1), Item("b", 2)]), "abc" * 1000, list(range(1000000)))
"""


def value(outcome, index):
    return outcome[index]["value"]["text"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("order.items[1].price", "2"),
        ("order.items[-1]", "Item(name='b', price=2)"),
        ("order.items[0][0]", "'a'"),
        ("order.items[:1]", "[Item(name='a', price=1)]"),
        ("order.meta['a.b']", "1"),
        ("order.meta[5]", "'five'"),
        ("order.meta[(1, 'x')]", "'pair'"),
        ("order.meta[b'k']", "2"),
        ("order.meta[None]", "3"),
        ("order.meta[True]", "4"),
        ("order.meta['password']", "<masked>"),
        ("order.meta['password']['x']", "<masked>"),
        ("order.auth.user", "<masked>"),
        ("order.limit", "10"),
        ("glob", "7"),
        ("len", "<built-in function len>"),
        ("text[3:6]", "'abc'"),
        ("numbers[999999]", "999999"),
        ("numbers[10:40:10]", "[10, 20, 30]"),
        ("queue[1]", "2"),
        ("Order.limit", "10"),
        ("collections.OrderedDict", "<class 'collections.OrderedDict'>"),
        ("Order.check", "<function Order.check at program.py:25>"),
    ],
)
def test_paths(python, ask, path, text) -> None:
    outcome = ask(python, PROGRAM + MAIN, ("variable", {"number": 0, "path": path}))
    assert value(outcome, 0) == text


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("nope", "its locals are: headers, numbers, order, queue, text"),
        ("order.total", "is a property: not run"),
        ("order.slow", "cached property"),
        ("order.nope", "has no attribute nope. It stores: items, meta, auth"),
        ("order.items[7]", "out of range: it has 2 items"),
        ("order.items['x']", "needs a number or a slice"),
        ("order.meta['a.c']", "no key 'a.c'"),
        ("order[0]", "not run"),
        ("order.items.append(1)", "no calls"),
        ("order +", "not a path"),
        ("order.items[glob]", "only constants"),
        ("collections.nothing", "Module collections has no nothing"),
        ("numbers[::0]", "slice step cannot be zero"),
    ],
)
def test_paths_that_lead_nowhere(python, ask, path, said) -> None:
    error = ask(python, PROGRAM + MAIN, ("variable", {"number": 0, "path": path})).error(0)
    assert error["type"] == "NotThere"
    assert said in error["message"]


def test_children_are_paged(every_python, ask) -> None:
    program = PROGRAM + MAIN
    outcome = ask(
        every_python,
        program,
        ("variable", {"number": 0, "path": "numbers", "start": 999998, "count": 10}),
        ("variable", {"number": 0, "path": "order"}),
        ("variable", {"number": 0, "path": "order.meta", "start": 1, "count": 2}),
        ("variable", {"number": 0, "path": "order.items[0]"}),
        ("variable", {"number": 0, "path": "headers[0]"}),
        ("variable", {"number": 0, "path": "text", "start": 2, "count": 1}),
    )
    last = outcome[0]
    assert last["total"] == 1000000
    assert [child["name"] for child in last["children"]] == ["[999998]", "[999999]"]
    assert last["children"][0]["path"] == "numbers[999998]"
    assert [(child["name"], child["path"]) for child in outcome[1]["children"]] == [
        ("items", "order.items"), ("meta", "order.meta"), ("auth", "order.auth")]  # fmt: skip
    assert outcome[1]["children"][2]["value"]["masked"] is True
    assert [child["path"] for child in outcome[2]["children"]] == ["order.meta[5]", "order.meta[(1, 'x',)]"]
    assert [child["name"] for child in outcome[3]["children"]] == ["name", "price"]
    assert [child["value"]["text"] for child in outcome[4]["children"]] == ["'Authorization'", "<masked>"]
    (piece,) = outcome[5]["children"]
    assert piece["path"] == "text[500:750]"
    assert piece["value"]["text"] == repr(("abc" * 1000)[500:750])


def test_paths_of_children_lead_to_them(python, ask) -> None:
    first = ask(python, PROGRAM + MAIN, ("variable", {"number": 0, "path": "order.meta"}))[0]
    paths = [child["path"] for child in first["children"]]
    outcome = ask(python, PROGRAM + MAIN, *[("variable", {"number": 0, "path": path}) for path in paths])
    for index, child in enumerate(first["children"]):
        assert outcome[index]["value"] == child["value"]


def test_members(every_python, ask) -> None:
    outcome = ask(
        every_python,
        PROGRAM + MAIN,
        ("members", {"number": 0, "path": "order"}),
        ("members", {"number": 0, "path": "Order"}),
        ("members", {"number": 0, "path": "collections"}),
        ("members", {"number": 0, "path": "numbers"}),
        ("members", {"number": 0, "path": "order.auth"}),
    )
    found = outcome[0]
    assert found["type"] == "Order"
    assert found["bases"] == ["Base"]
    assert found["doc"] == "One order."
    assert [entry["name"] for entry in found["attributes"]] == ["items", "meta", "auth", "limit"]
    assert {entry["name"]: entry["doc"] for entry in found["properties"]} == {"total": "The sum.", "slow": None}
    methods = {entry["name"]: entry for entry in found["methods"]}
    inherited = methods["inherited"]
    assert inherited["signature"].startswith("inherited(self, a: int, b='xxxx")
    assert inherited["signature"].endswith("..., *, token=<masked>, **more) -> str")
    assert inherited["doc"] == "Does a thing."
    assert inherited["defined_in"] == "Base"
    assert methods["price"]["signature"] == "price(self, *rates, scale: float = 1.0)"
    assert methods["load"]["kind"] == "class"
    assert methods["check"]["signature"] == "check(x, y=1)"
    assert methods["check"]["kind"] == "static"
    assert "Order" in outcome[1]["class"]
    assert any(entry["name"] == "namedtuple" for entry in outcome[2]["methods"])
    assert any(entry["name"] == "append" for entry in outcome[3]["methods"])
    assert "secret" in outcome.error(4)["message"]


def test_frame_in_full(every_python, ask) -> None:
    outcome = ask(every_python, PROGRAM + MAIN, ("frame", {"number": 1}), ("frame", {"number": 2}))
    assert outcome[0]["function"] == "<module>"
    assert "glob" in [pair["name"] for pair in outcome[0]["locals"]]
    assert outcome.error(1)["message"] == "There is no frame 2: frames are 0 (innermost) to 1."


def test_questions_without_a_stop_or_without_sense(python, ask) -> None:
    program = """
import json, sys
api = sys.modules["_dap_agent_debuggee.api"]
questions = (("snapshot", "{}"), ("nonsense", "{}"), ("frame", "{"), ("frame", "{}"))
asked = [json.loads(api.call(*question)) for question in questions]
def after():
    return asked
1/0
"""
    before, nonsense, broken, missing = ask(python, program, "snapshot").after
    assert before["error"]["message"].startswith("The program is not stopped")
    assert "There is no question nonsense" in nonsense["error"]["message"]
    assert broken["ok"] is False
    assert missing["ok"] is False
