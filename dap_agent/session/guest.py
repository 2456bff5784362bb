"""We, in a debug session that an editor drives: we look at its stops and leave no trace in what it sees."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Protocol

from dap_agent.errors import DapAgentError
from dap_agent.proxy.server import ProxyServer, RequestFailed
from dap_agent.session.api import InspectionError, ProgramResumed, StoppedProgram
from dap_agent.session.asker import ENDED, RESUMED, Asker
from dap_agent.session.redaction import mask_lines
from dap_agent.session.reload import Changed, ReloadReport, reload
from dap_agent.session.snapshot import Snapshot
from dap_agent.session.stopped import LiveStop, PostMortem
from dap_agent.wire.messages import Message, body_of

QUIET = 0.1
"""Seconds without a request of the client after which its questions about a stop count as answered."""
PATIENCE = 2.0
"""Seconds after which a client that never stops asking is waited for no longer."""

_OFF = 'The agent is switched off in this session ("dapAgent": false), or its debug adapter is not debugpy.'
_NO_DEBUG = "The program was started without debugging (noDebug), so it cannot be looked into. Start it with debugging."
_STARTING = "The program has not been started yet."
_RUNNING = (
    "The program is running: it can be looked into when it has stopped, at an exception, at a breakpoint, or because "
    "you pause it."
)
_NOTHING_LEFT = "The program has ended, and no exception has stopped it before: there is nothing to look at."

_EVENTS = frozenset({"process", "stopped", "dapAgentCrash", "terminated", "exited", "continued"})

State = Literal["starting", "running", "stopped", "ended"]


class GuestListener(Protocol):
    """Is told of the program, on the event loop and in order."""

    def stopped(self, snapshot: Snapshot, thread_id: int) -> None:
        """An exception has stopped the program, and its picture was taken.

        Args:
            snapshot: the picture.
            thread_id: DAP id of the thread.
        """

    def resumed(self) -> None:
        """A stop is over, whatever had made it, and whether or not a picture was taken of it."""

    def ended(self) -> None:
        """The program has ended, or the session."""


class Guest:
    """One session of an editor.

    Args:
        proxy: the session, before its client is served.
    """

    def __init__(self, proxy: ProxyServer) -> None:
        self._proxy = proxy
        self._asker = Asker(proxy, installs=True)
        self._last: Snapshot | None = None
        self._begun = False
        self._ended = False
        self._epoch = proxy.epoch
        self._stops: dict[int, str] = {}  # of this epoch: thread -> reason, the newest last
        self._looks: dict[int, asyncio.Task[LiveStop]] = {}  # of this epoch, by thread
        self._old: set[asyncio.Task[LiveStop]] = set()  # on their way to the end
        self._wanted = asyncio.Event()  # somebody waits for a look
        self._listeners: list[GuestListener] = []
        self._loop = asyncio.get_running_loop()
        self._unhook = (proxy.subscribe(self._event, _EVENTS), proxy.watch(self._follow))
        self._watching = self._loop.create_task(self._watch_end())

    # What may be asked

    @property
    def state(self) -> State:
        """What the program does; `ended` also when the session has."""
        if self._ended or self._proxy.gone is not None:
            return "ended"
        if self._proxy.stopped:
            return "stopped"
        return "running" if self._begun else "starting"

    @property
    def last(self) -> Snapshot | None:
        """The picture of the newest exception stop, or of a crash at which the client has not stopped.

        It stays when the stop is over, the program's end included.
        """
        return self._last

    @property
    def started(self) -> Mapping[str, Any]:
        """What the client has asked for by `launch` or `attach`, without our key; empty before that."""
        return self._proxy.started

    def listen(self, listener: GuestListener) -> Callable[[], None]:
        """Tell *listener* of the program.

        Returns:
            A function that ends it.
        """
        self._listeners.append(listener)

        def unlisten() -> None:
            with contextlib.suppress(ValueError):
                self._listeners.remove(listener)

        return unlisten

    async def program(self) -> StoppedProgram:
        """The program as it stands: at an exception with the picture taken by itself, at another stop with a new one.

        After its end: what the picture of the last exception holds.

        Raises:
            DapAgentError: there is nothing to look at; the message says why and what to do.
        """
        state = self.state
        if not self._proxy.active:
            raise DapAgentError(_OFF)
        if state == "ended":
            if self._last is None:
                raise DapAgentError(_NO_DEBUG if self._no_debug else _NOTHING_LEFT)
            return PostMortem(self._last)
        if self._no_debug:
            raise DapAgentError(_NO_DEBUG)
        if state != "stopped" or not self._stops:
            raise DapAgentError(_STARTING if state == "starting" else _RUNNING)
        return await self._live()

    async def frame_number(self, frame_id: int | None) -> int:
        """Which frame of the program's snapshot a client's frame is.

        Args:
            frame_id: as the client has it from `stackTrace`, in this stop; None: the innermost frame is meant.

        Raises:
            DapAgentError: none of them, or the program does not stand; the message says so.
        """
        if frame_id is None:
            return 0
        program = await self.program()
        if not isinstance(program, LiveStop):
            return 0
        arguments = {"thread": program.thread_id, "frame": frame_id}
        number: int = await self._asker.ask("frame_number", arguments, epoch=self._epoch)
        return number

    @property
    def alive(self) -> bool:
        """Whether there is a program that can be given new code: it runs or stands, and we can look into it."""
        return self.state in ("running", "stopped") and self._proxy.active and not self._no_debug

    async def reload(self, changes: Iterable[Changed]) -> ReloadReport:
        """Put changed files into the live program, whether it stands or runs.

        Raises:
            DapAgentError: it is not alive, or does not answer.
        """
        if not self.alive:
            raise DapAgentError("There is no live program to put the change into.")
        return await reload(self._asker, changes)

    async def restart(self) -> None:
        """Start the program again, as the client's request `restart` does.

        Raises:
            RequestFailed: with the reason.
        """
        await self._proxy.restart()

    async def resume(self) -> None:
        """Let the program go on; the client is told by the adapter.

        Raises:
            DapAgentError: it does not stand.
            RequestFailed: the adapter could not.
        """
        if self.state != "stopped" or not self._stops:
            raise DapAgentError("The program is not stopped, so there is nothing to resume.")
        await self._proxy.request("continue", {"threadId": next(reversed(self._stops))})

    async def close(self) -> None:
        """Look no more, and leave nothing behind."""
        for unhook in self._unhook:
            unhook()
        self._listeners.clear()
        tasks = {self._watching, *self._looks.values(), *self._old}
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    # What happens

    @property
    def _no_debug(self) -> bool:
        return self.started.get("noDebug") is True

    def _event(self, message: Message) -> None:
        self._follow()
        match message["event"]:
            case "process":
                self._begun, self._ended = True, False
            case "stopped":
                self._stopped(body_of(message))
            case "dapAgentCrash":  # the client does not stop at it (proxy/stops.py)
                picture = body_of(message).get("snapshot")
                self._last = self._with_output(picture) if isinstance(picture, dict) else self._last
            case "terminated" | "exited":
                self._end()

    def _stopped(self, body: Mapping[str, Any]) -> None:
        thread = body.get("threadId")
        if type(thread) is not int:
            return
        reason = str(body.get("reason"))
        self._begun = True
        self._stops.pop(thread, None)
        self._stops[thread] = reason
        self._forget(thread)
        if reason == "exception" and self._proxy.active and not self._no_debug:
            self._look(thread, at_once=False)

    def _follow(self) -> None:
        """Find out whether the stop is over: the adapter's answer to `continue` tells it without an event."""
        if self._epoch == self._proxy.epoch:
            return
        self._epoch = self._proxy.epoch
        over = bool(self._stops)
        self._stops.clear()
        for thread in list(self._looks):
            self._forget(thread)
        if over:
            self._tell(lambda listener: listener.resumed())

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self._tell(lambda listener: listener.ended())

    async def _watch_end(self) -> None:
        await self._proxy.wait_closed()
        self._follow()
        self._end()

    def _tell(self, what: Callable[[GuestListener], None]) -> None:
        for listener in tuple(self._listeners):
            try:
                what(listener)
            except Exception as error:  # noqa: BLE001 - the others must hear of it, and the session go on
                self._loop.call_exception_handler({"message": "in a listener to a program", "exception": error})

    # Looking

    async def _live(self) -> StoppedProgram:
        thread = next(reversed(self._stops))
        self._wanted.set()
        look = self._looks.get(thread)
        if look is None or (look.done() and (look.cancelled() or look.exception() is not None)):
            look = self._look(thread, at_once=True)
        await asyncio.wait({look})
        if look.cancelled():
            raise ProgramResumed(ENDED if self._ended else RESUMED)
        return look.result()

    def _look(self, thread: int, *, at_once: bool) -> "asyncio.Task[LiveStop]":
        self._wanted.clear()
        task = self._looks[thread] = self._loop.create_task(self._take(thread, self._epoch, at_once))
        task.add_done_callback(self._looked)
        return task

    def _looked(self, task: "asyncio.Task[LiveStop]") -> None:
        self._old.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, ProgramResumed | InspectionError | RequestFailed):
            self._loop.call_exception_handler({"message": "at a stop", "exception": error})

    def _forget(self, thread: int) -> None:
        task = self._looks.pop(thread, None)
        if task is not None and not task.done():
            self._old.add(task)
            task.cancel()

    async def _take(self, thread: int, epoch: int, at_once: bool) -> LiveStop:
        if not at_once:
            await self._let_the_client_ask()
        answer = await self._asker.ask("halted", {"thread": thread}, epoch=epoch)
        snapshot = self._with_output(answer["snapshot"])
        live = LiveStop(self._asker, thread, snapshot, halted=True, frame_id=answer["frame"])
        if self._stops.get(thread) == "exception" and snapshot.exception is not None:
            self._last = snapshot
            self._tell(lambda listener: listener.stopped(snapshot, thread))
        return live

    def _with_output(self, picture: dict[str, Any]) -> Snapshot:
        """In an editor's session the program's output comes by the adapter; the debuggee side has not kept it."""
        if not any(picture["output"].values()):
            lines = self._proxy.printed.lines()
            picture = {**picture, "output": {name: mask_lines(kept, code=False) for name, kept in lines.items()}}
        return Snapshot(picture)

    async def _let_the_client_ask(self) -> None:
        """Wait until its questions are answered; not if somebody wants to know already, and not for ever."""
        waiting = {asyncio.ensure_future(self._proxy.quiet(QUIET)), asyncio.ensure_future(self._wanted.wait())}
        try:
            await asyncio.wait(waiting, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waiting:
                one.cancel()
            await asyncio.wait(waiting)
