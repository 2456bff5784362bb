"""`dap-agent lsp` beside real debug sessions: debugpy, a DAP client, a scripted model, an editor double."""

import asyncio
import contextlib
import json
import os
import signal
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as lsp

from dap_agent.cli import exit_status
from dap_agent.control import kept, registry
from dap_agent.testing import ModelServer, Stall

from ..control.test_console_debugpy import LOOK, PROPOSE, TITLE
from ..endtoend.conftest import ROOT, Trace
from ..proxy.fakes import run
from .lsp_editor import NEOVIM, VSCODE, editor, other_server

SAVING: dict[str, Any] = {**VSCODE, "experimental": {"dapAgent": {"save": True}}}
READY = f"Fix ready: {TITLE}"


def orders(session: Any) -> Path:
    return Path(session.root / "shop/orders.py")


async def fixed(session: Any, ed: Any) -> Any:
    """Autodebug by the lens; the lens of the fix."""
    assert (await ed.do(await ed.lens(orders(session), "Autodebug")))["ok"]
    return await ed.lens(orders(session), "Fix ready", 60)


def test_from_the_lens_to_a_program_that_runs_through_and_back(session: Any) -> None:
    async def main() -> None:
        old = orders(session).read_text()
        async with editor(session.root, SAVING) as ed:
            ed.open(orders(session))
            assert await ed.lenses(orders(session)) == []
            async with session.begun(session.script(LOOK, PROPOSE)) as client:
                await client.event("stopped")
                command = await ed.lens(orders(session), "Autodebug this exception")
                assert await ed.titles(orders(session)) == [
                    (12, "Autodebug this exception"),
                    (12, "Explain this exception"),
                ]
                assert list(await ed.actions(orders(session), 12)) == [
                    "Autodebug this exception",
                    "Explain this exception",
                    "Show the investigation",
                ]
                assert await ed.actions(orders(session), 12, only=["source.fixAll"]) == {}
                assert await ed.actions(orders(session), 3) == {}
                begun = await ed.do(command)
                investigating = await ed.lens(orders(session), "Investigating: ")
                assert investigating.command == "dapAgent.cancel"
                show = await ed.lens(orders(session), READY, 60)
                kinds = [kind for _, kind in ed.progress]
                assert (kinds[0], kinds[-1], set(kinds[1:-1])) == ("begin", "end", {"report"})
                assert {token for token, _ in ed.progress} == {f"dap-agent-{begun['id']}"}
                assert f"dap-agent: Fix ready: {TITLE}" in ed.messages
                # a second editor, started later, sees the same
                async with editor(session.root, NEOVIM) as other:
                    other.open(orders(session))
                    await other.lens(orders(session), READY)
                    action = (await other.actions(orders(session), 12))[TITLE]
                    edit = (await other.resolve(action)).edit
                    assert list(edit.changes) == [orders(session).as_uri()]
                report = await ed.do(show)
                for words in (
                    "## Cause",
                    "## Evidence",
                    "## Values",
                    "```diff",
                    "## Regression test",
                    "**proved**",
                    "## Cost",
                ):
                    assert words in report["markdown"]
                shown = Path(ed.shown[-1].removeprefix("file://"))
                assert shown.read_text() == report["markdown"]
                assert stat.S_IMODE(shown.stat().st_mode) == 0o600
                offered = await ed.actions(orders(session), 10)  # a line that the fix changes
                assert list(offered) == [
                    TITLE,
                    "Apply fix and restart frame",
                    "Apply fix and restart program",
                    "Explain this exception",
                    "Show the investigation",
                ]
                assert (offered[TITLE].is_preferred, offered[TITLE].edit) == (True, None)
                edit = (await ed.resolve(offered[TITLE])).edit
                assert edit.change_annotations["fix"].needs_confirmation
                assert edit.document_changes[0].text_document.version == 1
                result = await ed.do(offered["Apply fix and restart program"].command)
                assert (result["ok"], result["saved"], ed.saved) == (True, True, [orders(session).as_uri()])
                assert "or 0" in ed.text(orders(session))
                assert orders(session).read_text() == ed.text(orders(session))
                assert (session.root / "tests/test_gift.py").exists()
                assert (await client.event("terminated", "stopped"))["event"] == "terminated"
                assert session.console("stdout").strip() == "sum 3.5"
                await ed.lens(orders(session), f"Fix applied: {TITLE} (undo)")
                undo = (await ed.actions(orders(session), 10))["Undo the fix"]
                assert (await ed.do(undo.command))["ok"]
                assert ed.text(orders(session)) == orders(session).read_text() == old
                assert not (session.root / "tests/test_gift.py").exists()
                await ed.lens(orders(session), READY)
                await client.leave()
            # what is left when the session is over
            await ed.until(lambda: not registry.entries())
            await ed.lens(orders(session), READY)
            assert list(await ed.actions(orders(session), 12)) == [
                TITLE,
                "Explain this exception",
                "Show the investigation",
            ]
            again = await ed.do(await ed.lens(orders(session), "Explain"))
            assert "## Cause" in again["markdown"]
            # the line that failed becomes another one, and what it was
            for text in (old.replace("result += float", "result += int"), old):
                ed.type(orders(session), text)
                ed.save(orders(session))
                wanted = [READY, "Explain this exception"] if text == old else []
                while True:  # a refresh for another reason may come before the one for the saving
                    before = ed.refreshes
                    if [title for _, title in await ed.titles(orders(session))] == wanted:
                        break
                    await ed.until(lambda before=before: ed.refreshes > before)
            quick = await ed.resolve((await ed.actions(orders(session), 12))[TITLE])
            ed.take(quick.edit)
            assert (await ed.do(quick.command))["saved"]
            assert "or 0" in orders(session).read_text()
            assert (session.root / "tests/test_gift.py").exists()
            await ed.lens(orders(session), "Fix applied")

    run(main, timeout=110)


def test_unsaved_changes_are_kept_and_the_program_waits_for_them_to_be_saved(session: Any) -> None:
    async def main() -> None:
        typed = '"""Typed, and not saved."""\n\n# \N{SNAKE}\n' + orders(session).read_text().split("\n", 1)[1]
        async with editor(session.root) as ed:  # that cannot be asked to save
            ed.open(orders(session))
            async with session.begun(session.script(LOOK, PROPOSE)) as client:
                await ed.lens(orders(session), "Autodebug")
                ed.type(orders(session), typed)
                await fixed(session, ed)
                assert await ed.titles(orders(session)) == [(14, READY), (14, "Explain this exception")]
                action = await ed.resolve((await ed.actions(orders(session), 14))[TITLE])
                # a client that says that it has applied the edit, and has not
                ed.applies = None
                lied = await ed.do((await ed.actions(orders(session), 14))["Apply fix and restart program"].command)
                assert not lied["ok"]
                assert "has not made the change in its buffers" in lied["message"]
                assert len(ed.edits) == 1
                assert ed.text(orders(session)) == typed
                assert not (session.root / "tests/test_gift.py").exists()
                # the quick fix: the edit first, then the command
                ed.take(action.edit)
                result = await ed.do(action.command)
                assert (result["ok"], result["saved"]) == (True, False)
                assert any("Save orders.py" in message for message in ed.messages)
                assert "or 0" in ed.text(orders(session))
                assert ed.text(orders(session)).startswith('"""Typed, and not saved."""\n\n# \N{SNAKE}\n')
                assert "or 0" not in orders(session).read_text()
                status = (await client.ask("dapAgent/status"))["body"]
                assert not status["proposal"]["applied"]
                ed.save(orders(session))
                await ed.lens(orders(session), "Fix applied")
                assert (await client.ask("dapAgent/status"))["body"]["proposal"]["applied"]
                # changed where the fix is: it cannot be taken back, and nothing is
                ed.type(orders(session), ed.text(orders(session)).replace("or 0", "or 1"))
                refused = await ed.do(await ed.lens(orders(session), "Fix applied"))
                assert "has changed where the fix has changed it" in refused["message"]
                assert (session.root / "tests/test_gift.py").exists()
                await client.leave()

    run(main, timeout=110)


def test_the_session_ends_in_the_middle_of_everything(session: Any) -> None:
    """It is killed while the model works; its entry is swept, and what is known of the exception stays."""

    async def main(server: ModelServer) -> None:
        async with editor(session.root) as ed, editor(session.root, NEOVIM) as other:
            for one in (ed, other):
                one.open(orders(session))
            async with session.begun("anthropic:test-model", env=server.environment()) as client:
                await ed.do(await ed.lens(orders(session), "Autodebug"))
                await other.lens(orders(session), "Investigating")
                (entry,) = registry.entries()
                client.process.kill()
                await client.end()
            assert entry.pid != os.getpid()
            for one in (ed, other):
                await one.lens(orders(session), "Explain this exception")
                await one.until(lambda one=one: [kind for _, kind in one.progress][-1:] == ["end"])
                assert [title for _, title in await one.titles(orders(session))] == ["Explain this exception"]
            await ed.until(lambda: not registry.entries())
            assert not Path(entry.socket or "").exists()
            refused = await ed.do(lsp.Command("", "dapAgent.autodebug", arguments=[{"session": entry.id}]))
            assert "has ended" in refused["message"]

    with ModelServer([Stall(40)]) as server:
        run(lambda: main(server), timeout=60)


def test_cancelling_by_progress_and_by_lens(session: Any) -> None:
    async def main(server: ModelServer) -> None:
        async with editor(session.root) as ed:
            ed.open(orders(session))
            async with session.begun("openai:test-model", env=server.environment()) as client:
                begun = await ed.do(await ed.lens(orders(session), "Autodebug"))
                await ed.until(lambda: ed.progress)
                token = f"dap-agent-{begun['id']}"
                ed.client.window_work_done_progress_cancel(lsp.WorkDoneProgressCancelParams(token=token))
                await ed.until(lambda: (token, "end") in ed.progress)
                assert any("cancelled" in message for message in ed.messages)
                await ed.do(await ed.lens(orders(session), "Autodebug"))
                await ed.do(await ed.lens(orders(session), "Investigating"))
                await ed.lens(orders(session), "Autodebug")
                await client.leave()

    with ModelServer([Stall(40), Stall(40)]) as server:
        run(lambda: main(server), timeout=60)


def test_without_a_model_and_without_a_session(session: Any, tmp_path: Path) -> None:
    async def main() -> None:
        async with editor(tmp_path / "elsewhere") as foreign, editor(None) as ed:
            ed.open(orders(session))
            foreign.open(orders(session))
            nothing = await ed.do(lsp.Command("", "dapAgent.showReport"))
            assert "no debug session" in nothing["message"]
            async with session.begun() as client:
                explain = await ed.lens(orders(session), "Explain")
                result = await ed.do(explain)
                assert "## Values" in result["markdown"]
                assert "No model is configured" in result["message"]
                refused = await ed.do(await ed.lens(orders(session), "Autodebug"))
                assert "No model is configured" in refused["message"]
                assert await foreign.lenses(orders(session)) == []  # another workspace's
                await client.ask("continue", {"threadId": 1})
                await client.event("terminated")
                await client.leave()
            await ed.until(lambda: not registry.entries())

    run(main, timeout=60)


def test_an_adapter_that_is_killed_leaves_an_entry_that_is_swept(session: Any) -> None:
    async def main() -> None:
        with contextlib.suppress(ConnectionError):
            async with session.begun() as client:
                await session.crashed()
                (entry,) = registry.entries()
                while not kept.all_kept():
                    await asyncio.sleep(0.01)  # a file has to appear
                os.kill(entry.pid, signal.SIGKILL)
                await client.end()
        assert registry.entries() == [entry]
        assert registry.find([session.root]) == []
        assert registry.entries() == []
        (left,) = kept.all_kept()
        assert json.loads(next(kept.folder().glob("*.json")).read_text())["stop"] == left.stop
        assert (left.stop["line"], left.fix) == (13, None)

    run(main)


def test_an_explanation_is_shown_when_it_is_there(session: Any) -> None:
    async def main() -> None:
        async with editor(session.root) as ed:
            ed.open(orders(session))
            async with session.begun(session.script({"text": "The gift has no ![price](http://x)."})) as client:
                begun = await ed.do(await ed.lens(orders(session), "Explain"))
                assert begun["ok"]
                await ed.until(lambda: ed.shown)
                text = Path(ed.shown[0].removeprefix("file://")).read_text()
                assert "## Explanation\n\nThe gift has no \\!\\[price\\](http://x)." in text
                await client.leave()

    run(main)


def test_a_run_of_the_command_line_can_be_looked_at(session: Any, trace: Trace) -> None:
    """Its investigation is seen and not driven; the fix that it has written stays known."""

    async def main() -> None:
        async with editor(session.root) as ed:
            ed.open(orders(session))
            model = session.script(LOOK, PROPOSE)
            words = ("run", "--model", model, "--fix", "auto", str(session.root / "shop/main.py"))
            running = trace.start(*words, environment={"PYTHONPATH": f"{ROOT}:{session.root}"}, cwd=session.root)
            cancel = await ed.lens(orders(session), "Investigating")
            (entry,) = registry.entries()
            assert (entry.kind, entry.workspace) == ("run", (str(session.root),))
            refused = await ed.do(cancel)
            assert "run by dap-agent in a terminal" in refused["message"]
            await asyncio.to_thread(running.wait)
            assert running.returncode == exit_status.FIXED
            await ed.lens(orders(session), f"Fix applied: {TITLE} (undo)")
            # the line that failed is another one by now
            assert [title for _, title in await ed.titles(orders(session))] == [f"Fix applied: {TITLE} (undo)"]
            report = await ed.do((await ed.actions(orders(session), 12))["Show the investigation"].command)
            assert "**proved**" in report["markdown"]
            ed.type(orders(session), orders(session).read_text())  # the editor has read it again
            assert (await ed.do(await ed.lens(orders(session), "Fix applied")))["ok"]
            assert "or 0" not in orders(session).read_text()
            assert not (session.root / "tests/test_gift.py").exists()
            assert registry.entries() == []
        trace.assert_nothing_is_left()
        trace.end()

    run(main, timeout=60)


def test_beside_ruff_in_one_buffer(session: Any) -> None:
    """What another server changes in the buffer stays, and the fix fits all the same."""

    async def main() -> None:
        orders(session).write_text("import os\n" + orders(session).read_text())
        ruff = other_server(session.root, sys.executable, "-m", "ruff", "server")
        async with editor(session.root, SAVING) as ed, ruff as other:
            ed.beside.append(other)
            ed.open(orders(session))
            async with session.begun(session.script(LOOK, PROPOSE)) as client:
                await client.event("stopped")
                await fixed(session, ed)
                theirs = await ed.actions(orders(session), 0, only=["source.fixAll.ruff"], client=other)
                (unused,) = theirs.values()
                assert await ed.actions(orders(session), 13, only=["source.fixAll.ruff"]) == {}
                ed.take(unused.edit or (await other.code_action_resolve_async(unused)).edit)
                assert not ed.text(orders(session)).startswith("import os")
                assert (await ed.titles(orders(session)))[0] == (12, READY)
                offered = await ed.actions(orders(session), 12)
                assert (await ed.do(offered["Apply fix and restart program"].command))["saved"]
                text = orders(session).read_text()
                assert "import os" not in text
                assert "or 0" in text
                assert (await client.event("terminated", "stopped"))["event"] == "terminated"
                await client.leave()

    run(main)


@pytest.mark.skipif(not (3, 11) <= sys.version_info < (3, 14), reason="frames are restarted on CPython 3.11 to 3.13")
def test_the_program_goes_on_from_the_frame_with_the_fix(session: Any) -> None:
    async def main() -> None:
        async with editor(session.root, SAVING) as ed:
            ed.open(orders(session))
            async with session.begun(session.script(LOOK, PROPOSE), filters=["willBeUnhandled"]) as client:
                await client.event("stopped")
                await fixed(session, ed)
                offered = await ed.actions(orders(session), 12)
                result = await ed.do(offered["Apply fix and restart frame"].command)
                assert (result["ok"], result["saved"]) == (True, True), result
                assert (await client.event("terminated", "stopped"))["event"] == "terminated"
                assert session.console("stdout").strip() == "sum 3.5"
                assert len([message for message in client.log if message.get("event") == "process"]) == 1
                await ed.lens(orders(session), "Fix applied")
                await client.leave()

    run(main)
