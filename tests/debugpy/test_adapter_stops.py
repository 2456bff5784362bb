"""Exceptions in sessions of an editor through `dap-agent adapter`: how often it stops, where, what it does not see."""

import asyncio
import contextlib
import json
import os
import re
import socket
import subprocess
import sys

import pytest

from dap_agent.proxy.hub import Hub
from dap_agent.proxy.stops import FILTER
from dap_agent.session import payload
from dap_agent.session.guest import Guest

from ..proxy.editor_double import OLD, OURS, VSCODE, EditorDouble, editor, environment
from ..proxy.fakes import DEBUGPY, run

WILL = FILTER["filter"]
NOTE = "Stopped at the raise"

SCRIPT = """\
import asyncio, contextlib, threading


def leaf(mapping, key):
    return mapping[key]


def handled():
    try:
        leaf({}, "handled")
    except LookupError:
        pass
    with contextlib.suppress(KeyError):
        leaf({}, "suppressed")
    try:
        next(iter(()))
    except StopIteration:
        pass


def thread():
    try:
        leaf({}, "thread")
    finally:
        print("cleaned")


async def awaited():
    leaf({}, "awaited")


async def forgotten():
    leaf({}, "forgotten")


async def main():
    task = asyncio.create_task(awaited())
    try:
        await task
    except KeyError:
        print("handled in main")
    lost = asyncio.create_task(forgotten())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    del lost


def numbers():
    yield 1
    raise ValueError("generator")


def translated():
    try:
        list(numbers())
    except ValueError as error:
        raise RuntimeError("translated") from error


handled()
worker = threading.Thread(target=thread)
worker.start()
worker.join()
asyncio.run(main())
translated()
"""

# what is stopped at: (the exception's text, the function on top, how DAP calls it)
HANDLED, SUPPRESSED = ("'handled'", "leaf", "always"), ("'suppressed'", "leaf", "always")
THREAD, AWAITED, FORGOTTEN = ((repr(name), "leaf", "always") for name in ("thread", "awaited", "forgotten"))
GENERATOR, TRANSLATED = ("generator", "numbers", "always"), ("translated", "translated", "always")


def unhandled(stop):
    return (*stop[:2], "unhandled")


RAISED = [HANDLED, SUPPRESSED, THREAD, AWAITED, FORGOTTEN, GENERATOR, TRANSLATED]
USER = [THREAD, AWAITED, FORGOTTEN, TRANSLATED]
UNCAUGHT = [unhandled(THREAD), unhandled(TRANSLATED)]
OURS_ALONE = [unhandled(THREAD), unhandled(FORGOTTEN), unhandled(GENERATOR)]
BY_FILTER = {
    (): [],
    ("uncaught",): UNCAUGHT,
    ("raised",): RAISED,
    ("userUnhandled",): USER,
    (WILL,): OURS_ALONE,
    ("raised", "uncaught"): RAISED,
    ("raised", "userUnhandled"): RAISED,
    ("userUnhandled", "uncaught"): USER,
    ("raised", WILL): RAISED,
    (WILL, "uncaught"): OURS_ALONE,
    (WILL, "userUnhandled"): [unhandled(THREAD), AWAITED, FORGOTTEN, unhandled(GENERATOR)],
}


@pytest.fixture(params=["3.8", "3.11", "3.12", "3.13"] if os.environ.get("DAP_TEST_ALL_PYTHONS") else ["3.8", "3.13"])
def version(request, all_interpreters):
    if request.param not in all_interpreters:
        pytest.skip(f"there is no Python {request.param} on this machine")
    return all_interpreters[request.param]


class Stopping(EditorDouble):
    """An editor that goes through the stops, and knows how each session ended."""

    def __init__(self, *args, **options):
        self.stops = []
        super().__init__(*args, **options)

    async def begin(self, python, folder, **configuration):
        given = {"console": "internalConsole", "cwd": str(folder), "python": [str(python)], **configuration}
        return await self.start("launch", given)

    async def to_end(self):
        await self.through()
        await self.leave()

    async def through(self):
        """Through all stops to the program's end."""
        while await self.next_stop():
            await self.ask("continue", {"threadId": self.thread})

    async def next_stop(self):
        found = await self.event("stopped", "terminated", timeout=40)
        if found["event"] == "terminated":
            return False
        self.thread = found["body"]["threadId"]
        frames = (await self.ask("stackTrace", {"threadId": self.thread}))["body"]["stackFrames"]
        info = {}
        if found["body"]["reason"] == "exception":
            info = (await self.ask("exceptionInfo", {"threadId": self.thread}))["body"]
        self.text = info.get("description", "")
        self.stops.append((self.text.partition("\n")[0], frames[0]["name"], info.get("breakMode")))
        return True

    def output(self):
        """What the program has written, and its exit status."""
        events = [message for message in self.log if message["type"] == "event"]
        told = [m["body"] for m in events if m["event"] == "output" and m["body"]["category"] != "telemetry"]
        text = {kind: "".join(b["output"] for b in told if b["category"] == kind) for kind in ("stdout", "stderr")}
        codes = [m["body"]["exitCode"] for m in events if m["event"] == "exited"]
        rest = [b for b in told if b["category"] not in text]
        return text, codes, rest


@contextlib.asynccontextmanager
async def stopping(command=OURS, **options):
    async with editor(command, kind=Stopping, **{"initialize": VSCODE, **options}) as client:
        yield client


def write(folder, text):
    path = folder / "program.py"
    path.write_text(text, encoding="utf-8")
    return str(path)


def played(folder, python, filters, *, command=OURS, ours=None, **configuration):
    """The editor after the program's end."""

    async def main():
        async with stopping(command, filters=filters) as client:
            more = {} if ours is None else {"dapAgent": ours}
            await client.begin(python, folder, **configuration, **more)
            await client.through()
            await client.all_children_over(0)
            await client.leave()
            made.append(client)

    made = []
    run(main, timeout=100)
    assert not [m for m in made[0].log if m.get("event") in ("dapAgentStop", "dapAgentCrash", "dapAgentTrouble")]
    return made[0]


@pytest.mark.parametrize("filters", BY_FILTER, ids=" ".join)
def test_one_exception_is_one_stop(version, tmp_path, filters):
    client = played(tmp_path, version, filters, program=write(tmp_path, SCRIPT))
    assert client.stops == BY_FILTER[filters]
    assert client.output()[1] == [1]


def test_the_program_does_what_it_does_without_us(version, tmp_path):
    program = write(tmp_path, SCRIPT)
    direct = played(tmp_path, version, ["uncaught"], command=DEBUGPY, program=program).output()
    for filters in ([], ["uncaught"], [WILL], ["raised", WILL]):
        assert played(tmp_path, version, filters, program=program).output() == direct


def test_of_a_stop_at_the_raise_dap_is_told_the_truth(version, tmp_path):
    """All frames are alive: the callers' locals are those that they work with."""
    program = write(tmp_path, "def f(x):\n    return 1 // x\n\n\ndef g():\n    zero = 0\n    f(zero)\n\n\ng()\n")

    async def main():
        async with stopping(filters=[WILL]) as client:
            await client.begin(version, tmp_path, program=program)
            assert await client.next_stop()
            assert NOTE in client.text and "nothing on the stack handles it" in client.text
            frames = (await client.ask("stackTrace", {"threadId": client.thread}))["body"]["stackFrames"]
            assert [frame["name"] for frame in frames] == ["f", "g", "<module>"]
            names = "(lambda g, f: [] if f is None else [f.f_code.co_name] + g(g, f.f_back))"
            running = f"str({names}({names}, __import__('sys')._getframe()))"
            told = await client.ask(
                "evaluate", {"expression": running, "frameId": frames[0]["id"], "context": "clipboard"}
            )
            assert re.search("'f', 'g', '<module>'", told["body"]["result"]), told
            await client.ask("continue", {"threadId": client.thread})
            assert not await client.next_stop()
            await client.leave()

    run(main)


TESTS = """\
import pytest


def check(wrong):
    if wrong:
        raise ValueError("bug")


def test_expected():
    with pytest.raises(ValueError):
        check(True)


def test_bug():
    check(True)


def test_assertion():
    assert check(False) == 1


@pytest.fixture
def broken():
    raise OSError("fixture")


def test_fixture(broken):
    pass


def kinds():
    return (LookupError, int)[:1]


def test_unknown():
    try:
        check(True)
    except kinds():
        pass
"""


@pytest.mark.network
@pytest.mark.parametrize("filters", [(), ("uncaught",), (WILL,), (WILL, "userUnhandled", "uncaught")], ids=" ".join)
def test_pytest(version, tmp_path, filters, with_packages):
    (tmp_path / "test_it.py").write_text(TESTS)
    python = with_packages(version, ("pytest",))
    client = played(tmp_path, python, filters, module="pytest", args=["-q", "-p", "no:cacheprovider", "test_it.py"])
    stops = [stop for stop in client.stops if stop[2] == "unhandled"]
    wanted = ["check", "test_assertion", "broken", "check"]  # the last by pytest itself: the handler is not known
    assert [stop[1] for stop in stops] == (wanted if filters == (WILL,) else wanted[:3] if WILL in filters else [])
    text, codes, _ = client.output()
    assert codes == [1]
    assert "3 failed, 1 passed, 1 error" in text["stdout"]


UNITTESTS = """\
import unittest


class Tests(unittest.TestCase):
    def test_failure(self):
        self.assertEqual(1, 2)

    def test_expected(self):
        with self.assertRaises(KeyError):
            {}["expected"]

    def test_error(self):
        {}["error"]


unittest.main()
"""


def test_unittest(version, tmp_path):
    client = played(tmp_path, version, [WILL], program=write(tmp_path, UNITTESTS))
    assert sorted(client.stops) == [("'error'", "test_error", "unhandled"), ("1 != 2", "test_failure", "unhandled")]


@pytest.mark.parametrize("initialize", [VSCODE, OLD], ids=["startDebugging", "debugpyAttach"])
def test_children_have_their_own_stops(version, tmp_path, initialize):
    child = "def inner():\n    try:\n        {}['child']\n    finally:\n        pass\n\n\ninner()\n"
    (tmp_path / "child.py").write_text(child)
    program = write(tmp_path, "import subprocess, sys\nsubprocess.run([sys.executable, 'child.py'])\n{}['parent']\n")

    async def main():
        async with stopping(filters=[WILL], initialize=initialize) as client:
            await client.begin(version, tmp_path, program=program)
            await client.through()
            await client.all_children_over(1)
            assert client.stops == [("'parent'", "<module>", "unhandled")]
            assert [one.stops for one in client.children] == [[("'child'", "inner", "unhandled")]]
            await client.leave()

    run(main)


UNKNOWN = """\
import asyncio
import logging
import threading


def kinds():
    return (OSError, int)[:1]


def hard_to_say():
    try:
        raise KeyError("why")
    except kinds():
        pass


async def task():
    hard_to_say()


async def main():
    lost = asyncio.ensure_future(task())
    await asyncio.sleep(0)
    await asyncio.sleep(0)


def work(item):
    logger = logging.getLogger("uvicorn.error")
    try:
        hard_to_say()
    except BaseException:
        logger.exception("in a request")


logging.raiseExceptions = False
asyncio.run(main())
thread = threading.Thread(target=hard_to_say)
thread.start()
thread.join()
hard_to_say()
"""


def test_where_it_cannot_be_known_the_end_is_the_net(version, tmp_path):
    program = write(tmp_path, UNKNOWN)
    at = ("'why'", "hard_to_say", "unhandled")
    assert played(tmp_path, version, [WILL], program=program).stops == [at, at, at]
    assert played(tmp_path, version, [WILL, "uncaught"], program=program).stops == [at, at, at]
    assert played(tmp_path, version, ["uncaught"], program=program).stops == [at, at]


@pytest.mark.parametrize("filters", [("uncaught",), (WILL, "uncaught"), (WILL,), ()], ids=" ".join)
def test_an_exit_stops_as_it_does_in_debugpy(version, tmp_path, filters):
    client = played(tmp_path, version, filters, program=write(tmp_path, "import sys\n\nsys.exit(3)\n"))
    assert client.stops == ([("3", "<module>", "unhandled")] if "uncaught" in filters else [])
    assert client.output()[1] == [3]


IGNORED = """\
import asyncio


class Base(Exception):
    pass


class Derived(Base):
    pass


def caught(exc):
    try:
        raise exc
    except BaseException:
        pass


def thread(exc):
    import threading
    worker = threading.Thread(target=uncaught, args=(exc,))
    worker.start()
    worker.join()


def uncaught(exc):
    raise exc


caught(Derived())
caught(KeyError("shown"))
caught(asyncio.CancelledError())
thread(Derived())
uncaught(Derived())
"""


def test_ignored_types(version, tmp_path):
    program = write(tmp_path, IGNORED)

    def texts(filters, **ours):
        return [stop[1] for stop in played(tmp_path, version, filters, program=program, **ours).stops]

    every = ["caught", "caught", "caught", "uncaught", "uncaught"]
    assert texts(["raised"]) == every  # the user's own wish: nothing is left out by itself
    assert texts(["raised"], ours={"ignore": ["Base"]}) == ["caught", "caught"]
    assert texts(["raised"], ours={"ignore": ["__main__.Base", "CancelledError"]}) == ["caught"]
    assert texts([WILL], ours={"ignore": ["Base"]}) == []
    assert texts([WILL, "userUnhandled"], ours={"ignore": ["Base"]}) == []
    assert texts(["raised", "uncaught"], ours={"ignore": ["Base"]}) == ["caught", "caught", "uncaught", "uncaught"]


def test_ignored_modules(version, tmp_path):
    (tmp_path / "helper.py").write_text("def fails():\n    raise OSError('in helper')\n")
    body = "import helper\n\ntry:\n    helper.fails()\nexcept OSError:\n    pass\nraise KeyError('mine')\n"
    program = write(tmp_path, body)
    for filters in (["raised"], ["raised", WILL]):
        client = played(tmp_path, version, filters, ours={"ignore": ["module:helper"]}, program=program)
        assert [stop[0] for stop in client.stops] == ["'mine'"]


STEPPED = "def f():\n    {}['k']\n\n\ndef g():\n    f()\n\n\ntry:\n    g()\nexcept KeyError:\n    pass\n"


def test_who_steps_goes_where_the_exception_goes(version, tmp_path):
    program = write(tmp_path, STEPPED)

    async def main(command):
        async with stopping(command, filters=["raised"]) as client:
            await client.begin(version, tmp_path, program=program)
            seen = []
            while await client.next_stop():
                seen.append(client.stops[-1][1])
                await client.ask("next", {"threadId": client.thread})
            await client.leave()
        return seen

    async def both():
        assert await main(OURS) == await main(DEBUGPY)

    run(both)


def test_restart_keeps_the_filter(version, tmp_path):
    program = write(tmp_path, "def f():\n    {}['k']\n\n\nf()\n")

    async def main():
        async with stopping(filters=[WILL]) as client:
            await client.begin(version, tmp_path, program=program)
            assert await client.next_stop() and NOTE in client.text
            assert (await client.ask("restart"))["success"]
            assert await client.next_stop() and NOTE in client.text
            await client.ask("setExceptionBreakpoints", {"filters": []})
            await client.ask("restart")
            assert not await client.next_stop()
            await client.leave()

    run(main)


LISTENING = """\
import debugpy
print(debugpy.listen(("127.0.0.1", 0))[1], flush=True)
debugpy.wait_for_client()
def f():
    try:
        {}["k"]
    except KeyError:
        pass
    {}["l"]
f()
"""


@pytest.mark.parametrize("filters", [(WILL,), ()], ids=" ".join)
def test_attach_to_a_program_that_listens(tmp_path, filters):
    program = write(tmp_path, LISTENING)

    async def main():
        process = subprocess.Popen(
            [sys.executable, program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment(), text=True
        )
        try:
            port = int(await asyncio.to_thread(process.stdout.readline))
            async with stopping([*OURS, "--connect", f"127.0.0.1:{port}"], filters=filters) as client:
                await client.start("attach", {"justMyCode": True})
                await client.through()
                assert client.stops == ([("'l'", "f", "unhandled")] if filters else [])
                await client.leave()
            assert await asyncio.to_thread(process.wait, 20) == 1
        finally:
            process.kill()
            process.wait()
            process.stdout.close()

    run(main)


@pytest.mark.parametrize("ours", [False, {"enabled": False}], ids=str)
def test_switched_off_there_is_nothing_of_it(version, tmp_path, ours):
    program = write(tmp_path, SCRIPT + "\n" * 2)

    async def main(command, **more):
        async with stopping(command, filters=["uncaught", "userUnhandled"]) as client:
            await client.begin(version, tmp_path, program=program, **more)
            await client.next_stop()
            there = "'_dap_agent_debuggee' in __import__('sys').modules"
            answer = await client.ask("evaluate", {"expression": there, "context": "clipboard"})
            assert answer["body"]["result"] == "False"
            await client.ask("continue", {"threadId": client.thread})
            await client.through()
            await client.leave()
        withdrawn = [m["body"]["capabilities"] for m in client.log if m.get("event") == "capabilities"]
        return client.stops, withdrawn

    async def both():
        stops, withdrawn = await main(OURS, dapAgent=ours)
        assert stops == (await main(DEBUGPY))[0]
        (shown,) = [one["exceptionBreakpointFilters"] for one in withdrawn if "exceptionBreakpointFilters" in one]
        assert [one["filter"] for one in shown] == ["raised", "uncaught", "userUnhandled"]

    run(both)


@pytest.mark.parametrize("filters", [(), ("userUnhandled",), (WILL,)], ids=" ".join)
def test_every_crash_is_known_to_the_guest_and_only_to_it(version, tmp_path, filters):
    program = write(tmp_path, SCRIPT)

    async def main():
        ours, theirs = socket.socketpair()
        guests, crashes = [], []

        def companion(server, _):
            server.subscribe(lambda message: crashes.append(message) if message["event"] == "dapAgentCrash" else None)
            guests.append(Guest(server))
            return guests[-1]

        hub = Hub(command=DEBUGPY, on_session=companion, side=payload)
        serving = asyncio.get_running_loop().create_task(hub.serve_socket(theirs))
        reader, writer = await asyncio.open_connection(sock=ours)
        client = Stopping(reader, writer, initialize=VSCODE, filters=filters)
        try:
            await client.begin(version, tmp_path, program=program)
            await client.through()
            found = [crash["body"]["snapshot"]["exception"]["message"] for crash in crashes]
            known = [] if filters else ["'thread'", "'forgotten'", "translated"]
            assert [text for text in known if text in found] == found, "each once, in order"
            assert filters or {"'thread'", "translated"} <= set(found)
            if not filters:
                snapshot = guests[0].last
                assert [frame["function"] for frame in snapshot.frames] == ["translated", "<module>"]
                assert "[_dap_agent" not in json.dumps(snapshot.data)
            assert not [m for m in client.log if m.get("event") == "stopped"] or filters
            await client.leave()
        finally:
            await client.close()
            await asyncio.wait_for(serving, 20)

    run(main)


def test_a_side_that_cannot_be_put_in_is_told_once_and_breaks_nothing(tmp_path):
    class Broken:
        install_expression = staticmethod(lambda: "None")
        call_expression = staticmethod(payload.call_expression)
        problem = staticmethod(payload.problem)

    program = write(tmp_path, "{}['k']\n")

    async def main():
        ours, theirs = socket.socketpair()
        serving = asyncio.get_running_loop().create_task(Hub(command=DEBUGPY, side=Broken()).serve_socket(theirs))
        reader, writer = await asyncio.open_connection(sock=ours)
        client = Stopping(reader, writer, initialize=VSCODE, filters=["uncaught", WILL])
        try:
            await client.begin(sys.executable, tmp_path, program=program)
            await client.through()
            assert client.stops == [("'k'", "<module>", "unhandled")]
            told = [body["output"] for body in client.output()[2]]
            assert len(told) == 1 and re.search("as they do with debugpy alone.*KeyError", told[0], re.S), told
            await client.leave()
        finally:
            await client.close()
            await asyncio.wait_for(serving, 20)

    run(main)


def test_an_error_of_ours_at_a_raise_leaves_the_stops_to_debugpy(version, tmp_path):
    broken = "import sys\nsys.modules['_dap_agent_debuggee.marks'].of = None\n"
    body = "try:\n    {}['caught']\nexcept KeyError:\n    pass\n\n\ndef f():\n    {}['k']\n\n\nf()\n"
    client = played(tmp_path, version, [WILL, "uncaught"], program=write(tmp_path, broken + body))
    assert client.stops == [("'k'", "f", "unhandled")]
    _, codes, rest = client.output()
    assert codes == [1] and [body["category"] for body in rest] == ["console"] and "TypeError" in rest[0]["output"]
