"""Which `try` and `with` statements protect one instruction of a code object: from the source, once per instruction.

From 3.11 on the instruction's columns say exactly where it stands. Before, there is its line, and the number of blocks
that the byte code has open there tells what a line that holds both a `with` and its body leaves open.
"""

from __future__ import annotations

import ast
import dis
import itertools
import os
import sys
import types
import warnings
from typing import Any, NamedTuple, Union

from . import interrupts, reading, sources

_POSITIONS = sys.version_info >= (3, 11)
_MAX_CODES = 20000
Tries: Any = (ast.Try, getattr(ast, "TryStar", ast.Try))
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_NO_STATEMENTS = ("<lambda>", "<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>")


class Exits(NamedTuple):
    """How a block of statements can be left.

    Args:
        ways: of `fall` (through its end), `return`, `break`, `continue`.
        raises: its own raise statements that may leave it.
    """

    ways: frozenset[str]
    raises: tuple[ast.Raise, ...]


class Handler(NamedTuple):
    """One `except` clause. Args: *type* None for a bare one; *alias* of `as`; *body* its statements."""

    type: ast.expr | None
    alias: str | None
    exits: Exits
    body: tuple[ast.stmt, ...]
    line: int


class Except(NamedTuple):
    """The handlers of a `try`, which protect its body."""

    handlers: tuple[Handler, ...]
    star: bool


class Finally(NamedTuple):
    """A `finally` that does not just fall through."""

    exits: Exits
    body: tuple[ast.stmt, ...]
    line: int


class Manager(NamedTuple):
    """One item of a `with`. Args: *sure* False if the instruction may stand outside of its protection."""

    item: ast.withitem
    is_async: bool
    line: int
    sure: bool


class Nothing(NamedTuple):
    """A block of the byte code that lets every exception pass."""

    why: str


Guard = Union[Except, Finally, Manager, Nothing]


class Place(NamedTuple):
    """What protects one instruction.

    Args:
        guards: innermost first.
        sure: False where the source is missing or does not match the code: then there may be others.
        position: line, column, last line, last column; columns are None below 3.11.
    """

    guards: tuple[Guard, ...]
    sure: bool
    position: tuple[int, int | None, int, int | None]


class Code:
    """What is known of one code object; keeps it alive, so that its id stays its own."""

    def __init__(self, code: types.CodeType, namespace: Any) -> None:
        self.code = code
        self.module = _text(namespace.get("__name__")) if type(namespace) is dict else ""
        self.boundary: Any = None  # for boundaries.py
        self.places: dict[int, Place] = {}
        self.calls: dict[int, list[ast.Call]] = {}  # for boundaries.py
        self.sites: dict[int, ast.Call | None] = {}  # for boundaries.py
        self.namespace = namespace
        self._node: Any = reading.MISSING
        self._depths: dict[int, int] | None = None
        self._table: list[tuple[int, int]] | None = None

    @property
    def node(self) -> Any:
        """Its definition: a Module, function or class; None if there is no source, or another."""
        if self._node is reading.MISSING:
            self._node = definition(self.code, self.namespace)
        return self._node

    def place(self, offset: int) -> Place:
        """What protects the instruction at byte *offset* (`f_lasti`)."""
        found = self.places.get(offset)
        if found is None:
            found = self.places[offset] = self._place(offset)
        return found

    def _place(self, offset: int) -> Place:
        position = self._position(offset)
        if offset < 0 or not self._protected(offset):
            return Place((), True, position)
        if self.code.co_name in _NO_STATEMENTS:
            return Place((), True, position)  # its blocks are the compiler's own and pass everything on
        node = self.node
        if node is None or isinstance(node, ast.Lambda):
            return Place((), False, position)
        guards = around(node.body, position)
        if _POSITIONS:
            return Place(tuple(guards), True, position)
        depth = self._depth(offset)
        return Place(
            tuple(guards[len(guards) - depth :] if depth <= len(guards) else guards), depth <= len(guards), position
        )

    def _position(self, offset: int) -> tuple[int, int | None, int, int | None]:
        if _POSITIONS and offset >= 0:
            positions: Any = self.code.co_positions()  # type: ignore[attr-defined,unused-ignore]
            line, last, column, last_column = next(itertools.islice(positions, offset // 2, None), (None,) * 4)
            if line is not None:
                return line, column, last if last is not None else line, last_column
        line = self.code.co_firstlineno
        for start, number in dis.findlinestarts(self.code):
            if start > offset:
                break
            line = number if number is not None else line
        return line, None, line, None

    def _protected(self, offset: int) -> bool:
        if not _POSITIONS:
            return self._depth(offset) > 0
        if self._table is None:
            self._table = [(start, end) for start, end, _ in exception_table(self.code)]
        return any(start <= offset < end for start, end in self._table)

    def _depth(self, offset: int) -> int:
        if self._depths is None:
            self._depths = _block_depths(self.code)
        return self._depths.get(offset, 0)


_codes: dict[int, Code] = {}
_trees: dict[str, tuple[int, dict[tuple[str, int], Any] | None]] = {}


def of_code(code: types.CodeType, namespace: Any) -> Code:
    """The record of a code object, made when it is first asked for."""
    found = _codes.get(id(code))
    if found is None:
        if len(_codes) > _MAX_CODES:
            _codes.clear()
        found = _codes[id(code)] = Code(code, namespace)
    return found


def forget() -> None:
    """Let go of all code objects and trees."""
    _codes.clear()
    _trees.clear()


def _text(value: Any) -> str:
    return reading.text_of(value) or ""


def definition(code: types.CodeType, namespace: Any) -> Any:
    """The syntax tree of a code object's own definition, or None."""
    lines = sources.lines_of(_source_file(code.co_filename), namespace)
    if lines is None:
        return None
    text = "\n".join(lines)
    key = hash(text)
    known = _trees.get(code.co_filename)
    if known is None or known[0] != key:
        known = _trees[code.co_filename] = (key, _index(text))
    index = known[1]
    if index is None:
        return None
    if code.co_name in _NO_STATEMENTS:
        return None
    if code.co_name == "<module>":
        return index.get(("<module>", 0))
    return index.get((code.co_name, code.co_firstlineno))


def _source_file(filename: str) -> str:
    """Modules that are frozen into the interpreter have their source in the standard library all the same."""
    if not filename.startswith("<frozen "):
        return filename
    base = os.path.join(os.path.dirname(os.__file__), *filename[len("<frozen ") : -1].split("."))
    package = os.path.join(base, "__init__.py")
    return package if os.path.isfile(package) else base + ".py"


def tree_of(record: Code) -> Any:
    """The whole file that a code object comes from, or None."""
    known = _trees.get(record.code.co_filename)
    if known is None:
        _ = definition(record.code, record.namespace)
        known = _trees.get(record.code.co_filename)
    return known[1].get(("<module>", 0)) if known is not None and known[1] is not None else None


def _index(text: str) -> dict[tuple[str, int], Any] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in strings: the program has had them already
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        interrupts.pass_on(error)
        return None
    found: dict[tuple[str, int], Any] = {("<module>", 0): tree}
    for node in ast.walk(tree):
        if isinstance(node, _SCOPES):
            found[node.name, first_line(node)] = node
    return found


def first_line(node: Any) -> int:
    """As `co_firstlineno` counts it: of the first decorator."""
    line: int = min([node.lineno] + [decorator.lineno for decorator in getattr(node, "decorator_list", ())])
    return line


# Where in the tree


def around(body: list[ast.stmt], position: tuple[int, int | None, int, int | None]) -> list[Guard]:
    """The guards around a position, innermost first."""
    found: list[Guard] = []
    _descend(body, position, found)
    found.reverse()
    return found


def _inside(node: Any, position: tuple[int, int | None, int, int | None]) -> bool:
    line, column, last, last_column = position
    if column is None or last_column is None:
        return bool(node.lineno <= line <= node.end_lineno)
    return (node.lineno, node.col_offset) <= (line, column) and (last, last_column) <= (
        node.end_lineno,
        node.end_col_offset,
    )


def _in_any(nodes: Any, position: Any) -> bool:
    return any(_inside(node, position) for node in nodes)


def _descend(body: Any, position: Any, found: list[Guard]) -> None:
    """Append the guards from outside in."""
    for statement in body:
        if not _inside(statement, position) or isinstance(statement, _SCOPES):
            continue
        if isinstance(statement, Tries):
            _descend_try(statement, position, found)
        elif isinstance(statement, (ast.With, ast.AsyncWith)):
            _descend_with(statement, position, found)
        else:
            if isinstance(statement, ast.AsyncFor) and (
                _inside(statement.iter, position) or _inside(statement.target, position)
            ):
                found.append(Nothing("async for"))
            for inner in ("body", "orelse"):
                _descend(getattr(statement, inner, ()), position, found)
            for case in getattr(statement, "cases", ()):
                _descend(case.body, position, found)


def _descend_try(statement: Any, position: Any, found: list[Guard]) -> None:
    if _in_any(statement.finalbody, position):
        _descend(statement.finalbody, position, found)
        return
    if statement.finalbody:
        exits = exits_of(statement.finalbody)
        if exits.ways == {"fall"} and not exits.raises:
            found.append(Nothing("finally"))
        else:
            found.append(Finally(exits, tuple(statement.finalbody), statement.finalbody[0].lineno))
    if _in_any(statement.body, position):
        if statement.handlers:
            star = statement.__class__.__name__ == "TryStar"
            found.append(Except(tuple(_handler(handler) for handler in statement.handlers), star))
        _descend(statement.body, position, found)
        return
    for handler in statement.handlers:
        if _in_any(handler.body, position):
            if handler.name:
                found.append(Nothing("the end of a handler's name"))
            _descend(handler.body, position, found)
            return
    _descend(statement.orelse, position, found)


def _handler(node: ast.ExceptHandler) -> Handler:
    return Handler(node.type, node.name, exits_of(node.body), tuple(node.body), node.lineno)


def _descend_with(statement: Any, position: Any, found: list[Guard]) -> None:
    is_async = isinstance(statement, ast.AsyncWith)
    in_body = _in_any(statement.body, position)
    for number, item in enumerate(statement.items):
        before = not in_body and position[1] is not None and _inside(item.context_expr, position)
        if before:
            return
        # columns are unknown, or those of the whole statement: in one of its __enter__ or __exit__
        later = _in_any([other.context_expr for other in statement.items[number + 1 :]], position)
        sure = in_body or position[1] is None or later
        if position[1] is None and _POSITIONS and _inside(item.context_expr, position):
            sure = False  # run with -X no_debug_ranges
        if not in_body and position[1] is None and item.context_expr.lineno > position[0]:
            return
        if not sure and number == len(statement.items) - 1:
            return
        found.append(Manager(item, is_async, item.context_expr.lineno, sure))
    if in_body:
        _descend(statement.body, position, found)


# How a block is left


def exits_of(body: Any) -> Exits:
    """The ways out of a block, leaving aside exceptions that no `raise` in it shows."""
    ways: set[str] = {"fall"}
    raises: list[ast.Raise] = []
    for statement in body:
        ways.discard("fall")
        inner = _exits(statement)
        ways |= inner.ways
        raises.extend(inner.raises)
        if "fall" not in ways:
            break
    return Exits(frozenset(ways), tuple(raises))


def _exits(statement: Any) -> Exits:
    if isinstance(statement, ast.Raise):
        return Exits(frozenset(), (statement,))
    for kind, way in ((ast.Return, "return"), (ast.Break, "break"), (ast.Continue, "continue")):
        if isinstance(statement, kind):
            return Exits(frozenset([way]), ())
    if isinstance(statement, ast.If):
        return _either(exits_of(statement.body), exits_of(statement.orelse))
    if isinstance(statement, (ast.While, ast.For, ast.AsyncFor)):
        return _loop(statement)
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        inner = exits_of(statement.body)
        return Exits(inner.ways | {"fall"}, inner.raises) if inner.raises else inner  # the manager may swallow it
    if isinstance(statement, Tries):
        return _try(statement)
    cases = getattr(statement, "cases", None)
    if cases:
        return _either(Exits(frozenset(["fall"]), ()), *[exits_of(case.body) for case in cases])
    return Exits(frozenset(["fall"]), ())


def _either(*branches: Exits) -> Exits:
    ways: frozenset[str] = frozenset()
    return Exits(ways.union(*[b.ways for b in branches]), tuple(r for b in branches for r in b.raises))


def _loop(statement: Any) -> Exits:
    body = exits_of(statement.body)
    endless = (
        isinstance(statement, ast.While) and isinstance(statement.test, ast.Constant) and bool(statement.test.value)
    )
    ways = body.ways - {"fall", "break", "continue"}
    raises = body.raises
    if "break" in body.ways or not endless:
        ways |= {"fall"}
    if not endless:
        after = exits_of(statement.orelse)
        ways, raises = ways | after.ways, raises + after.raises
    return Exits(ways, raises)


def _try(statement: Any) -> Exits:
    body = exits_of(statement.body)
    if "fall" in body.ways and statement.orelse:
        after = exits_of(statement.orelse)
        body = Exits((body.ways - {"fall"}) | after.ways, body.raises + after.raises)
    if body.raises and statement.handlers:  # any of them may be handled here, or not
        body = _either(body, *[exits_of(handler.body) for handler in statement.handlers])
    final = exits_of(statement.finalbody)
    if "fall" not in final.ways:
        return final
    return Exits(body.ways | (final.ways - {"fall"}), body.raises + final.raises)


# What the byte code says


def exception_table(code: Any) -> Any:
    """(first, end, handler) byte offsets of the protected ranges (3.11+: Objects/exception_handling_notes.txt)."""
    table = code.co_exceptiontable
    at = 0

    def number() -> int:
        nonlocal at
        byte = table[at]
        value: int = byte & 63
        while byte & 64:
            at += 1
            byte = table[at]
            value = value << 6 | byte & 63
        at += 1
        return value

    while at < len(table):
        start, length, target, _depth_and_lasti = number(), number(), number(), number()
        yield start * 2, (start + length) * 2, target * 2


def _block_depths(code: types.CodeType) -> dict[int, int]:
    """How many `SETUP_...` blocks are open at each instruction (3.8 to 3.10)."""
    instructions = list(dis.get_instructions(code))
    at = {instruction.offset: number for number, instruction in enumerate(instructions)}
    if not any(instruction.opname.startswith("SETUP_") for instruction in instructions):
        return {}
    depths: dict[int, int] = {}
    waiting = [(0, 0)]
    while waiting:
        offset, depth = waiting.pop()
        while offset not in depths:
            instruction = instructions[at[offset]]
            name = instruction.opname
            depths[offset] = depth
            if instruction.opcode in dis.hasjrel or instruction.opcode in dis.hasjabs:
                waiting.append((instruction.argval, depth))
            if name in ("SETUP_FINALLY", "SETUP_WITH", "SETUP_ASYNC_WITH"):
                depth += 1
            elif name == "POP_BLOCK":
                depth = max(0, depth - 1)
            elif name in ("RETURN_VALUE", "RAISE_VARARGS", "RERAISE", "JUMP_ABSOLUTE", "JUMP_FORWARD"):
                break
            if at[offset] + 1 >= len(instructions):
                break
            offset = instructions[at[offset] + 1].offset
    return depths
