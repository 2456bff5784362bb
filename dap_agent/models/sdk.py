"""What the backends over a vendor's SDK share: retries, learning from rejected parameters, bounded text, closing."""

import asyncio
import importlib
import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from dap_agent.models import prices
from dap_agent.models.base import AssistantMessage, Message, ModelError, OnRetry, Turn, Usage
from dap_agent.models.errors import Endpoint, Failure, classify
from dap_agent.models.retry import Retries

# No model writes more than about 128k tokens per answer; what is longer is cut off and the turn's stop is "length".
MAX_REPLY = 1_000_000  # characters
EMPTY = "(empty)"
NO_ANSWER = "(no answer)"


class TextSink:
    """Hands text on as it arrives, without lone surrogates, and counts what it handed out.

    A surrogate pair may be cut apart by the pieces of a stream; the first half waits for the second.
    """

    def __init__(self, on_text: Callable[[str], None] | None) -> None:
        self._on_text = on_text
        self._held = ""
        self.given = 0

    def feed(self, text: str) -> None:
        """Hand on *text*, except for a high surrogate at its end."""
        text = self._held + text
        self._held = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._held = text[:-1], text[-1]
        if text and self._on_text is not None:
            self._on_text(whole(text))
            self.given += len(text)


def whole(text: str) -> str:
    """*text* with surrogate pairs joined and lone surrogates replaced, so that it can be encoded."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def sendable(body: Any) -> Any:
    """*body* (JSON-able), without lone surrogates, which no SDK can encode."""
    text = json.dumps(body, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.loads(whole(text))
    return body


def parse_arguments(raw: str) -> dict[str, Any] | None:
    """The arguments of a call, None if *raw* is no JSON object; nothing at all means no arguments."""
    if not raw.strip():
        return {}
    try:
        value = json.loads(whole(raw))
    except (ValueError, RecursionError):
        return None
    return sendable(value) if isinstance(value, dict) else None


def unparsed(raw: str) -> dict[str, Any]:
    """What stands for arguments that do not parse when the turn is sent back: both vendors want an object there."""
    return {"unparsed_arguments": raw[:2000]}


def used_ids(messages: Iterable[Message]) -> set[str]:
    """The ids of all calls in *messages*."""
    return {call.id for message in messages if isinstance(message, AssistantMessage) for call in message.turn.calls}


class SdkBackend:
    """A backend that asks through an SDK.

    Args:
        name: the model as given by the user.
        endpoint: who is asked, for error messages.
        max_retries: repetitions of a failed request.

    Attributes:
        on_retry: called before each repetition.
        retries: how repetitions are spaced (tests shorten them).
    """

    def __init__(self, name: str, endpoint: Endpoint, *, max_retries: int) -> None:
        self._name = name
        self._endpoint = endpoint
        self._client: Any = None
        self.retries = Retries(limit=max_retries)
        self.on_retry: OnRetry | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._name}>"

    @property
    def name(self) -> str:
        """The model as given."""
        return self._name

    def cost(self, usage: Usage) -> float | None:
        """US dollars for *usage* at list prices, None if unknown (`prices`)."""
        return prices.cost(self._endpoint.model, usage)

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _sdk(self, module: str) -> Any:
        """The SDK; importing one takes up to two seconds, so not on the event loop's thread."""
        try:
            return await asyncio.to_thread(importlib.import_module, module)
        except ImportError as error:
            raise ModelError(
                f"The package {module} cannot be imported ({error}): install dap-agent again.", "bad-request"
            ) from None

    async def _ask(self, attempt: Callable[[TextSink], Awaitable[Turn]], on_text: Callable[[str], None] | None) -> Turn:
        """One turn by *attempt*, repeated as `Retries` say, and at once when `_adapt` has learned something."""
        sink = TextSink(on_text)

        async def try_once() -> Turn:
            nonlocal sink
            sink = TextSink(on_text)
            while True:
                try:
                    return await attempt(sink)
                except Exception as error:
                    failure = self._classify(error)
                    if failure is None or failure.kind != "bad-request" or not self._adapt(failure):
                        raise

        return await self.retries.run(try_once, self._classify, on_retry=self.on_retry, discarded=lambda: sink.given)

    def _classify(self, error: Exception) -> Failure | None:
        return classify(error, self._endpoint)

    def _adapt(self, failure: Failure) -> bool:
        """Change later requests so that *failure* (a rejected one) does not come again; False if nothing can be done.

        Must not return True for ever: each lesson is learned once.
        """
        return False
