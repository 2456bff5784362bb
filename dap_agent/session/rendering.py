"""A snapshot as compact text, for a model and for any terminal.

All text that comes from the program is made harmless first: control characters, bidirectional overrides and lone
surrogates become visible escapes, and lines that the program wrote stand behind a bar (`| `), so that they can pose
neither as ours nor as terminal commands.
"""

import re
from collections.abc import Sequence
from typing import Any

from dap_agent.session.snapshot import Snapshot

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)


# ECMA-48, section 5.4: control sequences, such as colours
_SEQUENCE = re.compile("\x1b\\[[0-?]*[ -/]*[@-~]")


def clean(text: str) -> str:
    """*text* without colours, and with all else that could be taken wrongly as a visible escape.

    Terminals, JSON encoders and readers are meant. A colour is taken out whole: glued to a token it would hide that.
    """
    if text.isascii() and text.isprintable():
        return text
    return _UNSAFE.sub(_escape, _SEQUENCE.sub("", text.replace("\r\n", "\n")))


def _escape(match: "re.Match[str]") -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def one_line(text: object) -> str:
    """`str(text)`, clean, its newlines as escapes: for names, paths and whatever stands within a line of ours."""
    return clean(str(text)).replace("\n", "\\n")


def quoted(text: str, bar: str = "| ") -> str:
    """Lines that the program wrote, each behind a bar."""
    return "\n".join(bar + line for line in clean(text).split("\n"))


def clip(text: str, limit: int) -> str:
    """*text* if it has at most *limit* characters, else its beginning and how much is missing."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}... [{len(text) - limit} more characters]"


def shorten(text: str, limit: int) -> str:
    """*text* if it has at most *limit* characters, else its beginning."""
    return text if len(text) <= limit else text[:limit] + "..."


def value_text(value: dict[str, Any], limit: int = 1000) -> str:
    """A `Value`: type, text, and what is known beyond the text."""
    text = clip(one_line(value["text"]), limit)
    facts = []
    if "length" in value:
        facts.append(f"length {value['length']}")
    summary = value.get("summary")
    if summary:
        facts.extend(f"{name} {clip(one_line(_plain(item)), 300)}" for name, item in summary.items())
    if value.get("truncated"):
        facts.append("cut")
    if value.get("masked"):
        facts.append("masked: a secret")
    return f"{one_line(value['type'])} = {text}" + (f"  [{'; '.join(facts)}]" if facts else "")


def _plain(item: Any) -> str:
    if isinstance(item, dict):
        return "{" + ", ".join(f"{key}: {_plain(value)}" for key, value in item.items()) + "}"
    if isinstance(item, (list, tuple)):
        return "[" + ", ".join(_plain(value) for value in item) + "]"
    return str(item)


def names_text(pairs: Sequence[dict[str, Any]], limit: int = 1000, indent: str = "  ") -> str:
    """Named values, one a line."""
    return "\n".join(f"{indent}{one_line(pair['name'])}: {value_text(pair['value'], limit)}" for pair in pairs)


def arguments_text(frame: dict[str, Any], limit: int = 80) -> str:
    """A frame's arguments in one line, each value cut to *limit* characters."""
    return ", ".join(
        f"{one_line(pair['name'])}={shorten(one_line(pair['value']['text']), limit)}" for pair in frame["arguments"]
    )


def owner_text(frame: dict[str, Any]) -> str:
    """Whose code a frame runs: nothing for the user's, else the package or the standard library."""
    if frame["user"]:
        return ""
    package = frame.get("package")
    if package:
        return f"package {package['name']} {package['version'] or '(version unknown)'}"
    return "standard library" if frame["stdlib"] else "not the user's code"


def place_text(frame: dict[str, Any]) -> str:
    """`function at file:line`."""
    return f"{one_line(frame['function'])} at {one_line(frame['file'])}:{frame['line']}"


def frame_line(frame: dict[str, Any], limit: int = 80) -> str:
    """A frame in one line: number, place, owner, arguments (none with *limit* 0)."""
    owner = owner_text(frame)
    arguments = arguments_text(frame, limit) if limit else ""
    return (
        f"#{frame['number']} {place_text(frame)}"
        + (f"  [{owner}]" if owner else "")
        + (f"  ({arguments})" if arguments else "")
    )


def fold_line(fold: dict[str, Any]) -> str:
    """A run of repeated frames in one line."""
    return (
        f"#{fold['first']} to #{fold['last']}: {fold['count']} times the same {fold['period']} "
        f"frame{'s' if fold['period'] != 1 else ''} (recursion)"
    )


def source_text(source: dict[str, Any] | None, line: int) -> str:
    """Source with line numbers, the *line* that was running marked by an arrow."""
    if not source:
        return "  (no source)"
    return "\n".join(
        f"{'->' if number == line else '  '} {number:5d}" + (f"  {one_line(text)}" if text else "")
        for number, text in enumerate(source["lines"], source["first_line"])
    )


def frame_text(frame: dict[str, Any], value_limit: int = 1000) -> str:
    """A frame in full: source with the line marked, arguments and locals."""
    parts = [f"#{frame['number']} {place_text(frame)}" + (f"  [{owner_text(frame)}]" if owner_text(frame) else "")]
    parts.append(source_text(frame.get("source"), frame["line"]))
    arguments = {pair["name"] for pair in frame["arguments"]}
    others = [pair for pair in frame["locals"] if pair["name"] not in arguments]
    # a rebound argument is in the locals with its present value
    present = {pair["name"]: pair for pair in frame["locals"]}
    if arguments:
        parts.append("arguments (as they are now):")
        parts.append(names_text([present.get(pair["name"], pair) for pair in frame["arguments"]], value_limit))
    if others:
        parts.append("locals:")
        parts.append(names_text(others, value_limit))
    total = frame.get("locals_total", 0)
    shown = len(arguments) + len(others)
    if total > shown:
        parts.append(f"  ({total - shown} more locals are not shown)")
    return "\n".join(parts)


def exception_text(exception: dict[str, Any], message_limit: int = 2000, depth: int = 0) -> str:
    """An exception with its notes, attributes, group members, cause and context."""
    pad = "  " * depth
    message = clip(clean(str(exception["message"])), message_limit)
    lines = [f"{one_line(exception['type'])}: " + message.split("\n")[0] if message else one_line(exception["type"])]
    lines.extend(f"| {line}" for line in message.split("\n")[1:])
    where = exception.get("where")
    if where:
        lines.append(f"raised in {one_line(where['function'])} at {one_line(where['file'])}:{where['line']}")
    syntax = exception.get("syntax")
    if syntax:
        column = f", column {syntax['column']}" if syntax["column"] else ""
        lines.append(f"in {one_line(syntax['file'] or 'an unknown file')}:{syntax['line'] or '?'}{column}:")
        lines.append(quoted(str(syntax["text"] or "").rstrip("\n")))
    for note in exception["notes"]:
        lines.append("note:")
        lines.append(quoted(clip(str(note), message_limit)))
    if exception["attributes"]:
        lines.append("attributes:")
        lines.append(names_text(exception["attributes"], 300))
    text = "\n".join(pad + line for line in "\n".join(lines).split("\n"))
    for member in exception["group"]:
        text += f"\n{pad}member of the group:\n" + exception_text(member, message_limit, depth + 1)
    if exception["cause"]:
        text += f"\n{pad}caused by (raise ... from):\n" + exception_text(exception["cause"], message_limit, depth + 1)
    elif exception["context"]:
        text += f"\n{pad}raised while handling:\n" + exception_text(exception["context"], message_limit, depth + 1)
    return text


def fold_lines(snapshot: Snapshot) -> list[tuple[int, str]]:
    """(first frame number, line) of each run of frames that the snapshot folds or leaves out."""
    folds = snapshot.data["folds"]
    lines = [(fold["first"], fold_line(fold)) for fold in folds]
    known = sorted(
        [(frame["number"], frame["number"]) for frame in snapshot.frames]
        + [(fold["first"], fold["last"]) for fold in folds]
    )
    after = 0
    for first, last in [*known, (snapshot.data["frames_total"], snapshot.data["frames_total"])]:
        if first > after:
            lines.append((after, f"#{after} to #{first - 1}: not in the snapshot"))
        after = max(after, last + 1)
    return lines


def stack_lines(snapshot: Snapshot, limit: int = 80) -> list[str]:
    """The stack, innermost first, one line a frame or run of frames."""
    lines = [(frame["number"], frame_line(frame, limit)) for frame in snapshot.frames]
    # a fold's first frame may be kept as well: the frame, then the fold
    return [line for _, line in sorted(lines + fold_lines(snapshot), key=lambda pair: pair[0])]


def threads_text(snapshot: Snapshot, depth: int = 30) -> str:
    """The other threads' stacks, innermost first."""
    parts = []
    for thread in snapshot.data["threads"]:
        parts.append(f"thread {one_line(thread['name'])} ({thread['id']}):")
        parts.extend(
            f"  {one_line(entry['function'])} at {one_line(entry['file'])}:{entry['line']}"
            for entry in thread["stack"][:depth]
        )
        if len(thread["stack"]) > depth:
            parts.append(f"  ... {len(thread['stack']) - depth} more")
    return "\n".join(parts)


def where_text(snapshot: Snapshot) -> str:
    """Python, process, thread and task in one line each."""
    python, process, thread = snapshot.data["python"], snapshot.data["process"], snapshot.data["thread"]
    lines = [f"Python {one_line(python['version'])} ({python['implementation']}) on {python['platform']}"]
    lines.append(f"command: {clip(one_line(' '.join(map(str, process['argv']))), 500)}  in {one_line(process['cwd'])}")
    lines.append(f"thread: {one_line(thread['name'])}" + ("" if thread["main"] else " (not the main thread)"))
    task = snapshot.data["task"]
    if task:
        lines.append(f"asyncio task: {one_line(task['name'])} running {one_line(task['coroutine'])}")
    return "\n".join(lines)


def output_text(snapshot: Snapshot, lines: int = 20, limit: int = 300) -> str:
    """The last *lines* lines of stdout and stderr, each behind a bar; empty when there was no output."""
    parts = []
    for stream in ("stdout", "stderr"):
        kept = snapshot.data["output"][stream][-lines:] if lines else []
        if kept:
            parts.append(f"last lines of {stream}:")
            parts.extend(quoted(clip(str(line), limit)) for line in kept)
    return "\n".join(parts)
