"""A session made known to others: its socket, its registry entry, and what of it outlives it.

A failure in here is told in the session's console and never disturbs the session.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dap_agent import __version__
from dap_agent.control import api, failure, kept, registry, views
from dap_agent.control.assistant import Assistant
from dap_agent.control.events import Throttle
from dap_agent.control.server import ControlServer
from dap_agent.control.toolcalls import ToolCalls
from dap_agent.control.work import Listener, Work
from dap_agent.errors import DapAgentError
from dap_agent.session.rendering import clean, clip, one_line

if TYPE_CHECKING:
    from dap_agent.agent.progress import Progress
    from dap_agent.session.snapshot import Snapshot

_INTERVAL = 0.1  # seconds between two pieces of a model's text
_SHOWN = ("turn", "tool", "note", "verdict", "model-retry")


class Sharing(Listener):
    """See the module.

    Args:
        assistant: of the session.
        kind: what has begun the session: `adapter`, `run` or `attach`.
        complain: told in a sentence why the session is not shared.
    """

    def __init__(self, assistant: Assistant, kind: str, complain: Callable[[str], None]) -> None:
        self.assistant = assistant
        self.id = registry.new_id()
        self.stop: dict[str, Any] | None = None
        self.tools = ToolCalls(assistant)
        self._kind = kind
        self._complain_to = complain
        self._complained: set[str] = set()
        self._server = ControlServer(lambda name, params: api.answer(self, name, params), self._greeting)
        self._entry: registry.Entry | None = None
        self._message = ""
        self._about: dict[str, Work] = {}  # the newest investigations of the newest stop, by task
        self._snapshot: Snapshot | None = None
        self._pieces: list[str] = []
        self._text = Throttle(_INTERVAL, self._tell_text)
        self._tasks: set[asyncio.Task[None]] = set()
        self._disk = asyncio.Lock()  # entry and kept file are written in order
        assistant.listen(self)
        self._unlisten = assistant.guest.listen(_Program(self))

    def open(self, workspace: Sequence[Path], program: str) -> None:
        """Begin to listen, and tell the registry; nothing is raised.

        Args:
            workspace: folders that the session is about, the first is the root.
            program: what is debugged, for people.
        """
        self._start(self._open(workspace, program))

    async def _open(self, workspace: Sequence[Path], program: str) -> None:
        try:
            await self._server.open(self.id)
            path = self._server.path
            self._entry = registry.Entry(
                id=self.id,
                kind=self._kind,
                pid=os.getpid(),
                workspace=tuple(str(folder) for folder in workspace),
                program=clip(one_line(program), 300),
                socket=str(path) if path is not None else None,
                address=self._server.address,
                version=__version__,
                machine=registry.machine(),
            )
            await asyncio.to_thread(registry.sweep)
            await self._write_entry()
        except DapAgentError as error:
            self.complain(f"Editors and tools cannot find this session: {error.message}")
        except OSError as error:
            self.complain(f"Editors and tools cannot find this session: {error}.")

    async def close(self) -> None:
        """The session is over: tell the clients, keep what is to be kept, leave nothing else behind."""
        self._unlisten()
        self._text.drop()
        while self._tasks:
            await asyncio.wait(self._tasks)
        self._server.tell("ended", {"session": self.id})
        await self._server.close()
        if self._entry is not None:
            await asyncio.to_thread(registry.remove, self._entry)

    def say(self, text: str, category: str) -> None:
        """What the session's console has just shown."""
        self._server.tell("output", {"category": category, "text": text})

    # What clients ask

    async def status(self) -> dict[str, Any]:
        """See `api.METHODS`."""
        status = await self.assistant.status()
        proposed = self.assistant.proposed
        if status["proposal"] is not None and proposed is not None and proposed.outcome is not None:
            status["proposal"]["proved"] = proposed.outcome.proved
        return {
            **status,
            "working": views.working(self.assistant.working, self._message),
            "stop": self.stop,
            "session": self.id,
            "workspace": list(self._entry.workspace) if self._entry is not None else [],
        }

    async def report(self) -> str:
        """See `api.METHODS`.

        Raises:
            DapAgentError: there was no exception.
        """
        return await asyncio.to_thread(self._report, self.assistant.snapshot())

    async def proposal(self) -> dict[str, Any] | None:
        """See `api.METHODS`."""
        work = self.assistant.proposed
        return await asyncio.to_thread(views.proposal, work) if work is not None else None

    def _report(self, snapshot: "Snapshot") -> str:
        from dap_agent.control.markdown import report

        fix, asked = self._about.get("autodebug"), self._about.get("ask")
        outcome = asked.outcome if asked is not None else None
        explanation = outcome.explanation if outcome is not None and outcome.status == "answered" else ""
        return report(snapshot, fix, explanation=explanation)

    async def _greeting(self) -> Mapping[str, Any]:
        status = await self.status()
        return {"protocol": registry.PROTOCOL, "version": __version__, "kind": self._kind, "session": status}

    # What happens

    def stopped(self, snapshot: "Snapshot", thread_id: int) -> None:
        """See `Listener`."""
        self._about = {}
        self._snapshot = snapshot
        self.stop = views.stop(snapshot, thread_id=thread_id, current=True)
        self._server.tell("snapshot", self.stop)
        self._changed()
        self._start(self._keep(snapshot, None))

    def resumed(self) -> None:
        """The program goes on."""
        if self.stop is not None:
            self.stop = {**self.stop, "current": False}
        self._changed()

    def over(self) -> None:
        """The program has ended; its last exception may not have been a stop."""
        last = self.assistant.guest.last
        if last is not None and (self._snapshot is None or last.data is not self._snapshot.data):
            self._about = {}
            self._snapshot = last
            self.stop = views.stop(last, thread_id=None, current=False)
            self._start(self._keep(last, None))
        self.resumed()

    def began(self, work: Work) -> None:
        """See `Listener`."""
        self._message = one_line(work.snapshot.headline)[:100]
        self._progress(work, "begin", work.question)
        self._changed()

    def progress(self, work: Work, event: "Progress") -> None:
        """See `Listener`."""
        if event.kind == "text":
            self._pieces.append(event.text)
            self._text.soon()
        elif event.kind in _SHOWN:
            self._text.now()
            self._message = clip(one_line(event.text), 100)
            self._progress(work, "retry" if event.kind == "model-retry" else event.kind, event.text)

    def ended(self, work: Work) -> None:
        """See `Listener`."""
        self._text.now()
        if self._snapshot is not None and work.snapshot.data is self._snapshot.data:
            self._about[work.task] = work
        outcome = work.outcome
        said = work.failure or work.title or (outcome.explanation if outcome is not None else "")
        self._start(self._tell_end(work, said))

    def changed(self) -> None:
        """See `Listener`."""
        self._changed()
        fix = self._about.get("autodebug")
        if fix is not None and fix is self.assistant.proposed and self._snapshot is not None:
            self._start(self._keep(self._snapshot, fix))

    async def _tell_end(self, work: Work, said: str) -> None:
        if work.proposes:
            self._server.tell("proposal", await asyncio.to_thread(views.proposal, work))
        self._server.tell("state", await self.status())
        self._progress(work, "end", said, status=work.status)
        if self._about.get(work.task) is work and self._snapshot is not None and work.task == "autodebug":
            await self._keep(self._snapshot, work)

    def _progress(self, work: Work, kind: str, text: str, **more: Any) -> None:
        self._server.tell("progress", {"id": work.id, "task": work.task, "kind": kind, "text": clean(text), **more})

    def _tell_text(self) -> None:
        text, self._pieces = "".join(self._pieces), []
        work = self.assistant.working
        if text and work is not None:
            self._progress(work, "text", text)

    def _changed(self) -> None:
        self._start(self._tell_state())

    async def _tell_state(self) -> None:
        self._server.tell("state", await self.status())

    async def _keep(self, snapshot: "Snapshot", work: Work | None) -> None:
        """Keep the newest, and let the registry know where the program has turned out to be."""
        stop = self.stop
        assert stop is not None, "there is a stop"
        async with self._disk:
            root = work.workspace.root if work is not None else await self._find_root(snapshot)
            await asyncio.to_thread(kept.keep, root, self.id, snapshot, stop, work)
            if self._entry is not None and str(root) not in self._entry.workspace:
                self._entry = registry.with_workspace(self._entry, [str(root)])
                await self._write_entry()

    async def _find_root(self, snapshot: "Snapshot") -> Path:
        configuration = await self.assistant.configuration()
        if configuration.workspace:
            return configuration.workspace[0]
        from dap_agent.agent.stopping import root_of_attached

        return await asyncio.to_thread(root_of_attached, snapshot)

    async def _write_entry(self) -> None:
        if self._entry is not None:
            await asyncio.to_thread(registry.write, self._entry)

    def complain(self, sentence: str) -> None:
        """Tell the session's user what is wrong. Once: a folder that cannot be written meets every stop."""
        if sentence not in self._complained:
            self._complained.add(sentence)
            self._complain_to(sentence)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except (DapAgentError, OSError) as error:
            self.complain(f"Other tools are not told of this: {error}")
        except Exception as error:  # noqa: BLE001 - a bug of ours; the debug session has to go on
            self.complain(failure.describe(error))


class _Program:
    """Hears of the program (`session.guest.GuestListener`)."""

    def __init__(self, sharing: Sharing) -> None:
        self._sharing = sharing

    def stopped(self, snapshot: "Snapshot", thread_id: int) -> None:
        """The assistant tells of it."""

    def resumed(self) -> None:
        """A stop is over."""
        self._sharing.resumed()

    def ended(self) -> None:
        """The program has ended."""
        self._sharing.over()
