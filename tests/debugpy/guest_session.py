"""An editor before a real debugpy through a hub in this process, with a guest in each of its sessions."""

import asyncio
import contextlib
import json
import socket
from pathlib import Path

import jsonschema

from dap_agent.proxy.hub import Hub
from dap_agent.session.guest import Guest

from ..proxy.editor_double import VSCODE, EditorDouble
from ..proxy.fakes import DEBUGPY, run

__all__ = ["Book", "GuestEditor", "functions", "names", "run", "session"]

SCHEMA = jsonschema.Draft202012Validator(
    json.loads((Path(__file__).parents[2] / "schemas" / "snapshot.schema.json").read_text(encoding="utf-8"))
)


class Book:
    """A listener that writes down what it is told."""

    def __init__(self, guest):
        self.told = []
        self.snapshots = []
        self._changed = asyncio.Event()
        guest.listen(self)

    def stopped(self, snapshot, thread_id):
        SCHEMA.validate(snapshot.data)
        self.snapshots.append(snapshot)
        self._note(("stopped", snapshot.headline, thread_id))

    def resumed(self):
        self._note("resumed")

    def ended(self):
        self._note("ended")

    def _note(self, entry):
        self.told.append(entry)
        self._changed.set()

    async def until(self, count, *, timeout=30):
        """*count* entries are there."""

        async def wait():
            while len(self.told) < count:
                self._changed.clear()
                await self._changed.wait()

        await asyncio.wait_for(wait(), timeout)
        return self.told


class GuestEditor(EditorDouble):
    """An editor of which a test knows the guests."""

    async def launch(self, program, python=None, **more):
        given = {"program": str(program), "console": "internalConsole", **more}
        if python is not None:
            given["python"] = [str(python)]
        return await self.start("launch", given)

    books = ()  # of the session of the test

    async def to_end(self):
        """As an editor, but an exception is looked at before the program goes on."""
        while (found := await self.event("stopped", "terminated"))["event"] == "stopped":
            body = found["body"]
            await self.stack(body["threadId"])
            if body["reason"] == "exception":
                while not any(book.told and book.told[-1][0] == "stopped" for book in GuestEditor.books):
                    await asyncio.sleep(0.01)  # polling: which of the books it will be is not known
            await self.go_on(body["threadId"])
        await self.leave()

    async def stop(self):
        """The next stop, asked about as an editor does; (event's body, stack frames)."""
        body = (await self.event("stopped", timeout=30))["body"]
        return body, await self.stack(body["threadId"])

    async def stack(self, thread):
        return (await self.ask("stackTrace", {"threadId": thread}))["body"]["stackFrames"]

    async def go_on(self, thread):
        return await self.ask("continue", {"threadId": thread})


@contextlib.asynccontextmanager
async def session(*, command=DEBUGPY, initialize=VSCODE, address=None, side=None, **options):
    """The editor; `guests` and `books` of it are those of the sessions, the root's first.

    With `side=payload` our part in the program is there from its start on, as in `dap-agent adapter`.
    """
    ours, theirs = socket.socketpair()
    guests, books = [], []

    def companion(server, _):
        guests.append(Guest(server))
        books.append(Book(guests[-1]))
        return guests[-1]

    hub = Hub(command=command if address is None else (), address=address, side=side, on_session=companion)
    serving = asyncio.get_running_loop().create_task(hub.serve_socket(theirs))
    client = GuestEditor(*await asyncio.open_connection(sock=ours), initialize=initialize, **options)
    client.guests, client.books = guests, books
    GuestEditor.books = books
    try:
        while not guests:
            await asyncio.sleep(0)  # the adapter is being started
        client.guest, client.book = guests[0], books[0]
        yield client
    finally:
        await client.close()
        await asyncio.wait_for(serving, 20)


def functions(snapshot):
    """Names of the frames, innermost first, without their classes."""
    return [frame["function"].rpartition(".")[2] for frame in snapshot.frames]


def names(frames):
    """Of the frames that a client was shown."""
    return [frame["name"].removesuffix(" (Current frame)") for frame in frames]
