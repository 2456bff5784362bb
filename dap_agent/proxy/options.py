"""The key `dapAgent` of a launch or attach configuration: what the user wants of us in this session."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

KEY = "dapAgent"
_MODULE = "module:"


class Wrong(ValueError):
    """A value that an option does not take; the message says what it takes (`true or false`)."""


@dataclass(frozen=True)
class Options:
    """What was asked for.

    Args:
        enabled: False (`"dapAgent": false`): a pure relay; only requests that wedge the adapter are still refused.
        nodelay: whether the debuggee's debug socket gets TCP_NODELAY.
        unhandled: stop as with the filter `willBeUnhandled`, whatever the client has set: for clients in which filters
            cannot be chosen.
        ignore: exceptions at which no filter but `uncaught` stops: names of classes, or `module:NAME` for those that
            the code of a module or package raises.
        reload: which changes of files go into the live program: `auto` (saved files and applied fixes), `applied`
            (fixes alone), `never`.
        record: whether the last calls of the user's functions are remembered.
        assistant: the keys of `ASSISTANT` as they were given; they are checked where they are used.
    """

    enabled: bool = True
    nodelay: bool = True
    unhandled: bool = False
    ignore: tuple[str, ...] = ()
    reload: str = "auto"
    record: bool = True
    assistant: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ignored_types(self) -> list[str]:
        """The classes of `ignore`, bare (`KeyError`) or qualified (`app.errors.NotFound`)."""
        return [name for name in self.ignore if not name.startswith(_MODULE)]

    @property
    def ignored_modules(self) -> list[str]:
        """The modules of `ignore`."""
        return [name[len(_MODULE) :] for name in self.ignore if name.startswith(_MODULE)]


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise Wrong("true or false")
    return value


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
        raise Wrong("a list of exception types and of module:NAME entries")
    return tuple(value)


def _reload(value: object) -> str:
    if value not in ("auto", "applied", "never"):
        raise Wrong("one of auto, applied, never")
    return str(value)


#: The keys that are fields of `Options`, and what reads their values.
KEYS: dict[str, Callable[[object], Any]] = {
    "enabled": _truth,
    "nodelay": _truth,
    "unhandled": _truth,
    "ignore": _names,
    "reload": _reload,
    "record": _truth,
}
#: The keys of the assistant: the options of `dap-agent adapter`, in the manner of launch configurations.
ASSISTANT = ("model", "python", "maxTurns", "maxTokens", "maxCost", "timeout", "workspace", "allowEvaluate")


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
    values: dict[str, Any] = {}
    complaints = []
    for key, value in given.items():
        if key in ASSISTANT:
            continue
        if key not in KEYS:
            known = ", ".join((*KEYS, *ASSISTANT))
            complaints.append(f"'{KEY}' in the configuration has no option '{key:.80}'; there are: {known}.")
            continue
        try:
            values[key] = KEYS[key](value)
        except Wrong as wrong_value:
            complaints.append(f"The option '{key}' of '{KEY}' is {wrong_value}, not {value!r:.80}.")
    assistant = {key: given[key] for key in ASSISTANT if key in given}
    return rest, Options(**values, assistant=assistant), complaints
