"""Whether a raise is handled for sure, from the byte code alone (3.12+): no source is read, nothing is parsed.

Only the plain cases: an `except` with global names, in the raising frame or a caller's, whose body raises nothing.
Of a program's raises nearly all are of that kind. Whatever is not that plain is left to the predictor.
"""

from __future__ import annotations

import opcode
import sys
import types
from typing import Any

from . import boundaries, guards, reading, statics

_MAX_FRAMES = 8
_IMPORTING = (
    "importlib._bootstrap",
    "importlib._bootstrap_external",
    "_frozen_importlib",
    "_frozen_importlib_external",
)
_NAMES = opcode.opname
_NEWER = sys.version_info >= (3, 13)  # then a conditional jump has one cache entry (Python documentation, module dis)


class Handlers:
    """Where a code object handles exceptions."""

    def __init__(self, code: types.CodeType) -> None:
        self.code = code
        self.ranges: list[tuple[int, int, int]] = list(guards.exception_table(code))
        self.clauses: dict[int, tuple[str, Any]] = {}

    def at(self, offset: int) -> int | None:
        """The offset of the handler that protects the instruction at *offset*, if one does."""
        for start, end, target in self.ranges:
            if start <= offset < end:
                return target
        return None

    def clause(self, target: int) -> tuple[str, Any]:
        """What stands at a handler: ("except", (names of classes, whether its body is plain)), or ("other", None)."""
        found = self.clauses.get(target)
        if found is None:
            found = self.clauses[target] = _clause(self.code, target)
        return found


_handlers: dict[int, Handlers] = {}
_MAX_CODES = 20000


def handled(exc_type: type, frame: Any) -> int | None:
    """How many callers further out it is handled; None: not known.

    Args:
        exc_type: of the exception that *frame* raises.
    """
    for callers in range(_MAX_FRAMES):
        code = frame.f_code
        if boundaries.rule_for(guards.of_code(code, frame.f_globals), frame) is not None:
            return None
        known = _handlers.get(id(code))
        if known is None:
            if len(_handlers) > _MAX_CODES:
                _handlers.clear()
            known = _handlers[id(code)] = Handlers(code)
        target = known.at(frame.f_lasti)
        if target is not None:
            kind, clause = known.clause(target)
            if kind == "except":
                classes = _classes(clause[0], frame)
                if classes is not None and clause[1] and _matches(exc_type, classes):
                    return callers
            if not _passes_through(frame):
                return None
        frame = frame.f_back
        if frame is None:
            return None
    return None


def _passes_through(frame: Any) -> bool:
    """Whether it is the import system: its `with` and `finally` let everything pass."""
    return reading.text_of(frame.f_globals.get("__name__")) in _IMPORTING and frame.f_code.co_name != "_handle_fromlist"


def _matches(exc_type: type, classes: tuple[type, ...]) -> bool:
    return any(base is cls for base in reading.mro(exc_type) for cls in classes)


def _classes(names: tuple[tuple[str, ...], ...], frame: Any) -> tuple[type, ...] | None:
    scope = statics.Scope.of_frame(frame)
    found: list[type] = []
    for name, *attributes in names:
        value = scope.look_up(name)
        for attribute in attributes:
            if value is statics.UNKNOWN:
                return None
            value = statics.attribute(value, attribute)
        classes = statics.exception_types(value)
        if classes is None:
            return None
        found += classes
    return tuple(found)


def _instructions(code: types.CodeType, offset: int) -> Any:
    """(name, argument, offset after it) of each instruction from *offset* on."""
    text = code.co_code
    extended = 0
    while offset < len(text):
        name, argument = _NAMES[text[offset]], text[offset + 1] | extended
        offset += 2
        if name == "EXTENDED_ARG":
            extended = argument << 8
            continue
        extended = 0
        if name != "CACHE":
            yield name, argument, offset


def _clause(code: types.CodeType, target: int) -> tuple[str, Any]:
    found = _instructions(code, target)
    if next(found)[0] != "PUSH_EXC_INFO":
        return "other", None
    stack: list[Any] = []
    for name, argument, after in found:
        if name == "LOAD_GLOBAL":
            stack.append((code.co_names[argument >> 1],))
        elif name == "LOAD_NAME":
            stack.append((code.co_names[argument],))
        elif name == "LOAD_ATTR" and stack and type(stack[-1][0]) is str and not argument & 1:
            stack.append((*stack.pop(), code.co_names[argument >> 1]))
        elif name == "BUILD_TUPLE" and len(stack) >= argument:
            stack[len(stack) - argument :] = [stack[len(stack) - argument :]]
        elif name == "CHECK_EXC_MATCH" and len(stack) == 1:
            name, argument, after = next(found)
            if name == "TO_BOOL":
                name, argument, after = next(found)
            if name != "POP_JUMP_IF_FALSE":
                return "other", None
            end = after + argument * 2 + (2 if _NEWER else 0)
            names = tuple(stack[0]) if type(stack[0]) is list else (stack[0],)
            plain = all(type(entry) is tuple for entry in names)
            return "except", (names, plain and not _raises(code, after, end))
        else:
            break
    return "other", None


def _raises(code: types.CodeType, start: int, end: int) -> bool:
    for name, _, after in _instructions(code, start):
        if after > end:
            return False
        if name == "RAISE_VARARGS":
            return True
    return False
