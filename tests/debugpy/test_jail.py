"""Jails inside real sessions: nobody sees the forks, and the program goes on as if they had not been."""

import pytest

from .guest_session import run, session

PROGRAM = """
import asyncio
import atexit
import os
import socket
import sqlite3
import sys
import threading

folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
database = sqlite3.connect(os.path.join(folder, "data.db"))
database.execute("create table t(x)")
database.commit()
log = open(os.path.join(folder, "log"), "w")
log.write("once\\n")
near, far = socket.socketpair()
over = threading.Event()
threading.Thread(target=over.wait, daemon=True).start()
threading.Thread(target=lambda: [over.wait(0.001) for _ in range(100000) if not over.is_set()], daemon=True).start()


async def slow(x):
    await asyncio.sleep(0.001)
    return x + 1


async def handle(items):
    total = sum(items)
    raise ValueError("bad %d" % total)


def finish():
    log.write("end\\n")
    log.close()
    database.execute("insert into t values (7)")
    database.commit()
    far.setblocking(False)
    try:
        got = far.recv(10)
    except BlockingIOError:
        got = b""
    print("at its end:", database.execute("select * from t").fetchall(), got, flush=True)


# after the last stop, which below 3.12 comes when all `finally` have run
atexit.register(finish)
asyncio.run(handle([1, 2, 3]))
"""

CODES = [
    ("[total + i for i in items]", "[7, 8, 9]"),
    ("await slow(total)", "7"),
    ("database.execute('insert into t values (1)'); database.commit()\nnear.send(b'x') if False else 5", "5"),
    ("log.write('jail'); log.flush()", "None"),
    ("import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'print(5)'], stdout=-1).stdout", "b'5\\n'"),
    ("import subprocess, sys\nsubprocess.run([sys.executable, '-c', '1 / 0'], stderr=-1).returncode", "1"),
    ("t = threading.Thread(target=lambda: 1 / 0)\nt.start()\nt.join()\n1", "1"),
    ("import os\npid = os.fork()\nif not pid: os._exit(3)\nos.waitpid(pid, 0)[1] >> 8", "3"),
    (
        "import multiprocessing as m\np = m.get_context('fork').Process(target=print)\np.start()\np.join()\np.exitcode",
        "0",
    ),
    ("def f():\n    raise KeyError('inside')\ntry:\n    f()\nexcept KeyError:\n    pass\n3", "3"),
]
ENDS = "at its end: [(7,)] b''"


async def _ask(program):
    for _ in range(2):
        for code, text in CODES:
            found = await program.evaluate(0, code, jailed=True)
            assert found["error"] is None, (code, found)
            assert found["isolation"]["level"] == "kernel"
            if found["value"]["text"] != text:
                assert (code, found["value"]["text"]) == (code, text)
    slow = await program.evaluate(0, "sum(iter(int, 1))", 0.2, jailed=True)
    assert slow["timed_out"]


def test_in_a_headless_session(player, every_python):
    events = []

    async def at_stop(stopped):
        stopped.program._proxy.subscribe(events.append)
        await _ask(stopped.program)
        told = {event["event"] for event in events if event.get("body", {}).get("category") != "telemetry"}
        assert told <= {"module"}  # those of the stack trace
        events.clear()

    story = player.play(player.command(every_python, program=PROGRAM), at_stop=at_stop)
    assert story.headlines == ["ValueError: bad 6"]
    assert not story.crashes
    assert not story.end.failures
    assert story.end.exit_status == 1
    assert ENDS in story.out
    assert "ZeroDivisionError" not in story.err
    assert (player.folder / "log").read_text() == "once\nend\n"


@pytest.mark.parametrize("sub_process", [True, False])
def test_in_an_editors_session(tmp_path, every_python, sub_process):
    """debugpy's own patches of fork and exec are there, and are gone in the jail."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)

    async def main():
        async with session(filters=["uncaught"]) as client:
            await client.launch(file, every_python, subProcess=sub_process)
            body, _ = await client.stop()
            await client.book.until(1)
            live = await client.guest.program()
            await _ask(live)
            assert len(client.guests) == 1  # no child has been announced
            assert client.book.told[1:] == []
            await client.go_on(body["threadId"])
            await client.to_end()

    run(main)
    assert (tmp_path / "log").read_text() == "once\nend\n"
