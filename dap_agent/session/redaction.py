"""The second line against leaked secrets: text is masked on this side too before it is sent or stored.

The rules are those of the debuggee. Nothing imports `dap_agent.debuggee` (it is text for another process), so its
`secrets.py` is run here as text, once.
"""

import functools
from collections.abc import Mapping
from typing import Any


@functools.cache
def rules() -> Mapping[str, Any]:
    """The names that the debuggee's `secrets.py` defines, for this process."""
    from importlib.resources import files

    resource = files("dap_agent") / "debuggee" / "secrets.py"
    namespace: dict[str, Any] = {"__name__": "_dap_agent_secrets_here", "__file__": str(resource)}
    exec(compile(resource.read_text(encoding="utf-8"), str(resource), "exec", dont_inherit=True), namespace)
    return namespace


@functools.cache
def _secrets() -> Any:
    return rules()["Secrets"]()


def forget_environment() -> None:
    """Read the secret variables of the environment anew at the next use."""
    _secrets.cache_clear()


def mask() -> str:
    """The text that stands in the place of a secret."""
    found: str = rules()["MASK"]
    return found


def mask_text(text: str) -> str:
    """*text* with token shapes, values after secret names (`password=...`) and secret environment values masked."""
    return _between_masks(text, code=False)


def mask_code(text: str) -> str:
    """Like `mask_text` for source code: an unquoted value after a secret name is an expression and stays."""
    return _between_masks(text, code=True)


def _between_masks(text: str, code: bool) -> str:
    # what is masked already must stay as it is, so that the debuggee's mask and ours are the same
    return mask().join(_secrets().mask(piece, code=code) for piece in text.split(mask()))


def mask_lines(lines: list[str], *, code: bool) -> list[str]:
    """*lines* masked as one text, their number kept; *code* as in `mask_code`."""
    masked: list[str] = _secrets().mask_lines(lines, code=code)
    return masked


def mask_known(text: str) -> str:
    """*text* with the secret values of the environment masked, by no other rule.

    For what a model wrote: it has seen masked text only, and its `password="x"` in a test is part of its words.
    """
    masked: str = _secrets().mask_known(text)
    return masked


def mask_json(value: Any, mask_string: Any = mask_text) -> Any:
    """A copy of a JSON value with every string in it, keys included, masked by *mask_string*."""
    if isinstance(value, str):
        return mask_string(value)
    if isinstance(value, dict):
        return {mask_string(str(key)): mask_json(item, mask_string) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [mask_json(item, mask_string) for item in value]
    return value


def mask_snapshot(value: Any) -> Any:
    """A copy of a snapshot or of a part of one (a frame, an answer about a variable), masked.

    Values under a secret name are masked whole, source is masked as code, all else as text.
    """
    if isinstance(value, str):
        return mask_text(value)
    if isinstance(value, list):
        return [mask_snapshot(item) for item in value]
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("lines"), list) and "first_line" in value:
        return {**value, "lines": mask_lines([str(line) for line in value["lines"]], code=True)}
    name, held = value.get("name"), value.get("value")
    if isinstance(name, str) and isinstance(held, dict) and "text" in held and _is_secret(name) and _is_text(held):
        return {**value, "value": {"type": held.get("type", "?"), "text": mask(), "masked": True}}
    return {key: mask_snapshot(item) for key, item in value.items()}


def _is_secret(name: str) -> bool:
    secret: bool = rules()["is_secret_name"](name)
    return secret


def _is_text(held: dict[str, Any]) -> bool:
    # an empty one may be the bug; whether another object is a secret, only the debuggee can judge
    text = str(held["text"]).lstrip("bB")
    return len(text) > 2 and text[0] in "'\""
