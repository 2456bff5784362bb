"""What differs between two versions of a function, a class or a statement, beside the lines that they stand on."""

from __future__ import annotations
import __future__

import ast
import copy
import types
from typing import Any, Callable, List

from . import codes, statements, swapping
from .codes import Entry


def same_itself(old: types.CodeType, new: types.CodeType) -> bool:
    """Whether a function is the same but for the functions inside of it that have names."""
    if codes.same(old, new):
        return True
    one, other = [[each for each in codes.inner_codes(code) if each.co_name[:1] != "<"] for code in (old, new)]
    if [each.co_name for each in one] != [each.co_name for each in other]:
        return False
    stand_in = one[0] if one else None
    if stand_in is None:
        return False

    def without(code: types.CodeType) -> types.CodeType:
        constants = [stand_in if type(c) is types.CodeType and c.co_name[:1] != "<" else c for c in code.co_consts]
        return code.replace(co_consts=tuple(constants))

    return codes.same(without(old), without(new))


def differ(old: Entry, new: Entry, same: Callable[[Any, Any], bool]) -> bool:
    """Whether both are defined by a `def`, and *same* says no of the two."""
    both = statements.is_function(old.node) and statements.is_function(new.node)
    return both and not same(old.node, new.node)


def differs_outside(old: Entry, new: Entry) -> bool:
    """Whether the default values, the decorators or the annotations are others."""
    return any(differ(old, new, same) for same in (swapping.same_defaults, same_decorators, swapping.same_annotations))


def same_decorators(old: Any, new: Any) -> bool:
    """Whether two definitions have the same decorators."""
    return [*map(codes.dump, old.decorator_list)] == [*map(codes.dump, new.decorator_list)]


def class_head(node: Any) -> "tuple[List[str], List[str], List[str]]":
    """Bases, keywords and decorators of a class, comparable."""
    return [*map(codes.dump, node.bases)], [*map(codes.dump, node.keywords)], [*map(codes.dump, node.decorator_list)]


def shell(statement: Any) -> str:
    """A statement without what is inside of its functions: those are put in for themselves."""
    return codes.dump(_Hollow().visit(copy.deepcopy(statement)))


class _Hollow(ast.NodeTransformer):
    def _function(self, node: Any) -> Any:
        node.body = [ast.Pass()]
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = _function


def future_flags(code: types.CodeType) -> int:
    """The compiler's flags for the `__future__` imports of a module."""
    flags = 0
    for name in __future__.all_feature_names:
        flags |= code.co_flags & getattr(__future__, name).compiler_flag
    return flags
