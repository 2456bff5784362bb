"""Flag before environment before file, and what each refuses."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from dap_agent.cli.options import OPTIONS, options_of
from dap_agent.cli.settings import Settings, SettingsError, load
from dap_agent.proxy.options import ASSISTANT

#: For each option: a text for flag and variable, a TOML value, and what either becomes.
EXAMPLES: dict[str, tuple[str, str, Any]] = {
    "model": ("local:http://localhost:1", '"local:http://localhost:1"', "local:http://localhost:1"),
    "fix": ("auto", '"auto"', "auto"),
    "continue": ("yes", "true", True),
    "python": (sys.executable, f'"{sys.executable}"', Path(sys.executable)),
    "json": ("-", '"-"', "-"),
    "show-prompt": ("yes", "true", True),
    "max-turns": ("3", "3", 3),
    "max-tokens": ("3000", "3000", 3000),
    "max-cost": ("0.5", "0.5", 0.5),
    "timeout": ("12", "12", 12.0),
    "workspace": (os.sep, f'["{os.sep}"]', (Path(os.sep),)),
    "stop-at-raise": ("always", '"always"', "always"),
    "record": ("yes", "true", True),
    "ignore": ("Retry, module:net", '["Retry", "module:net"]', ("Retry", "module:net")),
    "allow-evaluate": ("1", "true", True),
}


def of(root: Path, flags: dict[str, Any] | None = None, environ: dict[str, str] | None = None) -> Settings:
    return load("run", flags or {}, environ=environ or {}, root=root)


def write(root: Path, text: str) -> None:
    (root / "pyproject.toml").write_text(f"[tool.dap-agent]\n{text}\n", encoding="utf-8")


def test_every_option_has_an_example_here() -> None:
    assert set(EXAMPLES) == {option.name for option in OPTIONS}


def test_without_anything_the_defaults_hold(tmp_path: Path) -> None:
    settings = of(tmp_path)
    assert (settings.model, settings.fix, settings.json, settings.workspace) == (None, None, None, ())
    assert (settings.max_turns, settings.max_tokens, settings.max_cost, settings.timeout) == (40, 500_000, 5.0, 900.0)
    assert (settings.show_prompt, settings.allow_evaluate, settings.pyproject) == (False, False, None)


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_an_option_can_be_set_in_the_environment(option: Any, tmp_path: Path) -> None:
    text, _, value = EXAMPLES[option.name]
    assert getattr(of(tmp_path, environ={option.variable: text}), option.field) == value


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_an_option_can_be_set_in_the_file(option: Any, tmp_path: Path) -> None:
    _, toml, value = EXAMPLES[option.name]
    write(tmp_path, f"{option.name} = {toml}")
    settings = of(tmp_path)
    assert getattr(settings, option.field) == value
    assert settings.pyproject == tmp_path / "pyproject.toml"


def test_a_flag_comes_before_the_environment_before_the_file(tmp_path: Path) -> None:
    write(tmp_path, "max-turns = 1")
    assert of(tmp_path).max_turns == 1
    assert of(tmp_path, environ={"DAP_AGENT_MAX_TURNS": "2"}).max_turns == 2
    assert of(tmp_path, {"max_turns": "3"}, {"DAP_AGENT_MAX_TURNS": "2"}).max_turns == 3


def test_an_empty_variable_is_as_none(tmp_path: Path) -> None:
    assert of(tmp_path, environ={option.variable: "" for option in OPTIONS}) == of(tmp_path)


def test_a_switch_of_the_file_can_be_turned_off(tmp_path: Path) -> None:
    write(tmp_path, "allow-evaluate = true")
    assert of(tmp_path, {"allow_evaluate": False}).allow_evaluate is False
    assert of(tmp_path, environ={"DAP_AGENT_ALLOW_EVALUATE": "0"}).allow_evaluate is False


def test_money_can_have_no_limit(tmp_path: Path) -> None:
    assert of(tmp_path, {"max_cost": "none"}).max_cost is None


WRONG = [
    ("max-turns", "0"),
    ("max-turns", "many"),
    ("max-tokens", "-1"),
    ("max-cost", "free"),
    ("max-cost", "nan"),
    ("timeout", "inf"),
    ("fix", "maybe"),
    ("model", " "),
    ("allow-evaluate", "perhaps"),
    ("stop-at-raise", "sometimes"),
    ("record", "sometimes"),
    ("ignore", "Retry Error"),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_wrong_variable_is_named(name: str, value: str, tmp_path: Path) -> None:
    variable = "DAP_AGENT_" + name.upper().replace("-", "_")
    with pytest.raises(SettingsError) as caught:
        of(tmp_path, environ={variable: value})
    assert variable in caught.value.message
    assert repr(value) in caught.value.message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('max-turns = "3x"', "the key max-turns"),
        ("max-turns = true", "the key max-turns"),
        ("max-turns = 2.5", "the key max-turns"),
        ("allow-evaluate = 3", "true or false"),
        ("model = 3", "the key model"),
        ("workspace = 3", "the key workspace"),
        ("workspace = [3]", "the key workspace"),
        ('max-turn = "3"', "unknown key max-turn.* did you mean max-turns"),
        ('max_turns = "3"', "unknown key max_turns.* did you mean max-turns"),
        ("colour = 1", "unknown key colour.* known keys are model, fix"),
        ("max-turns = ", "not valid TOML"),
    ],
)
def test_a_wrong_file_is_told_with_file_and_key(text: str, words: str, tmp_path: Path) -> None:
    write(tmp_path, text)
    with pytest.raises(SettingsError, match=words) as caught:
        of(tmp_path)
    assert str(tmp_path / "pyproject.toml") in caught.value.message


def test_a_wrong_key_is_told_even_if_a_flag_wins(tmp_path: Path) -> None:
    write(tmp_path, "max-turns = 0")
    with pytest.raises(SettingsError, match="max-turns"):
        of(tmp_path, {"max_turns": "3"})


def test_a_broken_file_without_our_table_is_none_of_our_business(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project\n", encoding="utf-8")
    assert of(tmp_path).pyproject is None


def test_the_table_must_be_a_table(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool]\ndap-agent = 3\n", encoding="utf-8")
    with pytest.raises(SettingsError, match="must be a table"):
        of(tmp_path)


def test_paths_in_the_file_are_relative_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project" / "src").mkdir(parents=True)
    (tmp_path / "shared").mkdir()
    write(tmp_path / "project", 'workspace = ["src", "../shared"]\njson = "out.json"')
    monkeypatch.chdir(tmp_path)
    settings = of(tmp_path / "project")
    assert settings.workspace == (tmp_path / "project" / "src", tmp_path / "shared")
    assert settings.json == str(tmp_path / "project" / "out.json")


def test_a_named_workspace_decides_which_file_is_read(tmp_path: Path) -> None:
    for name, turns in (("one", 1), ("two", 2)):
        (tmp_path / name).mkdir()
        write(tmp_path / name, f"max-turns = {turns}")
    assert of(tmp_path / "one").max_turns == 1
    assert of(tmp_path / "one", {"workspace": [str(tmp_path / "two")]}).max_turns == 2


def test_folders_and_files_that_are_not_there_are_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no folder"):
        of(tmp_path, {"workspace": [str(tmp_path / "nowhere")]})
    with pytest.raises(SettingsError, match="no Python interpreter"):
        of(tmp_path, {"python": str(tmp_path / "python")})
    with pytest.raises(SettingsError, match="no such folder"):
        of(tmp_path, {"json": str(tmp_path / "nowhere" / "report.json")})
    with pytest.raises(SettingsError, match="it is a folder"):
        of(tmp_path, {"json": str(tmp_path)})


@pytest.mark.parametrize(
    ("prints", "sentence"),
    [
        ("2.7", "is Python 2.7: --python wants Python 3.8 or newer"),
        ("3.7", "is Python 3.7"),
        ("hello", "is no Python interpreter"),
    ],
)
def test_an_interpreter_that_cannot_be_debugged_is_refused(tmp_path: Path, prints: str, sentence: str) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho {prints}\n")
    python.chmod(0o755)
    with pytest.raises(SettingsError, match=sentence):
        of(tmp_path, {"python": str(python)})
    python.write_bytes(b"\x7fELF")
    with pytest.raises(SettingsError, match="cannot be run"):
        of(tmp_path, {"python": str(python)})


def environment(folder: Path) -> Path:
    (folder / "bin").mkdir(parents=True)
    python = folder / "bin" / "python"
    python.symlink_to(sys.executable)
    return python


def test_the_interpreter_is_the_active_environments_else_ours(tmp_path: Path) -> None:
    assert of(tmp_path).python == Path(sys.executable)
    python = environment(tmp_path / "env")
    # as a symbolic link: resolved, it would be another environment's interpreter
    assert of(tmp_path, environ={"VIRTUAL_ENV": str(tmp_path / "env")}).python == python
    assert of(tmp_path, environ={"VIRTUAL_ENV": str(tmp_path / "gone")}).python == Path(sys.executable)


def test_an_interpreter_can_be_named_by_its_environment_or_on_the_path(tmp_path: Path) -> None:
    python = environment(tmp_path / "env")
    assert of(tmp_path, {"python": str(tmp_path / "env")}).python == python
    assert of(tmp_path, {"python": "python"}, {"PATH": str(python.parent)}).python == python


def test_other_commands_take_what_they_have(tmp_path: Path) -> None:
    write(tmp_path, f'workspace = "{tmp_path}"\nmax-turns = 7')
    assert load("demo", {}, environ={}, root=tmp_path).workspace == ()
    assert load("undo", {}, environ={}, root=tmp_path).workspace == (tmp_path,)
    assert load("undo", {}, environ={}, root=tmp_path).max_turns == 40
    assert {option.name for option in options_of("undo")} == {"workspace"}


# The adapter: a launch configuration comes first, and what is wrong is told


def adapter(root: Path, configuration: dict[str, Any], **more: Any) -> tuple[Settings, list[str]]:
    told: list[str] = []
    settings = load(
        "adapter",
        more.get("flags", {}),
        environ=more.get("environ", {}),
        root=root,
        configuration=configuration,
        tell=told.append,
    )
    return settings, told


def test_a_configuration_comes_before_flags(tmp_path: Path) -> None:
    settings, told = adapter(tmp_path, {"maxTurns": 4}, flags={"max_turns": "3"}, environ={"DAP_AGENT_MAX_TURNS": "2"})
    assert (settings.max_turns, told) == (4, [])


def test_its_folders_are_relative_to_the_project(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    settings, told = adapter(tmp_path, {"workspace": ["lib"]})
    assert (settings.workspace, told) == ((tmp_path / "lib",), [])


def test_what_is_wrong_is_told_and_counts_as_not_given(tmp_path: Path) -> None:
    write(tmp_path, "max-turns = 7\nmax-tokens = true\ntimeout = 5")
    settings, told = adapter(
        tmp_path,
        {"maxTurns": "many", "maxCost": -1, "python": "/nowhere/python"},
        flags={"timeout": "soon"},
        environ={"DAP_AGENT_MAX_COST": "0.25"},
    )
    assert (settings.max_turns, settings.max_tokens, settings.max_cost, settings.timeout) == (7, 500_000, 0.25, 5.0)
    assert not settings.python_given
    wanted = ["maxTurns of dapAgent", "maxCost of dapAgent", "/nowhere/python", "--timeout", "the key max-tokens"]
    assert len(told) == len(wanted)
    for words in wanted:
        assert any(words in sentence for sentence in told), (words, told)


@pytest.mark.parametrize("text", ["model = ", "modle = 'x'"])
def test_a_file_that_is_wrong_is_told(tmp_path: Path, text: str) -> None:
    write(tmp_path, text)
    settings, told = adapter(tmp_path, {"maxTurns": 4})
    assert settings.max_turns == 4
    assert len(told) == 1
    assert "pyproject.toml" in told[0]


def test_what_a_flag_overrides_need_not_be_there(tmp_path: Path) -> None:
    write(tmp_path, "python = '/nowhere/python'")
    assert of(tmp_path, {"python": sys.executable}).python == Path(sys.executable)


def test_the_keys_of_a_configuration_are_those_that_the_proxy_leaves_to_us() -> None:
    assert {option.key for option in options_of("adapter")} == set(ASSISTANT)
