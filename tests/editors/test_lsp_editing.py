"""A fix put into buffers and files, over an editor and a session by hand."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lsprotocol import types as lsp

from dap_agent.control import kept, registry
from dap_agent.control.client import Refused, SessionGone
from dap_agent.editors.lsp import editing
from dap_agent.editors.lsp import server as server_of_editors
from dap_agent.editors.lsp import sessions as sessions_of_editors
from dap_agent.editors.lsp.editing import Editing
from dap_agent.editors.lsp.server import Server
from dap_agent.editors.lsp.sessions import Sessions
from dap_agent.editors.lsp.state import Fix, FixFile, Session, Stop
from dap_agent.errors import DapAgentError
from dap_agent.fixes import applying
from dap_agent.fixes.failures import ApplyError

OLD, NEW = "a = 1\nb = 2\nc = 3\n", "a = 1\nb = 20\nc = 3\n"


class Hand:
    """An editor, and the sessions that it asks."""

    def __init__(self) -> None:
        self.buffers: dict[str, str] = {}
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.said: list[str] = []
        self.saves = False
        self.refuses = ""
        self.taken: dict[str, Any] | None = None
        self.takes: Callable[[str], str] = lambda text: text
        self._event = asyncio.Event()

    def text(self, path: str) -> str | None:
        return self.buffers.get(path)

    def type(self, path: str, text: str) -> None:
        self.buffers[path] = text
        self.wake()

    def wake(self) -> None:
        self._event.set()
        self._event = asyncio.Event()

    async def edit(self, texts: Mapping[str, str], label: str) -> None:
        for path, text in texts.items():
            self.type(path, self.takes(text))

    def changed(self) -> asyncio.Event:
        return self._event

    async def save(self, paths: Sequence[str]) -> bool:
        for path in paths if self.saves else ():
            Path(path).write_text(self.buffers[path])
        return self.saves

    def say(self, text: str, *, error: bool = False) -> None:
        self.said.append(text)

    async def ask(self, session: Session, method: str, **params: Any) -> dict[str, Any]:
        self.asked.append((method, params))
        if self.refuses == method:
            raise SessionGone("The debug session has ended.")
        return {"reload": self.taken}


class World:
    """A workspace with a fix of two files and a test."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "pyproject.toml").touch()
        self.one, self.other, self.test = (str(root / name) for name in ("one.py", "other.py", "test_it.py"))
        Path(self.one).write_text(OLD)
        Path(self.other).write_text(OLD)
        files = (
            FixFile(self.one, OLD, NEW),
            FixFile(self.other, OLD, NEW),
            FixFile(self.test, None, "def test(): ...\n"),
        )
        stop = Stop(self.one, 1, "E", ((3, self.one, 1),), current=True)
        self.fix = Fix("f", "A fix", str(root), True, False, files, stop)
        self.session = Session("s", True, "stopped", (str(root),), stop, None, self.fix)
        self.done = replace(self.session, fix=replace(self.fix, applied=True))
        self.hand = Hand()
        self.editing = Editing(self.hand, self.hand)  # type: ignore[arg-type]

    def files(self) -> tuple[str | None, ...]:
        paths = [Path(path) for path in (self.one, self.other, self.test)]
        return tuple(path.read_text() if path.exists() else None for path in paths)


@pytest.fixture
def make(tmp_path: Path) -> Callable[[], World]:
    return lambda: World(tmp_path.resolve())


APPLIED = (NEW, NEW, "def test(): ...\n")
NOTED = ("applied", {"proposal": "f", "written": True})


async def test_nothing_is_open(make: Any) -> None:
    w = make()
    assert await w.editing.apply(w.session, "frame") == {
        "applied": True,
        "saved": True,
        "files": [w.one, w.other, w.test],
    }
    assert w.files() == APPLIED
    assert w.hand.asked == [NOTED, ("restartFrame", {"frame": 3})]
    with pytest.raises(DapAgentError, match="applied already"):
        await w.editing.apply(w.done, "nothing")
    await w.editing.undo(w.done)
    # by hand the session does not take it back: the record is its own to take
    assert [method for method, _ in w.hand.asked[2:]] == ["undo", "applied"]


def taken(outcome: str, error: str | None = None) -> dict[str, Any]:
    function = {"name": "f", "outcome": outcome, "reason": ""}
    return {"summary": "S.", "files": [{"path": "p", "error": error, "functions": [function], "names": []}]}


@pytest.mark.parametrize(
    ("given", "restarts"),
    [
        (taken("swapped"), True),
        (taken("refused"), False),
        (taken("swapped", "no"), False),
        ({"summary": "S.", "files": []}, False),
    ],
)
async def test_no_frame_starts_again_with_code_that_the_program_has_not_taken(
    make: Any, given: Any, restarts: bool
) -> None:
    w = make()
    w.hand.taken = given
    with contextlib.nullcontext() if restarts else pytest.raises(DapAgentError, match="no frame was restarted"):
        await w.editing.apply(w.session, "frame")
    assert w.files() == APPLIED
    assert [method for method, _ in w.hand.asked] == ["applied", "restartFrame"][: 1 + restarts]


async def test_what_is_open_is_changed_in_the_editor_and_the_rest_here(make: Any) -> None:
    w = make()
    w.hand.type(w.one, OLD + "# typed\n")
    result = await w.editing.apply(w.session, "program")
    assert not result["saved"]
    assert (w.hand.buffers[w.one], w.files()) == (NEW + "# typed\n", (OLD, *APPLIED[1:]))
    assert w.hand.asked == []
    assert w.editing.awaited == (w.one,)
    assert w.hand.said == ["Save one.py: then the program and the tests have it, too."]
    Path(w.one).write_text(w.hand.buffers[w.one])
    w.hand.wake()
    while len(w.hand.said) < 2:
        await asyncio.sleep(0.005)  # a thread reads the file
    assert w.hand.asked == [NOTED, ("restart", {})]
    await w.editing.close()


async def test_what_is_saved_while_the_files_are_read_is_not_missed(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    w, loop = make(), asyncio.get_running_loop()
    reads, noted, woken, real = 0, asyncio.Event(), threading.Event(), editing.read

    def wake() -> None:
        w.hand.wake()
        woken.set()

    def read(path: str) -> str | None:
        nonlocal reads
        text = real(path)
        reads += path == w.one
        if path == w.one and reads == 3:  # two looks before the user is told, then the first one of those that wait
            Path(path).write_text(w.hand.buffers[path])
            loop.call_soon_threadsafe(wake)
            assert woken.wait(10)
        return text

    async def ask(*_: Any, **__: Any) -> dict[str, Any]:
        noted.set()
        return {}

    monkeypatch.setattr(editing, "read", read)
    w.hand.ask = ask
    w.hand.type(w.one, OLD)
    assert not (await w.editing.apply(w.session, "nothing"))["saved"]
    await asyncio.wait_for(noted.wait(), 10)
    await w.editing.close()


async def test_the_session_ends_between_the_buffers_and_the_files(make: Any) -> None:
    w = make()
    w.hand.type(w.one, OLD)
    w.hand.saves, w.hand.refuses = True, "applied"
    await w.editing.apply(w.session, "nothing")
    assert w.files() == APPLIED
    over = replace(w.done, live=False)
    await w.editing.undo(over)  # from the record, and in the buffer
    assert w.hand.buffers[w.one] == OLD
    assert w.files() == (OLD, OLD, None)
    with pytest.raises(DapAgentError, match="debug session has ended"):
        await w.editing.apply(replace(over, fix=w.fix), "frame")


@pytest.mark.parametrize("where", ["open", "closed", "test"])
async def test_a_fix_that_does_not_fit_changes_nothing(make: Any, where: str) -> None:
    w = make()
    w.hand.type(w.one, OLD)
    if where == "open":
        w.hand.type(w.one, OLD.replace("b = 2", "b = 3"))
    else:
        Path(w.other if where == "closed" else w.test).write_text("x = 1\n")
    before = w.files(), dict(w.hand.buffers)
    with pytest.raises(DapAgentError, match="has changed where the fix changes it"):
        await w.editing.apply(w.session, "nothing")
    assert (w.files(), w.hand.buffers) == before


async def test_files_that_cannot_be_written_leave_the_buffers_as_they_were(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    w = make()
    w.hand.type(w.one, OLD)

    def fails(*_: Any, **__: Any) -> None:
        raise ApplyError("Nothing was changed: the disk is full.")

    monkeypatch.setattr(applying, "apply", fails)
    with pytest.raises(DapAgentError, match="disk is full"):
        await w.editing.apply(w.session, "nothing")
    assert (w.hand.buffers[w.one], w.files()) == (OLD, (OLD, OLD, None))


async def test_an_editor_that_lies_or_does_something_else(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(editing, "PATIENCE", 0.05)
    w = make()
    for takes in (lambda text: OLD, lambda text: "garbage\n"):
        w.hand.type(w.one, OLD)
        w.hand.takes = takes
        with pytest.raises(DapAgentError, match="has not made the change"):
            await w.editing.apply(w.session, "nothing")
        assert w.files() == (OLD, OLD, None)
    with contextlib.suppress(KeyError):
        del w.hand.buffers[w.one]
    w.hand.type(w.one, OLD)
    with pytest.raises(DapAgentError, match="has not made the change"):
        await w.editing.apply(w.session, "nothing", edited=True)  # it said it would, and has not


async def test_without_a_fix_and_with_one_of_others(make: Any) -> None:
    w = make()
    with pytest.raises(DapAgentError, match="no fix to apply"):
        await w.editing.apply(replace(w.session, fix=None), "nothing")
    with pytest.raises(DapAgentError, match="not applied"):
        await w.editing.undo(w.session)
    with pytest.raises(DapAgentError, match="has not written this fix itself"):
        await w.editing.undo(replace(w.done, fix=replace(w.done.fix, files=())))


@pytest.mark.parametrize("quick", [True, False])
async def test_an_explanation_may_be_there_before_the_answer_to_the_request(make: Any, quick: bool) -> None:
    session = make().session
    server = Server(SimpleNamespace(client_capabilities=lsp.ClientCapabilities()))  # type: ignore[arg-type]
    shown = asyncio.Event()
    end = {"id": "q", "task": "ask", "kind": "end", "text": "Because.", "status": "answered"}

    async def ask(*_: Any) -> dict[str, Any]:
        if quick:
            server._progress(session, end)
        return {"id": "q"}

    async def show(_: Session) -> dict[str, Any]:
        shown.set()
        return {}

    server.sessions.ask = ask  # type: ignore[method-assign]
    server._show = show  # type: ignore[method-assign]
    await server._explain(session)
    if not quick:
        server._progress(session, end)
    await asyncio.wait_for(shown.wait(), 10)
    await server.close()


async def test_a_failure_after_the_user_has_saved_is_told(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    w, told = make(), asyncio.Event()

    def mark(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    def say(text: str, *, error: bool = False) -> None:
        w.hand.said.append(text)
        if error:
            told.set()

    monkeypatch.setattr(editing.kept, "mark", mark)
    w.hand.type(w.one, OLD)
    w.hand.say, w.hand.refuses = say, "applied"
    assert not (await w.editing.apply(w.session, "nothing"))["saved"]
    Path(w.one).write_text(w.hand.buffers[w.one])
    w.hand.wake()
    await asyncio.wait_for(told.wait(), 10)
    assert "No space left" in w.hand.said[-1]
    await w.editing.close()


async def test_what_follows_from_the_saving_is_not_cut_off_by_what_is_done_next(make: Any) -> None:
    w, begun, goes_on, noted = make(), asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def ask(session: Session, method: str, **params: Any) -> dict[str, Any]:
        if params.get("written"):
            begun.set()
            await goes_on.wait()
            noted.set()
        return {}

    w.hand.ask = ask
    w.hand.type(w.one, OLD)
    assert not (await w.editing.apply(w.session, "nothing"))["saved"]
    Path(w.one).write_text(w.hand.buffers[w.one])
    w.hand.wake()
    await asyncio.wait_for(begun.wait(), 10)
    await w.editing.undo(w.done)
    goes_on.set()
    await asyncio.wait_for(noted.wait(), 10)
    await w.editing.close()


async def test_an_editor_that_never_answers_is_not_waited_for(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_of_editors, "PATIENCE", 0.05)
    w, asked = make(), []

    def never(*args: Any) -> Any:
        asked.append(asyncio.get_running_loop().create_future())
        return asked[-1]

    capabilities = lsp.ClientCapabilities(experimental={"dapAgent": {"save": True}})
    server = Server(
        SimpleNamespace(  # type: ignore[arg-type]
            client_capabilities=capabilities,
            protocol=SimpleNamespace(send_request_async=never),
            workspace=SimpleNamespace(text_documents={}),
            workspace_apply_edit_async=never,
        )
    )
    monkeypatch.setattr(server, "_edit", lambda *_, **__: lsp.WorkspaceEdit())
    await asyncio.wait_for(server.edit({w.one: NEW}, "A fix"), 10)
    assert not await asyncio.wait_for(server.save([w.one]), 10)
    assert [future.cancelled() for future in asked] == [False, False]  # a late answer finds them
    await server.close()


async def test_a_session_that_lets_nobody_in_is_forgotten_with_its_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = SimpleNamespace(id="s", within=lambda folders: True)
    there = [entry]
    monkeypatch.setattr(registry, "entries", lambda: list(there))
    monkeypatch.setattr(kept, "all_kept", list)
    closed = asyncio.Event()

    class Client:
        def __init__(self, *_: Any) -> None:
            pass

        async def connect(self, _: str) -> dict[str, Any]:
            raise Refused("No.")

        async def close(self) -> None:
            closed.set()

    monkeypatch.setattr(sessions_of_editors, "ControlClient", Client)
    sessions = Sessions(tuple, lambda: None, lambda *_: None, lambda *_: None)
    await sessions._look()
    await asyncio.wait_for(closed.wait(), 10)
    await sessions._look()
    assert [*sessions._followed] == ["s"]  # not tried again
    there.clear()
    await sessions._look()
    assert not sessions._followed
    await sessions.close()


async def test_a_session_may_end_while_others_are_let_go() -> None:
    sessions, closed = Sessions(tuple, lambda: None, lambda *_: None, lambda *_: None), []

    def follow(number: int) -> Any:
        async def close() -> None:
            closed.append(number)
            await asyncio.sleep(0)
            sessions.dropped(followed[1].entry)

        return SimpleNamespace(entry=SimpleNamespace(id=str(number)), session=None, client=SimpleNamespace(close=close))

    followed = [follow(number) for number in range(3)]
    sessions._followed = {one.entry.id: one for one in followed}
    await sessions.close()
    assert closed == [0, 1, 2]


async def test_a_fix_that_is_formatted_when_it_is_saved_can_be_taken_back(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    w = make()
    w.hand.type(w.one, OLD)
    w.hand.saves = True
    save = w.hand.save

    async def formats(paths: Sequence[str]) -> bool:
        w.hand.buffers[w.one] = w.hand.buffers[w.one].replace("b = 20", "b = (20)")
        return bool(await save(paths))

    monkeypatch.setattr(w.hand, "save", formats)
    await w.editing.apply(w.session, "nothing")
    formatted = NEW.replace("20", "(20)")
    assert w.files()[0] == formatted
    monkeypatch.setattr(w.hand, "save", save)
    w.hand.type(w.one, "# mine\n" + formatted)
    await w.editing.undo(w.done)
    assert w.files()[0] == "# mine\n" + OLD
    # what the user has made of it is not taken back
    await w.editing.apply(w.session, "nothing")
    w.hand.type(w.one, NEW.replace("20", "21"))
    with pytest.raises(DapAgentError, match="was not taken back"):
        await w.editing.undo(w.done)
