"""The flight recorder in headless runs: on by default where it is cheap, and the program is what it is without us."""

import textwrap
from pathlib import Path
from typing import Any

import pytest

from dap_agent.session.launch import Stopped, StopRules

SHOP = """
def parse(row):
    name, price = row.split("=")
    return {"name": name.strip(), "price": price.strip() or None}

def load(rows):
    return [parse(row) for row in rows]

def total(lines):
    return sum(float(line["price"]) for line in lines)

def main():
    lines = load(["tea = 3.5", "gift ="])
    print("loaded", len(lines), flush=True)
    print(total(lines))

main()
"""


@pytest.fixture(params=["3.11", "3.13"])
def by_default(request: pytest.FixtureRequest, all_interpreters: dict[str, str]) -> Path:
    return Path(all_interpreters[request.param])


def names(snapshot: Any, on_stack: "bool | None" = None) -> list[str]:
    found = [entry for entry in snapshot.data["called"] if on_stack in (None, entry["on_stack"])]
    return [entry["function"].rpartition(".")[2] for entry in found]


def test_what_returned_before_the_failure(by_default: Path, player: Any) -> None:
    command = player.command(by_default, program=SHOP)
    asked: list[Any] = []

    async def at_stop(stopped: Stopped) -> None:
        asked.append(await stopped.program.history("parse"))

    story = player.play(command, at_stop=at_stop)
    native = player.natively(command)
    assert (story.out, story.err, story.end.exit_status) == (native.out, native.err, native.status)
    (stop,) = story.stops
    assert names(stop) == ["main", "load", "parse", "total"]
    assert names(stop, on_stack=False) == ["load", "parse"]
    parse = stop.data["called"][2]
    assert parse["result"]["text"] == "{'name': 'gift', 'price': None}"
    ((found,), (total,)) = asked[0]["functions"], [asked[0]["total"]]
    assert total == 1
    assert [call["arguments"][0]["value"]["text"] for call in found["read"]] == ["'tea = 3.5'", "'gift ='"]


def test_it_is_off_when_it_is_not_wanted(by_default: Path, player: Any) -> None:
    story = player.play(player.command(by_default, program=SHOP), rules=StopRules(record=False))
    assert "called" not in story.stops[0].data


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.10"])
def test_it_is_on_below(version: str, all_interpreters: dict[str, str], player: Any) -> None:
    command = player.command(Path(all_interpreters[version]), program=SHOP)
    story = player.play(command)
    native = player.natively(command)
    assert (story.out, story.err, story.end.exit_status) == (native.out, native.err, native.status)
    assert names(story.stops[0]) == ["main", "load", "parse", "total"]


HOT = """
import sys, time
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def fails(n):
    try: raise ValueError(n)
    finally: print("too late")
until = time.perf_counter() + 0.4
while time.perf_counter() < until:
    if sys.argv[1] == "python": fib(10)
    else: len("a"); str(5)
fails(1)
"""


@pytest.mark.parametrize("calls", ["python", "c"])
def test_raises_are_seen_beside_it(calls: str, all_interpreters: dict[str, str], player: Any) -> None:
    """On 3.11 it shares the state of each thread with the function that is told of exceptions."""
    command = player.command(Path(all_interpreters["3.11"]), calls, program=HOT)
    (stop,) = player.play(command).stops
    assert any("Stopped at the raise" in note for note in stop.data["notes"])
    assert any("short windows" in note for note in stop.data["notes"])


TESTS = """
import pytest

class Basket:
    def __init__(self, items): self.items = items
    def __repr__(self): return describe(self)

def describe(basket): return "Basket"
def count(basket): return len(basket.items) + 1
def setting_up(): return 1
def tearing_down(): pass
def elsewhere(): return 2

@pytest.fixture
def one():
    yield setting_up()
    tearing_down()

def test_good(): assert elsewhere() == 2

def test_bad(one):
    basket = Basket([1, 2])
    assert count(basket) == 2, describe

@pytest.fixture
def broken(): return {}[setting_up()]

def test_set_up(broken): pass

def test_last(): count(Basket([])) / 0
"""


PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider")


@pytest.mark.network
def test_under_pytest_it_begins_at_the_call(by_default: Path, player: Any, with_packages: Any) -> None:
    (player.folder / "test_shop.py").write_text(TESTS, encoding="utf-8")
    command = player.command(with_packages(by_default, ("pytest",)), *PYTEST, "test_shop.py")
    story = player.play(command)
    assert [names(stop) for stop in story.stops] == [
        ["test_bad", "__init__", "count"],
        ["broken", "setting_up"],
        ["test_last", "__init__", "count"],
    ]
    native = player.natively(command)
    assert story.end.exit_status == native.status


def test_children_record_for_themselves(by_default: Path, player: Any) -> None:
    program = """
    import multiprocessing, subprocess, sys
    def before(): return 1
    def prepared(n): return n - 3
    def work(n): return 1 / prepared(n)
    if __name__ == "__main__":
        before()
        if len(sys.argv) > 1:
            work(3)
        for how in ("fork", "spawn"):
            child = multiprocessing.get_context(how).Process(target=work, args=(3,))
            child.start(); child.join()
        subprocess.run([sys.executable, __file__, "child"])
    """
    story = player.play(player.command(by_default, program=textwrap.dedent(program)))
    assert [names(stop) for stop in story.stops] == [
        ["work", "prepared"],
        ["work", "prepared"],
        ["before", "work", "prepared"],
    ]


def test_a_stopped_programs_own_calls_are_no_history(by_default: Path, player: Any) -> None:
    asked: list[Any] = []

    async def at_stop(stopped: Stopped) -> None:
        for jailed in (True, False):
            await stopped.program.evaluate(0, "[parse('a=1') for _ in range(1000)]", jailed=jailed)
        asked.append(await stopped.program.history("parse"))

    player.play(player.command(by_default, program=SHOP), at_stop=at_stop)
    (found,) = asked[0]["functions"]
    assert found["calls"] == 2


def test_a_jail_sees_no_effect_of_ours(by_default: Path, player: Any) -> None:
    answers: list[Any] = []

    async def at_stop(stopped: Stopped) -> None:
        code = "def hot(n):\n    return n\nfor n in range(100000):\n    hot(n); parse('a=1')\n'done'"
        answers.append(await stopped.program.evaluate(0, code, jailed=True))

    player.play(player.command(by_default, program=SHOP), at_stop=at_stop)
    assert answers[0]["error"] is None
    assert answers[0]["effects"] == []


OUTPUT = {
    "recursion": "def down(n):\n    return down(n + 1)\ndown(0)\n",
    "mutual": "import sys\n"
    + "\n".join(f"def f{n}(x):\n    return f{(n + 1) % 7}(x + 1)" for n in range(7))
    + "\ntry: f0(0)\nexcept RecursionError as e: print(type(e), e)\n",
    "threads": "import threading\ndef work(n): return n\nthreads = [threading.Thread(target=lambda: [work(n) for n in "
    "range(20000)]) for _ in range(8)]\nfor t in threads: t.start()\nfor t in threads: t.join()\n"
    "print(threading.active_count(), [t.name for t in threading.enumerate()])\n",
    "finalizers": "class D:\n    def __init__(self): self.me = self\n    def __del__(self): print('gone')\n"
    "def hot(n): return n\nfor n in range(10000): hot(n)\nd = D()\n",
    "atexit": "import atexit\ndef bye(n): print('bye', n)\natexit.register(bye, 1)\n"
    "for n in range(5000): (lambda n: n)(n)\n",
    "warnings": "import os, sys, warnings\nwarnings.simplefilter('error', DeprecationWarning)\ndef hot(n): return n\n"
    "for n in range(10000): hot(n)\npid = os.fork()\nif not pid: os._exit(0)\nos.waitpid(pid, 0)\nprint('forked')\n",
    "profiler": "import cProfile, pstats, io\ndef f(n): return n\np = cProfile.Profile()\np.enable()\n"
    "for n in range(1000): f(n)\np.disable()\n"
    "s = pstats.Stats(p)\nprint([v[0] for k, v in s.stats.items() if k[2] == 'f'])\n",
    "settrace": "import sys\nseen = []\ndef f(n):\n    m = n\n    return m\ndef trace(frame, event, arg):\n"
    "    seen.append((frame.f_code.co_name, event, sorted(frame.f_locals)))\n    return trace\nsys.settrace(trace)\n"
    "f(1); f(2)\nsys.settrace(None)\nprint(seen)\n",
    "locals": "import inspect\ndef g(a):\n    b = 2\n    yield a\n    yield b\nx = g(1)\nheld = x.gi_frame.f_locals\n"
    "print(held)\nnext(x)\nprint(inspect.getgeneratorlocals(x), held is not None)\nx.close()\n",
}


@pytest.mark.parametrize("name", OUTPUT)
def test_output_and_status_are_as_without_us(by_default: Path, player: Any, name: str) -> None:
    command = player.command(by_default, program=OUTPUT[name])
    native = player.natively(command)
    for rules in (StopRules(), StopRules("never", record=True)):
        story = player.play(command, rules=rules)
        assert (story.out, story.err, story.end.exit_status) == (native.out, native.err, native.status)
        assert story.end.failures == ()


def test_the_programs_environment_is_what_it_was(by_default: Path, player: Any) -> None:
    program = (
        "import gc, os, sys, threading\ndef f(): return 1\nf()\nprint(sys.getprofile(), sys.gettrace(), gc.callbacks, "
    )
    program += "threading.active_count(), [k for k in os.environ if 'BOOT' in k])\n"
    command = player.command(by_default, program=program)
    assert player.play(command).out == player.natively(command).out
