"""The filter "raised and not going to be handled" in real debugpy sessions."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from dap_agent.proxy.server import ProxyServer
from dap_agent.session import payload
from dap_agent.session.target import Target

PROGRAM = '''
import contextlib, json
class Ignored(Exception):
    pass
def leaf(d):
    return d["k"]
def handled():
    try:
        return leaf({})
    except LookupError:
        return 1
def suppressed():
    with contextlib.suppress(KeyError):
        leaf({})
def busy():
    for i in range(1000):
        try:
            int("x")
        except ValueError:
            pass
def ignored():
    raise Ignored("by its class")
def wrong_type():
    try:
        leaf({})
    except ValueError:
        pass
    except OSError as error:
        raise RuntimeError() from error
def translated():
    try:
        json.loads("{")
    except ValueError as error:
        raise RuntimeError("no JSON") from error
def run(function):
    """Stands for a framework: what it catches is reported by nobody else."""
    import threading
    threading.excepthook = lambda args: None
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()
handled(); suppressed(); busy()
print("no stop so far")
run(ignored)
run(translated)
wrong_type()
'''


class Client:
    """An editor, as far as it is needed here: starts a program with the filter on and goes through its stops."""

    def __init__(self, proxy: ProxyServer) -> None:
        self.proxy = proxy
        self.events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        proxy.subscribe(self.events.put_nowait)
        self.target = Target(proxy, lambda *_: None, lambda _: None)

    async def event(self, *names: str) -> dict[str, Any]:
        while True:
            event = await asyncio.wait_for(self.events.get(), 60)
            if event["event"] in names:
                return dict(event)

    async def start(self, python: Path, program: Path, filters: list[str], just_my_code: bool, **lists: Any) -> None:
        await self.target.initialize()
        arguments = {
            "program": str(program),
            "python": [str(python)],
            "console": "internalConsole",
            "cwd": str(program.parent),
            "stopOnEntry": True,
            "justMyCode": just_my_code,
        }
        launching = asyncio.ensure_future(self.proxy.request("launch", arguments, timeout=60))
        await self.event("initialized")
        await self.proxy.request("setExceptionBreakpoints", {"filters": []})
        await self.proxy.request("configurationDone", {})
        await launching
        await self.event("stopped")
        await self.target.evaluate(payload.install_expression())
        await self.target.ask("stops", {"will_be_unhandled": True, **lists})
        # the client sets its filters anew, which takes all breakpoints of pydevd's away
        await self.proxy.request("setExceptionBreakpoints", {"filters": filters})

    async def stops(self) -> list[tuple[str, list[str], bool]]:
        """Of each stop: the exception's class, the functions on the stack, whether all their frames still run."""
        found = []
        threads = await self.proxy.request("threads")
        thread = threads["threads"][0]["id"]
        while True:
            await self.proxy.request("continue", {"threadId": thread})
            event = await self.event("stopped", "terminated")
            if event["event"] == "terminated":
                return found
            thread = event["body"]["threadId"]
            frames = (await self.proxy.request("stackTrace", {"threadId": thread}))["stackFrames"]
            info = await self.proxy.request("exceptionInfo", {"threadId": thread})
            own = [frame["name"] for frame in frames if frame["source"]["path"].endswith("program.py")]
            names = [name for name in own if not name.startswith("[Chained Exc")]  # of the exception it was raised for
            alive = await self.target.evaluate(ALIVE, frame_id=frames[0]["id"])
            found.append((info["exceptionId"].rpartition(".")[2], names, set(names) <= set(alive.strip("'").split())))


ALIVE = (
    "(lambda f: (lambda g: ' '.join(g(g, f)))(lambda g, f: [] if f is None else [f.f_code.co_name] + g(g, f.f_back)))"
    "(__import__('sys')._getframe())"
)


def stops(folder: Path, python: Path, filters: list[str], just_my_code: bool, **lists: Any) -> Any:
    program = folder / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")

    async def play() -> Any:
        proxy = await ProxyServer.spawn([sys.executable, "-m", "debugpy.adapter"])
        client = Client(proxy)
        try:
            await client.start(python, program, filters, just_my_code, **lists)
            return await client.stops()
        finally:
            await proxy.close()

    return asyncio.run(asyncio.wait_for(play(), 90))


@pytest.mark.parametrize("version", ["3.9", "3.11", "3.12", "3.13"])
def test_stops_at_the_raise_with_all_frames_alive(
    version: str, all_interpreters: dict[str, str], tmp_path: Path
) -> None:
    if version not in all_interpreters:
        pytest.skip(f"there is no Python {version} on this machine")
    made = stops(tmp_path, Path(all_interpreters[version]), [], True, ignore_types=["__main__.Ignored"])
    assert made == [
        ("JSONDecodeError", ["translated"], True),
        ("KeyError", ["leaf", "wrong_type", "<module>"], True),
    ]


def test_with_the_code_of_libraries(python: Path, tmp_path: Path) -> None:
    made = stops(tmp_path, python, [], False, ignore_modules=["json"])
    assert [entry[0] for entry in made] == ["Ignored", "RuntimeError", "KeyError"]
    assert all(alive for _, _, alive in made)


def test_the_client_s_own_filter_goes_on_to_work(python: Path, tmp_path: Path) -> None:
    made = stops(tmp_path, python, ["uncaught"], True, ignore_types=["LookupError", "Ignored", "ValueError"])
    assert [entry[0] for entry in made] == ["Ignored", "RuntimeError", "KeyError"]  # each once
    assert made[1][2]
    assert not made[-1][2]  # debugpy's own stop comes when the frames have gone
