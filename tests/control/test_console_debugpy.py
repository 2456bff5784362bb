"""The debug console and the custom messages in real sessions: debugpy, a second DAP client, a scripted model."""

import asyncio
import contextlib
import json
import tempfile
import uuid
from pathlib import Path
from typing import Any

import pytest

from dap_agent.agent import journal
from dap_agent.fixes import scratch
from dap_agent.testing import ModelServer, Reply, Stall

from ..endtoend.conftest import Trace
from ..proxy.editor_double import NVIM, OURS, VSCODE, EditorDouble, editor, environment
from ..proxy.fakes import run
from ..proxy.test_adapter_schema import check
from .conftest import fix
from .messages_schema import check_ours

CLIENT = {**VSCODE, "supportsProgressReporting": True, "supportsInvalidatedEvent": True}
TITLE = "A line without a price is free"
LOOK = {"text": "What is price?", "calls": [{"name": "frame", "arguments": {"number": 0}}]}
PROPOSE = {"text": "It is None.", "calls": [{"name": fix()[0], "arguments": fix()[1]}]}


class Session:
    """An editor that debugs the shop."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = root
        self.folder = folder
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        self.mark = uuid.uuid4().hex
        self.client: Any = None

    def script(self, *turns: Any) -> str:
        path = self.folder / f"{uuid.uuid4().hex}.json"
        path.write_text(json.dumps({"turns": list(turns)}))
        return f"scripted:{path}"

    @contextlib.asynccontextmanager
    async def begun(self, model: str | None = None, *, initialize: Any = CLIENT, **more: Any) -> Any:
        """The session up to the answer of `launch`; at its end nothing may be left."""
        env = environment(TMPDIR=str(self.temporary), TEST_MARK=self.mark, **more.pop("env", {}))
        lines, filters = more.pop("lines", None), more.pop("filters", ["uncaught"])
        configuration = {
            "program": str(self.root / more.pop("program", "shop/main.py")),
            "cwd": str(self.root),
            "env": {"PYTHONPATH": str(self.root)},
            "console": "internalConsole",
            **more,
        }
        if model is not None:
            configuration["dapAgent"] = {**configuration.get("dapAgent", {}), "model": model}
        async with editor(OURS, env=env, initialize=initialize, lines=lines, filters=filters) as client:
            self.client = client
            await client.start("launch", configuration)
            yield client
        for one in client.family():
            for message in one.log:
                check(message)
        trace = Trace(self.temporary)
        trace.mark = self.mark
        trace.assert_nothing_is_left()

    async def crashed(self) -> Any:
        """The body of `dapAgentSnapshot` at the next exception stop."""
        return (await self.client.event("dapAgentSnapshot"))["body"]

    async def type(self, line: str, client: Any = None, **more: Any) -> str:
        client = client or self.client
        answer = await client.ask("evaluate", {"expression": line, "context": "repl", **more}, timeout=60)
        return str(answer["body"]["result"] if answer["success"] else "ERROR " + answer["message"])

    async def end_of_work(self, client: Any = None) -> Any:
        client = client or self.client
        while (body := (await client.event("dapAgentProgress", timeout=60))["body"])["kind"] != "end":
            pass
        return body

    def console(self, category: str = "console") -> str:
        bodies = [message["body"] for message in self.client.log if message.get("event") == "output"]
        return "".join(body["output"] for body in bodies if body.get("category", "console") == category)


@pytest.fixture
def session(root: Path, tmp_path: Path) -> Session:
    return Session(root, tmp_path)


def test_from_a_crash_over_why_and_fix_to_a_program_that_runs_through(session: Session) -> None:
    async def main() -> None:
        model = session.script({"text": "The gift has no price."}, LOOK, PROPOSE)
        async with session.begun(model) as client:
            ready = (await client.event("dapAgentReady"))["body"]
            assert (ready["model"], ready["commands"][0]) == (model, "/why")
            assert (await client.event("stopped"))["body"]["reason"] == "exception"
            at = await session.crashed()
            assert (at["path"], at["line"], at["function"]) == (str(session.root / "shop/orders.py"), 13, "total")
            assert at["exception"]["type"] == "TypeError"
            why = await session.type("/why")
            assert "->    13          result += float(" in why
            assert (await session.end_of_work())["text"] == "The gift has no price."
            answer = await session.type("/fix")
            end = await session.end_of_work()
            assert answer == f"{model} looks for a fix of {at['headline']} (journal {end['id']})."
            assert end["status"] == "proposed"
            proposal = next(m["body"] for m in client.log if m.get("event") == "dapAgentProposal")
            assert (proposal["title"], proposal["proved"]) == (TITLE, True)
            assert await session.type("/apply") == (
                "Applied to shop/orders.py, tests/test_gift.py. /undo takes it back. The running program has the new "
                "code (total). At a raise /restart frame makes the failing call again and goes on; /restart starts the "
                "program again."
            )
            undone = await client.ask("dapAgent/undo")
            check_ours(undone)
            files = {Path(each["path"]).name: each for each in undone["body"]["reload"]["files"]}
            functions = [(each["name"], each["outcome"]) for each in files["orders.py"]["functions"]]
            assert functions == [("total", "swapped")]  # what is taken back is out of the program, too
            again = await client.ask("dapAgent/apply", {"id": end["id"]})
            check_ours(again)
            assert again["body"]["reload"]["summary"] == "The running program has the new code (total)."
            assert await session.type("/restart") == "The program was started again."
            assert (await client.event("terminated", "stopped"))["event"] == "terminated"
            assert session.console("stdout").strip() == "sum 3.5"
            assert f"proposed: {TITLE} (proved)" in await session.type("/history")  # still here when it has ended
            await client.leave()
        assert "or 0" in (session.root / "shop/orders.py").read_text()
        infos = journal.list_journals()
        assert {(one.status, one.applied) for one in infos} == {("proposed", True), ("answered", False)}

    run(main)


def test_the_program_goes_on_in_the_middle(session: Session) -> None:
    """By the client: the investigation ends, its pending call says why, and the console in one sentence."""

    async def main(server: ModelServer) -> None:
        async with session.begun("anthropic:test-model", env=server.environment()) as client:
            stopped = await client.event("stopped")
            await session.crashed()
            await session.type("/fix")
            while not server.requests:
                await asyncio.sleep(0.05)  # the server is another thread
            await client.ask("continue", {"threadId": stopped["body"]["threadId"]})
            end = await session.end_of_work()
            assert end["status"] == "failed"
            assert "which ends the investigation" in end["text"]
            assert session.console().count(end["text"]) == 1
            await client.event("terminated")
            assert await asyncio.to_thread(server.disconnected.wait, 10)  # no request goes on
            await client.leave()

    with ModelServer([Stall(40)]) as server:
        run(lambda: main(server))


@pytest.mark.parametrize("how", ["disconnect", "kill", "terminate", "restart", "step"])
def test_the_end_in_the_middle(session: Session, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """While tests run: they are ended, too (`begun` looks for what is left)."""
    name, arguments = fix(test="import time\n\n\ndef test_gift():\n    time.sleep(60)\n")

    async def main() -> None:
        model = session.script({"text": "", "calls": [{"name": name, "arguments": arguments}]})
        async with session.begun(model) as client:
            stopped = await client.event("stopped")
            await session.crashed()
            await session.type("/fix")
            await client.first(lambda m: "running the regression test" in str(m.get("body", {})))
            if how == "kill":
                client.process.kill()
                await client.end()
                trace = Trace(session.temporary)
                trace.mark = session.mark
                while trace.processes():  # the test's own, a moment later
                    await asyncio.sleep(0.05)
                monkeypatch.setattr(tempfile, "tempdir", str(session.temporary))
                scratch.sweep()  # as the next proof does: the killed could not
                return
            if how == "restart":
                assert (await client.ask("restart"))["success"]
                assert (await session.end_of_work())["status"] == "failed"
                await client.event("stopped")
            elif how == "step":
                client.post("next", {"threadId": stopped["body"]["threadId"]})
                assert (await session.end_of_work())["status"] == "failed"
                await client.event("terminated", "stopped")
            elif how == "terminate":
                client.post("terminate")
                assert (await session.end_of_work())["status"] == "failed"
                await client.first(lambda m: m.get("event") == "terminated")
            await client.leave()

    run(main)


def test_a_second_one_and_cancel(session: Session) -> None:
    async def main(server: ModelServer) -> None:
        async with session.begun("openai:test-model", env=server.environment()) as client:
            await session.crashed()
            await session.type("/fix")
            progress = (await client.event("progressStart"))["body"]["progressId"]
            assert "runs already" in await session.type("/ask Why?")
            assert (await client.ask("cancel", {"progressId": progress}))["success"]
            assert (await session.end_of_work())["text"] == "The investigation was cancelled."
            await client.event("progressEnd")
            assert not (await client.ask("cancel", {"requestId": 1}))["success"]
            assert (await client.ask("dapAgent/status"))["body"]["working"] is None
            await client.leave()

    with ModelServer([Stall(40)]) as server:
        run(lambda: main(server))


def test_questions_through_a_real_sdk(session: Session) -> None:
    async def main(server: ModelServer) -> None:
        async with session.begun("anthropic:test-model", env=server.environment()) as client:
            await session.crashed()
            identity = (await client.ask("dapAgent/ask", {"text": "What is price?"}))["body"]["id"]
            end = await session.end_of_work()
            assert (end["id"], end["status"], end["text"]) == (identity, "answered", "None.")
            await session.type("/ask Who made it?")
            assert (await session.end_of_work())["text"] == "parse_line."
            await client.leave()
        assert [len(request.body["messages"]) for request in server.requests] == [1, 3, 5]
        assert server.complaints == []

    replies = [Reply("Let me look.", [("frame", {"number": 0})]), Reply("None."), Reply("parse_line.")]
    with ModelServer(replies) as server:
        run(lambda: main(server))


def test_a_breakpoint_and_a_program_without_an_exception(session: Session) -> None:
    async def main() -> None:
        main_file = session.root / "shop/main.py"
        main_file.write_text(main_file.read_text().replace('"gift ="', '"gift = 1"'))
        model = session.script({"text": "It adds prices."})
        async with session.begun(model, lines={str(main_file): [8]}) as client:
            stopped = await client.event("stopped")
            assert stopped["body"]["reason"] == "breakpoint"
            frames = (await client.ask("stackTrace", {"threadId": stopped["body"]["threadId"]}))["body"]["stackFrames"]
            assert "no exception at this stop" in await session.type("/why")
            assert "nothing to fix" in await session.type("/fix")
            assert "'tea = 3.5'" in await session.type("/try [x for x in lines]", frameId=frames[0]["id"])
            assert "'lines' is not defined" in await session.type("/try lines", frameId=frames[1]["id"])
            assert "await is not possible" in await session.type("/try await x")
            await client.event("invalidated")
            await session.type("/ask What does it do?")
            assert (await session.end_of_work())["text"] == "It adds prices."
            await client.ask("continue", {"threadId": stopped["body"]["threadId"]})
            await client.event("terminated")
            for line in ("/why", "/fix", "/ask Why?"):
                assert "no exception" in await session.type(line)
            await client.leave()

    run(main)


def test_after_the_end_the_last_exception_is_looked_at(session: Session) -> None:
    async def main() -> None:
        async with session.begun(session.script({"text": "It is None."}, LOOK, PROPOSE)) as client:
            stopped = await client.event("stopped")
            await session.crashed()
            await client.ask("continue", {"threadId": stopped["body"]["threadId"]})
            await client.event("terminated")
            assert "was last stopped at TypeError" in await session.type("/why")
            assert (await session.end_of_work())["text"] == "It is None."
            assert "has ended" in await session.type("/try 1")
            await session.type("/fix")
            assert (await session.end_of_work())["status"] == "proposed"
            assert "Applied to" in await session.type("/apply")
            assert "Took back" in await session.type("/undo")
            await client.leave()

    run(main)


CHILD = """\
import subprocess, sys
if len(sys.argv) > 1:
    values = {"child": 1}
    values["parent"]
subprocess.run([sys.executable, __file__, "child"], stderr=subprocess.DEVNULL)
values = {"parent": 1}
values["child"]
"""


def test_a_child_has_an_assistant_of_its_own(session: Session) -> None:
    (session.root / "family.py").write_text(CHILD)

    class Parent(EditorDouble):
        async def to_end(self) -> None:  # of a child: the test does it
            await asyncio.Event().wait()

    async def main() -> None:
        model = session.script({"text": "One of them."})
        async with session.begun(model, program="family.py", initialize=NVIM) as client:
            client.__class__ = Parent
            await client.first(lambda m: client.children and client.children[0].log)
            child = client.children[0]
            at = (await child.event("dapAgentSnapshot"))["body"]
            assert at["headline"] == "KeyError: 'parent'"
            assert "KeyError: 'parent'" in await session.type("/why", child)
            assert (await session.end_of_work(child))["status"] == "answered"
            assert "ERROR The program is running" in await session.type("/fix")  # the parent waits for it
            assert "Nothing has happened" in await session.type("/history")
            await child.ask("continue", {"threadId": at["threadId"]})
            assert (await session.crashed())["headline"] == "KeyError: 'child'"
            assert "KeyError: 'child'" in await session.type("/history")
            await client.leave()

    run(main)


def test_a_client_that_never_stops_asking_is_answered_too(session: Session) -> None:
    async def main() -> None:
        async with session.begun() as client:

            async def ask_on() -> None:
                while True:
                    await client.ask("threads")

            await client.event("stopped")
            busy = asyncio.ensure_future(ask_on())
            assert "stopped at TypeError" in await session.type("/why")
            await client.ask("restart")
            await client.event("stopped")
            await session.crashed()  # nobody has asked for it
            busy.cancel()
            await client.leave()

    run(main)


@pytest.mark.parametrize(
    ("model", "env", "words"),
    [
        ("anthropic:x", {"ANTHROPIC_API_KEY": ""}, "ANTHROPIC_API_KEY"),
        ("local:http://127.0.0.1:9", {}, "127.0.0.1:9"),
        ("nothing:x", {}, "There is no model provider 'nothing'"),
        ("scripted:/nowhere/x.json", {}, "cannot be read"),
    ],
)
def test_a_model_that_cannot_be_used_is_one_sentence(session: Session, model: str, env: Any, words: str) -> None:
    async def main() -> None:
        async with session.begun(model, env={**env, "ANTHROPIC_BASE_URL": "", "ANTHROPIC_AUTH_TOKEN": ""}) as client:
            await session.crashed()
            await session.type("/ask Why?")
            end = await session.end_of_work()
            assert end["status"] in ("failed", "model-error")
            assert words in end["text"]
            assert "\n" not in end["text"]
            await client.leave()

    run(main)


def test_settings_that_are_wrong_are_told_and_the_session_goes_on(session: Session) -> None:
    (session.root / "pyproject.toml").write_text('[tool.dap-agent]\nmodel = "scripted:x.json"\nmax-turns = "many"\n')

    async def main() -> None:
        async with session.begun(dapAgent={"maxCost": "much", "timeout": 5}) as client:
            assert (await client.event("dapAgentReady"))["body"]["model"] == "scripted:x.json"
            await session.crashed()
            assert "Model: scripted:x.json." in await session.type("/help")
            told = session.console("important").splitlines()
            assert len(told) == 2
            assert "maxCost of dapAgent in the launch configuration wants" in told[0]
            assert "the key max-turns of [tool.dap-agent] wants" in told[1]
            await client.leave()

    run(main)


def test_without_a_model_and_with_dap_agent_off(session: Session) -> None:
    async def main() -> None:
        async with session.begun() as client:
            at = await session.crashed()
            assert not at["model"]
            assert "called by" in await session.type("/why")
            assert "No model is configured" in await session.type("/fix")
            await client.leave()
        async with session.begun(dapAgent=False) as client:
            await client.event("stopped")
            assert not (await client.ask("dapAgent/status"))["success"]
            assert "ERROR" in await session.type("/why")  # debugpy's: no valid Python
            assert not [message for message in client.log if str(message.get("event")).startswith("dapAgent")]
            await client.leave()

    run(main)
