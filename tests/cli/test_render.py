"""What is said, as plain text."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from dap_agent.control import render
from dap_agent.session.snapshot import Snapshot

Make = Callable[..., Snapshot]


def test_a_crash_report_shows_exception_source_values_stack_and_output(snapshot: Make) -> None:
    assert (
        render.plain(render.crash(snapshot()))
        == """\
dap-agent: the program stopped at KeyError: 'Gold '
  note: while billing May
  in discount (shop/pricing.py:12)
        10  def discount(customer):
        11      rates = RATES
  ->    12      return rates[x]
  values:
     customer = Customer(tier='Gold ')
     rates = {'gold': 10}
  called by:
    ... 2 frames [package pool 2.0]
    #3 main(month='2024-05')  shop/app.py:5
  caused by ValueError: no tier in find (shop/pricing.py:7)
  last lines of stdout:
    | first invoice
"""
    )


def test_a_later_stop_is_one_line(snapshot: Make) -> None:
    text = render.plain(render.later_stop(snapshot(), "told only"))
    assert text == "dap-agent: also stopped at KeyError: 'Gold ' in discount (shop/pricing.py:12); told only\n"


def test_thread_and_task_are_told(snapshot: Make) -> None:
    thread = {"id": 2, "name": "worker-1", "main": False}
    text = render.plain(render.crash(snapshot(thread=thread, task={"name": "Task-3", "coroutine": "poll"})))
    assert "  in thread worker-1\n  in asyncio task Task-3 (poll)\n" in text


def test_a_death_by_signal_is_told_by_its_note(snapshot: Make) -> None:
    notes = ["The process was killed by signal 11 (SIGSEGV)."]
    text = render.plain(render.crash(snapshot(exception=None, reason="exit", notes=notes, frames=[]), "ended with"))
    assert text.startswith("dap-agent: The process was killed by signal 11 (SIGSEGV).\n")
    assert text.count("SIGSEGV") == 1


def test_a_syntax_error_shows_the_line(snapshot: Make, exception_of: Callable[..., dict[str, Any]]) -> None:
    where = {"file": "/x/bad.py", "line": 3, "column": 9, "text": "def f(:\n"}
    text = render.plain(render.crash(snapshot(exception=exception_of("SyntaxError", "invalid syntax", syntax=where))))
    assert "  in /x/bad.py:3, column 9:\n    def f(:\n" in text


def test_groups_and_contexts_are_told(snapshot: Make, exception_of: Callable[..., dict[str, Any]]) -> None:
    inner = exception_of("KeyError", "'b'", context=exception_of("OSError", "gone"))
    text = render.plain(render.crash(snapshot(exception=exception_of("ExceptionGroup", "two", group=[inner]))))
    assert "  member of the group: KeyError: 'b'\n    raised while handling OSError: gone\n" in text


def test_a_deep_stack_keeps_both_ends(snapshot: Make, frame_of: Callable[..., dict[str, Any]]) -> None:
    frames = [frame_of(number, f"f{number}", "/x/deep.py", number + 1) for number in range(60)]
    text = render.plain(render.crash(snapshot(frames=frames)))
    assert "#1 f1 " in text
    assert "#59 f59 " in text
    assert "    ... 45 more\n" in text
    assert len(text.splitlines()) < 30


def test_a_fold_is_one_line(snapshot: Make, frame_of: Callable[..., dict[str, Any]]) -> None:
    frames = [frame_of(number, "f", "/x/deep.py", 1) for number in (0, 1, 990)]
    folds = [{"first": 2, "last": 989, "period": 1, "count": 988}]
    lines = render.plain(render.crash(snapshot(frames=frames, folds=folds))).splitlines()
    at = next(i for i, line in enumerate(lines) if "988 times the same 1 frame" in line)
    assert "#1 f" in lines[at - 1]
    assert "#990 f" in lines[at + 1]


def test_names_that_are_not_in_the_source_are_left_out(snapshot: Make) -> None:
    pairs = [{"name": name, "value": {"type": "int", "text": "1"}} for name in ("@py_assert1", "__exception__", "x")]
    frame = {**snapshot().frames[0], "locals": pairs, "arguments": [], "locals_total": 3}
    text = render.plain(render.crash(snapshot(frames=[frame])))
    assert "  values:\n     x = 1\n  caused" in text


def test_long_values_and_many_values_are_cut(snapshot: Make) -> None:
    pairs = [{"name": f"v{i}", "value": {"type": "str", "text": "x" * 5000}} for i in range(40)]
    frame = {**snapshot().frames[0], "locals": pairs, "arguments": [], "locals_total": 70}
    text = render.plain(render.crash(snapshot(frames=[frame])))
    assert "... [4840 more characters]" in text
    assert "... 56 more\n" in text


def test_text_of_the_program_cannot_command_the_terminal(
    snapshot: Make, exception_of: Callable[..., dict[str, Any]]
) -> None:
    evil = "\x1b]0;owned\x07\u202e\r"
    frame = {**snapshot().frames[0], "function": evil, "file": evil}
    crash = snapshot(
        exception=exception_of(evil, evil, notes=[evil]),
        frames=[frame],
        output={"stdout": [evil], "stderr": [evil]},
        notes=[evil],
        thread={"id": 1, "name": evil, "main": False},
    )
    text = render.plain(
        [*render.crash(crash), *render.later_stop(crash, "x"), *render.threads(crash), *render.diff(evil)]
    )
    assert not set(text) & {"\x1b", "\x07", "\u202e", "\r"}
    assert "\\x1b]0;owned\\x07\\u202e" in text


def outcome(**more: Any) -> Any:
    run = SimpleNamespace(outcome="failed", seconds=0.5, output="E KeyError\n", exit_status=1)
    given: dict[str, Any] = {
        "status": "proposed",
        "explanation": "",
        "proposal": SimpleNamespace(
            title="Read tiers without blanks",
            cause="parse_customer keeps\nthe blank.",
            evidence=(
                SimpleNamespace(text="the tier has a blank", frame=0, expression="customer.tier", value="'Gold '"),
                SimpleNamespace(text="nothing else strips it", frame=None, expression=None, value=None),
            ),
            test=SimpleNamespace(file="tests/test_tier.py", source="def test_tier():\n    assert tier\n"),
        ),
        "changes": SimpleNamespace(diff=lambda: "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-old\n+new\n"),
        "trial": SimpleNamespace(verdict="passes", summary="total([]) returned 0"),
        "verdict": SimpleNamespace(kind="proved", summary="Red, then green.", red=run, green=None, others=None),
        "usage": SimpleNamespace(input_tokens=1200, output_tokens=34),
        "cost": 0.25,
        "turns": 1,
        "seconds": 3.21,
    }
    return SimpleNamespace(**{**given, **more})


def test_a_proposal_shows_cause_evidence_change_test_and_verdict() -> None:
    assert (
        render.plain(render.proposal(outcome()))
        == """\
dap-agent: proposed fix: Read tiers without blanks
  cause:
    parse_customer keeps
    the blank.
  evidence:
    - the tier has a blank
      #0 customer.tier = 'Gold '
    - nothing else strips it
  change:
    --- a/x.py
    +++ b/x.py
    @@ -1 +1 @@
    -old
    +new
  verdict: proved: Red, then green.
  trial: passes in a locked copy of the stopped program: total([]) returned 0
"""
    )


def test_a_diff_is_coloured() -> None:
    styles = [line[-1].style for line in render.diff("--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n z\n")]
    assert styles == ["strong", "strong", "hunk", "remove", "add", ""]


def test_the_test_and_the_proof_can_be_looked_at() -> None:
    assert render.plain(render.test_source(outcome())) == (
        "  regression test tests/test_tier.py:\n    def test_tier():\n        assert tier\n"
    )
    assert render.plain(render.proof_output(outcome())) == (
        "  the regression test on the old code: failed (0.5 s)\n    | E KeyError\n"
    )
    assert render.plain(render.proof_output(outcome(verdict=None))) == "  There was no proof run.\n"


def test_what_was_spent_is_told() -> None:
    assert render.plain(render.spent(outcome(), Path("/j/x.jsonl"))) == (
        "dap-agent: the model was called once, read 1200 and wrote 34 tokens ($0.25) in 3.2 s; journal: /j/x.jsonl\n"
    )
    assert "2 times" in render.plain(render.spent(outcome(turns=2), None))
    assert "price unknown" in render.plain(render.spent(outcome(cost=None), None))


def test_without_a_proposal_the_reason_is_told() -> None:
    text = render.plain(
        render.unsuccessful(outcome(status="gave-up", explanation="The disk is full.\nFree some space."))
    )
    assert text == "dap-agent: the model found no fix: The disk is full.\n  Free some space.\n"


def test_threads_of_a_paused_program(snapshot: Make) -> None:
    worker = {"id": 7, "name": "worker", "stack": [{"function": "Lock.acquire", "file": "/x/w.py", "line": 3}]}
    paused = snapshot(reason="pause", exception=None, threads=[worker])
    assert (
        render.plain(render.threads(paused))
        == """\
dap-agent: the program is paused; this is what each thread does, innermost call first:
  thread MainThread
    #0 discount(customer=Customer(tier='Gold '))  shop/pricing.py:12
    #1 Pool.map  /lib/pool.py:90
    #2 Pool.run  /lib/pool.py:40
    #3 main(month='2024-05')  shop/app.py:5
  thread worker
    Lock.acquire (/x/w.py:3)
"""
    )


def test_a_table_is_aligned() -> None:
    assert render.table([("a", "bb", "c"), ("aaa", "b", "cc")]) == "a    bb  c\naaa  b   cc"


def test_files_are_named_as_seen_from_the_readers_folder(tmp_path: Path) -> None:
    file = str(tmp_path / "shop" / "pricing.py")
    with render.read_in(tmp_path):
        assert render.place(file, 12) == "shop/pricing.py:12"
    with render.read_in(tmp_path / "elsewhere"):
        assert render.place(file, 12) == f"{file}:12"
