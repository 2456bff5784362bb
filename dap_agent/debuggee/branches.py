"""Which way a branch went: the statements of a file that decide, told by the line that ran after them."""

from __future__ import annotations

import ast
from typing import Any, Dict, List, Tuple

from . import codes


class Branches:
    """The deciding statements of one file.

    Args:
        text: of the file.

    Raises:
        SyntaxError, ValueError, RecursionError: it is not Python here.
    """

    def __init__(self, text: str) -> None:
        self._at: Dict[int, List[Any]] = {}
        match: Any = getattr(ast, "Match", ())
        for node in ast.walk(codes.parse(text, "<source>")):
            if isinstance(node, (ast.If, ast.While, ast.For, ast.AsyncFor)) or (match and isinstance(node, match)):
                for line in range(node.lineno, _header_end(node) + 1):
                    self._at.setdefault(line, []).append(node)

    def taken(self, line: int, following: int) -> str:
        """What the step from *line* to the line *following* says: `true`, `false`, `next`, `ends`, `case at 12`; or "".

        Args:
            following: the line of the same function that ran next; 0: none did.
        """
        for node in self._at.get(line, ()):
            if not following or line == following or node.lineno <= following <= _header_end(node):
                continue
            if hasattr(node, "cases"):
                for case in node.cases:
                    if _span(case.body)[0] <= following <= _span(case.body)[1]:
                        return "case at %d" % case.pattern.lineno
                continue
            first, last = _span(node.body)
            inside = first <= following <= last
            if isinstance(node, (ast.For, ast.AsyncFor)):
                return "next" if inside else "ends"
            return "true" if inside else "false"
        return ""


def _header_end(node: Any) -> int:
    deciding = getattr(node, "test", None) or getattr(node, "iter", None) or node.subject
    first: int = node.lineno
    return max(first, deciding.end_lineno or first)


def _span(body: List[Any]) -> Tuple[int, int]:
    return codes.first_line(body[0]), body[-1].end_lineno or body[-1].lineno
