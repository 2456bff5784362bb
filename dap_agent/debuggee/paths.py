"""Paths to values: `order.items[3].price`, `config['db'][0]`, `rows[2:5]`; followed without running code."""

from __future__ import annotations

import ast
import builtins
import functools
import types
from typing import Any

from . import arrays, kinds, reading, science, tables
from .reading import MISSING
from .secrets import is_secret_name


class NotThere(Exception):
    """A path that leads nowhere; the message says where it ends and what is there."""


GRAMMAR = "write a path like name.attribute[3]['key'] (no calls, no operators)"


def parse(path: str) -> list[tuple[str, Any]]:
    """The steps of a path: ("name", x), ("attribute", x), ("item", x) with a constant, a tuple of them or a slice.

    Raises:
        NotThere: it is not a path.
    """
    try:
        node: Any = ast.parse(path.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise NotThere("%r is not a path: %s." % (path[:200], GRAMMAR)) from None
    steps: list[tuple[str, Any]] = []
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute):
            steps.append(("attribute", node.attr))
        elif isinstance(node, ast.Subscript):
            steps.append(("item", _constant(node.slice, path)))
        else:
            raise NotThere("%r is not a path: %s." % (path[:200], GRAMMAR))
        node = node.value
    steps.append(("name", node.id))
    steps.reverse()
    return steps


def _constant(node: Any, path: str) -> Any:
    if type(node).__name__ == "Index":  # 3.8
        node = node.value
    if isinstance(node, ast.Slice):
        parts = [_constant(part, path) if part is not None else None for part in (node.lower, node.upper, node.step)]
        if any(part is not None and type(part) is not int for part in parts):
            raise NotThere("%r: a slice needs whole numbers." % path[:200])
        return slice(*parts)
    several = getattr(node, "dims", None) or (node.elts if isinstance(node, ast.Tuple) else None)  # dims: 3.8
    if several:
        return tuple(_constant(part, path) for part in several)
    try:
        return ast.literal_eval(node)
    except (ValueError, SyntaxError, TypeError):
        raise NotThere("%r: only constants can stand in [ ]; %s." % (path[:200], GRAMMAR)) from None


class Place:
    """Where a path leads.

    Args:
        value: what is there.
        name: the last name on the way (attribute, key), for masking.
        secret: whether a secret name was passed on the way.
    """

    def __init__(self, value: Any, name: str, secret: bool) -> None:
        self.value = value
        self.name = name
        self.secret = secret


def follow(path: str, local_names: dict[str, Any], global_names: Any) -> Place:
    """Follow *path* from a frame's names.

    Raises:
        NotThere: it leads nowhere.
    """
    steps = parse(path)
    name = steps[0][1]
    value = local_names.get(name, MISSING)
    if value is MISSING:
        value = reading.lookup(global_names, name)
    if value is MISSING:
        value = reading.lookup(reading.module_dict(builtins), name)
    if value is MISSING:
        there = ", ".join(sorted(local_names)[:30]) or "none"
        raise NotThere("There is no name %s in this frame; its locals are: %s." % (name, there))
    place = Place(value, name, is_secret_name(name) and kinds.can_be_secret(value))
    done = name
    for kind, key in steps[1:]:
        if kind == "attribute":
            value = attribute(place.value, key, done)
            place = Place(value, key, place.secret or (is_secret_name(key) and kinds.can_be_secret(value)))
            done += "." + key
        else:
            value = item(place.value, key, done)
            secret = type(key) is str and is_secret_name(key) and kinds.can_be_secret(value)
            place = Place(value, key if type(key) is str else "", place.secret or secret)
            done += "[%s]" % (_slice_text(key) if type(key) is slice else repr(key))
    return place


def _slice_text(key: slice) -> str:
    return ":".join("" if part is None else str(part) for part in (key.start, key.stop, key.step))


def class_of(value: Any) -> str:
    """How messages name the type of *value*."""
    return reading.type_name(type(value))


def attribute(value: Any, name: str, done: str) -> Any:
    """`value.name` as it is stored; properties and other descriptors in Python are named, not run.

    Raises:
        NotThere: there is none, or getting it would run code.
    """
    cls = type(value)
    if issubclass(cls, types.ModuleType):
        found = reading.lookup(reading.module_dict(value), name)
        if found is MISSING:
            raise NotThere("Module %s has no %s." % (done, name))
        return found
    if issubclass(cls, type):
        found = reading.class_attribute(value, name)
        return (
            _of_class(found, name, done)
            if found is not MISSING
            else _of_class(reading.class_attribute(cls, name), name, done)
        )
    stored = reading.class_attribute(cls, name)
    kind = type(stored)
    if kind is reading.MEMBER or kind is reading.GETSET:
        try:
            return stored.__get__(value, cls)
        except Exception as error:  # an unset slot, or what the C getter complains of
            raise NotThere("%s.%s has no value (%s)." % (done, name, reading.type_name(type(error)))) from None
    if stored is not MISSING and issubclass(kind, property):
        raise NotThere("%s.%s is a property: not run. %s" % (done, name, _stored_names(value)))
    names = kinds.field_names(cls) if issubclass(cls, tuple) else ()
    if name in names and len(names) == tuple.__len__(value):
        return tuple.__getitem__(value, names.index(name))
    held = reading.own(value, name)
    if held is not MISSING:
        return held
    if stored is MISSING:
        raise NotThere("%s (a %s) has no attribute %s. %s" % (done, class_of(value), name, _stored_names(value)))
    return _of_class(stored, name, done)


def _of_class(stored: Any, name: str, done: str) -> Any:
    if stored is MISSING:
        raise NotThere("%s has no attribute %s." % (done, name))
    kind = type(stored)
    if issubclass(kind, (functools.cached_property,)):
        raise NotThere("%s.%s is a cached property that has not been computed: not run." % (done, name))
    if issubclass(kind, staticmethod):
        return staticmethod.__dict__["__func__"].__get__(stored)
    if issubclass(kind, classmethod):
        return classmethod.__dict__["__func__"].__get__(stored)
    if kind is not types.FunctionType and not issubclass(kind, type) and _is_descriptor(kind):
        raise NotThere("%s.%s is a descriptor (%s): not run." % (done, name, reading.type_name(kind)))
    return stored


def _is_descriptor(kind: type) -> bool:
    getter = reading.class_attribute(kind, "__get__")
    return type(getter) is types.FunctionType


def _stored_names(value: Any) -> str:
    names = [name for name, _ in reading.attributes(value, 30)]
    return "It stores: %s." % ", ".join(names) if names else "It stores no attributes."


def item(value: Any, key: Any, done: str) -> Any:
    """`value[key]` for the built-in containers and their subclasses, plain numpy arrays and pandas columns.

    Raises:
        NotThere: no such item, or a `__getitem__` in Python would run.
    """
    cls = type(value)
    for base in (list, tuple, str, bytes, bytearray, range):
        if issubclass(cls, base):
            return _by_position(base, value, key, done)
    if issubclass(cls, dict):
        return _by_key(value, key, done)
    if cls is types.MappingProxyType:
        import gc

        inner = gc.get_referents(value)
        if len(inner) == 1 and issubclass(type(inner[0]), dict):
            return _by_key(inner[0], key, done)
    if arrays.is_array(value):
        return _of_array(value, key, done)
    columns = tables.columns_of(value) if science.writer_for(cls) is tables.put_frame else None
    if columns is not None:
        return _pandas_column(value, columns, key, done)
    if issubclass(cls, (set, frozenset)):
        raise NotThere("%s is a %s: its elements have no positions; see its children." % (done, class_of(value)))
    from . import stdlib_types

    if stdlib_types.writer_for(cls) is stdlib_types.put_deque and type(key) is int:
        try:
            return stdlib_types._call("collections", "deque", "__getitem__", value, key)
        except IndexError:
            raise NotThere("%s has no item %d." % (done, key)) from None
    raise NotThere("%s is a %s: what [ ] does there is code of the program's, not run." % (done, class_of(value)))


def _by_position(base: type, value: Any, key: Any, done: str) -> Any:
    if type(key) not in (int, slice):
        raise NotThere("%s is a %s: it needs a number or a slice in [ ], not %r." % (done, class_of(value), key))
    try:
        return base.__dict__["__getitem__"](value, key)
    except IndexError:
        length = base.__dict__["__len__"](value)
        raise NotThere("%s[%d] is out of range: it has %d items." % (done, key, length)) from None
    except ValueError as error:
        raise NotThere("%s: %s." % (done, error)) from None


def _same(candidate: Any, key: Any) -> bool:
    """Equality of a dict's key with a constant, asked of built-in types only."""
    cls = type(candidate)
    if cls is type(key):
        return bool(candidate == key) if cls is not tuple else _same_tuple(candidate, key)
    for base in (str, bytes, int, float):
        if issubclass(cls, base) and type(key) in ((int, float, bool) if base in (int, float) else (base,)):
            return base.__eq__(candidate, key) is True
    return False


def _same_tuple(candidate: tuple[Any, ...], key: tuple[Any, ...]) -> bool:
    return len(candidate) == len(key) and all(map(_same, candidate, key))


def _by_key(mapping: dict[Any, Any], key: Any, done: str) -> Any:
    items = reading.entries(mapping, None)
    for candidate, found in items:
        if _same(candidate, key):
            return found
    import difflib

    names = [candidate for candidate, _ in items[:2000] if type(candidate) is str]
    near = difflib.get_close_matches(key, names, 5) if type(key) is str else []
    known = near or names[:20]
    listed = " Its keys include %s." % ", ".join(repr(name[:60]) for name in known) if known else ""
    raise NotThere("%s has no key %r (%d items).%s" % (done, key, len(items), listed))


def _of_array(array: Any, key: Any, done: str) -> Any:
    parts = key if type(key) is tuple else (key,)
    if not all(type(part) in (int, slice) or (type(part) is str and len(parts) == 1) for part in parts):
        raise NotThere("%s is an array: it needs numbers or slices in [ ]." % done)
    try:
        return array[key]
    except (IndexError, ValueError):
        raise NotThere("%s%r does not exist: the array's shape is %s." % (done, [key], tuple(array.shape))) from None


def _pandas_column(value: Any, columns: dict[int, Any], key: Any, done: str) -> Any:
    parts = tables.manager(value)
    labels = tables.axis_values(parts[0][0]) if parts is not None else None
    for number, label in enumerate(labels or []):
        if _same(label, key) and number in columns:
            values, row = columns[number]
            inner, _ = tables.stored_array(values)
            if arrays.is_array(inner):
                return inner[row] if row is not None and inner.ndim == 2 else inner
            return values
    raise NotThere("%s has no column %r; it has %s." % (done, key, ", ".join(map(repr, (labels or [])[:30]))))
