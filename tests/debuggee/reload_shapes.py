"""The shapes of changes that hot reload is given, and what is to become of each."""

# ruff: noqa: E501 - a table of texts: old and new one stand side by side

from typing import NamedTuple


class Case(NamedTuple):
    """One change.

    Args:
        old, new: the module's texts.
        then: expressions after it -> their repr.
        told: functions and names -> the beginning of what is said of them; None for exactly nothing else.
        before: statements on the old module `m`.
        error: a part of the file's error.
    """

    old: str
    new: str
    then: "dict[str, str]"
    told: "dict[str, str]"
    before: str = ""
    error: str = ""


SHAPES: "dict[str, Case]" = {
    "function": Case("def f(): return 1", "def f(): return 2", {"m.f()": "2", "other.f()": "2"}, {"f": "swapped: "}),
    "signature": Case("def f(a): return a", "def f(a, b=3): return a, b", {"other.f(1)": "(1, 3)"}, {"f": "swapped: "}),
    "default": Case("def f(a=1): return a", "def f(a=2): return a", {"m.f()": "2"}, {"f": "swapped: "}),
    "keyword default": Case("def f(*, a=1): return a", "def f(*, a=2): return a", {"other.f()": "2"}, {"f": "swapped: "}),
    "docstring": Case(
        "def f():\n 'one'\n return 1", "def f():\n 'two'\n return 1", {"m.f.__doc__": "'two'"}, {"f": "swapped: "}
    ),
    "annotation": Case(
        "def f(a: int, *b: str) -> int: return a", "def f(a: str, *b: str) -> int: return a",
        {"m.f.__annotations__": "{'a': <class 'str'>, 'b': <class 'str'>, 'return': <class 'int'>}"}, {"f": "swapped: "},
    ),
    "method, bound before": Case(
        "class C:\n def m(self): return 1", "class C:\n def m(self): return 2", {"b()": "2", "isinstance(b.__self__, m.C)": "True"},
        {"C.m": "swapped: "}, "b = m.C().m",
    ),
    "class method, static method, property": Case(
        "class C:\n @classmethod\n def c(cls): return 1\n @staticmethod\n def s(): return 1\n @property\n def p(self): return 1",
        "class C:\n @classmethod\n def c(cls): return 2\n @staticmethod\n def s(): return 2\n @property\n def p(self): return 2",
        {"(o.c(), o.s(), o.p)": "(2, 2, 2)"}, {"C.c": "swapped: ", "C.s": "swapped: ", "C.p": "swapped: "}, "o = m.C()",
    ),
    "setter added to a property": Case(
        "class C:\n @property\n def p(self): return 1",
        "class C:\n @property\n def p(self): return 1\n @p.setter\n def p(self, v): self.v = v",
        {"[setattr(o, 'p', 5), o.v]": "[None, 5]"}, {"C.p": "added: "}, "o = m.C()",
    ),
    "cached property": Case(
        "import functools\nclass C:\n @functools.cached_property\n def p(self): return 1",
        "import functools\nclass C:\n @functools.cached_property\n def p(self): return 2", {"m.C().p": "2"}, {"C.p": "swapped: "},
    ),
    "decorated, by every reference": Case(
        "import functools\ndef d(f):\n @functools.wraps(f)\n def w(): return f() * 10\n return w\n@d\ndef f(): return 1",
        "import functools\ndef d(f):\n @functools.wraps(f)\n def w(): return f() * 100\n return w\n@d\ndef f(): return 2",
        {"m.f()": "200", "kept()": "200"}, {"f": "swapped: ", "d.<locals>.w": "swapped: "}, "kept = m.f",
    ),
    "new decorator": Case(
        "def d(f): return lambda: f() + 1\ndef f(): return 1", "def d(f): return lambda: f() + 1\n@d\ndef f(): return 1",
        {"m.f()": "2", "other.f()": "2"}, {"f": "swapped: with its new decorators"},
    ),
    "lru_cache": Case(
        "import functools\n@functools.lru_cache(None)\ndef f(): return 1", "import functools\n@functools.lru_cache(None)\ndef f(): return 2",
        {"m.f()": "2"}, {"f": "swapped: its cache was emptied"}, "m.f()",
    ),
    "partial and single dispatch": Case(
        "import functools\ndef g(a): return a\nf = functools.partial(g, 1)\n@functools.singledispatch\ndef s(a): return 0\n@s.register(int)\ndef _(a): return 1",
        "import functools\ndef g(a): return a + 1\nf = functools.partial(g, 1)\n@functools.singledispatch\ndef s(a): return 0\n@s.register(int)\ndef _(a): return 2",
        {"other.f()": "2", "m.s(3)": "2"}, {"g": "swapped: ", "_": "swapped: "},
    ),
    "closure that exists": Case(
        "def o(k):\n def i(): return k\n return i", "def o(k):\n def i(): return k + 1\n return i", {"i()": "6", "m.o(1)()": "2"},
        {"o.<locals>.i": "swapped: "}, "i = m.o(5)",
    ),
    "closure that uses one variable less": Case(
        "def o(k, n):\n def i(): return k, n\n return i", "def o(k, n):\n def i(): return n\n return i", {"i()": "2", "m.o(3, 4)()": "4"},
        {"o": "swapped: ", "o.<locals>.i": "swapped: "}, "i = m.o(1, 2)",
    ),
    "closure that uses one variable more": Case(
        "def o(k, n):\n def i(): return k\n return i", "def o(k, n):\n def i(): return k, n\n return i", {"i()": "1", "m.o(3, 4)()": "(3, 4)"},
        {"o.<locals>.i": "refused: it uses n of the function around it", "o": "swapped: "}, "i = m.o(1, 2)",
    ),
    "closure whose function still runs": Case(
        "def o(k, n):\n def i(): return k\n yield i\n", "def o(k, n):\n def i(): return k, k\n yield i\n", {"i()": "(1, 1)"},
        {"o.<locals>.i": "swapped: "}, "g = m.o(1, 2); i = next(g)",
    ),
    "lambda kept elsewhere": Case("f = lambda: 1", "f = lambda: 2", {"f()": "2", "m.f()": "2"}, {"<lambda>": "swapped: ", "f": "swapped: "}, "f = m.f"),
    "running generator": Case(
        "def g():\n yield 1\n yield 2\n", "def g():\n yield 5\n yield 6\n", {"next(g)": "2", "next(m.g())": "5"},
        {"g": "swapped: 1 generator that has begun keeps its old code"}, "g = m.g(); next(g)",
    ),
    "coroutines and asynchronous generators": Case(
        "async def c():\n await w()\n return 1\nasync def g():\n yield 1\nimport types\n@types.coroutine\ndef w(): yield",
        "async def c():\n await w()\n return 2\nasync def g():\n yield 2\nimport types\n@types.coroutine\ndef w(): yield",
        {"[c.close(), d.send(None), 0][2]": "0"},
        {"c": "swapped: 2 coroutines that have begun keep their old code", "g": "swapped: 1 asynchronous generator"},
        "c, d, g = m.c(), m.c(), m.g(); c.send(None)",
    ),
    "running call": Case(
        "import threading\nready, go = threading.Event(), threading.Event()\nfound = []\ndef f():\n ready.set(); go.wait(); found.append(1)",
        "import threading\nready, go = threading.Event(), threading.Event()\nfound = []\ndef f():\n ready.set(); go.wait(); found.append(2)",
        {"[m.go.set(), t.join(), m.found, m.f(), m.found][2:]": "[[1, 2], None, [1, 2]]"},
        {"f": "swapped: the call that runs in thread worker keeps its old code until it returns"},
        "import threading; t = threading.Thread(target=m.f, name='worker'); t.start(); m.ready.wait()",
    ),
    "constant": Case("C = 1\nD = 'x'", "C = 2\nD = 'x'", {"(m.C, other.C)": "(2, 2)"}, {"C": "swapped: "}),
    "constants of an expression": Case(
        "import re\nA = 2\nR = re.compile('a' * A)\nT = tuple(sorted({1}))", "import re\nA = 2\nR = re.compile('b' * A)\nT = tuple(sorted({2}))",
        {"(m.R.pattern, m.T)": "('bb', (2,))"}, {"R": "swapped: ", "T": "swapped: "},
    ),
    "constant that the program has changed": Case(
        "C = {}\nN = 1", "C = {'a': 1}\nN = 2", {"(m.C, m.N)": "({'k': 0}, 7)"},
        {"C": "refused: the program itself has changed its value", "N": "refused: the program itself"}, "m.C['k'] = 0; m.N = 7",
    ),
    "state that stays": Case(
        "STATE = []\ndef f(): return 1", "STATE = []\n\n\ndef f(): return 2", {"(m.STATE, m.STATE is s)": "([7], True)"}, {"f": "swapped: "},
        "s = m.STATE; s.append(7)",
    ),
    "value of a call with effects": Case(
        "made = []\ndef make(n):\n made.append(n)\n return n\nX = make(1)", "made = []\ndef make(n):\n made.append(n)\n return n\nX = make(2)",
        {"(m.X, m.made)": "(1, [1])"}, {"X": "refused: its value comes of calling make, which may have effects"},
    ),
    "global that functions rebind": Case(
        "x = 1 + 1\nN = x\ndef f():\n global N\n N = 5", "x = 1 + 1\nN = x + 1\ndef f():\n global N\n N = 5", {"m.N": "2"},
        {"N": "refused: the program itself gives it other values"},
    ),
    "statements with effects": Case(
        "seen = []\nseen.append(1)", "seen = []\nseen.append(1)\nseen.append(2)\nfor i in range(3): seen.append(i)", {"m.seen": "[1]"},
        {"line 3": "refused: such a statement of a module runs at its start only", "line 4": "refused: "},
    ),
    "function below a condition": Case(
        "import sys\nif sys:\n def f(): return 1\nelse:\n def f(): return 0", "import sys\nif sys:\n def f(): return 2\nelse:\n def f(): return 0",
        {"other.f()": "2"}, {"f": "swapped: "},
    ),
    "new names": Case(
        "def f(): return 1", "import math\nfrom os import sep as s\nN = len('abc')\ndef g(): return math.floor(N + 0.5)\nclass K:\n v = 4\ndef f(): return g(), K.v, s",
        {"m.f()": "(3, 4, '/')"}, {"f": "swapped: ", "g": "added: ", "K": "added: ", "N": "swapped: ", "math": "swapped: ", "s": "swapped: "},
    ),
    "removed names": Case(
        "import math\ndef f(): return 1\nN = 1\nclass K: pass\ndef g(): return f", "def g(): return 1",
        {"[hasattr(m, n) for n in ('f', 'N', 'K', 'math')]": "[False, False, False, False]", "other.f()": "1"},
        {"f": "removed: ", "N": "removed: ", "K": "removed: ", "math": "removed: ", "g": "swapped: "},
    ),
    "import that fails": Case(
        "def f(): return 1", "import nothing_of_that_name\ndef f(): return 2", {"m.f()": "2"},
        {"f": "swapped: ", "nothing_of_that_name": "refused: running it failed with ModuleNotFoundError"},
    ),
    "class attributes": Case(
        "class C:\n a = 1\n b = 2\n c = []", "class C:\n a = 3\n c = [1]\n d = 4", {"(o.a, hasattr(o, 'b'), o.c, o.d)": "(3, False, [0], 4)"},
        {"C.a": "swapped: ", "C.b": "removed: ", "C.c": "refused: the program itself", "C.d": "swapped: "}, "o = m.C(); o.c.append(0)",
    ),
    "methods added and removed": Case(
        "class C:\n def a(self): return 1\n def __len__(self): return 1", "class C:\n def b(self): return super().__repr__()[:1] + __class__.__name__",
        {"(o.b(), hasattr(o, 'a'))": "('<C', False)", "len(o)": "TypeError"}, {"C.a": "removed: ", "C.b": "added: ", "C.__len__": "removed: "}, "o = m.C()",
    ),
    "method that begins to use super": Case(
        "class B:\n def f(self): return 1\nclass C(B):\n def f(self): return 2", "class B:\n def f(self): return 1\nclass C(B):\n def f(self): return super().f() + 4",
        {"o.f()": "5"}, {"C.f": "swapped: "}, "o = m.C()",
    ),
    "private names": Case(
        "class C:\n def __init__(self): self.__x = 1\n def f(self): return self.__x", "class C:\n def __init__(self): self.__x = 1\n def f(self): return self.__g()\n def __g(self): return self.__x + 1",
        {"o.f()": "2"}, {"C.f": "swapped: ", "C.__g": "added: "}, "o = m.C()",
    ),
    "nested class": Case(
        "class A:\n class B:\n  v = 1\n  def f(self): return 1", "class A:\n class B:\n  v = 2\n  def f(self): return 2\n  def g(self): return 3",
        {"(o.f(), o.g(), o.v)": "(2, 3, 2)"}, {"A.B.f": "swapped: ", "A.B.g": "added: ", "A.B.v": "swapped: "}, "o = m.A.B()",
    ),
    "bases": Case(
        "class A:\n def f(self): return 1\nclass B:\n def f(self): return 2\nclass C(A): pass", "class A:\n def f(self): return 1\nclass B:\n def f(self): return 2\nclass C(B): pass",
        {"(o.f(), isinstance(o, m.B))": "(2, True)"}, {"C": "swapped: with its new bases"}, "o = m.C()",
    ),
    "bases of another layout": Case(
        "class C:\n def f(self): return 1", "class C(dict):\n def f(self): return 2", {"o.f()": "2"},
        {"C": "refused: its bases differ", "C.f": "swapped: "}, "o = m.C()",
    ),
    "metaclass": Case(
        "class M(type): pass\nclass C:\n def f(self): return 1", "class M(type): pass\nclass C(metaclass=M):\n def f(self): return 2", {"o.f()": "2"},
        {"C": "refused: its metaclass", "C.f": "swapped: "}, "o = m.C()",
    ),
    "slots": Case(
        "class C:\n __slots__ = ('a',)\n def f(self): return 1", "class C:\n __slots__ = ('a', 'b')\n def f(self): return 2", {"o.f()": "2"},
        {"C.__slots__": "refused: the slots of a class are made with it", "C.f": "swapped: "}, "o = m.C()",
    ),
    "enum": Case(
        "import enum\nclass E(enum.Enum):\n a = 1\n def f(self): return 1", "import enum\nclass E(enum.Enum):\n a = 2\n b = 3\n def f(self): return 2",
        {"(m.E.a.f(), m.E.a.value, len(m.E))": "(2, 1, 1)"},
        {"E.a": "refused: the members of an Enum", "E.b": "refused: the members of an Enum", "E.f": "swapped: "},
    ),
    "named tuple": Case(
        "from typing import NamedTuple\nclass P(NamedTuple):\n a: int = 1\n def f(self): return 1", "from typing import NamedTuple\nclass P(NamedTuple):\n a: int = 2\n def f(self): return 2",
        {"(m.P().f(), m.P().a)": "(2, 1)"}, {"P.a": "refused: the fields of a named tuple", "P.f": "swapped: "},
    ),
    "dataclass": Case(
        "import dataclasses\n@dataclasses.dataclass(order=True)\nclass D:\n a: int\n b: list = dataclasses.field(default_factory=list)\n def f(self): return 1",
        "import dataclasses\n@dataclasses.dataclass(order=True)\nclass D:\n a: int = 5\n c: str = 'x'\n b: list = dataclasses.field(default_factory=list)\n def f(self): return 2",
        {"m.D()": "D(a=5, c='x', b=[])", "(o.f(), o.c, o < m.D(2, 'y'), isinstance(o, m.D))": "(2, 'x', True, True)", "m.D(1, 'q', [2]).b": "[2]"},
        {"D": "swapped: with its new fields", "D.f": "swapped: "}, "o = m.D(1)",
    ),
    "types of fields": Case(
        "import dataclasses\n@dataclasses.dataclass\nclass D:\n a: list\n b: int = 1\n def f(self): return 1",
        "import dataclasses\nfrom typing import List\n@dataclasses.dataclass\nclass D:\n a: List[str]\n b: int = 1\n c: str = ''\n def f(self): return 2",
        {"[f.type.__name__ for f in dataclasses.fields(m.D)[1:]]": "['int', 'str']",
         "(m.D.__annotations__['a'], m.D.__annotations__['c'], dataclasses.fields(m.D)[0].type)": "(typing.List[str], <class 'str'>, typing.List[str])"},
        {"D": "swapped: with its new fields", "D.f": "swapped: ", "List": "swapped: "}, "import dataclasses",
    ),
    "annotations of a class": Case(
        "class C:\n a: int = 1\n def f(self): return 1", "class C:\n a: str = 1\n def f(self): return 2",
        {"m.C.__annotations__": "{'a': <class 'str'>}"}, {"C.a": "swapped: ", "C.f": "swapped: "},
    ),
    "dataclass with a wrong field": Case(
        "import dataclasses\n@dataclasses.dataclass\nclass D:\n a: int = 1\n def f(self): return 1", "import dataclasses\n@dataclasses.dataclass\nclass D:\n a: int = 1\n b: int\n def f(self): return 2",
        {"(m.D(), m.D().f())": "(D(a=1), 2)"}, {"D": "refused: @dataclass refuses the new fields", "D.f": "swapped: "},
    ),
    "C code": Case("f = len", "f = max", {"m.f('ab')": "'b'", "other.f('ab')": "'b'"}, {"f": "swapped: "}),
    "lines that have moved": Case(
        "def f():\n return 1\ndef g():\n x = 1\n raise ValueError(x)", "\n\n# more\ndef f():\n return 2\n\n\ndef g():\n x = 1\n\n raise ValueError(x)",
        {"g.__code__.co_firstlineno": "8", "line(g)": "11"}, {"f": "swapped: "},
        "g = m.g\ndef line(f):\n try: f()\n except ValueError as error: return error.__traceback__.tb_next.tb_lineno",
    ),
    "text that does not compile": Case("def f(): return 1", "def f(: return 2", {"m.f()": "1"}, {}, "", "it does not compile: "),
    "same name on the same line elsewhere": Case(
        "class A:\n def f(self): return 1\nclass B:\n def f(self): return 2", "class B:\n def f(self): return 3\nclass A:\n def f(self): return 1",
        {"(a.f(), b.f())": "(1, 3)"}, {"B.f": "swapped: "}, "a, b = m.A(), m.B()",
    ),
}  # fmt: skip
