"""What the formatter writes, and that it stays bounded whatever it is given."""

import array
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import json
import math
import pathlib
import re
import types
import uuid
import weakref
from typing import Any

import attrs
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dap_agent.debuggee.secrets import Secrets
from dap_agent.debuggee.values import NARROW, WIDE, Formatter, Limits


@dataclasses.dataclass
class Point:
    x: int
    y: int = 2
    hidden: str = dataclasses.field(default="h", repr=False)


@attrs.define
class Attr:
    a: int
    password: str = "hunter2"


class Model(pydantic.BaseModel):
    name: str
    secret: pydantic.SecretStr


class Pair(collections.namedtuple("Pair", "left right")):
    pass


class Colour(enum.IntFlag):
    RED = 1
    BLUE = 2


class Plain:
    def __init__(self) -> None:
        self.a = 1
        self.b = [1, 2]


class Slotted:
    __slots__ = ("x", "y")

    def __init__(self) -> None:
        self.x = 1


def function(a: int) -> int:
    return a


WHERE = pathlib.Path(__file__).name


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (True, "True"),
        (1.5, "1.5"),
        (math.inf, "inf"),
        (1 + 2j, "(1+2j)"),
        ("a'b", '"a\'b"'),
        ("\ud800", "'\\ud800'"),
        (b"\x00a", "b'\\x00a'"),
        (bytearray(b"ab"), "bytearray(b'ab')"),
        ([], "[]"),
        ([1, [2, [3, [4, [5, [6]]]]]], "[1, [2, [3, [4, [... 2 items]]]]]"),
        ((1,), "(1,)"),
        ((), "()"),
        (set(), "set()"),
        (frozenset([1]), "frozenset({1})"),
        ({"a": {"b": (1, 2)}}, "{'a': {'b': (1, 2)}}"),
        (list(range(20)), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... 10 more]"),
        (collections.OrderedDict(a=1), "collections.OrderedDict({'a': 1})"),
        (collections.Counter("aab"), "collections.Counter({'a': 2, 'b': 1})"),
        (collections.defaultdict(list, k=[1]), "collections.defaultdict(<class 'list'>, {'k': [1]})"),
        (collections.deque([1, 2], maxlen=5), "collections.deque([1, 2], maxlen=5)"),
        (array.array("i", [1, 2]), "array('i', [1, 2])"),
        (range(5), "range(0, 5)"),
        (range(0, 9, 2), "range(0, 9, 2)"),
        (slice(1, None, 2), "slice(1, None, 2)"),
        (memoryview(b"abc"), "<memoryview of 3 bytes, format 'B', shape (3,): b'abc'>"),
        (types.MappingProxyType({"a": 1}), "mappingproxy({'a': 1})"),
        ({"a": 1}.keys(), "dict_keys(['a'])"),
        ({"a": 1}.items(), "dict_items({'a': 1})"),
        (Point(1), f"{__name__}.Point(x=1, y=2)"),
        (Attr(1), f"{__name__}.Attr(a=1, password=<masked>)"),
        (Pair(1, "x"), f"{__name__}.Pair(left=1, right='x')"),
        (Colour.RED, f"<{__name__}.Colour.RED: 1>"),
        (Plain(), f"<{__name__}.Plain a=1, b=[1, 2]>"),
        (Slotted(), f"<{__name__}.Slotted x=1>"),
        (object(), "<object object>"),
        (ValueError("bad", 1), "ValueError('bad', 1)"),
        (datetime.date(2024, 1, 2), "datetime.date(2024-01-02)"),
        (datetime.datetime(2024, 1, 2, 3, 4, 5, 6), "datetime.datetime(2024-01-02 03:04:05.000006)"),
        (datetime.datetime(2024, 1, 2, tzinfo=datetime.timezone.utc), "datetime.datetime(2024-01-02 00:00:00 UTC)"),
        (datetime.timedelta(days=-1, seconds=5), "datetime.timedelta(days=-1, seconds=5)"),
        (datetime.time(1, 2), "datetime.time(01:02:00.000000)"),
        (decimal.Decimal("1.50"), "decimal.Decimal('1.50')"),
        (fractions.Fraction(1, 3), "fractions.Fraction(1, 3)"),
        (uuid.UUID(int=255), "uuid.UUID('00000000-0000-0000-0000-0000000000ff')"),
        (pathlib.PurePosixPath("/a") / "b", f"{pathlib.PurePosixPath.__module__}.PurePosixPath('/a/b')"),
        (re.compile("a+", re.I), "re.compile('a+', flags=34)"),
        (re.match("a+", "aab"), "<re.Match span=(0, 2) match='aa'>"),
        (function, f"<function {__name__}.function at {WHERE}:{function.__code__.co_firstlineno}>"),
        (Plain, f"<class '{__name__}.Plain'>"),
        (len, "<built-in function len>"),
        (functools.partial(print, 1, end=""), "functools.partial(<built-in function print>, 1, end='')"),
        (types.SimpleNamespace(a=1), "types.SimpleNamespace(a=1)"),
        (Ellipsis, "Ellipsis"),
        (NotImplemented, "NotImplemented"),
    ],
)
def test_texts(value: Any, text: str) -> None:
    assert Formatter(Secrets({})).text(value) == text


def test_modules_methods_generators_files_and_references(tmp_path: pathlib.Path) -> None:
    formatter = Formatter(Secrets({}))
    assert formatter.text(json).startswith("<module 'json' from '")
    assert formatter.text([].append).startswith("<built-in method append of list object")
    assert formatter.text(pathlib.Path("a").is_dir).startswith("<bound method pathlib")
    generator = (i for i in [1])
    assert "suspended at line" in formatter.text(generator)
    assert list(generator) == [1]
    assert "finished" in formatter.text(generator)
    plain = Plain()
    assert formatter.text(weakref.ref(plain)) == f"<weakref to {__name__}.Plain>"
    with (tmp_path / "f.txt").open("w") as file:
        assert formatter.text(file) == f"<_io.TextIOWrapper name='{tmp_path / 'f.txt'}' mode='w'>"
    assert "secret=" in formatter.text(Model(name="n", secret="top secret text"))
    assert "top secret text" not in formatter.text(Model(name="n", secret="top secret text"))


def test_pydantic_errors_are_told_without_their_inputs() -> None:
    from dap_agent.debuggee.failures import Teller

    with pytest.raises(pydantic.ValidationError) as caught:
        Model.model_validate({"name": 5, "secret": "sk-aaaaaaaaaaaaaaaaaaaaaa"})
    message = Teller(Formatter(Secrets({})), []).tell(caught.value)["message"]
    assert message.startswith("1 validation error for Model\nname\n  Input should be a valid string")


def test_flags() -> None:
    formatter = Formatter(Secrets({}))
    assert formatter.value("x" * 1000)["truncated"] is True
    assert formatter.value("x" * 1000)["length"] == 1000
    assert formatter.value([1])["length"] == 1
    assert "length" not in formatter.value(5)
    assert formatter.value("x", "password") == {"type": "str", "text": "<masked>", "masked": True}
    for shown in (None, True, "", [], function, Plain):
        assert "masked" not in formatter.value(shown, "password")


def test_a_value_that_breaks_hides_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    from dap_agent.debuggee import kinds

    names: dict[str, Any] = {}
    exec(compile("def broken(f, value, depth): raise MemoryError", kinds.__file__, "exec"), names)
    monkeypatch.setitem(kinds._EXACT, id(complex), names["broken"])
    assert Formatter(Secrets({})).text([1, 1j, 2]) == "[1, <unreadable: MemoryError>, 2]"


def test_nothing_is_read_when_time_is_up() -> None:
    from dap_agent.debuggee.reading import Deadline

    formatter = Formatter(Secrets({}), deadline=Deadline(-1))
    assert formatter.value([1]) == {"type": "list", "text": "<not read: out of time>", "truncated": True}


_scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.text() | st.binary()
    | st.dates() | st.datetimes(timezones=st.timezones()) | st.timedeltas() | st.uuids() | st.fractions()
    | st.decimals()
)  # fmt: skip
_anything = st.recursive(
    _scalars,
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers() | st.binary(), inner)
        | st.builds(lambda x: types.SimpleNamespace(value=x), inner)
        | st.builds(collections.deque, st.lists(inner))
        | st.builds(Point, inner, inner)
        | st.builds(ValueError, inner)
    ),
    max_leaves=50,
)


@settings(max_examples=300, deadline=None)
@given(_anything, st.sampled_from([NARROW, WIDE, Limits(), Limits(text=5, string=3, items=1, depth=0, nodes=3)]))
def test_any_value_gives_bounded_json(value: Any, limits: Limits) -> None:
    found = Formatter(Secrets({}), limits).value(value)
    assert len(found["text"]) <= limits.text + 3
    assert "unreadable" not in found["text"] or "unreadable" in repr(value)
    assert json.loads(json.dumps(found)) == found
