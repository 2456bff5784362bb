"""`openai:NAME` through the openai SDK 3.x: Chat Completions, streaming; the Responses API where a model demands it.

Other servers that speak Chat Completions and need a key work too, with `OPENAI_BASE_URL`; parameters that such a server
or an older model does not take are learned from its first refusal.
"""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from dap_agent.models import chat, prices, responses
from dap_agent.models.base import Message, ToolSpec, Turn
from dap_agent.models.errors import Endpoint, Failure, check_key, header_secrets, missing_key, public_url
from dap_agent.models.sdk import MAX_REPLY, SdkBackend, TextSink, sendable, used_ids

_KEY = "OPENAI_API_KEY"
_URL = "OPENAI_BASE_URL"
_TOO_MANY = re.compile(r"supports at most (\d+) completion tokens")


def create(name: str, *, timeout: float = 120.0, max_retries: int = 4) -> "OpenAIBackend":
    """The backend for the model *name*; key and base URL from `OPENAI_API_KEY` and `OPENAI_BASE_URL`.

    Raises:
        ModelError: no key, or one that cannot be sent; a `DAP_AGENT_PRICE` that is none.
    """
    prices.from_environment()  # a wrong one must not come out after the first paid answer
    key = os.environ.get(_KEY, "")
    endpoint = Endpoint(
        label="OpenAI",
        model=name,
        url=public_url(os.environ.get(_URL) or "https://api.openai.com/v1"),
        url_source=_URL,
        key_variables=(_KEY,),
        secrets=(*([key] if key else []), *header_secrets("OPENAI_CUSTOM_HEADERS")),
        timeout=timeout,
    )
    if not key:
        raise missing_key(endpoint)
    check_key(key, _KEY)
    return OpenAIBackend(f"openai:{name}", endpoint, max_retries=max_retries)


class OpenAIBackend(SdkBackend):
    """See `create`."""

    def __init__(self, name: str, endpoint: Endpoint, *, max_retries: int) -> None:
        super().__init__(name, endpoint, max_retries=max_retries)
        self._limit_name = "max_completion_tokens"
        self._refused: set[str] = set()
        self._most_tokens: int | None = None
        self._responses = False

    async def complete(
        self,
        *,
        system: str,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        max_tokens: int,
        force: bool = False,
        on_text: Callable[[str], None] | None = None,
    ) -> Turn:
        """See `Backend.complete`."""

        async def attempt(sink: TextSink) -> Turn:
            if self._client is None:
                self._client = self._make(await self._sdk("openai"))
            limit = min(max_tokens, self._most_tokens or max_tokens)
            reply: chat.Reply | responses.Reply
            if self._responses:
                reply = responses.Reply(self._endpoint.model, sink)
                method, body = self._client.responses.create, self._items(system, messages, tools, limit, force)
            else:
                reply = chat.Reply(self._endpoint.model, sink, used_ids(messages))
                method, body = self._client.chat.completions.create, self._chat(system, messages, tools, limit, force)
            async with await method(**sendable(body), stream=True) as stream:
                async for event in stream:
                    reply.feed(event)
                    if reply.size > MAX_REPLY:
                        break
            return reply.turn()

        return await self._ask(attempt, on_text)

    def _make(self, sdk: Any) -> Any:
        timeout = self._endpoint.timeout
        client = sdk.AsyncOpenAI(max_retries=0, timeout=sdk.Timeout(timeout, connect=min(10.0, timeout)))
        self._endpoint = replace(self._endpoint, url=public_url(str(client.base_url)))
        return client

    def _chat(
        self, system: str, messages: Sequence[Message], tools: Sequence[ToolSpec], limit: int, force: bool
    ) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._endpoint.model,
            "messages": chat.render(system, messages, self._endpoint.model),
            self._limit_name: limit,
        }
        if "stream_options" not in self._refused:
            body["stream_options"] = {"include_usage": True}
        if tools:
            body["tools"] = chat.render_tools(tools)
            if force and "tool_choice" not in self._refused:
                body["tool_choice"] = "required"
        return body

    def _items(
        self, system: str, messages: Sequence[Message], tools: Sequence[ToolSpec], limit: int, force: bool
    ) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._endpoint.model,
            "instructions": system,
            "input": responses.render(messages, self._endpoint.model),
            "max_output_tokens": limit,
            "store": False,
        }
        if "encrypted_content" not in self._refused:
            body["include"] = ["reasoning.encrypted_content"]
        if tools:
            body["tools"] = responses.render_tools(tools)
            if force and "tool_choice" not in self._refused:
                body["tool_choice"] = "required"
        return body

    def _adapt(self, failure: Failure) -> bool:
        complaint = f"{failure.parameter} {failure.detail}"
        if not self._responses and "v1/responses" in complaint:
            self._responses = True
            return True
        most = _TOO_MANY.search(complaint)
        if most and self._most_tokens != int(most[1]) > 0:
            self._most_tokens = int(most[1])
            return True
        if self._limit_name in complaint and self._limit_name != "max_tokens" and not self._responses:
            self._limit_name = "max_tokens"
            return True
        for parameter, words in (
            ("stream_options", "stream_options"),
            ("tool_choice", "tool_choice"),
            ("encrypted_content", "ncrypted content"),
        ):
            if parameter not in self._refused and (parameter in complaint or words in complaint):
                self._refused.add(parameter)
                return True
        return False
