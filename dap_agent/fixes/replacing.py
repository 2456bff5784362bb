"""`replace_symbol`: new source in the place of a definition, everything around it untouched."""

import ast
import difflib
from dataclasses import dataclass

from dap_agent.fixes.failures import EditError
from dap_agent.fixes.snippet import Line, snippet, strings
from dap_agent.fixes.source_text import ending, indent_of
from dap_agent.fixes.symbols import Definable, Definition, Module, find, parse


@dataclass(frozen=True)
class Splice:
    """One replacement in a text.

    Args:
        start, end: offsets in characters of what is replaced.
        text: what comes in its place.
    """

    start: int
    end: int
    text: str


def replace_symbol(
    parsed: Module, qualname: str, source: str, *, first_line: int | None = None, newline: str = "\n"
) -> Splice:
    """The splice that puts *source* in the place of a definition.

    Decorators stay when *source* has none; comments around the definition that *source* repeats are not doubled;
    lines that did not change keep their bytes, line ends included.

    Raises:
        EditError: no such definition, several, or *source* is not exactly one definition of the same name and kind.
    """
    lines = parsed.lines
    try:
        old = find(parsed, qualname, first_line)
    except EditError:
        if first_line is not None or qualname not in parsed.definitions:
            raise
        old = find(parsed, qualname, None, snippet(source).definition().decorator_list)
    indent = indent_of(lines[old.line - 1])
    body_line = old.node.body[0].lineno
    new = snippet(source, indent, old.node.body[0].col_offset if body_line > old.line else None)
    node = new.definition()
    _check(old, node)
    first = old.line if not node.decorator_list else old.first_line
    tabs = _uses_tabs(lines, old)
    spans, kept_strings = _strings_of([line.rstrip("\r\n") for line in lines[first - 1 : old.last_line]], indent)
    data = {line + first - 1 for line in spans}
    text = new.indented(indent, tabs, kept_strings)
    start, end, text = _without_repeated_comments(lines, old, first, text)
    local = ending(lines[old.first_line - 1]) or newline
    before = [Line(lines[number - 1], number in data) for number in range(start, end + 1)]
    return Splice(parsed.offset(start), parsed.offset(end + 1), _merged(before, text, local, indent))


def _check(old: Definition, new: Definable) -> None:
    name = old.node.name
    kind = "class" if isinstance(new, ast.ClassDef) else "function"
    if new.name != name:
        raise EditError(f"source defines {new.name}, but the edit replaces {old.qualname}; keep the name {name}")
    if kind != old.kind:
        raise EditError(f"{old.qualname} is a {old.kind}, but source is a {kind}; use str_replace for that")


def _uses_tabs(lines: list[str], old: Definition) -> bool:
    body = old.node.body[0]
    line = body.lineno if body.lineno > old.line else old.line
    return "\t" in indent_of(lines[line - 1])


def _strings_of(old_plain: list[str], indent: str) -> tuple[set[int], list[tuple[str, ...]]]:
    """Strings of the old code: the lines (from 1) that start inside one, and the inner lines of each."""
    head = ["if 1:"] if indent else []  # indented code parses alone once it stands under an `if`
    wrapped = head + old_plain
    try:
        spans = strings(wrapped, lambda: parse("\n".join(wrapped) + "\n"))
    except SyntaxError:
        return set(), []
    inner = {line - len(head) for first, last in spans for line in range(first + 1, last + 1)}
    return inner, [tuple(wrapped[first:last]) for first, last in spans]


def _without_repeated_comments(
    lines: list[str], old: Definition, first: int, text: list[Line]
) -> tuple[int, int, list[Line]]:
    """Widens the span over comments before and after the definition that the new text brings along."""
    lead = 0
    while text[lead].text.lstrip().startswith("#"):
        lead += 1
    start = first
    for size in range(lead, 0, -1):
        before = lines[max(0, old.first_line - 1 - size) : old.first_line - 1]
        if [line.strip() for line in before] == [line.text.strip() for line in text[lead - size : lead]]:
            if first == old.first_line:
                start = first - size
            else:
                text = text[: lead - size] + text[lead:]
            break
    trail = 0
    while text[-1 - trail].text.lstrip().startswith("#"):
        trail += 1
    end = old.last_line
    for size in range(trail, 0, -1):
        after = lines[old.last_line : old.last_line + size]
        if [line.strip() for line in after] == [line.text.strip() for line in text[len(text) - trail :][:size]]:
            end = old.last_line + size
            break
    return start, end, text


def _merged(old: list[Line], new: list[Line], newline: str, indent: str) -> str:
    """*new* as text; a line that was there before keeps its exact bytes."""
    # comments and continuation lines that stand left of the code: indentation that means nothing to Python
    outdented = {
        line.text.strip()
        for line in old
        if line.text.strip() and not line.data and not indent_of(line.text).startswith(indent)
    }
    text = _aligned(old, new, newline, outdented)
    if outdented:
        plain = _aligned(old, new, newline, set())
        if _meaning(text, indent) != _meaning(plain, indent):
            return plain
    return text


def _meaning(text: str, indent: str) -> str | None:
    try:
        return ast.dump(parse(("if 1:\n" if indent else "") + text))
    except SyntaxError:
        return None


def _aligned(old: list[Line], new: list[Line], newline: str, outdented: set[str]) -> str:
    old_keys = [_key(line, outdented) for line in old]
    new_keys = [_key(line, outdented) for line in new]
    if old_keys == new_keys:
        return "".join(line.text for line in old)
    out: list[str] = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old_keys, new_keys, autojunk=False).get_opcodes():
        if tag == "equal":
            out += [line.text if ending(line.text) else line.text + newline for line in old[a:b]]
        else:
            out += [line.text + newline for line in new[c:d]]
    out[-1] = out[-1].removesuffix(ending(out[-1])) + ending(old[-1].text)
    return "".join(out)


def _key(line: Line, outdented: set[str]) -> tuple[bool, str]:
    """What of a line counts when old and new are aligned: blanks of an empty line and form feeds do not."""
    text = line.text.removesuffix(ending(line.text))
    if line.data:
        return True, text
    if not text.strip() or text.strip() in outdented:
        return False, text.strip()
    blanks = text[: len(text) - len(text.lstrip(" \t\f"))]
    return False, indent_of(text) + text[len(blanks) :]
