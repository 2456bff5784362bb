"""`dap-agent adapter` ends in order: by signals, at the end of its input, with clients that do not read."""

import asyncio
import json
import os
import signal
import sys
import uuid

import pytest

from dap_agent.wire import encode
from dap_agent.wire.messages import dumps, request

from .editor_double import OURS, VSCODE, EditorDouble, editor, environment
from .fakes import Stream, gone_within, processes_with, run, script

LOOP = "import time\n\n\ndef look(n):\n    return n\n\n\nwhile True:\n    look(1)\n    time.sleep(0.01)\n"
LIMIT = 3.0


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "looping.py"
    path.write_text(LOOP)
    return str(path)


@pytest.fixture
def mark():
    return f"dap-end-{uuid.uuid4().hex}"


async def to_stop(client, program):
    await client.start("launch", {"program": program, "console": "internalConsole"})
    return (await client.event("stopped"))["body"]["threadId"]


def of(mark, part):
    (pid,) = [pid for pid, line in processes_with(mark).items() if part in line]
    return pid


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_everything_and_the_editor_is_told(program, mark, number):
    async def main():
        async with editor(OURS, env=environment(DAP_TEST_MARK=mark), initialize=VSCODE, lines={program: [5]}) as client:
            thread = await to_stop(client, program)
            frames = (await client.ask("stackTrace", {"threadId": thread}))["body"]["stackFrames"]
            sleep = {"expression": "__import__('time').sleep(60)", "frameId": frames[0]["id"], "context": "repl"}
            waiting = client.post("evaluate", sleep)
            os.kill(of(mark, "dap_agent adapter"), number)
            assert not (await client.answer(waiting, timeout=LIMIT))["success"]
            await client.event("terminated", timeout=LIMIT)
            await client.end(timeout=LIMIT)
            assert await asyncio.wait_for(client.process.wait(), LIMIT) == 0
            assert await gone_within(mark, LIMIT) == {}

    run(main)


def test_a_signal_ends_a_server(mark, program):
    async def main():
        process = await asyncio.create_subprocess_exec(
            *OURS, "--listen", "127.0.0.1:0", stdout=asyncio.subprocess.PIPE, env=environment(DAP_TEST_MARK=mark)
        )
        port = int((await process.stdout.readline()).decode().rpartition(":")[2])
        stream = await asyncio.open_connection("127.0.0.1", port)
        client = EditorDouble(*stream, initialize=VSCODE, lines={program: [5]})
        await to_stop(client, program)
        process.terminate()
        await client.event("terminated", timeout=LIMIT)
        await client.close()
        assert await asyncio.wait_for(process.wait(), LIMIT) == 0
        process._transport.close()
        assert await gone_within(mark, LIMIT) == {}

    run(main)


@pytest.mark.parametrize("command", [OURS, [*OURS, "--", *script("import time; time.sleep(1000)")]])
def test_the_end_of_the_input_ends_everything(program, mark, command):
    async def main():
        async with editor(
            command, env=environment(DAP_TEST_MARK=mark), initialize=VSCODE, lines={program: [5]}
        ) as client:
            if command is OURS:
                await to_stop(client, program)
            client._writer.close()
            assert await asyncio.wait_for(client.process.wait(), LIMIT) == 0
            assert await gone_within(mark, LIMIT) == {}

    run(main)


def test_an_adapter_that_is_stopped_does_not_keep_us(program, mark):
    async def main():
        async with editor(OURS, env=environment(DAP_TEST_MARK=mark), initialize=VSCODE, lines={program: [5]}) as client:
            await to_stop(client, program)
            os.kill(of(mark, "adapter_start.py"), signal.SIGSTOP)
            client._writer.close()
            assert await asyncio.wait_for(client.process.wait(), LIMIT) == 0
        assert await gone_within(mark, LIMIT) == {}

    run(main)


def test_standard_input_that_is_no_pipe_is_told():
    async def main():
        process = await asyncio.create_subprocess_exec(
            *OURS,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment(),
        )
        out, error = await asyncio.wait_for(process.communicate(), 10)
        process._transport.close()
        assert (process.returncode, out) == (70, b"") and b"no pipes here" in error

    run(main)


def test_what_is_printed_by_mistake_does_not_meet_the_protocol(program):
    async def main():
        wrapped = script("import os, sys; os.write(2, b'hello\\n'); import debugpy.adapter.__main__ as m; m.main()")
        async with editor([*OURS, "--", *wrapped], initialize=VSCODE) as client:
            assert (await client.ask("initialize", VSCODE))["success"]

    run(main)


# Hostile peers


@pytest.mark.parametrize(
    "rubbish",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"Content-Length: 99999999999\r\n\r\n",
        b"Content-Length: x\r\n\r\n",
        b"A: " + b"x" * 100_000,
        b"\x00" * 100,
    ],
)
def test_rubbish_from_the_editor_is_told_and_ends_the_session(mark, rubbish):
    async def main():
        async with editor(OURS, env=environment(DAP_TEST_MARK=mark), initialize=VSCODE) as client:
            await client.ask("initialize", VSCODE)
            client._writer.write(rubbish)
            await client.end(timeout=LIMIT)
            assert "Not a Debug Adapter Protocol stream" in client.log[-1]["body"]["output"]
            assert await asyncio.wait_for(client.process.wait(), LIMIT) == 0
        assert await gone_within(mark, LIMIT) == {}

    run(main)


@pytest.mark.parametrize(
    "rubbish", ["Traceback: boom\\r\\n", "Content-Length: 5\\r\\n\\r\\n{", "Content-Length: 99999999999\\r\\n\\r\\n"]
)
def test_rubbish_from_the_adapter_is_told(mark, rubbish):
    async def main():
        text = f"import sys; sys.stdout.write('{rubbish}'); sys.stdout.flush(); sys.stdin.read(1)"
        async with editor(
            [*OURS, "--", *script(text)], env=environment(DAP_TEST_MARK=mark), initialize=VSCODE
        ) as client:
            answer = await client.ask("initialize", VSCODE, timeout=LIMIT)
            assert not answer["success"] and "Debug Adapter Protocol" in answer["message"]
            await client.event("terminated", timeout=LIMIT)
        assert await gone_within(mark, LIMIT) == {}

    run(main)


# Floods

FLOOD = r"""
import sys
read, write = sys.stdin.buffer, sys.stdout.buffer
while line := read.readline().strip():
    length = int(line.split(b":")[1])
read.read(length)
body = b'{"category": "stdout", "output": "line %07d of it\\n"}}'
event = b'{"seq": 1, "type": "event", "event": "output", "body": ' + body
framed = b"Content-Length: %d\r\n\r\n%b" % (len(event % 0), event)
for start in range(0, 1_000_000, 1000):
    write.write(b"".join([framed % n for n in range(start, start + 1000)]))
write.flush()
read.read()
"""


def megabytes(pid, what="VmHWM"):
    with open(f"/proc/{pid}/status") as file:
        return int(file.read().split(f"{what}:")[1].split()[0]) / 1024


def test_a_million_lines_for_a_slow_editor_cost_no_memory():
    async def main():
        process = await asyncio.create_subprocess_exec(
            *OURS,
            *("--", *script(FLOOD)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=environment(),
            limit=1 << 16,
        )
        loop = asyncio.get_running_loop()
        process.stdin.write(encode(dumps(request("initialize", {}, seq=1))))
        await process.stdout.readexactly(1000)
        # not reading: the flood must stand still somewhere else than in us
        before, still = -1.0, 0
        while still < 5:
            await asyncio.sleep(0.1)  # polling: nothing tells that nothing happens
            used = megabytes(process.pid, "VmRSS")
            still = still + 1 if used == before else 0
            before = used
        stream = Stream(process.stdout, process.stdin)
        began, seen, last = loop.time(), 0, b""
        while b"line 0999999 of it" not in last and (data := await process.stdout.read(1 << 16)):
            last = last[-100:] + data
            seen += len(data)
        assert b"line 0999999 of it" in last, "nothing was lost"
        assert seen > 100_000_000 and loop.time() - began < 60
        assert megabytes(process.pid) < 100
        await stream.close()
        await asyncio.wait_for(process.wait(), 5)
        process._transport.close()

    run(main, timeout=100)


def test_an_editor_that_floods_is_not_read_either(mark):
    asleep = "import sys, time; sys.stdin.buffer.read(10); time.sleep(1000)"

    async def main():
        process = await asyncio.create_subprocess_exec(
            *OURS,
            *("--", *script(asleep)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=environment(DAP_TEST_MARK=mark),
        )
        body = encode(json.dumps(request("launch", {"x": "y" * 100_000}, seq=1)).encode())
        with pytest.raises(asyncio.TimeoutError):
            for _ in range(2000):  # 200 MB
                process.stdin.write(body)
                await asyncio.wait_for(process.stdin.drain(), 1)
        assert megabytes(process.pid) < 100
        process.stdin.transport.abort()
        process._transport.get_pipe_transport(1).close()
        assert await asyncio.wait_for(process.wait(), LIMIT + 1) == 0
        process._transport.close()
        assert await gone_within(mark, LIMIT) == {}

    run(main)


def test_it_starts_light():
    async def main():
        async with editor(OURS, initialize=VSCODE) as client:
            await client.ask("initialize", VSCODE)
            assert megabytes(client.process.pid) <= 60
            await client.ask("disconnect")

    run(main)
    assert sys.executable == OURS[0]
