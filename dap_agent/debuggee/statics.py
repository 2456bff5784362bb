"""What a name or an attribute in the source stands for, found out without running any code of the program.

A property, a `__getattr__`, a subscript or a call has an answer only if it is run: for those there is UNKNOWN.
"""

from __future__ import annotations

import ast
import types
from typing import Any

from . import interrupts, reading

UNKNOWN = reading.MISSING
"""Stands for a value that can't be known without running something."""


class Bound:
    """A Python function found through an instance or class: what a call gives it as first argument."""

    def __init__(self, function: types.FunctionType, receiver: Any) -> None:
        self.function = function
        self.receiver = receiver


class Scope:
    """Where names are looked up.

    Args:
        code: whose names they are.
        namespace: its globals.
        frame: the running frame, if there is one: then its locals are known.
        known: names and values that are known without a frame.
    """

    def __init__(
        self, code: types.CodeType, namespace: Any, frame: Any = None, known: dict[str, Any] | None = None
    ) -> None:
        self.code = code
        self.namespace = namespace
        self.frame = frame
        self.known = known or {}

    @classmethod
    def of_frame(cls, frame: Any) -> Scope:
        """The names that code in *frame* sees."""
        return cls(frame.f_code, frame.f_globals, frame)

    @classmethod
    def of_function(cls, function: types.FunctionType, receiver: Any = UNKNOWN) -> Scope:
        """The names that *function* would see if it were called; of its arguments only *receiver*, the first."""
        code = function.__code__
        known = {}
        if receiver is not UNKNOWN and code.co_argcount:
            known[code.co_varnames[0]] = receiver
        for name, cell in zip(code.co_freevars, function.__closure__ or ()):
            try:
                known[name] = cell.cell_contents
            except ValueError as error:  # not assigned yet
                interrupts.pass_on(error)
                known[name] = UNKNOWN
        return cls(code, function.__globals__, known=known)

    def look_up(self, name: str) -> Any:
        """The value of a name, or UNKNOWN."""
        code = self.code
        if name in self.known:
            return self.known[name]
        local = name in code.co_varnames or name in code.co_cellvars or name in code.co_freevars
        if local or not code.co_flags & 2:  # CO_NEWLOCALS (inspect): a module's or class's names are all in its dict
            if self.frame is not None:
                found = _entry(self.frame.f_locals, name)
                if found is not UNKNOWN or local:
                    return found
            elif local:
                return UNKNOWN
        found = _entry(self.namespace, name)
        if found is UNKNOWN:
            builtin = self.frame.f_builtins if self.frame is not None else _entry(self.namespace, "__builtins__")
            if isinstance(builtin, types.ModuleType):
                builtin = reading.module_dict(builtin)
            found = _entry(builtin, name)
        return found


def _entry(namespace: Any, name: str) -> Any:
    # by hash, for speed at every raise: of all keys only a str subclass with this very hash could answer with an __eq__
    kind = type(namespace)
    if kind is dict:
        return namespace.get(name, UNKNOWN)
    if issubclass(kind, dict):
        return dict.get(namespace, name, UNKNOWN)
    if kind.__name__ == "FrameLocalsProxy":  # 3.13+, a C type: reads the frame
        try:
            return namespace[name]
        except KeyError as error:
            interrupts.pass_on(error)
            return UNKNOWN
    return UNKNOWN


def value_of(node: ast.AST, scope: Scope) -> Any:
    """The value of an expression made of names, attributes and tuples; UNKNOWN for all else."""
    if isinstance(node, ast.Name):
        return scope.look_up(node.id)
    if isinstance(node, ast.Attribute):
        base = value_of(node.value, scope)
        return UNKNOWN if base is UNKNOWN else attribute(base, node.attr)
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Tuple):
        found: list[Any] = []
        for element in node.elts:
            spread = isinstance(element, ast.Starred)
            value = value_of(element.value if isinstance(element, ast.Starred) else element, scope)
            if value is UNKNOWN or (spread and type(value) is not tuple):
                return UNKNOWN
            found.extend(value if spread else [value])
        return tuple(found)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = value_of(node.left, scope), value_of(node.right, scope)
        if type(left) is tuple and type(right) is tuple:
            return left + right
    if isinstance(node, ast.NamedExpr):
        return value_of(node.value, scope)
    return UNKNOWN


def attribute(value: Any, name: str) -> Any:
    """An attribute as it is stored; functions found through an instance come as `Bound`."""
    kind = type(value)
    if issubclass(kind, types.ModuleType):
        return _entry(reading.module_dict(value), name)
    if kind is Bound:
        return UNKNOWN
    if issubclass(kind, type):
        return _plain(reading.class_attribute(value, name), value, through_class=True)
    if kind is types.FunctionType:
        return _entry(value.__dict__, name)
    if reading.class_attribute(kind, "__getattribute__") is not object.__getattribute__:
        return UNKNOWN
    if name == "__class__":
        return kind
    held = reading.own(value, name)
    found = reading.class_attribute(kind, name)
    if held is not UNKNOWN and not isinstance(found, property):
        return held
    if type(found) is reading.MEMBER:
        return reading.read(value, name)
    return _plain(found, value, through_class=False)


def _plain(found: Any, owner: Any, through_class: bool) -> Any:
    kind = type(found)
    if kind is types.FunctionType:
        return found if through_class else Bound(found, owner)
    if issubclass(kind, staticmethod):
        return staticmethod.__dict__["__func__"].__get__(found)
    if issubclass(kind, classmethod):
        function = classmethod.__dict__["__func__"].__get__(found)
        cls = owner if through_class else type(owner)
        return Bound(function, cls) if type(function) is types.FunctionType else UNKNOWN
    if found is UNKNOWN or issubclass(kind, type):
        return found
    if reading.class_attribute(kind, "__get__") is not UNKNOWN and not isinstance(found, types.BuiltinFunctionType):
        c_method = kind in (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType)
        return found if c_method else UNKNOWN  # a descriptor: its answer depends on its code
    return found


def exception_types(value: Any) -> tuple[type, ...] | None:
    """What an `except` with this value catches; None if the value is not known, or not all classes."""
    if type(value) is not tuple:
        return (value,) if issubclass(type(value), type) else None
    found: list[type] = []
    for element in value:
        types_inside = exception_types(element)
        if types_inside is None:
            return None
        found.extend(types_inside)
    return tuple(found)


def method(node: ast.AST, scope: Scope) -> Any:
    """Like `value_of`, for what is called: bound methods are taken apart, `Class(...).method` is found."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call):
        cls = value_of(node.value.func, scope)
        if not issubclass(type(cls), type):
            return UNKNOWN
        found = _plain(reading.class_attribute(cls, node.attr), cls, through_class=True)
        return Bound(found, UNKNOWN) if type(found) is types.FunctionType else found
    value = value_of(node, scope)
    if type(value) is types.MethodType and type(value.__func__) is types.FunctionType:
        return Bound(value.__func__, value.__self__)
    return value
