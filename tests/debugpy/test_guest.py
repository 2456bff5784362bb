"""A guest in sessions of an editor with real programs under real debugpy: it sees each exception stop, once."""

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from dap_agent.errors import DapAgentError
from dap_agent.session.api import ProgramResumed
from dap_agent.session.stopped import PostMortem

from .guest_session import functions, names, run, session

FAILS = """\
def boom(number):
    key = "k%d" % number
    return {}[key]


def work(numbers):
    total = 0
    for number in numbers:
        total += boom(number)
    return total


work([2, 3])
"""
CAUGHT = FAILS.replace("work([2, 3])", "try:\n    work([2, 3])\nexcept KeyError:\n    print('caught')\n")
LIBRARY = """\
import json


def hook(pairs):
    return pairs["missing"]


try:
    json.loads('{"a": 1}', object_hook=hook)
except KeyError:
    print("caught")
"""


@pytest.fixture
def program(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(FAILS)
    return file


@pytest.mark.parametrize("just_my_code", [True, False])
def test_an_uncaught_exception(program, every_python, just_my_code):
    async def main():
        async with session(filters=["uncaught"]) as client:
            assert client.guest.state == "starting"
            await client.launch(program, every_python, justMyCode=just_my_code)
            assert client.guest.started["program"] == str(program)
            body, frames = await client.stop()
            ((_, headline, thread),) = await client.book.until(1)
            snapshot = client.guest.last
            assert (headline, thread) == ("KeyError: 'k2'", body["threadId"])
            assert (client.guest.state, snapshot.reason) == ("stopped", "exception")
            assert functions(snapshot) == ["boom", "work", "<module>"] == names(frames)[:3]
            assert snapshot.data["thread"]["main"] and snapshot.data["frames"][0]["line"] == 3
            live = await client.guest.program()
            assert live is await client.guest.program() and live.snapshot is snapshot
            for number, frame in enumerate(frames[:3]):
                assert await client.guest.frame_number(frame["id"]) == number
            assert await client.guest.frame_number(None) == 0
            found = await live.variable(0, "key")
            assert found["value"]["text"] == "'k2'"
            assert (await live.frame(1))["function"] == "work"
            assert (await live.members(0, "key"))["type"] == "str"
            value = await live.evaluate(1, "total + sum(numbers)")
            assert value["value"]["text"] == "5" and value["error"] is None
            await client.go_on(thread)
            await client.book.until(2)
            with pytest.raises(ProgramResumed):
                await live.frame(0)
            await client.event("terminated")
            assert await client.book.until(3) == [("stopped", headline, thread), "resumed", "ended"]
            assert client.guest.state == "ended" and client.guest.last is snapshot
            left = await client.guest.program()
            assert isinstance(left, PostMortem) and left.snapshot is snapshot
            await client.leave()

    run(main)


def test_raised_stops_once_in_each_frame_and_again(tmp_path, every_python):
    program = tmp_path / "program.py"
    program.write_text(CAUGHT)

    async def main():
        async with session(filters=["raised"]) as client:
            await client.launch(program, every_python)
            count = 0
            while (found := await client.event("stopped", "terminated"))["event"] == "stopped":
                thread = found["body"]["threadId"]
                frames = await client.stack(thread)
                live = await client.guest.program()
                assert functions(live.snapshot)[-2:] == ["work", "<module>"]
                assert live.snapshot.headline == "KeyError: 'k2'"
                number = await client.guest.frame_number(frames[0]["id"])
                assert functions(live.snapshot)[number] == names(frames)[0]
                assert (await live.variable(0, "number"))["value"]["text"] == "2"
                await client.go_on(thread)
                count += 1
            assert count >= 1
            await client.leave()
        assert client.book.told.count("resumed") == count
        assert len(client.book.snapshots) == count

    run(main)


def test_user_unhandled(tmp_path, every_python):
    program = tmp_path / "program.py"
    program.write_text(LIBRARY)

    async def main():
        async with session(filters=["userUnhandled"]) as client:
            await client.launch(program, every_python)
            body, frames = await client.stop()
            await client.book.until(1)
            snapshot = client.guest.last
            assert snapshot.headline == "KeyError: 'missing'"
            assert functions(snapshot)[0] == "hook" and functions(snapshot)[-1] == "<module>"
            assert len(functions(snapshot)) == len(set(functions(snapshot))), "no frame is there twice"
            live = await client.guest.program()
            assert functions(snapshot)[await client.guest.frame_number(frames[0]["id"])] == names(frames)[0]
            assert (await live.evaluate(0, "len(pairs)"))["value"]["text"] == "1"
            await client.go_on(body["threadId"])
            await client.event("terminated")
            await client.leave()

    run(main)


def test_a_breakpoint_is_looked_at_when_that_is_asked_for(program, every_python):
    async def main():
        async with session(lines={str(program): [2]}) as client:
            await client.launch(program, every_python)
            body, frames = await client.stop()
            assert client.guest.state == "stopped" and client.guest.last is None
            live = await client.guest.program()
            assert live.snapshot.reason == "pause" and live.snapshot.exception is None
            assert functions(live.snapshot) == ["boom", "work", "<module>"]
            assert [await client.guest.frame_number(frame["id"]) for frame in frames[:3]] == [0, 1, 2]
            assert (await live.evaluate(0, "number"))["value"]["text"] == "2"
            await client.ask("next", {"threadId": body["threadId"]})
            with pytest.raises(ProgramResumed):
                await live.evaluate(0, "number")
            await client.stop()
            again = await client.guest.program()
            assert again is not live and (await again.evaluate(0, "key"))["value"]["text"] == "'k2'"
            assert client.book.told == ["resumed"]
            await client.leave(terminateDebuggee=True)

    run(main)


# Threads, tasks, other ways to run code

THREADS = """\
import threading

ready, go = threading.Barrier(2), threading.Event()


def quiet():
    ready.wait()
    go.wait()


def fails(what):
    raise ValueError(what)


helper = threading.Thread(target=quiet, name="helper")
helper.start()
ready.wait()
for name in ("first", "second"):
    worker = threading.Thread(target=fails, args=(name,), name=name)
    worker.start()
    worker.join()
go.set()
helper.join()
"""
TASKS = """\
import asyncio
import os
import signal
import sys


async def fails(number):
    await asyncio.sleep(0)
    raise ValueError(number)


async def main():
    task = asyncio.get_running_loop().create_task(fails(7))
    try:
        task.set_name("the-task")
    except AttributeError:
        pass
    await asyncio.wait([task])


asyncio.run(main())
"""
EXECUTED = """\
import types

module = types.ModuleType("made")
exec(compile("def f(x):\\n    return x.nothing\\n", "<made>", "exec"), vars(module))
module.f(5)
"""
BUSY = """\
import time


def wait(count):
    print("begun", flush=True)
    while count:
        time.sleep(0.01)
        count += 1


wait(1)
"""


def test_failing_threads_one_after_another(tmp_path, every_python):
    program = tmp_path / "program.py"
    program.write_text(THREADS)

    async def main():
        async with session(filters=["uncaught"]) as client:
            await client.launch(program, every_python)
            for count, name in enumerate(("first", "second"), 1):
                body, frames = await client.stop()
                await client.book.until(2 * count - 1)
                snapshot = client.guest.last
                assert snapshot.headline == f"ValueError: {name}"
                assert snapshot.data["thread"]["name"] == name and not snapshot.data["thread"]["main"]
                assert functions(snapshot)[0] == "fails" == names(frames)[0]
                others = {entry["name"]: entry["stack"] for entry in snapshot.data["threads"]}
                assert set(others) == {"MainThread", "helper"}, others
                assert "quiet" in [place["function"] for place in others["helper"]]
                live = await client.guest.program()
                assert "name" in (await live.evaluate(0, "__import__('threading').current_thread().name"))["value"][
                    "text"
                ] or (await live.evaluate(0, "what"))["value"]["text"] == repr(name)
                await client.go_on(body["threadId"])
            await client.event("terminated")
            assert [entry if entry == "resumed" else entry[0] for entry in client.book.told[:4]] == [
                "stopped", "resumed", "stopped", "resumed",
            ]  # fmt: skip
            await client.leave()

    run(main)


def test_an_asyncio_task(tmp_path, every_python):
    program = tmp_path / "program.py"
    program.write_text(TASKS)

    async def main():
        async with session(filters=["userUnhandled"]) as client:
            await client.launch(program, every_python)
            body, _ = await client.stop()
            await client.book.until(1)
            snapshot = client.guest.last
            assert snapshot.headline == "ValueError: 7" and functions(snapshot)[0] == "fails"
            assert snapshot.data["task"] == {"name": "the-task", "coroutine": "fails"}
            assert (await (await client.guest.program()).evaluate(0, "number"))["value"]["text"] == "7"
            await client.ask("disconnect", {"terminateDebuggee": True})
            assert body["threadId"] == client.book.told[0][2]

    run(main)


def test_code_that_was_executed_from_text(tmp_path, python):
    program = tmp_path / "program.py"
    program.write_text(EXECUTED)

    async def main():
        async with session(filters=["uncaught"]) as client:
            await client.launch(program, python, justMyCode=False)
            await client.stop()
            await client.book.until(1)
            snapshot = client.guest.last
            assert snapshot.exception["type"] == "AttributeError" and functions(snapshot) == ["f", "<module>"]
            assert (await (await client.guest.program()).variable(0, "x"))["value"]["text"] == "5"
            await client.leave(terminateDebuggee=True)

    run(main)


def test_a_pause(tmp_path, every_python):
    program = tmp_path / "program.py"
    program.write_text(BUSY)

    async def main():
        async with session() as client:
            await client.launch(program, every_python)
            thread = (await client.event("thread"))["body"]["threadId"]
            await client.first(lambda message: "begun" in str(message.get("body")))
            with pytest.raises(DapAgentError, match="The program is running"):
                await client.guest.program()
            await client.ask("pause", {"threadId": thread})
            await client.stop()
            live = await client.guest.program()
            assert live.snapshot.reason == "pause" and "wait" in functions(live.snapshot)
            number = functions(live.snapshot).index("wait")
            assert int((await live.evaluate(number, "count"))["value"]["text"]) >= 1
            await client.guest.resume()
            assert (await client.event("continued"))["body"]["threadId"] == thread
            assert client.guest.state == "running" and client.book.told == ["resumed"]
            await client.ask("pause", {"threadId": thread})
            await client.stop()
            assert (await client.guest.program()) is not live
            await client.leave(terminateDebuggee=True)

    run(main)


# The user wins, and things end


TWICE = FAILS.replace(
    "work([2, 3])", "for _ in range(2):\n    try:\n        work([2])\n    except KeyError:\n        print('caught')\n"
)


@pytest.mark.parametrize("moment", ["it has begun", "it is on its way"])
def test_the_user_goes_on_while_something_is_evaluated(tmp_path, every_python, moment):
    program = tmp_path / "program.py"
    program.write_text(TWICE)
    sign = tmp_path / "begun"
    code = f"open({str(sign)!r}, 'w').close()\nwhile True: pass"

    async def main():
        async with session(lines={str(program): [2]}) as client:
            await client.launch(program, every_python)
            body, _ = await client.stop()
            live = await client.guest.program()
            over = asyncio.ensure_future(live.until_over())
            asked = asyncio.ensure_future(live.evaluate(0, code, timeout=60))
            await asyncio.sleep(0)  # it is sent
            while moment == "it has begun" and not sign.exists():
                await asyncio.sleep(0.01)  # polling: nobody tells
            going = asyncio.ensure_future(client.go_on(body["threadId"]))
            with pytest.raises(ProgramResumed, match="the program was resumed"):
                await asked
            assert (await going)["success"] and await over == "The program was resumed."
            body, _ = await client.stop()  # the second time around
            await client.go_on(body["threadId"])
            await client.event("terminated")
            shown = "".join(m["body"]["output"] for m in client.log if m.get("event") == "output")
            assert "pydevd" not in shown and shown.count("caught") == 2 and "OutOfTime" not in shown, shown
            await client.leave()

    run(main)


def test_an_evaluation_that_takes_long_is_not_warned_about(program, every_python):
    async def main():
        async with session(filters=["uncaught"]) as client:
            await client.launch(program, every_python)
            await client.stop()
            live = await client.guest.program()
            await live.evaluate(0, "__import__('time').sleep(3.5)")
            shown = [m["body"]["output"] for m in client.log if m.get("event") == "output"]
            assert not [text for text in shown if "pydevd" in text], shown
            await client.leave(terminateDebuggee=True)

    run(main)


def process_of(client):
    return next(m["body"]["systemProcessId"] for m in client.log if m.get("event") == "process")


@pytest.mark.parametrize("moment", ["at the stop", "while it is looked at", "while it evaluates"])
def test_the_debuggee_is_killed(program, python, moment):
    async def main():
        async with session(filters=["uncaught"]) as client:
            await client.launch(program, python)
            await client.stop()
            asked = asyncio.ensure_future(client.guest.program())
            if moment == "while it is looked at":
                await asyncio.sleep(0)
            else:
                live = await asked
                asked = asyncio.ensure_future(
                    live.evaluate(0, "__import__('time').sleep(50)", timeout=60)
                    if moment == "while it evaluates"
                    else live.until_over()
                )
                await asyncio.sleep(0.2 if moment == "while it evaluates" else 0)  # it is on its way, nobody tells
            os.kill(process_of(client), signal.SIGKILL)
            await client.event("terminated")
            if moment == "at the stop":
                assert await asked == "The program has ended."
            else:
                with pytest.raises(DapAgentError, match=r"ended|resumed"):
                    await asked
            assert client.guest.state == "ended"
            await client.leave()
        assert client.book.told[-1] == "ended" and client.book.told.count("ended") == 1

    run(main)


def test_the_adapter_is_killed(program, python):
    async def main():
        async with session(filters=["uncaught"]) as client:
            await client.launch(program, python)
            await client.stop()
            await client.book.until(1)
            live = await client.guest.program()
            over = asyncio.ensure_future(live.until_over())
            asked = asyncio.ensure_future(live.evaluate(0, "__import__('time').sleep(50)", timeout=60))
            await asyncio.sleep(0)
            os.kill(client.guest._proxy._process.pid, signal.SIGKILL)
            with pytest.raises(DapAgentError, match=r"debug adapter has ended|resumed"):
                await asked
            assert "has ended (killed by signal 9)" in await over
            assert client.guest.state == "ended"
            left = await client.guest.program()
            assert left.snapshot.headline == "KeyError: 'k2'"
            await client.end()
        assert client.book.told[-1] == "ended"

    run(main)


def test_without_debugging(program, python):
    async def main():
        async with session() as client:
            await client.launch(program, python, noDebug=True)
            with pytest.raises(DapAgentError, match="noDebug"):
                await client.guest.program()
            await client.event("terminated")
            with pytest.raises(DapAgentError, match="noDebug"):
                await client.guest.program()
            await client.leave()

    run(main)


def test_switched_off(program, python):
    async def main():
        async with session(filters=["uncaught"]) as client:
            await client.launch(program, python, dapAgent=False)
            body, _ = await client.stop()
            with pytest.raises(DapAgentError, match="switched off"):
                await client.guest.program()
            await client.go_on(body["threadId"])
            await client.event("terminated")
            assert client.guest.last is None and not client.book.snapshots
            await client.leave()

    run(main)


def test_a_program_that_ends_well(tmp_path, python):
    program = tmp_path / "program.py"
    program.write_text("print('well')\n")

    async def main():
        async with session(filters=["uncaught"]) as client:
            with pytest.raises(DapAgentError, match=r"not been started|switched off"):
                await client.guest.program()
            await client.launch(program, python)
            await client.event("terminated")
            await client.book.until(1)
            with pytest.raises(DapAgentError, match="no exception has stopped it"):
                await client.guest.program()
            await client.leave()
        assert client.book.told == ["ended"]

    run(main)


def test_a_restart_by_us(program, python):
    async def main():
        async with session(filters=["uncaught"]) as client:
            await client.launch(program, python)
            await client.stop()
            await client.book.until(1)
            live = await client.guest.program()
            await client.guest.restart()
            with pytest.raises(ProgramResumed):
                await live.frame(0)
            await client.stop()
            await client.book.until(3)
            assert [entry if isinstance(entry, str) else entry[0] for entry in client.book.told] == [
                "stopped", "resumed", "stopped",
            ]  # fmt: skip
            assert (await (await client.guest.program()).frame(0))["function"] == "boom"
            await client.leave(terminateDebuggee=True)

    run(main)


# Other processes


FAMILY = """\
import multiprocessing, subprocess, sys


def work(number):
    return {}["child %d" % number]


if __name__ == "__main__":
    if sys.argv[1] == "subprocess":
        subprocess.run([sys.executable, __file__, "leaf"])
    elif sys.argv[1] == "leaf":
        work(0)
    else:
        process = multiprocessing.get_context(sys.argv[1]).Process(target=work, args=(1,))
        process.start()
        process.join()
"""


@pytest.mark.parametrize("kind", ["subprocess", "spawn", "fork"])
def test_each_child_has_a_guest_of_its_own(tmp_path, python, kind):
    program = tmp_path / "family.py"
    program.write_text(FAMILY)
    told = subprocess.run([python, "-c", "import sys; print(sys.version_info >= (3, 12))"], capture_output=True)
    monitored = told.stdout.strip() == b"True"

    async def main():
        async with session(filters=["raised"]) as client:
            await client.launch(program, python, args=[kind], subProcess=True)
            await client.to_end()
            stops = [m for one in client.children for m in one.log if m.get("event") == "stopped"]
            snapshots = [snapshot for book in client.books for snapshot in book.snapshots]
            assert len(stops) == len(snapshots)
            if kind == "fork" and monitored:
                assert not stops  # debugpy#264: without us it does not stop either
                return
            assert {one.headline for one in snapshots} == {f"KeyError: 'child {int(kind != 'subprocess')}'"}
            (guest,) = [guest for guest in client.guests if guest.last is not None]
            assert guest is not client.guest and guest.state == "ended"
            assert "work" in functions(guest.last)
            assert guest.last.data["process"]["pid"] != process_of(client)

    run(main)


LISTENING = """
import debugpy, runpy, sys
print(debugpy.listen(("127.0.0.1", 0))[1], flush=True)
debugpy.wait_for_client()
runpy.run_path({program!r}, run_name="__main__")
"""


def test_attach_to_a_program_that_listens(program):
    async def main():
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", LISTENING.format(program=str(program)),
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        port = int(await process.stdout.readline())
        async with session(filters=["uncaught"], address=("127.0.0.1", port)) as client:
            await client.start("attach", {"justMyCode": True})
            body, _ = await client.stop()
            await client.book.until(1)
            assert functions(client.guest.last)[:3] == ["boom", "work", "<module>"]
            with pytest.raises(DapAgentError):
                await client.guest.restart()
            await client.go_on(body["threadId"])
            await client.event("terminated")
            await client.leave()
        await asyncio.wait_for(process.communicate(), 20)
        process._transport.close()

    run(main)


def test_what_the_program_has_printed_is_in_the_picture(tmp_path, python):
    program = tmp_path / "prints.py"
    secret = "ghp_" + "a1B2" * 9
    program.write_text(
        f"import sys\nfor number in range(300):\n    print('line', number)\n"
        f"print('token={secret}')\nprint('careful', file=sys.stderr)\n{{}}['missing']\n"
    )

    async def main():
        async with session(filters=["uncaught"]) as client:
            await client.launch(program, python, console="internalConsole", redirectOutput=True)
            body, _ = await client.stop()
            await client.book.until(1)
            output = client.guest.last.data["output"]
            assert output["stdout"][-2] == "line 299" and secret not in output["stdout"][-1]
            assert output["stderr"] == ["careful"]
            await client.go_on(body["threadId"])
            await client.event("terminated")
            await client.leave()

    run(main)
