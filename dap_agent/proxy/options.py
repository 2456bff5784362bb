"""The key `dapAgent` of a launch or attach configuration: what the user wants of us in this session."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

KEY = "dapAgent"


@dataclass(frozen=True)
class Options:
    """What was asked for.

    Args:
        enabled: False (`"dapAgent": false`): a pure relay; only requests that wedge the adapter are still refused.
        nodelay: whether the debuggee's debug socket gets TCP_NODELAY at the first stop.
    """

    enabled: bool = True
    nodelay: bool = True


def take(arguments: Mapping[str, Any], inherited: Options) -> tuple[dict[str, Any], Options, list[str]]:
    """Take our key out of a configuration.

    Args:
        arguments: of `launch` or `attach`.
        inherited: the options where the configuration says nothing: a child has its parent's.

    Returns:
        The arguments without the key, the options, and a sentence on everything in them that is not understood.
    """
    rest = {key: value for key, value in arguments.items() if key != KEY}
    given = arguments.get(KEY)
    if given is None:
        return rest, inherited, []
    if isinstance(given, bool):
        return rest, Options(enabled=given), []
    if not isinstance(given, Mapping):
        wrong = f"'{KEY}' in the configuration is true, false or an object of options, not {given!r:.80}."
        return rest, inherited, [wrong]
    values: dict[str, bool] = {}
    complaints = []
    for key, value in given.items():
        if key not in Options.__dataclass_fields__:
            known = ", ".join(Options.__dataclass_fields__)
            complaints.append(f"'{KEY}' in the configuration has no option '{key:.80}'; there are: {known}.")
        elif not isinstance(value, bool):
            complaints.append(f"The option '{key}' of '{KEY}' is true or false, not {value!r:.80}.")
        else:
            values[key] = value
    return rest, Options(**values), complaints
