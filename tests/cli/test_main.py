"""The entry point: help, usage errors, and how little `--help` needs."""

import subprocess
import sys
from pathlib import Path

import pytest

import dap_agent
from dap_agent.cli import exit_status
from dap_agent.cli.main import build_parser, main
from dap_agent.cli.options import OPTIONS, readme_table

ROOT = Path(__file__).resolve().parents[2]

HEAVY = (
    "asyncio",
    "rich",
    "jsonschema",
    "anthropic",
    "openai",
    "pygls",
    "pytest",
    "debugpy",
    "dataclasses",
    "platformdirs",
)


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"dap-agent {dap_agent.__version__}\n"


@pytest.mark.parametrize(
    "words",
    [[], ["--help"], ["run", "--help"], ["attach", "-h"], ["demo", "--help"], ["undo", "-h"], ["journal", "--help"]],
)
def test_help_is_a_success(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("usage: dap-agent")
    assert captured.err == ""


def test_the_help_of_run_tells_every_option_and_status(capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", "--help"])
    text = capsys.readouterr().out
    for option in OPTIONS:
        assert option.flag in text
    for status in (64, 70, 80, 81, 82, 83):
        assert f"  {status}  {exit_status.MEANINGS[status]}" in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["run"], "There is nothing to run: give a PROGRAM or -m MODULE."),
        (["run", "-m"], "-m wants the name of a module"),
        (["run", "nowhere.py"], "There is no program nowhere.py"),
        (["run", "--modle", "x", "y.py"], "Unrecognized arguments: --modle. See dap-agent run --help."),
        (["journal", "list", "x"], "Unrecognized arguments: x. See dap-agent journal list --help."),
        (["run", "--model"], "Argument --model: expected one argument"),
        (["run", "--max", "3", __file__], "Unrecognized arguments: --max"),
        (["run", "--max-turns", "many", __file__], "--max-turns wants a whole number above 0, not 'many'."),
        (["run", "--fix", "perhaps", __file__], "--fix wants one of ask, auto, never, not 'perhaps'."),
        (["run", "--python", "/nowhere/python", __file__], "There is no Python interpreter /nowhere/python"),
        (["run", "--workspace", "/nowhere", __file__], "There is no folder /nowhere"),
        (["rum", "x.py"], "Argument COMMAND: invalid choice: 'rum'"),
        (["attach"], "One of the arguments --pid --connect is required"),
        (["attach", "--pid", "0"], "a process id is a number above 0"),
        (["attach", "--pid", "1", "--connect", "x:1"], "not allowed with argument --pid"),
        (["attach", "--connect", "host"], "an address is HOST:PORT"),
        (["attach", "--connect", "host:99999"], "an address is HOST:PORT"),
        (["journal"], "The following arguments are required: ACTION"),
        (["journal", "show"], "The following arguments are required: ID"),
        (["path", "emacs"], "Argument EDITOR: invalid choice: 'emacs'"),
    ],
)
def test_a_usage_error_is_one_sentence_and_status_64(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == exit_status.USAGE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("dap-agent: ")
    assert captured.err.count("\n") == 1
    assert sentence in captured.err


def test_our_statuses_are_distinct_and_clear_of_the_usual_ones() -> None:
    assert len(set(exit_status.MEANINGS)) == 7
    assert all(5 < status < 126 for status in exit_status.MEANINGS)


def test_help_imports_nothing_heavy() -> None:
    code = "import sys; from dap_agent.cli.main import main; main(['run', '-h']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(HEAVY) & set(done.stderr.split()) == set()


def test_python_dash_m_is_the_same() -> None:
    done = subprocess.run([sys.executable, "-m", "dap_agent", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"dap-agent {dap_agent.__version__}\n"
    done = subprocess.run([sys.executable, "-m", "dap_agent", "run"], capture_output=True, text=True, check=False)
    assert done.returncode == exit_status.USAGE


def test_the_readme_has_the_table_of_options() -> None:
    assert readme_table() in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_has_the_exit_statuses() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for status, meaning in exit_status.MEANINGS.items():
        assert f"| {status} | {meaning} |" in text


def test_the_parser_has_every_option_of_the_table() -> None:
    parser = build_parser()
    for command, words in {"run": [], "attach": ["--pid", "1"], "demo": [], "undo": []}.items():
        parsed = vars(parser.parse_args([command, *words]))
        expected = {option.field for option in OPTIONS if command in option.commands}
        assert expected <= parsed.keys()
        assert not (parsed.keys() & {option.field for option in OPTIONS}) - expected


def test_the_workspace_of_an_environments_command_is_the_current_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dap_agent.cli import run

    roots: list[Path] = []
    monkeypatch.setattr(run, "command", lambda settings, program, root: roots.append(root) or 0)
    for name in ("envs/web/bin/flask", "envs/web/bin/python3", "proj/pyproject.toml", "proj/tools/job", "alone/job"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path / "proj")
    for program in ("../envs/web/bin/flask", "tools/job", "../alone/job"):
        assert main(["run", program]) == 0
    assert roots == [tmp_path / "proj", tmp_path / "proj", tmp_path / "alone"]
