"""Both real SDKs against `dap_agent.testing.ModelServer` on loopback."""

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from dap_agent.models import registry
from dap_agent.models.base import Message, ModelError, ToolSpec, Turn, UserMessage
from dap_agent.testing import ModelServer, Step

T = TypeVar("T")

KEY = "sk-test-SECRET-0123456789abcdef"
FRAME = ToolSpec(
    "frame",
    "Look at a stack frame.",
    {
        "type": "object",
        "properties": {"number": {"type": "integer", "minimum": 0}},
        "required": ["number"],
        "additionalProperties": False,
    },
)
PROPOSE = ToolSpec(
    "propose",
    "Propose a fix.",
    {
        "type": "object",
        "properties": {"title": {"type": "string"}, "source": {"type": "string", "maxLength": 20000}},
        "required": ["title", "source"],
        "additionalProperties": False,
    },
)
TOOLS = [FRAME, PROPOSE]
APIS = ["anthropic", "openai", "responses", "local"]
NOT_HERE = "Function tools with reasoning_effort are not supported for m in /v1/chat/completions. Use /v1/responses."


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No key, profile, address or proxy of the developer's."""
    for name in (
        *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS"),
        *(
            "ANTHROPIC_PROFILE",
            "ANTHROPIC_CONFIG_DIR",
            "XDG_CONFIG_HOME",
            "OPENAI_API_KEY",
            "OPENAI_BASE_URL",
            "OPENAI_CUSTOM_HEADERS",
            "OPENAI_ORG_ID",
        ),
        *("OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY", "DAP_AGENT_PRICE", "DAP_AGENT_LOCAL_API_KEY"),
        *("DAP_AGENT_LOCAL_MODE", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"),
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


class Kit:
    """What the tests need, as one fixture (test files cannot import a conftest)."""

    KEY = KEY
    FRAME = FRAME
    TOOLS = TOOLS
    NOT_HERE = NOT_HERE

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch
        self.servers: list[ModelServer] = []

    def serve(self, *steps: Step, **options: Any) -> ModelServer:
        """A server with the given steps; both SDKs are pointed to it."""
        server = ModelServer(steps, **options)
        server.__enter__()
        self.servers.append(server)
        for name, value in server.environment(KEY).items():
            self.monkeypatch.setenv(name, value)
        return server

    def backend(self, api: str, server: ModelServer, **options: Any) -> Any:
        """A backend of the given kind for *server*, which notes its pauses in `slept` instead of making them."""
        if api == "local":
            backend: Any = registry.create(f"local:{server.openai_url}#m", **options)
            backend.mode = "native"
        else:
            backend = registry.create("anthropic:m" if api == "anthropic" else "openai:m", **options)
        backend._responses = api == "responses"
        backend.slept = []

        async def sleep(seconds: float) -> None:
            backend.slept.append(seconds)

        backend.retries.sleep = sleep
        return backend

    async def ask(
        self,
        backend: Any,
        messages: Sequence[Message] = (UserMessage("Why does it crash?"),),
        *,
        close: bool = True,
        **options: Any,
    ) -> Turn:
        """One turn, with ordinary arguments."""
        options = {"system": "You debug.", "tools": TOOLS, "max_tokens": 1000, **options}
        try:
            turn: Turn = await backend.complete(messages=messages, **options)
        finally:
            if close:
                await backend.aclose()
        return turn

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run one test's coroutine, bounded."""
        return asyncio.run(asyncio.wait_for(coroutine, 30))

    def failure(self, backend: Any, **options: Any) -> ModelError:
        """The error of a turn that must fail."""
        with pytest.raises(ModelError) as caught:
            self.run(self.ask(backend, **options))
        return caught.value


@pytest.fixture
def kit(monkeypatch: pytest.MonkeyPatch) -> Iterator[Kit]:
    """See `Kit`."""
    made = Kit(monkeypatch)
    yield made
    for server in made.servers:
        server.close()


@pytest.fixture(params=APIS)
def api(request: pytest.FixtureRequest) -> str:
    """Each way to ask a model."""
    return str(request.param)
