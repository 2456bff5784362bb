"""Our own part in a session: who of us asks the adapter waits here, who listens is told, who serves is called.

The adapter's side of it is the core's; `server` carries out what comes of it.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Mapping
from typing import Any

from dap_agent.errors import DapAgentError
from dap_agent.proxy.core import Proxy
from dap_agent.proxy.effects import Answer, Effect, Fail, Publish, Reason, Serve
from dap_agent.proxy.printed import Printed
from dap_agent.wire.messages import InvalidMessage, Message

Handler = Callable[[Message], Awaitable[Mapping[str, Any] | None]]


class RequestFailed(DapAgentError):
    """A request of ours has failed.

    Attributes:
        command: the request's command.
        text: what is known of why; of a refusal, the adapter's own words.
        reason: "refused" (the adapter said no), "unsupported" (it did not announce the request, which was not sent),
            "timeout", "closed" (the adapter is gone), "resumed" (the stop that was asked about is over), "invalid"
            (the request or the answer is not valid), "busy" (too many requests are waiting).
    """

    def __init__(self, command: str, reason: Reason, text: str) -> None:
        super().__init__(f"The debug adapter refused '{command}': {text}" if reason == "refused" else text)
        self.command = command
        self.reason: Reason = reason
        self.text = text


class OwnPart:
    """Our requests, listeners and handlers in one session.

    Args:
        core: the session.
        apply: carries out effects.
        note: keeps a sentence that has no other addressee.
    """

    def __init__(self, core: Proxy, apply: Callable[[Iterable[Effect]], None], note: Callable[[str], None]) -> None:
        self._core = core
        self._apply = apply
        self._note = note
        self._loop = asyncio.get_running_loop()
        self.answers: dict[int, tuple[str, asyncio.Future[Message]]] = {}
        self.printed = Printed()
        self._subscribers: list[tuple[Callable[[Message], None], Container[str] | None]] = []
        self._handlers: dict[str, Handler] = {}

    @contextlib.contextmanager
    def waiting(self, command: str, token: int) -> Iterator["asyncio.Future[Message]"]:
        """The answer to our request *token*, which is to be sent off within; it is given up in the end."""
        answer: asyncio.Future[Message] = self._loop.create_future()
        self.answers[token] = (command, answer)
        try:
            yield answer
        finally:
            self.answers.pop(token, None)
            self._core.give_up(token)

    def settle(self, effect: Answer | Fail) -> None:
        """A request of ours has come to its end."""
        command, answer = self.answers.get(effect.token, ("", None))
        if answer is None or answer.done():
            return
        if isinstance(effect, Answer):
            answer.set_result(effect.response)
        else:
            answer.set_exception(RequestFailed(command, effect.reason, effect.text))

    def subscribe(self, callback: Callable[[Message], None], events: Container[str] | None) -> Callable[[], None]:
        """See `ProxyServer.subscribe`."""
        subscriber = (callback, events)
        self._subscribers.append(subscriber)

        def unsubscribe() -> None:
            with contextlib.suppress(ValueError):
                self._subscribers.remove(subscriber)

        return unsubscribe

    def publish(self, effect: Publish) -> None:
        """Tell the listeners of an event; one that nobody wants is not read."""
        name = effect.frame.name
        if name == "output":
            self.printed.add(effect.frame)
        wanting = [callback for callback, events in self._subscribers if events is None or name in events]
        if not wanting:
            return
        try:
            message = effect.frame.message
        except InvalidMessage as error:
            self._note(error.message)
            return
        for callback in wanting:
            try:
                callback(message)
            except Exception as error:  # noqa: BLE001 - a listener's mistake must not cut the client off
                self._loop.call_exception_handler({"message": f"in a listener to '{name}'", "exception": error})

    def handle(self, command: str, handler: Handler) -> None:
        """See `ProxyServer.handle`."""
        self._handlers[command] = handler
        self._core.handled.add(command)

    async def serve(self, effect: Serve) -> None:
        """Answer the adapter's request."""
        try:
            body = await self._handlers[effect.request["command"]](effect.request)
            effects = self._core.reply(effect.token, body)
        except DapAgentError as error:
            effects = self._core.reply(effect.token, error=error.message)
        except Exception as error:  # noqa: BLE001 - whatever happens here, the adapter waits for an answer
            effects = self._core.reply(effect.token, error=f"{type(error).__name__}: {error}")
        self._apply(effects)
