"""`restartFrame` of an editor before a real debugpy: the fixed code runs again, and the program goes on to its end."""

import asyncio
import os

import pytest

from dap_agent.proxy.stops import FILTER
from dap_agent.session import payload
from dap_agent.session.reload import Changed

from ..proxy.fakes import run
from .guest_session import names, session

WILL = FILTER["filter"]
PROGRAM = """\
import asyncio
import sys
import threading


def price(item, quantity):
    return item["price"] * quantity / item["stock"]


def checkout(items):
    try:
        return list(map(lambda item: price(item, 2), items))
    finally:
        sys.stdout.write("finally\\n")


async def ask(items):
    await asyncio.sleep(0)
    return price(items[1], 1)


ITEMS = [{"price": 3, "stock": 2}, {"price": 5, "stock": 0}]


def main():
    over = threading.Event()
    others = [threading.Thread(target=over.wait, daemon=True) for _ in range(4)]
    for thread in others:
        thread.start()
    if sys.argv[1] == "asyncio":
        found = asyncio.run(ask(ITEMS))
    else:
        found = checkout(ITEMS)
    over.set()
    sys.stdout.write(f"RESULT {found}\\n")


main()
"""
FIX = ('/ item["stock"]', '/ (item["stock"] or 1)')
WORSE = ('/ item["stock"]', '/ item["missing"]')
BETTER = ('/ item["missing"]', '/ (item["stock"] or 1)')


class Session:
    """A session that is stopped at the raise."""

    def __init__(self, client, path):
        self.client = client
        self.path = path
        self.text = PROGRAM
        self.printed = ""

    async def stop(self):
        self.body, self.frames = await self.client.stop()
        return names(self.frames)

    async def fix(self, edit):
        new = self.text.replace(*edit)
        assert new != self.text
        report = await self.client.guest.reload([Changed(str(self.path), self.text, new)])
        assert report.refused == [], report
        self.text = new

    async def restart(self, function):
        frame = self.frames[names(self.frames).index(function)]
        return await self.client.ask("restartFrame", {"frameId": frame["id"]})

    async def end(self):
        """Exit status and what was printed until the end."""
        seen = []
        while True:
            message = await self.client.event("output", "exited", "stopped", "continued")
            seen.append(message["event"])
            if message["event"] == "output" and message["body"]["category"] == "stdout":
                self.printed += message["body"]["output"]
            if message["event"] == "exited":
                return message["body"]["exitCode"], self.printed.split("\n"), seen


def restarting(python, tmp_path, scenario, *arguments, filters=(WILL,)):
    path = tmp_path / "shop.py"
    path.write_text(PROGRAM)

    found = []

    async def play():
        async with session(side=payload, filters=list(filters)) as client:
            await client.launch(path, python, args=list(arguments) or ["plain"])
            found.append(await scenario(Session(client, path)))

    run(play)
    return found[0]


PLAIN = [("failing frame", "3.11"), ("failing frame", "3.12"), ("ancestor", "3.12"), ("asyncio", "3.11"),
         ("twice", "3.13"), ("raised", "3.11"), ("raised", "3.13")]  # fmt: skip
ALL = [(kind, version) for kind in sorted({kind for kind, _ in PLAIN}) for version in ("3.11", "3.12", "3.13")]


@pytest.mark.parametrize(("kind", "version"), ALL if os.environ.get("DAP_TEST_ALL_PYTHONS") else PLAIN)
def test_the_program_goes_on_with_the_value_of_the_new_call(kind, version, all_interpreters, tmp_path):
    if version not in all_interpreters:
        pytest.skip(f"there is no Python {version} on this machine")

    async def scenario(one):
        assert (await one.stop())[0] == "price"
        if kind == "twice":
            await one.fix(WORSE)
            assert (await one.restart("price"))["success"]
            assert (await one.stop())[0] == "price"
            assert one.body["reason"] == "exception" and "missing" in str(one.body)
            await one.fix(BETTER)
        else:
            await one.fix(FIX)
        wanted = {"ancestor": "checkout", "asyncio": "ask"}.get(kind, "price")
        answer = await one.restart(wanted)
        assert answer["success"], answer
        return await one.end()

    arguments = ["asyncio"] if kind == "asyncio" else []
    filters = ["raised"] if kind == "raised" else [WILL]
    status, printed, seen = restarting(
        all_interpreters[version], tmp_path, scenario, *arguments, filters=filters
    )  # fmt: skip
    results = {"asyncio": ["RESULT 5.0"], "ancestor": ["finally", "finally", "RESULT [3.0, 10.0]"]}
    assert (status, printed[:-1]) == (0, results.get(kind, ["finally", "RESULT [3.0, 10.0]"]))
    assert "stopped" not in seen and "continued" in seen


def test_the_new_call_stops_at_a_breakpoint(all_interpreters, tmp_path):
    async def scenario(one):
        await one.stop()
        await one.fix(FIX)
        where = {"source": {"path": str(one.path)}, "breakpoints": [{"line": 7}]}
        await one.client.ask("setBreakpoints", where)
        assert (await one.restart("price"))["success"]
        assert (await one.stop())[:2] == ["price", "price"]
        assert (one.body["reason"], one.frames[0]["line"]) == ("breakpoint", 7)
        await one.client.go_on(one.body["threadId"])
        return await one.end()

    status, printed, _ = restarting(all_interpreters["3.12"], tmp_path, scenario)
    assert (status, printed[:-1]) == (0, ["finally", "RESULT [3.0, 10.0]"])


@pytest.mark.parametrize(
    ("version", "filters", "function", "words"),
    [
        ("3.8", WILL, "price", "that is possible on CPython 3.11, 3.12, 3.13, this is cpython 3.8. Restart"),
        ("3.12", "uncaught", "price", "not at its raise"),
        ("3.13", WILL, "<module>", "is the code of a module"),
    ],
)
def test_a_refusal_says_why_and_changes_nothing(version, filters, function, words, all_interpreters, tmp_path):
    async def scenario(one):
        await one.stop()
        answer = await one.restart(function)
        assert not answer["success"] and words in answer["message"], answer
        assert answer["body"]["error"]["showUser"]
        assert "continued" not in [each.get("event") for each in one.client.log[-3:]]
        wrong = await one.client.ask("restartFrame", {"frameId": 10**6})
        assert not wrong["success"]
        await one.client.go_on(one.body["threadId"])
        return await one.end()

    status, printed, _ = restarting(all_interpreters[version], tmp_path, scenario, filters=[filters])
    assert status == 1 and "RESULT" not in str(printed)


def test_what_has_not_taken_its_change_is_not_called_again(all_interpreters, tmp_path):
    async def change(one, new):
        return await one.client.guest.reload([Changed(str(one.path), one.text, new)])

    async def scenario(one):
        await one.stop()
        report = await change(one, one.text.replace('/ item["stock"]', '/ (item["stock"] or 1'))
        assert "does not compile" in report.files[0].error
        answer = await one.restart("price")
        assert not answer["success"] and "price was changed and still has its old code (" in answer["message"], answer
        assert answer["message"].endswith("Restart the program instead.")
        new = (
            one.text.replace("    try:\n", "    most = 2\n    try:\n").replace("item, 2)", "item, most)").replace(*FIX)
        )
        report = await change(one, new)
        assert any("lambda" in each.name for each in report.refused), report
        answer = await one.restart("checkout")  # makes the function anew
        assert answer["success"], answer
        return await one.end()

    status, printed, _ = restarting(all_interpreters["3.12"], tmp_path, scenario)
    assert (status, printed[:-1]) == (0, ["finally", "finally", "RESULT [3.0, 10.0]"])


def test_without_a_stop_there_is_nothing_to_restart(all_interpreters, tmp_path):
    async def scenario(one):
        answer = await one.client.ask("restartFrame", {"frameId": 1})
        assert "not stopped" in answer["message"]
        await one.stop()
        return await asyncio.wait_for(one.client.go_on(one.body["threadId"]), 20)

    assert restarting(all_interpreters["3.13"], tmp_path, scenario)["success"]
