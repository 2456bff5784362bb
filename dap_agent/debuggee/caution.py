"""Which statements of a changed module may run in a process that goes on: what it has made of itself is not lost.

A statement is run if all that it does is to give a name its value, and nothing else can come of it: no call of what
may have effects, no value that the program itself has put there since.
"""

from __future__ import annotations

import ast
import builtins
import types
from typing import Any, Callable, Dict, List, Optional, Set

from . import reading, statements
from .swapping import Impossible

_BUILTINS = {"abs", "all", "any", "ascii", "bin", "bool", "bytearray", "bytes", "chr", "complex", "dict", "divmod",
             "enumerate", "filter", "float", "format", "frozenset", "hash", "hex", "int", "isinstance", "issubclass",
             "len", "list", "map", "max", "min", "object", "oct", "ord", "pow", "property", "range", "repr", "reversed",
             "round", "set", "slice", "sorted", "str", "sum", "super", "tuple", "type", "zip"}  # fmt: skip
_MODULES = {"re", "datetime", "_pydatetime", "decimal", "_decimal", "_pydecimal", "fractions", "collections",
            "_collections", "typing", "typing_extensions", "pathlib", "pathlib._local", "functools", "_functools",
            "operator", "_operator", "types", "dataclasses", "string", "struct", "_struct", "uuid", "math", "cmath",
            "itertools", "posixpath", "ntpath", "textwrap", "zoneinfo", "ipaddress", "statistics", "abc", "enum",
            "numbers"}  # fmt: skip
_FUNCTIONS = {("logging", "getLogger"), ("os", "getenv"), ("os", "fspath"), ("json", "loads"), ("copy", "deepcopy")}
_VALUES = (str, bytes, tuple, frozenset, int, float, complex)
_READING = {"get", "items", "keys", "values", "copy"}
_CALLING = {"map": 0, "filter": 0, "reduce": 0, "starmap": 0, "takewhile": 0, "dropwhile": 0, "filterfalse": 0,
            "call": 0, "accumulate": 1, "groupby": 1, "sub": 1, "subn": 1}  # fmt: skip
"""Of those without effects the ones that call a function which they are given: which argument it is."""
_CALLED = ("key", "func", "repl")  # keywords for such functions
_ACTING = {"chmod", "copy", "copy_into", "hardlink_to", "lchmod", "link_to", "mkdir", "move", "move_into", "open",
           "rename", "replace", "rmdir", "symlink_to", "touch", "unlink", "write_bytes", "write_text"}  # fmt: skip
"""Methods of paths."""


class Binding:
    """A statement of the new text that gives a value to names that may have one.

    Args:
        old: the statement that gave the same names values in the old text; None: there was none.
        new: the new one.
        before: the value of a name now, MISSING if it has none.
        rebound: names to which functions of the program give values.
    """

    def __init__(self, old: Any, new: Any, before: Callable[[str], Any], rebound: Set[str]) -> None:
        self._old = old
        self._new = new
        self._before = before
        self._rebound = rebound

    def check(self, names: List[str], resolve: Callable[[str], Any]) -> None:
        """Whether it may run.

        Args:
            names: that it binds.
            resolve: the value of any name that it may use, MISSING if there is none.

        Raises:
            Impossible: it may not.
        """
        had = [name for name in names if self._before(name) is not reading.MISSING]
        if not had:
            return  # nothing is lost, and the new code needs it
        value = getattr(self._new, "value", None)
        effect = effect_of(value, resolve) if value is not None else ""
        if effect:
            raise Impossible("its value comes of %s, which may have effects; it is not run again" % effect)
        old = _literal(self._old)
        for name in had:
            now = self._before(name)
            if len(names) == 1 and old is not reading.MISSING:
                if not same_value(now, old):
                    raise Impossible("the program itself has changed its value since, which it keeps")
            elif name in self._rebound:
                raise Impossible("the program itself gives it other values, and keeps the one it has")


def _literal(statement: Any) -> Any:
    value = getattr(statement, "value", None)
    if value is None:
        return reading.MISSING
    try:
        return ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return reading.MISSING


def same_value(one: Any, other: Any) -> bool:
    """Whether two values are the same, if they are of the builtin types that a literal has; runs no user code."""
    if type(one) is not type(other):
        return False
    kind = type(one)
    if kind in (list, tuple):
        return len(one) == len(other) and all(map(same_value, one, other))
    if kind is dict:
        return len(one) == len(other) and all(
            same_value(a, b) and same_value(one_value, other_value)
            for (a, one_value), (b, other_value) in zip(one.items(), other.items())
        )
    if kind in (set, frozenset):
        return len(one) == len(other) and all(any(same_value(a, b) for b in other) for a in one)
    if kind in (int, float, complex, str, bytes, bool, type(None), type(Ellipsis)):
        return bool(one == other) and repr(one) == repr(other)
    return False


def rebound_in(codes: List[types.CodeType]) -> Set[str]:
    """Names of the module that its functions give values to (`global x; x = ...`)."""
    import dis

    found: Set[str] = set()
    for code in codes:
        found.update(
            each.argval for each in dis.get_instructions(code) if each.opname in ("STORE_GLOBAL", "DELETE_GLOBAL")
        )
    return found


def effect_of(expression: Any, resolve: Callable[[str], Any]) -> str:
    """What in an expression may have an effect, as a word for a sentence; empty: nothing of it."""
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
            return "an await, a yield or a walrus"
        if isinstance(node, ast.Call):
            if not _is_pure(node.func, resolve):
                return "calling %s" % _written(node.func)
            for given in _called_by(node, resolve):
                if isinstance(given, ast.Lambda):
                    waiting.append(given.body)
                elif isinstance(given, (ast.Name, ast.Attribute)) and not _is_pure(given, resolve):
                    return "calling %s" % _written(given)
        waiting += [each for each in ast.iter_child_nodes(node) if not isinstance(node, ast.Lambda)]
    return ""


def _called_by(call: Any, resolve: Callable[[str], Any]) -> List[Any]:
    """The arguments of a call that it calls in its turn."""
    given = [each.value for each in call.keywords if each.arg in _CALLED]
    named = _value(call.func, resolve)
    place = _CALLING.get(getattr(named, "__name__", ""), len(call.args))
    if named is reading.MISSING and getattr(call.func, "attr", "") in ("sub", "subn"):  # of a pattern
        place = 0
    given += call.args[place : place + 1]
    found = [(each, _value(each, resolve)) for each in given]
    return [each for each, value in found if value is reading.MISSING or callable(value)]


def _written(node: Any) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return "%s.%s" % (_written(node.value), node.attr)
    return "something"


def _value(node: Any, resolve: Callable[[str], Any]) -> Any:
    """What a name or an attribute of a module or class is, found without running code."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return ""
    if isinstance(node, ast.Name):
        found = resolve(node.id)
        return getattr(builtins, node.id, reading.MISSING) if found is reading.MISSING else found
    if isinstance(node, ast.Attribute):
        owner = _value(node.value, resolve)
        if issubclass(type(owner), types.ModuleType):
            return reading.lookup(reading.module_dict(owner), node.attr)
    return reading.MISSING


def _is_pure(called: Any, resolve: Callable[[str], Any]) -> bool:
    found = _value(called, resolve)
    if found is reading.MISSING:
        if not isinstance(called, ast.Attribute):
            return False
        owner = _value(called.value, resolve)
        if owner is reading.MISSING:  # a method of what a call without effects gives: `" ".join(x).strip()`
            made = called.value
            return isinstance(made, ast.Call) and _is_pure(made.func, resolve) and not _acts(called, resolve)
        if type(owner) in _VALUES or (type(owner) is dict and called.attr in _READING):
            return True
        if issubclass(type(owner), type):
            return reading.module(owner) in _MODULES or owner in (dict, str, bytes, int, float)
        return reading.module(type(owner)) == "os" and called.attr == "get"
    if issubclass(type(found), type):
        if reading.module(found) == "builtins":
            return found.__name__ in _BUILTINS
        return reading.module(found) in _MODULES or _is_record(found)
    module, name = getattr(found, "__module__", None), getattr(found, "__name__", None)
    if type(found) not in (types.FunctionType, types.BuiltinFunctionType):
        return False
    if module == "builtins":
        return name in _BUILTINS
    return module in _MODULES or (module, name) in _FUNCTIONS


def _acts(method: Any, resolve: Callable[[str], Any]) -> bool:
    """Whether a method of what a chain of calls gives may have effects: the user's own may, and some of paths do."""
    made = method.value
    while isinstance(made.func, ast.Attribute) and isinstance(made.func.value, ast.Call):
        made = made.func.value
    found = _value(made.func, resolve)
    module = reading.module(found) if issubclass(type(found), type) else getattr(found, "__module__", "")
    if module == "logging":
        return bool(method.attr != "getChild")
    if found is not reading.MISSING and module not in _MODULES and module not in ("builtins", "json", "os", "copy"):
        return True
    return method.attr in _ACTING and str(module).startswith("pathlib")


def _is_record(cls: type) -> bool:
    """A class of the user's that only keeps what it is given: a dataclass or a named tuple."""
    own = reading.class_dict(cls)
    if "_fields" in own:
        return issubclass(cls, tuple)
    return "__dataclass_fields__" in own and not any(
        "__post_init__" in reading.class_dict(each) for each in reading.mro(cls)
    )


def in_class(cls: type, statement: Any, slots: bool = True) -> None:
    """Whether giving a class what *statement* binds does what the statement would have done in its body.

    Raises:
        Impossible: it does not.
    """
    if statements.is_function(statement):
        return
    if "__slots__" in (statements.names_of(statement) or []):
        raise Impossible("the slots of a class are made with it")
    meta: type = type(cls)
    if any(
        reading.module(each) == "enum" and reading.qualname(each) in ("EnumMeta", "EnumType")
        for each in reading.mro(meta)
    ):
        raise Impossible("the members of an Enum are made with its class")
    if issubclass(cls, tuple) and "_fields" in reading.class_dict(cls):
        raise Impossible("the fields of a named tuple are made with its class")
    plain = isinstance(statement, ast.Assign) and _literal(statement) is not reading.MISSING
    if meta is not type and reading.module(meta) not in ("abc", "_py_abc", "typing") and not plain:
        raise Impossible(
            "the class's metaclass, %s, sees what its body binds only while it is made" % reading.type_name(meta)
        )


def resolver(*scopes: Optional[Dict[str, Any]]) -> Callable[[str], Any]:
    """Looks a name up in the first of *scopes* that has it."""

    def resolve(name: str) -> Any:
        for scope in scopes:
            found = reading.lookup(scope, name) if scope is not None else reading.MISSING
            if found is not reading.MISSING:
                return found
        return reading.MISSING

    return resolve
