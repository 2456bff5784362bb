"""Frames: heads read without parsing, bodies renumbered and otherwise untouched."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dap_agent.wire.frames import Frame
from dap_agent.wire.messages import InvalidMessage

KEYS = st.sampled_from(["seq", "request_seq", "type", "command", "s\x00eq", 'a"seq', "über", "\ud800", "body"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-10, 10) | st.floats(allow_nan=False, allow_infinity=False) | KEYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)
NUMBERS = st.integers(-5, 10**9)


@st.composite
def written(draw):
    """A message and one of the ways in which peers write it."""
    kind = draw(st.sampled_from(["request", "response", "event"]))
    name = draw(st.sampled_from(["stackTrace", "dapAgent/ping", "stopped", "über", ""]))
    message = {"seq": draw(NUMBERS), "type": kind}
    if kind == "response":
        message |= {"request_seq": draw(NUMBERS), "success": draw(st.booleans())}
    message["event" if kind == "event" else "command"] = name
    if draw(st.booleans()):
        message["arguments" if kind == "request" else "body"] = draw(JSON)
    if draw(st.booleans()):
        message = dict(draw(st.permutations(list(message.items()))))
    separators = draw(st.sampled_from([(", ", ": "), (",", ":")]))
    text = json.dumps(message, separators=separators, indent=draw(st.sampled_from([None, None, 1])))
    return message, text.encode()


@given(written(), st.sampled_from([Frame.peek, Frame.parse]))
def test_head_is_right_however_it_is_written(case, read):
    message, body = case
    frame = read(body)
    assert (frame.kind, frame.name) == (message["type"], message.get("command", message.get("event")))
    assert frame.request_seq == message.get("request_seq", 0)
    assert frame.success is message.get("success", False)
    assert frame.message == message


@given(written(), st.sampled_from([Frame.peek, Frame.parse]), NUMBERS, NUMBERS)
def test_renumbering_changes_the_numbers_and_nothing_else(case, read, seq, request_seq):
    message, body = case
    if message["type"] == "response":
        assert json.loads(read(body).renumbered(seq, request_seq)) == {
            **message,
            "seq": seq,
            "request_seq": request_seq,
        }
    assert json.loads(read(body).renumbered(seq)) == {**message, "seq": seq}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # as debugpy, VS Code and nvim-dap write
        (b'{"seq": 7, "type": "event", "event": "output", "body": {"output": "1e5\\u00e9 \\ud83d\\ude00"}}', None),
        (b'{"command":"next","arguments":{"threadId":1.0},"type":"request","seq":7}', None),
        (b'{"type":"request","seq":7,"command":"next"}', None),
        # a key twice counts last for every JSON parser, so the first must not be what is changed
        (b'{"seq":7,"type":"request","command":"next","seq":7}', 1234),
        (b'{"s\\u0065q":7,"seq":7,"type":"request","command":"next","s\\u0065q":7}', 1234),
    ],
)
def test_bytes_stay_unless_that_is_not_safe(body, expected):
    changed = Frame.parse(body).renumbered(1234)
    if expected is None:
        assert changed == body.replace(b"7", b"1234")
    else:
        assert json.loads(changed)["seq"] == expected


def test_a_head_that_lies_is_found_out_when_the_whole_is_read():
    frame = Frame.peek(b'{"seq": 1, "type": "event", "event": "output", "event": "stopped"}')
    assert frame.name == "output"
    with pytest.raises(InvalidMessage, match="two things at once"):
        frame.message  # noqa: B018
    with pytest.raises(InvalidMessage, match="not JSON"):
        Frame.peek(b'{"seq": 1, "type": "event", "event": "output", }').message  # noqa: B018


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_a_frame_or_invalid(body):
    for raw in (body, b'{"seq": 1, "type": "event", "event": "x"' + body, b'{"seq": 1, "type": "response", ' + body):
        try:
            frame = Frame.peek(raw)
            frame.renumbered(5)
        except InvalidMessage:
            pass  # the only failure there may be
