"""Below Python 3.11: which call in the source an instruction is, where only its line is known.

The calls of a line are matched with its instructions in the order in which the compiler makes these from them.
"""

from __future__ import annotations

import ast
import dis
import sys
import types
from typing import Any, Iterator, List, Optional, Tuple

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FIRST = {
    ast.Assign: ("value", "targets"),
    ast.AnnAssign: ("value", "target", "annotation"),
    ast.NamedExpr: ("value", "target"),
    ast.IfExp: ("test", "body", "orelse"),
    ast.For: ("iter", "target", "body", "orelse"),
    ast.AsyncFor: ("iter", "target", "body", "orelse"),
    ast.ClassDef: ("decorator_list", "bases", "keywords"),
}
"""Fields in the order in which the compiler comes to them, where the tree has another, or they are another scope's."""


def call_at(code: types.CodeType, offset: int, definition: Any) -> Optional[ast.Call]:
    """The call that an instruction is; None if that cannot be said for certain.

    Args:
        offset: of the instruction, in bytes (`f_lasti`).
        definition: of *code*: a module, class or function.
    """
    same = _like(code, offset)
    if same is None:
        return None
    number, total, kind, line = same
    found = [call for call in _calls(definition, line, True) if _kind(call) == kind and _line(call) == line]
    return found[number] if len(found) == total else None


def _like(code: types.CodeType, offset: int) -> Optional[Tuple[int, int, Tuple[str, int], int]]:
    """Which of how many like it in its line it is, with its kind and line."""
    seen: List[Tuple[int, Tuple[str, int], int]] = []
    line, before = code.co_firstlineno, ""
    for each in dis.get_instructions(code):
        if each.starts_line is not None:
            line = each.starts_line
        # a comprehension is called, too, and no call in the source
        if each.opname.startswith("CALL_") and not before.startswith(("GET_ITER", "GET_AITER")):
            seen.append((each.offset, (each.opname, 0 if each.opname == "CALL_FUNCTION_EX" else each.arg or 0), line))
        before = each.opname
    for at, kind, line in seen:
        if at == offset:
            like = [other for other, its_kind, its_line in seen if its_kind == kind and its_line == line]
            return like.index(offset), len(like), kind, line
    return None


def _kind(call: ast.Call) -> Tuple[str, int]:
    if any(isinstance(each, ast.Starred) for each in call.args) or any(each.arg is None for each in call.keywords):
        return "CALL_FUNCTION_EX", 0
    number = len(call.args) + len(call.keywords)
    if call.keywords:
        return "CALL_FUNCTION_KW", number
    return ("CALL_METHOD" if isinstance(call.func, ast.Attribute) else "CALL_FUNCTION"), number


def _line(call: ast.Call) -> int:
    if sys.version_info >= (3, 10) and _kind(call)[0] == "CALL_METHOD":
        return call.func.end_lineno or call.lineno
    return call.lineno


def _calls(node: Any, line: int, whole: bool = False) -> Iterator[ast.Call]:
    """The calls of one scope in this line, in the order of their instructions."""
    decorated = getattr(node, "decorator_list", None)  # these stand before its first line
    if not whole and not decorated and not getattr(node, "lineno", line) <= line <= getattr(node, "end_lineno", line):
        return
    for child in node.body if whole else _parts(node):
        yield from _calls(child, line)
    if isinstance(node, ast.Call):
        yield node


def _parts(node: Any) -> Iterator[Any]:
    if isinstance(node, _FUNCTIONS):
        yield from getattr(node, "decorator_list", ())
        yield from node.args.defaults
        yield from (each for each in node.args.kw_defaults if each is not None)
        return
    if isinstance(node, _COMPREHENSIONS):
        yield node.generators[0].iter
        return
    if isinstance(node, ast.Dict):
        for pair in zip(node.keys, node.values):
            yield from (each for each in pair if each is not None)
        return
    for field in _FIRST.get(type(node), node._fields):
        value = getattr(node, field, None)
        for each in value if isinstance(value, list) else (value,):
            if isinstance(each, ast.AST):
                yield each
