"""Hot reload: every shape of change put into a process that goes on, on every Python; random edits."""

import json
import random
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dap_agent.session import payload

from .reload_random import EXPRESSIONS, edited
from .reload_shapes import SHAPES

HARNESS = Path(__file__).parent / "programs" / "reload_harness.py"


@cache
def played(python: Path, folder: Path) -> "dict[str, Any]":
    """All shapes in one process."""
    return dict(zip(SHAPES, run(python, folder, [case._asdict() for case in SHAPES.values()]), strict=True))


def run(python: Path, folder: Path, cases: "list[dict[str, Any]]") -> "list[dict[str, Any]]":
    bundle = folder / "bundle.txt"
    bundle.write_text(payload.bundle(), encoding="utf-8")
    asked = [{**case, "then": list(case["then"])} for case in cases]
    done = subprocess.run(
        [str(python), str(HARNESS), str(bundle)], input=json.dumps(asked), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reload")


def test_every_shape(every_python: Path, folder: Path) -> None:
    wrong = []
    for name, found in played(every_python, folder).items():
        case = SHAPES[name]
        said = {key: text[: len(case.told.get(key, ""))] for key, text in found["told"].items()}
        if found["values"] != case.then or said != case.told or (case.error or "None") not in str(found["error"]):
            wrong.append(f"{name}: {json.dumps(found, indent=1)}")
    assert not wrong, "\n".join(wrong)


def differing(found: "dict[str, Any]", case: "dict[str, Any]") -> str:
    """Where a reloaded module is not what a fresh import is; what it said it could not take does not count."""
    refused = [name for name, said in found["told"].items() if said.startswith("refused")]
    wrong = {
        expression: (value, found["fresh"][expression])
        for expression, value in found["values"].items()
        if value != found["fresh"][expression]
        and not any(f".{name.partition('.')[0]}" in expression for name in refused)
    }
    return f"{wrong}\n{refused}\n{found['told']}\n--- old\n{case['old']}\n--- new\n{case['new']}" if wrong else ""


def test_random_edits_behave_as_a_fresh_import(every_python: Path, folder: Path) -> None:
    cases = []
    for seed in range(120):
        old, new = edited(random.Random(seed))
        cases.append({"old": old, "new": new, "before": "", "then": EXPRESSIONS, "like_fresh": True})
    found = run(every_python, folder, cases)
    wrong = [text for text in map(differing, found, cases) if text]
    assert not wrong, wrong[0]
    refused = sum(said.startswith("refused") for each in found for said in each["told"].values())
    assert refused < 0.02 * sum(len(each["told"]) for each in found)


TWICE = """
first = reload(path, None, "def f(): return 2\\nN = 2")
f = m.f()
broken = reload(path, "ignored: what is in is known", "def f(: return 9")
second = reload(path, None, "def f(): return 3\\nN = 3\\ndef g(): return f()")
"""


def test_a_text_is_compared_with_what_was_put_in_before(every_python: Path, folder: Path) -> None:
    old = "def f(): return 0\nN = 0"
    then = ["f", "[each['files'][0]['error'] for each in (first, broken, second)]", "m.f()", "hasattr(m, 'g')", "m.N"]
    (found,) = run(every_python, folder, [{"old": old, "new": old.replace("0", "1"), "before": TWICE, "then": then}])
    # of the first one the text before is not known: what is there but for functions, N, stays what it was
    f, errors, *values = found["values"].values()
    assert (f, values) == ("2", ["1", "False", "0"])
    assert "[None, 'it does not compile: " in errors and errors.endswith(", None]")
    assert found["told"] == {
        "f": "swapped: ",
        "g": "removed: ",
        "N": "refused: the program itself has changed its value since, which it keeps",
    }


BUSY = """
import threading
over, wrong, calls = threading.Event(), [], [0]
def work():
    while not over.is_set():
        value = m.f(2)
        calls[0] += 1
        if value not in (("one", 2), ("two", 2, 20)):
            wrong.append(value)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
texts = [open(path).read()]
texts.append(texts[0].replace('"one", a', '"two", a, helper(a)') + "def helper(a):\\n    return a * 10\\n")
for number in range(25):
    reload(path, texts[number % 2], texts[(number + 1) % 2])
over.set()
for thread in threads: thread.join()
"""


def test_threads_that_call_meanwhile_meet_the_old_or_the_new_function_and_nothing_between(
    python: Path, folder: Path
) -> None:
    old = 'def f(a):\n    return "one", a\n'
    (found,) = run(
        python, folder, [{"old": old, "new": old + "X = 1\n", "before": BUSY, "then": ["wrong", "calls[0] > 100"]}]
    )
    assert found["values"] == {"wrong": "[]", "calls[0] > 100": "True"}


MIDWAY = """
i = m.g(7)
held = [m.f, m.C.m, i]
before = [(each.__code__, each.__closure__) for each in held]
putting = sys.modules["_dap_agent_debuggee"].load("putting")
whole = putting.File._finish
def fail(self, *each):
    raise MemoryError("no more")
putting.File._finish = fail
text = open(path).read()
error = reload(path, text, NEW)["files"][0]["error"]
putting.File._finish = whole
same = before == [(each.__code__, each.__closure__) for each in held]
state = m.f(), m.C().m(), m.C.a, m.N, i()
"""


def test_a_failure_midway_takes_everything_back(every_python: Path, folder: Path) -> None:
    old = "def f(): return 1\nN = 1\nclass C:\n    a = 1\n    def m(self): return 1\n"
    old += "def g(k):\n    def i(): return k\n    return i\n"
    new = old.replace(" 1", " 2").replace("return k", "return 5")
    then = ["error", "same", "state", "(m.f(), m.C().m(), m.C.a, m.N, i())"]
    before = f"NEW = {new!r}\n{MIDWAY}"
    (found,) = run(every_python, folder, [{"old": old, "new": new, "before": before, "then": then}])
    assert list(found["values"].values()) == [
        "'putting it in failed with MemoryError: no more; it was taken back'",
        "True",
        "(1, 1, 1, 1, 7)",
        "(2, 2, 2, 2, 5)",
    ]


HANDED = """
import dataclasses, functools, logging, pathlib, re, tempfile
TMP = tempfile.gettempdir() + "/never-there-" + str(id(re))
pathlib.Path(TMP).mkdir()
log = []
class Shop:
    def add(self, name):
        log.append(name)
        return name
shop, BLANK, LIMIT = Shop(), "", 3
def seen(name, *_):
    log.append(name)
    return str(name)
A = list(map(seen, ["a"]))
B = sorted(["a"], key=seen)
C = [*map(lambda name: seen(name), ["a"])]
D = functools.reduce(seen, ["a", "b"])
E = list(map(shop.add, ["a"]))
F = re.sub("a", seen, "a")
@dataclasses.dataclass
class Mark:
    name: str
    def set(self):
        log.append(self.name)
I = Mark("a").set()
J = pathlib.Path(TMP, "a").touch()
K = pathlib.Path(TMP, "a").with_suffix(".x").write_text("a")
L = logging.getLogger("shop").setLevel(len("a"))
M = re.compile("a").sub(seen, "a")
N = pathlib.Path("a").with_suffix(".y").as_posix(), ",".join(["a"]).strip(), logging.getLogger("a").getChild("b").name
G = [*map(str.upper, ["a"]), *map(lambda text: text * 2, ["a"])]
H = re.sub("a", BLANK, "a"), max(LIMIT, 1), sorted(["a"], key=len)
"""


def test_no_call_by_another_or_on_what_another_gives_is_made_twice(python: Path, folder: Path) -> None:
    new = HANDED.replace('["a"', '["c", "a"').replace(', "a")', ', "ab")').replace('("a")', '("abc")')
    before = (
        "import pathlib, shutil\ndel m.log[:]\nfor each in pathlib.Path(m.TMP).iterdir(): each.unlink()\n"
        "there = lambda: [each.name for each in pathlib.Path(m.TMP).iterdir()]"
    )
    then = ["m.log", "there()", "m.logging.getLogger('shop').level", "m.G", "m.H", "m.N", "shutil.rmtree(m.TMP)"]
    case = {"old": HANDED, "new": new, "before": before, "then": then}
    (found,) = run(python, folder, [case])
    assert found["values"] == {
        "m.log": "[]",
        "there()": "[]",
        "m.logging.getLogger('shop').level": "1",
        "shutil.rmtree(m.TMP)": "None",
        "m.N": "('abc.y', 'c,a', 'abc.b')",
        "m.G": "['C', 'A', 'cc', 'aa']",
        "m.H": "('b', 3, ['c', 'a'])",
    }
    refused = {name for name, told in found["told"].items() if told.startswith("refused: its value comes of calling ")}
    assert refused == set("ABCDEFIJKLM")


STUCK = """
class Meta(type):
    def __setattr__(cls, name, value):
        if value == 1:
            raise TypeError("once only")
        type.__setattr__(cls, name, value)
m.C = Meta("C", (), {**{k: v for k, v in vars(m.C).items() if k in ("__module__", "__qualname__")}, "a": 1})
"""


def test_what_cannot_be_taken_back_is_said_and_keeps_nothing_else(every_python: Path, folder: Path) -> None:
    old = "def f(): return 1\nclass C:\n    a = 1\n"
    before = f"{STUCK}\nNEW = {old.replace(' 1', ' 2')!r}\n" + MIDWAY.replace("i = m.g(7)\n", "").replace(
        "held = [m.f, m.C.m, i]", "held = [m.f]"
    ).replace("state = m.f(), m.C().m(), m.C.a, m.N, i()", "state = m.f(), m.C.a")
    case = {"old": old, "new": old, "before": before, "then": ["error", "same", "state"]}
    (found,) = run(every_python, folder, [case])
    assert list(found["values"].values()) == [
        "'putting it in failed with MemoryError: no more; not all of it could be taken back (TypeError): "
        "start the program again'",
        "True",
        "(1, 2)",
    ]


UNKNOWN = """
new = "import os\\nN = 2\\nM = 3\\ndef g(): return os.sep\\ndef f(): return g()\\n"
new += "class C:\\n def a(self): return self.b()\\n def b(self): return 2\\n"
told = reload(path, None, new)["files"][0]
state = m.f(), m.N, m.M, o.a()
"""


def test_of_a_text_that_is_not_known_what_is_missing_is_added(every_python: Path, folder: Path) -> None:
    old = "N = 1\ndef f(): return 1\nclass C:\n def a(self): return 1\n"
    (found,) = run(
        every_python, folder, [{"old": old, "new": old, "before": f"o = m.C()\n{UNKNOWN}", "then": ["state"]}]
    )
    assert found["values"] == {"state": "('/', 1, 3, 2)"}
