"""The flight recorder inside a program: what it remembers, what it leaves alone, and what it must never do."""

from pathlib import Path
from typing import Any

import pytest

START = """
import sys
recorder = sys.modules["_dap_agent_debuggee"].load("recorder")
sys.modules["_dap_agent_debuggee"].load("hooks").install(lambda: False)
assert recorder.start()
"""


@pytest.fixture(params=["3.8", "3.11", "3.12", "3.13"])
def switched_on(request: pytest.FixtureRequest, all_interpreters: dict[str, str]) -> Path:
    """A Python on which it can be switched on."""
    return Path(all_interpreters[request.param])


@pytest.fixture(params=["3.12", "3.13"])
def by_default(request: pytest.FixtureRequest, all_interpreters: dict[str, str]) -> Path:
    """A Python on which it is on by default."""
    return Path(all_interpreters[request.param])


def called(outcome: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = outcome[0]["called"]
    return found


def named(outcome: Any, name: str) -> dict[str, Any]:
    (found,) = [entry for entry in called(outcome) if entry["function"].endswith(name)]
    return found


def texts(entry: dict[str, Any]) -> dict[str, str]:
    return {pair["name"]: pair["value"]["text"] for pair in entry["arguments"]}


def test_order_counts_arguments_and_results(switched_on: Path, ask: Any) -> None:
    program = """
import json
class Shop:
    def __init__(self, name): self.name = name
    def price(self, what, *more, tax=0.2, **rest): return {"tea": 3.5}[what]
def first(a): return a
def second(b, c=2): return first(b)
def risky(x):
    try: return Shop("corner").price(x)
    except KeyError: return None
def fails(x): raise ValueError(x)
second([1]); first("again"); risky("tea"); risky("gift"); json.dumps({})
fails(1)
"""
    outcome = ask(switched_on, START + program, "snapshot", ("history", {"order": "oldest"}))
    assert [entry["function"].rpartition(".")[2] for entry in called(outcome)] == [
        "second", "first", "risky", "__init__", "price", "fails",
    ]  # fmt: skip
    assert [entry["calls"] for entry in called(outcome)] == [1, 2, 2, 2, 2, 1]
    assert [entry["on_stack"] for entry in called(outcome)] == [False] * 5 + [True]
    assert not any(entry["thinned"] for entry in called(outcome))
    assert texts(named(outcome, "second")) == {"b": "[1]", "c": "2"}
    assert named(outcome, "second")["result"]["text"] == "[1]"
    assert texts(named(outcome, "first")) == {"a": "'again'"}
    price = texts(named(outcome, "price"))
    assert price == {"self": "<Shop name='corner'>", "what": "'gift'", "tax": "0.2", "more": "()", "rest": "{}"}
    assert named(outcome, "risky")["line"] == 13
    found = {entry["function"].rpartition(".")[2]: entry for entry in outcome[1]["functions"]}
    assert outcome[1]["total"] == len(found) == 6
    assert [call["order"] for call in found["first"]["read"]] == [2, 3]
    assert [call["called_from"]["line"] for call in found["first"]["read"]] == [12, 17]
    assert [call["result"]["text"] for call in found["first"]["read"]] == ["[1]", "'again'"]


def test_what_left_a_call(by_default: Path, ask: Any) -> None:
    program = """
class Odd(Exception): pass
def deep(x): raise Odd(x)
def handled(x):
    try: deep(x)
    except Odd: return "handled"
def passes(x): deep(x)
handled(1)
passes(2)
"""
    outcome = ask(by_default, START + program, "snapshot", "history")
    assert named(outcome, "deep")["left_with"] == "Odd"
    assert named(outcome, "handled")["left_with"] is None
    assert named(outcome, "passes")["left_with"] == "Odd"
    (deep,) = [entry for entry in outcome[1]["functions"] if entry["function"] == "deep"]
    assert [(call["left_with"], call["result"]) for call in deep["read"]] == [("Odd", None)] * 2


def test_a_hot_function_leaves_room_and_its_newest_calls_are_seen(by_default: Path, ask: Any) -> None:
    program = """
import time
def early(n): return n
def hot(n): return n
def late(n): return n
early(1)
until = time.perf_counter() + 0.6
count = 0
while time.perf_counter() < until:
    hot(count); count += 1
late(count)
def after(): return count
{}["x"]
"""
    outcome = ask(by_default, START + program, "snapshot", "history")
    assert [entry["function"] for entry in called(outcome)] == ["early", "hot", "late"]
    hot = named(outcome, "hot")
    assert hot["thinned"]
    assert 400 <= hot["calls"] < outcome.after / 4
    # within the last part of the run: it was seen again and again
    assert int(texts(hot)["n"]) > outcome.after / 2
    assert int(texts(named(outcome, "late"))["n"]) == outcome.after


def test_a_function_that_takes_its_time_is_seen_to_its_last_call(by_default: Path, ask: Any) -> None:
    program = """
import time
def steady(n): return n
for n in range(600):
    steady(n)
    until = time.perf_counter() + 0.001
    while time.perf_counter() < until: pass
{}["x"]
"""
    outcome = ask(by_default, START + program, "snapshot")
    steady = named(outcome, "steady")
    assert (steady["calls"], steady["thinned"]) == (600, False)
    assert int(texts(steady)["n"]) >= 590


def test_many_functions_are_thinned_and_the_oldest_forgotten(by_default: Path, ask: Any) -> None:
    program = """
import time
space = {"__file__": __file__}
exec(compile("\\n".join("def f%d(a): return a" % n for n in range(3000)), __file__, "exec"), space)
functions = [space["f%d" % n] for n in range(3000)]
began = time.perf_counter()
for i in range(300):
    for function in functions: function(i)
def after():
    memory = recorder._memory
    return [len(memory.records), sum(record.calls for record in memory.records.values())]
{}["x"]
"""
    outcome = ask(by_default, START + program, "snapshot", ("history", {"count": 50, "start": 10}))
    kept, calls = outcome.after
    assert kept <= 1000
    assert calls < 300_000
    assert len(called(outcome)) == 20
    assert len(outcome[1]["functions"]) == 50


def test_nothing_is_kept_alive(switched_on: Path, ask: Any, all_interpreters: dict[str, str]) -> None:
    switched_on_by_default = str(switched_on) in (all_interpreters["3.12"], all_interpreters["3.13"])
    program = """
import gc, weakref
class Thing: pass
class Meta(type): pass
watched = []
def watch(x): watched.append(weakref.ref(x)); return x
def takes(thing, *rest, **named):
    watch(thing)
    del thing, rest, named
    gc.collect()
    return [ref() is None for ref in watched]
def makes():
    class Local(metaclass=Meta): pass
    watch(Local)
    return takes(Local(), Thing(), key=Thing())
def work():
    def inner(): return 1
    watch(inner); inner()
    return inner
gone_while_running = takes(Thing())
makes(); work()
def generator(thing):
    yield thing
list(generator(watch(Thing())))
try: (lambda thing: 1 / 0)(watch(Thing()))
except ZeroDivisionError: pass
gc.collect()
alive = [ref() for ref in watched]
def after(): return [gone_while_running, [repr(each) for each in alive if each is not None]]
{}["x"]
"""
    outcome = ask(switched_on, START + program, "snapshot")
    # below 3.12 it is the profile function that makes the interpreter keep the values while the call lasts
    assert outcome.after[1] == []
    assert outcome.after[0] == [True] or not switched_on_by_default
    assert "takes" in [entry["function"] for entry in called(outcome)]


def test_what_a_call_had_dies_with_it(switched_on: Path, ask: Any) -> None:
    """A file is closed and a lock let go where the program counts on it, not at some collection of garbage."""
    program = """
import gc
gc.disable()
gc.collect()
alive = 0
class Thing:
    def __init__(self):
        global alive
        alive += 1
    def __del__(self):
        global alive
        alive -= 1
counts = []
def raises():
    thing = Thing()
    raise ValueError(thing)
def returns(given):
    thing = Thing()
    return len([thing, given])
def gives(given): return given
def yields(given):
    thing = Thing()
    yield given
async def awaits(given): return given
def nested(given): return returns(given)
def run(coroutine):
    try: coroutine.send(None)
    except StopIteration: pass
def once():
    try: raises()
    except ValueError: pass
    counts.append(alive)
    returns(Thing())
    counts.append(alive)
    gives(Thing())
    counts.append(alive)
    list(yields(Thing()))
    counts.append(alive)
    run(awaits(Thing()))
    counts.append(alive)
    nested(Thing())
    counts.append(alive)
once(); once()
def after(): return counts
{}["x"]
"""
    outcome = ask(switched_on, START + program, "snapshot")
    assert outcome.after == [0] * 12
    assert {"raises", "returns", "gives", "nested"} <= {entry["function"] for entry in called(outcome)}


def test_a_recursion_that_meets_the_limit_is_handled_as_ever(switched_on: Path, ask: Any) -> None:
    """Below 3.10 an error at the limit that is swallowed leaves the next one fatal: "Cannot recover from ..."."""
    program = """
class Thing:
    def __del__(self): gone.append(1)
gone, met = [], []
def plain(n): return plain(n + 1)
def holds(n):
    thing = Thing()
    return holds(n + 1) + holds(n + 1)
def reads(first, *rest, **named): return reads([first], first, *rest[:3], key=named)
def swallows(n):
    try: return swallows(n + 1)
    except RecursionError: return n
def caller(n): return even(n + 1)
def even(n): return caller(n + 1)
for function in (plain, holds, reads, swallows, caller) * 3:
    try: function(0)
    except RecursionError as error: met.append(function.__name__)
    else: met.append("swallows")
def after(): return met, len(gone) > 300
{}["x"]
"""
    outcome = ask(switched_on, START + program, "snapshot")
    assert outcome.after == [["plain", "holds", "reads", "swallows", "caller"] * 3, True]


def test_no_code_of_the_users_runs(switched_on: Path, ask: Any) -> None:
    program = """
ran = []
class Meta(type):
    def __getattribute__(cls, name): ran.append(name); return type.__getattribute__(cls, name)
    def __instancecheck__(cls, other): ran.append("instancecheck"); return False
    def __hash__(cls): ran.append("hash of the class"); return 1
    def __eq__(cls, other): ran.append("eq of the class"); return False
class Hostile(metaclass=Meta):
    def __init__(self): self.x = 1
    def __getattribute__(self, name): ran.append(name); raise RuntimeError(name)
    def __repr__(self): ran.append("repr"); raise RuntimeError
    __str__ = __len__ = __iter__ = __bool__ = __repr__
    def __eq__(self, other): ran.append("eq"); raise RuntimeError
    def __hash__(self): ran.append("hash"); raise RuntimeError
    @property
    def __class__(self): ran.append("class"); raise RuntimeError
class List(list):
    def __iter__(self): ran.append("iter")
    def __len__(self): ran.append("len"); return 7
    def __repr__(self): ran.append("list repr")
class Text(str):
    def __str__(self): ran.append("str")
    def __len__(self): ran.append("text len"); return 7
class Error(Exception):
    def __getattribute__(self, name): ran.append("of error"); return Exception.__getattribute__(self, name)
    __str__ = __repr__ = lambda self: ran.append("str of error")
class Handler(Hostile):
    def __call__(self, *args): ran.append("call")
import _signal
hostile = object.__new__(Hostile)
def f(a, b, c): return a
def g(a): raise Error()
del ran[:]
f(hostile, List([1, 2]), Text("abc"))
try: g(hostile)
except BaseException: pass
_signal.signal(_signal.SIGUSR1, object.__new__(Handler))
g_again = lambda n: n
g_again(1)
_signal.signal(_signal.SIGUSR1, _signal.SIG_DFL)
seen = ran[:]
def after(): return seen
{}["x"]
"""
    outcome = ask(switched_on, START + program, "snapshot")
    assert outcome.after == []
    assert texts(named(outcome, "f"))["b"] == "List([1, 2])"


def test_secrets_are_masked_also_where_they_were_met_earlier(switched_on: Path, ask: Any) -> None:
    program = """
def echo(text): return text
def login(user, password): return True
secret = "erom-dna-hs1fdrows"[::-1]
echo(secret)
login("me", secret)
echo("Authorization: Bearer " + "9876543210ponmlkjihgfedcba"[::-1])
del secret
{}["x"]
"""
    outcome = ask(switched_on, START + program, "snapshot", "history")
    assert "swordf1sh" not in str(outcome.answers)
    assert "abcdefghijklmnop0123456789" not in str(outcome.answers)
    assert texts(named(outcome, "login")) == {"user": "'me'", "password": "<masked>"}


def test_threads_and_tasks(switched_on: Path, ask: Any) -> None:
    program = """
import asyncio, threading
def in_thread(n): return n
async def leaf(n):
    await asyncio.sleep(0)
    return n
async def main():
    await asyncio.gather(*(asyncio.create_task(leaf(n)) for n in range(3)))
async def once():
    task = asyncio.ensure_future(leaf(7))
    if hasattr(task, "set_name"): task.set_name("the-task")
    await task
thread = threading.Thread(target=in_thread, args=(5,), name="the-thread"); thread.start(); thread.join()
threads = [threading.Thread(target=in_thread, args=(n,)) for n in range(20)]
for thread in threads: thread.start()
for thread in threads: thread.join()
asyncio.run(main()); asyncio.run(once())
{}["x"]
"""
    outcome = ask(switched_on, START + program, "snapshot", ("history", {"function": "in_thread"}))
    assert named(outcome, "in_thread")["calls"] == 21
    (found,) = outcome[1]["functions"]
    assert found["read"][0]["thread"] == "the-thread"
    leaf = named(outcome, "leaf")
    assert (leaf["calls"], leaf["task"], texts(leaf)) == (4, "the-task", {"n": "7"})
    assert named(outcome, "in_thread")["task"] is None


def test_generators_recursion_closures_and_made_functions(by_default: Path, ask: Any) -> None:
    program = """
import dataclasses, collections, functools
Pair = collections.namedtuple("Pair", "a b")
@dataclasses.dataclass
class Order:
    qty: int
@dataclasses.dataclass
class Line:
    sku: str
def numbers(n):
    for i in range(n): yield i
def down(n): return down(n - 1) if n else 0
def adder(n):
    def add(m): return n + m
    return add
def wrapped(f):
    @functools.wraps(f)
    def wrapper(*args): return f(*args)
    return wrapper
@wrapped
def real(x): return x
Pair(1, 2); Order(3); Line("a"); list(numbers(50)); down(30); adder(1)(2); adder(2)(3); real(4)
exec("def made(y): return y\\nmade(5)")
for n in range(3): exec("n * 2")
{}["x"]
"""
    outcome = ask(by_default, START + program, "snapshot")
    counts = {entry["function"].rpartition(">.")[2]: entry["calls"] for entry in called(outcome)}
    expected = {"Order.__init__": 1, "Line.__init__": 1, "numbers": 1, "down": 31, "adder": 2, "add": 2, "wrapped": 1,
                "wrapper": 1, "real": 1, "made": 1}  # fmt: skip
    assert counts == expected


def test_a_fork_begins_anew(switched_on: Path, ask: Any) -> None:
    program = """
import os, json
def before(n): return n
def within(n): return n
def records(): return sorted(r.name for r in recorder._memory.records.values() if r.name in ("before", "within"))
before(1)
read, write = os.pipe()
if os.fork() == 0:
    within(2)
    os.write(write, json.dumps(records()).encode())
    os._exit(0)
os.wait()
told = json.loads(os.read(read, 1000))
def after(): return told
{}["x"]
"""
    outcome = ask(switched_on, START + program, "snapshot")
    assert outcome.after == ["within"]
    assert "before" in [entry["function"] for entry in called(outcome)]


def test_a_hot_function_is_seen_in_a_forks_child(by_default: Path, ask: Any) -> None:
    program = """
import os
def hot(n): return n
for n in range(10000): hot(n)
read, write = os.pipe()
if os.fork() == 0:
    hot(1)
    os.write(write, b"%d" % sum(r.calls for r in recorder._memory.records.values() if r.name == "hot"))
    os._exit(0)
os.wait()
told = int(os.read(read, 1000))
def after(): return told
{}["x"]
"""
    assert ask(by_default, START + program, "snapshot").after == 1


def test_the_program_has_the_tools_that_it_wants(by_default: Path, ask: Any) -> None:
    program = """
mon = sys.monitoring
def f(n): return n
f(1)
for _ in range(1000): f(2)
seen = []
for tool in (0, 1, 2, 5):
    mon.use_tool_id(tool, "mine")
    assert mon.get_tool(tool) == "mine"
mon.register_callback(5, mon.events.PY_START, lambda code, offset: seen.append(code.co_name))
mon.set_events(5, mon.events.PY_START)
f(3)
import time; time.sleep(0.2)
f(4)
assert mon.get_events(5) == mon.events.PY_START
mon.set_events(5, 0)
mon.free_tool_id(5)
mon.use_tool_id(5, "again")
def after(): return seen
{}["x"]
"""
    outcome = ask(by_default, START + program, "snapshot")
    assert outcome.after.count("f") == 2
    assert named(outcome, "f")["calls"] >= 200  # what was recorded until then


def test_without_free_tools_there_is_no_recorder(by_default: Path, ask: Any) -> None:
    program = """
import sys
for tool in range(6): sys.monitoring.use_tool_id(tool, "mine")
recorder = sys.modules["_dap_agent_debuggee"].load("recorder")
started = recorder.start()
def after(): return started
{}["x"]
"""
    outcome = ask(by_default, program, "snapshot", "history")
    assert outcome.after is False
    assert "called" not in outcome[0]
    assert "uses the interpreter's tools" in outcome.error(1)["message"]


def test_it_is_off_unless_it_was_started(switched_on: Path, ask: Any) -> None:
    outcome = ask(switched_on, "def f(): return {}['x']\nf()", "snapshot", "history")
    assert "called" not in outcome[0]
    assert "recorder is off" in outcome.error(1)["message"]


def test_events_of_others_are_not_switched_on_again(by_default: Path, ask: Any) -> None:
    program = """
import time
mon = sys.monitoring
told = []
mon.use_tool_id(1, "coverage")
def line(code, number): told.append(number); return mon.DISABLE
mon.register_callback(1, mon.events.LINE, line)
def hot(n):
    return n
mon.set_local_events(1, hot.__code__, mon.events.LINE)
until = time.perf_counter() + 0.4
while time.perf_counter() < until: hot(1)
def after(): return len(told)
{}["x"]
"""
    outcome = ask(by_default, START + program, "snapshot")
    assert outcome.after == 1
    assert named(outcome, "hot")["calls"] > 400


def test_a_profiler_of_the_programs_goes_first(ask: Any, all_interpreters: dict[str, str]) -> None:
    program = """
seen = []
def f(n): return n
f(1)
sys.setprofile(lambda frame, event, arg: seen.append(event))
f(2)
sys.setprofile(None)
def after(): return seen.count("call")
{}["x"]
"""
    for version in ("3.8", "3.11"):
        outcome = ask(Path(all_interpreters[version]), START + program, "snapshot")
        assert outcome.after == 1
        assert named(outcome, "f")["calls"] == 1


THINNED = """
import os, time
source = recorder._source
switch = source._switch
def early(n): return n
def hot(n): return n
def late(n): return n
early(1)
count = 0
def until_off():
    global count
    while not switch.off: hot(count); count += 1
def until_on():
    while switch.off: pass  # calls nothing
"""


@pytest.fixture(params=["3.8", "3.9", "3.10", "3.11"])
def below(request: pytest.FixtureRequest, all_interpreters: dict[str, str]) -> Path:
    """A Python whose profile function has to be taken out of the threads that call much."""
    return Path(all_interpreters[request.param])


def test_who_calls_much_is_watched_in_windows_below(below: Path, ask: Any) -> None:
    program = """
windows = 0
while windows < 20:
    until_off()
    for _ in range(3000): hot(count); count += 1
    until_on()
    windows += 1
late(count)
def after(): return count
{}["x"]
"""
    outcome = ask(below, START + THINNED + program, "snapshot", "history")
    assert [entry["function"] for entry in called(outcome) if not entry["function"].startswith("until")] == [
        "early", "hot", "late",
    ]  # fmt: skip
    hot = named(outcome, "hot")
    assert hot["thinned"] and outcome.after - 20 * 3000 <= hot["calls"] < outcome.after / 1.5
    assert int(texts(hot)["n"]) > outcome.after / 2
    late = named(outcome, "late")
    assert (texts(late), late["result"]["text"], late["calls"]) == ({"n": str(outcome.after)}, str(outcome.after), 1)
    (note,) = [note for note in outcome[0]["notes"] if "short windows" in note]
    assert "lower bounds" in note and outcome[1]["note"].startswith("Calls were watched in short windows")


def test_in_full_all_is_seen_below(below: Path, ask: Any) -> None:
    """`--record`."""
    program = START.replace("start()", "start(in_full=True)") + THINNED
    program += "for count in range(60000): hot(count)\n{}['x']"
    outcome = ask(below, program, "snapshot")
    assert named(outcome, "hot")["calls"] == 60000 and not named(outcome, "hot")["thinned"]


def test_a_profiler_of_the_programs_goes_first_between_windows(below: Path, ask: Any) -> None:
    program = """
import sys, threading
hidden = sys.getprofile()
until_off()
seen = []
def own(frame, event, arg): seen.append((event, frame.f_code.co_name))
sys.setprofile(own)
while source._wakes: pass
stays = sys.getprofile() is own
late(1)
sys.setprofile(None)
calls = seen.count(("call", "late"))
late(2)
def in_thread(n): return sys.getprofile() is own
threading.setprofile(own)
thread = threading.Thread(target=in_thread, args=(1,)); thread.start(); thread.join()
threading.setprofile(None)
def after(): return [hidden, stays, calls, sys.getprofile(), ("call", "in_thread") in seen]
{}["x"]
"""
    outcome = ask(below, START + THINNED + program, "snapshot")
    assert outcome.after == [None, True, 1, None, True]
    assert not [entry for entry in called(outcome) if entry["function"] in ("late", "in_thread")]


def test_a_fork_between_windows_is_watched(below: Path, ask: Any) -> None:
    program = """
until_off()
pid = os.fork()
if not pid:
    late(1)
    until_off(); until_on()
    os._exit([each.name for each in recorder._memory.records.values()].count("late"))
status = os.waitpid(pid, 0)[1]
def after(): return status
{}["x"]
"""
    outcome = ask(below, START + THINNED + program, "snapshot")
    assert outcome.after == 1 << 8


def test_threads_end_between_windows(below: Path, ask: Any) -> None:
    """Nobody writes into the state of a thread that has ended."""
    program = """
import threading
def work():
    for n in range(4000): hot(n)
for _ in range(15):
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
until_on()
left = [len(switch.threads), len(switch.off)]
late(1)
def after(): return left
{}["x"]
"""
    outcome = ask(below, START + THINNED + program, "snapshot", env={"PYTHONMALLOC": "debug"})
    assert outcome.after == [1, 0]
    assert named(outcome, "late")["calls"] == 1


def test_what_is_called_during_a_stop_is_no_history(switched_on: Path, ask: Any) -> None:
    program = """
def before(n): return n
def asked(n): return n
before(1)
{}["x"]
"""
    evaluate = ("evaluate", {"number": 0, "code": "[asked(n) for n in range(500)]"})
    outcome = ask(switched_on, START + program, "snapshot", evaluate, "history")
    assert outcome[1]["error"] is None
    assert [entry["function"] for entry in outcome[2]["functions"]] == ["before"]


def test_a_signal_handler_that_raises_is_not_lost(by_default: Path, ask: Any) -> None:
    program = """
import signal, time
class Late(Exception): pass
raised = caught = 0
def handler(*_):
    global raised
    raised += 1
    raise Late
signal.signal(signal.SIGALRM, handler)
class Big:
    def __init__(self): self.items = [{"a": n, "b": [n] * 20} for n in range(200)]
big = Big()
def busy(big): return big
def until_late():
    until = time.perf_counter() + 1
    signal.setitimer(signal.ITIMER_REAL, 0.0005)
    while time.perf_counter() < until: busy(big)
for n in range(200):
    try: until_late()
    except Late: caught += 1
def after(): return raised - caught
{}["x"]
"""
    assert ask(by_default, START + program, "snapshot").after == 0


def test_who_listens_to_audit_events_is_spared(by_default: Path, ask: Any) -> None:
    program = """
told = []
def f(n): return n
listening = True
def audit(event, args):
    if listening: told.append(event)
sys.addaudithook(audit)
for n in range(20): f(n)
listening = False
def after(): return told
{}["x"]
"""
    outcome = ask(by_default, START + program, "snapshot")
    assert outcome.after == []
    assert named(outcome, "f")["calls"] == 20


def test_a_recursion_to_the_limit_fails_as_ever(by_default: Path, ask: Any) -> None:
    program = """
def other(n): return n
def down(n):
    other(n)
    return down(n + 1)
def depth():
    try: down(0)
    except RecursionError as error:
        count = 0
        trace = error.__traceback__
        while trace: count += 1; trace = trace.tb_next
        return count, str(error)
depths = [depth() for _ in range(3)]
def after(): return depths
{}["x"]
"""
    with_it = ask(by_default, START + program, "snapshot").after
    without = ask(by_default, program, "snapshot").after
    assert with_it == without


REBOUND = """
def settle(amount, rate, name, when, flag=True, *rest):
    amount = amount * 0
    rate += 1
    name = name.strip()
    when = [when]
    flag = None
    rest = list(rest)
    return 10 / amount
%s
"""


def arguments_at_stop(ask: Any, python: Path, calls: str) -> Any:
    """What the recorder knows of the arguments of the failed call, as `try_fix` uses it."""
    look = """
import sys
def make_stop(error):
    stop = Stop.from_exception(error)
    recorder = sys.modules["_dap_agent_debuggee.recorder"]
    global told
    told = {name: repr(value) for name, value in recorder.arguments_at(stop.frames[0][0]).items()}
    return stop
def after(): return told
"""
    return ask(python, START + look + REBOUND % calls).after


def test_arguments_that_were_rebound_are_recovered(switched_on: Path, ask: Any) -> None:
    """As far as their text tells them exactly (issue 4, Trials); never another call's."""
    found = arguments_at_stop(ask, switched_on, "settle(5, 1.5, ' tea ', (1, 'a'), True, 7, 8)")
    assert found == {"amount": "5", "rate": "1.5", "name": "' tea '", "when": "(1, 'a')", "flag": "True",
                     "rest": "(7, 8)"}  # fmt: skip
    class_ = "class Text(str): pass\nclass Money(int): pass\n"
    found = arguments_at_stop(ask, switched_on, class_ + "settle(Money(5), float('inf'), Text('x'), 'y' * 500)")
    assert found == {"flag": "True", "rest": "()"}
    masked = "settle(5, 1.5, 'https://shop:secret@host/', ('password=hunter2', 1))"
    assert arguments_at_stop(ask, switched_on, masked) == {"amount": "5", "rate": "1.5", "flag": "True", "rest": "()"}
    later = "try:\n    settle(5, 1, 'a', 2)\nfinally:\n    try: settle(6, 1, 'a', 2)\n    except Exception: pass\n"
    assert arguments_at_stop(ask, switched_on, later) == {}


def test_arguments_of_an_inner_call_that_is_over_are_not_the_outer_ones(by_default: Path, ask: Any) -> None:
    """The outer call was not read, and its frame may be made where the inner one's was."""
    calls = """
import time
def nest(amount, inner):
    amount = [amount]
    if inner is None: return amount
    until = time.perf_counter() + 0.02
    while time.perf_counter() < until: pass
    inner()
    return 1 / 0
for n in range(45): nest(n, None)
nest(1, lambda: nest(2, None))
"""
    assert arguments_at_stop(ask, by_default, calls).get("amount") in (None, "1")
