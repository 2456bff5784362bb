"""Looking at objects without running any code of theirs.

`type(x)`, the descriptors of `type` itself and the unbound methods of the built-in types reach an object's data,
whatever its class overrides. Never used on a foreign object: attribute access, `isinstance`, `==`, `hash`, `len`,
iteration, `repr`, `str` (a metaclass, `__class__` or `__getattribute__` could answer).
"""

from __future__ import annotations

import time
import types
from typing import Any, Iterator

from .interrupts import pass_on

MISSING = object()
"""Stands for "there is nothing", where None would be a value."""

_mro_of = type.__dict__["__mro__"].__get__
_dict_of = type.__dict__["__dict__"].__get__
_qualname_of = type.__dict__["__qualname__"].__get__
_module_of = type.__dict__["__module__"].__get__
_flags_of = type.__dict__["__flags__"].__get__

_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE (Include/object.h)

_module_dict_of: Any = types.ModuleType.__dict__["__dict__"].__get__  # type: ignore[index]

GETSET = types.GetSetDescriptorType
MEMBER = types.MemberDescriptorType


class Deadline:
    """A moment after which no more work shall be begun.

    Args:
        seconds: from now.
    """

    now = staticmethod(time.perf_counter)  # in a class: tools that freeze time replace module attributes

    def __init__(self, seconds: float) -> None:
        self.begin = self.now()
        self.end = self.begin + seconds

    def passed(self) -> bool:
        """Whether the time is up."""
        return self.now() >= self.end

    def left(self) -> float:
        """Seconds that are left, not below 0."""
        return max(0.0, self.end - self.now())

    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return self.now() - self.begin


def mro(cls: type) -> tuple[type, ...]:
    """The method resolution order, as the interpreter keeps it."""
    found: tuple[type, ...] = _mro_of(cls)
    return found


def class_dict(cls: type) -> Any:
    """The class's own attributes: a mapping proxy over an exact dict."""
    return _dict_of(cls)


def is_heap_type(cls: type) -> bool:
    """Whether *cls* was made at run time: by a class statement, or by C code in the same way."""
    return bool(_flags_of(cls) & _HEAP_TYPE)


def text_of(value: Any) -> str | None:
    """*value* as an exact str if it is one or of a subclass, else None."""
    if type(value) is str:
        return value
    if issubclass(type(value), str):
        return str.__str__(value)
    return None


def qualname(cls: type) -> str:
    """`Outer.Inner`."""
    return text_of(_qualname_of(cls)) or "?"


def module(cls: type) -> str | None:
    """The name of the module that made *cls*; None where the class says none."""
    try:
        return text_of(_module_of(cls))
    except AttributeError as error:
        pass_on(error)
        return None


def type_name(cls: type) -> str:
    """The name as tracebacks print it: without the module for builtins and `__main__`."""
    where = module(cls)
    name = qualname(cls)
    return name if where in (None, "builtins", "__main__") else "%s.%s" % (where, name)


def lookup(namespace: Any, name: str) -> Any:
    """The value of the str key *name* in an exact dict or mapping proxy, or MISSING.

    Goes over the keys: a hash lookup could meet a key of a str subclass with an `__eq__` of its own.
    """
    for _ in range(3):
        try:
            for key in namespace:
                if type(key) is str and key == name:
                    return namespace[key]
            return MISSING
        except (RuntimeError, KeyError) as error:  # another thread is changing it
            pass_on(error)
            continue
    return MISSING


def class_attribute(cls: type, name: str) -> Any:
    """The first attribute of that name along the MRO as it is stored (a descriptor is not asked), or MISSING."""
    for base in mro(cls):
        found = lookup(class_dict(base), name)
        if found is not MISSING:
            return found
    return MISSING


_getters: dict[int, tuple[type, Any]] = {}  # by id: hashing a class could run its metaclass


def forget() -> None:
    """Drop what was remembered of classes, so that none is kept alive."""
    _getters.clear()


def _dict_getter(cls: type) -> Any:
    known = _getters.get(id(cls))
    if known is None:
        getter = None if issubclass(cls, type) else class_attribute(cls, "__dict__")
        if type(getter) is not GETSET and type(getter) is not MEMBER:
            getter = None  # none, or a property of that name: asking it would run it
        known = _getters[id(cls)] = (cls, getter)
    return known[1]


def instance_dict(value: Any) -> dict[Any, Any] | None:
    """The dict that holds the instance's attributes, or None."""
    cls = type(value)
    getter = _dict_getter(cls)
    if getter is None:
        return None
    try:
        found = getter.__get__(value, cls)
    except (AttributeError, TypeError) as error:
        pass_on(error)
        return None
    return found if issubclass(type(found), dict) else None


def slot_names(cls: type) -> list[tuple[str, Any]]:
    """Name and descriptor of the `__slots__` of *cls* and its bases, base classes first."""
    found: dict[str, Any] = {}
    for base in reversed(mro(cls)):
        if is_heap_type(base):
            for name, descriptor in class_dict(base).items():
                if type(descriptor) is MEMBER and type(name) is str and name not in ("__dict__", "__weakref__"):
                    found[name] = descriptor
    return list(found.items())


def read(value: Any, name: str) -> Any:
    """An attribute stored in the instance: its dict, its slots or a C structure; else MISSING.

    Getters written in C are asked, Python ones are not.
    """
    cls = type(value)
    found = class_attribute(cls, name)
    if type(found) is MEMBER or type(found) is GETSET:
        try:
            return found.__get__(value, cls)
        except Exception as error:  # an unset slot, or whatever the C getter complains of
            pass_on(error)
            return MISSING
    return own(value, name)


def own(value: Any, name: str) -> Any:
    """An entry of the instance's dict, or MISSING."""
    attributes = instance_dict(value)
    return MISSING if attributes is None else lookup_any(attributes, name)


def lookup_any(mapping: dict[Any, Any], name: str) -> Any:
    """Like `lookup`, for a dict of any subclass."""
    for key, item in entries(mapping, None):
        if type(key) is str and key == name:
            return item
    return MISSING


def entries(mapping: dict[Any, Any], limit: int | None, start: int = 0) -> list[tuple[Any, Any]]:
    """Up to *limit* items of a dict of any subclass, from the *start*-th on; copes with threads that change it."""
    from itertools import islice

    found: list[tuple[Any, Any]] = []
    for _ in range(3):
        found = []
        try:
            for pair in islice(dict.items(mapping), start, None if limit is None else start + limit):
                found.append(pair)
            return found
        except RuntimeError as error:  # changed size during iteration
            pass_on(error)
            continue
    return found


def elements(collection: Any, limit: int, start: int = 0) -> list[Any]:
    """Up to *limit* elements of a set or frozenset of any subclass, from the *start*-th on."""
    from itertools import islice

    base = set if issubclass(type(collection), set) else frozenset
    found: list[Any] = []
    for _ in range(3):
        found = []
        try:
            for item in islice(base.__iter__(collection), start, start + limit):
                found.append(item)
            return found
        except RuntimeError as error:  # changed size during iteration
            pass_on(error)
            continue
    return found


def attributes(value: Any, limit: int) -> list[tuple[str, Any]]:
    """Names and values that the instance itself holds: dict entries with str keys, then slots."""
    found: list[tuple[str, Any]] = []
    held = instance_dict(value)
    if held is not None:
        for key, item in entries(held, limit):
            name = text_of(key)
            if name is not None:
                found.append((name, item))
    cls = type(value)
    for name, descriptor in slot_names(cls):
        if len(found) >= limit:
            break
        try:
            found.append((name, descriptor.__get__(value, cls)))
        except AttributeError as error:
            pass_on(error)
            continue  # an unset slot
    return found


def module_dict(value: Any) -> dict[str, Any]:
    """The namespace of a module of any subclass (lazy modules would import on attribute access)."""
    namespace: dict[str, Any] = _module_dict_of(value)
    return namespace


def loaded_module(name: str) -> Any:
    """The namespace of an imported module, or None: nothing is imported for our sake."""
    import sys

    found = sys.modules.get(name)
    return module_dict(found) if found is not None and issubclass(type(found), types.ModuleType) else None


def functions_of(value: Any) -> Iterator[types.FunctionType]:
    """The plain functions in a class attribute: wrapped in a descriptor of the builtins, or by `functools.wraps`."""
    waiting, seen = [value], 0
    while waiting and seen < 20:
        item = waiting.pop()
        seen += 1
        kind = type(item)
        if kind is types.FunctionType:
            yield item
            wrapped = lookup(item.__dict__, "__wrapped__")
            if wrapped is not MISSING:
                waiting.append(wrapped)
        elif issubclass(kind, (staticmethod, classmethod)):
            base = staticmethod if issubclass(kind, staticmethod) else classmethod
            waiting.append(base.__dict__["__func__"].__get__(item))
        elif issubclass(kind, property):
            waiting.extend(property.__dict__[part].__get__(item) for part in ("fdel", "fset", "fget"))
        elif is_heap_type(kind) or module(kind) == "functools":
            for name in ("func", "__wrapped__", "fget"):
                inner = read(item, name)
                if inner is not MISSING:
                    waiting.append(inner)


def is_definition(value: Any) -> bool:
    """Whether *value* is a function or a class, decorated or not."""
    return issubclass(type(value), type) or next(functions_of(value), None) is not None


def lookup_doc(function: types.FunctionType) -> Any:
    """The docstring of a plain function."""
    return function.__doc__
