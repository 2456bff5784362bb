"""A function that exists gets another code object: everything that refers to it, wherever it is, calls the new one."""

from __future__ import annotations

import ast
import ctypes
import types
from typing import Any, Callable, Dict, List, Optional

from . import clib, reading
from .codes import Definition, dump
from .live import cell_value

Find = Callable[[str], Any]
"""The value of a name of the surrounding function, MISSING if it is not known."""


class Impossible(Exception):
    """It cannot be put in; the message is the rest of a sentence that begins with "not swapped:"."""


def swap(function: types.FunctionType, code: types.CodeType, find: Find) -> List[str]:
    """Give *function* the new *code*; its closure's cells stay those that it shares with others.

    Args:
        find: for variables of a surrounding function that it did not use so far.

    Returns:
        Names whose values were copied, since no cell of them is at hand.

    Raises:
        Impossible: a variable that the code uses is not known.
    """
    cells, copied = cells_for(code, dict(zip(function.__code__.co_freevars, function.__closure__ or ())), find)
    if code.co_freevars != function.__code__.co_freevars:
        set_closure = clib.python.PyFunction_SetClosure
        set_closure.argtypes, set_closure.restype = [ctypes.py_object, ctypes.py_object], ctypes.c_int
        set_closure(function, tuple(cells) if cells else None)
    function.__code__ = code
    return copied


def cells_for(code: types.CodeType, known: Dict[str, Any], find: Find) -> "tuple[List[Any], List[str]]":
    """The cells for the free variables of *code* in its order: the *known* ones, else new ones.

    Raises:
        Impossible: see `swap`.
    """
    cells, copied = [], []
    for name in code.co_freevars:
        cell = known.get(name)
        if cell is None:
            value = find(name)
            if value is reading.MISSING:
                raise Impossible(
                    "it uses %s of the function around it, which this one was made without; "
                    "name a frame that makes it anew" % name
                )
            cell = types.CellType(value)
            if name != "__class__":
                copied.append(name)
        cells.append(cell)
    return cells, copied


def cells_of(function: types.FunctionType) -> Dict[str, Any]:
    """Values of a function's free variables by name, empty cells left out."""
    pairs = zip(function.__code__.co_freevars, function.__closure__ or ())
    values = {name: cell_value(cell) for name, cell in pairs}
    return {name: value for name, value in values.items() if value is not reading.MISSING}


def same_defaults(old: Definition, new: Definition) -> bool:
    """Whether both definitions give the same values to parameters that a call leaves out."""
    return _defaults(old) == _defaults(new)


def _defaults(node: Definition) -> List[str]:
    arguments = node.args
    positional = [*getattr(arguments, "posonlyargs", []), *arguments.args]
    names = [each.arg for each in positional[len(positional) - len(arguments.defaults) :]]
    names += [each.arg for each in arguments.kwonlyargs]
    values = [*arguments.defaults, *arguments.kw_defaults]
    return [name + "=" + (dump(value) if value is not None else "") for name, value in zip(names, values)]


def set_defaults(function: types.FunctionType, node: Definition, namespace: Dict[str, Any], scope: Any) -> None:
    """Evaluate the default values of *node* and give them to *function*.

    Args:
        namespace: the globals.
        scope: the names of the class or function around it.

    Raises:
        Impossible: that failed.
    """

    def value(expression: Any) -> Any:
        code = compile(ast.Expression(expression), function.__code__.co_filename, "eval", 0, True)
        return eval(code, namespace, scope)

    arguments = node.args
    try:
        positional = tuple(value(each) for each in arguments.defaults)
        pairs = zip(arguments.kwonlyargs, arguments.kw_defaults)
        keywords = {each.arg: value(default) for each, default in pairs if default is not None}
    except Exception as error:  # whatever their code raises
        raise Impossible(
            "its default values can't be had: %s: %s" % (reading.type_name(type(error)), str(error)[:200])
        ) from None
    function.__defaults__ = positional or None
    function.__kwdefaults__ = keywords or None


def class_named(namespace: Dict[str, Any], qualname: str) -> Optional[type]:
    """The class with this qualified name in a module; None: there is none, or something else has its name."""
    found: Any = None
    for part in qualname.split("."):
        found = reading.lookup(namespace if found is None else reading.class_dict(found), part)
        if found is reading.MISSING or not issubclass(type(found), type):
            return None
    return found  # type: ignore[no-any-return]


def clear_cache(function: types.FunctionType, namespace: Dict[str, Any], qualname: str) -> bool:
    """Empty the `functools.lru_cache` that *function* is known by, if it has one."""
    owner, _, name = qualname.rpartition(".")
    holder: Any = class_named(namespace, owner) if owner else namespace
    if holder is None:
        return False
    held = reading.lookup(reading.class_dict(holder) if owner else holder, name)
    if type(held) in (staticmethod, classmethod):
        held = held.__func__
    if reading.module(type(held)) != "functools" or not any(each is function for each in reading.functions_of(held)):
        return False
    clear = getattr(held, "cache_clear", None)
    if clear is None:
        return False
    clear()
    return True
