"""The server with the real debugpy.adapter: headless, with a client, and when someone is killed."""

import asyncio
import contextlib
import json
import os
import signal
import sys
import uuid

import pytest

from dap_agent.proxy.server import ProxyServer, RequestFailed

from .fakes import DEBUGPY, INITIALIZE, RawClient, adapter_process, client_of, gone_within, processes_with, run

PROGRAM = """\
import sys


def price(item):
    total = item["count"] * item["price"]
    print("priced", item["name"], flush=True)
    return total


def checkout(cart):
    return sum(price(item) for item in cart)


print("sum", checkout([{"name": "tea", "count": 2, "price": 3}, {"name": "salt", "count": 1, "price": 1}]), flush=True)
print("to stderr", file=sys.stderr, flush=True)
{}["missing"]
"""
WEDGING = {
    "cancel": {"requestId": 1},
    "restartFrame": {"frameId": 2},
    "restart": {},
    "loadedSources": {},
    "breakpointLocations": {"source": {"path": "x.py"}, "line": 5},
    "dataBreakpointInfo": {"name": "total"},
    "stepBack": {"threadId": 1},
    "readMemory": {"memoryReference": "0x1", "count": 4},
    "terminateThreads": {"threadIds": [1]},
    "disassemble": {"memoryReference": "0x1", "instructionCount": 1},
}


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "shop.py"
    path.write_text(PROGRAM)
    return str(path)


@pytest.fixture
def marked():
    """An environment that marks all processes of a session, and the mark."""
    mark = f"dap-test-{uuid.uuid4().hex}"
    return {**os.environ, "DAP_TEST_MARK": mark}, mark


def launching(program):
    return {
        "program": program,
        "console": "internalConsole",
        "python": [sys.executable],
        "cwd": os.path.dirname(program),
    }


async def launch(client: RawClient, program, *, lines=(), filters=()):
    """The handshake of an editor, up to the answer to `launch`."""
    await client.ask("initialize", INITIALIZE)
    launched = client.post("launch", launching(program))
    await client.event("initialized")
    breakpoints = [{"line": line} for line in lines]
    await client.ask("setBreakpoints", {"source": {"path": program}, "breakpoints": breakpoints})
    await client.ask("setExceptionBreakpoints", {"filters": list(filters)})
    await client.ask("configurationDone")
    assert (await client.answer(launched))["success"]


async def to_stop(proxy: ProxyServer, program):
    """Our own handshake, without a client, up to the stop at the exception; its `stopped` event."""
    events = asyncio.Queue()
    end = proxy.subscribe(events.put_nowait)
    await proxy.request("initialize", INITIALIZE)
    launched = asyncio.ensure_future(proxy.request("launch", launching(program)))
    while (await events.get())["event"] != "initialized":
        pass
    await proxy.request("setExceptionBreakpoints", {"filters": ["uncaught"]})
    await proxy.request("configurationDone")
    await launched
    while (message := await events.get())["event"] != "stopped":
        pass
    end()
    return message["body"]


def test_headless_from_launch_to_the_exception(program, marked):
    env, mark = marked

    async def main():
        async with await ProxyServer.spawn(DEBUGPY, env=env) as proxy:
            stopped = await to_stop(proxy, program)
            assert (stopped["reason"], proxy.stopped, proxy.epoch) == ("exception", True, 1)
            assert proxy.capabilities["supportsSetVariable"] is True
            frames = (await proxy.request("stackTrace", {"threadId": stopped["threadId"]}, epoch=1))["stackFrames"]
            assert [(frame["name"], frame["line"]) for frame in frames] == [("<module>", 16)]
            where = {"frameId": frames[0]["id"], "context": "repl"}
            assert (await proxy.request("evaluate", {"expression": "1 + 1", **where}))["result"] == "2"
            with pytest.raises(RequestFailed, match="NameError") as caught:
                await proxy.request("evaluate", {"expression": "nothing_of_the_kind", **where})
            assert caught.value.reason == "refused"
            assert processes_with(mark)
        assert await gone_within(mark, 3) == {}

    run(main)


def test_the_ten_requests_that_wedge_debugpy_are_answered_at_once(program):
    async def main():
        async with await ProxyServer.spawn(DEBUGPY) as proxy, client_of(proxy) as client:
            await launch(client, program, lines=[5])
            thread = (await client.event("stopped"))["body"]["threadId"]
            for command, arguments in WEDGING.items():
                answer = await client.ask(command, arguments, timeout=2)
                assert not answer["success"] and command in answer["message"], answer
                assert (await client.ask("threads"))["success"]
                with pytest.raises(RequestFailed) as caught:
                    await proxy.request(command, arguments, timeout=2)
                assert caught.value.reason == "unsupported"
            frames = (await client.ask("stackTrace", {"threadId": thread}))["body"]["stackFrames"]
            assert [frame["name"] for frame in frames] == ["price", "<genexpr>", "checkout", "<module>"]
            await client.ask("disconnect", {"terminateDebuggee": True})

    run(main)


async def editor_session(client: RawClient, program):
    """What an editor does in a session with two stops, a step and a look at a variable."""
    await launch(client, program, lines=[5], filters=["uncaught"])
    for _ in range(2):
        thread = (await client.event("stopped"))["body"]["threadId"]
        await client.ask("threads")
        frames = (await client.ask("stackTrace", {"threadId": thread}))["body"]["stackFrames"]
        scopes = (await client.ask("scopes", {"frameId": frames[0]["id"]}))["body"]["scopes"]
        await client.ask("variables", {"variablesReference": scopes[0]["variablesReference"]})
        await client.ask(
            "evaluate", {"expression": "item['name'] + 'é'", "frameId": frames[0]["id"], "context": "repl"}
        )
        await client.ask("evaluate", {"expression": "nothing", "frameId": frames[0]["id"], "context": "watch"})
        await client.ask("noSuchRequest", {"x": 1})
        await client.ask("continue", {"threadId": thread})
    stopped = await client.event("stopped")
    await client.ask("exceptionInfo", {"threadId": stopped["body"]["threadId"]})
    await client.ask("continue", {"threadId": stopped["body"]["threadId"]})
    await client.event("terminated")
    await client.ask("disconnect")
    return observable(client.log)


def observable(log):
    """What a client notices: each kind of message in order. Numbers of ours, of processes and of ports are left out."""
    kinds = {}
    for message in log:
        message = {key: value for key, value in message.items() if key != "seq"}
        kind, body = message["type"], message.get("body") or {}
        if kind == "response" and not message["success"]:
            message["message"] = message["message"].split("{'seq'")[0]  # debugpy quotes the request with its number
        if kind == "event":
            kind = message["event"]
            if body.get("category") == "telemetry" or kind == "debugpySockets":
                continue
            if kind == "output":  # debugpy cuts a stream where it likes
                key = f"output {body['category']}"
                kinds[key] = kinds.get(key, "") + body["output"]
                continue
            if kind == "module":
                continue  # told when debugpy first looks at a frame of it, in whatever order
            if kind == "thread" and body["reason"] == "exited":
                continue  # told only if the process lives long enough after the thread's end
            if kind == "process":
                body.pop("systemProcessId")
        kinds.setdefault(kind, []).append(message)
    return kinds


def test_a_client_observes_the_same_with_and_without_us(program):
    async def main():
        async with adapter_process(DEBUGPY) as client:
            direct = await editor_session(client, program)
        async with await ProxyServer.spawn(DEBUGPY) as proxy, client_of(proxy) as client:
            relayed = await editor_session(client, program)
        assert json.dumps(relayed, indent=1, sort_keys=True) == json.dumps(direct, indent=1, sort_keys=True)
        assert direct["output stdout"] == "priced tea\npriced salt\nsum 7\n"

    run(main)


def test_our_questions_do_not_show_in_the_clients_session(program):
    async def main():
        async with adapter_process(DEBUGPY) as client:
            direct = await editor_session(client, program)
        async with await ProxyServer.spawn(DEBUGPY) as proxy, client_of(proxy) as client:
            asking = asyncio.ensure_future(ask_on(proxy))
            relayed = await editor_session(client, program)
            asking.cancel()
            await asyncio.wait({asking})
            assert len(answers) > 5  # 44 ms each, with the stock adapter
        assert json.dumps(relayed, indent=1, sort_keys=True) == json.dumps(direct, indent=1, sort_keys=True)

    answers = []

    async def ask_on(proxy):
        """Ask again and again while the program is stopped."""
        while True:
            with contextlib.suppress(RequestFailed):
                if proxy.stopped:
                    answers.append(await proxy.request("threads"))
            await asyncio.sleep(0.001)

    run(main)


# The deaths of others

PARENT = """
import asyncio, sys
sys.path[:0] = {path!r}
from dap_agent.proxy.server import ProxyServer
from dap_agent.session.adapter import adapter_command
async def main():
    proxy = await ProxyServer.spawn(adapter_command())
    stopped, initialized, waiting = (asyncio.Event() for _ in range(3))
    told = {{"stopped": stopped, "initialized": initialized, "debugpyWaitingForServer": waiting}}
    proxy.subscribe(lambda m: told.get(m["event"], asyncio.Event()).set())
    await proxy.request("initialize", {initialize!r})
    begun = asyncio.ensure_future(proxy.request({begin!r}, {arguments!r}))
    if {begin!r} == "launch":
        await initialized.wait()
        await proxy.request("setExceptionBreakpoints", {{"filters": ["uncaught"]}})
        await proxy.request("configurationDone")
        await begun
    {when}
    print("ready", flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


@pytest.mark.parametrize("when", ["stopped", "running", "waiting for the program"])
def test_when_we_are_killed_nothing_is_left(tmp_path, program, marked, when):
    env, mark = marked
    begin, arguments, point, processes = "launch", launching(program), "await stopped.wait()", 4
    if when == "running":
        with open(program, "w") as file:
            file.write("import time\nwhile True:\n    time.sleep(0.01)\n")
        point = "pass"
    elif when != "stopped":
        begin, arguments, point, processes = "attach", {"listen": {"port": 0}}, "await waiting.wait()", 2
    text = PARENT.format(
        path=[entry or os.getcwd() for entry in sys.path],
        initialize=INITIALIZE,
        begin=begin,
        arguments=arguments,
        when=point,
    )

    async def main():
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", text, stdout=asyncio.subprocess.PIPE, env=env, start_new_session=True
        )
        assert await process.stdout.readline() == b"ready\n"
        assert len(processes_with(mark)) >= processes, "we, the adapter, and if there is one, launcher and program"
        process.kill()
        await process.wait()
        process._transport.close()
        assert await gone_within(mark, 3) == {}

    run(main)


def test_when_the_adapter_is_killed_we_are_told_and_nothing_is_left(program, marked):
    env, mark = marked

    async def main():
        async with await ProxyServer.spawn(DEBUGPY, env=env) as proxy:
            await to_stop(proxy, program)
            asking = asyncio.ensure_future(proxy.request("evaluate", {"expression": "__import__('time').sleep(60)"}))
            await proxy.request("threads")
            os.kill(proxy._process.pid, signal.SIGKILL)
            with pytest.raises(RequestFailed, match="killed by signal 9"):
                await asking
            await asyncio.wait_for(proxy.wait_closed(), 3)
            assert not proxy.stopped and "killed by signal 9" in proxy.gone
        assert await gone_within(mark, 3) == {}

    run(main)


def test_when_the_program_is_killed_the_session_ends(program, marked):
    env, mark = marked

    async def main():
        async with await ProxyServer.spawn(DEBUGPY, env=env) as proxy:
            over = asyncio.Event()
            pids = []

            def watch(message):
                if message["event"] == "process":
                    pids.append(message["body"]["systemProcessId"])
                if message["event"] == "terminated":
                    over.set()

            proxy.subscribe(watch)
            await to_stop(proxy, program)
            os.kill(pids[0], signal.SIGKILL)
            await asyncio.wait_for(over.wait(), 5)
            assert not proxy.stopped
        assert await gone_within(mark, 3) == {}

    run(main)


def test_a_client_that_vanishes_leaves_the_session_to_us(program, marked):
    env, mark = marked

    async def main():
        async with await ProxyServer.spawn(DEBUGPY, env=env) as proxy:
            async with client_of(proxy) as client:
                await launch(client, program, lines=[5])
                thread = (await client.event("stopped"))["body"]["threadId"]
            frames = (await proxy.request("stackTrace", {"threadId": thread}))["stackFrames"]
            assert frames[0]["name"] == "price"
        assert await gone_within(mark, 3) == {}

    run(main)


def test_a_debug_server_reached_over_tcp(program, marked):
    env, mark = marked

    async def main():
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", SERVER.format(program=program), env=env, stdout=asyncio.subprocess.PIPE
        )
        port = int(await process.stdout.readline())
        async with await ProxyServer.connect("127.0.0.1", port) as proxy:
            initialized = asyncio.Event()
            stopped = asyncio.Event()
            proxy.subscribe(
                lambda m: {"stopped": stopped, "initialized": initialized}.get(m["event"], asyncio.Event()).set()
            )
            await proxy.request("initialize", INITIALIZE)
            attached = asyncio.ensure_future(proxy.request("attach", {"justMyCode": True}))
            await initialized.wait()
            await proxy.request("setExceptionBreakpoints", {"filters": ["uncaught"]})
            await proxy.request("configurationDone")
            await attached
            await asyncio.wait_for(stopped.wait(), 20)
            await proxy.request("disconnect", {"terminateDebuggee": False})
        await asyncio.wait_for(process.communicate(), 20)
        process._transport.close()
        assert process.returncode == 1
        assert await gone_within(mark, 3) == {}

    run(main)


SERVER = """
import debugpy, runpy
print(debugpy.listen(("127.0.0.1", 0))[1], flush=True)
debugpy.wait_for_client()
runpy.run_path({program!r}, run_name="__main__")
"""
