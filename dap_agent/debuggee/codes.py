"""A Python file's text as its functions: which code object and which `def` belong to a qualified name, what differs."""

from __future__ import annotations

import ast
import types
from typing import Any, Dict, Iterator, List, Optional, Tuple

_CLASS_FREE = 0x3  # CO_OPTIMIZED, CO_NEWLOCALS: the body of a class has neither
_GENERIC = "<generic parameters of "  # 3.12+: the scope of the T in `def f[T]()`

Definition = Any
"""ast.FunctionDef, ast.AsyncFunctionDef or ast.ClassDef."""

Key = Tuple[str, int]
"""Qualified name, and which of those that are defined under it: a property's getter and setter share one."""


class Entry:
    """A function, a comprehension, a lambda or a class body of a file.

    Args:
        key: see `Key`.
        code: its code object.
        node: its definition; None for a comprehension or lambda.
        outer: what it stands in; None: the module.
    """

    def __init__(self, key: Key, code: types.CodeType, node: Definition, outer: Optional[Entry]) -> None:
        self.key = key
        self.code = code
        self.node = node
        self.outer = outer

    @property
    def name(self) -> str:
        """The qualified name."""
        return self.key[0]

    @property
    def named(self) -> Entry:
        """The function with a name of its own that it is, or is a part of."""
        entry = self
        while entry.code.co_name.startswith("<") and entry.outer is not None and not entry.outer.is_class:
            entry = entry.outer
        return entry

    @property
    def is_class(self) -> bool:
        """Whether it is the body of a class."""
        return is_class_body(self.code)


class Source:
    """A file's text, compiled.

    Args:
        text: of the file.
        filename: for its code objects.

    Raises:
        SyntaxError, ValueError: it does not compile here.
    """

    def __init__(self, text: str, filename: str) -> None:
        self.text = text
        self.tree = parse(text, filename)
        self.code: types.CodeType = compile(self.tree, filename, "exec", dont_inherit=True)
        self.lines = text.split("\n")
        self.entries: Dict[Key, Entry] = {}
        self._places: Dict[Tuple[str, int], List[Entry]] = {}
        nodes = {(node.name, first_line(node)): node for node in definitions(self.tree)}
        self._add(self.code, "", None, nodes)

    def _add(self, code: types.CodeType, prefix: str, outer: Optional[Entry], nodes: Any) -> None:
        for inner in inner_codes(code):
            if inner.co_name.startswith(_GENERIC):
                self._add(inner, prefix, outer, nodes)
                continue
            name = prefix + inner.co_name
            number = 0
            while (name, number) in self.entries:
                number += 1
            place = (inner.co_name, inner.co_firstlineno)
            entry = Entry((name, number), inner, nodes.get(place), outer)
            self.entries[entry.key] = entry
            self._places.setdefault(place, []).append(entry)
            self._add(inner, name + ("." if entry.is_class else ".<locals>."), entry, nodes)

    def entry_of(self, code: types.CodeType) -> Optional[Entry]:
        """The entry that *code*, made of the same text, belongs to; None if it is not clear which one."""
        alike = self._places.get((code.co_name, code.co_firstlineno), [])
        if len(alike) > 1:  # lambdas on one line
            alike = [entry for entry in alike if same(entry.code, code)]
        return alike[0] if len(alike) == 1 else None


def definitions(tree: Any) -> Iterator[Definition]:
    """All functions and classes that have a statement of their own."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            block = getattr(node, part, None)
            for each in block if type(block) is list else ():
                if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    yield each
                waiting.append(each)


def parse(text: str, filename: str) -> Any:
    """The syntax tree of a module.

    Raises:
        SyntaxError, ValueError: it is not Python.
    """
    return compile(text, filename, "exec", ast.PyCF_ONLY_AST, True)


def first_line(node: Any) -> int:
    """The line of a statement; of a definition what `co_firstlineno` is: the line of the first decorator."""
    decorators = getattr(node, "decorator_list", None)
    line: int = decorators[0].lineno if decorators else node.lineno
    return line


def inner_codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code objects directly inside *code*."""
    return (each for each in code.co_consts if type(each) is types.CodeType)


def all_codes(code: types.CodeType) -> List[types.CodeType]:
    """*code* and all inside of it."""
    found = [code]
    for each in found:
        found.extend(inner_codes(each))
    return found


def contains(code: types.CodeType, inner: types.CodeType) -> bool:
    """Whether *inner* is made by *code*, or by what that makes."""
    return any(each is inner for each in all_codes(code)[1:])


def is_class_body(code: types.CodeType) -> bool:
    """Whether *code* is the body of a class."""
    return not code.co_flags & _CLASS_FREE and code.co_name not in ("<module>",)


_PARTS = ("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_argcount", "co_posonlyargcount",
          "co_kwonlyargcount", "co_flags", "co_exceptiontable")  # fmt: skip


def same(one: types.CodeType, other: types.CodeType) -> bool:
    """Whether both do the same, on whatever lines they stand."""
    for part in _PARTS:
        if getattr(one, part, None) != getattr(other, part, None):
            return False
    return len(one.co_consts) == len(other.co_consts) and all(map(_same_constant, one.co_consts, other.co_consts))


def same_lines(one: types.CodeType, other: types.CodeType) -> bool:
    """Whether two code objects that do the same stand on the same lines, and what is inside of them."""
    table = "co_linetable" if hasattr(one, "co_linetable") else "co_lnotab"
    return one is other or (
        one.co_firstlineno == other.co_firstlineno
        and getattr(one, table) == getattr(other, table)
        and all(map(same_lines, inner_codes(one), inner_codes(other)))
    )


def _same_constant(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if type(one) is types.CodeType:
        return one.co_name == other.co_name and same(one, other)
    if type(one) is tuple:
        return len(one) == len(other) and all(map(_same_constant, one, other))
    return one == other and repr(one) == repr(other)  # 0.0 == -0.0


def dump(node: Any) -> str:
    """A syntax tree as a text that does not depend on lines."""
    return ast.dump(node)


def binds(code: types.CodeType, name: str) -> bool:
    """Whether a module or class body gives a value to *name*."""
    import dis

    stores = ("STORE_NAME", "STORE_GLOBAL")
    return name in code.co_names and any(
        each.opname in stores and each.argval == name for each in dis.get_instructions(code)
    )


def line_numbers(code: types.CodeType) -> List[int]:
    """The lines that *code* has instructions on, without that of the `def` unless all is there."""
    import dis

    found = sorted({line for _, line in dis.findlinestarts(code) if line is not None})
    return [line for line in found if line > code.co_firstlineno] or found
