"""The settings of one call: flag before `DAP_AGENT_*` before `[tool.dap-agent]` in the workspace's pyproject.toml."""

import difflib
import importlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from dap_agent.cli.command_line import UsageError
from dap_agent.cli.options import OPTIONS, BadValue, Option, options_of

Fix = Literal["ask", "auto", "never"]


class SettingsError(UsageError):
    """A setting that is unknown or has a wrong value; the message names where it stands."""


@dataclass(frozen=True)
class Settings:
    """What was asked for. The meanings are those of `options.OPTIONS`.

    Args:
        fix: None where nothing was given: the subcommand decides.
        python: the debuggee's interpreter; not resolved, as a virtual environment's is a symbolic link.
        python_given: whether it was asked for, or is the default.
        json: where the report goes, `-` for standard output.
        max_cost: US dollars, None for no limit.
        timeout: seconds.
        workspace: absolute folders, the first is the root; empty if none was named.
        stop_at_raise: see `session.launch.StopRules`.
        ignore: the same.
        record: the same.
        go_on: `--continue`.
        pyproject: the file that was read for settings, if there was one.
    """

    model: str | None
    fix: Fix | None
    python: Path
    python_given: bool
    json: str | None
    show_prompt: bool
    max_turns: int
    max_tokens: int
    max_cost: float | None
    timeout: float
    workspace: tuple[Path, ...]
    stop_at_raise: Literal["auto", "always", "never"]
    ignore: tuple[str, ...]
    record: bool | None
    allow_evaluate: bool
    go_on: bool = False
    pyproject: Path | None = None


def load(
    command: str,
    flags: Mapping[str, Any],
    *,
    environ: Mapping[str, str],
    root: Path,
    configuration: Mapping[str, Any] | None = None,
    tell: Callable[[str], None] | None = None,
) -> Settings:
    """The settings for one call of *command*.

    Args:
        flags: what the command line gave, by `Option.field`; missing or None where it gave nothing.
        environ: the environment.
        root: the project's root as found from the program; its pyproject.toml is read unless a flag or the environment
            names another workspace.
        configuration: what a launch configuration gave, by `Option.key`; it comes before all others. Relative paths in
            it are relative to *root*.
        tell: is told of each wrong value, which counts as not given then; without it the first one is raised.

    Raises:
        SettingsError: a wrong value, or an unknown key in the file.
    """
    here = Path.cwd()
    values: dict[str, Any] = {}
    wrong = _raise if tell is None else lambda error: tell(error.message)

    def take(option: Option, value: object, where: str, base: Path) -> None:
        """Check a value; it counts if there is none yet, and *command* has this option."""
        try:
            checked = _checked(option, value, where)
            if option.field not in values and command in option.commands:
                values[option.field] = _usable(option, checked, base, environ)
        except SettingsError as error:
            wrong(error)

    for option in options_of(command):
        if configuration is not None and option.key in configuration:
            where = f"The key {option.key} of dapAgent in the launch configuration"
            take(option, configuration[option.key], where, root)
        given = flags.get(option.field)
        if given is not None:
            take(option, given, option.flag, here)
        elif environ.get(option.variable):
            take(option, environ[option.variable], f"The environment variable {option.variable}", here)
    folders = values.get("workspace")
    pyproject = (folders[0] if folders else root) / "pyproject.toml"
    try:
        table = _table(pyproject)
    except SettingsError as error:
        wrong(error)
        table = {}
    for option in OPTIONS:
        if option.name in table:
            # a wrong value is told even where a flag wins, or this subcommand has no such option
            where = f"{pyproject}: the key {option.name} of [tool.dap-agent]"
            take(option, table[option.name], where, pyproject.parent)
    for option in OPTIONS:
        values.setdefault(option.field, option.default)
    values["python_given"] = values["python"] is not None
    values["python"] = values["python"] or _default_python(environ)
    return Settings(**values, pyproject=pyproject if table else None)


def _raise(error: SettingsError) -> None:
    raise error


def _usable(option: Option, value: Any, base: Path, environ: Mapping[str, str]) -> Any:
    """A value of the right kind, made absolute, and seen to exist where it has to."""
    if option.name == "python":
        return _python(value, base, environ)
    if option.name == "workspace":
        return tuple(_folder(base / folder) for folder in value)
    if option.name == "json" and value != "-":
        path = base / Path(value).expanduser()
        problem = "it is a folder" if path.is_dir() else "there is no such folder"
        if path.is_dir() or not path.parent.is_dir():
            raise SettingsError(f"The report cannot be written to {path}: {problem}.")
        return str(path)
    return value


def _checked(option: Option, value: object, where: str) -> Any:
    if option.repeatable and isinstance(value, list) and where == option.flag:
        value = tuple(value)
    try:
        return option.parse(value)
    except BadValue as error:
        raise SettingsError(f"{where} wants {error}, not {value!r}.") from None


def _table(pyproject: Path) -> dict[str, object]:
    """`[tool.dap-agent]` of a file; empty if there is no such file or table."""
    try:
        data = pyproject.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise SettingsError(f"{pyproject} cannot be read: {error.strerror}.") from error
    if b"dap-agent" not in data:
        # a file that is none of our business may be broken without stopping us, and need not be parsed
        return {}
    # the standard library has it since 3.11; before, it is a dependency
    tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        document = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{pyproject} is not valid TOML: {error}.") from error
    tool = document.get("tool", {})
    table = tool.get("dap-agent", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise SettingsError(f"{pyproject}: tool.dap-agent must be a table, [tool.dap-agent].")
    known = [option.name for option in OPTIONS]
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key.replace("_", "-"), known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known keys are {', '.join(known)}."
            raise SettingsError(f"{pyproject}: unknown key {key} in [tool.dap-agent]; {hint}")
    return cast("dict[str, object]", table)


def _default_python(environ: Mapping[str, str]) -> Path:
    active = environ.get("VIRTUAL_ENV")
    candidate = _interpreter_in(Path(active)) if active else None
    return candidate or Path(sys.executable)


def _python(given: str, base: Path, environ: Mapping[str, str]) -> Path:
    if os.sep not in given and (found := shutil.which(given, path=environ.get("PATH"))):
        return _checked_version(Path(found))
    path = base / Path(given).expanduser()
    if path.is_dir():
        # naming the environment instead of its interpreter is an easy slip with one possible meaning
        path = _interpreter_in(path) or path
    if not path.is_file() or not os.access(path, os.X_OK):
        raise SettingsError(f"There is no Python interpreter {given}: --python wants the path of one that can be run.")
    return _checked_version(path)


def _checked_version(python: Path) -> Path:
    """*python*; refused if no program can be debugged there, as it would run there without being watched."""
    try:
        asked = subprocess.run(
            [python, "-ES", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        raise SettingsError(f"{python} cannot be run: --python wants a Python interpreter.") from None
    version = re.fullmatch(r"(\d+)\.(\d+)", asked.stdout.strip())
    if version is None:
        raise SettingsError(f"{python} is no Python interpreter: --python wants one of Python 3.8 or newer.")
    if (int(version[1]), int(version[2])) < (3, 8):
        raise SettingsError(f"{python} is Python {version[0]}: --python wants Python 3.8 or newer.")
    return python


def _interpreter_in(environment: Path) -> Path | None:
    candidates = (environment / "bin" / "python", environment / "Scripts" / "python.exe")
    return next((path for path in candidates if path.is_file()), None)


def _folder(path: Path) -> Path:
    path = path.expanduser()
    if not path.is_dir():
        raise SettingsError(f"There is no folder {path}: --workspace wants one that exists.")
    return path.resolve()
