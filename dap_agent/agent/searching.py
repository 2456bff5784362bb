"""The tools that look at files: search, read_file."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dap_agent.agent.excerpts import read_source
from dap_agent.agent.tools import Tool, ToolContext, ToolError
from dap_agent.errors import DapAgentError
from dap_agent.fixes.protected import installed_in
from dap_agent.session.redaction import mask_lines
from dap_agent.session.rendering import one_line, source_text
from dap_agent.session.snapshot import Snapshot

if TYPE_CHECKING:
    from dap_agent.fixes.workspace import Workspace

_MOST_HITS = 80
_LINES = 150
_LINE = 300
_MASKED_WHOLE = 300_000


async def _search(context: ToolContext, arguments: dict[str, Any]) -> str:
    given = arguments["pattern"], arguments.get("glob"), arguments.get("package")
    return await asyncio.to_thread(_found, context, *given)


def _found(context: ToolContext, pattern: str, glob: str | None, package: str | None) -> str:
    from dap_agent.fixes.searching import fits, search

    known = packages_of(context.snapshot, context.workspace)
    paths: dict[str, str] = {}
    if package is None:
        found = context.workspace.search(pattern, glob, limit=_MOST_HITS)
    else:
        folders = known.get(package) or known.get(package.lower().replace("-", "_"))
        if folders is None:
            there = ", ".join(known) or "none"
            raise ToolError(f"{package} is no package on the stack outside of the workspace; such are: {there}.")
        chosen = [(name, path) for name, path in _files_of(folders) if fits(glob, name, str(path))]
        paths = {name: str(path) for name, path in chosen}
        found = search(chosen, pattern, limit=_MOST_HITS, regex=True, seconds=5.0)
    files: dict[str, list[tuple[str, str]]] = {}
    lines = []
    for hit in found.matches:
        if hit.file not in files:
            files[hit.file] = _with_masks(context, paths.get(hit.file, hit.file))
        code = _is_code(hit.file)
        # as the line stands in the masked file: alone, the middle of a private key looks harmless
        raw, masked = files[hit.file][hit.line - 1] if hit.line <= len(files[hit.file]) else ("", "")
        text = masked if raw.startswith(hit.text) else mask_lines([hit.text], code=code)[0]
        lines.append(f"{one_line(hit.file)}:{hit.line}: {one_line(text[:_LINE])}")
    if found.note:
        lines.append(f"[{found.note}]")
    if not lines and package is None and known:
        return f"Nothing matches in the workspace. Give package to search one of these instead: {', '.join(known)}."
    return "\n".join(lines) or "Nothing matches."


def packages_of(snapshot: Snapshot, workspace: "Workspace") -> dict[str, list[Path]]:
    """The installed packages on the stack that are no part of the workspace, innermost first.

    Returns:
        by name (of the distribution, and of what is imported): the folders, or the one file, of each.
    """
    found: dict[str, list[Path]] = {}
    for frame in snapshot.frames:
        site, inner = installed_in(frame["file"])
        if site is None or not inner or workspace.holds(frame["file"]):
            continue
        names = {inner[0].removesuffix(".py"), (frame.get("package") or {}).get("name")}
        for name in sorted(str(name) for name in names if name):
            if site / inner[0] not in found.setdefault(name, []):
                found[name].append(site / inner[0])
    return found


def _files_of(folders: list[Path]) -> Iterator[tuple[str, Path]]:
    for folder in folders:
        for path in sorted(folder.rglob("*.py")) if folder.is_dir() else [folder]:
            yield path.relative_to(folder.parent).as_posix(), path


def _named(context: ToolContext, file: str) -> str:
    """The file that is meant: as given, else one on the stack or in a package there that is called so."""
    if Path(file).is_absolute() or context.workspace.exists(file):
        return file
    frames = context.snapshot.frames
    ends = {frame["file"] for frame in frames if frame["file"].endswith("/" + file.removeprefix("./"))}
    sites = dict.fromkeys(site for frame in frames if (site := installed_in(frame["file"])[0]) is not None)
    installed = {str(site / file) for site in sites if (site / file).is_file()}
    return next(iter(ends or installed)) if len(ends or installed) == 1 else file


def _with_masks(context: ToolContext, file: str) -> list[tuple[str, str]]:
    """The lines of a file, as they are and masked; none for one that is large or cannot be read."""
    try:
        text = context.workspace.read(file)
    except DapAgentError:
        return []
    raw = text.split("\n") if len(text) <= _MASKED_WHOLE else []
    return list(zip(raw, mask_lines(raw, code=_is_code(file)), strict=True))


async def _read_file(context: ToolContext, arguments: dict[str, Any]) -> str:
    file = _named(context, arguments["file"])
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
    head = f"{one_line(file)}:\n" if file != arguments["file"] else ""
    return head + (source_text({"first_line": first, "lines": chosen}, 0) if chosen else "(an empty file)") + rest


def _is_code(file: str) -> bool:
    return file.endswith((".py", ".pyi", ".pyw"))


TOOLS = (
    Tool(
        "search",
        "Lines of workspace files, or of a package on the stack, that match a regular expression.",
        {
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "minLength": 1, "description": "Python regular expression"},
                "glob": {"type": "string", "minLength": 1, "description": "only these files, like src/*.py"},
                "package": {"type": "string", "minLength": 1, "description": "search there instead"},
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
