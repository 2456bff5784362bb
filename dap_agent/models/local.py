"""`local:URL` and `local:URL#MODEL`: any server that speaks Chat Completions and that the user runs.

`local:8080` is a port of this machine; `local:llama-server`, `local:ollama`, `local:lmstudio` and `local:vllm` are the
well-known ports of these servers. Without `#MODEL` the server is asked for its model, which works if it has one only.
No key is sent, except `DAP_AGENT_LOCAL_API_KEY`; `OPENAI_API_KEY` is not. `DAP_AGENT_LOCAL_MODE` (`native`, `schema`,
`text`) goes before the probe that finds out how the model calls tools.
"""

import asyncio
import os
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from dap_agent.models import chat, envelope
from dap_agent.models.base import Message, ModelError, ToolSpec, Turn, Usage, UserMessage
from dap_agent.models.errors import Endpoint, Failure, check_key, public_url
from dap_agent.models.sdk import MAX_REPLY, SdkBackend, TextSink, sendable, used_ids

Mode = Literal["native", "schema", "text"]
_KEY = "DAP_AGENT_LOCAL_API_KEY"
_MODE = "DAP_AGENT_LOCAL_MODE"
_PORTS = {"llama-server": 8080, "llama.cpp": 8080, "ollama": 11434, "lmstudio": 1234, "vllm": 8000}
_PROBE = ToolSpec(
    "choose_frame",
    "Choose a stack frame.",
    {
        "type": "object",
        "properties": {"frame": {"type": "integer"}},
        "required": ["frame"],
        "additionalProperties": False,
    },
)
_locks: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, asyncio.Lock]]" = weakref.WeakKeyDictionary()


def create(name: str, *, timeout: float = 600.0, max_retries: int = 4, mode: Mode | None = None) -> "LocalBackend":
    """The backend for the server at *name*.

    Args:
        name: `URL`, `URL#MODEL`, a port, or a server's name.
        timeout: seconds without a byte; reading a long prompt without a graphics card takes minutes.
        max_retries: repetitions of a failed request.
        mode: how tools are called: `native` (the API's tools), `schema` (`envelope` with a JSON schema), `text` (the
            same, without the server's help); None: find out.

    Raises:
        ModelError: *name* is no address.
    """
    url, model = parse(name)
    chosen = mode or os.environ.get(_MODE) or None
    if chosen is not None and chosen not in get_args(Mode):
        raise ModelError(f"{_MODE} is {chosen!r}: it must be one of {', '.join(get_args(Mode))}.", "bad-request")
    key = os.environ.get(_KEY, "")
    check_key(key, _KEY)
    password = urlsplit(url).password
    endpoint = Endpoint(
        label="The local server",
        model=model,
        url=public_url(url),
        url_source="the URL in local:URL",
        key_variables=(_KEY,),
        secrets=tuple(secret for secret in (key, password) if secret),
        timeout=timeout,
        local=True,
    )
    shown = f"{public_url(url)}#{model}".removesuffix("#") if password else name
    return LocalBackend(f"local:{shown}", endpoint, url=url, key=key, max_retries=max_retries, mode=chosen)


def parse(name: str) -> tuple[str, str]:
    """(base URL, model or "") of what follows `local:`.

    Raises:
        ModelError: it is no address.
    """
    target, _, model = name.partition("#")
    if target in _PORTS or target.isdecimal():
        target = f"127.0.0.1:{_PORTS.get(target, target)}"
    if "://" not in target:
        target = f"http://{target}"
    try:
        parts = urlsplit(target)
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
        named = parts.port is not None or "." in (parts.hostname or "") or parts.hostname == "localhost"
    except ValueError:  # a port that is no number, a broken IPv6 address
        usable = named = False
    if not usable or not (named or "://" in name):
        raise ModelError(
            f"local:{public_url(target).removeprefix('http://')} is no address of a model server: write local:URL or "
            f"local:URL#MODEL, for example local:http://127.0.0.1:8080/v1, a port, or one of {', '.join(_PORTS)}.",
            "bad-request",
        )
    if parts.path in ("", "/"):
        target = target.rstrip("/") + "/v1"
    return target, model


class LocalBackend(SdkBackend):
    """See `create`."""

    def __init__(
        self, name: str, endpoint: Endpoint, *, url: str, key: str, max_retries: int, mode: str | None
    ) -> None:
        super().__init__(name, endpoint, max_retries=max_retries)
        self._url = url
        self._key = key
        self.mode = mode
        self._usage_refused = False

    def cost(self, usage: Usage) -> float | None:
        """0.0: nobody sends a bill."""
        return 0.0

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
        """See `Backend.complete`. Requests to one server wait for each other: overlapping ones fail in some."""

        async def attempt(sink: TextSink) -> Turn:
            await self._prepare(tools)
            if not tools or self.mode == "native":
                return await self._native(system, messages, tools, max_tokens, force, sink)
            return await self._enveloped(system, messages, tools, max_tokens, force)

        async with self._lock():
            return await self._ask(attempt, on_text)

    def _lock(self) -> asyncio.Lock:
        of_loop = _locks.setdefault(asyncio.get_running_loop(), {})
        return of_loop.setdefault(urlsplit(self._url).netloc, asyncio.Lock())

    async def _prepare(self, tools: Sequence[ToolSpec]) -> None:
        if self._client is None:
            self._client = self._make(await self._sdk("openai"))
        if not self._endpoint.model:
            self._endpoint = replace(self._endpoint, model=await self._find_model())
        if tools and self.mode is None:
            self.mode = "native" if await self._calls_natively() else "schema"

    def _make(self, sdk: Any) -> Any:
        timeout = sdk.Timeout(self._endpoint.timeout, connect=min(10.0, self._endpoint.timeout))
        options: dict[str, Any] = {}
        host = urlsplit(self._url).hostname or ""
        if host in ("localhost", "::1") or host.startswith("127."):
            options["http_client"] = sdk.DefaultAsyncHttpxClient(trust_env=False, timeout=timeout)  # no proxy
        # what the SDK would add from the environment is meant for OpenAI, not for this server
        unwanted = ["OpenAI-Organization", "OpenAI-Project"]
        unwanted += [line.partition(":")[0].strip() for line in os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n")]
        headers: dict[str, Any] = {header: sdk.omit for header in unwanted if header}
        key = self._key or "none"  # the SDK insists on one
        headers["Authorization"] = f"Bearer {key}"
        return sdk.AsyncOpenAI(
            base_url=self._url,
            api_key=key,
            max_retries=0,
            timeout=timeout,
            default_headers=headers,
            **options,
        )

    async def _find_model(self) -> str:
        page = await self._client.models.list()
        names = [model.id for model in page.data or ()]
        if len(names) == 1:
            return str(names[0])
        shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        what = f"has {len(names)} models ({shown})" if names else "has no model loaded"
        raise ModelError(f"The local server at {self._endpoint.url} {what}: name one, local:URL#MODEL.", "bad-request")

    async def _calls_natively(self) -> bool:
        """Ask for one call and see whether it arrives as one."""
        sdk = await self._sdk("openai")
        body = {
            "messages": chat.render("", [UserMessage("Call the tool choose_frame with frame 7.")], ""),
            "tools": chat.render_tools([_PROBE]),
            "max_tokens": 512,
        }
        try:
            turn = await self._read(body, TextSink(None), set())
        except sdk.APIConnectionError:
            raise
        except sdk.APIError as error:
            # No tools in this server or this model's template, or (inside of the stream, without a status) output that
            # the server cannot parse as calls. Other statuses, "loading" for one, are no answer to the question.
            if getattr(error, "status_code", 500) in (400, 422, 500, 501):
                return False
            raise
        return any(call.name == _PROBE.name and call.arguments == {"frame": 7} for call in turn.calls)

    async def _native(
        self,
        system: str,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        max_tokens: int,
        force: bool,
        sink: TextSink,
    ) -> Turn:
        body: dict[str, Any] = {
            "messages": chat.render(system, messages, self._endpoint.model),
            "max_tokens": max_tokens,
        }
        if tools:
            body["tools"] = chat.render_tools(tools)
            if force:
                body["tool_choice"] = "required"
        turn = await self._read(body, sink, used_ids(messages))
        if turn.calls or not tools:
            return turn
        return self._with_calls(turn, tools, messages)

    async def _enveloped(
        self, system: str, messages: Sequence[Message], tools: Sequence[ToolSpec], max_tokens: int, force: bool
    ) -> Turn:
        body: dict[str, Any] = {
            "messages": envelope.render(system, messages, tools),
            "max_tokens": max_tokens,
        }
        if self.mode == "schema":
            wanted = {"name": "call", "strict": True, "schema": envelope.schema(tools, force=force)}
            body["response_format"] = {"type": "json_schema", "json_schema": wanted}
        turn = await self._read(body, TextSink(None), set())
        return self._with_calls(turn, tools, messages)

    def _with_calls(self, turn: Turn, tools: Sequence[ToolSpec], messages: Sequence[Message]) -> Turn:
        """*turn* with the calls that its text holds; the text then is none of its own."""
        found = envelope.find_calls(turn.text, tools)
        if not found:
            return replace(turn, text=envelope.without_thought(turn.text), raw=None)
        name, arguments = found[0]
        if name == envelope.answer_name(tools):
            return Turn(str(arguments.get("text", "")), (), "end", turn.usage)
        found = [each for each in found if each[0] != envelope.answer_name(tools)]
        return Turn("", envelope.to_calls(found, used_ids(messages)), "calls", turn.usage)

    async def _read(self, body: dict[str, Any], sink: TextSink, taken: set[str]) -> Turn:
        reply = chat.Reply(self._endpoint.model, sink, taken)
        options = {} if self._usage_refused else {"stream_options": {"include_usage": True}}
        request = sendable({"model": self._endpoint.model, **body, **options})
        async with await self._client.chat.completions.create(**request, stream=True) as stream:
            async for chunk in stream:
                reply.feed(chunk)
                if reply.size > MAX_REPLY:
                    break
        return reply.turn()

    def _adapt(self, failure: Failure) -> bool:
        complaint = f"{failure.parameter} {failure.detail}"
        if not self._usage_refused and "stream_options" in complaint:
            self._usage_refused = True
            return True
        if self.mode == "schema" and any(word in complaint for word in ("response_format", "json_schema", "grammar")):
            self.mode = "text"
            return True
        return False
