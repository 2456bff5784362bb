"""Evaluate in a jail: values, await, errors, output, limits; programs that make a fork difficult."""

import json
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import random, sys, threading
base = 10
random.seed(1)
class Item:
    def __repr__(self):
        raise SystemExit("repr ran")
async def double(x):
    import asyncio
    await asyncio.sleep(0)
    return 2 * x
def work(items, rate):
    doubled = [i * 2 for i in items]
    thing = Item()
    def inner():
        return rate
    raise ValueError("x")
sys.stdout.write("not flushed")
def after():
    return [base, random.random()]
work([1, 2, 3], 5)
"""


def jailed(ask: Any, python: Path, code: str, program: str = PROGRAM, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = ask(python, program, ("evaluate_jailed", {"number": 0, "code": code, **more}))[0]
    return found


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("rate + base", "15"),
        ("[i * rate for i in items]", "[5, 10, 15]"),
        ("sorted(items, key=lambda i: -i * rate)", "[3, 2, 1]"),
        ("total = 0\nfor i in items:\n    total += i\ntotal", "6"),
        ("def f(n):\n    return n if n < 2 else f(n - 1) + f(n - 2)\nf(10)", "55"),
        ("    x = 1\n    x + 1", "2"),
        ("sorted(frame_locals)", "['doubled', 'inner', 'items', 'rate', 'thing']"),
        ("frame_source().splitlines()[0]", "'def work(items, rate):'"),
        ("inner()", "5"),
        ("thing", "<Item object>"),
        ("await double(rate)", "10"),
        ("x = await double(rate)\nx + 1", "11"),
        ("import asyncio\nx = await asyncio.gather(*[double(i) for i in items])\nx", "[2, 4, 6]"),
        ("[await double(i) async for i in agen()] if False else await double(1)", "2"),
        ("random.random()", "0.13436424411240122"),
        ("threading.current_thread().name", "'MainThread'"),
        ("r = []\nt = threading.Thread(target=lambda: r.append(1))\nt.start()\nt.join()\nr", "[1]"),
    ],
)
def test_values(python: Path, ask: Any, code: str, text: str) -> None:
    if "async for" in code:
        code = "async def agen():\n    yield 1\n" + code
    found = jailed(ask, python, code)
    assert found["error"] is None
    assert found["value"]["text"] == text
    assert found["effects"] == []


def test_nothing_of_it_stays(every_python: Path, ask: Any) -> None:
    questions = ["items.append(4)\nglobals()['base'] = 9\nrandom.random()", "items", "base", "random.random()"]
    outcome = ask(every_python, PROGRAM, *[("evaluate_jailed", {"number": 0, "code": code}) for code in questions])
    assert [outcome[n]["value"]["text"] for n in (1, 2, 3)] == ["[1, 2, 3]", "10", "0.13436424411240122"]
    assert outcome.after == [10, 0.13436424411240122]


def test_output_is_taken_and_the_programs_is_left(python: Path, ask: Any) -> None:
    code = "import os, sys\nprint('out')\nprint('err', file=sys.stderr)\nos.system('echo shell')\nos.write(2, b'raw')"
    found = jailed(ask, python, code)
    assert found["stdout"] == "out\nshell\n"
    assert found["stderr"] == "err\nraw"


@pytest.mark.parametrize("without", [[], ["overlay"]])
def test_a_folder_of_its_own(python: Path, ask: Any, without: list[str]) -> None:
    code = (
        "import os, tempfile\nwith tempfile.TemporaryDirectory() as d:\n    open(d + '/x', 'w').write('y')\n"
        "    r = os.listdir(d)\nr"
    )
    found = jailed(ask, python, code, without=without)
    assert (found["error"], found["value"]["text"], found["effects"]) == (None, "['x']", [])


def test_much_output_is_cut(python: Path, ask: Any) -> None:
    found = jailed(ask, python, "print('a' * 300000)\nprint('end')")
    assert len(found["stdout"]) < 9000
    assert found["stdout"].endswith("end\n")


@pytest.mark.parametrize(
    ("code", "kind", "text"),
    [
        ("1 / 0", "ZeroDivisionError", 'File "<evaluate>", line 1'),
        ("await double()", "TypeError", 'File "<evaluate>", line 1'),
        ("raise SystemExit(3)", "SystemExit", "SystemExit: 3"),
        ("import os\nos._exit(4)", "RuntimeError", "ended its process with status 4"),
    ],
)
def test_errors(python: Path, ask: Any, code: str, kind: str, text: str) -> None:
    found = jailed(ask, python, code)
    assert found["error"]["type"] == kind
    assert text in found["error"]["traceback"]
    assert not found["timed_out"]


def test_not_python(python: Path, ask: Any) -> None:
    outcome = ask(python, PROGRAM, ("evaluate_jailed", {"number": 0, "code": "1 +"}))
    assert "not valid Python" in outcome.error(0)["message"]


def test_the_time_limit_holds_in_c_code(python: Path, ask: Any) -> None:
    found = jailed(ask, python, "sum(iter(int, 1))", timeout=0.3)
    assert found["timed_out"]
    assert found["error"]["type"] == "TimeoutError"
    assert 0.25 < found["seconds"] < 2


def test_interrupted_from_outside(python: Path, ask: Any) -> None:
    """The question `interrupt` with the same ticket ends it, from another thread."""
    program = PROGRAM.replace(
        "work([1, 2, 3], 5)",
        "api = sys.modules['_dap_agent_debuggee.api']\n"
        "threading.Timer(0.3, api.call, ('interrupt', '{\"ticket\": \"t\"}')).start()\nwork([1, 2, 3], 5)",
    )
    found = jailed(ask, python, "import time\ntime.sleep(60)", program, timeout=30, ticket="t")
    assert found["timed_out"]
    assert found["seconds"] < 10


def test_secrets_are_masked(python: Path, ask: Any) -> None:
    found = jailed(ask, python, "password = 'hunter2-hunter2'\nprint(password)\n{'password': password}")
    assert "hunter2" not in json.dumps(found["value"])


@pytest.mark.parametrize("without", [[], ["overlay"], ["overlay", "landlock"], ["overlay", "landlock", "seccomp"]])
def test_isolation_is_told(python: Path, ask: Any, without: list[str]) -> None:
    found = jailed(ask, python, "1", without=without)
    isolation = found["isolation"]
    assert isolation["level"] == ("audit" if "seccomp" in without else "kernel")
    assert (isolation["landlock_abi"] > 0) == ("landlock" not in without)
    assert isolation["seccomp"] == ("seccomp" not in without)
    assert isolation["text"]


DIFFICULT = {
    "a handler of SIGCHLD": """
import signal
got = []
signal.signal(signal.SIGCHLD, lambda *_: got.append(1))
def after():
    return got
""",
    "ignored children": """
import signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
""",
    "functions at fork": """
import os
ran = []
os.register_at_fork(before=lambda: ran.append("before"), after_in_parent=lambda: ran.append("parent"))
os.register_at_fork(before=lambda: ran.append("before"), after_in_child=lambda: ran.append("child"))
def after():
    hooks = len(ran)
    pid = os.fork()
    if pid == 0:
        os._exit(len(ran))
    return [hooks, ran, os.waitpid(pid, 0)[1] >> 8]
""",
    "a lock that is taken before a fork": """
import os, threading
lock = threading.Lock()
lock.acquire()
os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
""",
    "what other threads hold": """
import contextvars, os, threading, time
class Connection:
    def __del__(self):
        os.write(2, b"CLOSED")
here, variable = threading.local(), contextvars.ContextVar("c")
ready = []
def serve(busy):
    here.connection = Connection()
    variable.set(Connection())
    try:
        raise ValueError(Connection())
    except ValueError:
        ready.append(1)
        while busy:
            pass
        threading.Event().wait()
for busy in (False, False, True, True):
    threading.Thread(target=serve, args=(busy,), daemon=True).start()
while len(ready) < 4:
    time.sleep(0.001)
""",
    "locks that other threads hold": """
import logging, threading
held = threading.Event()
def hold():
    logging._lock.acquire() if hasattr(logging, "_lock") else None
    held.set()
    threading.Event().wait()
threading.Thread(target=hold, daemon=True).start()
held.wait()
""",
    "a thread that waits for any child": """
import os, threading, time
pid = os.posix_spawn("/bin/cat", ["cat"], {}, file_actions=[(os.POSIX_SPAWN_DUP2, os.pipe()[0], 0)])
waited = []
waiter = threading.Thread(target=lambda: waited.append(os.wait()), daemon=True)
waiter.start()
while True:
    with open("/proc/self/task/%d/syscall" % waiter.native_id) as file:
        if file.read().split()[0] in ("61", "260"):
            break
    time.sleep(0.001)
def after():
    before = list(waited)
    os.kill(pid, 9)
    waiter.join()
    return [before, waited[0][0] == pid]
""",
    "a running event loop": """
import asyncio, signal
""",
}
AFTER: dict[str, Any] = {
    "a handler of SIGCHLD": [],
    "functions at fork": [0, ["before", "before", "parent"], 3],
    "a thread that waits for any child": [[], True],
}


@pytest.mark.parametrize("name", DIFFICULT)
def test_difficult_programs(every_python: Path, ask: Any, name: str) -> None:
    program = DIFFICULT[name] + "\ndef work(x):\n    raise ValueError(x)\n"
    program += "work(20)\n"
    if name == "a running event loop":
        program = program.replace("def work", "async def work").replace("work(20)", "asyncio.run(work(20))")
    code = "import logging\nlogging.getLogger('new').warning('w')\n[x + n for n in range(2)]"
    found = ask(every_python, program, *[("evaluate_jailed", {"number": 0, "code": code})] * 3)
    for n in range(3):
        assert found[n]["error"] is None, found[n]
        assert found[n]["value"]["text"] == "[20, 21]"
        assert "CLOSED" not in found[n]["stderr"]
    assert found.after == AFTER.get(name)


def test_a_child_that_ends_meanwhile_is_told(python: Path, ask: Any) -> None:
    """SIGCHLD is held back while a jail is there; one of the program's own children is told afterwards."""
    program = """
import os, signal, threading
got = []
signal.signal(signal.SIGCHLD, lambda *_: got.append(os.waitpid(-1, os.WNOHANG)[0]))
pid = os.posix_spawn("/bin/sleep", ["sleep", "0.2"], {})
def after():
    return got == [pid]
raise ValueError(1)
"""
    outcome = ask(python, program, ("evaluate_jailed", {"number": 0, "code": "import time\ntime.sleep(1)"}))
    assert outcome[0]["error"] is None
    assert outcome.after is True


def test_many(python: Path, ask: Any) -> None:
    """500 of them leave no descriptor, no process, no memory, and the last are as fast as the first."""
    program = """
import json, os, resource, sys, time
def after():
    api = sys.modules["_dap_agent_debuggee.api"]
    def state():
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[1])
        threads = len(os.listdir("/proc/self/task"))
        return len(os.listdir("/proc/self/fd")), threads, pages, len(os.listdir(os.environ["TMPDIR"]))
    def some(count):
        began = time.perf_counter()
        for n in range(count):
            answer = json.loads(api.call("evaluate_jailed", json.dumps({"number": 0, "code": "1 + %d" % n})))
            assert answer["result"]["value"]["text"] == str(n + 1), answer
        return (time.perf_counter() - began) / count
    some(50)
    before, first = state(), some(50)
    some(350)
    last, end = some(50), state()
    try:
        child = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        child = None
    return {"before": before, "end": end, "first": first, "last": last, "child": child}
raise ValueError(1)
"""
    import os
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        found = ask(python, program, env={**os.environ, "TMPDIR": folder}).after
    assert found["before"][:2] == found["end"][:2]
    assert found["before"][3] == found["end"][3]
    assert found["end"][2] - found["before"][2] < 500  # pages
    assert found["child"] is None
    assert found["last"] < 3 * found["first"] + 0.01


@pytest.mark.parametrize("room", [2, 4, 5, 7, 9])
def test_no_descriptor_is_left(python: Path, ask: Any, room: int) -> None:
    """Then there is a clear word, and none of ours stays open."""
    program = """
import os, resource, sys
limits = resource.getrlimit(resource.RLIMIT_NOFILE)
before = len(os.listdir("/proc/self/fd"))
sys.modules["_dap_agent_debuggee"].load("jailed")  # for which there has been a stop before
def after():
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    return len(os.listdir("/proc/self/fd")) - before
resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + %d, limits[1]))
raise ValueError(1)
"""
    outcome = ask(python, program % room, ("evaluate_jailed", {"number": 0, "code": "1"}))
    assert outcome.after == 0
    if not outcome.answers[0]["ok"]:
        assert outcome.error(0)["type"] == "NotThere"
        assert "Nothing can be tried in a copy of this program" in outcome.error(0)["message"]
