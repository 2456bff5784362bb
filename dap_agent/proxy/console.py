"""Which requests of a client are ours: the custom ones, and what is typed into the debug console with a slash.

No Python expression begins with a slash, so nothing is taken away from the debuggee.
"""

from collections.abc import Mapping
from typing import Any

CUSTOM = "dapAgent/"
"""What the names of our custom requests and the ids of our progress begin with."""

_SLASH = "/"


def is_ours(command: str, arguments: Mapping[str, Any]) -> bool:
    """Whether a client's request is to us and never reaches the adapter.

    Args:
        command: of the request.
        arguments: its arguments, whatever they are.
    """
    if command.startswith(CUSTOM):
        return True
    if command == "evaluate":
        return arguments.get("context") == "repl" and is_command(arguments.get("expression"))
    if command == "cancel":  # of progress that we have reported; there is no other
        return str(arguments.get("progressId", "")).startswith(CUSTOM)
    return command == "completions" and is_command(arguments.get("text"))


def is_command(text: object) -> bool:
    """Whether a line of the debug console is one of our commands; two slashes are a way past us."""
    line = text.strip() if isinstance(text, str) else ""
    return line.startswith(_SLASH) and not line.startswith(2 * _SLASH)
