"""What a client of the debug adapter sends us and gets: answered once, in order, valid by the schema."""

import asyncio
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from dap_agent.control import requests
from dap_agent.control.console import COMMANDS, NAMES
from dap_agent.control.events import Throttle
from dap_agent.control.messages import Messages
from dap_agent.proxy import console as policy
from dap_agent.proxy.effects import ForAgent

from .messages_schema import check_ours, schema

TITLE = "A line without a price is free"


class FakeClient:
    """A client that keeps what it gets, as messages."""

    def __init__(self) -> None:
        self.client: dict[str, Any] = {"supportsProgressReporting": True, "supportsInvalidatedEvent": True}
        self.log: list[dict[str, Any]] = []
        self._changed = asyncio.Event()
        self._seq = 0

    def answer_client(self, seq: int, command: str, body: Any = None, *, error: str | None = None) -> None:
        answer = {"seq": 0, "type": "response", "request_seq": seq, "command": command, "success": error is None}
        self._add({**answer, **({"body": body} if error is None else {"message": error})})

    def tell_client(self, event: str, body: Any) -> None:
        self._add({"seq": 0, "type": "event", "event": event, "body": body})

    def _add(self, message: dict[str, Any]) -> None:
        message = json.loads(json.dumps(message))
        assert message["type"] == "event" or message["request_seq"] not in self.answered(), "answered twice"
        if str(message.get("event") or message["command"]).startswith("dapAgent") and message.get("success", True):
            check_ours(message)
        self.log.append(message)
        self._changed.set()

    def answered(self) -> dict[int, dict[str, Any]]:
        return {message["request_seq"]: message for message in self.log if message["type"] == "response"}

    def events(self, name: str) -> list[Any]:
        return [message["body"] for message in self.log if message.get("event") == name]

    async def until(self, found: Any) -> Any:
        async def wait() -> Any:
            while not (result := found()):
                self._changed.clear()
                await self._changed.wait()
            return result

        return await asyncio.wait_for(wait(), 60)

    def console(self, category: str = "console") -> str:
        return "".join(body["output"] for body in self.events("output") if body["category"] == category)


class Session:
    """A world with a client."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.client = FakeClient()
        self.messages = Messages(self.client, world.assistant, lambda: world.configuration.model is not None)
        self._seq = 0

    def post(self, command: str, arguments: Any = None) -> int:
        self._seq += 1
        self.messages.ask(ForAgent(self._seq, command, arguments or {}))
        return self._seq

    async def ask(self, command: str, arguments: Any = None) -> Any:
        return await self.answer(self.post(command, arguments))

    async def answer(self, seq: int) -> Any:
        return await self.client.until(lambda: self.client.answered().get(seq))

    async def type(self, line: str, **more: Any) -> str:
        """A line of the console; the answer."""
        answer = await self.ask("evaluate", {"expression": line, "context": "repl", **more})
        return str(answer["body"]["result"] if answer["success"] else "ERROR " + answer["message"])

    async def ended(self, count: int = 1) -> Any:
        def found() -> Any:
            ends = [body for body in self.client.events("dapAgentProgress") if body["kind"] == "end"]
            return ends[count - 1] if len(ends) >= count else None

        return await self.client.until(found)

    async def close(self) -> None:
        await self.messages.close()
        await self.world.assistant.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.fixture
def session(world: Any) -> Any:
    return lambda: Session(world())


def test_the_schema_has_the_arguments_of_the_requests() -> None:
    defs = schema("messages")["$defs"]
    for request in requests.REQUESTS:
        assert defs[f"{request.name}Request"]["properties"]["arguments"] == request.schema
        assert policy.is_ours(requests.PREFIX + request.name, {})


def test_every_object_of_the_schema_is_closed() -> None:
    def objects(value: Any) -> Any:
        if isinstance(value, dict):
            if value.get("type") == "object":
                yield value
            for item in value.values():
                yield from objects(item)
        elif isinstance(value, list):
            for item in value:
                yield from objects(item)

    found = list(objects(schema("messages")))
    assert len(found) > 20
    assert all(one.get("additionalProperties") is False for one in found)


async def test_a_fix_from_the_console(session: Any, model: Any, data: Any) -> None:
    s = session()
    s.messages.ready("scripted:test")
    s.world.guest.stops(data)
    assert s.client.log[-2]["event"] == "output"
    assert "/why explains" in s.client.log[-2]["body"]["output"]
    s.world.turns(
        model.calls(("frame", {"number": 0}), text="Where does None\ncome from?"),
        model.calls(model.fix(), text="I see."),
    )
    answer = await s.type("/fix keep the name")
    assert answer.startswith("scripted:test looks for a fix of TypeError: float()")
    assert "\n" not in answer
    end = await s.ended()
    work = s.world.assistant.proposed
    assert (end["id"], end["status"], end["text"]) == (work.id, "proposed", TITLE)
    assert work.id in answer
    text = s.client.console()
    steps = [
        "  Where does None\n  come from?\n  > frame number=0\n  I see.\n  > propose: ",
        "    proved: ",
        "  cause:\n",
    ]
    places = [text.index(step) for step in steps]
    assert places == sorted(places)
    assert "+    return sum(" in text
    assert f"a fix is proposed: {TITLE}. /apply writes it, /show shows it again." in s.client.console("important")
    proposal = s.client.events("dapAgentProposal")[0]
    assert (proposal["title"], proposal["proved"], proposal["cost"]) == (TITLE, True, pytest.approx(2.2))
    assert [(file["path"].rpartition("/")[2], file["new"], len(file["ranges"])) for file in proposal["files"]] == [
        ("orders.py", False, 1),
        ("test_gift.py", True, 0),
    ]
    assert "proposed fix: " + TITLE in await s.type("/show")
    assert "keeps its old code; /restart" in await s.type("/apply")
    assert "this fix is applied" in await s.type("/show")
    assert await s.type("/restart") == "The program was started again."
    assert await s.type("/undo") == (
        f"Took back {TITLE!r}: restored {s.world.root}/shop/orders.py; removed {s.world.root}/tests/test_gift.py."
    )
    history = await s.type("/history")
    for words in ("stopped at TypeError", "looked for a fix of", f"proposed: {TITLE} (proved)", "applied to shop/"):
        assert words in history
    assert f"[{work.id}]" in history
    await s.close()


async def test_standard_progress_goes_from_start_to_end(session: Any, model: Any, data: Any) -> None:
    s = session()
    s.world.guest.stops(data)
    s.world.turns(model.calls(("stack", {})), model.say("Because."))
    await s.type("/ask Why?")
    await s.ended()
    (start,), (end,) = s.client.events("progressStart"), s.client.events("progressEnd")
    updates = s.client.events("progressUpdate")
    assert start["cancellable"]
    assert {one["progressId"] for one in (start, end, *updates)} == {"dapAgent/" + s.world.assistant.last.id}
    assert 1 <= len(updates) <= 3
    await s.close()
    s = session()
    s.client.client = {}
    s.world.guest.stops(data)
    s.world.turns(model.say("Because."))
    await s.type("/ask Why?")
    await s.ended()
    assert not [m for m in s.client.log if str(m.get("event")).startswith("progress")]
    await s.close()


async def test_a_question_is_answered_as_it_comes(session: Any, model: Any, data: Any) -> None:
    s = session()
    s.world.guest.stops(data)
    s.world.turns(model.say("The price\nis None."))
    await s.type("/ask What is wrong?")
    end = await s.ended()
    assert (end["status"], end["text"]) == ("answered", "The price\nis None.")
    assert s.client.console().count("The price\nis None.\n") == 1
    assert await s.type("/show") == "The price\nis None."
    await s.close()


async def test_why_tells_what_is_known_and_then_explains(session: Any, model: Any, data: Any) -> None:
    s = session()
    s.world.guest.stops(data)
    s.world.turns(model.say("A gift has no price."))
    answer = await s.type("/why")
    for words in ("stopped at TypeError: float()", "->    13", "line = 'gift ='", "#1 main"):
        assert words in answer
    assert (await s.ended())["text"] == "A gift has no price."
    assert "asked /why" in await s.type("/history")
    s.world.configuration = dataclasses.replace(s.world.configuration, model=None)
    assert await s.type("/why") == answer
    s.world.guest.ends()
    assert "was last stopped at TypeError" in await s.type("/why")
    assert len(s.world.script.sent) == 1
    await s.close()


async def test_why_does_not_disturb_what_runs(session: Any, model: Any, data: Any) -> None:
    s = session()
    s.world.guest.stops(data)
    s.world.turns(model.hang)
    await s.type("/fix")
    assert (await s.type("/why")).endswith("The explanation has to wait: an investigation runs already.")
    assert "runs already" in await s.type("/fix")
    assert await s.type("/cancel") == "Cancelled."
    assert "dap-agent: The investigation was cancelled.\n" in s.client.console()
    assert (await s.ended())["status"] == "failed"
    await s.close()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("/why", "ERROR There has been no exception in this session so far."),
        ("/fix", "ERROR The program is running"),
        ("/ask Why?", "ERROR The program is running"),
        ("/try 1", "ERROR The program is running"),
        ("/show", "ERROR There is nothing to show: /fix looks for a fix."),
        ("/apply", "ERROR There is no fix to apply. /fix looks for one."),
        ("/apply now", "ERROR Usage: /apply, or /apply --unproved"),
        ("/undo", "ERROR There is no applied fix to undo in"),
        ("/cancel", "ERROR There is no investigation to cancel."),
        ("/history", "Nothing has happened in this session so far."),
        ("/ask", "ERROR Usage: /ask QUESTION - ask about"),
        ("/try  ", "ERROR Usage: /try CODE - run Python"),
        ("/show it", "ERROR /show takes nothing behind it. Usage: /show - "),
        ("/fox", "ERROR There is no command /fox; there are /why, /fix,"),
        ("/", "ERROR There is no command /; there are"),
        ("  /help  ", "  /why "),
    ],
)
async def test_each_command_says_what_is_missing(session: Any, line: str, words: str) -> None:
    s = session()
    assert (await s.type(line)).startswith(words)
    assert "\n" not in words
    await s.close()


async def test_help_lists_all_commands(session: Any) -> None:
    s = session()
    lines = (await s.type("/help")).split("\n")
    assert [line.split()[0] for line in lines[: len(COMMANDS)]] == list(NAMES)
    assert "Model: scripted:test." in lines
    s.world.configuration = dataclasses.replace(s.world.configuration, model=None)
    assert "No model is configured" in await s.type("/help")
    await s.close()


async def test_fix_without_a_model_says_how_to_get_one(session: Any, data: Any) -> None:
    s = session()
    s.world.configuration = dataclasses.replace(s.world.configuration, model=None)
    s.world.guest.stops(data)
    assert "No model is configured. Give one as `model` below `dapAgent`" in await s.type("/fix")
    assert not s.client.events("dapAgentSnapshot")[0]["model"]
    await s.close()


async def test_code_runs_in_the_selected_frame_and_the_client_looks_again(session: Any, data: Any) -> None:
    s = session()
    stop = s.world.guest.stops(data)
    assert await s.type("/try len(lines)", frameId=7) == "value: str = len(lines) in 1"
    assert await s.type("/try\nfor x in y:\n    pass") == "value: str = for x in y:\\n    pass in 0"
    assert stop.asked[0] == ("evaluate", 1, "len(lines)", 5.0)
    assert s.client.events("invalidated") == [{"areas": ["variables"]}] * 2
    await s.close()


async def test_what_waits_for_the_program_does_not_hold_the_others_up(session: Any, data: Any) -> None:
    s = session()
    stop = s.world.guest.stops(data)
    going = asyncio.Event()

    async def evaluate(frame: int, code: str) -> Any:
        await going.wait()
        return {"value": None, "error": None, "stdout": "", "stderr": "", "notes": []}

    stop.evaluate = evaluate
    waiting = s.post("evaluate", {"expression": "/try slow()", "context": "repl"})
    assert (await s.ask("dapAgent/status"))["success"]
    assert waiting not in s.client.answered()
    going.set()
    assert (await s.answer(waiting))["body"]["result"] == "No value and no output."
    await s.close()


async def test_requests_in_their_order(session: Any, model: Any, data: Any) -> None:
    s = session()
    s.world.guest.stops(data)
    s.world.turns(model.hang)
    posted = [
        s.post("dapAgent/autodebug", {"instructions": "soon"}),
        s.post("dapAgent/cancel"),
        s.post("dapAgent/cancel"),
    ]
    bodies = [(await s.answer(seq))["body"] for seq in posted]
    assert bodies[0]["id"] == bodies[1]["id"]
    assert bodies[2] == {"id": None}
    s.world.turns(model.calls(model.fix()))
    work = (await s.ask("dapAgent/autodebug"))["body"]
    assert work["model"] == "scripted:test"
    assert (await s.ended(2))["status"] == "proposed"
    applied = (await s.ask("dapAgent/apply", {"id": work["id"]}))["body"]
    assert applied["files"] == [f"{s.world.root}/shop/orders.py", f"{s.world.root}/tests/test_gift.py"]
    assert (await s.ask("dapAgent/status"))["body"]["proposal"]["applied"]
    assert (await s.ask("dapAgent/undo"))["body"]["removed"] == applied["files"][1:]
    assert (await s.ask("dapAgent/snapshot"))["body"]["snapshot"] == data
    await s.close()


async def test_an_editor_that_puts_the_fix_into_its_buffers_itself(session: Any, model: Any, data: Any) -> None:
    s = session()
    s.messages.ready("scripted:test")
    s.world.guest.stops(data)
    assert "no fix" in (await s.ask("dapAgent/texts"))["message"]
    s.world.turns(model.calls(("frame", {"number": 0}), text="?"), model.calls(model.fix(), text="!"))
    await s.ask("dapAgent/autodebug")
    await s.ended()
    found = (await s.ask("dapAgent/texts"))["body"]
    orders, test = sorted(found["files"], key=lambda file: file["path"])
    path = s.world.root / "shop/orders.py"
    assert (orders["path"], orders["oldText"], test["oldText"]) == (str(path), path.read_text(), None)
    path.write_text(orders["newText"])
    Path(test["path"]).write_text(test["newText"])
    assert (await s.ask("dapAgent/applied", {"id": "another", "written": True}))["success"] is False
    body = (await s.ask("dapAgent/applied", {"id": found["id"], "written": True}))["body"]
    assert body == {"id": found["id"], "applied": True}
    assert (await s.ask("dapAgent/status"))["body"]["proposal"]["applied"] is True
    await s.close()


@pytest.mark.parametrize(
    ("command", "arguments", "words"),
    [
        ("dapAgent/ask", {}, "missing 'text' (the question). Right are, for example: {\"text\": "),
        ("dapAgent/ask", {"text": 5}, "text must be of type string, not 5"),
        ("dapAgent/ask", {"text": "Why?", "why": 1}, "unknown 'why' (known: text)"),
        ("dapAgent/status", {"x": 1}, "unknown 'x'"),
        ("dapAgent/apply", {"unproved": "yes"}, "unproved must be of type boolean"),
        ("dapAgent/explain", {}, "There is no request 'dapAgent/explain'; there are dapAgent/status,"),
        ("dapAgent/snapshot", {}, "There has been no exception in this session so far."),
    ],
)
async def test_wrong_requests_get_one_sentence(session: Any, command: str, arguments: Any, words: str) -> None:
    s = session()
    answer = await s.ask(command, arguments)
    assert not answer["success"]
    assert words in answer["message"]
    await s.close()


async def test_a_cancelled_progress_ends_the_investigation(session: Any, model: Any, data: Any) -> None:
    s = session()
    s.world.guest.stops(data)
    s.world.turns(model.hang)
    await s.type("/fix")
    identity = s.client.events("progressStart")[0]["progressId"]
    assert (await s.ask("cancel", {"progressId": "dapAgent/other"}))["success"]
    assert s.world.assistant.working is not None
    assert (await s.ask("cancel", {"progressId": identity}))["success"]
    assert s.world.assistant.working is None
    assert (await s.ask("cancel", {"progressId": identity}))["success"]
    await s.close()


def targets(answer: Any) -> list[tuple[str, int, int]]:
    return [(one["text"], one["start"], one["length"]) for one in answer["body"]["targets"]]


@pytest.mark.parametrize("first", [1, 0])
async def test_completions(session: Any, first: int) -> None:
    s = session()
    s.client.client["columnsStartAt1"] = bool(first)

    async def complete(text: str, place: int | None = None) -> list[tuple[str, int, int]]:
        column = (len(text) if place is None else place) + first
        return targets(await s.ask("completions", {"text": text, "column": column}))

    assert [text for text, _, _ in await complete("/")] == list(NAMES)
    assert await complete("/a") == [("/ask", first, 2), ("/apply", first, 2)]
    assert await complete("  /wh") == [("/why", first + 2, 3)]
    assert await complete("/apply x", 3) == [("/apply", first, 3)]
    assert await complete("/apply ") == [("/apply --unproved", first, 7)]
    for text in ("/try lin", "/nothing", "/ask "):
        assert await complete(text) == []
    assert await complete("/why", 0) == []
    await s.close()


async def test_what_is_typed_wrong_does_no_harm(session: Any) -> None:
    s = session()
    for command, arguments in (
        ("evaluate", {"expression": None}),
        ("evaluate", {"expression": "/try 1", "frameId": "x", "context": "repl"}),
        ("completions", {"text": "/", "column": "x"}),
        ("completions", {"text": "/", "column": -5}),
        ("cancel", {"progressId": {}}),
        ("dapAgent/ask", {"text": "\x00\ud800"}),
    ):
        await s.ask(command, arguments)
    await s.close()


async def test_a_bug_of_ours_is_an_answer(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    s = session()

    async def status() -> Any:
        raise RuntimeError("oh")

    s.world.assistant.status = status
    answer = await s.ask("dapAgent/status")
    assert "dap-agent itself failed with RuntimeError: oh" in answer["message"]
    assert (await s.ask("dapAgent/cancel"))["success"]
    await s.close()


async def test_a_throttle_acts_at_once_then_seldom_and_never_forgets_the_last() -> None:
    done: list[int] = []
    said = 0
    throttle = Throttle(0.01, lambda: done.append(said))
    for said in range(5):  # noqa: B007 - the lambda reads it
        throttle.soon()
    assert done == [0]
    while len(done) < 2:
        await asyncio.sleep(0)
    assert done == [0, 4]
    throttle.soon()
    throttle.now()
    assert done == [0, 4, 4]
    throttle.drop()
