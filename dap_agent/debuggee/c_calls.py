"""C code between two frames: it has no frame itself, and may swallow what comes out of the Python code that it calls.

The standard library's C code is known to pass exceptions on but for what boundaries.py tells. Of any other it can't be
known. Code that C code runs by itself - finalizers, callbacks of weak references, signal handlers - is told by the
instruction that it interrupts.
"""

from __future__ import annotations

import ast
import functools
import sys
import types
import weakref
from typing import Any

from . import reading
from .statics import UNKNOWN, Bound, Scope, method

_C_METHODS = (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType)
_PYTHON = (types.FunctionType, types.MethodType, types.CodeType)
_QUIET = ("RESUME", "JUMP", "POP_TOP", "STORE_FAST", "DELETE_FAST", "RETURN_", "END_FOR", "LOAD_CONST", "LOAD_FAST")
"""Instructions that call nothing: whatever runs in them was not called by the program."""

_SUSPENDABLE = 0x20 | 0x80 | 0x100 | 0x200  # CO_GENERATOR and its like (inspect)
_DISPLAYS = (
    ast.Constant,
    ast.JoinedStr,
    ast.Dict,
    ast.List,
    ast.Set,
    ast.Tuple,
    ast.DictComp,
    ast.ListComp,
    ast.SetComp,
)

_QUEER = ("bytes", "readline", "sqlite3", "_sqlite3", "ctypes", "_ctypes", "gc")
"""Modules, and a class, of the standard library whose C code does swallow exceptions of what it calls."""


def doubt(frame: Any, inner: Any, operation: str, calls: list[ast.Call], exact: bool) -> str | None:
    """Why it can't be known whether *frame* gets what comes out of *inner*; None if it does get it.

    Args:
        operation: the name of the instruction that *frame* stands at.
        calls: the calls in the source that this instruction may be.
        exact: whether it is one of them for sure.
    """
    if _by_itself(inner):
        return "a callback of a weak reference or of the garbage collector"
    if inner.f_code.co_flags & _SUSPENDABLE and not operation.startswith("CALL"):
        return None  # it awaits or iterates
    if operation.startswith(_QUIET):
        return "code that the interpreter runs by itself"
    if not calls or not operation.startswith(("CALL", "PRECALL", "KW_NAMES")):
        return None
    if _known(reading.text_of(frame.f_globals.get("__name__")) or "?"):
        return None  # the standard library calls Python, or its own C code
    scope = Scope.of_frame(frame)
    reasons = [_through(call, inner, scope) for call in calls]
    if not exact:
        named = [reason for call, reason in zip(calls, reasons) if _name(call) == inner.f_code.co_name]
        reasons = named or reasons
    return next((reason for reason in reasons if reason is not None), None)


def _by_itself(inner: Any) -> bool:
    code = inner.f_code
    if code.co_argcount and code.co_argcount <= 2:
        first = Scope.of_frame(inner).look_up(code.co_varnames[code.co_argcount - 1])
        if issubclass(type(first), weakref.ref):
            return True
    gc = reading.loaded_module("gc")
    callbacks = reading.lookup(gc, "callbacks") if gc is not None else None
    if type(callbacks) is list:
        return any(getattr(entry, "__code__", None) is code for entry in callbacks if type(entry) is types.FunctionType)
    return False


def _through(call: ast.Call, inner: Any, scope: Scope) -> str | None:
    """The doubt that one call raises, if it is this one."""
    called = method(call.func, scope)
    if called is UNKNOWN:
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, _DISPLAYS):
            return None
        if isinstance(call.func, ast.Call):  # what a Python function returns to be called is one, too
            maker = method(call.func.func, scope)
            if type(maker) is Bound or type(maker) in _PYTHON:
                return None
        return None if _plausible(_name(call), inner) else "what is called can't be known"
    if type(called) is Bound or type(called) in _PYTHON:
        return None
    if issubclass(type(called), type):
        return _of_class(called)
    owner: Any = type(called)
    if issubclass(owner, (functools.partial, staticmethod, classmethod)):
        return None
    if owner in (types.BuiltinFunctionType, types.MethodWrapperType):
        bound = getattr(called, "__self__", None)
        if bound is not None and not isinstance(bound, types.ModuleType):
            return _of_class(bound if isinstance(bound, type) else type(bound))
        return None if _known(reading.text_of(getattr(called, "__module__", None)) or "builtins") else _said(called)
    if owner in _C_METHODS:
        return _of_class(called.__objclass__)
    return _of_class(owner)


def _name(call: ast.Call) -> str | None:
    found: str | None = getattr(call.func, "attr", getattr(call.func, "id", None))
    return found


def _plausible(name: str | None, inner: Any) -> bool:
    """Whether what is called by this name is *inner* itself, as far as the names tell."""
    own = inner.f_code.co_name
    return name == own or own in ("__init__", "__new__", "__call__", "__getattr__", "__getattribute__", "__get__")


def _of_class(cls: Any) -> str | None:
    """A class written in C, of a package, calls its methods, or what it is given, in its own way."""
    for base in reading.mro(cls):
        module = reading.module(base) or ""
        if base is object or _known(module):
            continue
        attributes = reading.class_dict(base)
        if any(type(value) in _C_METHODS for value in list(attributes.values())):
            return "C code of %s" % module
    return "C code of %s" % reading.qualname(cls) if reading.qualname(cls) in _QUEER else None


def _known(module: str) -> bool:
    top = module.partition(".")[0]
    return top in _LIBRARY and top not in _QUEER


def _said(called: Any) -> str:
    return "C code: %s" % getattr(called, "__name__", "a function")


_LIBRARY = frozenset(
    getattr(sys, "stdlib_module_names", ())
    or [*sys.builtin_module_names, "_asyncio", "_bisect", "_contextvars", "_csv", "_datetime", "_decimal", "_heapq",
        "_json", "_pickle", "_queue", "_random", "_socket", "_ssl", "_struct", "_elementtree", "array", "math",
        "select", "zlib", "_bz2", "_lzma", "pyexpat", "itertools", "functools", "operator", "collections", "asyncio",
        "datetime", "decimal", "json", "pickle", "random", "re", "threading", "contextvars", "csv", "enum", "typing",
        "abc", "types", "queue", "heapq", "bisect", "struct", "socket", "ssl", "io", "os", "copy", "contextlib"]
)  # fmt: skip
"""Top-level names of the standard library; sys tells them from 3.10 on."""
