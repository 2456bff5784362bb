"""The journal file: private, whole up to a crash, masked, listed, shown, played again."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from dap_agent.agent.journal import Journal, JournalError, find, info, list_journals, read, show
from dap_agent.models import scripted
from dap_agent.models.base import Usage
from dap_agent.session.redaction import forget_environment

SCHEMA = Path(__file__).parents[2] / "schemas" / "journal.schema.json"


def fill(journal: Journal, kit: Any) -> None:
    turn = kit.calls(("frame", {"number": 0}), text="I look.")
    journal.write("prompt", system="s", message="m", tools=[])
    journal.write("turn", number=1, turn=turn.to_json(), seconds=1.5, cost=0.01)
    journal.write("call", turn=1, id="c1", name="frame", arguments={"number": 0}, raw="{}")
    journal.write("result", turn=1, id="c1", name="frame", content="line one\nline two", error=False, seconds=0.1)
    journal.write("proposal", proposal={"title": "T"}, diff="--- a\n+++ b\n")
    journal.write(
        "verdict",
        verdict="proved",
        summary="ok",
        breaks=[],
        runner="pytest",
        red=None,
        green=None,
        others=None,
        notes=[],
    )
    journal.write(
        "end",
        status="proposed",
        explanation="why",
        verdict="proved",
        usage=Usage(10, 5).to_json(),
        cost=0.01,
        turns=1,
        seconds=2.0,
    )
    journal.applied(["shop/orders.py"])
    journal.rerun(0, True)


def make(kit: Any, **options: Any) -> Journal:
    journal = Journal.create(
        Path("project"), model="script:test", command=["main.py"], headline="KeyError: 'qty'", **options
    )
    fill(journal, kit)
    journal.close()
    return journal


def test_only_the_user_can_read_it(state: Path, kit: Any) -> None:
    path = make(kit).path
    assert path.parent == state / "journal"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_every_record_follows_the_schema(kit: Any) -> None:
    import jsonschema

    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    records = read(make(kit).path)
    assert [record["kind"] for record in records] == (
        ["start", "prompt", "turn", "call", "result", "proposal", "verdict", "end", "applied", "rerun"]
    )
    for record in records:
        validator.validate(record)


def test_each_record_is_in_the_file_at_once(kit: Any) -> None:
    journal = Journal.create(Path("project"))
    journal.write("prompt", message="first")
    assert [record["kind"] for record in read(journal.path)] == ["start", "prompt"]
    journal.close()
    journal.close()


def test_what_a_crash_cut_short_is_left_out(kit: Any) -> None:
    path = make(kit).path
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert [record["kind"] for record in read(path)][-1] == "applied"
    assert len(scripted.load(path)) == 1


def test_a_text_with_line_separators_and_surrogates_stays_one_record(kit: Any) -> None:
    journal = Journal.create(Path("project"))
    journal.write("prompt", message="a\u2028b\x85c\udc80d\r\ne")
    assert read(journal.path)[-1]["message"] == "a\u2028b\x85c\udc80d\r\ne"


def test_secrets_are_masked(kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    token, word = "ghp_" + "a1B2" * 9, "correct horse battery"
    monkeypatch.setenv("SHOP_PASSWORD", word)
    forget_environment()
    try:
        journal = Journal.create(Path("project"), command=["main.py", f"--token={token}"], headline=f"E: {word}")
        journal.write("call", turn=1, id="c", name="evaluate", arguments={"code": [f"x = '{word}'"]}, raw="{}")
        journal.write("result", turn=1, id="c", name="evaluate", content=f"{token} {word}", error=False, seconds=0.0)
    finally:
        forget_environment()
    assert token not in journal.path.read_text()
    assert word not in journal.path.read_text()


def test_code_of_the_model_is_kept_so_that_it_plays_again(kit: Any) -> None:
    source = "token = read_token(path)\nclient = Client(password='x1y2z3')\n"
    journal = Journal.create(Path("project"))
    turn = kit.calls(("run_test", {"source": source}))
    journal.write("turn", number=1, turn=turn.to_json(), seconds=0.0, cost=None)
    (step,) = scripted.load(journal.path)
    assert step.turn.calls[0].arguments == {"source": source}


def test_list_newest_first(state: Path, kit: Any) -> None:
    first, second = make(kit), Journal.create(Path("other"))
    renamed = first.path.with_name("20200101T000000-" + first.path.name.rpartition("-")[2])
    first.path.rename(renamed)
    (state / "journal" / "99990101T000000-foreign.jsonl").write_text("not ours\n")
    newest, oldest = list_journals()
    assert (newest.id, newest.status, newest.workspace, newest.turns) == (second.id, "unfinished", "other", 0)
    assert (oldest.id, oldest.status, oldest.verdict, oldest.applied) == (first.id, "proposed", "proved", True)
    assert (oldest.turns, oldest.tokens, oldest.cost, oldest.seconds) == (1, 15, 0.01, 2.0)
    assert oldest.headline == "KeyError: 'qty'"


def test_no_journals_yet() -> None:
    assert list_journals() == []
    with pytest.raises(JournalError, match="There is no journal 'last'"):
        find("last")


def test_find(kit: Any) -> None:
    journal = make(kit)
    for name in (journal.id, journal.id[:5], str(journal.path), journal.path.stem, "last"):
        assert find(name) == journal.path
    with pytest.raises(JournalError, match="dap-agent journal list"):
        find("nowhere")
    Journal.create(Path("other"))
    with pytest.raises(JournalError, match="There is no journal ''"):
        find("")


def test_show_tells_everything_in_order(kit: Any) -> None:
    text = show(make(kit).path)
    for part in (
        "KeyError: 'qty'",
        "I look.",
        'frame {"number": 0}',
        "    line two",
        "proved: ok",
        "exit status 0, passed",
    ):
        assert part in text
    assert "proposed, 1 turns, $0.0100, 2.0 s" in text


def test_turns_play_again_as_a_script(kit: Any) -> None:
    (step,) = scripted.load(make(kit).path)
    assert step.turn.text == "I look."
    assert [(call.name, call.arguments) for call in step.turn.calls] == [("frame", {"number": 0})]


def test_what_is_no_journal(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    for content in ("", "hello\nworld\n", '{"a": 1}\n', '{"kind": "turn"}\n'):
        path.write_text(content)
        with pytest.raises(JournalError, match="is no journal"):
            read(path)
    path.write_text('{"kind": "start", "headline": "x"}\n{"kind": "end", "status": 1}\n')
    for reader in (info, show):
        with pytest.raises(JournalError, match="this version"):
            reader(path)
    with pytest.raises(JournalError, match="cannot be read"):
        read(tmp_path / "absent.jsonl")


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(JournalError, match="DAP_AGENT_STATE_DIR"):
        Journal.create(Path("project"), directory=blocked / "journal")


def test_a_full_disk_ends_the_journal_and_not_the_investigation(kit: Any) -> None:
    class Full:
        closed = False

        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    journal = Journal(Path("j.jsonl"), Full())  # type: ignore[arg-type]
    fill(journal, kit)
    assert journal.trouble == "The journal j.jsonl is not complete: No space left on device."


def test_a_state_folder_that_cannot_be_made_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("DAP_AGENT_STATE_DIR", str(tmp_path / "file" / "below"))
    with pytest.raises(JournalError, match=r"below cannot be made .*set DAP_AGENT_STATE_DIR"):
        Journal.create(tmp_path, model="m", command=[], headline="h")
