"""The tools that look at the stopped program: exception, stack, frame, variable, members."""

from typing import Any

from dap_agent.agent.tools import Tool, ToolContext, ToolError
from dap_agent.session.answers import members_text, variable_text
from dap_agent.session.history import history_text
from dap_agent.session.redaction import mask_snapshot
from dap_agent.session.rendering import exception_text, frame_text, place_text, stack_lines, threads_text, where_text
from dap_agent.session.snapshot import Snapshot

_FRAME = {"type": "integer", "minimum": 0, "description": "frame number, 0 = innermost"}
_PATH = {"type": "string", "minLength": 1, "description": "like order.items[3].price"}


def check_frame(snapshot: Snapshot, number: int) -> None:
    """Refuse a frame number that is not on the stack, and say which are.

    Raises:
        ToolError: there is no such frame.
    """
    total = snapshot.data["frames_total"]
    if number < total:
        return
    if not total:
        raise ToolError("There are no frames at this stop; the tools exception, search and read_file still work.")
    user = [frame for frame in snapshot.frames if frame["user"]][:10]
    listed = "; ".join(f"{frame['number']} {place_text(frame)}" for frame in user or snapshot.frames[:10])
    raise ToolError(
        f"There is no frame {number}: frames are 0 to {total - 1}. {'User' if user else 'First'} frames: {listed}."
    )


async def _exception(context: ToolContext, arguments: dict[str, Any]) -> str:
    snapshot = context.snapshot
    if snapshot.exception is None:
        return f"The program did not stop at an exception: {snapshot.headline}\n{where_text(snapshot)}"
    return exception_text(snapshot.exception, 4000) + "\n" + where_text(snapshot)


async def _stack(context: ToolContext, arguments: dict[str, Any]) -> str:
    snapshot = context.snapshot
    if arguments.get("threads"):
        return threads_text(snapshot) or "There are no other threads."
    lines = stack_lines(snapshot, 120)
    start, count = arguments.get("start", 0), arguments.get("count", 50)
    if not lines:
        return "There are no frames at this stop."
    if start >= len(lines):
        raise ToolError(f"start {start} is beyond the end: the stack has {len(lines)} lines, 0 to {len(lines) - 1}.")
    chosen = lines[start : start + count]
    end = start + len(chosen)
    rest = f"\n[{len(lines) - end} more: stack with start {end}]" if end < len(lines) else ""
    return "\n".join(chosen) + rest


async def _frame(context: ToolContext, arguments: dict[str, Any]) -> str:
    check_frame(context.snapshot, arguments["number"])
    frame = mask_snapshot(await context.program.frame(arguments["number"]))
    if frame["source"]:
        context.workspace.note_seen(frame["file"])
    return frame_text(frame, 400)


async def _variable(context: ToolContext, arguments: dict[str, Any]) -> str:
    check_frame(context.snapshot, arguments["frame"])
    found = await context.program.variable(
        arguments["frame"], arguments["path"], arguments.get("start", 0), arguments.get("count", 50)
    )
    return variable_text(mask_snapshot(found))


async def _members(context: ToolContext, arguments: dict[str, Any]) -> str:
    check_frame(context.snapshot, arguments["frame"])
    return members_text(mask_snapshot(await context.program.members(arguments["frame"], arguments["path"])))


async def _history(context: ToolContext, arguments: dict[str, Any]) -> str:
    found = await context.program.history(
        arguments.get("function", ""),
        arguments.get("order", "newest"),
        arguments.get("start", 0),
        arguments.get("count", 20),
    )
    return history_text(mask_snapshot(found))


TOOLS = (
    Tool(
        "exception",
        "The exception in full: message, notes, attributes, causes, group members; thread, task, Python.",
        {"type": "object", "properties": {}, "additionalProperties": False},
        {},
        _exception,
    ),
    Tool(
        "stack",
        "The stack, innermost first, with arguments. threads=true: the other threads' stacks instead.",
        {
            "type": "object",
            "properties": {
                "start": {"type": "integer", "minimum": 0},
                "count": {"type": "integer", "minimum": 1, "maximum": 200},
                "threads": {"type": "boolean"},
            },
            "additionalProperties": False,
        },
        {"start": 0, "count": 50},
        _stack,
        more="ask for a smaller count, then go on with start",
    ),
    Tool(
        "frame",
        "One frame: source of the function with the running line marked, arguments and locals.",
        {"type": "object", "properties": {"number": _FRAME}, "required": ["number"], "additionalProperties": False},
        {"number": 0},
        _frame,
        more="see single values with variable, more source with read_file",
    ),
    Tool(
        "variable",
        "A value in a frame by path (names, attributes, indices, keys; no calls), with its children, paged.",
        {
            "type": "object",
            "properties": {
                "frame": _FRAME,
                "path": _PATH,
                "start": {"type": "integer", "minimum": 0},
                "count": {"type": "integer", "minimum": 1, "maximum": 200},
            },
            "required": ["frame", "path"],
            "additionalProperties": False,
        },
        {"frame": 0, "path": "order.items[3].price"},
        _variable,
        more="ask for a smaller count or a longer path",
    ),
    Tool(
        "members",
        "Attributes and methods (signatures) of an object, without running properties.",
        {
            "type": "object",
            "properties": {"frame": _FRAME, "path": _PATH},
            "required": ["frame", "path"],
            "additionalProperties": False,
        },
        {"frame": 0, "path": "order"},
        _members,
        more="ask variable for single attributes",
    ),
    Tool(
        "history",
        "The user's functions called before the stop, also those that returned: counts, arguments and results of "
        "first and newest calls, exceptions.",
        {
            "type": "object",
            "properties": {
                "function": {"type": "string", "description": "part of its name or file"},
                "order": {"enum": ["newest", "oldest", "calls"]},
                "start": {"type": "integer", "minimum": 0},
                "count": {"type": "integer", "minimum": 1, "maximum": 50},
            },
            "additionalProperties": False,
        },
        {"function": "parse", "order": "newest", "start": 0, "count": 20},
        _history,
        more="ask for a smaller count, or name a function",
    ),
)
