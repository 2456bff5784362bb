"""What a failed request means, in words for the user: one table for both SDKs, which share the shapes of their errors.

Exceptions are told apart by class name, so that no SDK is imported here and the transport's own exceptions (which the
anthropic SDK lets through in the middle of a stream) are known without naming the HTTP library.
"""

import json
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from dap_agent.models.base import ErrorKind, ModelError

# the words of Anthropic, OpenAI, llama-server, vLLM, LM Studio
_OVERFLOW = re.compile(
    r"prompt is too long|exceed\w* (?:the )?(?:context|model's (?:maximum )?context)|maximum context length"
    r"|context[_ ]length[_ ]exceeded|context limit|exceeds? the (?:available )?context|greater than the context length"
    r"|input is too long|input tokens exceed|request too large for context|context window",
    re.IGNORECASE,
)
_BILLING = re.compile(r"credit balance|insufficient_quota|exceeded your current quota|billing", re.IGNORECASE)
_STATUS_OF_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "api_error": 500,
    "server_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class BrokenStream(Exception):
    """The answer ended before it was complete, or cannot be read."""


class StreamError(Exception):
    """An error that the provider reports inside of a stream.

    Args:
        body: its error object.
    """

    def __init__(self, body: Mapping[str, Any]) -> None:
        super().__init__(str(body.get("message", "")))
        self.body = body


@dataclass(frozen=True)
class Endpoint:
    """Who is asked, for messages.

    Args:
        label: the provider, as the start of a sentence.
        model: the model's name there.
        url: the base URL; user information and query are cut off by `public_url`.
        url_source: what the user sets to change the URL, for example an environment variable.
        key_variables: the environment variables that may hold the key.
        secrets: texts that must not appear in any message.
        timeout: seconds, as told in messages.
        local: a server that the user runs.
    """

    label: str
    model: str
    url: str
    url_source: str
    key_variables: tuple[str, ...]
    secrets: tuple[str, ...] = field(default=(), repr=False)
    timeout: float = 120.0
    local: bool = False

    def clean(self, text: str) -> str:
        """*text* on one line, bounded, without secrets."""
        for secret in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(secret, "***")
        text = re.sub(r"\b(?:sk|key)-[\w*-]{8,}", "***", text)
        text = " ".join(text.split())
        return text if len(text) <= 300 else text[:297] + "..."

    def keys(self) -> str:
        """The variable that holds the key, or all that may."""
        given = [name for name in self.key_variables if os.environ.get(name)]
        return given[0] if given else " or ".join(self.key_variables)


@dataclass(frozen=True)
class Failure:
    """A failed attempt.

    Args:
        message: one sentence or two for the user.
        kind: for `ModelError`.
        retryable: repeating may help.
        retry_after: seconds that the server asks us to wait.
        limit: repeat at most so often, whatever the general limit.
        detail: the provider's own words, for code that adapts the request.
        parameter: the parameter that the provider complains about.
    """

    message: str
    kind: ErrorKind
    retryable: bool = False
    retry_after: float | None = None
    limit: int | None = None
    detail: str = ""
    parameter: str = ""

    def after(self, attempts: int) -> str:
        """The message when *attempts* attempts have failed."""
        return f"{self.message} (Gave up after {attempts} attempts.)"


def public_url(url: str) -> str:
    """*url* without user information and query, which may hold keys."""
    try:
        parts = urlsplit(url)
    except ValueError:  # no URL at all, which a request will tell
        return re.sub(r"[^/]*@|\?.*", "", url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))


def header_secrets(variable: str) -> tuple[str, ...]:
    """The values of the headers that an SDK takes from *variable* (`NAME: VALUE`, one a line); any may be a key."""
    values = (line.partition(":")[2].strip() for line in os.environ.get(variable, "").split("\n"))
    return tuple(word for value in values for word in (value, value.rpartition(" ")[2]) if len(word) >= 8)


def check_key(key: str, variable: str) -> None:
    """Refuse a key that no HTTP header can carry; the SDKs' own errors would print it.

    Raises:
        ModelError: it holds white space, control or non-ASCII characters.
    """
    if not key.isascii() or any(character <= " " or character == "\x7f" for character in key):
        raise ModelError(
            f"The key in {variable} cannot be one, it holds white space or characters that are not ASCII: "
            "set it again, without quotes and line ends.",
            "wrong-key",
        )


def missing_key(endpoint: Endpoint) -> ModelError:
    """The error for a provider without a key."""
    return ModelError(
        f"There is no key for {endpoint.label}: set {' or '.join(endpoint.key_variables)} in the environment, or "
        "choose another model (local:URL needs no key).",
        "missing-key",
    )


def classify(error: Exception, endpoint: Endpoint) -> Failure | None:
    """What *error* means; None if it does not come from the provider or the way to it."""
    names = {cls.__name__ for cls in type(error).__mro__}
    if isinstance(error, ModelError):
        return None
    if isinstance(error, BrokenStream):
        return _broken(endpoint, str(error))
    if names & {"APITimeoutError", "TimeoutException"}:
        return Failure(
            f"{endpoint.label} sent nothing for {endpoint.timeout:g} s ({endpoint.url}): try again later, or allow "
            "more time.",
            "timeout",
            retryable=True,
            limit=1,  # each costs the whole timeout
        )
    if "APIStatusError" in names:
        return _status(error, endpoint)
    if names & {"APIConnectionError", "TransportError"}:
        return _transport(error, endpoint)
    if names & {"UnsupportedProtocol", "InvalidURL"}:
        return _bad_url(endpoint)
    if names & {"APIError", "StreamError"} or isinstance(error, (json.JSONDecodeError, UnicodeDecodeError)):
        return _in_stream(error, endpoint)
    if isinstance(error, TypeError) and "authentication method" in str(error):
        failure = missing_key(endpoint)
        return Failure(failure.message, failure.kind)
    return None


def _broken(endpoint: Endpoint, why: str) -> Failure:
    message = f"{endpoint.label} broke off its answer ({endpoint.clean(why)})."
    return Failure(message, "server", retryable=True)


def _bad_url(endpoint: Endpoint) -> Failure:
    return Failure(
        f"{endpoint.url!r} is no URL of an HTTP server: correct {endpoint.url_source}, for example "
        "https://host.example/v1.",
        "bad-request",
    )


def _transport(error: Exception, endpoint: Endpoint) -> Failure:
    chain: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in chain:
        chain.append(link)
        link = link.__cause__ or link.__context__
    names = {cls.__name__ for each in chain for cls in type(each).__mro__}
    if names & {"UnsupportedProtocol", "InvalidURL", "LocalProtocolError"}:
        return _bad_url(endpoint)
    why = endpoint.clean(next((str(each) for each in chain[1:] if str(each)), str(error)))
    if names & {"ConnectError", "gaierror", "ConnectionRefusedError", "SSLError", "ProxyError"}:
        what = "is it running? Start it, or correct" if endpoint.local else "check the network and"
        return Failure(
            f"{endpoint.label} cannot be reached at {endpoint.url} ({why}): {what} {endpoint.url_source}.",
            "unreachable",
            retryable=not endpoint.local,
        )
    return _broken(endpoint, why or type(error).__name__)


def _in_stream(error: Exception, endpoint: Endpoint) -> Failure:
    """An error that came inside of a stream whose status was 200, or bytes that are no stream at all."""
    if isinstance(error, ValueError):
        return _broken(endpoint, "it holds data that is no JSON")
    kind, code, message, parameter = _details(getattr(error, "body", None))
    status = _STATUS_OF_TYPE.get(kind) or _STATUS_OF_TYPE.get(code) or (int(code) if code.isdigit() else 0)
    return _by_status(status or 500, kind, code, message or str(error), parameter, None, endpoint)


def _status(error: Exception, endpoint: Endpoint) -> Failure:
    kind, code, message, parameter = _details(getattr(error, "body", None))
    status = int(getattr(error, "status_code", 0))
    response = getattr(error, "response", None)
    headers: Mapping[str, str] = getattr(response, "headers", {})
    if status < 400:  # anthropic: an error event in a stream that began with 200
        status = _STATUS_OF_TYPE.get(kind, 500)
    if not message:
        message = re.sub(r"<[^>]*>", " ", _text(response))
    return _by_status(status, kind, code, message, parameter, headers, endpoint)


def _by_status(
    status: int,
    kind: str,
    code: str,
    message: str,
    parameter: str,
    headers: Mapping[str, str] | None,
    endpoint: Endpoint,
) -> Failure:
    words = endpoint.clean(message)
    said = f"HTTP {status}: {words}" if words else f"HTTP {status}"
    label, model = endpoint.label, endpoint.model
    wait = retry_after(headers or {})
    wish = (headers or {}).get("x-should-retry", "").lower()
    if {kind, code} & {"context_length_exceeded", "exceed_context_size_error", "request_too_large"} or (
        status in (400, 413, 422, 500) and (status == 413 or _OVERFLOW.search(message))
    ):
        return Failure(
            f"The conversation has become too long for {model} ({said}): use a model with a larger context"
            f"{' or start the server with one' if endpoint.local else ''}, or fewer turns.",
            "context-overflow",
            detail=words,
        )
    if (
        status == 402
        or (status == 429 and _BILLING.search(f"{kind} {code} {message}"))
        or (status == 400 and _BILLING.search(message))
    ):
        return Failure(
            f"The account at {label} has no credit left ({said}): look at its billing page, or use another key.",
            "rate-limit",
            detail=words,
        )
    if status == 401:
        return Failure(f"{label} refused the key ({said}): check {endpoint.keys()}.", "wrong-key", detail=words)
    if status == 403:
        return Failure(
            f"{label} does not let this key use {model} ({said}): check {endpoint.keys()} and the account's rights.",
            "wrong-key",
            detail=words,
        )
    if status == 404:
        return Failure(
            f"{label} at {endpoint.url} does not know {f'the model {model} or ' if model else ''}the path ({said}): "
            f"check {'the name of the model and ' if model else ''}{endpoint.url_source}.",
            "bad-request",
            detail=words,
        )
    if status == 429:
        too_big = "request too large" in message.lower()  # OpenAI: one request above the limit per minute
        asked = f" It asks for a pause of {wait:g} s." if wait else ""
        return Failure(
            f"{label} limits the rate of requests ({said}).{asked}",
            "rate-limit",
            retryable=wish != "false" and not too_big,
            retry_after=wait,
            detail=words,
        )
    if status in (408, 409) or status >= 500 or wish == "true":
        state = "is overloaded" if status == 529 else "has a problem"
        return Failure(
            f"{label} {state} ({said}).",
            "timeout" if status in (408, 504) else "server",
            retryable=wish != "false",
            retry_after=wait,
            detail=words,
        )
    return Failure(
        f"{label} rejected the request for {model} ({said}).", "bad-request", detail=words, parameter=parameter
    )


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds that `retry-after-ms` or `retry-after` (seconds or an HTTP date, RFC 9110 10.2.3) ask for."""
    from email.utils import parsedate_to_datetime

    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name)
        if text is None:
            continue
        try:
            seconds = float(text) * scale
        except ValueError:
            try:
                seconds = parsedate_to_datetime(text).timestamp() - (time.time() if now is None else now)
            except ValueError:
                continue
        if 0 <= seconds < float("inf"):
            return seconds
    return None


def _details(body: Any) -> tuple[str, str, str, str]:
    """(type, code, message, parameter) of either vendor's error body."""
    if isinstance(body, Mapping) and isinstance(body.get("error"), (Mapping, str)):
        inner = body["error"]
        body = inner if isinstance(inner, Mapping) else {**body, "message": inner}
    if not isinstance(body, Mapping):
        return "", "", body if isinstance(body, str) else "", ""
    values = (body.get(key) for key in ("type", "code", "message", "param"))
    kind, code, message, parameter = ("" if value is None else str(value) for value in values)
    return kind, code, message, parameter


def _text(response: Any) -> str:
    try:
        return str(response.text)
    except RuntimeError:  # ResponseNotRead: the body of a stream may not have been read; then there are no words
        return ""
