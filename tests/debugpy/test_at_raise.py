"""A headless run stops where an exception is raised that nothing will handle: frames alive, nothing cleaned up yet."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dap_agent.session.launch import Debuggee, ProgramCommand, Stopped, StopRules

sys.path.insert(0, str(Path(__file__).parents[1] / "debuggee"))
import predict_random
import test_predict as predicting

NOTE = "Stopped at the raise"

HEAD = """
import asyncio, contextlib, os, sys, threading
def tidied(): open('tidied', 'w').close()
class Tidy:
    def __enter__(self): return self
    def __exit__(self, *exc): tidied()
@contextlib.contextmanager
def tidy():
    try: yield
    finally: tidied()
def boom(): return {}['k']
"""

CERTAIN = {  # program: functions of the stack, innermost first
    "finally": (
        "def work():\n    try: boom()\n    finally: tidied()\nwork()",
        ["boom", "work", "<module>"],
    ),
    "with": ("def work():\n    with Tidy(), tidy(): boom()\nwork()", ["boom", "work", "<module>"]),
    "raise_from": (
        "def work():\n    try: boom()\n    except KeyError as e:\n        tidied()\n        raise ValueError from e\n"
        "work()",
        ["boom", "work", "<module>"],
    ),
    "raise_in_finally": (
        "def work():\n    try: boom()\n    finally:\n        tidied()\n        raise ValueError\nwork()",
        ["boom", "work", "<module>"],
    ),
    "raise_again": (
        "def work():\n    try: boom()\n    except KeyError:\n        tidied()\n        raise\nwork()",
        ["boom", "work", "<module>"],
    ),
    "thread": (
        "def work():\n    with Tidy(): boom()\nt = threading.Thread(target=work); t.start(); t.join()",
        ["boom", "work"],
    ),
    "pool_of_threads": (
        "from concurrent.futures import ThreadPoolExecutor\ndef work():\n    with Tidy(): boom()\n"
        "with ThreadPoolExecutor() as pool:\n    gate = threading.Event()\n"
        "    def held():\n        gate.wait()\n        work()\n"
        "    job = pool.submit(held)\n    threading.Timer(0.5, gate.set).start()\n    job.result()",
        ["boom", "work", "held"],
    ),
    "coroutine": (
        "async def leaf():\n    with Tidy(): boom()\nasync def main():\n    await asyncio.sleep(0)\n    await leaf()\n"
        "asyncio.run(main())",
        ["boom", "leaf", "main", "<module>"],
    ),
    "process": (
        "import multiprocessing\ndef work():\n    with Tidy(): boom()\n"
        "if __name__ == '__main__':\n    c = multiprocessing.get_context('fork').Process(target=work)\n"
        "    c.start(); c.join()",
        ["boom", "work"],
    ),
}
SINCE_3_11 = {
    "task_group": (
        "async def leaf():\n    with Tidy(): boom()\nasync def main():\n    async with asyncio.TaskGroup() as g:\n"
        "        g.create_task(leaf())\nasyncio.run(main())",
        ["boom", "leaf"],
    ),
}

HANDLED = """
import operator, weakref, gc, json
class Lazy:
    def __getattr__(self, name): raise AttributeError(name)
    def __len__(self): raise TypeError
    def __iter__(self): return iter(())
    def __getitem__(self, n):
        if n > 2: raise IndexError
        return n
class Missing(dict):
    def __missing__(self, key): raise KeyError(key)
assert not hasattr(Lazy(), 'x') and getattr(Lazy(), 'x', 1) == 1
assert operator.length_hint(Lazy(), 5) == 5 and list(Lazy()) == []
for call in (lambda: Missing()['a'], lambda: json.loads('{'), lambda: int('x'), lambda: next(iter([]))):
    try: call()
    except (KeyError, ValueError, StopIteration): pass
with contextlib.suppress(KeyError): boom()
def numbers():
    try: yield 1
    finally: tidied()
g = numbers(); next(g); g.close()
assert next(iter([]), None) is None and sum(Lazy()) == 0
async def slow():
    try:
        await asyncio.wait_for(asyncio.sleep(5), 0.01)
    except asyncio.TimeoutError: return 1
async def agen():
    try:
        yield 1
    finally:
        await asyncio.sleep(0)
async def main():
    assert await slow() == 1
    async for _ in agen(): break
    in_thread = asyncio.get_running_loop().run_in_executor(None, boom)
    await asyncio.gather(in_thread, return_exceptions=True)
    task = asyncio.ensure_future(asyncio.sleep(9)); await asyncio.sleep(0); task.cancel()
    with contextlib.suppress(asyncio.CancelledError): await task
asyncio.run(main())
class Dies:
    def __del__(self): boom()
def callback(ref): boom()
thing = Lazy(); ref = weakref.ref(thing, callback)
sys.unraisablehook = lambda raised: None
del thing
Dies()
cycle = Dies(); cycle.me = cycle; del cycle; gc.collect()
print('through')
"""


def names(stop: Any) -> list[str]:
    return [frame["function"].rpartition(".")[2] for frame in stop.frames]


def at_raise(stop: Any) -> bool:
    return any(NOTE in note for note in stop.data["notes"])


@pytest.mark.parametrize("name", [*CERTAIN, *SINCE_3_11])
def test_stops_before_anything_is_cleaned_up(player, python, name):
    if name in SINCE_3_11 and "3.8" in str(python):
        pytest.skip("task groups came with Python 3.11")
    text, stack = {**CERTAIN, **SINCE_3_11}[name]
    tidied = []

    async def at_stop(stopped):
        tidied.append((player.folder / "tidied").exists())

    command = player.command(python, program=HEAD + text)
    story = player.play(command, at_stop=at_stop)
    (stop,) = story.stops
    assert at_raise(stop), names(stop)
    found = iter(names(stop))
    assert all(wanted in found for wanted in stack), names(stop)
    assert tidied == [False]
    assert (player.folder / "tidied").exists()
    assert not story.crashes
    assert not story.end.failures
    native = player.natively(command)
    assert (story.end.exit_status, plain(story.out), plain(story.err)) == (native.status, native.out, plain(native.err))


def plain(text):
    return re.sub(r'(concurrent/futures/_base.py", line )\d+(, in result)', r"\1N\2", text)


@pytest.mark.network
@pytest.mark.parametrize("how", ["fd", "sys", "no"])
def test_the_output_of_a_test_that_fails(player, python, with_packages, how):
    (player.folder / "test_it.py").write_text(
        "def test_it():\n    print('said before')\n    {}['k']\ndef test_next():\n    assert True\n", encoding="utf-8"
    )
    command = player.command(
        with_packages(python, ("pytest",)),
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--capture",
        how,
        "test_it.py",
    )
    native = player.natively(command)
    story = player.play(command)
    (stop,) = story.stops
    assert at_raise(stop)
    assert "said before" in "".join(stop.data["output"]["stdout"])
    assert without_times(story.out) == without_times(native.out)


def without_times(text):
    return re.sub(r"in [0-9.]+s", "in ...s", text)


@pytest.mark.parametrize("name", ["finally", "thread", "coroutine"])
def test_smoke_on_all(player, all_interpreters, name):
    for version, python in all_interpreters.items():
        (player.folder / "tidied").unlink(missing_ok=True)
        (stop,) = player.play(player.command(Path(python), program=HEAD + CERTAIN[name][0])).stops
        assert at_raise(stop), version


def test_what_is_handled_or_only_reported_is_no_stop(player, python):
    command = player.command(python, program=HEAD + HANDLED)
    native = player.natively(command)
    assert native.out == "through\n", native.err
    story = player.play(command)
    assert story.headlines == []
    assert (story.end.exit_status, story.out, story.err) == (native.status, native.out, native.err)
    assert not story.end.failures


def test_never(player, python):
    story = player.play(player.command(python, program=HEAD + CERTAIN["finally"][0]), rules=StopRules("never"))
    assert [at_raise(stop) for stop in story.stops] == [False]


IGNORED = """
import json, threading
class Retry(Exception): pass
class Later(Retry): pass
def later(): raise Later
def parse(): json.loads('{')
for work in (later, parse):
    t = threading.Thread(target=work); t.start(); t.join()
{}['k']
"""


@pytest.mark.parametrize("how", ["always", "never"])
def test_ignored(player, python, how):
    command = player.command(python, program=IGNORED)
    story = player.play(command, rules=StopRules(how, ("Retry", "module:json")))
    assert [stop.exception["type"] for stop in story.stops] == ["KeyError"]
    story = player.play(command, rules=StopRules(how))
    assert len(story.stops) == 3


MONITORING = """
import sys
monitoring = sys.monitoring
for tool in range(6):
    monitoring.use_tool_id(tool, "mine")
    assert monitoring.get_tool(tool) == "mine"
def raised(code, offset, exc): print(code.co_name)
monitoring.register_callback(4, monitoring.events.RAISE, raised)
monitoring.set_events(4, monitoring.events.RAISE)
def f():
    try: {}['k']
    except KeyError: pass
f()
monitoring.set_events(4, 0)
f()
{}['k']
"""


def test_a_program_that_wants_all_tools_gets_them(player, all_interpreters):
    if "3.13" not in all_interpreters:
        pytest.skip("sys.monitoring came with Python 3.12")
    command = player.command(Path(all_interpreters["3.13"]), program=MONITORING)
    native = player.natively(command)
    assert native.out == "f\n", native.err
    story = player.play(command)
    assert len(story.stops) == 1
    assert (story.out, story.err, story.end.exit_status) == (native.out, native.err, native.status)


RECURSIONS = """
import sys, traceback
def one(n): return one(n + 1)
def two(n): return three(n + 1)
def three(n): return two(n + 1)
for function in (one, two):
    try: function(0)
    except RecursionError: print(traceback.format_exc())
two(0)
"""


def test_a_recursion_s_traceback_is_complete(player, python):
    command = player.command(python, program=RECURSIONS)
    native = player.natively(command)
    story = player.play(command)
    assert (story.out, story.err) == (native.out, native.err)
    assert [stop.exception["type"] for stop in story.stops] == ["RecursionError"]


COSTLY = """
import sys, threading, time
def forever():
    end = time.monotonic() + 1
    while time.monotonic() < end:
        try: int('x')
        except ValueError: pass
forever()
time.sleep(0.2)
{}['k']
"""


def test_after_a_time_of_many_raises_it_watches_again(player, every_python):
    story = player.play(player.command(every_python, program=COSTLY))
    assert [at_raise(stop) for stop in story.stops] == [True]


def run_all(python: Path, folder: Path, programs: dict[str, str]) -> dict[str, Any]:
    """Of each program: its stops as (class, function, whether at the raise), and its end."""

    async def one(name: str, text: str, free: asyncio.Semaphore) -> Any:
        async with free:
            file = folder / f"{name}.py"
            file.write_text(text, encoding="utf-8")
            command = ProgramCommand(python, str(file), False, (), folder)
            debuggee = await Debuggee.launch(command, stdin=subprocess.DEVNULL)
            stops = []
            try:
                while isinstance(event := await asyncio.wait_for(debuggee.next_event(), 60), Stopped):
                    snapshot = event.program.snapshot
                    kind = snapshot.exception["type"].rpartition(".")[2]
                    stops.append((kind, names(snapshot)[0], at_raise(snapshot)))
                    await event.resume()
            finally:
                await debuggee.close()
            return name, (stops, event)

    async def all_of_them() -> Any:
        free = asyncio.Semaphore(os.cpu_count() or 2)
        return dict(await asyncio.gather(*(one(name, text, free) for name, text in programs.items())))

    found: dict[str, Any] = asyncio.run(all_of_them())
    return found


WHOLE = bool(os.environ.get("DAP_TEST_WHOLE_CORPUS"))
"""Run all programs, which takes minutes, instead of each sixth; `test_predict` asks about all."""


@pytest.mark.timeout(900)
def test_corpus_in_real_runs(capfd, python, tmp_path):
    minor = int(subprocess.check_output([python, "-c", "import sys; print(sys.version_info[1])"]))
    programs = [
        program
        for program in predicting.corpus()
        if not program.name.startswith(("pytest_", "frameworks_")) and program.since <= minor
    ]
    programs = programs if WHOLE else programs[::6]
    found = run_all(python, tmp_path, {program.name: program.text for program in programs})
    hits, missed, false = 0, [], []
    for program in programs:
        stops, _ = found[program.name]
        at = [stop[:2] for stop in stops if stop[2]]
        right = any(kind == program.exception and function in program.functions for kind, function in at)
        hits += right
        if program.exception and not right:
            missed.append(program.name)
        if at and not right:
            false.append(program.name)
        assert len(stops) <= 1, (program.name, stops)
    with capfd.disabled():
        recall = hits / (hits + len(missed))
        print(
            f"\n{python}: stops at the raise: precision {hits / (hits + len(false)):.3f}, recall {recall:.3f}, ", end=""
        )
        print(f"of {hits + len(missed)}; not at the raise: {', '.join(missed)}")
    assert not false
    assert recall >= (0.95 if WHOLE else 0.8)


def test_random_nestings_in_real_runs(python, tmp_path):
    made = {f"r{seed}": predict_random.Maker(seed).program() for seed in range(1000, 1030 if WHOLE else 1010)}
    made = {name: text for name, text in made.items() if predicting.compiles(text)}
    for name, (stops, end) in run_all(python, tmp_path, made).items():
        if end.exit_status == 0:
            assert not stops, f"{name}: {stops}\n{made[name]}"
        else:
            assert len(stops) == 1, f"{name}: {stops}\n{made[name]}"
