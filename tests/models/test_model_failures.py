"""What goes wrong between us and a model: words, kinds, repetitions, and no key anywhere."""

import json
import logging
import os
import socket
import traceback
from typing import Any

import pytest

from dap_agent.models import registry
from dap_agent.models.base import ModelError, Retry
from dap_agent.models.errors import Endpoint, Failure, public_url, retry_after
from dap_agent.models.retry import Retries
from dap_agent.testing import Drop, ErrorReply, RawStream, Reply, Stall

OVERFLOWS = [
    (400, "prompt is too long: 208310 tokens > 200000 maximum", None),
    (400, "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000", None),
    (413, "Request exceeds the maximum size", "request_too_large"),
    (400, "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000", None),
    (400, "Input tokens exceed the configured limit of 272000 tokens.", None),
    (400, "try increasing it", "exceed_context_size_error"),
    (500, "the request exceeds the available context size, try increasing it", None),
]


@pytest.mark.parametrize(("status", "words", "kind"), OVERFLOWS)
def test_context_overflow(kit: Any, api: str, status: int, words: str, kind: str | None) -> None:
    server = kit.serve(ErrorReply(status, words, kind))
    error = kit.failure(kit.backend(api, server))
    assert error.kind == "context-overflow"
    assert words in error.message
    assert "has become too long for m" in error.message
    assert len(server.requests) == 1


def test_context_overflow_by_code(kit: Any) -> None:
    server = kit.serve(ErrorReply(400, "too much", code="context_length_exceeded"))
    assert kit.failure(kit.backend("openai", server)).kind == "context-overflow"


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (400, "bad-request", "rejected the request for m (HTTP 400: made by the test)"),
        (401, "wrong-key", "refused the key"),
        (403, "wrong-key", "does not let this key use m"),
        (404, "bad-request", "does not know the model m"),
        (422, "bad-request", "rejected the request"),
        (402, "rate-limit", "no credit left"),
    ],
)
def test_failures_that_are_not_repeated(kit: Any, api: str, status: int, kind: str, words: str) -> None:
    server = kit.serve(ErrorReply(status), Reply("never"))
    backend = kit.backend(api, server)
    error = kit.failure(backend)
    assert error.kind == kind
    assert words in error.message
    assert len(server.requests) == 1
    assert backend.slept == []


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (429, "rate-limit", "limits the rate"),
        (500, "server", "has a problem"),
        (502, "server", "has a problem"),
        (529, "server", "is overloaded"),
        (408, "timeout", "has a problem"),
        (504, "timeout", "has a problem"),
    ],
)
def test_failures_that_are_repeated(kit: Any, api: str, status: int, kind: str, words: str) -> None:
    server = kit.serve(ErrorReply(status), ErrorReply(status), Reply("at last"))
    backend = kit.backend(api, server)
    told: list[Retry] = []
    backend.on_retry = told.append
    assert kit.run(kit.ask(backend)).text == "at last"
    assert len(server.requests) == 3
    assert [retry.attempt for retry in told] == [1, 2]
    assert [retry.delay for retry in told] == backend.slept
    assert 0.375 <= backend.slept[0] <= 0.5
    assert 0.75 <= backend.slept[1] <= 1.0
    assert words in told[0].reason

    server = kit.serve(*[ErrorReply(status)] * 3)
    error = kit.failure(kit.backend(api, server, max_retries=2))
    assert error.kind == kind
    assert "Gave up after 3 attempts" in error.message
    assert len(server.requests) == 3


def test_the_server_s_wish_for_a_pause_is_granted(kit: Any, api: str) -> None:
    server = kit.serve(
        ErrorReply(429, headers={"retry-after-ms": "20", "retry-after": "7"}),
        ErrorReply(529, headers={"retry-after": "7"}),
        Reply("ok"),
    )
    backend = kit.backend(api, server)
    kit.run(kit.ask(backend))
    assert backend.slept == [0.02, 7.0]


def test_a_pause_that_is_too_long_is_told_instead(kit: Any, api: str) -> None:
    server = kit.serve(ErrorReply(429, headers={"retry-after": "3600"}))
    backend = kit.backend(api, server)
    assert "asks for a pause of 3600 s" in kit.failure(backend).message
    assert backend.slept == []


@pytest.mark.parametrize(("status", "wish", "requests"), [(500, "false", 1), (400, "true", 2)])
def test_the_server_s_word_on_repeating_counts(kit: Any, api: str, status: int, wish: str, requests: int) -> None:
    server = kit.serve(ErrorReply(status, headers={"x-should-retry": wish}), Reply("ok"))
    backend = kit.backend(api, server)
    if requests == 1:
        kit.failure(backend)
    else:
        kit.run(kit.ask(backend))
    assert len(server.requests) == requests


@pytest.mark.parametrize(
    "words",
    [
        "Your credit balance is too low to access the API.",
        "You exceeded your current quota, check your billing details.",
    ],
)
@pytest.mark.parametrize("status", [400, 429])
def test_no_credit_left(kit: Any, api: str, words: str, status: int) -> None:
    server = kit.serve(ErrorReply(status, words))
    error = kit.failure(kit.backend(api, server))
    assert error.kind == "rate-limit"
    assert "no credit left" in error.message
    assert len(server.requests) == 1


def test_a_single_request_above_the_rate_limit_is_not_repeated(kit: Any) -> None:
    server = kit.serve(
        ErrorReply(429, "Request too large for m on tokens per min (TPM): Limit 30000, Requested 45000.")
    )
    assert kit.failure(kit.backend("openai", server)).kind == "rate-limit"
    assert len(server.requests) == 1


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("after", [0, 30, 400, -20])
def test_a_stream_that_breaks_off_is_asked_for_again(kit: Any, api: str, after: int, clean: bool) -> None:
    whole = Reply("The first half of it.", [("frame", {"number": 0})])
    server = kit.serve(Drop(after, whole, clean), whole)
    backend = kit.backend(api, server)
    told: list[Retry] = []
    backend.on_retry = told.append
    heard: list[str] = []
    turn = kit.run(kit.ask(backend, on_text=heard.append))
    assert (turn.text, turn.stop) == ("The first half of it.", "calls")
    if told:  # where only the end mark is missing, the answer is complete
        assert "broke off its answer" in told[0].reason
        assert "".join(heard)[told[0].discarded :] == turn.text
    assert len(server.requests) == len(told) + 1
    assert len(told) == 1 or after == -20


def test_a_stream_that_always_breaks_off(kit: Any, api: str) -> None:
    server = kit.serve(*[Drop(200)] * 3)
    error = kit.failure(kit.backend(api, server, max_retries=2))
    assert error.kind == "server"
    assert "broke off its answer" in error.message
    assert len(server.requests) == 3


@pytest.mark.parametrize("garbage", [b"data: {broken\n\n", b"data: \xff\xfe\n\n", b"<html>proxy</html>\n\n", b""])
def test_garbage_instead_of_a_stream(kit: Any, api: str, garbage: bytes) -> None:
    event = b"event: message_start\n" if api == "anthropic" else b""
    server = kit.serve(RawStream([event + garbage]), Reply("ok"))
    backend = kit.backend(api, server)
    assert kit.run(kit.ask(backend)).text == "ok"
    assert len(backend.slept) == 1


@pytest.mark.parametrize(
    ("name", "kind"), [("overloaded_error", "server"), ("rate_limit_error", "rate-limit"), ("api_error", "server")]
)
def test_an_error_inside_of_a_stream(kit: Any, api: str, name: str, kind: str) -> None:
    server = kit.serve(ErrorReply(200, "no capacity", name), Reply("ok"))
    assert kit.run(kit.ask(kit.backend(api, server))).text == "ok"
    server = kit.serve(ErrorReply(200, "no capacity", name))
    error = kit.failure(kit.backend(api, server, max_retries=0))
    assert error.kind == kind
    assert "no capacity" in error.message


def test_a_response_that_fails(kit: Any) -> None:
    response = {"id": "r", "status": "failed", "error": {"code": "server_error", "message": "oops"}}
    event = {"type": "response.failed", "sequence_number": 0, "response": response}
    failed = RawStream([f"event: response.failed\ndata: {json.dumps(event)}\n\n".encode()])
    server = kit.serve(failed, Reply("ok"))
    backend = kit.backend("responses", server)
    told: list[Retry] = []
    backend.on_retry = told.append
    assert kit.run(kit.ask(backend)).text == "ok"
    assert "oops" in told[0].reason


def test_an_overflow_inside_of_a_stream(kit: Any) -> None:
    words = "The number of tokens to keep from the initial prompt is greater than the context length."
    server = kit.serve(ErrorReply(200, body={"error": {"message": words}}))
    assert kit.failure(kit.backend("local", server)).kind == "context-overflow"


@pytest.mark.parametrize("after", [0, 150])
def test_silence(kit: Any, api: str, after: int) -> None:
    server = kit.serve(Stall(after), Stall(after))
    backend = kit.backend(api, server, timeout=0.2)
    told: list[Retry] = []
    backend.on_retry = told.append
    error = kit.failure(backend)
    assert error.kind == "timeout"
    assert "sent nothing for 0.2 s" in error.message
    assert len(server.requests) == 2  # each costs the whole timeout, so only one repetition
    assert len(told) == 1


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def test_nobody_there(kit: Any, api: str) -> None:
    server = kit.serve()
    address = f"http://127.0.0.1:{free_port()}"
    kit.monkeypatch.setenv("ANTHROPIC_BASE_URL", address)
    kit.monkeypatch.setenv("OPENAI_BASE_URL", f"{address}/v1")
    if api == "local":
        backend = registry.create(f"local:{address}#m")
        wanted = "correct the URL in local:URL"
    else:
        backend = kit.backend(api, server)
        wanted = "check the network and " + ("ANTHROPIC_BASE_URL" if api == "anthropic" else "OPENAI_BASE_URL")
    error = kit.failure(backend)
    assert error.kind == "unreachable"
    assert address in error.message
    assert wanted in error.message
    assert len(getattr(backend, "slept", [])) == (0 if api == "local" else 4)  # a server of ours is not up, or it is


@pytest.mark.parametrize("address", ["ftp://127.0.0.1", "127.0.0.1:1", "http://[::1", "nonsense"])
def test_an_address_that_is_none(kit: Any, address: str) -> None:
    server = kit.serve()
    kit.monkeypatch.setenv("ANTHROPIC_BASE_URL", address)
    kit.monkeypatch.setenv("OPENAI_BASE_URL", address)
    for api, variable in (("anthropic", "ANTHROPIC_BASE_URL"), ("openai", "OPENAI_BASE_URL")):
        with pytest.raises(ModelError) as caught:
            kit.run(kit.ask(kit.backend(api, server)))
        assert caught.value.kind == "bad-request"
        assert variable in caught.value.message


class TestKeys:
    @pytest.mark.parametrize(
        ("spec", "variable"), [("anthropic:m", "ANTHROPIC_API_KEY"), ("openai:m", "OPENAI_API_KEY")]
    )
    def test_missing(self, spec: str, variable: str) -> None:
        with pytest.raises(ModelError) as caught:
            registry.create(spec)
        assert caught.value.kind == "missing-key"
        assert variable in caught.value.message

    @pytest.mark.parametrize("key", ["sk-two words", "sk-line\n", "sk-größe", "\tsk"])
    @pytest.mark.parametrize(
        ("spec", "variable"), [("anthropic:m", "ANTHROPIC_API_KEY"), ("openai:m", "OPENAI_API_KEY")]
    )
    def test_impossible(self, kit: Any, spec: str, variable: str, key: str) -> None:
        kit.monkeypatch.setenv(variable, key)
        with pytest.raises(ModelError) as caught:
            registry.create(spec)
        assert caught.value.kind == "wrong-key"
        assert variable in caught.value.message
        assert key.strip() not in caught.value.message

    def test_the_token_of_anthropic(self, kit: Any) -> None:
        server = kit.serve(Reply("ok"), key="a-token-0123456789")
        kit.monkeypatch.delenv("ANTHROPIC_API_KEY")
        kit.monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "a-token-0123456789")
        assert kit.run(kit.ask(kit.backend("anthropic", server))).text == "ok"
        assert server.requests[0].headers["authorization"] == "Bearer a-token-0123456789"

    def test_custom_headers_instead_of_a_key(self, kit: Any) -> None:
        server = kit.serve(Reply("ok"))
        kit.monkeypatch.delenv("ANTHROPIC_API_KEY")
        kit.monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Api-Key: from-the-gateway")
        assert kit.run(kit.ask(kit.backend("anthropic", server))).text == "ok"
        assert server.requests[0].headers["x-api-key"] == "from-the-gateway"
        server.add(ErrorReply(400, "odd header from-the-gateway"))
        assert "from-the-gateway" not in kit.failure(kit.backend("anthropic", server)).message

    def test_a_profile_of_the_sdk_that_cannot_be_read(self, kit: Any) -> None:
        kit.monkeypatch.setenv("ANTHROPIC_PROFILE", "absent")
        with pytest.raises(ModelError) as caught:
            registry.create("anthropic:m")
        assert caught.value.kind == "missing-key"
        assert "absent" in caught.value.message

    def test_wrong(self, kit: Any, api: str) -> None:
        server = kit.serve(key="another")
        if api == "local":
            kit.monkeypatch.setenv("DAP_AGENT_LOCAL_API_KEY", kit.KEY)
        error = kit.failure(kit.backend(api, server))
        assert error.kind == "wrong-key"
        variable = {"anthropic": "ANTHROPIC_API_KEY", "local": "DAP_AGENT_LOCAL_API_KEY"}.get(api, "OPENAI_API_KEY")
        assert f"check {variable}" in error.message

    @pytest.mark.parametrize(
        "step",
        [
            ErrorReply(401, f"Incorrect API key provided: {'sk-test-SECRET-0123456789abcdef'}."),
            ErrorReply(400, "header x-api-key: sk-test-SECRET-0123456789abcdef is odd"),
            ErrorReply(500, body="<html>sk-test-SECRET-0123456789abcdef</html>"),
            ErrorReply(200, "sk-test-SECRET-0123456789abcdef", "api_error"),
            Drop(50),
        ],
    )
    def test_appear_nowhere(self, kit: Any, api: str, step: Any, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        server = kit.serve(step, step)
        if api == "local":
            kit.monkeypatch.setenv("DAP_AGENT_LOCAL_API_KEY", kit.KEY)
        backend = kit.backend(api, server, max_retries=1)
        told: list[Retry] = []
        backend.on_retry = told.append
        try:
            kit.run(kit.ask(backend))
        except ModelError as error:
            shown = "".join(traceback.format_exception(error)) + repr(error) + str(error.__context__)
            assert error.__context__ is None  # an SDK's exception holds the request
        else:
            raise AssertionError("the request should have failed")
        shown += repr(backend) + repr(told) + repr(vars(backend)["_endpoint"]) + backend.name
        assert kit.KEY not in shown
        ours = "".join(record.getMessage() for record in caplog.records if record.name.startswith("dap_agent"))
        assert kit.KEY not in ours
        assert kit.KEY not in caplog.text
        assert server.requests[0].headers.get("x-api-key") == kit.KEY or kit.KEY in str(server.requests[0].headers)

    def test_the_key_of_openai_is_not_sent_to_a_local_server(self, kit: Any) -> None:
        server = kit.serve(Reply("ok"))
        kit.monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
        kit.monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway: gate-secret\nAuthorization: Bearer auth-secret")
        kit.run(kit.ask(kit.backend("local", server)))
        sent = str(server.requests[0].headers)
        for secret in (kit.KEY, "org-secret", "gate-secret", "auth-secret"):
            assert secret not in sent


def test_a_proxy_of_the_environment_is_not_asked_for_loopback(kit: Any) -> None:
    server = kit.serve(Reply("ok"))
    kit.monkeypatch.delenv("NO_PROXY")
    kit.monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    assert kit.run(kit.ask(kit.backend("local", server))).text == "ok"


def test_errors_of_ours_are_not_taken_for_the_model_s(kit: Any, api: str) -> None:
    server = kit.serve(Reply("some text"))

    def fail(text: str) -> None:
        raise ZeroDivisionError(text)

    with pytest.raises(ZeroDivisionError):
        kit.run(kit.ask(kit.backend(api, server), on_text=fail))
    assert len(server.requests) == 1


def test_a_missing_sdk(kit: Any) -> None:
    server = kit.serve()
    backend = kit.backend("openai", server)
    kit.monkeypatch.setitem(__import__("sys").modules, "openai", None)
    assert "package openai cannot be imported" in kit.failure(backend).message


class TestRetries:
    def test_delays_double_up_to_a_cap_with_jitter(self) -> None:
        failure = Failure("x", "server", retryable=True)
        steady = Retries(limit=9, jitter=lambda: 0.0)
        assert [steady.delay(failure, number) for number in range(1, 8)] == [0.5, 1, 2, 4, 8, 16, 20]
        shaken = Retries(limit=9, jitter=lambda: 1.0)
        assert shaken.delay(failure, 3) == 1.5
        assert steady.delay(failure, 10) is None

    @pytest.mark.parametrize(
        ("headers", "seconds"),
        [
            ({}, None),
            ({"retry-after": "2"}, 2.0),
            ({"retry-after": "0.5"}, 0.5),
            ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
            ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 40.0),
            ({"retry-after": "Thu, 01 Jan 1970 00:00:10 GMT"}, None),
            ({"retry-after": "soon"}, None),
            ({"retry-after-ms": "soon", "retry-after": "3"}, 3.0),
            ({"retry-after": "-1"}, None),
            ({"retry-after": "inf"}, None),
            ({"retry-after": "nan"}, None),
        ],
    )
    def test_what_a_server_asks_for(self, headers: dict[str, str], seconds: float | None) -> None:
        assert retry_after(headers, now=60.0) == seconds


def test_addresses_are_shown_without_secrets() -> None:
    assert public_url("https://user:pass@host.example:8443/v1/?key=secret#x") == "https://host.example:8443/v1"


def test_long_and_ragged_words_of_a_server_are_tidied() -> None:
    endpoint = Endpoint("X", "m", "http://x", "URL", ("KEY",), secrets=("topsecret",))
    assert endpoint.clean("a\n\n  b topsecret") == "a b ***"
    assert endpoint.clean("key sk-abcdefgh12345678 and sk-proj-*****abcd") == "key *** and ***"
    assert len(endpoint.clean("x" * 1000)) == 300
    assert "KEY" not in os.environ
