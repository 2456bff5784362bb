"""The assistant as a client of the debug adapter meets it: console lines, custom requests, completions, `cancel`.

Requests are dealt with in their order; what may wait for the program (`/try`, `/reload`, `/restart`) goes on beside
the others.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol

from dap_agent import __version__
from dap_agent.control import failure, requests
from dap_agent.control.assistant import Assistant
from dap_agent.control.console import NAMES, Category, Console, completions, split
from dap_agent.control.events import PROGRESS_ID, Events
from dap_agent.errors import DapAgentError

_BESIDE = ("/try", "/reload", "/restart")
_CHANGED = {"areas": ["variables"]}  # what a line of the user's own may have changed


class Question(Protocol):
    """A client's request that is ours (`proxy.effects.ForAgent`)."""

    seq: int
    command: str
    arguments: dict[str, Any]


class Client(Protocol):
    """Who asks (`proxy.server.ProxyServer`)."""

    @property
    def client(self) -> Mapping[str, Any]:
        """The arguments of its `initialize`."""

    def answer_client(
        self, seq: int, command: str, body: Mapping[str, Any] | None = None, *, error: str | None = None
    ) -> None:
        """Answer one of its requests."""

    def tell_client(self, event: str, body: Mapping[str, Any]) -> None:
        """Send it an event."""


class Messages:
    """See the module.

    Args:
        client: who asks.
        assistant: does the work.
        has_model: whether a model is configured, as far as that is known.

    `said` may be set to what hears all that is shown.
    """

    def __init__(self, client: Client, assistant: Assistant, has_model: Callable[[], bool]) -> None:
        self.said: Callable[[str, Category], None] = lambda text, category: None
        self._client = client
        self._assistant = assistant
        self._console = Console(assistant, self.say)
        self._events = Events(client.tell_client, lambda: self._can("supportsProgressReporting"), has_model)
        assistant.listen(self._events)
        self._queue: asyncio.Queue[Question] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._start(self._serve())

    def ask(self, question: Question) -> None:
        """A request has come; it is answered exactly once."""
        self._queue.put_nowait(question)

    def ready(self, model: str | None) -> None:
        """Tell the client that we are here."""
        body = {"version": __version__, "commands": list(NAMES), "requests": list(requests.NAMES), "model": model}
        self._client.tell_client("dapAgentReady", body)

    def say(self, text: str, category: Category = "console") -> None:
        """Show *text*, whole lines or a piece of one, in the client's console."""
        self._client.tell_client("output", {"category": category, "output": text})
        self.said(text, category)

    async def close(self) -> None:
        """Leave nothing running."""
        self._events.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _can(self, capability: str) -> bool:
        return self._client.client.get(capability) is True

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self) -> None:
        while True:
            question = await self._queue.get()
            if question.command == "evaluate" and split(_text(question, "expression"))[0] in _BESIDE:
                self._start(self._answer(question))
            else:
                await self._answer(question)

    async def _answer(self, question: Question) -> None:
        try:
            body = await self._body(question)
        except DapAgentError as error:
            self._client.answer_client(question.seq, question.command, error=error.message)
        except Exception as error:  # noqa: BLE001 - whatever goes wrong in here, the client waits for an answer
            self._client.answer_client(question.seq, question.command, error=failure.describe(error))
        else:
            self._client.answer_client(question.seq, question.command, body)

    async def _body(self, question: Question) -> dict[str, Any] | None:
        if question.command == "evaluate":
            return await self._evaluate(question)
        if question.command == "completions":
            return {"targets": self._completions(question)}
        if question.command == "cancel":
            await self._cancel(str(question.arguments.get("progressId")))
            return None
        return await requests.answer(self._assistant, question.command, question.arguments)

    async def _evaluate(self, question: Question) -> dict[str, Any]:
        line, frame_id = _text(question, "expression"), question.arguments.get("frameId")
        answer = await self._console.run(line, frame_id if type(frame_id) is int else None)
        if split(line)[0] == "/try" and self._can("supportsInvalidatedEvent"):
            self._client.tell_client("invalidated", _CHANGED)
        return {"result": answer, "variablesReference": 0}

    def _completions(self, question: Question) -> list[dict[str, Any]]:
        text, column = _text(question, "text"), question.arguments.get("column")
        first = 1 if self._client.client.get("columnsStartAt1", True) else 0
        # DAP counts in UTF-16 code units; a command has none beyond the first plane
        place = column - first if type(column) is int else len(text)
        before = text[: max(0, place)]
        indent = len(before) - len(before.lstrip())
        if not before.strip():
            return []
        return [
            {
                "label": name,
                "text": name,
                "detail": detail,
                "type": "keyword",
                "start": indent + first,
                "length": len(before) - indent,
            }
            for name, detail in completions(before)
        ]

    async def _cancel(self, progress: str) -> None:
        work = self._assistant.working
        if work is None or progress != PROGRESS_ID + work.id:
            return  # it is over, which is what was wanted
        await self._assistant.cancel()


def _text(question: Question, name: str) -> str:
    value = question.arguments.get(name)
    return value if isinstance(value, str) else ""
