"""Statements of a module or class that a change has brought: run in the module or class that exists."""

from __future__ import annotations

import ast
import copy
import sys
import types
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from . import codes, reading
from .codes import dump
from .ledger import Ledger
from .swapping import Impossible

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)


class Change(NamedTuple):
    """A statement that is not in the old text as it is.

    Args:
        old: the one that it has replaced: a definition of the same name; None for all others.
        new: the statement.
        place: where it stands in the new body.
    """

    old: Any
    new: Any
    place: int


class Body(NamedTuple):
    """The statements of a module, class or branch, and the lines of the text that they stand in."""

    statements: List[Any]
    lines: List[str]

    def text(self, place: int) -> List[str]:
        """The lines of a statement."""
        node = self.statements[place]
        return self.lines[codes.first_line(node) - 1 : node.end_lineno]


Operation = Tuple[str, int, int, int, int]


def opcodes(old: Body, new: Body) -> List[Operation]:
    """How one list of statements becomes the other, as `difflib.SequenceMatcher.get_opcodes` tells it."""
    import difflib

    # what has the same text at both ends need not be dumped
    most = min(len(old.statements), len(new.statements))
    head = 0
    while head < most and old.text(head) == new.text(head):
        head += 1
    tail = 0
    while tail < most - head and old.text(-1 - tail) == new.text(-1 - tail):
        tail += 1
    ends = len(old.statements) - tail, len(new.statements) - tail
    between = [*map(dump, old.statements[head : ends[0]])], [*map(dump, new.statements[head : ends[1]])]
    inner = difflib.SequenceMatcher(None, between[0], between[1], False).get_opcodes()
    found: List[Operation] = [("equal", 0, head, 0, head)] if head else []
    found += [(tag, i1 + head, i2 + head, j1 + head, j2 + head) for tag, i1, i2, j1, j2 in inner]
    if tail:
        found.append(("equal", ends[0], len(old.statements), ends[1], len(new.statements)))
    return found


def changes(old: Body, new: Body) -> List[Change]:
    """The statements of *new* that *old* does not have."""
    found = []
    for tag, i1, i2, j1, j2 in opcodes(old, new):
        if tag == "equal":
            continue
        for place in range(j1, j2):
            node = new.statements[place]
            found.append(Change(_definition_like(old.statements, node, old.statements[i1:i2]), node, place))
    return found


def gone(old: Body, new: Body) -> List[str]:
    """Names that the statements of *old* bind which *new* does not have."""
    found: List[str] = []
    for tag, i1, i2, _, _ in opcodes(old, new):
        for node in old.statements[i1:i2] if tag != "equal" else ():
            found += names_of(node) or []
    return found


def _definition_like(old: Sequence[Any], wanted: Any, near: Sequence[Any]) -> Any:
    """The old definition of that name; of several the one at the same place."""
    if not isinstance(wanted, _DEFINITIONS):
        return None
    for among in (near, old):
        for each in among:
            if isinstance(each, _DEFINITIONS) and each.name == wanted.name:
                return each
    return None


def is_function(statement: Any) -> bool:
    """Whether it is a `def`."""
    return isinstance(statement, _FUNCTIONS)


def is_import(statement: Any) -> bool:
    """Whether it is an `import`."""
    return isinstance(statement, _IMPORTS)


def is_definition(statement: Any) -> bool:
    """Whether it is a `def` or a `class`."""
    return isinstance(statement, _DEFINITIONS)


def binding_like(body: Sequence[Any], names: List[str]) -> Any:
    """The last assignment of a body that gives the same *names* their values; None if there is none."""
    found = None
    for each in body:
        if not isinstance(each, _DEFINITIONS) and names and set(names) & set(names_of(each) or []):
            found = each if names_of(each) == names else None
        elif isinstance(each, _DEFINITIONS) and [each.name] == names:
            found = each
    return found


def is_class(statement: Any) -> bool:
    """Whether it is a `class`."""
    return isinstance(statement, ast.ClassDef)


def names_of(statement: Any) -> Optional[List[str]]:
    """The names that a statement gives values to without other effects; None: it does something else, too."""
    if isinstance(statement, _DEFINITIONS):
        return [statement.name]
    if isinstance(statement, _IMPORTS):
        return [(each.asname or each.name).partition(".")[0] for each in statement.names]
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target] if statement.value is not None else []
    else:
        return [] if is_harmless(statement) else None
    found: List[str] = []
    for target in targets:
        for each in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
            if not isinstance(each, ast.Name):
                return None
            found.append(each.id)
    return found


def is_harmless(statement: Any) -> bool:
    """Whether leaving it out changes nothing: a docstring, `pass`, a bare annotation."""
    constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return (
        constant
        or isinstance(statement, ast.Pass)
        or (isinstance(statement, ast.AnnAssign) and statement.value is None)
    )


def binds_only(statement: Any) -> bool:
    """Whether it is an import or a definition, which no other statement before it can have an influence on."""
    return isinstance(statement, (*_DEFINITIONS, *_IMPORTS)) or is_harmless(statement)


def run_in_module(
    statement: Any,
    filename: str,
    flags: int,
    namespace: Dict[str, Any],
    holders: List[Dict[str, Any]],
    compiled: Callable[[types.CodeType], None],
    ledger: Ledger,
) -> None:
    """Run it as a part of the module.

    Args:
        flags: of the compiler: the module's `__future__` imports.
        holders: see `namespaces`; a copy of a value that was replaced is replaced in them.
        compiled: is told its code object.
        ledger: notes what was done.

    Raises:
        Impossible: it failed.
    """
    code = compile(ast.Module([statement], []), filename, "exec", flags, True)
    compiled(code)
    names = names_of(statement) or []
    before = {name: reading.lookup(namespace, name) for name in names}
    for name, old in before.items():
        ledger.was(namespace, name, old)
    _run(code, namespace, namespace)
    for name, old in before.items():
        _renew_copies(holders, name, old, namespace.get(name), isinstance(statement, _DEFINITIONS), ledger)


def namespaces(frames: Sequence[types.FrameType]) -> List[Dict[str, Any]]:
    """Those of all modules, and of *frames* whose modules are in no table."""
    modules = [each for each in list(sys.modules.values()) if issubclass(type(each), types.ModuleType)]
    found = {id(held): held for held in map(reading.module_dict, modules)}
    found.update((id(frame.f_globals), frame.f_globals) for frame in frames)
    return [held for held in found.values() if type(held) is dict]


def _renew_copies(
    holders: List[Dict[str, Any]], name: str, old: Any, new: Any, definition: bool, ledger: Ledger
) -> None:
    """What other modules have got by `from x import name` (`as other`, if it is a function or class)."""
    if old is reading.MISSING or old is new:
        return
    for held in holders:
        for key, value in reading.entries(held, None) if definition else [(name, held.get(name, reading.MISSING))]:
            if value is old and type(key) is str:
                ledger.set_item(held, key, new)


def run_in_class(
    cls: type,
    chain: Sequence[Any],
    statements: List[Any],
    filename: str,
    flags: int,
    namespace: Dict[str, Any],
    compiled: Callable[[types.CodeType], None],
    ledger: Ledger,
) -> None:
    """Run statements as a part of a class's body, and give the class what they bind.

    Args:
        chain: the `class` statements from the outermost to the one of *cls*.
        statements: of its body.
        ledger: notes what was done.

    Raises:
        Impossible: they failed, or the class takes no new attributes.
    """
    inner = statements
    for node in reversed(chain):
        node = copy.copy(node)
        node.body, node.decorator_list = inner, []
        inner = [node]
    code = compile(ast.Module(inner, []), filename, "exec", flags, True)
    compiled(code)
    for node in chain:
        code = _body_of(code, node.name)
    scope = dict(reading.class_dict(cls))
    scope.pop("__classcell__", None)
    before = dict(scope)
    if "__annotations__" in scope:
        scope["__annotations__"] = dict(scope["__annotations__"])  # the class has its own until all has gone well
    _run(code, namespace, scope)
    cell = scope.pop("__classcell__", None)
    if cell is not None:
        cell.cell_contents = cls
    for name, value in scope.items():
        if name in ("__module__", "__qualname__", "__firstlineno__", "__static_attributes__"):
            continue
        if name in before and (before[name] is value or (name == "__annotations__" and before[name] == value)):
            continue
        try:
            ledger.set_attribute(cls, name, value)
            named = getattr(type(value), "__set_name__", None)
            if named is not None:
                named(value, cls, name)
        except Exception as error:  # an Enum, a class of C code, a metaclass of the user's
            raise Impossible("the class refuses it: %s" % str(error)[:200]) from None


def _body_of(code: types.CodeType, name: str) -> types.CodeType:
    for each in codes.all_codes(code)[1:]:
        if each.co_name == name and codes.is_class_body(each):
            return each
    raise Impossible("its class was not found in the compiled text")


def _run(code: Any, namespace: Dict[str, Any], scope: Any) -> None:
    try:
        exec(code, namespace, scope)
    except Exception as error:  # whatever it raises
        raise Impossible("running it failed with %s: %s" % (reading.type_name(type(error)), str(error)[:200])) from None
