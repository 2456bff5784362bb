"""Breakpoints set again after the program was given changed files."""

from hypothesis import given
from hypothesis import strategies as st

from dap_agent.proxy.moved import new_line
from dap_agent.wire.messages import event, request, response

from .test_editor_restart import FILE, found, running

BLOCKS = [[1, 3, 4], [8, 7, 10]]  # two lines more at the top; three lines (5 to 7) have become none


def test_lines_go_with_their_text():
    assert [new_line(line, BLOCKS) for line in (1, 4, 8, 17)] == [3, 6, 7, 16]
    assert [new_line(line, BLOCKS) for line in (5, 6, 7)] == [7, 7, 7]  # gone: where they were
    assert new_line(20, BLOCKS) == 19
    assert new_line(3, []) == 3
    assert [new_line(line, [[1, 1, 2], [5, 5, 3]]) for line in (3, 4)] == [3, 4]  # as many lines, changed


@given(st.lists(st.sampled_from("abcde"), max_size=12), st.lists(st.sampled_from("abcde"), max_size=12))
def test_a_line_that_both_texts_share_is_found_in_the_new_one(old, new):
    from difflib import SequenceMatcher

    blocks = [[i + 1, j + 1, n] for i, j, n in SequenceMatcher(None, old, new, False).get_matching_blocks() if n]
    lines = [new_line(line, blocks) for line in range(1, len(old) + 3)]
    assert lines == sorted(lines) and min(lines, default=1) >= 1
    for i, j, size in blocks:
        assert lines[i - 1 : i - 1 + size] == list(range(j, j + size))


def set_again(one, lines, ids, **more):
    """The adapter is told *lines* and answers with breakpoints under new *ids*."""
    one.to_adapter(request("setBreakpoints", {**FILE, "breakpoints": [{"line": line} for line in lines]}))
    body = {"breakpoints": [{"id": n, "verified": True, "line": at} for n, at in zip(ids, lines, strict=True)]}
    one.adapter_answers("setBreakpoints", body)
    return one


def test_breakpoints_are_set_where_their_lines_are_now_and_keep_their_ids(session):
    one = running(session())
    one.editor.moved.clock = lambda: 10.0
    one.moved({"a.py": [[1, 3, 20]], "other.py": [[1, 2, 3]]}, {"a.py": 20.0})
    set_again(one, (5, 11), (7, 8))
    for number, line in ((1, 5), (2, 11)):
        changed = {"reason": "changed", "breakpoint": {"id": number, "verified": True, "line": line}}
        one.to_client(event("breakpoint", changed))
    stopped = {"reason": "breakpoint", "threadId": 1, "hitBreakpointIds": [8]}
    one.adapter(event("stopped", stopped)).to_client(event("stopped", {**stopped, "hitBreakpointIds": [2]}))
    one.published("stopped")


def test_a_client_that_has_moved_them_since_keeps_its_lines(session):
    one = running(session())
    one.editor.moved.clock = lambda: 30.0
    one.client(request("setBreakpoints", FILE, seq=9)).to_adapter(request("setBreakpoints", FILE))
    one.adapter_answers("setBreakpoints", found(4, 5)).to_client(response(9, "setBreakpoints", found(4, 5)))
    one.moved({"a.py": [[1, 3, 20]]}, {"a.py": 20.0})
    set_again(one, (3, 9), (7, 8))
    # the adapter has answered before that the second stood at line 3
    changed = {"reason": "changed", "breakpoint": {"id": 5, "verified": True, "line": 9}}
    one.to_client(event("breakpoint", changed))
