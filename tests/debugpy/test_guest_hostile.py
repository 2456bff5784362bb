"""A guest before programs and peers that make it hard: many threads, floods, replaced builtins, sudden deaths."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dap_agent.errors import DapAgentError

from ..proxy.fakes import gone_within
from .guest_session import functions, names, run, session

MANY = """\
import threading

N = 50
ready, go = threading.Barrier(N + 1), threading.Event()


def waits(number):
    ready.wait()
    go.wait()


def spins(number):
    ready.wait()
    while not go.is_set():
        number += 1


for number in range(N):
    threading.Thread(target=spins if number < 5 else waits, args=(number,), daemon=True).start()
ready.wait()
{}["missing"]
"""
REPLACED = """\
import builtins, io, sys

real_import, seen = builtins.__import__, []


def importing(name, *rest, **named):
    if name.startswith(("json", "ast", "tokenize", "_dap", "base64", "zlib")):
        seen.append(name)
    return real_import(name, *rest, **named)


def no_open(*_, **__):
    raise OSError("there is no file system")


def boom():
    value = [1, 2]
    return {}["missing"]


builtins.__import__, builtins.open, builtins.print = importing, no_open, None
sys.modules.pop("json", None)
try:
    boom()
finally:
    builtins.__import__ = real_import
"""
KEPT = """\
import gc, sys, weakref


class Thing:
    pass


def fails():
    thing = Thing()
    alive.append(weakref.ref(thing))
    raise ValueError("x")


alive = []
for _ in range(3):
    try:
        fails()
    except ValueError:
        pass
gc.collect()  # pydevd itself leaves cycles
sys.exit(sum(one() is not None for one in alive))
"""
FLOOD = """\
import sys
for n in range(200_000):
    sys.stdout.write("line %d of a flood\\n" % n)
sys.stdout.flush()
{}["missing"]
"""
SLOW = """\
class Slow:
    def __getattribute__(self, name):
        raise SystemError(name)
    def __eq__(self, other):
        raise SystemError("eq")
    __hash__ = None
class Meta(type):
    def __instancecheck__(cls, other):
        raise SystemError("meta")
class Bad(Exception, metaclass=Meta):
    def __str__(self):
        raise SystemError("str")
    def __getattribute__(self, name):
        raise SystemError(name)
def fails(slow):
    raise Bad(slow)
fails(Slow())
"""


def written(folder, text):
    program = folder / "program.py"
    program.write_text(text)
    return program


async def looked_at(client, program, python, **more):
    await client.launch(program, python, **more)
    body, _ = await client.stop()
    await client.book.until(1)
    return body["threadId"], await client.guest.program()


def test_fifty_threads(tmp_path, every_python):
    async def main():
        async with session(filters=["uncaught"]) as client:
            _, live = await looked_at(client, written(tmp_path, MANY), every_python)
            assert live.snapshot.headline == "KeyError: 'missing'"
            assert len(live.snapshot.data["threads"]) == 20
            assert live.snapshot.data["elapsed_ms"] < 1000
            assert (await live.evaluate(0, "N"))["value"]["text"] == "50"
            await client.leave(terminateDebuggee=True)

    run(main)


def test_replaced_builtins(tmp_path, every_python):
    async def main():
        async with session(filters=["uncaught", "raised"]) as client:
            thread, live = await looked_at(client, written(tmp_path, REPLACED), every_python)
            assert functions(live.snapshot)[0] == "boom"
            assert (await live.variable(0, "value"))["value"]["text"] == "[1, 2]"
            seen = (await live.evaluate(0, "seen"))["value"]["text"]
            assert "_dap" not in seen
            await client.leave(terminateDebuggee=True)
            assert thread

    run(main)


def test_objects_die_when_the_program_goes_on(tmp_path, every_python):
    async def main():
        async with session(filters=["raised"]) as client:
            await client.launch(written(tmp_path, KEPT), every_python)
            stops = 0
            while (found := await client.event("stopped", "exited"))["event"] == "stopped":
                stops += 1
                live = await client.guest.program()
                await live.evaluate(0, "1 + 1")
                await live.members(0, "alive") if functions(live.snapshot)[0] == "<module>" else None
                await client.go_on(found["body"]["threadId"])
            assert found["body"]["exitCode"] == 0 and stops >= 3
            await client.leave()

    run(main)


def test_a_flood_of_output_before_the_stop(tmp_path, python):
    async def main():
        async with session(filters=["uncaught"]) as client:
            await client.launch(written(tmp_path, FLOOD), python)
            await client.event("stopped", timeout=50)
            await client.book.until(1)
            assert client.guest.last.headline == "KeyError: 'missing'"
            await client.leave(terminateDebuggee=True)

    run(main, timeout=100)


def test_hostile_objects(tmp_path, every_python):
    async def main():
        async with session(filters=["uncaught"]) as client:
            thread, live = await looked_at(client, written(tmp_path, SLOW), every_python)
            # under sys.monitoring debugpy itself stops at what the exception's own __getattribute__ raises
            assert functions(live.snapshot) == names(await client.stack(thread))
            assert live.snapshot.exception["type"] in ("Bad", "SystemError")
            assert functions(live.snapshot)[0] in ("fails", "__getattribute__")
            await client.leave(terminateDebuggee=True)

    run(main)


def test_a_client_that_floods_us_while_we_look(tmp_path, python):
    program = written(tmp_path, "def f(n):\n    return {}[n]\nf(1)\n")

    async def main():
        async with session(filters=["uncaught"]) as client:
            await client.launch(program, python)
            body = (await client.event("stopped"))["body"]
            numbers = [client.post("stackTrace", {"threadId": body["threadId"]}) for _ in range(300)]
            await client.book.until(1)
            for number in numbers:
                assert (await client.answer(number))["success"]
            assert functions(client.guest.last) == ["f", "<module>"]
            await client.leave(terminateDebuggee=True)

    run(main)


@pytest.mark.parametrize("victim", ["adapter", "debuggee"])
@pytest.mark.parametrize("delay", [0, 0.1, 0.12, 0.15, 0.2, 0.3])
def test_killed_while_we_look(tmp_path, victim, delay):
    program = written(tmp_path, "def f(n):\n    return {}[n]\nf(1)\n")
    mark = f"dap-agent-guest-{victim}-{delay}"

    async def main():
        async with session(filters=["uncaught"]) as client:
            await client.launch(program, env={"DAP_TEST_MARK": mark})
            await client.event("stopped")
            await asyncio.sleep(delay)  # the moment is what is tested: quiet lasts 0.1 s, then we look
            told = next(m["body"]["systemProcessId"] for m in client.log if m.get("event") == "process")
            os.kill(client.guest._proxy._process.pid if victim == "adapter" else told, signal.SIGKILL)
            await client.event("terminated")
            assert client.guest.state == "ended"
            try:
                left = await client.guest.program()
                assert left.snapshot.exception["type"] == "KeyError"
            except DapAgentError as error:
                assert "nothing to look at" in error.message or "ended" in error.message
            if victim == "debuggee":
                await client.leave()
        assert client.book.told[-1] == "ended"
        assert await gone_within(mark, 3) == {}

    run(main)


def test_nothing_is_warned_about_under_the_strictest_checks(tmp_path):
    """Three sessions, one of them left in the middle of a question, with asyncio's checks and warnings as errors."""
    program = written(tmp_path, "def f(n):\n    return {}[n]\nf(1)\n")
    use = tmp_path / "use.py"
    use.write_text(f"""
import asyncio, socket, sys
from tests.debugpy.guest_session import session

async def main():
    for how in ("whole", "left", "asked"):
        async with session(filters=["uncaught"]) as client:
            await client.launch({str(program)!r})
            body, _ = await client.stop()
            if how != "left":
                live = await client.guest.program()
                print(live.snapshot.headline)
            if how == "asked":
                asked = asyncio.ensure_future(live.evaluate(0, "__import__('time').sleep(20)", timeout=30))
                await asyncio.sleep(0.1)
            if how == "whole":
                await client.go_on(body["threadId"])
                await client.event("terminated")
            await client.leave()
        if how == "asked":
            print(type((await asyncio.gather(asked, return_exceptions=True))[0]).__name__)
    left = asyncio.all_tasks() - {{asyncio.current_task()}}
    assert not left, left

asyncio.run(main(), debug=True)
""")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-X", "dev", "-W", "error", "-W", "ignore::DeprecationWarning", str(use)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=90)
    slow = [line for line in done.stderr.splitlines() if not line.startswith("Executing <")]  # a busy machine
    assert (done.returncode, slow) == (0, []), done.stderr
    assert done.stdout.splitlines()[:3] == ["KeyError: 1", "KeyError: 1", "ProgramResumed"]
