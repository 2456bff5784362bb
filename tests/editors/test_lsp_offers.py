"""Which lenses and actions there are, and how a fix is carried over to a buffer: without an editor."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dap_agent.editors.lsp import offers
from dap_agent.editors.lsp.merging import changed_lines, edits, line_in, merge, same
from dap_agent.editors.lsp.offers import Document
from dap_agent.editors.lsp.state import Fix, FixFile, Session, Stop, Working

from .lsp_editor import applied

OLD = (
    "import os\n\n\ndef total(lines):\n    result = 0\n    return result / len(lines)\n\n\ndef main():\n    total([])\n"
)
NEW = OLD.replace(
    "    return result / len(lines)\n", "    if not lines:\n        return 0\n    return result / len(lines)\n"
)
STOP = Stop("/shop/a.py", 5, "ZeroDivisionError", ((0, "/shop/a.py", 5), (1, "/shop/a.py", 9)), current=True)
FIX = Fix("f1", "No lines: no division", "/shop", True, False, (FixFile("/shop/a.py", OLD, NEW),), STOP)
LIVE = Session("s1", True, "stopped", ("/shop",), STOP)
DOCUMENT = Document("/shop/a.py", OLD, OLD)


def lenses(session: Session, document: Document = DOCUMENT) -> list[tuple[int, str, str]]:
    return [(one.line, one.title, one.command) for one in offers.lenses([session], document)]


def actions(session: Session, line: int, document: Document = DOCUMENT) -> list[str]:
    return [one.title for one in offers.actions([session], document, line, line)]


def test_the_lens_of_a_stop_from_the_beginning_to_the_fix() -> None:
    explain = (5, "Explain this exception", offers.EXPLAIN)
    assert lenses(LIVE) == [(5, "Autodebug this exception", offers.AUTODEBUG), explain]
    working = replace(LIVE, working=Working("f1", "autodebug", "frame 0"))
    assert lenses(working) == [(5, "Investigating: frame 0 (cancel)", offers.CANCEL)]
    fixed = replace(LIVE, fix=FIX)
    assert lenses(fixed) == [(5, "Fix ready: No lines: no division", offers.SHOW), explain]
    unproved = replace(LIVE, fix=replace(FIX, proved=False))
    assert lenses(unproved)[0][1] == "Fix ready: No lines: no division (not proved)"
    done = replace(LIVE, fix=replace(FIX, applied=True))
    assert lenses(done)[0] == (5, "Fix applied: No lines: no division (undo)", offers.UNDO)
    assert lenses(LIVE, replace(DOCUMENT, path="/shop/b.py")) == []


def test_what_is_over_and_what_runs() -> None:
    gone_on = replace(LIVE, program="running", stop=replace(STOP, current=False))
    assert lenses(gone_on) == []
    assert lenses(replace(gone_on, fix=FIX)) == [(5, "Fix ready: No lines: no division", offers.SHOW)]
    ended = replace(gone_on, program="ended")
    assert [title for _, title, _ in lenses(ended)] == ["Autodebug this exception", "Explain this exception"]
    kept = replace(ended, live=False, fix=FIX)
    assert [title for _, title, _ in lenses(kept)] == ["Fix ready: No lines: no division", "Explain this exception"]
    assert [title for _, title, _ in lenses(replace(kept, fix=None))] == ["Explain this exception"]
    assert actions(kept, 5) == ["No lines: no division", "Explain this exception", "Show the investigation"]
    # a new exception beside the fix of the former one
    other = replace(STOP, line=9, headline="KeyError")
    assert [(line, title) for line, title, _ in lenses(replace(LIVE, stop=other, fix=FIX))] == [
        (9, "Autodebug this exception"),
        (9, "Explain this exception"),
        (5, "Fix ready: No lines: no division"),
    ]


def test_actions_on_the_failing_line_and_on_the_changed_lines() -> None:
    first = ["Autodebug this exception", "Explain this exception", "Show the investigation"]
    assert actions(LIVE, 5) == first
    assert actions(LIVE, 4) == []
    fixed = replace(LIVE, fix=replace(FIX, stop=replace(STOP, line=9)), stop=replace(STOP, line=9))
    offered = [
        "No lines: no division",
        "Apply fix and restart frame",
        "Apply fix and restart program",
        "Explain this exception",
        "Show the investigation",
    ]
    assert actions(fixed, 9) == actions(fixed, 5) == offered
    assert actions(fixed, 0) == []
    quick = offers.actions([fixed], DOCUMENT, 0, 9)[0]
    assert (quick.edit, quick.preferred, quick.command) == (True, True, offers.APPLY)
    assert not offers.actions([replace(fixed, fix=replace(FIX, proved=False))], DOCUMENT, 0, 9)[0].preferred
    done = replace(fixed, fix=replace(fixed.fix or FIX, applied=True))
    assert actions(done, 5, replace(DOCUMENT, text=NEW))[0] == "Undo the fix"
    working = replace(LIVE, working=Working("f1", "ask", ""))
    assert actions(working, 5) == ["Cancel the investigation", "Show the investigation"]


def test_lines_are_those_of_the_buffer() -> None:
    typed = Document("/shop/a.py", "# new\n# lines\n" + OLD, OLD)
    assert lenses(LIVE, typed)[0][0] == 7
    assert actions(replace(LIVE, fix=FIX), 7, typed)[0] == "No lines: no division"
    assert lenses(LIVE, replace(typed, text="# all gone\n"))[0][0] == 0
    # saved while the program stands there
    saved = replace(typed, saved=typed.text)
    known = replace(LIVE, stop=replace(STOP, text=OLD), fix=replace(FIX, stop=replace(STOP, text=OLD)))
    assert lenses(known, saved)[0][0] == 7
    assert actions(known, 7, saved)[0] == "No lines: no division"
    assert lenses(replace(known, program="running"), saved)[0][0] == 7
    assert lenses(LIVE, replace(typed, text=""))[0][0] == 0


def test_the_frame_that_starts_again_is_that_of_the_changed_function() -> None:
    session = replace(LIVE, fix=FIX)
    assert offers.frame_of(session, FIX) == 0
    caller = replace(FIX, files=(FixFile("/shop/a.py", OLD, OLD.replace("total([])", "total([1])")),))
    assert offers.frame_of(session, caller) == 1
    elsewhere = replace(FIX, files=(FixFile("/shop/b.py", "x\n", "y\n"),))
    assert offers.frame_of(session, elsewhere) == 0
    assert offers.frame_of(replace(session, stop=replace(STOP, frames=((2, "/shop/a.py", 5),))), FIX) == 2
    assert offers.frame_of(replace(session, stop=None), FIX) == 0


@pytest.mark.parametrize(
    ("buffer", "wanted"),
    [
        (OLD, NEW),
        (NEW, NEW),
        (OLD.replace("import os", "import sys"), NEW.replace("import os", "import sys")),
        (OLD.replace("\n", "\r\n"), NEW.replace("\n", "\r\n")),
        (OLD + "x = 1", NEW + "x = 1"),
        (OLD.replace("len(lines)", "size(lines)"), None),  # the line that it is put before has changed
        (OLD.replace("    result = 0\n", ""), None),
        ("", None),
    ],
)
def test_a_fix_and_unsaved_changes(buffer: str, wanted: str | None) -> None:
    assert merge(OLD, NEW, buffer) == wanted


def test_a_file_that_is_new() -> None:
    new = FixFile("/shop/t.py", None, "x\n")
    assert offers.target(new, None) == "x\n"
    assert offers.target(new, "x\n") == "x\n"
    assert offers.target(new, "other\n") is None
    assert offers.target(FixFile("/shop/t.bin", "", None), "") is None


LINES = st.lists(st.sampled_from(["a", "b", "c", "", "\U0001f600 x"]), max_size=7)
TEXTS = st.builds(
    lambda lines, closed, end: end.join(lines) + (end if closed and lines else ""), LINES, st.booleans(), st.just("\n")
)


@given(TEXTS, TEXTS, st.sampled_from(["utf-8", "utf-16", "utf-32"]))
def test_edits_make_the_wanted_text(before: str, after: str, encoding: str) -> None:
    def width(text: str) -> int:
        return {"utf-8": len(text.encode()), "utf-16": len(text.encode("utf-16-le")) // 2}.get(encoding, len(text))

    from lsprotocol import types as lsp

    made = [
        SimpleNamespace(
            range=lsp.Range(start=lsp.Position(one.start, one.start_column), end=lsp.Position(one.end, one.end_column)),
            new_text=one.text,
        )
        for one in edits(before, after, width)
    ]
    assert applied(before, made, encoding) == after


@given(TEXTS, TEXTS, TEXTS)
def test_a_merge_keeps_both_changes_or_there_is_none(old: str, new: str, buffer: str) -> None:
    merged = merge(old, new, buffer)
    assert merge(old, new, old) is not None
    if merged is not None and not same(buffer, new):
        # the buffer's own changes are left when the fix is taken back
        assert merge(old, buffer, old) is not None
        assert len(merged.splitlines()) - len(buffer.splitlines()) == len(new.splitlines()) - len(old.splitlines())


@given(TEXTS, TEXTS)
def test_lines_stay_within_the_buffer(old: str, new: str) -> None:
    for line in range(8):
        assert 0 <= line_in(old, new, line) <= max(len(new.split("\n")) - 1, 0)
    for first, last in changed_lines(old, new):
        assert first <= last
