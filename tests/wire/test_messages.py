"""Messages: what is built can be parsed, what is hostile is refused."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dap_agent.wire import messages
from dap_agent.wire.messages import InvalidMessage

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
BODIES = st.none() | st.dictionaries(st.text(), JSON, max_size=5)


@given(st.text(), BODIES, st.integers(0))
def test_what_is_built_is_parsed(name, body, seq):
    for message in (
        messages.request(name, body, seq=seq),
        messages.response(seq, name, body, seq=seq),
        messages.error_response(seq, name, "no {such} thing", seq=seq),
        messages.event(name, body, seq=seq),
    ):
        assert messages.parse(messages.dumps(message)) == message


def test_predicates():
    assert messages.is_request(messages.request("next"), "next")
    assert not messages.is_request(messages.request("next"), "continue")
    assert messages.is_response(messages.response(1, "next"))
    assert messages.is_event(messages.event("stopped"), "stopped")
    assert not messages.is_event(messages.request("stopped"))


def test_body_of_a_failed_debugpy_response_is_empty():
    assert messages.body_of({"type": "response", "success": False, "message": "no"}) == {}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'"text"',
        b"{",
        b"{}",
        b'{"type": 5}',
        b'{"type": "request", "command": "next"}',
        b'{"type": "request", "seq": true, "command": "next"}',
        b'{"type": "request", "seq": 1.5, "command": "next"}',
        b'{"type": "request", "seq": 1, "command": null}',
        b'{"type": "response", "seq": 1, "success": true, "command": "next"}',
        b'{"type": "response", "seq": 1, "request_seq": 1, "success": 1}',
        b'{"type": "event", "seq": 1}',
        b'{"type": "event", "event": "e", "body": NaN}',
        b'{"type": "event", "event": "e", "body": 1e999}',
        b'{"type": "event", "event": "e", "body": -Infinity}',
        b'{"type": "event", "event": "\xff"}',
        '{"type": "event", "event": "e"}'.encode("utf-16"),
        b"[" * 200_000,
        b'{"type":"event","event":"e","body":' + b'{"a":' * 200_000,
        b'{"type": "event", "event": "e"} trailing',
    ],
)
def test_hostile_bodies_are_refused_in_one_short_sentence(body):
    with pytest.raises(InvalidMessage) as caught:
        messages.parse(body)
    assert len(caught.value.message) < 400


def test_a_broken_request_tells_how_it_can_be_answered():
    with pytest.raises(InvalidMessage) as caught:
        messages.parse(b'{"seq": 12, "type": "request", "command": 5}')
    assert (caught.value.seq, caught.value.command) == (12, None)
    with pytest.raises(InvalidMessage) as caught:
        messages.parse(b'{"seq": 12, "type": "response", "command": "next"}')
    assert caught.value.seq is None


@given(
    st.binary(max_size=300) | st.text(max_size=100).map(str.encode) | JSON.map(lambda value: json.dumps(value).encode())
)
def test_arbitrary_bodies_parse_or_are_invalid(body):
    with contextlib.suppress(InvalidMessage):  # the only failure there may be
        assert isinstance(messages.parse(body), dict)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_not_json_is_not_written(value):
    with pytest.raises(ValueError):
        messages.dumps(messages.event("e", {"value": value}))
