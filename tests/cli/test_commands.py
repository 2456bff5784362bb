"""undo, journal, demo, and what the entry point does around them."""

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dap_agent.agent.journal import Journal
from dap_agent.cli import demo, exit_status
from dap_agent.cli import journal as commands
from dap_agent.cli.command_line import UsageError
from dap_agent.cli.main import main
from dap_agent.cli.stops import undo_command
from dap_agent.fixes import applying, edits, proposal
from dap_agent.fixes.proposal import StrReplace, WriteFile
from dap_agent.fixes.workspace import Workspace


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "app.py").write_text("x = 1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fix(project: Path) -> None:
    workspace = Workspace(project)
    workspace.read("app.py")
    changes = edits.plan(workspace, [StrReplace("app.py", "x = 1", "x = 2"), WriteFile("tests/test_x.py", "y = 1\n")])
    applying.apply(workspace, changes, label="Count from two")


def test_undo_takes_back_the_last_fix(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fix(project)
    assert (project / "app.py").read_text() == "x = 2\n"
    assert main(["undo"]) == 0
    assert (project / "app.py").read_text() == "x = 1\n"
    assert not (project / "tests").exists()
    out = capsys.readouterr().out
    assert out == f"taken back: Count from two\n  restored {project}/app.py\n  removed {project}/tests/test_x.py\n"


def test_undo_says_why_it_does_not(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["undo"]) == exit_status.UNABLE
    assert "There is no applied fix" in capsys.readouterr().err
    fix(project)
    (project / "app.py").write_text("x = 3\n")
    assert main(["undo", "--workspace", str(project)]) == exit_status.UNABLE
    err = capsys.readouterr().err
    assert "changed since the fix" in err
    assert "`dap-agent undo --force`" in err
    assert main(["undo", "--force"]) == 0
    assert (project / "app.py").read_text() == "x = 1\n"


@pytest.fixture
def journal(project: Path) -> Journal:
    made = Journal.create(
        project,
        model="local:x",
        command=[sys.executable, "app.py", "--json", "-"],
        headline="KeyError: 'x\x1b'",
        cwd=str(project),
    )
    turn = {"text": "I look.", "calls": [], "stop": "end", "usage": {}}
    made.write("turn", number=1, turn=turn, seconds=0.5, cost=0.1)
    usage = {"input_tokens": 10, "output_tokens": 2}
    made.write("end", status="gave-up", explanation="", verdict=None, usage=usage, cost=0.1, turns=1, seconds=1.0)
    made.close()
    return made


def test_the_journal_lists(journal: Journal, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["journal", "list"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.split() == ["id", "began", "(UTC)", "result", "turns", "cost", "exception"]
    assert second.startswith(f"{journal.id}  ")
    assert second.endswith("gave-up  1      $0.10  KeyError: 'x\\x1b'")


def test_the_journal_lists_as_json(journal: Journal, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["journal", "list", "--json"]) == 0
    (info,) = json.loads(capsys.readouterr().out)
    assert (info["id"], info["status"], info["path"]) == (journal.id, "gave-up", str(journal.path))


def test_an_empty_journal_says_where_it_would_be(capsys: pytest.CaptureFixture[str], private_state: Path) -> None:
    assert main(["journal", "list"]) == 0
    assert str(private_state) in capsys.readouterr().out


def test_the_journal_shows(journal: Journal, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["journal", "show", journal.id[:5]]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{journal.path}\n")
    assert "I look." in out
    assert main(["journal", "show", "nothing"]) == exit_status.UNABLE
    assert "There is no journal 'nothing'" in capsys.readouterr().err


def test_the_journal_tells_how_to_replay(journal: Journal, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["journal", "replay", "last", "--print"]) == 0
    assert capsys.readouterr().out == (
        f"cd {project} && dap-agent run --model scripted:{journal.path} --python {sys.executable} "
        f"--workspace {project} -- app.py --json -\n"
    )


def test_a_journal_is_replayed_in_its_own_folder(
    journal: Journal, project: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    replayed = []
    monkeypatch.setattr("dap_agent.cli.main.main", lambda words: replayed.append((Path.cwd(), words)) or 0)
    assert commands.replay("last", only_print=False) == 0
    ((folder, words),) = replayed
    assert folder == project
    assert words[-3:] == ["app.py", "--json", "-"]


def test_a_module_is_replayed_as_a_module(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Journal.create(project, command=["/p", "-m", "pytest", "-x"]).close()
    assert main(["journal", "replay", "last", "--print"]) == 0
    assert capsys.readouterr().out.endswith(" -m pytest -x\n")


def test_without_a_command_the_journal_says_how_to_play(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Journal.create(project).close()
    assert main(["journal", "replay", "last"]) == exit_status.USAGE
    assert "dap-agent run --model scripted:" in capsys.readouterr().err


def test_the_demo_is_a_project_with_passing_tests_that_crashes(tmp_path: Path) -> None:
    demo.copy_project(tmp_path / "demo")
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path / "demo",
        capture_output=True,
        text=True,
        check=False,
    )
    assert tests.returncode == 0, tests.stdout
    job = subprocess.run(
        [sys.executable, demo.PROGRAM, *demo.ARGUMENTS],
        cwd=tmp_path / "demo",
        capture_output=True,
        text=True,
        check=False,
    )
    assert job.returncode == 1
    assert job.stderr.endswith("KeyError: 'Gold '\n")


def test_the_demos_proposal_is_red_on_the_old_code_and_green_on_the_new(tmp_path: Path) -> None:
    demo.copy_project(tmp_path / "demo")
    turns = json.loads(demo.TURNS.read_text(encoding="utf-8"))["turns"]
    workspace = Workspace(tmp_path / "demo")
    workspace.read("billing/loading.py")
    fix = proposal.parse(turns[-1]["calls"][0]["arguments"])
    test = edits.plan(workspace, [WriteFile(fix.test.file, fix.test.source)])
    applying.apply(workspace, test, label="test")

    def run() -> "subprocess.CompletedProcess[str]":
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        return subprocess.run(words, cwd=workspace.root, capture_output=True, text=True, check=False)

    red = run()
    assert red.returncode == 1
    assert "discount_rate" in red.stdout
    assert "1 failed, 10 passed" in red.stdout
    applying.apply(workspace, edits.plan(workspace, fix.edits), label="fix")
    assert "11 passed" in run().stdout


def test_the_demo_wants_a_new_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert main(["demo", str(tmp_path)]) == exit_status.USAGE
    assert "is not empty" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["mine.txt"]
    with pytest.raises(UsageError, match="cannot be put"):
        demo.copy_project(tmp_path / "mine.txt" / "below")


def test_the_demo_without_a_folder_takes_the_first_free_name(tmp_path: Path) -> None:
    assert demo.free_folder(tmp_path).name == "dap-agent-demo"
    (tmp_path / "dap-agent-demo").mkdir()
    assert demo.free_folder(tmp_path).name == "dap-agent-demo"  # empty
    (tmp_path / "dap-agent-demo" / "file").touch()
    (tmp_path / "dap-agent-demo-2").touch()
    assert demo.free_folder(tmp_path).name == "dap-agent-demo-3"
    with pytest.raises(UsageError, match="is no folder"):
        demo.copy_project(tmp_path / "dap-agent-demo-2")


def test_the_told_undo_works_in_the_folder_where_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "my shop"
    root.mkdir()
    (root / "pyproject.toml").touch()
    (tmp_path / "elsewhere").mkdir()
    for number, folder in enumerate((root, tmp_path, tmp_path / "elsewhere")):
        workspace = Workspace(root)
        change = edits.plan(workspace, (WriteFile(f"new{number}.py", "x = 1\n"),))
        applying.apply(workspace, change, label="fix")
        monkeypatch.chdir(folder)
        told = shlex.split(undo_command(root))
        assert main(told[1:]) == 0
        assert not list(root.glob("*.py"))
    assert undo_command(tmp_path) == f"dap-agent undo --workspace {tmp_path}"
    monkeypatch.chdir(tmp_path)
    assert undo_command(root) == "dap-agent undo --workspace 'my shop'"


def python(code: str, **options: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=False, **options)  # type: ignore[call-overload,no-any-return]


def test_this_process_ends_by_the_programs_signal() -> None:
    code = "from dap_agent.cli import main; main._dispatch = lambda words: -{}; raise SystemExit(main.main(['x']))"
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGINT):
        assert python(code.format(int(number))).returncode == -number


def test_closed_standard_streams_are_opened_on_the_null_device(tmp_path: Path) -> None:
    code = (
        "import os, sys; from dap_agent.cli import main; main.main(['--help']); "
        f"os.open({str(tmp_path / 'file')!r}, os.O_CREAT | os.O_WRONLY); "
        "assert all(stream.closed is False for stream in (sys.stdin, sys.stdout, sys.stderr)); "
        "raise SystemExit(os.system('exec 5<&0 6>&1 7>&2'))"
    )
    for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        words = [sys.executable, "-c", code]
        assert subprocess.run(f"{shlex.join(words)} {closed}", shell=True, check=False).returncode == 0, closed
    assert (tmp_path / "file").read_bytes() == b""


def test_a_bug_of_ours_is_one_sentence_with_the_traceback_in_a_file(private_state: Path) -> None:
    code = "from dap_agent.cli import main; main._dispatch = lambda words: 1 / 0; raise SystemExit(main.main(['x']))"
    done = python(code)
    assert done.returncode == exit_status.UNABLE
    assert done.stderr.startswith("dap-agent: dap-agent itself failed with ZeroDivisionError")
    assert done.stderr.count("\n") == 1
    assert "ZeroDivisionError" in (private_state / "last-failure.txt").read_text()


def test_a_listing_that_nobody_reads_to_the_end_is_no_failure(project: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    for _ in range(3):
        Journal.create(project, headline="KeyError: 'x'").close()
    with open(writer, "wb") as pipe:
        done = subprocess.run(
            [sys.executable, "-m", "dap_agent", "journal", "list"],
            stdout=pipe,
            stderr=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, b"")
