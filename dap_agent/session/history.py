"""The calls that the flight recorder remembers, as compact text, made harmless as in `rendering.py`."""

from typing import Any

from dap_agent.session.rendering import one_line, shorten
from dap_agent.session.snapshot import Snapshot


def returned(snapshot: Snapshot) -> list[dict[str, Any]]:
    """The functions that were called last and are not on the stack, newest last (`called` of the snapshot's schema)."""
    return [found for found in snapshot.data.get("called") or [] if not found["on_stack"]]


def called_line(found: dict[str, Any], width: int = 60) -> str:
    """A function in one line: its newest call that was read, where it is, how often it was called and what left it.

    Args:
        found: a `called` of the snapshot's schema.
        width: characters of each value.
    """
    facts = [f"{found['calls']}{'+' if found['thinned'] else ''} call{'s' if found['calls'] > 1 else ''}"]
    if found["left_with"]:
        facts.append(f"left with {one_line(found['left_with'])}")
    if found["thread"] != "MainThread":
        facts.append(f"thread {one_line(found['thread'])}")
    if found["task"]:
        facts.append(f"task {one_line(found['task'])}")
    if found["on_stack"]:
        facts.append("on the stack")
    if found["arguments_of"] not in (None, found["order"]):
        facts.append("the values are of an earlier call")
    given = _given(found["arguments"], width) if found["arguments"] is not None else "(...)"
    return (
        f"{one_line(found['function'])}{given}{_result(found['result'], width)} at "
        f"{one_line(found['file'])}:{found['line']}  [{'; '.join(facts)}]"
    )


def history_text(page: dict[str, Any]) -> str:
    """The answer of `StoppedProgram.history`."""
    functions, start, total = page["functions"], page["start"], page["total"]
    note = f"\n[{page['note']}]" if page.get("note") else ""
    if not total:
        return f"No function that fits was called, as far as it was recorded.{note}"
    if not functions:
        return f"start {start} is beyond the end: there are {total} functions, 0 to {total - 1}."
    lines = []
    for found in functions:
        lines.append(called_line(found))
        for call in found.get("read", []):
            if call["order"] != found["arguments_of"]:
                lines.append("  " + _call_line(call))
    end = start + len(functions)
    if start or end < total:
        lines.append(f"[functions {start} to {end - 1} of {total}{f'; the next: start {end}' if end < total else ''}]")
    return "\n".join(lines) + note


def _call_line(call: dict[str, Any]) -> str:
    """An earlier call of a function."""
    left = f" left with {one_line(call['left_with'])}" if call["left_with"] else ""
    caller = call["called_from"]
    place = f", from {one_line(caller['file'])}:{caller['line']}" if caller else ""
    return f"call {call['order']}: {_given(call['arguments'], 200)}{_result(call['result'], 200)}{left}{place}"


def _given(arguments: list[dict[str, Any]], width: int) -> str:
    pairs = (f"{one_line(pair['name'])}={shorten(one_line(pair['value']['text']), width)}" for pair in arguments)
    return f"({', '.join(pairs)})"


def _result(result: dict[str, Any] | None, width: int) -> str:
    return f" -> {shorten(one_line(result['text']), width)}" if result is not None else ""


def page_of(snapshot: Snapshot, function: str, order: str, start: int, count: int) -> dict[str, Any] | None:
    """A page of what the snapshot holds, as `StoppedProgram.history` answers; None if calls were not recorded."""
    known = snapshot.data.get("called")
    if known is None:
        return None
    chosen = [found for found in known if function in found["function"] or function in found["file"]]
    if order == "calls":
        chosen.sort(key=lambda found: (-found["calls"], -found["order"]))
    else:
        chosen.sort(key=lambda found: found["order"], reverse=order != "oldest")
    return {"functions": chosen[start : start + count], "total": len(chosen), "start": start}
