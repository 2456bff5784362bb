"""The socket of a session: what clients ask and are told, several at once, and all that a bad one can do."""

import asyncio
import contextlib
import json
import os
import socket
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dap_agent.control import api, jsonrpc, kept, registry, server, views
from dap_agent.control.client import ControlClient, Refused, SessionGone
from dap_agent.control.sharing import Sharing
from dap_agent.errors import DapAgentError
from dap_agent.session import redaction
from dap_agent.session.paths import private_dir, runtime_dir
from dap_agent.session.snapshot import Snapshot

from .control_schema import validator
from .messages_schema import schema

TITLE = "A line without a price is free"


class Heard:
    """A client that keeps what it is told."""

    def __init__(self, entry: registry.Entry) -> None:
        self.log: list[tuple[str, dict[str, Any]]] = []
        self.changed = asyncio.Event()
        self.gone = False
        self.client = ControlClient(entry, self._heard, self._gone)

    def _heard(self, method: str, params: dict[str, Any]) -> None:
        validator(f"{method}Notification").validate(params)
        self.log.append((method, params))
        self.changed.set()

    def _gone(self) -> None:
        self.gone = True
        self.changed.set()

    async def ask(self, method: str, **params: Any) -> Any:
        result = await asyncio.wait_for(self.client.request(method, params), 60)
        validator(f"{method}Result").validate(result)
        return result

    async def until(self, method: str, **wanted: Any) -> Any:
        """The first notification that has *wanted*, heard already or to come."""

        async def wait() -> Any:
            while True:
                for name, params in self.log:
                    if name == method and wanted.items() <= params.items():
                        return params
                if self.gone and method == "":
                    return None
                self.changed.clear()
                await self.changed.wait()

        return await asyncio.wait_for(wait(), 60)


@contextlib.asynccontextmanager
async def shared(world: Any) -> Any:
    complaints: list[str] = []
    sharing = Sharing(world.assistant, "adapter", complaints.append)
    sharing.open([world.root], "shop/main.py")
    while not (found := registry.find([world.root])) and not complaints:
        await asyncio.sleep(0.005)  # a file has to appear
    assert not complaints
    world.entry, world.sharing = found[0], sharing
    try:
        yield sharing
    finally:
        await world.assistant.close()
        await sharing.close()
        assert not complaints
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert registry.entries() == []
        assert [path.name for path in runtime_dir().iterdir()] == ["sessions"]


async def connected(world: Any) -> Heard:
    heard = Heard(world.entry)
    validator("initializeResult").validate(await heard.client.connect("test"))
    return heard


def test_the_schema_is_that_of_the_methods() -> None:
    defs = schema("control")["$defs"]
    for method in api.METHODS:
        assert defs[f"{method.name}Params"] == method.schema
        assert f"{method.name}Result" in defs
        if method.example is not None:
            validator(f"{method.name}Params").validate(method.example)


async def test_two_clients_from_a_crash_to_a_fix_that_is_taken_back(world: Any, model: Any, data: Any) -> None:
    w = world()
    async with shared(w):
        entry = json.loads((registry.folder() / f"{w.entry.id}.json").read_text())
        validator("entry").validate(entry)
        assert (entry["workspace"], entry["pid"]) == ([str(w.root)], os.getpid())
        one, two = await connected(w), await connected(w)
        assert (await two.ask("status"))["stop"] is None
        w.guest.stops(data)
        for client in (one, two):
            stop = await client.until("snapshot", current=True)
            assert (stop["path"], stop["line"]) == (str(w.root / "shop/orders.py"), 13)
        assert (await one.ask("snapshot"))["stop"] == stop
        assert (await one.ask("proposal")) == {"proposal": None}
        w.turns(model.calls(("frame", {"number": 0}), text="Where from?"), model.calls(model.fix()))
        begun = await one.ask("autodebug", instructions="keep the name")
        with pytest.raises(Refused, match="runs already"):
            await two.ask("autodebug")
        assert (await two.until("progress", kind="begin"))["text"] == "keep the name"
        proposal = await two.until("proposal", id=begun["id"])
        assert (proposal["title"], proposal["proved"], proposal["applied"]) == (TITLE, True, False)
        texts = {Path(file["path"]).name: (file["oldText"], file["newText"]) for file in proposal["files"]}
        assert texts["orders.py"][0] == (w.root / "shop/orders.py").read_text()
        assert "or 0" in texts["orders.py"][1]
        assert texts["test_gift.py"][0] is None
        await one.until("progress", kind="end", status="proposed")
        names = [name for name, _ in two.log]
        assert names.index("snapshot") < names.index("proposal") < len(names) - 1 - names[::-1].index("progress")
        report = (await one.ask("report"))["markdown"]
        for words in ("# TypeError", "## Cause", "## Evidence", "```diff", "def test_", "**proved**", "## Cost"):
            assert words in report
        assert "line = 'gift ='" in report
        with pytest.raises(Refused, match="not the newest one"):
            await one.ask("apply", proposal="ffff")
        assert (await one.ask("apply", proposal=begun["id"]))["title"] == TITLE
        await two.until("state", proposal={"id": begun["id"], "title": TITLE, "applied": True, "proved": True})
        assert (await two.ask("undo"))["title"] == TITLE
        await one.ask("applied", proposal=begun["id"], written=True)
        assert (await two.ask("status"))["proposal"]["applied"]
        await one.client.close()  # the other is not disturbed
        await two.ask("restart")
        assert w.guest.restarts == 1
        w.guest.ends()
        assert not (await two.until("state", program="ended"))["stop"]["current"]
    await two.until("ended")
    with pytest.raises(SessionGone):
        await two.ask("status")
    (left,) = kept.all_kept()
    assert left.fix is not None
    assert (left.root, left.stop["line"], left.fix["title"]) == (w.root, 13, TITLE)
    assert "or 0" in left.plan().files[0].new.decode()
    path = next(kept.folder().glob("*.json"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    await two.client.close()


async def test_bad_lines_are_answered_and_the_next_is_read(world: Any) -> None:
    w = world()
    async with shared(w):
        reader, writer = await asyncio.open_unix_connection(w.entry.socket)

        async def say(line: bytes) -> Any:
            writer.write(line + b"\n")
            return json.loads(await asyncio.wait_for(reader.readline(), 10))

        assert (await say(b'{"jsonrpc":"2.0","id":1,"method":"status"}'))["error"]["code"] == jsonrpc.NOT_INITIALIZED
        assert (await say(b'{"jsonrpc":"2.0","id":2,"method":"initialize"}'))["error"]["code"] == jsonrpc.INVALID_PARAMS
        begun = await say(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"client":"nc"}}')
        assert (begun["id"], begun["result"]["protocol"]) == (0, 1)
        for line, code in [
            (b"{", jsonrpc.PARSE_ERROR),
            (b"\xff\xfe", jsonrpc.PARSE_ERROR),
            (b"[" * 100_000, jsonrpc.PARSE_ERROR),
            (b"[]", jsonrpc.INVALID_REQUEST),
            (b"3", jsonrpc.INVALID_REQUEST),
            (b'{"id":1,"method":"status"}', jsonrpc.INVALID_REQUEST),
            (b'{"jsonrpc":"2.0","id":null,"method":"status"}', jsonrpc.INVALID_REQUEST),
            (b'{"jsonrpc":"2.0","id":1,"method":5}', jsonrpc.INVALID_REQUEST),
            (b'{"jsonrpc":"2.0","id":1,"method":"status","params":[1]}', jsonrpc.INVALID_PARAMS),
            (b'{"jsonrpc":"2.0","id":1,"method":"ask","params":{}}', jsonrpc.INVALID_PARAMS),
            (b'{"jsonrpc":"2.0","id":1,"method":"nonsense"}', jsonrpc.METHOD_NOT_FOUND),
            (b'{"jsonrpc":"2.0","id":1,"method":"undo"}', jsonrpc.REFUSED),
        ]:
            answer = await say(line)
            validator("error").validate(answer["error"])
            assert answer["error"]["code"] == code, line[:80]
        writer.write(
            b'\n{"jsonrpc":"2.0","method":"status"}\n{"jsonrpc":"2.0","id":9,"result":{}}\n'
        )  # nothing to answer
        assert (await say(b'{"jsonrpc":"2.0","id":"x","method":"status"}'))["id"] == "x"
        writer.write(b"x" * (jsonrpc.MAX_REQUEST + 2))
        assert "longer than" in json.loads(await asyncio.wait_for(reader.readline(), 10))["error"]["message"]
        assert await reader.read() == b""
        writer.close()


async def test_clients_that_die_or_never_read_disturb_nobody(
    world: Any, model: Any, data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    w = world()
    monkeypatch.setattr(server, "MAX_UNREAD", 256 * 1024)
    async with shared(w):
        good = await connected(w)
        w.guest.stops(data)
        # asks and dies before the answer
        for _ in range(20):
            rude = socket.socket(socket.AF_UNIX)
            rude.connect(w.entry.socket)
            rude.send(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"client":"x"}}\n')
            rude.send(b'{"jsonrpc":"2.0","id":1,"method":"snapshot"}\n' * 50 + b'{"jsonrpc"')
            rude.close()
        # shuts down its side only: it still gets its answers
        reader, writer = await asyncio.open_unix_connection(w.entry.socket, limit=2**22)
        writer.write(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"client":"x"}}\n')
        writer.write(b'{"jsonrpc":"2.0","id":1,"method":"status"}\n')
        writer.write_eof()
        assert [json.loads(line)["id"] for line in (await reader.read()).splitlines()] == [0, 1]
        writer.close()
        # asks without end and never reads
        reader, writer = await asyncio.open_unix_connection(w.entry.socket)
        writer.write(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"client":"x"}}\n')
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(b'{"jsonrpc":"2.0","id":1,"method":"report"}\n' * 20)
                await writer.drain()
                assert (await good.ask("status"))["program"] == "stopped"
                if w.sharing._server.clients == 1:
                    break
        writer.close()
        w.turns(model.say("Because."))
        begun = await good.ask("explain")
        assert (await good.until("progress", kind="end", id=begun["id"]))["text"] == "Because."
        assert "## Explanation\n\nBecause." in (await good.ask("report"))["markdown"]
        await good.client.close()


def test_what_is_kept_is_masked(data: Any, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "kV9-unseen-77121"
    monkeypatch.setenv("SHOP_API_KEY", secret)
    redaction.forget_environment()
    data["exception"]["message"] = f"refused: {secret}"
    data["frames"][0]["locals"].append({"name": "api_key", "value": {"type": "str", "text": f"'{secret}'"}})
    data["frames"][0]["source"] = {"first_line": 13, "lines": [f"call('{secret}')"]}
    stop = views.stop(Snapshot(data), thread_id=1, current=True)
    kept.keep(root, "s", Snapshot(data), stop, None)
    path = next(kept.folder().glob("*.json"))
    assert secret not in path.read_text()
    (left,) = kept.all_kept()
    assert redaction.mask() in left.report
    assert not left.stop["current"]
    path.write_text(path.read_text().replace('"format": 1', '"format": 2'))
    (kept.folder() / "other.json").write_text("{")
    assert kept.all_kept() == []
    redaction.forget_environment()


async def test_what_is_asked_for_is_done_although_the_client_is_torn_away(root: Path) -> None:
    begun, go_on, ended = asyncio.Event(), asyncio.Event(), asyncio.get_running_loop().create_future()

    async def answer(name: str, params: Any) -> Any:
        begun.set()
        try:
            await go_on.wait()
        except asyncio.CancelledError:
            ended.set_result("cancelled")
            raise
        ended.set_result("done")
        return {}

    async def greet() -> Any:
        return {}

    served = server.ControlServer(answer, greet)
    await served.open("x")
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(served.path))
            client.sendall(jsonrpc.request(1, "initialize", {"client": "t"}) + jsonrpc.request(2, "apply", {}))
            await begun.wait()
            served.tell("output", {"text": "unread"})  # a socket that is closed then is reset
        await asyncio.wait_for(_until(lambda: served._clients and not _reads(served)), 10)
        go_on.set()
        assert await asyncio.wait_for(ended, 10) == "done"
    finally:
        await served.close()


def _reads(served: server.ControlServer) -> bool:
    (client,) = served._clients
    return client._reader.exception() is None


async def _until(what: Any) -> None:
    while not what():
        await asyncio.sleep(0)


def test_the_folder_of_a_killed_sessions_socket_is_swept(root: Path, tmp_path: Path) -> None:
    place = tmp_path / "dap-agent-x"
    place.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place / "sock"))
    entry = registry.Entry("x", "run", 1, (str(root),), "a.py", str(place / "sock"), None, "0", registry.machine())
    registry.write(entry)
    assert registry.sweep() == []
    assert not place.exists()


def test_a_mask_is_never_written_to_a_file(root: Path) -> None:
    edit = {"kind": "str_replace", "file": "a.py", "old": "1", "new": f"'{redaction.mask()}'"}
    fix = {"files": {}, "proposal": {"title": "T", "edits": [edit], "test": {"file": "test_a.py", "source": ""}}}
    with pytest.raises(DapAgentError, match="holds a secret"):
        kept.Kept(root, "s", {}, {}, "", fix).plan()


def test_the_oldest_workspaces_are_not_kept_for_ever(data: Any, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "_MOST", 2)
    stop = views.stop(Snapshot(data), thread_id=1, current=True)
    for number in range(4):
        kept.keep(root / str(number), "s", Snapshot(data), stop, None)
        os.utime(kept._path(root / str(number)), (number + 1, number + 1))
    kept.keep(root / "0", "s", Snapshot(data), stop, None)
    assert {one.root.name for one in kept.all_kept()} == {"0", "3"}


async def test_powers_that_a_session_does_not_have(world: Any) -> None:
    w = world()
    async with shared(w):
        client = await connected(w)
        for method, words in (("reload", "restart it instead"), ("restartFrame", "program is running")):
            with pytest.raises(Refused, match=words):
                await client.ask(method)
        with pytest.raises(Refused, match="no exception"):
            await client.ask("report")
        with pytest.raises(Refused, match="not the newest"):
            await client.ask("applied", proposal="x", written=True)
        await client.client.close()


@pytest.mark.skipif(not hasattr(os, "fork") or os.geteuid() != 0, reason="only root can become another user")
async def test_another_user_cannot_connect(world: Any, tmp_path: Path) -> None:
    w = world()
    async with shared(w):
        script = (
            "import os, socket, sys\n"
            "s = socket.socket(socket.AF_UNIX)\n"
            "if sys.argv[2] == 'outside':\n"
            "    os.setuid(65534)\n"
            "try:\n"
            "    os.chdir(os.path.dirname(sys.argv[1]))\n"
            "    if sys.argv[2] == 'inside':\n"
            "        os.setuid(65534)\n"
            "    s.connect(os.path.basename(sys.argv[1]))\n"
            '    s.send(b\'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"client":"x"}}\\n\')\n'
            "    print(len(s.recv(1000)))\n"
            "except (PermissionError, ConnectionError) as error:\n"
            "    print(type(error).__name__)\n"
        )

        async def tried(how: str) -> bytes:
            if how == "let in by the modes":  # whoever opens the folder by mistake is still alone
                for path in (Path(w.entry.socket), Path(w.entry.socket).parent):
                    path.chmod(0o777)
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                script,
                w.entry.socket,
                "inside" if "let in" in how else how,
                stdout=asyncio.subprocess.PIPE,
            )
            return (await process.communicate())[0].strip()

        assert await tried("outside") == b"PermissionError"
        assert await tried("inside") == b"PermissionError"
        assert await tried("let in by the modes") in (b"0", b"ConnectionResetError", b"BrokenPipeError")
        client = await connected(w)
        await client.client.close()


async def test_a_path_that_is_too_long_for_a_socket(
    world: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAP_AGENT_STATE_DIR", str(tmp_path / ("long" * 30)))
    w = world()
    async with shared(w):
        client = await connected(w)
        await client.client.close()
        place = Path(w.entry.socket).parent
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert not place.exists()


async def test_a_port_with_a_token_where_there_are_no_unix_sockets(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    w = world()
    with monkeypatch.context() as patched:
        patched.delattr(socket, "AF_UNIX")
        async with shared(w):
            assert w.entry.socket is None
            client = await connected(w)
            await client.ask("status")
            await client.client.close()
            reader, writer = await asyncio.open_connection(*w.entry.address[:2])
            for given in (b"", b',"token":"guess"', b',"token":"\\ud800"'):
                writer.write(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"client":"x"%s}}\n' % given)
                assert json.loads(await reader.readline())["error"]["code"] == jsonrpc.NOT_INITIALIZED
            writer.close()


def test_the_folder_is_private_or_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "open"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    assert stat.S_IMODE(private_dir(folder).stat().st_mode) == 0o700
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(Exception, match="not a folder of your own"):
        private_dir(tmp_path / "link")
    monkeypatch.delenv("DAP_AGENT_STATE_DIR")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert runtime_dir() == tmp_path / "dap-agent"


def test_workspaces_are_found_from_above_and_below(tmp_path: Path) -> None:
    def entry(*folders: str) -> registry.Entry:
        return registry.Entry("a", "run", 1, tuple(str(tmp_path / one) for one in folders), "x", "s", None, "0", "m")

    assert entry("a/b").within([tmp_path / "a"])
    assert entry("a").within([tmp_path / "a/b"])
    assert entry("c", "a").within([tmp_path / "z", tmp_path / "a"])
    assert not entry("ab").within([tmp_path / "a"])


def test_entries_of_others_and_of_the_dead(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(runtime_dir() / "dead.sock"))
    made = registry.Entry(
        "dead", "run", 1, (str(tmp_path),), "x", str(runtime_dir() / "dead.sock"), None, "0", registry.machine()
    )
    registry.write(made)
    (registry.folder() / "elsewhere.json").write_text(
        json.dumps({**made.to_json(), "id": "elsewhere", "machine": "another"})
    )
    for name, text in (
        ("a", "{"),
        ("b", "[]"),
        ("c", '{"protocol": 2}'),
        ("d", json.dumps({**made.to_json(), "protocol": 9})),
    ):
        (registry.folder() / f"{name}.json").write_text(text)
    halves = [registry.folder() / "half.new", runtime_dir() / "half.sock", runtime_dir() / "young.sock"]
    for path in halves:
        path.touch()
    for path in halves[:2]:
        os.utime(path, (0, 0))
    assert registry.entries() == [made]
    assert registry.find() == []
    assert not Path(made.socket or "").exists()
    assert (registry.folder() / "elsewhere.json").exists()
    assert [path.exists() for path in halves] == [False, False, True]


# The parser


@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(1, 30))
def test_lines_do_not_depend_on_the_pieces(lines: list[bytes], size: int) -> None:
    wanted = [line.replace(b"\n", b"") for line in lines]
    stream = b"".join(line + b"\n" for line in wanted)
    reader, found = jsonrpc.Lines(100), []
    for i in range(0, len(stream), size):
        found += reader.feed(stream[i : i + size])
    assert found == wanted


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "code", "message", "x"])
MESSAGES = st.dictionaries(KEYS, VALUES | st.just("2.0") | st.just({"code": 1, "message": "m"}), max_size=6)


@given(st.binary(max_size=200) | MESSAGES.map(lambda message: json.dumps(message).encode()))
def test_any_line_is_a_message_or_an_error_of_the_protocol(line: bytes) -> None:
    try:
        message = jsonrpc.read(line)
    except jsonrpc.RpcError as error:
        told = json.loads(jsonrpc.error(error))
        assert told["error"]["code"] in (jsonrpc.PARSE_ERROR, jsonrpc.INVALID_REQUEST, jsonrpc.INVALID_PARAMS)
        return
    if isinstance(message, jsonrpc.Call):
        again = (
            jsonrpc.request(message.id, message.method, message.params)
            if message.id is not None
            else (jsonrpc.notification(message.method, message.params))
        )
        assert jsonrpc.read(again.removesuffix(b"\n")) == message


def test_half_a_surrogate_pair_and_a_line_that_is_too_long() -> None:
    line = jsonrpc.notification("output", {"text": "\ud800 \n"})
    assert line.count(b"\n") == 1
    message = jsonrpc.read(line)
    assert isinstance(message, jsonrpc.Call)
    assert message.params == {"text": "\ud800 \n"}
    reader = jsonrpc.Lines(10)
    with pytest.raises(jsonrpc.RpcError, match="longer than 10 bytes"):
        reader.feed(b"x" * 11)
