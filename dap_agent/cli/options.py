"""The table of options: one entry gives flag, `DAP_AGENT_*` variable, pyproject.toml key and README row.

Imported for `--help`, so only cheap modules here.
"""

import math
import os
from collections.abc import Callable
from typing import Any, NamedTuple


class BadValue(ValueError):
    """A value that an option does not take; the message says what it takes (`a whole number above 0`)."""


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise BadValue("a text that is not empty")
    return value.strip()


def _fix(value: object) -> str:
    if value not in ("ask", "auto", "never"):
        raise BadValue("one of ask, auto, never")
    return str(value)


def _at_raise(value: object) -> str:
    if value not in ("auto", "always", "never"):
        raise BadValue("one of auto, always, never")
    return str(value)


def _names(value: object) -> tuple[str, ...]:
    wanted = BadValue(
        "names of exception classes, and module:NAME (in a variable separated by commas, in a file a list)"
    )
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        raise wanted
    if not all(item.removeprefix("module:").replace(".", "_").isidentifier() for item in value):
        raise wanted
    return tuple(value)


def _count(value: object) -> int:
    wanted = BadValue("a whole number above 0")
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            raise wanted from None
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise wanted
    return value


def _number(value: object, wanted: str) -> float:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise BadValue(wanted) from None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
        raise BadValue(wanted)
    return float(value)


def _seconds(value: object) -> float:
    return _number(value, "a number of seconds above 0")


def _money(value: object) -> "float | None":
    if value == "none":
        return None
    return _number(value, 'an amount of US dollars above 0, or "none" for no limit')


def _truth(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("1", "true", "yes", "on"):
        return True
    if isinstance(value, str) and value.lower() in ("0", "false", "no", "off", ""):
        return False
    raise BadValue("true or false")


def _paths(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = value.split(os.pathsep)
    if not isinstance(value, (list, tuple)) or not value or not all(isinstance(item, str) and item for item in value):
        raise BadValue(f"folders (in a variable separated by {os.pathsep!r}, in a file a list)")
    return tuple(value)


class Option(NamedTuple):
    """One option.

    Args:
        name: `max-turns` for the flag `--max-turns`, the variable `DAP_AGENT_MAX_TURNS` and the key `max-turns`.
        parse: turns a text (flag, variable) or a TOML value into the value; raises `BadValue`.
        default: the value where nothing is given.
        metavar: what the value is called in the help; empty for a yes/no option.
        help: one sentence, also the README row.
        commands: the subcommands that have it.
        repeatable: the flag may be given several times.
        shown: how the default is told, where it is not simply `str(default)`.
    """

    name: str
    parse: Callable[[object], Any]
    default: Any
    metavar: str
    help: str
    commands: tuple[str, ...] = ("run", "attach", "demo")
    repeatable: bool = False
    shown: str = ""

    @property
    def field(self) -> str:
        """The name in `Settings` and in an argparse namespace."""
        return "go_on" if self.name == "continue" else self.name.replace("-", "_")  # a word of Python's

    @property
    def flag(self) -> str:
        """`--max-turns`."""
        return f"--{self.name}"

    @property
    def variable(self) -> str:
        """`DAP_AGENT_MAX_TURNS`."""
        return "DAP_AGENT_" + self.name.replace("-", "_").upper()

    @property
    def key(self) -> str:
        """`maxTurns`, the key below `dapAgent` in a launch configuration."""
        first, *others = self.name.split("-")
        return first + "".join(word.capitalize() for word in others)

    @property
    def is_switch(self) -> bool:
        """Whether it is on or off and takes no value."""
        return not self.metavar

    @property
    def default_words(self) -> str:
        """The default as help and README tell it."""
        return self.shown or str(self.default)


WITH_MODEL = ("run", "attach", "demo", "adapter")

OPTIONS: tuple[Option, ...] = (
    Option(
        "model",
        _text,
        None,
        "PROVIDER:NAME",
        "the model that investigates: anthropic:NAME, openai:NAME, local:URL (any OpenAI-compatible server), or "
        "scripted:FILE (recorded turns)",
        commands=WITH_MODEL,
        shown="none, crashes are only reported",
    ),
    Option(
        "fix",
        _fix,
        None,
        "ask|auto|never",
        "what happens to a proposed fix: ask shows it and asks, auto applies it if it is proved, never only shows it",
        shown="ask on a terminal, else never; demo: else auto",
    ),
    Option(
        "continue",
        _truth,
        False,
        "",
        "once a fix is applied, put it into the running program, which calls the failing function again and goes on; "
        "where that can't be done it is run again from its start",
        commands=("run",),
        shown="off, the program is run again",
    ),
    Option(
        "python",
        _text,
        None,
        "PYTHON",
        "the interpreter that runs the program and the regression test, Python 3.8 or newer",
        commands=WITH_MODEL,
        shown="the active virtual environment's, else the one dap-agent runs under; attach, adapter: the program's own",
    ),
    Option(
        "json",
        _text,
        None,
        "FILE|-",
        "write a report as one JSON document; with - it goes to standard output, the program's own output then goes "
        "to standard error, and dap-agent says nothing else",
        shown="no report",
    ),
    Option(
        "show-prompt",
        _truth,
        False,
        "",
        "print what would be sent to the model, and send nothing",
        shown="off",
    ),
    Option("max-turns", _count, 40, "N", "the most calls of the model in one run", commands=WITH_MODEL),
    Option("max-tokens", _count, 500_000, "N", "the most tokens, read and written, in one run", commands=WITH_MODEL),
    Option(
        "max-cost",
        _money,
        5.0,
        "USD",
        "the most US dollars that one run may cost, or none for no limit; cannot be kept for a model whose price is "
        "unknown",
        commands=WITH_MODEL,
        shown="5",
    ),
    Option(
        "timeout",
        _seconds,
        900.0,
        "SECONDS",
        "the most time that one run is investigated",
        commands=WITH_MODEL,
        shown="900",
    ),
    Option(
        "workspace",
        _paths,
        (),
        "DIR",
        "where edits may go; repeatable: the first is the project's root, others are also allowed",
        commands=("run", "attach", "adapter", "undo"),
        repeatable=True,
        shown="the project's root, found from the program (undo: from the current folder)",
    ),
    Option(
        "stop-at-raise",
        _at_raise,
        "auto",
        "auto|always|never",
        "stop already where an exception is raised that nothing will handle, with all frames alive: auto does so "
        "where it costs nothing until something is raised, on every usual CPython; always does so on any other one, "
        "too, and makes programs several times slower there",
        commands=("run", "demo"),
    ),
    Option(
        "ignore",
        _names,
        (),
        "TYPE|module:NAME",
        "exceptions that are never a stop: a class, bare or qualified, with its subclasses, or what is raised in a "
        "module or package; repeatable",
        commands=("run", "demo"),
        repeatable=True,
        shown="none beyond SystemExit and its like",
    ),
    Option(
        "record",
        _truth,
        None,
        "",
        "remember the last calls of your functions (how often, arguments, results, exceptions), so that also code that "
        "returned before the failure is seen; below Python 3.12 a program that calls much is watched in short windows, "
        "and with --record in full, which makes it ten times slower and more",
        commands=("run", "attach", "demo"),
        shown="on",
    ),
    Option(
        "allow-evaluate",
        _truth,
        False,
        "",
        "let the model run its code in the live program, where it can do whatever your program can do, instead of in a "
        "copy that can change nothing outside itself",
        commands=WITH_MODEL,
        shown="off",
    ),
)


def options_of(command: str) -> tuple[Option, ...]:
    """The options that *command* (`run`) has."""
    return tuple(option for option in OPTIONS if command in option.commands)


def readme_table() -> str:
    """The table of options in README.md; a test keeps the two equal."""
    rows = ["| flag, key | variable | commands | default | meaning |", "|---|---|---|---|---|"]
    for option in OPTIONS:
        value = f" {option.metavar}" if option.metavar else ""
        flag = f"`{option.flag}{value}`".replace("|", "\\|")
        meaning = option.help.replace("|", "\\|")
        rows.append(
            f"| {flag} | `{option.variable}` | {', '.join(option.commands)} | {option.default_words} | {meaning} |"
        )
    return "\n".join(rows)
