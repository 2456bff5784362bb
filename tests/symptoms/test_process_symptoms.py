"""Programs of several processes, and servers that start themselves again: what users of debugpy lost there."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from ..proxy.editor_double import NVIM, OURS, VSCODE, editor, environment
from .debugging import WILL, console, stops

FORK = """\
import os


def work(number):
    return {}[number]


pid = os.fork()
if pid == 0:
    try:
        work(1)
    except KeyError:
        os._exit(7)
print("child", os.waitpid(pid, 0)[1] >> 8, flush=True)
work(2)
"""


def printed(client):
    bodies = [m["body"] for m in client.log if m.get("event") == "output"]
    return "".join(body["output"] for body in bodies if body["category"] == "stdout")


@pytest.mark.parametrize("initialize", [VSCODE, NVIM], ids=["vscode", "nvim"])
def test_25_debugpy_264_a_forked_child_ends_and_both_can_be_stopped(tmp_path, python, initialize):
    """Which also holds where the interpreter's monitoring is used (debugpy#1876)."""
    program = tmp_path / "program.py"
    program.write_text(FORK)
    configuration = {"program": str(program), "console": "internalConsole", "subProcess": True, "python": [str(python)]}

    async def main():
        async with editor(OURS, initialize=initialize, lines={str(program): [5]}, filters=WILL) as client:
            await client.start("launch", configuration)
            reasons = []
            while (event := await client.event("stopped", "terminated"))["event"] == "stopped":
                reasons.append(event["body"]["reason"])
                await client.ask("continue", {"threadId": event["body"]["threadId"]})
            await client.leave()
            await client.all_children_over(1)
            (child,) = client.children
            assert [m["body"]["reason"] for m in child.log if m.get("event") == "stopped"] == ["breakpoint"]
            assert reasons == ["breakpoint", "exception"]
            assert printed(client).strip() == "child 7"
            assert "<dap-agent>" not in str(client.log)

    asyncio.run(asyncio.wait_for(main(), 60))


def test_27_debugpy_82_attach_says_what_is_missing_at_once(tmp_path):
    """Without a native debugger on the PATH; debugpy alone waits and tells of a timeout."""
    sleeper = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "dap_agent", "attach", "--pid", str(sleeper.pid)],
            env=environment(PATH=str(tmp_path)),
            capture_output=True,
            text=True,
            timeout=20,
        )
    finally:
        sleeper.communicate(b"\n")
    assert done.returncode == 70
    assert "gdb" in done.stderr and "install" in done.stderr and "Traceback" not in done.stderr
    assert sleeper.returncode == 0, "and the program is unharmed"


RELOADED = """\
import sys

from werkzeug._reloader import run_with_reloader


def serve():
    version = 1
    return version


def main():
    serve()
    sys.stdin.read()


run_with_reloader(main, reloader_type="stat", interval=0.1)
"""


@pytest.mark.network
def test_28_debugpy_2001_breakpoints_survive_the_restart_of_an_autoreloader(tmp_path, all_interpreters, with_packages):
    program = tmp_path / "program.py"
    program.write_text(RELOADED)
    python = with_packages(Path(all_interpreters["3.13"]), ("werkzeug",))
    configuration = {"program": str(program), "console": "internalConsole", "subProcess": True, "python": [str(python)]}

    async def version(client, child):
        stopped = await child.first(lambda m: m.get("event") == "stopped", timeout=40)
        thread = stopped["body"]["threadId"]
        frames = (await child.ask("stackTrace", {"threadId": thread}))["body"]["stackFrames"]
        told = await child.ask("evaluate", {"expression": "version", "frameId": frames[0]["id"], "context": "watch"})
        return told["body"]["result"]

    async def main():
        async with editor(OURS, initialize=VSCODE, lines={str(program): [8]}) as client:
            await client.start("launch", configuration)
            first = await _child(client, 0)
            assert await version(client, first) == "1"
            program.write_text(RELOADED.replace("version = 1", "version = 22"))
            second = await _child(client, 1)
            assert await version(client, second) == "22"
            client.post("disconnect", {"terminateDebuggee": True})
            await client.end()

    asyncio.run(asyncio.wait_for(main(), 90))


async def _child(client, number):
    """The session of a child, when it has one; it looks at each stop and goes on by itself."""
    while len(client.children) <= number:
        client._changed.clear()
        await asyncio.wait_for(client._changed.wait(), 40)
    return client.children[number]


GEVENT = """\
from gevent import monkey

monkey.patch_all()
import gevent


def work(number):
    gevent.sleep(0)
    return {}[number]


gevent.joinall([gevent.spawn(work, 1)])
print("end")
"""


@pytest.mark.network
def test_29_debugpy_1206_under_gevent_watches_do_no_harm_and_the_failure_is_told(
    tmp_path, all_interpreters, with_packages
):
    program = tmp_path / "program.py"
    program.write_text(GEVENT)
    python = with_packages(Path(all_interpreters["3.11"]), ("gevent",))

    async def look(client, stop):
        return await console(client, "/try number * 10", stop), await console(client, "number", stop)

    async def why(client):
        return await console(client, "/why")

    given = {"python": python, "filters": WILL, "gevent": True, "lines": {str(program): [8]}}
    found = stops(OURS, program, look=look, after=why, **given)
    assert [(stop.reason, stop.functions) for stop in found] == [("breakpoint", ["work"])]
    assert found[0].seen == ("value: int = 10", "1")
    assert "KeyError" in found.after and "program.py:9" in found.after
    assert found.printed().split()[-1] == "end"


CELERY = """\
from celery import Celery

app = Celery("shop", broker="memory://", backend="cache+memory://")


@app.task
def price(name):
    prices = {}
    return prices[name]


@app.task
def last():
    from celery.worker import state

    state.should_stop = 0


if __name__ == "__main__":
    price.delay("tea")
    last.delay()
    quiet = ["--without-heartbeat", "--without-gossip", "--without-mingle", "--loglevel=CRITICAL"]
    app.worker_main(["worker", "--pool=solo", *quiet])
"""


@pytest.mark.network
def test_29_ptvsd_1046_a_celery_task_stops_with_the_solo_pool(tmp_path, all_interpreters, with_packages):
    program = tmp_path / "program.py"
    program.write_text(CELERY)
    python = with_packages(
        Path(all_interpreters["3.13"]),
        ("flask", "starlette", "fastapi", "httpx", "django", "celery", "aiohttp", "tornado"),
    )
    (stop,) = stops(OURS, program, python=python, filters=WILL)
    assert (stop.exception, stop.functions[0], stop.alive) == ("KeyError", "price", True)
    assert stop.values["name"] == "'tea'"
