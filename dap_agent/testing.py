"""A model server for tests: the real SDKs talk to it over loopback, and it says what the test wrote down.

    with ModelServer([Reply(calls=[("frame", {"number": 0})]), Reply("done")]) as server:
        os.environ.update(server.environment())
        ...  # anthropic:anything, openai:anything or local:URL now asks this server
    assert server.requests[0].body["messages"]

It speaks `/v1/messages`, `/v1/messages/count_tokens`, `/v1/chat/completions`, `/v1/responses` (this one only as a
stream) and `/v1/models`, and refuses what the vendors refuse (`dap_agent.models.rules`).
"""

import contextlib
import json
import select
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, TypeAlias

from dap_agent.models import formats, rules
from dap_agent.models.formats import Answer as Reply

__all__ = ["Drop", "ErrorReply", "ModelServer", "RawStream", "Reply", "Request", "Stall", "Step"]

_PATHS = {"/messages": "anthropic", "/chat/completions": "chat", "/responses": "responses"}
_PARTIAL = Reply("This answer will never be complete.")
_RULES = {"anthropic": rules.anthropic, "chat": rules.chat, "responses": rules.responses}


@dataclass(frozen=True)
class Request:
    """One request as it came.

    Args:
        api: `anthropic`, `chat`, `responses`, or the path for others.
        headers: with names in lower case.
        body: parsed JSON, `{}` if there is none.
        time: `time.monotonic()` of its arrival.
    """

    api: str
    path: str
    headers: Mapping[str, str]
    body: Any
    time: float


@dataclass(frozen=True)
class ErrorReply:
    """An error.

    Args:
        status: of HTTP. 200 sends the error as an event inside of a stream.
        message: in the vendor's error shape.
        kind: the error's type; None: the one that goes with *status*.
        code: OpenAI's error code.
        headers: further headers, for example `{"retry-after-ms": "20"}`.
        body: sent instead of all that: JSON-able or text.
    """

    status: int
    message: str = "made by the test"
    kind: str | None = None
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None


@dataclass(frozen=True)
class Drop:
    """The stream of *reply* is cut after *after* bytes.

    Args:
        clean: end the body properly, so that only its content is incomplete; else the connection breaks.
    """

    after: int = 0
    reply: Reply = _PARTIAL
    clean: bool = False


@dataclass(frozen=True)
class Stall:
    """The stream of *reply* stops after *after* bytes, until the client goes away or the server is closed."""

    after: int = 0
    reply: Reply = _PARTIAL


@dataclass(frozen=True)
class RawStream:
    """Bytes as they are, one write for each chunk."""

    chunks: Sequence[bytes]
    content_type: str = "text/event-stream"


Step: TypeAlias = "Reply | ErrorReply | Drop | Stall | RawStream | Callable[[Request], Any]"


class ModelServer:
    """See the module.

    Args:
        steps: one for each request that asks for an answer, in order; a callable gets the `Request` and returns the
            step. When they are used up, requests get an error 400 that says so.
        models: what `/v1/models` lists.
        key: the key that requests must have; None: any or none.
        write: bytes per write to the socket, which cuts streams inside of characters; None: the whole at once.
        check: refuse what breaks the vendors' rules.

    Attributes:
        requests: all requests that came.
        complaints: the complaints about requests that broke a rule or had no step; assert that it is empty.
        disconnected: set when a client went away before its answer was complete.
    """

    def __init__(
        self,
        steps: Iterable[Step] = (),
        *,
        models: Sequence[str] = ("test-model",),
        key: str | None = None,
        write: int | None = None,
        check: bool = True,
    ) -> None:
        self.requests: list[Request] = []
        self.complaints: list[str] = []
        self.disconnected = threading.Event()
        self._steps = list(steps)
        self._models = models
        self._key = key
        self._write = write
        self._check = check
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._answers = 0
        self.active = 0
        self.most_active = 0
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> "ModelServer":
        self._thread.start()
        return self

    def __exit__(self, *_: "type[BaseException] | BaseException | TracebackType | None") -> None:
        self.close()

    @property
    def url(self) -> str:
        """`http://127.0.0.1:PORT`, the base URL for Anthropic."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def openai_url(self) -> str:
        """The base URL for OpenAI and `local:`."""
        return f"{self.url}/v1"

    def environment(self, key: str = "test-key-0123456789") -> dict[str, str]:
        """Environment variables that make both SDKs ask this server."""
        return {
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": key,
            "OPENAI_BASE_URL": self.openai_url,
            "OPENAI_API_KEY": key,
            "NO_PROXY": "127.0.0.1",
        }

    def add(self, *steps: Step) -> None:
        """Further steps."""
        with self._lock:
            self._steps.extend(steps)

    def close(self) -> None:
        """Stop; requests in progress are cut off."""
        self._closing.set()
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.end_connections()
        self._server.server_close()

    def _next(self, request: Request) -> tuple[Any, int]:
        """The step for *request* and its number; an error for a request that is wrong."""
        complaint = _RULES[request.api](request.body) if self._check else None
        with self._lock:
            if complaint is None and not self._steps:
                complaint = "the test server has no step left for this request"
            if complaint is not None:
                self.complaints.append(complaint)
                return ErrorReply(400, complaint), 0
            self._answers += 1
            step, number = self._steps.pop(0), self._answers
        while callable(step):
            step = step(request)
        return step, number


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True

    def __init__(self, owner: ModelServer) -> None:
        self.owner = owner
        self.open: set[Any] = set()
        super().__init__(("127.0.0.1", 0), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Keep the connection, to be able to end it: clients hold theirs open for the next request."""
        self.open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget the connection."""
        self.open.discard(request)
        super().shutdown_request(request)

    def end_connections(self) -> None:
        """Wake up the threads that wait for another request."""
        for connection in list(self.open):
            with contextlib.suppress(OSError):  # closed by its own thread meanwhile
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away are part of the tests; other errors reach the test through its own asserts."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 30
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Tests are quiet."""

    def do_GET(self) -> None:
        request = self._request()
        if not request.path.endswith("/models"):
            self._json(404, formats.error_body("openai", 404, f"no such path {request.path}"))
            return
        data = [{"id": name, "object": "model", "created": 1, "owned_by": "test"} for name in self.server.owner._models]
        self._json(200, {"object": "list", "data": data})

    def do_POST(self) -> None:
        owner, request = self.server.owner, self._request()
        vendor = "anthropic" if "/messages" in request.path else "openai"
        given = request.headers.get("x-api-key") or request.headers.get("authorization", "").removeprefix("Bearer ")
        if owner._key is not None and given != owner._key:
            self._json(401, formats.error_body(vendor, 401, f"invalid key: {given}", code="invalid_api_key"))
        elif request.path.endswith("/count_tokens"):
            self._json(200, {"input_tokens": len(json.dumps(request.body)) // 4})
        elif request.api not in _RULES:
            self._json(404, formats.error_body(vendor, 404, f"no such path {request.path}"))
        else:
            step, number = owner._next(request)
            with owner._lock:
                owner.active += 1
                owner.most_active = max(owner.most_active, owner.active)
            try:
                self._perform(step, request, vendor, number)
            except ConnectionError:
                owner.disconnected.set()
                self.close_connection = True
            finally:
                with owner._lock:
                    owner.active -= 1

    def _request(self) -> Request:
        length = int(self.headers.get("content-length") or 0)
        raw = self.rfile.read(length)
        path = self.path.partition("?")[0]
        api = next((name for end, name in _PATHS.items() if path.endswith(end)), path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(api, path, headers, json.loads(raw) if raw else {}, time.monotonic())
        self.server.owner.requests.append(request)
        return request

    def _perform(self, step: Any, request: Request, vendor: str, number: int) -> None:
        if isinstance(step, ErrorReply):
            body = step.body
            if body is None:
                body = formats.error_body(vendor, step.status, step.message, step.kind, step.code)
            if step.status == 200:
                name = "error" if vendor == "anthropic" else None
                self._stream(formats.encode_events([(name, body)]))
            else:
                self._json(step.status, body, step.headers)
        elif isinstance(step, RawStream):
            self._begin(step.content_type)
            for chunk in step.chunks:
                self._chunk(chunk)
            self._end()
        elif isinstance(step, Reply) and not request.body.get("stream"):
            make = formats.anthropic_message if request.api == "anthropic" else formats.chat_completion
            self._json(200, make(step, request.body["model"], number))
        elif isinstance(step, Reply):
            self._stream(_encode(step, request, number))
        elif isinstance(step, Drop):
            self._begin()
            self._write(_encode(step.reply, request, number)[: step.after])
            if step.clean:
                self._end()
            else:
                self._break()
        elif isinstance(step, Stall):
            self._begin()
            self._write(_encode(step.reply, request, number)[: step.after])
            self._wait()
        else:
            raise TypeError(f"no step: {step!r}")

    def _json(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        raw = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        self.send_header("content-type", "text/html" if isinstance(body, str) else "application/json")
        self.send_header("content-length", str(len(raw)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)

    def _stream(self, raw: bytes) -> None:
        self._begin()
        self._write(raw)
        self._end()

    def _begin(self, content_type: str = "text/event-stream") -> None:
        self.send_response(200)
        self.send_header("content-type", content_type)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def _write(self, raw: bytes) -> None:
        size = self.server.owner._write or max(1, len(raw))
        for start in range(0, len(raw), size):
            self._chunk(raw[start : start + size])

    def _chunk(self, raw: bytes) -> None:
        if raw:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(raw), raw))
            self.wfile.flush()

    def _end(self) -> None:
        self.wfile.write(b"0\r\n\r\n")

    def _break(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _wait(self) -> None:
        """Until the client closes its side, or the server stops."""
        owner = self.server.owner
        while not owner._closing.is_set():
            readable, _, _ = select.select([self.connection], [], [], 0.02)
            if readable and not self.connection.recv(1):
                raise ConnectionAbortedError("the client went away")
        self.close_connection = True


def _encode(reply: Reply, request: Request, number: int) -> bytes:
    model = request.body["model"]
    if request.api == "anthropic":
        events = formats.anthropic_events(reply, model, number)
    elif request.api == "responses":
        events = formats.responses_events(reply, model, number)
    else:
        usage = bool((request.body.get("stream_options") or {}).get("include_usage"))
        events = formats.chat_chunks(reply, model, number, usage=usage)
    return formats.encode_events(events)
