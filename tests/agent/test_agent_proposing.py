"""Proposals: what is sent back and why, the proof, the rounds, the outcome. The proof is real."""

import asyncio
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dap_agent.agent.budget import Budget
from dap_agent.agent.journal import read
from dap_agent.agent.proposing import PROPOSE, failure_of
from dap_agent.fixes import proposal as proposals
from dap_agent.models import scripted

SCHEMA = Path(__file__).parents[2] / "schemas" / "journal.schema.json"


@pytest.fixture
def good(kit: Any) -> dict[str, Any]:
    """A proposal that is proved."""
    return {
        "title": "Count a line without a price as free",
        "cause": "parse_line gives None for a missing price.",
        "evidence": [{"text": "the line has no price", "frame": 0, "expression": "line", "value": "'gift ='"}],
        "edits": [{"kind": "replace_symbol", "file": "shop/orders.py", "symbol": "total", "source": kit.FIXED_TOTAL}],
        "test": {"file": "tests/test_gift.py", "source": kit.REGRESSION_TEST},
    }


@pytest.fixture
def useless(good: dict[str, Any]) -> dict[str, Any]:
    """A proposal whose edit changes nothing that matters: its test stays red."""
    changed = copy.deepcopy(good)
    changed["edits"] = [
        {"kind": "str_replace", "file": "shop/orders.py", "old": "The sum of all prices.", "new": "All prices, summed."}
    ]
    return changed


@pytest.fixture
def breaking(good: dict[str, Any]) -> dict[str, Any]:
    """A proposal that mends the crash and breaks an existing test."""
    changed = copy.deepcopy(good)
    changed["edits"] = [
        {"kind": "str_replace", "file": "shop/orders.py", "old": "price.strip() or None", "new": "price.strip() or 0"}
    ]
    return changed


@pytest.fixture
def green(good: dict[str, Any]) -> dict[str, Any]:
    """A proposal whose test passes on the old code."""
    changed = copy.deepcopy(good)
    changed["test"]["source"] = (
        "from shop.orders import total\n\n\ndef test_total():\n    assert total(['a = 1']) == 1\n"
    )
    return changed


@pytest.fixture
def untouched(root: Path) -> Iterator[None]:
    """The user's files are the same afterwards."""

    def state() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}

    before = state()
    yield
    assert state() == before


def records(run: Any, kind: str) -> list[dict[str, Any]]:
    import jsonschema

    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    found = read(run.journal.path)
    for record in found:
        validator.validate(record)
    return [record for record in found if record["kind"] == kind]


async def sent_back(run: Any, kit: Any, proposal: Any) -> str:
    """The result of one proposal that does not end the investigation."""
    model = kit.Script(kit.calls(("propose", proposal)), kit.say("a"), kit.say("I give up."))
    outcome = await run(model)
    assert outcome.status == "gave-up"
    (result,) = model.results()
    assert result.error
    return str(result.content)


@pytest.mark.usefixtures("untouched")
async def test_a_proved_proposal_ends_the_investigation(run: Any, kit: Any, good: dict[str, Any], root: Path) -> None:
    outcome = await run(kit.Script(kit.calls(("frame", {"number": 0})), kit.calls(("propose", good), ("stack", {}))))
    assert (outcome.status, outcome.proved, outcome.turns) == ("proposed", True, 2)
    assert outcome.explanation == "parse_line gives None for a missing price."
    assert outcome.proposal.title == "Count a line without a price as free"
    assert [change.name for change in outcome.changes.files] == ["shop/orders.py", "tests/test_gift.py"]
    assert outcome.verdict.kind == "proved"
    (written,) = records(run, "proposal")
    assert proposals.parse(written["proposal"]) == outcome.proposal
    assert "+++ b/shop/orders.py" in written["diff"]
    (verdict,) = records(run, "verdict")
    assert verdict["verdict"] == "proved"
    assert verdict["red"]["exit_status"] == 1
    assert verdict["green"]["exit_status"] == 0
    assert [event.kind for event in run.progress if event.kind in ("proposal", "verdict")] == ["proposal", "verdict"]
    assert read(run.journal.path)[-1]["verdict"] == "proved"


async def test_a_journal_with_a_proof_plays_again(
    run: Any, kit: Any, good: dict[str, Any], program: Any, workspace: Any
) -> None:
    await run(kit.Script(kit.calls(("propose", good))))
    outcome = await kit.Run(program, workspace)(scripted.create(str(run.journal.path)))
    assert outcome.proved


@pytest.mark.usefixtures("untouched")
async def test_a_verdict_that_is_not_proved_goes_back_with_the_output(
    run: Any, kit: Any, useless: dict[str, Any], good: dict[str, Any]
) -> None:
    model = kit.Script(kit.calls(("propose", useless)), kit.calls(("propose", good)))
    outcome = await run(model)
    assert outcome.proved
    (result,) = model.results()
    assert result.error
    assert "sent back (2 more tries). Verdict: still red." in result.content
    assert "TypeError: float() argument must be" in result.content
    assert [record["verdict"] for record in records(run, "verdict")] == ["still red", "proved"]


async def test_a_test_that_is_not_red(run: Any, kit: Any, green: dict[str, Any]) -> None:
    assert "Verdict: not red." in await sent_back(run, kit, green)


async def test_a_fix_that_breaks_another_test(run: Any, kit: Any, breaking: dict[str, Any]) -> None:
    content = await sent_back(run, kit, breaking)
    assert "Verdict: breaks" in content
    assert "test_no_price_is_none" in content


async def test_after_three_rounds_the_best_is_the_outcome(
    run: Any, kit: Any, useless: dict[str, Any], breaking: dict[str, Any], green: dict[str, Any]
) -> None:
    model = kit.Script(*[kit.calls(("propose", proposal)) for proposal in (useless, breaking, green)])
    outcome = await run(model)
    assert (outcome.status, outcome.verdict.kind, outcome.turns) == ("proposed", "breaks", 3)
    assert outcome.proposal == proposals.parse(breaking)
    assert not outcome.proved


async def test_the_same_failed_proposal_again_is_not_proved_again(run: Any, kit: Any, useless: dict[str, Any]) -> None:
    model = kit.Script(*[kit.calls(("propose", useless)) for _ in range(3)])
    outcome = await run(model)
    assert (outcome.status, outcome.verdict.kind) == ("proposed", "still red")
    assert len(records(run, "verdict")) == 1
    assert "You proposed exactly this before. The proposal is sent back (1 more try)" in model.results()[0].content


async def test_when_the_budget_ends_the_best_proposal_is_kept(run: Any, kit: Any, useless: dict[str, Any]) -> None:
    outcome = await run(kit.Script(kit.calls(("propose", useless))), Budget(turns=1))
    assert (outcome.status, outcome.verdict.kind) == ("out-of-budget", "still red")
    assert outcome.explanation == "The investigation stopped: all 1 model calls are used (--max-turns)."


@pytest.mark.usefixtures("untouched")
async def test_without_a_proof_the_first_that_applies_is_the_outcome(
    run: Any, kit: Any, useless: dict[str, Any]
) -> None:
    outcome = await run(kit.Script(kit.calls(("propose", useless))), prove=False)
    assert (outcome.status, outcome.verdict, outcome.proved) == ("proposed", None, False)
    assert outcome.changes is not None


async def test_the_program_ran_an_installed_copy_of_the_workspace(
    run: Any, kit: Any, good: dict[str, Any], root: Path, tmp_path: Path
) -> None:
    site = tmp_path / "env/lib/python3.12/site-packages"
    text = json.dumps(run.program.data["frames"]).replace(str(root), str(site))
    run.program.data["frames"] = json.loads(text)
    run.program.data["exception"]["where"]["file"] = str(site / "shop/orders.py")
    outcome = await run(kit.Script(kit.calls(("propose", good))))
    assert outcome.proved, outcome.verdict


async def test_a_stop_without_an_exception_has_nothing_to_prove(run: Any, kit: Any, good: dict[str, Any]) -> None:
    run.program.data["reason"], run.program.data["exception"] = "pause", None
    outcome = await run(kit.Script(kit.calls(("propose", good))))
    assert (outcome.status, outcome.verdict) == ("proposed", None)


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"test": None}, ["test must be of type object"]),
        ({"test": ...}, ["missing 'test' (the regression test: red on the old code", 'A right call: propose {"title"']),
        ({"test": {"file": "tests/test_x.py", "source": " \n"}}, ["$.test.source: must not be blank"]),
        ({"test": {"file": "tests/x.py", "source": "1"}}, ["$.test.file", "named test_*.py"]),
        ({"test": {"file": "tests/test_orders.py", "source": "1"}}, ["the test (tests/test_orders.py)", "a new one"]),
        ({"test": {"file": "../test_x.py", "source": "1"}}, ["outside the workspace", "workspace only"]),
        ({"evidence": []}, ["evidence"]),
        ({"edits": []}, ["edits"]),
        ({"extra": 1}, ["unknown 'extra'"]),
        ({"edits": [{"kind": "explode", "file": "a.py"}]}, ["edits[0].kind must be one of", 'not "explode"']),
        (
            {"edits": [{"kind": "str_replace", "file": "shop/orders.py"}]},
            ["$.edits[0]", "'old' is a required property"],
        ),
        (
            {"edits": [{"kind": "str_replace", "file": "shop/orders.py", "old": "reslut += 1", "new": "x"}]},
            ["edit 1 (str_replace in shop/orders.py)"],
        ),
        (
            {
                "edits": [
                    {"kind": "replace_symbol", "file": "shop/orders.py", "symbol": "totl", "source": "def totl(): 1"}
                ]
            },
            ["edit 1 (replace_symbol in shop/orders.py)", "total"],
        ),
        (
            {"edits": [{"kind": "str_replace", "file": "shop/orders.py", "old": "result = 0.0", "new": "result = ("}]},
            ["shop/orders.py"],
        ),
    ],
)
@pytest.mark.usefixtures("untouched")
async def test_what_does_not_parse_or_apply_is_sent_back_with_the_reason(
    run: Any, kit: Any, good: dict[str, Any], change: dict[str, Any], parts: list[str]
) -> None:
    proposal = {**good, **change}
    proposal = {name: value for name, value in proposal.items() if value is not ...}
    content = await sent_back(run, kit, proposal)
    for part in parts:
        assert part in content
    assert records(run, "verdict") == []


@pytest.mark.parametrize(
    "file", ["../outside.py", "{tmp}/outside.py", "link.py", "linked/inside.py", ".git/hooks/x.py"]
)
@pytest.mark.usefixtures("untouched")
async def test_files_outside_of_the_workspace_are_refused(
    run: Any, kit: Any, good: dict[str, Any], root: Path, tmp_path: Path, file: str
) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text("x = 1\n")
    (tmp_path / "elsewhere").mkdir()
    (root / "link.py").symlink_to(outside)
    (root / "linked").symlink_to(tmp_path / "elsewhere")
    for edit in (
        {"kind": "write_file", "file": file.format(tmp=tmp_path), "content": "x = 2\n"},
        {"kind": "str_replace", "file": file.format(tmp=tmp_path), "old": "x = 1", "new": "x = 2"},
    ):
        good["edits"] = [edit]
        content = await sent_back(kit.Run(run.program, run.workspace), kit, good)
        assert "outside the workspace" in content or "neither read nor edited" in content
        assert "Edit files of the workspace only" in content
    assert outside.read_text() == "x = 1\n"
    assert list((tmp_path / "elsewhere").iterdir()) == []
    (root / "link.py").unlink()
    (root / "linked").unlink()


async def test_where_no_test_can_run_the_proposal_is_the_outcome_at_once(
    run: Any, kit: Any, good: dict[str, Any], tmp_path: Path
) -> None:
    run.python = tmp_path / "no-python"
    outcome = await run(kit.Script(kit.calls(("propose", good))))
    assert (outcome.status, outcome.verdict.kind, outcome.turns) == ("proposed", "unproven", 1)
    assert "--python" in outcome.verdict.summary


async def test_a_death_by_signal_is_something_to_reproduce(run: Any, kit: Any) -> None:
    data = run.program.data
    data.update(reason="exit", exception=None, notes=["The process was killed by signal 11 (SIGSEGV)."])
    failure = failure_of(run.program.snapshot)
    assert failure is not None
    assert (failure.type, failure.function) == ("SIGSEGV", "total")
    data["reason"] = "pause"
    assert failure_of(run.program.snapshot) is None


async def test_the_members_of_a_group_and_the_cause_are_origins(run: Any, kit: Any) -> None:
    place = {"function": "total", "file": "/x/orders.py", "line": 3}
    cause = {**kit.exception("ValueError", "v"), "where": {**place, "function": "parse"}}
    member = {**kit.exception("KeyError", "'k'"), "where": place, "cause": cause}
    nowhere = {**kit.exception("OSError", "o"), "where": None}
    run.program.data["exception"] = {**kit.exception("ExceptionGroup", "g"), "group": [member, nowhere]}
    failure = failure_of(run.program.snapshot)
    assert failure is not None
    assert [(one.type, one.function) for one in failure.with_origins()][1:] == [
        ("KeyError", "total"),
        ("ValueError", "parse"),
    ]


async def test_a_syntax_error_is_proved_too(run: Any, kit: Any, good: dict[str, Any], root: Path) -> None:
    path = root / "shop/orders.py"
    path.write_text(path.read_text().replace("def total(lines):", "def total(lines:"))
    syntax = {"file": str(path), "line": 9, "column": 10, "text": "def total(lines:\n"}
    run.program.data["exception"] = kit.exception("SyntaxError", "'(' was never closed", syntax=syntax)
    run.program.data.update(frames=[], frames_total=0)
    good["edits"] = [
        {"kind": "str_replace", "file": "shop/orders.py", "old": "def total(lines:", "new": "def total(lines):"}
    ]
    good["test"]["source"] = (
        "def test_import():\n    from shop import orders\n\n    assert orders.total(['a=1']) == 1\n"
    )
    run = kit.Run(run.program, run.workspace)
    outcome = await run(kit.Script(kit.calls(("propose", good))))
    assert outcome.proved, outcome.verdict


async def test_a_test_gets_no_more_time_than_is_left(run: Any, kit: Any, untouched: None) -> None:
    source = "import time\ndef test_x():\n    time.sleep(100)\n"
    model = kit.Script(kit.calls(("run_test", {"source": source})), kit.say("a"))
    outcome = await run(model, Budget(seconds=2))
    assert outcome.status == "out-of-budget"
    assert outcome.seconds < 30


async def test_run_test_tells_whether_it_would_do(run: Any, kit: Any, untouched: None) -> None:
    passing = "def test_nothing():\n    assert True\n"
    wrong = "def test_x():\n    {}['a']\n"
    model = kit.Script(
        kit.calls(
            ("run_test", {"source": kit.REGRESSION_TEST}),
            ("run_test", {"source": passing, "file": "tests/test_new.py"}),
            ("run_test", {"source": wrong}),
            ("run_test", {"file": "tests/test_orders.py"}),
            ("run_test", {}),
            ("run_test", {"file": "../test_x.py", "source": "1"}),
        ),
        kit.say("a"),
        kit.say("b"),
    )
    await run(model)
    red, green, other, existing, nothing, outside = model.results()
    assert red.content.startswith("on the old code: failed (exit status 1")
    assert "raised: TypeError in total: float() argument must be" in red.content
    assert red.content.endswith("As a regression test: red for the right reason.")
    assert green.content.startswith("on the old code: passed (exit status 0")
    assert green.content.endswith("As a regression test: no test failed.")
    assert "As a regression test: " in other.content
    assert not other.content.endswith("red for the right reason.")
    assert existing.content.startswith("on the old code: passed")
    assert nothing.error
    assert 'run_test {"source": ' in nothing.content
    assert outside.error
    assert "outside the workspace" in outside.content


async def test_for_a_culprit_in_a_package_the_way_out_is_told(
    run: Any, kit: Any, good: dict[str, Any], tmp_path: Path
) -> None:
    file = str(tmp_path / "env/lib/python3.12/site-packages/parser/core.py")
    run.program.data["frames"].insert(
        0, kit.frame(0, "f", file, 1, user=False, package={"name": "parser", "version": "2.1"})
    )
    run = kit.Run(run.program, run.workspace)
    good["edits"] = [{"kind": "write_file", "file": file, "content": "x"}]
    content = await sent_back(run, kit, good)
    assert "The code of package parser 2.1 is read-only." in content
    assert "work-around" in content
    assert "upgrade" in content


async def test_a_mask_is_never_written_into_a_file(run: Any, kit: Any, good: dict[str, Any]) -> None:
    good["edits"][0]["source"] = 'def total(lines):\n    return connect(password="<masked>")\n'
    content = await sent_back(run, kit, good)
    assert content.startswith("edits[0].source holds <masked>")


async def test_a_proposal_must_not_be_built_on_a_file_that_has_changed(
    run: Any, kit: Any, good: dict[str, Any], root: Path
) -> None:
    def edit_meanwhile(messages: Any) -> Any:
        path = root / "shop/orders.py"
        path.write_text(path.read_text() + "# the user types\n")
        return kit.calls(("propose", good))

    model = kit.Script(kit.calls(("read_file", {"file": "shop/orders.py"})), edit_meanwhile, kit.say("a"), kit.say("b"))
    await run(model)
    assert "changed since it was read" in model.results()[0].content


async def test_cancelling_within_a_proof_leaves_nothing_open(
    run: Any, kit: Any, good: dict[str, Any], root: Path
) -> None:
    proposed = asyncio.Event()

    class Listening(list[Any]):
        def append(self, event: Any) -> None:
            if event.kind == "proposal":
                proposed.set()

    run.progress = Listening()
    good["test"]["source"] = "import time\n\n\ndef test_slow():\n    time.sleep(600)\n"
    task = asyncio.create_task(run(kit.Script(kit.calls(("propose", good)))))
    await proposed.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert read(run.journal.path)[-1]["status"] == "cancelled"


def test_the_flat_edit_has_the_kinds_and_fields_of_the_schema() -> None:
    flat = PROPOSE.parameters["properties"]["edits"]["items"]
    definitions = {kind: proposals.schema()["$defs"][kind] for kind in proposals.KINDS}
    assert flat["properties"]["kind"]["enum"] == list(definitions)
    fields = {name for definition in definitions.values() for name in definition["properties"]}
    assert set(flat["properties"]) == fields
    assert proposals.parse(PROPOSE.example)
    assert PROPOSE.parameters["required"] == proposals.schema()["required"]
    evidence = PROPOSE.parameters["properties"]["evidence"]["items"]
    assert set(evidence["properties"]) == set(proposals.schema()["$defs"]["evidence"]["properties"])
