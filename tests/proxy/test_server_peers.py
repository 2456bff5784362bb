"""The server's I/O with adapters and clients of the test's own making."""

import asyncio
import gc
import os
import signal
import socket
import sys

import pytest

from dap_agent.errors import DapAgentError
from dap_agent.proxy import links, process, server
from dap_agent.proxy.server import AdapterFailed, ProxyServer, RequestFailed
from dap_agent.wire import encode
from dap_agent.wire.messages import dumps, event, request, response

from .fakes import Stream, client_of, echo, fake_adapter, run, script

pytestmark = pytest.mark.filterwarnings("error::ResourceWarning", "error::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def _collect():
    yield
    gc.collect()  # so that what was not closed is told here


ANSWERING = """
import sys
def read():
    length = 0
    while (line := sys.stdin.buffer.readline().strip()):
        length = int(line.split(b":")[1])
    if not length:
        sys.exit(0)
    return json.loads(sys.stdin.buffer.read(length))
def write(message):
    body = json.dumps(message).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\\r\\n\\r\\n" % len(body) + body)
    sys.stdout.buffer.flush()
def answer(m, body=None):
    head = {"seq": 1, "type": "response", "request_seq": m["seq"], "success": True, "command": m["command"]}
    write({**head, "body": body})
import json
"""


# Starting and reaching


def test_an_adapter_that_cannot_be_started():
    async def main():
        with pytest.raises(AdapterFailed, match="'/no/such/python' cannot be started: No such file") as caught:
            await ProxyServer.spawn(["/no/such/python", "-m", "debugpy.adapter"])
        assert isinstance(caught.value, DapAgentError)
        with pytest.raises(AdapterFailed, match="cannot be started"):
            await ProxyServer.spawn([sys.executable], cwd="/no/such/folder")

    run(main)


def test_an_adapter_that_cannot_be_reached():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: refuses
        port = taken.getsockname()[1]

        async def main():
            with pytest.raises(AdapterFailed, match=f"127.0.0.1:{port} cannot be reached"):
                await ProxyServer.connect("127.0.0.1", port, timeout=5)
            with pytest.raises(AdapterFailed, match="cannot be reached"):
                await ProxyServer.connect("127.0.0.1", port, timeout=0.2, retry=True)

        run(main)


def test_an_adapter_that_listens_a_little_later():
    async def main():
        taken = socket.create_server(("127.0.0.1", 0), backlog=0)
        port = taken.getsockname()[1]
        taken.close()
        connecting = asyncio.ensure_future(ProxyServer.connect("127.0.0.1", port, retry=True))
        await asyncio.sleep(0)
        late = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", port)
        proxy = await connecting
        await proxy.wait_closed()
        await proxy.close()
        late.close()
        await late.wait_closed()

    run(main)


def test_an_adapter_that_dies_at_once_is_told_with_its_last_words():
    async def main():
        async with await ProxyServer.spawn(script("import sys; sys.exit('No module named debugpy')")) as proxy:
            with pytest.raises(RequestFailed, match=r"has ended \(exit status 1\).*No module named debugpy") as caught:
                await proxy.request("initialize")
            assert (caught.value.command, caught.value.reason) == ("initialize", "closed")
            await proxy.wait_closed()
            assert proxy.gone == caught.value.message

    run(main)


def test_no_delay_is_set_on_our_sockets():
    async def main():
        async with fake_adapter(echo) as (host, port):
            async with await ProxyServer.connect(host, port) as proxy:
                sock = proxy._adapter._writer.get_extra_info("socket")
                assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    run(main)


# Asking


def test_many_questions_at_once_get_their_own_answers():
    async def main():
        async with fake_adapter(echo) as (host, port), await ProxyServer.connect(host, port) as proxy:
            answers = await asyncio.gather(*(proxy.request("threads", {"n": n}) for n in range(200)))
            assert [answer["n"] for answer in answers] == list(range(200))

    run(main)


def test_an_answer_that_does_not_come_in_time():
    async def main():
        held = []

        async def slow(message, stream):
            held.append(message)
            if len(held) == 2:
                for m in held:
                    await echo(m, stream)

        async with fake_adapter(slow) as (host, port), await ProxyServer.connect(host, port) as proxy:
            with pytest.raises(RequestFailed, match=r"did not answer 'threads' within 0\.01 s") as caught:
                await proxy.request("threads", {"n": 1}, timeout=0.01)
            assert caught.value.reason == "timeout"
            assert await proxy.request("threads", {"n": 2}) == {"n": 2}  # the late answer came first and was dropped

    run(main)


def test_what_cannot_be_sent():
    async def main():
        async with fake_adapter(echo) as (host, port), await ProxyServer.connect(host, port) as proxy:
            for bad in ({"x": float("nan")}, {"x": object()}):
                with pytest.raises(RequestFailed, match="cannot be written as JSON") as caught:
                    await proxy.request("threads", bad)
                assert caught.value.reason == "invalid"
            with pytest.raises(RequestFailed) as caught:
                await proxy.request("restart")
            assert caught.value.reason == "unsupported"
            assert await proxy.request("threads", {"x": 1}) == {"x": 1}

    run(main)


def test_a_cancelled_question_leaves_nothing():
    async def main():
        async def mute(message, stream):
            pass

        async with fake_adapter(mute) as (host, port), await ProxyServer.connect(host, port) as proxy:
            asking = asyncio.ensure_future(proxy.request("threads"))
            await asyncio.sleep(0)
            asking.cancel()
            await asyncio.wait({asking})
            assert proxy._core.in_flight == 0 and not proxy._own.answers

    run(main)


def test_listeners_see_the_state_as_of_their_event():
    async def main():
        async def burst(message, stream):
            stop, go = event("stopped", {"threadId": 1}), event("continued", {"threadId": 1})
            stream.send(stop, go, stop, go, response(message["seq"], "threads"))

        seen = []
        async with fake_adapter(burst) as (host, port), await ProxyServer.connect(host, port) as proxy:
            proxy.subscribe(lambda m: seen.append((m["event"], proxy.epoch, proxy.stopped)))
            await proxy.request("threads")
        assert seen == [("stopped", 1, True), ("continued", 2, False), ("stopped", 3, True), ("continued", 4, False)]

    run(main)


def test_a_listeners_mistake_hurts_nobody_else():
    async def main():
        async def eventful(message, stream):
            stream.send(event("output", {"output": "x"}), response(message["seq"], "threads"))

        told, seen = [], []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context["exception"]))
        async with fake_adapter(eventful) as (host, port), await ProxyServer.connect(host, port) as proxy:
            proxy.subscribe(lambda message: 1 / 0)
            end = proxy.subscribe(seen.append)
            await proxy.request("threads")
            end()
            end()
            await proxy.request("threads")
        assert len(seen) == 1
        assert [type(error) for error in told] == [ZeroDivisionError] * 2

    run(main)


def test_reverse_requests_can_be_handled_here():
    async def main():
        answers = asyncio.Queue()

        async def asking(message, stream):
            if message["type"] == "response":
                answers.put_nowait(message)
            else:
                for seq, command in enumerate(["runInTerminal", "startDebugging", "unheardOf", "broken"], 70):
                    stream.send(request(command, {"args": []}, seq=seq))
                await echo(message, stream)

        async def terminal(message):
            return {"processId": len(message["arguments"]["args"])}

        async def no(message):
            raise DapAgentError("No children here.")

        async def broken(message):
            raise KeyError("x")

        async with fake_adapter(asking) as (host, port), await ProxyServer.connect(host, port) as proxy:
            proxy.handle("runInTerminal", terminal)
            proxy.handle("startDebugging", no)
            proxy.handle("broken", broken)
            await proxy.request("threads")
            got = {m["request_seq"]: m for m in [await answers.get() for _ in range(4)]}
        assert got[70]["body"] == {"processId": 0}
        assert got[71]["message"] == "No children here."
        assert "no client" in got[72]["message"]
        assert got[73]["message"] == "KeyError: 'x'"

    run(main)


# Adapters that misbehave


def test_an_adapter_that_prints_rubbish_on_its_standard_output():
    async def main():
        async with await ProxyServer.spawn(script("print('Hello, I am no adapter'); input()")) as proxy:
            with pytest.raises(RequestFailed, match=r"cannot be understood any more.*Hello, I am"):
                await proxy.request("initialize")

    run(main)


def test_an_adapter_that_dies_within_a_message():
    async def main():
        async with await ProxyServer.spawn(script("print('Content-Length: 9\\r\\n\\r\\n{', end='')")) as proxy:
            with pytest.raises(RequestFailed, match=r"exit status 0\) within a message.*after 1 of the 9 bytes"):
                await proxy.request("initialize")

    run(main)


def test_an_adapter_that_talks_on_its_standard_error_is_not_blocked():
    async def main():
        program = ANSWERING + "sys.stderr.write('x' * 3_000_000 + '\\nlast line\\n'); answer(read()); read()"
        async with await ProxyServer.spawn(script(program)) as proxy:
            await proxy.request("initialize")
            assert proxy.last_words[-1] == "last line"
            assert sum(map(len, proxy.last_words)) < 100_000

    run(main)


STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
""" + ANSWERING + """
answer(read(), {"child": child.pid})
time.sleep(1000)
"""  # fmt: skip


def test_an_adapter_that_does_not_want_to_end_is_ended_with_its_group(monkeypatch):
    monkeypatch.setattr(process, "STEP", 0.1)

    async def main():
        proxy = await ProxyServer.spawn(script(STUBBORN))
        child = (await proxy.request("initialize"))["child"]
        asking = asyncio.ensure_future(proxy.request("threads"))
        await asyncio.sleep(0)
        await asyncio.gather(proxy.close(), proxy.close())
        await proxy.close()
        with pytest.raises(RequestFailed, match="was closed"):
            await asking
        with pytest.raises(ProcessLookupError):
            os.kill(proxy._process.pid, 0)
        for _ in range(100):  # reaped by init, not by us
            try:
                with open(f"/proc/{child}/stat") as stat:
                    if stat.read().split(") ")[1][0] == "Z":
                        break
            except FileNotFoundError:
                break
            await asyncio.sleep(0.02)
        else:
            raise AssertionError("the adapter's child is still there")

    run(main)


def test_an_adapter_whose_child_keeps_its_pipes_counts_as_ended(monkeypatch):
    monkeypatch.setattr(links, "_LAST_WORDS", 0.05)

    async def main():
        program = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(2)'])"
        async with await ProxyServer.spawn(script(program)) as proxy:
            with pytest.raises(RequestFailed, match="exit status 0"):
                await proxy.request("initialize")

    run(main)


def test_the_adapter_is_out_of_reach_of_ctrl_c():
    async def main():
        async with await ProxyServer.spawn(
            script(ANSWERING + "answer(read(), {'sid': __import__('os').getsid(0)}); read()")
        ) as p:
            assert (await p.request("initialize"))["sid"] not in (os.getsid(0), 0)

    run(main)


# Clients


def test_a_client_and_we_ask_side_by_side():
    async def main():
        async with fake_adapter(echo) as (host, port), await ProxyServer.connect(host, port) as proxy:
            async with client_of(proxy) as client:
                ours = [asyncio.ensure_future(proxy.request("threads", {"ours": n})) for n in range(50)]
                theirs = [client.post("threads", {"theirs": n}) for n in range(50)]
                answers = [await client.answer(seq) for seq in theirs]
                assert [a["body"] for a in answers] == [{"theirs": n} for n in range(50)]
                assert await asyncio.gather(*ours) == [{"ours": n} for n in range(50)]
                assert len(client.log) == 50 and [m["seq"] for m in client.log] == list(range(1, 51))
            assert await proxy.request("threads", {"after": 1}) == {"after": 1}
            async with client_of(proxy) as client:  # another one may come
                assert (await client.ask("threads", {"x": 2}))["body"] == {"x": 2}

    run(main)


def test_only_one_client_at_a_time():
    async def main():
        async with fake_adapter(echo) as (host, port), await ProxyServer.connect(host, port) as proxy:
            async with client_of(proxy) as client:
                await client.ask("threads")
                one, other = socket.socketpair()
                with one, other, pytest.raises(DapAgentError, match="has a client already"):
                    await proxy.serve_client(other)
                await client.ask("threads")

    run(main)


def test_a_client_over_pipes():
    async def main():
        (read_in, write_in), (read_out, write_out) = os.pipe(), os.pipe()
        async with fake_adapter(echo) as (host, port), await ProxyServer.connect(host, port) as proxy:
            serving = asyncio.ensure_future(proxy.serve_pipes(os.fdopen(read_in, "rb"), os.fdopen(write_out, "wb")))
            loop = asyncio.get_running_loop()
            reader = asyncio.StreamReader()
            reading, _ = await loop.connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read_out, "rb")
            )
            os.write(write_in, encode(dumps(request("threads", {"x": 1}, seq=5))))
            stream = Stream(reader, None)
            assert await stream.receive() == response(5, "threads", {"x": 1}, seq=1)
            os.close(write_in)
            await asyncio.wait_for(serving, 5)
            assert await stream.receive() is None
            reading.close()
            assert await proxy.request("threads", {"y": 1}) == {"y": 1}

    run(main)


def test_a_client_over_pipes_that_vanishes_both_ways_at_once():
    async def main():
        (read_in, write_in), (read_out, write_out) = os.pipe(), os.pipe()
        async with fake_adapter(echo) as (host, port), await ProxyServer.connect(host, port) as proxy:
            serving = asyncio.ensure_future(proxy.serve_pipes(os.fdopen(read_in, "rb"), os.fdopen(write_out, "wb")))
            await proxy.request("threads")
            os.close(read_out)
            os.close(write_in)
            await asyncio.wait_for(serving, 5)
            assert await proxy.request("threads", {"y": 1}) == {"y": 1}

    run(main)


def test_a_client_that_sends_rubbish_is_told_and_cut_off():
    async def main():
        async with fake_adapter(echo) as (host, port), await ProxyServer.connect(host, port) as proxy:
            async with client_of(proxy) as client:
                client._writer.write(b"GET / HTTP/1.1\r\n\r\n")
                told = await client.event("output")
                assert "GET / HTTP" in told["body"]["output"] and told["body"]["category"] == "important"
                await client.end()
            assert await proxy.request("threads", {"x": 1}) == {"x": 1}

    run(main)


def test_when_the_adapter_dies_the_client_is_told_and_let_go(monkeypatch):
    monkeypatch.setattr(server, "_EXIT_GRACE", 0.1)

    async def main():
        async with await ProxyServer.spawn(script(ANSWERING + "read(); sys.exit(7)")) as proxy:
            async with client_of(proxy) as client:
                assert "exit status 7" in (await client.ask("threads"))["message"]
                assert "exit status 7" in (await client.event("output"))["body"]["output"]
                await client.event("terminated")
                await client.end()

    run(main)


def test_after_disconnect_the_stream_ends_without_more_words():
    async def main():
        async with await ProxyServer.spawn(script(ANSWERING + "answer(read())")) as proxy:
            async with client_of(proxy) as client:
                assert (await client.ask("disconnect"))["success"]
                await client.end()
                assert len(client.log) == 1

    run(main)


def test_closing_lets_the_client_go():
    async def main():
        async with fake_adapter(echo) as (host, port):
            proxy = await ProxyServer.connect(host, port)
            async with client_of(proxy) as client:
                await client.ask("threads")
                await proxy.close()
                await client.event("terminated")
                await client.end()

    run(main)


# Back-pressure

FLOOD = ANSWERING + """
m = read()
event = {"seq": 1, "type": "event", "event": "output", "body": {"category": "stdout", "output": "x" * 1000}}
for n in range(60_000):
    event["body"]["n"] = n
    write(event)
answer(m)
read()
"""  # fmt: skip


def test_a_slow_client_slows_the_adapter_and_loses_nothing():
    async def main():
        async with await ProxyServer.spawn(script(FLOOD)) as proxy:
            ours, theirs = socket.socketpair()
            serving = asyncio.ensure_future(proxy.serve_client(theirs))
            reader, writer = await asyncio.open_connection(sock=ours, limit=1 << 16)
            writer.write(encode(dumps(request("threads", seq=1))))
            while not proxy._adapter.held:  # the client does not read, 60 MB are on their way
                await asyncio.sleep(0.01)
            for _ in range(1000):
                await asyncio.sleep(0)
                assert proxy._client._writer.get_write_buffer_size() < 2_000_000
            stream, numbers = Stream(reader, writer), []
            while (message := await stream.receive())["type"] == "event":
                numbers.append(message["body"]["n"])
            assert numbers == list(range(60_000))
            assert message["request_seq"] == 1
            await stream.close()
            await serving

    run(main)


def test_a_client_that_asks_and_never_reads_is_not_read_either(monkeypatch):
    monkeypatch.setattr(links, "_MUCH", 100_000)

    async def main():
        async with fake_adapter(echo) as (host, port), await ProxyServer.connect(host, port) as proxy:
            ours, theirs = socket.socketpair()
            serving = asyncio.ensure_future(proxy.serve_client(theirs))
            reader, writer = await asyncio.open_connection(sock=ours, limit=1 << 16)
            for seq in range(1, 20_001):  # each refused here, about 700 bytes
                writer.write(encode(dumps(request("restart", seq=seq))))
            while not (proxy._client is not None and proxy._client.held):
                await asyncio.sleep(0.01)
            stream = Stream(reader, writer)
            got = [(await stream.receive())["request_seq"] for _ in range(20_000)]
            assert got == list(range(1, 20_001))
            await stream.close()
            await serving

    run(main)


def test_a_slow_adapter_slows_the_client():
    async def main():
        gate = asyncio.Event()

        async def slow(message, stream):
            await gate.wait()
            await echo(message, stream)

        async with fake_adapter(slow) as (host, port), await ProxyServer.connect(host, port) as proxy:
            async with client_of(proxy) as client:
                text = "x" * 100_000
                sent = [client.post("evaluate", {"expression": text}) for _ in range(200)]
                while not (proxy._client is not None and proxy._client.held):
                    await asyncio.sleep(0.01)
                assert proxy._adapter._writer.get_write_buffer_size() < 2_000_000
                gate.set()
                for seq in sent:
                    assert (await client.answer(seq))["body"] == {"expression": text}

    run(main)


def test_nothing_is_warned_about_under_the_strictest_checks(tmp_path):
    program = tmp_path / "use.py"
    program.write_text(
        "import asyncio, sys\n"
        "from dap_agent.proxy.server import ProxyServer\n"
        "async def main():\n"
        "    for _ in range(3):\n"
        "        async with await ProxyServer.spawn([sys.executable, '-c', 'input()']) as proxy:\n"
        "            pass\n"
        "    try:\n"
        "        await ProxyServer.spawn(['/no/such/program'])\n"
        "    except Exception as error:\n"
        "        print(error)\n"
        "asyncio.run(main(), debug=True)\n"
    )

    async def main():
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-X", "dev", "-W", "error", str(program),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p) or os.getcwd()},
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, err = await process.communicate()
        process._transport.close()
        assert (process.returncode, err) == (0, b"") and b"cannot be started" in out

    run(main)


def test_an_adapter_that_dies_with_a_full_pipe_leaves_no_request_unanswered():
    """The relay reads the client no further while the adapter takes nothing; that must end with the adapter."""

    async def main():
        adapter = [sys.executable, "-c", "import time; time.sleep(600)"]
        async with await ProxyServer.spawn(adapter) as proxy, client_of(proxy) as client:
            first = client.post("evaluate", {"expression": "x" * 4_000_000})
            while proxy._client is None or not proxy._client.held:
                await asyncio.sleep(0)
            later = [client.post("threads") for _ in range(3)]
            os.kill(proxy._process.pid, signal.SIGKILL)
            for seq in (first, *later):
                assert not (await client.answer(seq))["success"]

    run(main)
