"""The tools that look at files: search, read_file."""

import asyncio
from typing import Any

from dap_agent.agent.excerpts import read_source
from dap_agent.agent.tools import Tool, ToolContext, ToolError
from dap_agent.errors import DapAgentError
from dap_agent.session.redaction import mask_lines
from dap_agent.session.rendering import one_line, source_text

_MOST_HITS = 80
_LINES = 150
_LINE = 300
_MASKED_WHOLE = 300_000


async def _search(context: ToolContext, arguments: dict[str, Any]) -> str:
    return await asyncio.to_thread(_found, context, arguments["pattern"], arguments.get("glob"))


def _found(context: ToolContext, pattern: str, glob: str | None) -> str:
    found = context.workspace.search(pattern, glob, limit=_MOST_HITS)
    files: dict[str, list[tuple[str, str]]] = {}
    lines = []
    for hit in found.matches:
        if hit.file not in files:
            files[hit.file] = _with_masks(context, hit.file)
        code = _is_code(hit.file)
        # as the line stands in the masked file: alone, the middle of a private key looks harmless
        raw, masked = files[hit.file][hit.line - 1] if hit.line <= len(files[hit.file]) else ("", "")
        text = masked if raw.startswith(hit.text) else mask_lines([hit.text], code=code)[0]
        lines.append(f"{one_line(hit.file)}:{hit.line}: {one_line(text[:_LINE])}")
    if found.note:
        lines.append(f"[{found.note}]")
    return "\n".join(lines) or "Nothing matches."


def _with_masks(context: ToolContext, file: str) -> list[tuple[str, str]]:
    """The lines of a file, as they are and masked; none for one that is large or cannot be read."""
    try:
        text = context.workspace.read(file)
    except DapAgentError:
        return []
    raw = text.split("\n") if len(text) <= _MASKED_WHOLE else []
    return list(zip(raw, mask_lines(raw, code=_is_code(file)), strict=True))


async def _read_file(context: ToolContext, arguments: dict[str, Any]) -> str:
    file = arguments["file"]
    on_stack = {frame["file"] for frame in context.snapshot.frames}
    text = read_source(context.workspace, file) if file in on_stack else context.workspace.read(file)
    lines = text.removesuffix("\n").split("\n") if text else []
    first = arguments.get("first_line", 1)
    if first > max(1, len(lines)):
        raise ToolError(f"{file} has {len(lines)} lines: first_line must be 1 to {max(1, len(lines))}.")
    lines = mask_lines(lines, code=_is_code(file))
    chosen = lines[first - 1 : first - 1 + arguments.get("count", _LINES)]
    end = first + len(chosen)
    rest = f"\n[lines {end} to {len(lines)} follow: first_line {end}]" if end <= len(lines) else ""
    return (source_text({"first_line": first, "lines": chosen}, 0) if chosen else "(an empty file)") + rest


def _is_code(file: str) -> bool:
    return file.endswith((".py", ".pyi", ".pyw"))


TOOLS = (
    Tool(
        "search",
        "Lines of workspace files that match a regular expression.",
        {
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "minLength": 1, "description": "Python regular expression"},
                "glob": {"type": "string", "minLength": 1, "description": "only these files, like src/*.py"},
            },
            "required": ["pattern"],
            "additionalProperties": False,
        },
        {"pattern": "def parse_order", "glob": "*.py"},
        _search,
        more="narrow it by pattern or glob",
    ),
    Tool(
        "read_file",
        "Lines of a file: the workspace's, a package's or one on the stack.",
        {
            "type": "object",
            "properties": {
                "file": {"type": "string", "minLength": 1},
                "first_line": {"type": "integer", "minimum": 1},
                "count": {"type": "integer", "minimum": 1, "maximum": 1000, "description": f"default {_LINES}"},
            },
            "required": ["file"],
            "additionalProperties": False,
        },
        {"file": "shop/orders.py", "first_line": 1, "count": 150},
        _read_file,
        more="ask for fewer lines, then go on with first_line",
    ),
)
