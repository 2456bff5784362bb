"""Framing: any chunking of any messages gives the same messages; anything else is a FramingError."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dap_agent.wire import Decoder, FramingError, encode

FIELDS = st.sampled_from([b"", b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n", b"X-Trace:\r\n"])
NAMES = st.sampled_from([b"Content-Length", b"content-length", b"CONTENT-LENGTH", b"Content-length"])
SPACES = st.sampled_from([b"", b" ", b"  \t"])


@st.composite
def streams(draw):
    """A well-formed stream: its bodies and its bytes."""
    bodies = draw(st.lists(st.binary(max_size=300), max_size=8))
    stream = b""
    for body in bodies:
        before, name, space, after = draw(FIELDS), draw(NAMES), draw(SPACES), draw(FIELDS)
        stream += before + name + b":" + space + b"%d\r\n" % len(body) + after + b"\r\n" + body
    return bodies, stream


@st.composite
def cuts(draw, of):
    """*of* cut into pieces, empty ones among them."""
    places = sorted(draw(st.lists(st.integers(0, len(of)), max_size=20)))
    return [of[a:b] for a, b in zip([0, *places], [*places, len(of)], strict=True)]


def read(pieces, **limits):
    """The bodies in *pieces*, and whether an error followed them."""
    decoder, bodies = Decoder(**limits), []
    try:
        for piece in pieces:
            decoder.feed(piece)
            while (body := decoder.next()) is not None:
                bodies.append(body)
        decoder.eof()
    except FramingError as error:
        return bodies, error
    return bodies, None


@given(st.data(), streams())
def test_any_chunking_gives_the_same_bodies(data, stream):
    bodies, raw = stream
    assert read(data.draw(cuts(raw))) == (bodies, None)


@given(streams())
def test_byte_by_byte_gives_the_same_bodies(stream):
    bodies, raw = stream
    assert read([raw[i : i + 1] for i in range(len(raw))]) == (bodies, None)


@given(st.lists(st.binary(max_size=50)))
def test_what_is_encoded_is_decoded(bodies):
    assert read([b"".join(map(encode, bodies))]) == (bodies, None)


ALMOST = st.lists(
    st.one_of(
        st.binary(max_size=20),
        st.sampled_from(
            [
                b"Content-Length: ",
                b"content-length:",
                b"5",
                b"\r\n",
                b"\r\n\r\n",
                b"\r",
                b"\n",
                b":",
                b"X: y\r\n",
                b"12345",
                b"-1",
            ]
        ),
    ),
    max_size=12,
).map(b"".join)


@given(st.data(), st.one_of(st.binary(max_size=200), ALMOST))
def test_arbitrary_bytes_give_bodies_or_an_error_whatever_the_chunking(data, raw):
    whole, whole_error = read([raw], max_header=30, max_body=20)
    cut, cut_error = read(data.draw(cuts(raw)), max_header=30, max_body=20)
    assert cut == whole
    assert (cut_error is None) == (whole_error is None)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"Traceback (most recent call last):\n", r"Traceback \(most"),
        (b'{"seq": 1}', "{"),
        (b"\r\n\r\n", "no Content-Length|such as"),
        (b"Content-Type: json\r\n\r\n", "no Content-Length"),
        (b"Content-Length: five\r\n\r\n", "not a number"),
        (b"Content-Length: -5\r\n\r\n", "not a number"),
        (b"Content-Length: 0x10\r\n\r\n", "not a number"),
        (b"Content-Length:\r\n\r\n", "not a number"),
        ("Content-Length: ٣\r\n\r\n".encode(), "not a number"),
        (b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", "not a number"),
        (b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n", "two different lengths"),
        (b"Content-Length: 99999999\r\n\r\n", "over the limit"),
        (b"Content-Length: 5\n\nhello", "such as"),
        (b"Content-Length : 5\r\n\r\n", "such as"),
        (b"X: " + b"y" * 9000, "more than 8192 bytes"),
        (b"X: " + b"y" * 9000 + b"\r\nContent-Length: 5\r\n\r\nhello", "more than 8192 bytes"),
    ],
)
def test_garbage_is_told_with_what_was_seen(raw, said):
    decoder = Decoder(max_body=1_000_000)
    decoder.feed(raw)
    with pytest.raises(FramingError, match=said) as caught:
        decoder.next()
    assert len(caught.value.message) < 300


@pytest.mark.parametrize(
    ("raw", "said"),
    [(b"Content-Len", "within a header"), (b"Content-Length: 5\r\n\r\nhel", "after 3 of the 5 bytes")],
)
def test_a_stream_that_ends_within_a_message_is_an_error(raw, said):
    decoder = Decoder()
    decoder.feed(raw)
    assert decoder.next() is None
    with pytest.raises(FramingError, match=said):
        decoder.eof()


def test_the_same_length_twice_is_accepted():
    assert read([b"Content-Length: 2\r\ncontent-length: 2\r\n\r\nhi"]) == ([b"hi"], None)


def test_limits_are_inclusive():
    assert read([b"Content-Length: 20\r\n\r\n" + b"x" * 20], max_body=20, max_header=18) == ([b"x" * 20], None)
    assert read([b"Content-Length: 21\r\n\r\n" + b"x" * 21], max_body=20)[1] is not None
    assert read([b"Content-Length: 20\r\n\r\n" + b"x" * 20], max_header=17)[1] is not None


def test_after_an_error_the_decoder_stays_broken_and_keeps_nothing():
    decoder = Decoder()
    decoder.feed(b"garbage!\r\n\r\n")
    with pytest.raises(FramingError):
        decoder.next()
    tracemalloc.start()
    for _ in range(100):
        decoder.feed(b"x" * 100_000)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 200_000
    with pytest.raises(FramingError):
        decoder.next()
    with pytest.raises(FramingError):
        decoder.eof()


@pytest.mark.parametrize(("size", "piece"), [(300_000, 2), (4_000_000, 1000), (4_000_000, 5000), (4_000_000, 300_000)])
def test_a_big_body_costs_about_its_size_however_it_comes(size, piece):
    raw = encode(b"x" * size)
    decoder = Decoder()
    tracemalloc.start()
    for start in range(0, len(raw), piece):
        decoder.feed(raw[start : start + piece])
        body = decoder.next()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert body is not None and len(body) == size
    assert peak < 3 * size


def test_many_small_messages_in_one_piece_are_not_copied_each_time():
    decoder = Decoder()
    decoder.feed(encode(b"{}") * 100_000)  # quadratic would be minutes
    count = 0
    while decoder.next() is not None:
        count += 1
    assert count == 100_000
