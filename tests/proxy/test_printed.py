"""What is kept of a program's output for questions about its stop."""

from dap_agent.proxy.printed import Printed
from dap_agent.wire.frames import Frame
from dap_agent.wire.messages import dumps, event


def frame(text, category="stdout"):
    return Frame.parse(dumps({**event("output", {"category": category, "output": text}), "seq": 1}))


def test_pieces_become_lines_of_their_stream():
    printed = Printed()
    for text in ("one", "\n", "two\nth", "ree"):
        printed.add(frame(text))
    printed.add(frame("a warning\n", "stderr"))
    printed.add(frame("debugpy's own\n", "console"))
    assert printed.lines() == {"stdout": ["one", "two", "three"], "stderr": ["a warning"]}


def test_a_flood_leaves_its_last_lines_and_no_more():
    printed = Printed()
    for number in range(100_000):
        printed.add(frame(f"line {number}\n"))
    printed.add(frame("x" * 10_000_000))
    lines = printed.lines()["stdout"]
    assert lines[-1] == "line 99999"
    assert len(lines) == 100
    assert sum(len(kept.body) for kept in printed._frames) < 100_000


def test_what_cannot_be_read_is_left_out():
    printed = Printed()
    printed.add(Frame.peek(b'{"seq": 1, "type": "event", "event": "output", "body": {"category": }}'))
    printed.add(frame("fine\n"))
    for body in ({"category": ["stdout"], "output": "x"}, {"category": "stdout", "output": 3}, {}):
        printed.add(Frame.parse(dumps({**event("output", body), "seq": 1})))
    assert printed.lines() == {"stdout": ["fine"], "stderr": []}


def test_a_program_that_starts_again_has_printed_nothing():
    printed = Printed()
    printed.add(frame("old\n"))
    printed.clear()
    assert printed.lines() == {"stdout": [], "stderr": []}
