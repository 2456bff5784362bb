"""The tool `trace`: a call is made again in a locked copy of the stopped program, and told line by line."""

from typing import Any

from dap_agent.agent.looking import check_frame
from dap_agent.agent.tools import Tool, ToolContext, ToolError, example_call
from dap_agent.session.redaction import mask_code, mask_snapshot
from dap_agent.session.trace import trace_text

_NAMES = {"type": "array", "items": {"type": "string"}}
_WANTED = ("code", "test", "functions", "variables", "first_change", "when", "steps")


async def _trace(context: ToolContext, arguments: dict[str, Any]) -> str:
    frame = arguments.get("frame")
    if frame is not None:
        check_frame(context.snapshot, frame)
    if "code" in arguments and "test" in arguments:
        raise ToolError(f"Give code or test, not both. A right call: {example_call(TRACE)}")
    wanted = {name: arguments[name] for name in _WANTED if name in arguments}
    found = await context.program.trace(timeout=float(arguments.get("timeout", 5)), number=frame, **wanted)
    return trace_text(_masked(found), str(context.workspace.root) + "/")


def _masked(found: dict[str, Any]) -> dict[str, Any]:
    """*found* masked: source as code (`token_list = list(tokens)` tells no secret), all else as a snapshot."""
    masked: dict[str, Any] = mask_snapshot(found)
    for before, after in zip(_with_source(found), _with_source(masked), strict=True):
        after["text"] = mask_code(str(before["text"]))
    return masked


def _with_source(found: dict[str, Any]) -> list[dict[str, Any]]:
    change, when = found["first_change"] or {}, found["when"] or {}
    places = [change.get("began"), *change.get("changes", ()), change.get("other_type"), when.get("first")]
    steps = [step for step in found["steps"] if step["kind"] not in ("raise", "gap")]
    return [place for place in (*places, *steps) if place is not None and place.get("text")]


TRACE = Tool(
    "trace",
    "Make the failing call again in a locked copy of the stopped program and see it line by line: variables where they "
    "change, branches, calls, results, exceptions; loops shortened. first_change: where did this value change first?",
    {
        "type": "object",
        "properties": {
            "frame": {"type": "integer", "minimum": 0, "description": "whose call; default: the user's innermost"},
            "code": {"type": "string", "minLength": 1, "description": "Python to run in the frame instead"},
            "test": {"type": "string", "minLength": 1, "description": "or a test: tests/test_x.py::test_y"},
            "functions": {**_NAMES, "description": "to see; default: all of the user's"},
            "variables": {**_NAMES, "description": "names, paths; default: all locals"},
            "first_change": {"type": "string", "minLength": 1, "description": "name or path"},
            "when": {"type": "string", "minLength": 1, "description": "only steps where this holds: price is None"},
            "steps": {"type": "integer", "minimum": 1, "maximum": 400},
            "timeout": {"type": "number", "exclusiveMinimum": 0, "maximum": 60},
        },
        "additionalProperties": False,
    },
    {"frame": 1, "functions": ["Cart.total", "parse"], "first_change": "price"},
    _trace,
    steady=False,
    more="name functions and variables, or give when",
)
