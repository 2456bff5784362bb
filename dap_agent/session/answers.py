"""What a stopped program answers (`StoppedProgram`) as compact text, made harmless as in `rendering.py`."""

from typing import Any

from dap_agent.session.rendering import names_text, one_line, quoted, value_text


def variable_text(found: dict[str, Any], limit: int = 4000) -> str:
    """The answer of `StoppedProgram.variable`: the value, then a page of its children, each with its step of the path.

    Args:
        found: the answer.
        limit: characters of the value itself.
    """
    path, children, start, total = str(found["path"]), found["children"], found["start"], found["total"]
    lines = [f"{one_line(path)}: {value_text(found['value'], limit)}"]
    for child in children:
        whole = child.get("path")
        step = whole.removeprefix(path) if whole else f"{child['name']} (no path leads there)"
        lines.append(f"  {one_line(step)}: {value_text(child['value'], 400)}")
    if start >= total > 0:
        lines.append(f"[it has {total} children: start must be 0 to {total - 1}]")
    elif start or start + len(children) < total:
        end = start + len(children)
        more = f"; the next: start {end}" if end < total else ""
        lines.append(f"[children {start} to {end - 1} of {total}{more}]")
    return "\n".join(lines)


def members_text(found: dict[str, Any]) -> str:
    """The answer of `StoppedProgram.members`: class and bases, stored attributes, properties (not run), methods."""
    lines = [f"{one_line(found['path'])}: {one_line(found['type'])}"]
    if found["class"] and found["class"] != found["type"]:
        lines[0] += f" ({one_line(found['class'])})"
    if found["bases"]:
        lines[0] += f"  [bases: {', '.join(map(one_line, found['bases']))}]"
    if found["doc"]:
        lines.append(quoted(found["doc"]))
    if found["attributes"]:
        lines += ["attributes:", names_text(found["attributes"], 200)]
    if found["properties"]:
        lines.append("properties (not run):")
        lines += [f"  {one_line(one['name'])}{_about(one, found)}" for one in found["properties"]]
    if found["methods"]:
        lines.append("methods:")
        lines += [f"  {one_line(one['signature'])}{_about(one, found)}" for one in found["methods"]]
    left_out = found["total"] - sum(len(found[kind]) for kind in ("attributes", "properties", "methods"))
    if left_out > 0:
        lines.append(f"[{left_out} more are not shown]")
    return "\n".join(lines)


def _about(member: dict[str, Any], found: dict[str, Any]) -> str:
    facts = []
    if member.get("kind") in ("class", "static"):
        facts.append(f"{member['kind']} method")
    if member["defined_in"] and member["defined_in"] not in (found["class"], found["type"]):
        facts.append(f"of {one_line(member['defined_in'])}")
    if member.get("file"):
        facts.append(f"{one_line(member['file'])}:{member['line']}")
    doc = f"  # {one_line(member['doc'])}" if member["doc"] else ""
    return (f"  [{', '.join(facts)}]" if facts else "") + doc


def evaluation_text(found: dict[str, Any]) -> str:
    """The answer of `StoppedProgram.evaluate`: value, output, error, what it tried to change outside its jail."""
    lines = []
    if found["value"] is not None:
        lines.append(f"value: {value_text(found['value'], 4000)}")
    if found["error"]:
        lines += [
            "error:",
            quoted(found["error"]["traceback"] or f"{found['error']['type']}: {found['error']['message']}"),
        ]
    for stream in ("stdout", "stderr"):
        if found[stream]:
            lines += [f"{stream}:", quoted(found[stream].removesuffix("\n"))]
    lines += [f"effect: {one_line(effect)}" for effect in found.get("effects", ())]
    lines += [f"note: {one_line(note)}" for note in found["notes"]]
    isolation = found.get("isolation")
    if isolation is not None and isolation["level"] != "kernel":
        lines.append(f"note: {isolation['text']}")
    return "\n".join(lines) or "No value and no output."
