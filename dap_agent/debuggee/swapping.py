"""A function that exists gets another code object: everything that refers to it, wherever it is, calls the new one."""

from __future__ import annotations
import __future__

import ast
import ctypes
import sys
import types
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import clib, reading
from .codes import Definition, dump
from .ledger import Ledger
from .live import cell_value

_GENERATOR, _ITERABLE_COROUTINE = 0x20, 0x100  # CO_GENERATOR, CO_ITERABLE_COROUTINE
_HAS_DOCSTRING = 0x4000000  # CO_HAS_DOCSTRING, 3.14; before, the first constant is the docstring or None

Find = Callable[[str], Any]
"""The value of a name of the surrounding function, MISSING if it is not known."""


class Impossible(Exception):
    """It cannot be put in; the message is the rest of a sentence that begins with "not swapped:"."""


def swap(function: types.FunctionType, code: types.CodeType, find: Find, ledger: Ledger) -> List[str]:
    """Give *function* the new *code*, and its docstring; its closure's cells stay those that it shares with others.

    Args:
        find: for variables of a surrounding function that it did not use so far.
        ledger: notes what was done.

    Returns:
        Names whose values were copied, since no cell of them is at hand.

    Raises:
        Impossible: a variable that the code uses is not known.
    """
    cells, copied = cells_for(code, dict(zip(function.__code__.co_freevars, function.__closure__ or ())), find)
    code = flagged(code, function.__code__)
    before = function.__code__, function.__closure__, function.__doc__
    ledger.note(lambda: _restore(function, *before))
    if code.co_freevars != function.__code__.co_freevars:
        _set_closure(function, tuple(cells) if cells else None)
    old_doc = docstring(function.__code__)
    function.__code__ = code
    if function.__doc__ == old_doc and type(old_doc) is type(function.__doc__):  # nobody has given it another one
        function.__doc__ = docstring(code)
    return copied


def flagged(code: types.CodeType, like: types.CodeType) -> types.CodeType:
    """*code* as `types.coroutine` would have made it, if it has made *like*."""
    if not like.co_flags & ~code.co_flags & _ITERABLE_COROUTINE or not code.co_flags & _GENERATOR:
        return code
    return code.replace(co_flags=code.co_flags | _ITERABLE_COROUTINE)


def _restore(function: types.FunctionType, code: types.CodeType, closure: Any, doc: Any) -> None:
    if function.__closure__ is not closure:
        _set_closure(function, closure)
    function.__code__, function.__doc__ = code, doc


def _set_closure(function: types.FunctionType, cells: Any) -> None:
    # no bytecode runs between this and the new code: nobody sees a function whose cells do not fit
    set_closure = clib.python.PyFunction_SetClosure
    set_closure.argtypes, set_closure.restype = [ctypes.py_object, ctypes.py_object], ctypes.c_int
    set_closure(function, cells)


def docstring(code: types.CodeType) -> Optional[str]:
    """The docstring of a function with this code, as the interpreter takes it from there."""
    first = code.co_consts[0] if code.co_consts else None
    return first if type(first) is str and (sys.version_info < (3, 14) or code.co_flags & _HAS_DOCSTRING) else None


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


def same_annotations(old: Definition, new: Definition) -> bool:
    """Whether both definitions annotate their parameters and the result alike."""
    return _annotations(old) == _annotations(new)


def _annotations(node: Definition) -> List[str]:
    return [name + ":" + dump(value) for name, value in _annotated(node)]


def _annotated(node: Definition) -> List[Tuple[str, Any]]:
    """Names and annotations, in the order of `__annotations__`."""
    given = node.args
    every = [*getattr(given, "posonlyargs", []), *given.args, *([given.vararg] if given.vararg else [])]
    every += [*given.kwonlyargs, *([given.kwarg] if given.kwarg else [])]
    found = [(each.arg, each.annotation) for each in every if each.annotation is not None]
    return [*found, ("return", node.returns)] if node.returns is not None else found


def _evaluate(function: types.FunctionType, expression: Any, namespace: Dict[str, Any], scope: Any) -> Any:
    code = compile(ast.Expression(expression), function.__code__.co_filename, "eval", 0, True)
    return eval(code, namespace, scope)


def set_defaults(
    function: types.FunctionType, node: Definition, namespace: Dict[str, Any], scope: Any, ledger: Ledger
) -> None:
    """Evaluate the default values of *node* and give them to *function*.

    Args:
        namespace: the globals.
        scope: the names of the class or function around it.
        ledger: notes what was done.

    Raises:
        Impossible: that failed.
    """
    arguments = node.args
    try:
        positional = tuple(_evaluate(function, each, namespace, scope) for each in arguments.defaults)
        pairs = zip(arguments.kwonlyargs, arguments.kw_defaults)
        keywords = {
            each.arg: _evaluate(function, default, namespace, scope) for each, default in pairs if default is not None
        }
    except Exception as error:  # whatever their code raises
        raise Impossible("its default values can't be had: " + _told(error)) from None
    before = function.__defaults__, function.__kwdefaults__
    ledger.note(lambda: _restore_defaults(function, *before))
    function.__defaults__ = positional or None
    function.__kwdefaults__ = keywords or None


def _restore_defaults(function: Any, positional: Any, keywords: Any) -> None:
    function.__defaults__, function.__kwdefaults__ = positional, keywords


def set_annotations(
    function: types.FunctionType, node: Definition, namespace: Dict[str, Any], scope: Any, ledger: Ledger
) -> None:
    """Evaluate the annotations of *node* and give them to *function*; as texts if its module asks for that.

    Args, raises:
        As `set_defaults`.
    """
    texts = bool(function.__code__.co_flags & __future__.annotations.compiler_flag)
    try:
        found = {
            name: _text(value) if texts else _evaluate(function, value, namespace, scope)
            for name, value in _annotated(node)
        }
    except Exception as error:  # whatever their code raises
        raise Impossible("its annotations can't be had: " + _told(error)) from None
    before = function.__annotations__
    ledger.note(lambda: setattr(function, "__annotations__", before))
    function.__annotations__ = found


def _text(expression: Any) -> str:
    """An annotation as `from __future__ import annotations` has it: the compiler's own words."""
    module = ast.parse("from __future__ import annotations\nx: int")
    module.body[1].annotation = expression  # type: ignore[attr-defined]
    namespace: Dict[str, Any] = {}
    exec(compile(ast.fix_missing_locations(module), "<annotation>", "exec", 0, True), namespace)
    return str(namespace["__annotations__"]["x"])


def _told(error: Exception) -> str:
    return "%s: %s" % (reading.type_name(type(error)), str(error)[:200])


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
