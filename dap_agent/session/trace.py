"""A trace as text: what a call did line by line, the first change of a value and a condition before it."""

from typing import Any

from dap_agent.session.rendering import one_line, quoted, shorten

_WIDTH = 100  # characters of a value in a step
_INDENT = 12  # levels of calls that are indented


def trace_text(found: dict[str, Any], root: str = "", output: int = 600) -> str:
    """The answer of `StoppedProgram.trace`.

    Args:
        found: the answer.
        root: of the workspace with a slash behind; left out of file names.
        output: characters of each stream.
    """
    lines = [f"{one_line(found['outcome'])} ({found['total']} lines ran, {1e3 * found['seconds']:.1f} ms)"]
    lines += _first_change(found["first_change"], root)
    lines += _when(found["when"], root)
    lines += [f"limit: {limit}" for limit in found["limits"]]
    lines += [f"note: {one_line(note)}" for note in found["notes"]]
    lines += [f"effect: {one_line(effect)}" for effect in found["effects"]]
    for name in ("stdout", "stderr"):
        text = found[name].rstrip("\n")
        if text.strip():
            short = text if len(text) <= output else f"{text[: output // 2]} ... {text[-output // 2 :]}"
            lines += [f"{name}:", quoted(short)]
    if found["functions"]:
        lines.append("traced:")
    for function in found["functions"][:20]:
        times = f"{function['calls']} call{'s' if function['calls'] != 1 else ''}"
        lines.append(f"  {one_line(function['name'])} {_place(function, root)} ({times})")
    if len(found["functions"]) > 20:
        lines.append(f"  and {len(found['functions']) - 20} more")
    if found["steps"]:
        lines.append("steps (line: source  # what it changed):")
        lines += _steps(found)
    elif not found["functions"]:
        lines.append("No function that fits was called.")
    if found["isolation"] is not None and found["isolation"]["level"] != "kernel":
        lines.append(f"note: {found['isolation']['text']}")
    return "\n".join(lines)


def _place(at: dict[str, Any], root: str) -> str:
    return f"{one_line(at['file'].removeprefix(root))}:{at['line']}"


def _value(value: dict[str, Any] | None, width: int = _WIDTH) -> str:
    return shorten(one_line(value["text"]), width) if value is not None else "(deleted)"


def _first_change(found: dict[str, Any] | None, root: str) -> list[str]:
    if found is None:
        return []
    name = one_line(found["name"])
    began, changes = found["began"], found["changes"]
    if began is None:
        return [f"first_change({name}): it has no value in what was traced"]
    how = "given" if began["at_call"] else "set"
    lines = [f"first_change({name}): {how} {_value(began['value'], 300)} at {_at(began, root)}"]
    for number, change in enumerate(changes):
        word = "first changed" if number == 0 else "then"
        before, after = _value(change["before"], 300), _value(change["value"], 300)
        lines.append(f"  {word} from {before} to {after} at {_at(change, root)}")
    if not changes:
        lines.append("  it never changed after that")
    elif found["count"] > len(changes):
        lines.append(f"  and {found['count'] - len(changes)} more times")
    other = found["other_type"]
    if other is not None and not any(change["step"] == other["step"] for change in changes):
        before, after = (f"{_value(other[key], 300)} ({one_line(other[key]['type'])})" for key in ("before", "value"))
        lines.append(f"  of another type first: {before}, then {after} at {_at(other, root)}")
    return lines


def _when(found: dict[str, Any] | None, root: str) -> list[str]:
    if found is None:
        return []
    first = found["first"]
    if first is None:
        return ["when: the condition never held"]
    values = ", ".join(f"{one_line(pair['name'])} = {_value(pair['value'], 300)}" for pair in first["values"])
    after = "at the call" if first["at_call"] else "after"
    times = f" (at {found['count']} steps)" if found["count"] > 1 else ""
    return [f"when: it held first {after} {_at(first, root)}{times}{': ' + values if values else ''}"]


def _at(place: dict[str, Any], root: str) -> str:
    text = f": {one_line(place['text'])}" if place["text"] else ""
    return f"{_place(place, root)} in {one_line(place['function'])}{text}"


def _steps(found: dict[str, Any]) -> list[str]:
    lines = []
    functions = found["functions"]
    for step in found["steps"]:
        indent = "  " * min(max(1, step["depth"]), _INDENT)
        if step["kind"] == "gap":
            spans = ", ".join(
                f"lines {span['first']}-{span['last']} of {one_line(functions[span['function']]['name'])} up to "
                f"{span['times']} times"
                for span in step["lines"][:4]
            )
            lines.append(f"{indent}... {step['steps']} steps left out: {spans}")
            continue
        lines.append(f"{indent}{_step(step, one_line(functions[step['function']]['name']))}")
    return lines


def _step(step: dict[str, Any], name: str) -> str:
    if step["kind"] == "call":
        given = ", ".join(f"{one_line(one['name'])}={_value(one['value'], 60)}" for one in step["changes"])
        return f"> {name}({given})"
    if step["kind"] == "return":
        return f"< {name} returned {_value(step['value'])}"
    if step["kind"] == "yield":
        return f"< {name} {'yielded ' + _value(step['value']) if step['value'] is not None else 'waits'}"
    if step["kind"] == "left":
        return f"< {name} was left by the exception"
    if step["kind"] == "raise":
        return f"! line {step['line']} raised {one_line(step['text'])}"
    changes = ", ".join(_change(one) for one in step["changes"])
    branch = f"  -> {step['branch']}" if step["branch"] else ""
    line = f"> {name} goes on, " if step["kind"] == "resume" else ""
    return f"{line}{step['line']}: {one_line(step['text'])}{branch}{'  # ' + changes if changes else ''}"


def _change(change: dict[str, Any]) -> str:
    name = one_line(change["name"])
    if change["value"] is None:
        return f"{name} deleted"
    late = " (changed meanwhile)" if change["late"] else ""
    return f"{name} = {_value(change['value'])}{late}"
