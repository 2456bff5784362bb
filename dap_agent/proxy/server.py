"""Carries out the effects of `core` over pipes and sockets, which are opened in `links`, `process` and `hub`, too.

Built on asyncio protocols, one write per batch of messages read, since that is what keeps a relay cheap.
"""

import asyncio
import contextlib
import os
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping, Sequence
from itertools import chain
from typing import IO, Any

from dap_agent.errors import DapAgentError
from dap_agent.proxy.asking import OwnPart, RequestFailed
from dap_agent.proxy.attention import Attention
from dap_agent.proxy.core import Proxy
from dap_agent.proxy.editor import Editor
from dap_agent.proxy.effects import (
    Abandon,
    Answer,
    Effect,
    Fail,
    ForAgent,
    ForHub,
    HangUp,
    Later,
    Note,
    Publish,
    Respawn,
    Serve,
    ToAdapter,
    ToClient,
)
from dap_agent.proxy.links import Link, WriteSide
from dap_agent.proxy.patience import within
from dap_agent.proxy.process import STEP, AdapterFailed, AdapterProcess, how_it_ended, reach
from dap_agent.wire.framing import FramingError
from dap_agent.wire.messages import Message, body_of
from dap_agent.wire.messages import event as event_message

__all__ = ["AdapterFailed", "ProxyServer", "RequestFailed"]

_STDERR_LINES = 50
_EXIT_GRACE = 2.0  # seconds a client has to leave once its adapter is gone


class ProxyServer:
    """A debug adapter, our own requests to it, and (if `serve_client` or `serve_pipes` is called) a client before it.

    Made by `spawn` or `connect`; ended by `close`. Belongs to the event loop that it was made in.

    Args:
        core: the session, if policies are hung into it.
        editor: those policies; the session is for a client then: what the adapter sends waits for it.

    Attributes:
        for_hub: called with those effects that are about children.
        printed: what the program has printed last.
        for_agent: called with each request of the client that is ours; whoever sets it answers by `answer_client`.
    """

    def __init__(self, core: Proxy | None = None, editor: Editor | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._core = core or Proxy()
        self._editor = editor
        self.for_hub: Callable[[ForHub], None] = lambda effect: None
        self.for_agent: Callable[[ForAgent], None] = self._nobody
        self._early: list[tuple[list[bytes], FramingError | None]] | None = None if editor is None else []
        self._command: tuple[Sequence[str], Mapping[str, str] | None, str | os.PathLike[str] | None] = ((), None, None)
        self._respawning: asyncio.Task[None] | None = None
        self._over: asyncio.Future[None] = self._loop.create_future()
        self._adapter = self._adapter_link()
        self._client: Link | None = None
        self._process: AdapterProcess | None = None
        self._name = "The debug adapter"
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        self._attention = Attention(self._core)
        self._own = OwnPart(self._core, self._apply, self._stderr.append)
        self.printed = self._own.printed
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing: asyncio.Task[None] | None = None
        self._pressed = False  # the client reads slower than we write

    def _adapter_link(self) -> Link:
        link = Link(lambda bodies, error: self._from_adapter(link, bodies, error))
        link.closed.add_done_callback(lambda _: self._adapter_lost(link))
        return link

    @classmethod
    async def spawn(
        cls,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        core: Proxy | None = None,
        editor: Editor | None = None,
    ) -> "ProxyServer":
        """Start *command* and speak with it over its standard input and output.

        It gets a session of its own, so that a terminal's Ctrl-C does not reach it. It ends when we do, whatever ends
        us, as its standard input ends then (debugpy.adapter heeds that).

        Args:
            command: the program and its arguments.
            env: its whole environment; None: ours.
            cwd: its working directory; None: ours.
            core, editor: see the class.

        Raises:
            AdapterFailed: it cannot be started.
        """
        self = cls(core, editor)
        self._command = (command, env, cwd)
        await self._spawn()
        return self

    async def _spawn(self) -> None:
        self._process = await AdapterProcess.start(*self._command, self._adapter, self._stderr)

    @classmethod
    async def connect(
        cls,
        host: str,
        port: int,
        *,
        timeout: float = 10,
        retry: bool = False,
        core: Proxy | None = None,
        editor: Editor | None = None,
    ) -> "ProxyServer":
        """Speak with an adapter that listens on *host*:*port*.

        Args:
            timeout: seconds that connecting may take.
            retry: whether to try again until then if nobody listens there yet.
            core, editor: see the class.

        Raises:
            AdapterFailed: it cannot be reached in time.
        """
        self = cls(core, editor)
        self._name = f"The debug adapter at {host}:{port}"
        transport = await reach(host, port, self._adapter, timeout=timeout, retry=retry)
        _no_delay(transport.get_extra_info("socket"))
        return self

    @classmethod
    def failed(cls, text: str, core: Proxy, editor: Editor) -> "ProxyServer":
        """A session without an adapter: whatever its client asks is answered with *text*, for a short while."""
        self = cls(core, editor)
        self._apply(core.adapter_gone(text))
        self._adapter.closed.set_result(None)
        return self

    # What may be asked

    @property
    def capabilities(self) -> dict[str, Any]:
        """What the adapter has announced so far (the specification's `Capabilities`)."""
        return dict(self._core.capabilities)

    @property
    def epoch(self) -> int:
        """The stop epoch: changes at every stop and every resume; ids read in one epoch are worthless in any other."""
        return self._core.epoch

    @property
    def stopped(self) -> bool:
        """Whether the debuggee is paused."""
        return self._core.stopped

    @property
    def active(self) -> bool:
        """Whether we may look into the debuggee: not with `"dapAgent": false`, and not before the adapter is known."""
        return self._editor is None or self._editor.active

    @property
    def terminated(self) -> bool:
        """Whether the adapter has said that the debuggee is gone."""
        return self._core.over

    @property
    def gone(self) -> str | None:
        """None while the adapter can be asked, else the sentence that says how it ended."""
        return self._core.gone

    @property
    def last_words(self) -> list[str]:
        """The last lines (at most 50) of the adapter's standard error, and what was odd in what it sent."""
        return list(self._stderr)

    async def request(
        self,
        command: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float = 30.0,
        epoch: int | None = None,
    ) -> dict[str, Any]:
        """Ask the adapter; the client sees nothing of it.

        Args:
            arguments: the request's `arguments`.
            timeout: seconds until it counts as failed; a later answer is dropped.
            epoch: the stop that it is about; it fails at once when that stop is over.

        Returns:
            The body of the response; empty if it has none.

        Raises:
            RequestFailed: with the reason.
        """
        try:
            token, effects = self._core.ask(command, arguments, epoch=epoch)
        except (TypeError, ValueError, RecursionError) as error:
            text = f"The arguments of '{command}' cannot be written as JSON: {error}."
            raise RequestFailed(command, "invalid", text) from error
        with self._own.waiting(command, token) as answer:
            self._apply(effects)
            try:
                return body_of(await within(answer, timeout))
            except asyncio.TimeoutError:
                text = f"{self._name} did not answer '{command}' within {timeout:g} s."
                raise RequestFailed(command, "timeout", text) from None

    def post(self, command: str, arguments: Mapping[str, Any] | None = None) -> None:
        """Ask the adapter and do not wait for the answer; nothing if it is gone."""
        if self._core.gone is None:
            self._apply([self._core.tell_adapter(command, arguments, lambda _: [])])

    def watch(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call *callback*, on the loop, when the epoch has changed: also where no event tells of it.

        Listeners to the event that has changed it are told before.

        Returns:
            A function that ends it.
        """
        return self._attention.watch(callback)

    def before_resume(self, callback: Callable[[], Mapping[str, Any] | None]) -> Callable[[], None]:
        """Call *callback* when the debuggee is about to be resumed or left, whoever wants that.

        Args:
            callback: may give the arguments of an `evaluate`, which the adapter gets before.

        Returns:
            A function that ends it.
        """
        self._core.before_resume.append(callback)

        def undo() -> None:
            with contextlib.suppress(ValueError):
                self._core.before_resume.remove(callback)

        return undo

    async def quiet(self, seconds: float) -> None:
        """Return when the client has asked nothing for *seconds* and waits for no answer of the adapter."""
        await self._attention.quiet(seconds)

    def subscribe(
        self, callback: Callable[[Message], None], events: Container[str] | None = None
    ) -> Callable[[], None]:
        """Call *callback* with every event from the adapter, in order, on the loop; it must not change the message.

        An event that came with or before a response is told before whoever awaits the response goes on. So subscribe
        first, then ask.

        Args:
            events: the names of those that are wanted; None: all. What nobody wants is passed on unread.

        Returns:
            A function that ends it.
        """
        return self._own.subscribe(callback, events)

    def handle(self, command: str, handler: Callable[[Message], Awaitable[Mapping[str, Any] | None]]) -> None:
        """Answer the adapter's *command* requests (`runInTerminal`, `startDebugging`) here instead of by the client.

        Args:
            handler: gets the request, returns the body of the response; an exception is answered with its message.
        """
        self._own.handle(command, handler)

    # What the client asks of us

    @property
    def client(self) -> Mapping[str, Any]:
        """The arguments of the client's `initialize` (`supportsProgressReporting`, `clientID`); empty before that."""
        return self._editor.client if self._editor is not None else {}

    @property
    def started(self) -> Mapping[str, Any]:
        """The arguments of the client's `launch` or `attach`, without the key `dapAgent`; empty before that."""
        return self._editor.begun if self._editor is not None else {}

    def answer_client(
        self, seq: int, command: str, body: Mapping[str, Any] | None = None, *, error: str | None = None
    ) -> None:
        """Answer what `for_agent` was called with; nothing if the client has left or was answered already.

        Args:
            seq, command: of the request.
            body: of the response.
            error: the sentence that says why there is none.
        """
        try:
            effects = self._core.answer_client(seq, command, body, error=error)
        except (TypeError, ValueError, RecursionError) as failed:
            text = f"The answer to '{command}' cannot be written as JSON: {failed}."
            effects = self._core.answer_client(seq, command, error=text)
        self._apply(effects)

    def tell_client(self, event: str, body: Mapping[str, Any]) -> None:
        """Send the client an event of ours; nothing if there is no client.

        Raises:
            ValueError, TypeError, RecursionError: *body* cannot be written as JSON.
        """
        self._apply(self._core.tell_client(event_message(event, body)))

    async def restart(self) -> None:
        """Do what the client's request `restart` does; returns when the program has been started again.

        Raises:
            RequestFailed: with the reason.
        """
        if self._editor is None:
            await self.request("restart", {})
            return
        token, effects = self._editor.restart()
        with self._own.waiting("restart", token) as answer:
            self._apply(effects)
            ends: list[asyncio.Future[Any]] = [answer, self._over]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise RequestFailed("restart", "closed", self._core.gone or "The debug session was closed.")
            answer.result()

    def _nobody(self, question: ForAgent) -> None:
        text = f"'{question.command}' is not available in this session."
        self.answer_client(question.seq, question.command, error=text)

    def _ask_agent(self, question: ForAgent) -> None:
        try:
            self.for_agent(question)
        except Exception as error:  # noqa: BLE001 - whatever happens there, the client waits for an answer
            self._loop.call_exception_handler({"message": f"in '{question.command}'", "exception": error})
            self.answer_client(question.seq, question.command, error=f"{type(error).__name__}: {error}")

    # A client before the adapter

    async def serve_client(self, connection: socket.socket) -> None:
        """Relay the client at the other end of *connection*, which is closed in the end.

        Returns when the client is gone, or shortly after the adapter is. Leaves the adapter as it is: `close` is next.
        """
        link = self._admit()
        try:
            try:
                connection.setblocking(False)
                _no_delay(connection)
                await self._loop.connect_accepted_socket(lambda: link, connection)
            except BaseException:
                connection.close()  # from here on the transport does that
                raise
            await self._serve(link)
        finally:
            self._dismiss(link)

    async def serve_pipes(self, reader: IO[bytes], writer: IO[bytes]) -> None:
        """Relay the client that writes what *reader* reads, as `serve_client` does. Closes both files in the end."""
        link = self._admit()
        try:
            write, _ = await self._loop.connect_write_pipe(lambda: WriteSide(link), writer)
            link.use(None, write)
            await self._loop.connect_read_pipe(lambda: link, reader)
            await self._serve(link)
        finally:
            self._dismiss(link)

    def _admit(self) -> Link:
        if self._client is not None:
            raise DapAgentError("This debug session has a client already. End it there first.")
        link = self._client = Link(self._from_client)
        link.on_pressure = self._press
        self._adapter.on_pressure = lambda high: link.hold("adapter") if high else link.release("adapter")
        self._core.client_arrived()
        return link

    def _press(self, high: bool) -> None:
        self._pressed = high
        if high:
            self._adapter.hold("client")
        else:
            self._adapter.release("client")

    async def _serve(self, link: Link) -> None:
        early, self._early = self._early or [], None
        for bodies, error in early:
            self._from_adapter(self._adapter, bodies, error)
        await asyncio.wait({link.closed, self._over}, return_when=asyncio.FIRST_COMPLETED)
        if not link.closed.done():
            # The client has been told; it may have something left to say, such as `disconnect`.
            await asyncio.wait({link.closed}, timeout=0 if self._core.parting else _EXIT_GRACE)
            self._apply(self._core.refuse_questions())
            link.close()
            await asyncio.wait({link.closed}, timeout=_EXIT_GRACE)

    def _dismiss(self, link: Link) -> None:
        link.abort()
        self._client = None
        self._adapter.on_pressure = lambda high: None
        self._press(False)
        self._apply(self._core.client_gone())

    # The end

    async def wait_closed(self) -> None:
        """Return when the adapter is gone, for whatever reason; `gone` tells it."""
        await asyncio.wait({self._over})

    async def close(self) -> None:
        """End the adapter and the client's connection. May be called again, and from several tasks.

        Sends nothing: the adapter's input ends; 1 s later it gets SIGTERM, 1 s later SIGKILL with its process group.
        """
        if self._closing is None:
            self._closing = self._loop.create_task(self._close())
        await asyncio.shield(self._closing)

    async def __aenter__(self) -> "ProxyServer":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _close(self) -> None:
        self._apply(self._core.adapter_gone("The debug session was closed."))
        await self._stop_respawning()
        if self._process is None:
            self._adapter.close()
            await asyncio.wait({self._adapter.closed}, timeout=STEP)
            self._adapter.abort()
        else:
            await self._process.end()
        await asyncio.wait({self._adapter.closed})
        self._finish()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._client is not None:
            self._apply(self._core.refuse_questions())
            self._client.close()
            await asyncio.wait({self._client.closed}, timeout=_EXIT_GRACE)
            self._client.abort()

    def _adapter_lost(self, link: Link) -> None:
        if link is not self._adapter:
            return
        link.on_pressure(False)  # it has died with a full pipe: what the client asks is read on, and answered
        if self._respawning is not None:
            return
        self._apply(self._core.adapter_gone(self._how_it_ended()))
        self._finish()

    def _finish(self) -> None:
        if not self._over.done():
            self._over.set_result(None)

    # A fresh adapter

    async def _respawn(self) -> None:
        """End the adapter, which was told to leave, and start another."""
        assert self._editor is not None and self._process is not None
        await self._process.end()
        self._process = None
        pressure = self._adapter.on_pressure
        old, self._adapter = self._adapter, self._adapter_link()
        old.abort()
        pressure(False)
        self._adapter.on_pressure = pressure
        if self._pressed:
            self._adapter.hold("client")
        try:
            await self._spawn()
        except AdapterFailed as error:
            self._apply(self._editor.respawn_failed(error.message))
            self._finish()
            return
        self._respawning = None
        self.printed.clear()
        self._apply(self._editor.respawned())

    async def _stop_respawning(self) -> None:
        task = self._respawning
        if task is not None and task is not asyncio.current_task():
            task.cancel()
            await asyncio.wait({task})

    async def _abandon(self) -> None:
        await self._stop_respawning()
        if self._process is not None:
            await self._process.end()
        self._finish()

    def _how_it_ended(self) -> str:
        status = self._process.exit_status if self._process is not None else None
        return how_it_ended(self._name, status, self._adapter.broken, self._stderr)

    # Effects

    def _from_adapter(self, link: Link, bodies: list[bytes], error: FramingError | None) -> None:
        if link is not self._adapter:
            return
        if self._early is not None:
            self._early.append((bodies, error))
            return
        self._apply(chain.from_iterable(map(self._core.from_adapter, bodies)))
        self._attention.answered()
        if error is not None and self._core.gone is None:
            self._stderr.append(error.message)
            self._apply(self._core.adapter_gone(f"{self._name} cannot be understood any more. {error.message}"))
            self._adapter.abort()

    def _from_client(self, bodies: list[bytes], error: FramingError | None) -> None:
        self._apply(chain.from_iterable(map(self._core.from_client, bodies)))
        self._attention.asked()
        if error is not None:
            self._apply(self._core.client_broken(error.message))

    def apply(self, effects: Iterable[Effect]) -> None:
        """Carry out what a policy wants done."""
        self._apply(effects)

    def _apply(self, effects: Iterable[Effect]) -> None:
        """Carry out *effects* in order, with one write to each peer.

        They are taken one by one, so that a listener sees the state of the session as of the event that it is told.
        """
        to_adapter: list[bytes] = []
        to_client: list[bytes] = []
        for effect in effects:
            if isinstance(effect, ToClient):
                to_client.append(effect.body)
            elif isinstance(effect, ToAdapter):
                to_adapter.append(effect.body)
            elif isinstance(effect, Publish):
                self._own.publish(effect)
            elif isinstance(effect, Answer | Fail):
                self._own.settle(effect)
            elif isinstance(effect, Serve):
                self._keep(self._loop.create_task(self._own.serve(effect)))
            elif isinstance(effect, Note):
                self._stderr.append(effect.text)
            else:
                self._write(to_adapter, to_client)
                to_adapter, to_client = [], []
                self._act(effect)
        self._write(to_adapter, to_client)
        self._attention.happened()

    def _act(self, effect: HangUp | Later | ForAgent | ForHub | Respawn | Abandon) -> None:
        if isinstance(effect, HangUp):
            self._hang_up()
        elif isinstance(effect, Later):
            self._loop.call_later(effect.seconds, lambda: self._apply(effect.then()))
        elif isinstance(effect, ForAgent):
            self._ask_agent(effect)
        elif isinstance(effect, Respawn):
            self._respawning = self._loop.create_task(self._respawn())
            self._keep(self._respawning)
        elif isinstance(effect, Abandon):
            self._keep(self._loop.create_task(self._abandon()))
        else:
            self.for_hub(effect)

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _write(self, to_adapter: list[bytes], to_client: list[bytes]) -> None:
        if to_adapter:
            self._adapter.send(to_adapter)
        if to_client and self._client is not None:
            self._client.send(to_client)

    def _hang_up(self) -> None:
        if self._client is not None:
            self._client.close()


def _no_delay(connection: socket.socket) -> None:
    if connection.family in (socket.AF_INET, socket.AF_INET6):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
