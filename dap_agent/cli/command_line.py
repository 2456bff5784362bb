"""Where our options end and the program's arguments begin.

Imported for `--help`, so only cheap modules here.
"""

from collections.abc import Sequence
from typing import NamedTuple

from dap_agent.errors import DapAgentError


class UsageError(DapAgentError):
    """A command line that cannot be understood."""


class Target(NamedTuple):
    """What to run.

    Args:
        name: a program's path as given, or a module's name.
        is_module: whether it was given with `-m`.
        args: the program's arguments, verbatim.
    """

    name: str
    is_module: bool
    args: tuple[str, ...]


def split(tokens: Sequence[str], with_value: "frozenset[str]") -> "tuple[list[str], Target | None]":
    """Split the words after `run` into our options and the program.

    The first word that is neither an option nor an option's value is PROGRAM; `-m` is followed by MODULE. Everything
    after either belongs to the program, whatever it looks like. A `--` says that the next word is
    PROGRAM.

    Args:
        tokens: the words after the subcommand.
        with_value: our options that take a value (`--model`).

    Returns:
        Our options (unknown ones included, for argparse to refuse), and the program if there is one.

    Raises:
        UsageError: `-m` without a module, `--` without a program, `-`, or `-c`.
    """
    ours: list[str] = []
    position = 0
    while position < len(tokens):
        token = tokens[position]
        rest = tokens[position + 1 :]
        if token == "-m":
            if not rest:
                raise UsageError("-m wants the name of a module to run.")
            return ours, Target(rest[0], True, tuple(rest[1:]))
        if token == "--":
            if not rest:
                raise UsageError("There is no program after --.")
            return ours, Target(rest[0], False, tuple(rest[1:]))
        if token == "-":
            raise UsageError("A program cannot be read from standard input: give a file or -m MODULE.")
        if token == "-c" or (token.startswith("-c") and not token.startswith("--")):
            raise UsageError("There is no -c: put the code into a file, as a fix needs a file to change.")
        if token.startswith("-m") and not token.startswith("--"):
            return ours, Target(token[2:], True, tuple(rest))
        if not token.startswith("-"):
            return ours, Target(token, False, tuple(rest))
        ours.append(token)
        position += 1
        if token in with_value and position < len(tokens):
            ours.append(tokens[position])
            position += 1
    return ours, None
