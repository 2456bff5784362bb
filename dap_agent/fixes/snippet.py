"""Source text as a model sends it, moved to the indentation of the place where it goes.

Blanks inside multi-line strings are data and stay, but for docstrings (see `Snippet.indented`).
"""

import ast
import contextlib
import io
import re
import sys
import tokenize
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dap_agent.fixes.failures import EditError
from dap_agent.fixes.source_text import check_model_text, indent_of, unix
from dap_agent.fixes.symbols import Definable, parse

# since PEP 701 an f-string in single quotes may span lines too
_NESTED_FSTRINGS = sys.version_info >= (3, 12)
_FSTRING = re.compile(r"[ft]r?[\"']", re.IGNORECASE)
_TEXT = (ast.JoinedStr, ast.Constant)


class Line(NamedTuple):
    """One line without its end; *data* when it starts inside a string, where blanks count."""

    text: str
    data: bool


@dataclass(frozen=True)
class Snippet:
    """A piece of Python that parses by itself.

    Args:
        lines: without line ends, no outer indentation.
        tree: its syntax tree.
        strings: the multi-line strings, each as (first line, last line), from 1.
    """

    lines: list[str]
    tree: ast.Module
    strings: tuple[tuple[int, int], ...]

    @property
    def inner_lines(self) -> set[int]:
        """The lines (from 1) that start inside a string."""
        return {line for first, last in self.strings for line in range(first + 1, last + 1)}

    def definition(self) -> Definable:
        """The one definition that the snippet is.

        Raises:
            EditError: it holds something else too.
        """
        body = self.tree.body
        if len(body) == 1 and isinstance(body[0], (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return body[0]
        extra = [node for node in body if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))]
        if extra and isinstance(extra[0], (ast.Import, ast.ImportFrom)):
            raise EditError("source must be exactly one def or class; put the import into an insert_import edit")
        raise EditError(
            f"source must be exactly one def or class, decorators included, but has {len(body)} statements; "
            "use add_symbol for further ones"
        )

    def indented(self, indent: str, tabs: bool, kept: Sequence[tuple[str, ...]] = ()) -> list[Line]:
        """The lines at *indent*.

        A docstring that was moved with its function is moved back; any other string keeps its lines as sent.

        Args:
            indent: blanks of the place, put before every line.
            tabs: whether the file indents by tabs; spaces (or tabs) of the snippet are converted to fit.
            kept: inner lines of the strings in the code that is replaced; they come back as they are or dedented.
        """
        unit = _unit(self.lines, self.inner_lines)

        def moved(line: str) -> str:
            own = indent_of(line)
            return indent + _converted(own, unit, tabs) + line[len(own) :]

        result = [Line(moved(line) if line.strip() else indent + line if line else line, False) for line in self.lines]
        if not self.strings:
            return result
        docstrings = _docstring_lines(self.tree)
        for index, (first, last) in enumerate(self.strings):
            inner = tuple(self.lines[first:last])
            same_place = kept[index : index + 1] if len(kept) == len(self.strings) else ()
            chosen = _recognised(inner, same_place, indent) or _recognised(inner, kept, indent)
            if chosen is None:
                away = first in docstrings and not _stands_at(inner, docstrings[first], indent)
                chosen = tuple(moved(line) if away and line.strip() else line for line in inner)
            result[first:last] = [Line(line, True) for line in chosen]
        return result


def _recognised(inner: tuple[str, ...], kept: Sequence[tuple[str, ...]], indent: str) -> tuple[str, ...] | None:
    if inner in kept:
        return inner
    return next((old for old in kept if inner == tuple(line.removeprefix(indent) for line in old)), None)


def _converted(blanks: str, unit: int, tabs: bool) -> str:
    if tabs and "\t" not in blanks:
        return "\t" * (len(blanks) // unit) + " " * (len(blanks) % unit)
    if not tabs and "\t" in blanks:
        return blanks.expandtabs(4)
    return blanks


def _unit(lines: list[str], inner: set[int]) -> int:
    widths = [len(indent_of(line)) for number, line in enumerate(lines, 1) if number not in inner and line.strip()]
    return min((width for width in widths if width), default=4)


def _docstring_lines(tree: ast.Module) -> dict[int, int]:
    """First line -> column of the code around it, for each docstring."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            first = node.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                found[first.lineno] = first.col_offset
    return found


def _stands_at(inner: Sequence[str], column: int, indent: str) -> bool:
    """Whether a docstring's lines already have the indentation of the place."""
    widths = [len(indent_of(line)) for line in inner if line.strip()]
    return not widths or min(widths) >= column + len(indent) or min(widths) < column


def snippet(source: str, place: str = "", body_column: int | None = None) -> Snippet:
    """*source* without its outer indentation.

    Args:
        source: as the model sent it; any uniform indentation.
        place: blanks of the place where it goes.
        body_column: column of the body of the code that is replaced, to see that only the first line was stripped.

    Raises:
        EditError: it does not parse.
    """
    check_model_text(source)
    lines = unix(source).split("\n")
    while lines and not lines[0].strip():
        del lines[0]
    while lines and not lines[-1].strip():
        del lines[-1]
    if not lines:
        raise EditError("source is empty")
    result = problem = None
    try:
        result = _dedented(lines)
    except SyntaxError as error:
        problem = error
    if result is not None and not (place and _first_line_stripped(result, body_column)):
        return result
    if place and not indent_of(lines[0]):
        with contextlib.suppress(SyntaxError):
            # models strip the text: the first line lost its indentation, the others have it
            return _dedented([place + lines[0], *lines[1:]])
    if problem is None:
        assert result is not None
        return result
    raise EditError(
        f"source does not parse: {problem.msg} at its line {problem.lineno}: "
        f"{(problem.text or '').strip()!r}; send plain Python, without Markdown fences or diff marks"
    )


def _first_line_stripped(result: Snippet, body_column: int | None) -> bool:
    node = result.tree.body[0] if result.tree.body else None
    if body_column is None or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return False
    return node.body[0].lineno > node.lineno and node.body[0].col_offset == body_column


def _dedented(lines: list[str]) -> Snippet:
    prefix = next((indent_of(line) for line in lines if line.strip() and not line.lstrip().startswith("#")), "")
    if not prefix:
        tree = parse("\n".join(lines) + "\n")
        return Snippet(lines, tree, strings(lines, lambda: tree))
    wrapped = ["if 1:", *lines]
    tree = parse("\n".join(wrapped) + "\n")
    inner = {line for first, last in strings(wrapped, lambda: tree) for line in range(first + 1, last + 1)}
    plain = [
        line if number in inner else line.removeprefix(prefix) if line.startswith(prefix) else line.lstrip(" \t")
        for number, line in enumerate(lines, 2)
    ]
    plain_tree = parse("\n".join(plain) + "\n")
    return Snippet(plain, plain_tree, strings(plain, lambda: plain_tree))


def strings(lines: list[str], tree: Callable[[], ast.AST]) -> tuple[tuple[int, int], ...]:
    """The multi-line strings of parsed code as (first line, last line), from 1, in the numbering of *lines*."""
    text = "\n".join(lines)
    if not any(mark in text for mark in ('"""', "'''", "\\\n")) and not (_NESTED_FSTRINGS and _FSTRING.search(text)):
        return ()
    spans = [
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(tree())
        if isinstance(node, _TEXT)
        and (isinstance(node, ast.JoinedStr) or isinstance(node.value, (str, bytes)))
        and (node.end_lineno or node.lineno) > node.lineno
    ]
    if not spans:
        return ()
    # a node of several adjacent strings spans lines that are not inside any of them: only tokens tell
    found: list[tuple[int, int]] = []
    opened: list[int] = []
    starts = {getattr(tokenize, name, -1) for name in ("FSTRING_START", "TSTRING_START")} - {-1}
    ends = {getattr(tokenize, name, -1) for name in ("FSTRING_END", "TSTRING_END")} - {-1}
    try:
        for token in tokenize.generate_tokens(io.StringIO(text + "\n").readline):
            if token.type in starts:
                opened.append(token.start[0])
            elif token.type in ends:
                first = opened.pop()
                if not opened and token.end[0] > first:
                    found.append((first, token.end[0]))
            elif token.type == tokenize.STRING and not opened and token.end[0] > token.start[0]:
                found.append((token.start[0], token.end[0]))
    except (tokenize.TokenError, SyntaxError):
        # the parser took it, the tokenizer did not: leave every line that may be inside a string as it is
        return tuple(spans)
    return tuple(found)
