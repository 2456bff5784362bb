"""Where exceptions stop: what users of debugpy report, and what `dap-agent adapter` makes of it.

Each test is named after the symptom's number and its first issue. What debugpy does alone is shown first, with the
filters that clients have checked; then what the same user sees with "Raised and not going to be handled" checked.
"""

from pathlib import Path

import pytest

from .debugging import BOTH, DEFAULT, WILL, console, stops

DIRECT, OURS = BOTH["direct"], BOTH["ours"]
WEB = ("flask", "starlette", "fastapi", "httpx", "django", "celery", "aiohttp", "tornado")

TEST = """\
def price(line):
    name = line.strip()
    return {}[name]


def test_price():
    assert price(" tea ") == 3
"""


@pytest.fixture
def write(tmp_path):
    def write(text, name="program.py"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


@pytest.mark.network
def test_01_debugpy_111_a_failing_pytest_test_stops_at_the_raise_with_its_values(python, with_packages, write):
    program = write(TEST, "test_price.py")
    runs = {
        "program": None,
        "folder": program.parent,
        "python": with_packages(python, ("pytest",)),
        "module": "pytest",
        "args": ["-q", "-p", "no:cacheprovider", program.name],
    }
    assert stops(DIRECT, **runs) == []
    (stop,) = stops(OURS, filters=WILL, **runs)
    assert (stop.exception, stop.functions[:2], stop.lines[0]) == ("KeyError", ["price", "test_price"], 3)
    assert stop.alive and stop.values["name"] == "'tea'"


def test_02_debugpy_724_without_any_checkbox_the_exception_is_known_and_no_stop_is_made(write):
    """Our own filters are merged into the client's: it sees neither a stop of theirs nor another checkbox."""
    program = write("def work(n):\n    return {}[n]\n\n\nwork(5)\n")
    found = stops(OURS, program, filters=[])
    assert found == []
    changed = [m for m in found.log if m.get("event") in ("capabilities", "breakpoint")]
    assert not changed or not any("exceptionBreakpointFilters" in str(m) for m in changed)
    offered = next(m for m in found.log if m.get("command") == "initialize")["body"]["exceptionBreakpointFilters"]
    assert [(one["filter"], one["default"]) for one in offered] == [
        ("raised", False), ("uncaught", True), ("userUnhandled", False), ("willBeUnhandled", False),
    ]  # fmt: skip


POOL = """\
from concurrent.futures import ThreadPoolExecutor


def work(number):
    key = "k%d" % number
    while not (jobs and jobs[0]._condition._waiters):
        pass  # until somebody waits for it
    return {}[key]


jobs = []
with ThreadPoolExecutor(2) as pool:
    jobs.append(pool.submit(work, 1))
    jobs[0].result()
"""


def test_03_debugpy_565_a_worker_of_a_thread_pool_stops_where_it_fails(python, write):
    program = write(POOL)
    (late,) = stops(DIRECT, program, python=python)
    assert not late.alive and late.functions[-1] == "<module>", "in the main thread, when the worker has gone"
    (stop,) = stops(OURS, program, python=python, filters=WILL)
    assert (stop.exception, stop.functions, stop.alive) == ("KeyError", ["work"], True)
    assert stop.values["key"] == "'k1'"


ASYNC = """\
import pytest


async def price(name):
    return {}[name]


@pytest.mark.MODE
async def test_price():
    assert await price("tea") == 3
"""


@pytest.mark.network
@pytest.mark.parametrize("mode", ["trio", "asyncio"])
def test_04_debugpy_364_an_async_test_stops_in_the_coroutine(all_interpreters, with_packages, write, mode):
    program = write(ASYNC.replace("MODE", mode), "test_price.py")
    python = Path(all_interpreters["3.11"])
    runs = {
        "program": None,
        "folder": program.parent,
        "python": with_packages(python, ("pytest", "pytest-trio", "pytest-asyncio")),
        "module": "pytest",
        "args": ["-q", "-p", "no:cacheprovider", program.name],
    }
    assert stops(DIRECT, **runs) == []
    (stop,) = stops(OURS, filters=WILL, **runs)
    assert (stop.exception, stop.functions[0], stop.values["name"]) == ("KeyError", "price", "'tea'")
    assert stop.alive == (mode == "asyncio"), "a nursery of trio gets it first, whose group nobody handles"


FLASK = """\
from flask import Flask, request

app = Flask("app")


@app.route("/<name>")
def handler(name):
    price = None
    return price + 1


print(app.test_client().get("/tea").status_code)
"""


@pytest.mark.network
def test_05_vscode_python_21206_a_flask_handler_stops_with_its_request(all_interpreters, with_packages, write):
    program = write(FLASK)
    python = with_packages(Path(all_interpreters["3.13"]), WEB)
    plain = stops(DIRECT, program, python=python)
    assert plain == [] and plain.printed().strip() == "500"

    async def look(client, stop):
        return await console(client, "/try request.path", stop)

    found = stops(OURS, program, python=python, filters=WILL, look=look)
    assert found.printed().strip() == "500"
    (stop,) = found
    assert (stop.exception, stop.functions[0], stop.lines[0], stop.alive) == ("TypeError", "handler", 9, True)
    assert stop.values["name"] == "'tea'" and "'/tea'" in stop.seen


ASGI = """\
import asyncio, httpx
from fastapi import FastAPI

app = FastAPI()


@app.get("/async/{name}")
async def endpoint(name: str):
    price = None
    return price + 1


@app.get("/plain/{name}")
def plain_endpoint(name: str):
    price = None
    return price + 2


async def main():
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
        for path in ("/async/tea", "/plain/tea"):
            print((await client.get(path)).status_code)


asyncio.run(main())
"""


@pytest.mark.network
def test_06_fastapi_2175_endpoints_of_asgi_applications_stop(all_interpreters, with_packages, write):
    program = write(ASGI)
    python = with_packages(Path(all_interpreters["3.13"]), WEB)
    assert stops(DIRECT, program, python=python) == []
    found = stops(OURS, program, python=python, filters=WILL)
    assert [stop.functions[0] for stop in found] == ["endpoint", "plain_endpoint"]
    assert all(stop.alive and stop.exception == "TypeError" for stop in found)
    assert found.printed().split() == ["500", "500"]


ASYNCIO = """\
import asyncio


async def fails(number):
    await asyncio.sleep(0)
    return {}[number]


async def main():
    return await fails(3)


asyncio.run(main())
"""


@pytest.mark.parametrize("version", ["3.8", "3.11", "3.13"])
def test_07_vscode_python_1309_asyncio_stops_at_the_origin_and_not_where_the_loop_was_run(
    all_interpreters, write, version
):
    if version not in all_interpreters:
        pytest.skip(f"there is no Python {version} on this machine")
    program, python = write(ASYNCIO), all_interpreters[version]
    assert not any(stop.alive for stop in stops(DIRECT, program, python=python))
    (stop,) = stops(OURS, program, python=python, filters=WILL)
    assert (stop.functions, stop.lines[0], stop.alive) == (["fails", "main", "<module>"], 6, True)
    assert stop.values["number"] == "3"


CONTROL_FLOW = """\
import asyncio


async def numbers():
    for number in range(2):
        yield number


async def waits():
    await asyncio.sleep(60)


async def main():
    async for number in numbers():
        pass
    half = numbers()
    await half.__anext__()
    await half.aclose()
    task = asyncio.ensure_future(waits())
    await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        print("cancelled")
    try:
        await asyncio.wait_for(waits(), 0.01)
    except asyncio.TimeoutError:
        print("late")


asyncio.run(main())
"""


def test_08_debugpy_756_what_only_steers_the_program_does_not_stop(python, write):
    program = write(CONTROL_FLOW)
    often = stops(DIRECT, program, python=python, filters=["uncaught", "userUnhandled"])
    assert set(often.exceptions) == {"CancelledError"}
    found = stops(OURS, program, python=python, filters=WILL)
    assert found == [] and found.printed().split() == ["cancelled", "late"]
    listed = {"ignore": ["CancelledError", "StopAsyncIteration"]}
    assert stops(OURS, program, python=python, filters=["uncaught", "userUnhandled"], dapAgent=listed) == []


IGNORED = """\
class Expected(Exception):
    pass


def probe():
    raise Expected("one of ours")


def parse(text):
    import json

    return json.loads(text)


def find(name):
    return {}[name]


for function in (probe, lambda: parse("{"), lambda: open("/no/such/file"), lambda: find("tea")):
    try:
        function()
    except Exception as error:
        print(type(error).__name__)
"""


def test_09_vscode_python_5584_types_and_modules_can_be_ignored(python, write):
    program = write(IGNORED)
    everything = stops(DIRECT, program, python=python, filters=["raised"])
    assert set(everything.exceptions) == {"Expected", "JSONDecodeError", "FileNotFoundError", "KeyError"}
    listed = {"ignore": ["__main__.Expected", "OSError", "module:json"]}
    found = stops(OURS, program, python=python, filters=["raised"], dapAgent=listed)
    assert found.exceptions == ["KeyError"]
    assert found.printed().split() == ["Expected", "JSONDecodeError", "FileNotFoundError", "KeyError"]


def test_09_vscode_python_850_only_what_would_end_the_program_stops(python, write):
    """The filter itself is the other half of the wish; what is handled does not stop."""
    program = write(IGNORED + "probe()\n")
    (stop,) = stops(OURS, program, python=python, filters=WILL)
    assert (stop.exception, stop.functions, stop.alive) == ("Expected", ["probe", "<module>"], True)


LIBRARY = """\
import json
from concurrent.futures import ThreadPoolExecutor


def load(text):
    what = "the configuration"
    while not (jobs and jobs[0]._condition._waiters):
        pass  # until somebody waits for it
    return json.loads(text)


jobs = []
with ThreadPoolExecutor(1) as pool:
    jobs.append(pool.submit(load, "{"))
    jobs[0].result()
"""


def test_10_vscode_209360_an_error_of_a_library_stops_at_the_users_frame(python, write):
    program = write(LIBRARY)
    assert not any(stop.alive for stop in stops(DIRECT, program, python=python))

    async def look(client, stop):
        return await console(client, "/why")

    (stop,) = stops(OURS, program, python=python, filters=WILL, look=look)
    assert (stop.exception, stop.functions, stop.alive) == ("JSONDecodeError", ["load"], True)
    assert stop.values["what"] == "'the configuration'"
    assert stop.files[0] == "program.py", "the library's frames are hidden, as the client has asked for"
    assert "raw_decode" in stop.seen or "decoder.py" in stop.seen, stop.seen


def test_11_debugpy_1628_without_just_my_code_the_raise_itself_is_reached(python, write):
    program = write(LIBRARY)
    (stop,) = stops(OURS, program, python=python, filters=WILL, justMyCode=False)
    assert (stop.exception, stop.files[0], stop.functions, stop.alive) == (
        "JSONDecodeError", "decoder.py", ["load"], True,
    )  # fmt: skip
    script = write("def work(n):\n    return {}[n]\n\n\nwork(1)\n", "script.py")
    (stop,) = stops(OURS, script, python=python, filters=WILL, justMyCode=False)
    assert (stop.functions, stop.alive) == (["work", "<module>"], True)


CLEANING = """\
class Manager:
    def __enter__(self):
        return self

    def __exit__(self, *args):
        state.append("left")


def work():
    try:
        with Manager():
            return {}["k"]
    finally:
        state.append("cleaned")


state = ["begun"]
work()
"""


def test_12_debugpy_1956_nothing_is_cleaned_up_yet_at_the_stop(python, write):
    program = write(CLEANING)

    async def look(client, stop):
        told = await client.ask("evaluate", {"expression": "state", "frameId": stop.frame, "context": "watch"})
        return told["body"]["result"]

    (late,) = stops(DIRECT, program, python=python, look=look)
    assert (late.seen, late.alive) == ("['begun', 'left', 'cleaned']", False)
    (stop,) = stops(OURS, program, python=python, filters=WILL, look=look)
    assert (stop.seen, stop.alive) == ("['begun']", True)


def test_12_debugpy_1956_a_stop_that_is_too_late_says_so(write):
    """With the client's own filter only, the state has moved on."""
    program = write(CLEANING)

    async def look(client, stop):
        return await console(client, "/why")

    (stop,) = stops(OURS, program, filters=DEFAULT, look=look)
    assert "with and except blocks on its way have run" in stop.seen
    (stop,) = stops(OURS, program, filters=WILL, look=look)
    assert "have run" not in stop.seen
