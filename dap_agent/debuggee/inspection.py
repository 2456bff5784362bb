"""Questions about a stop: a frame in full, a value by path with its children, the members of an object."""

from __future__ import annotations

import sys
import types
from typing import Any

from . import arrays, kinds, paths, reading, snapshot, sources
from .paths import NotThere
from .reading import MISSING
from .secrets import MASK, is_secret_name
from .stop import Stop
from .values import NARROW, WIDE, Formatter, Limits

_CHILD = Limits(text=400, string=300, items=8, depth=2, nodes=100)
_MAX_COUNT = 500
_MEMBERS = 150
_PIECE = 250  # characters of a long text in one child


def frame(stop: Stop, number: int) -> dict[str, Any]:
    """Frame *number* with its source and locals, as a Frame of the snapshot schema.

    Raises:
        NotThere: there is no such frame.
    """
    inner, line = _frame(stop, number)
    picture = snapshot.Picture()
    found: dict[str, Any] = picture.clean(
        picture.frame(number, inner, line, True, Limits(text=1000, string=500, items=12))
    )
    return found


def _frame(stop: Stop, number: Any) -> tuple[types.FrameType, int]:
    if type(number) is not int or not 0 <= number < len(stop.frames):
        last = len(stop.frames) - 1
        there = "frames are 0 (innermost) to %d" % last if last >= 0 else "this stop has no frames"
        raise NotThere("There is no frame %r: %s." % (number, there))
    return stop.frames[number]


def variable(stop: Stop, number: int, path: str, start: int = 0, count: int = 50) -> dict[str, Any]:
    """The value at *path* in frame *number*, and its children from *start* on.

    Returns:
        `path`, `value` (a Value), `children` (`name`, `path` (None: it can't be written as one), `value`), `start`,
        `total` (children in all).

    Raises:
        NotThere: no such frame or path.
    """
    inner, _ = _frame(stop, number)
    picture = snapshot.Picture()
    formatter = picture.formatter
    place = paths.follow(path, snapshot.locals_of(inner), inner.f_globals)
    start, count = max(0, start), max(1, min(count, _MAX_COUNT))
    if place.secret:
        value = dict(formatter.value(place.value, None, NARROW), text=MASK, masked=True)
        for key in ("length", "summary", "truncated"):
            value.pop(key, None)
        return {"path": path, "value": value, "children": [], "start": start, "total": 0}
    value = formatter.value(place.value, place.name, WIDE)
    children, total = _children(place.value, path, start, count, formatter)
    found: dict[str, Any] = picture.clean(
        {"path": path, "value": value, "children": children, "start": start, "total": total}
    )
    return found


def _children(value: Any, path: str, start: int, count: int, formatter: Formatter) -> tuple[list[dict[str, Any]], int]:
    """A page of children: (name, path, value) of items, then of attributes."""
    pairs, total = children_of(value, start, count)
    found: list[dict[str, Any]] = []
    hide_next = False
    for name, step, item, key in pairs:
        secret = key if type(key) is str else ("password" if hide_next else None)
        told = item.told(formatter) if type(item) is _Piece else formatter.value(item, secret, _CHILD)
        named = kinds.name_of(item)
        hide_next = (
            type(key) is int
            and named is not None
            and ((total == 2 and key == 0) or named.startswith("-"))
            and is_secret_name(named)
        )
        found.append(
            {"name": formatter.secrets.mask(name), "path": path + step if step is not None else None, "value": told}
        )
    return found, total


def children_of(value: Any, start: int, count: int) -> tuple[list[tuple[str, str | None, Any, Any]], int]:
    """(name, step of a path or None, child, key) of the children *start* to *start + count*, and how many there are."""
    cls = type(value)
    found: list[tuple[str, str | None, Any, Any]] = []
    for base in (list, tuple):
        if issubclass(cls, base):
            total = base.__dict__["__len__"](value)
            names = kinds.field_names(cls) if base is tuple and cls is not tuple else ()
            for i, item in enumerate(base.__dict__["__getitem__"](value, slice(start, start + count)), start):
                named = names[i] if len(names) == total else None
                found.append((named or "[%d]" % i, "[%d]" % i, item, named if named else i))
            return found, total
    if issubclass(cls, (str, bytes, bytearray)):
        return _text_pages(value, start, count)
    if issubclass(cls, dict):
        return _dict_children(value, start, count)
    if issubclass(cls, (set, frozenset)):
        size = set.__len__(value) if issubclass(cls, set) else frozenset.__len__(value)
        items = reading.elements(value, count, start)
        return [("element %d" % i, None, item, None) for i, item in enumerate(items, start)], size
    if cls is types.MappingProxyType:
        import gc

        inner = gc.get_referents(value)
        if len(inner) == 1 and issubclass(type(inner[0]), dict):
            return _dict_children(inner[0], start, count)
    if arrays.is_array(value) and value.ndim:
        rows = list(value[start : start + count])
        return [("[%d]" % i, "[%d]" % i, row, i) for i, row in enumerate(rows, start)], int(value.shape[0])
    if issubclass(cls, (type, types.ModuleType)):
        namespace = reading.module_dict(value) if issubclass(cls, types.ModuleType) else dict(reading.class_dict(value))
        pairs = [
            pair for pair in reading.entries(namespace, None) if type(pair[0]) is str and not pair[0].startswith("__")
        ]
    else:
        pairs = reading.attributes(value, 10000)
    page = pairs[start : start + count]
    return [(name, "." + name, item, name) for name, item in page], len(pairs)


def _dict_children(value: Any, start: int, count: int) -> tuple[list[tuple[str, str | None, Any, Any]], int]:
    found: list[tuple[str, str | None, Any, Any]] = []
    for key, item in reading.entries(value, count, start):
        written = _written(key)
        name = written if written is not None else "<key of type %s>" % reading.type_name(type(key))
        found.append((name[:200], "[%s]" % written if written is not None else None, item, kinds.name_of(key)))
    return found, dict.__len__(value)


def _written(key: Any) -> str | None:
    """A key as a literal, if it is of plain built-in types."""
    cls = type(key)
    if cls in (int, bool, float, str, bytes, type(None)):
        return repr(key) if cls is not int or key.bit_length() < 4096 else None
    if cls is tuple and len(key) < 10:
        parts = [_written(part) for part in key]
        if all(part is not None for part in parts):
            return "(%s,)" % ", ".join(parts)  # type: ignore[arg-type]
    return None


def _text_pages(value: Any, start: int, count: int) -> tuple[list[tuple[str, str | None, Any, Any]], int]:
    """A long text in pieces."""
    base = str if issubclass(type(value), str) else bytes if issubclass(type(value), bytes) else bytearray
    length = base.__dict__["__len__"](value)
    if length <= WIDE.string:
        return [], 0
    size = _PIECE
    total = -(-length // size)
    found: list[tuple[str, str | None, Any, Any]] = []
    for i in range(start, min(total, start + count)):
        begin, end = i * size, min(length, (i + 1) * size)
        step = "[%d:%d]" % (begin, end)
        found.append((step, step, _Piece(value, begin, end), None))
    return found, total


class _Piece:
    """A piece of a long text, to be masked together with what surrounds it."""

    def __init__(self, value: Any, begin: int, end: int) -> None:
        self.value = value
        self.begin = begin
        self.end = end

    def told(self, formatter: Formatter) -> dict[str, Any]:
        """The piece as a Value."""
        cls = type(self.value)
        base = str if issubclass(cls, str) else bytes if issubclass(cls, bytes) else bytearray
        first = max(0, self.begin - formatter.secrets.margin)
        window: Any = base.__dict__["__getitem__"](self.value, slice(first, self.end + formatter.secrets.margin))
        if base is not str:
            window = bytes(window).decode("latin-1")
        text, _ = formatter.clip(window, self.end - self.begin, self.begin - first)
        written = repr(text) if base is str else repr(text.encode("latin-1"))
        return {"type": base.__name__, "text": written, **({"masked": True} if MASK in text else {})}


def members(stop: Stop, number: int, path: str) -> dict[str, Any]:
    """What the object at *path* has: stored attributes, properties (not run), methods with signatures.

    Raises:
        NotThere: no such frame or path.
    """
    inner, _ = _frame(stop, number)
    picture = snapshot.Picture()
    place = paths.follow(path, snapshot.locals_of(inner), inner.f_globals)
    if place.secret:
        raise NotThere("%s is masked: it is a secret by its name." % path)
    value, formatter = place.value, picture.formatter
    cls = value if issubclass(type(value), type) else type(value)
    is_module = issubclass(type(value), types.ModuleType)
    told = _Members(formatter)
    if is_module:
        told.namespace(reading.module_dict(value), None)
    else:
        if cls is not value:
            for name, item in reading.attributes(value, _MEMBERS):
                told.attribute(name, item)
        for base in reading.mro(cls):
            if base is not object:
                told.namespace(reading.class_dict(base), base)
    doc = reading.lookup(reading.module_dict(value) if is_module else reading.class_dict(cls), "__doc__")
    found: dict[str, Any] = picture.clean(
        {
            "path": path,
            "type": formatter.kind(type(value))[1],
            "class": None if is_module else reading.type_name(cls),
            "bases": []
            if is_module
            else [reading.type_name(base) for base in reading.mro(cls)[1:] if base is not object],
            "doc": first_line(doc),
            "attributes": told.attributes[:_MEMBERS],
            "properties": told.properties[:_MEMBERS],
            "methods": told.methods[:_MEMBERS],
            "total": len(told.attributes) + len(told.properties) + len(told.methods),
        }
    )
    return found


class _Members:
    def __init__(self, formatter: Formatter) -> None:
        self.formatter = formatter
        self.attributes: list[dict[str, Any]] = []
        self.properties: list[dict[str, Any]] = []
        self.methods: list[dict[str, Any]] = []
        self._seen: set[str] = set()

    def attribute(self, name: str, value: Any) -> None:
        if name not in self._seen and not (name.startswith("__") and name.endswith("__")):
            self._seen.add(name)
            self.attributes.append({"name": name[:200], "value": self.formatter.value(value, name, NARROW)})

    def namespace(self, namespace: Any, owner: type | None) -> None:
        defined_in = reading.type_name(owner) if owner is not None else None
        for name in list(namespace):
            if type(name) is not str or name in self._seen:
                continue
            if name.startswith("__") and name.endswith("__") and name not in ("__init__", "__call__"):
                continue
            stored = namespace[name]
            kind = type(stored)
            functions = list(reading.functions_of(stored)) if owner is not None or kind is types.FunctionType else []
            if issubclass(kind, property) or (reading.qualname(kind) == "cached_property" and functions):
                self._seen.add(name)
                doc = reading.lookup_doc(functions[0]) if functions else None
                self.properties.append({"name": name, "doc": first_line(doc), "defined_in": defined_in})
            elif functions and (kind is types.FunctionType or issubclass(kind, (staticmethod, classmethod))):
                self._seen.add(name)
                sort = (
                    "static"
                    if issubclass(kind, staticmethod)
                    else "class"
                    if issubclass(kind, classmethod)
                    else "method"
                )
                inner = functions[-1]  # what functools.wraps has wrapped tells the parameters
                self.methods.append(
                    {
                        "name": name,
                        "signature": name + signature(inner, self.formatter),
                        "kind": sort if owner is not None else "function",
                        "doc": first_line(reading.lookup_doc(inner)),
                        "defined_in": defined_in,
                        "line": inner.__code__.co_firstlineno,
                        "file": sources.absolute(inner.__code__.co_filename),
                    }
                )
            elif kind in (types.MethodDescriptorType, types.BuiltinFunctionType, types.ClassMethodDescriptorType):
                if owner is None or reading.is_heap_type(owner) or len(self.methods) < 60:
                    self._seen.add(name)
                    self.methods.append(
                        {
                            "name": name,
                            "signature": name + "(...)",
                            "kind": "builtin",
                            "doc": None,
                            "defined_in": defined_in,
                            "line": None,
                            "file": None,
                        }
                    )
            elif kind not in (reading.MEMBER, reading.GETSET, types.WrapperDescriptorType):
                self.attribute(name, stored)


def first_line(doc: Any) -> str | None:
    """The first line of a docstring."""
    text = reading.text_of(doc)
    if not text:
        return None
    return text.strip().split("\n")[0][:200]


def signature(function: types.FunctionType, formatter: Formatter) -> str:
    """`(self, a: int, *, b=1) -> str`, from the code object; nothing is evaluated."""
    code = function.__code__
    names = code.co_varnames
    positional, keyword = code.co_argcount, code.co_kwonlyargcount
    only = getattr(code, "co_posonlyargcount", 0)
    defaults = function.__defaults__ or ()
    keyword_defaults = function.__kwdefaults__ or {}
    # 3.14 evaluates annotations when they are asked for
    notes: Any = function.__annotations__ if sys.version_info < (3, 14) else {}
    parts: list[str] = []

    def one(name: str, default: Any, prefix: str = "") -> str:
        note = _annotation(reading.lookup(notes, name)) if type(notes) is dict else None
        text = prefix + name + (": " + note if note else "")
        if default is not MISSING:
            shown = MASK if is_secret_name(name) and kinds.can_be_secret(default) else formatter.text(default, _DEFAULT)
            text += (" = " if note else "=") + shown
        return text

    for i in range(positional):
        back = i - (positional - len(defaults))
        parts.append(one(names[i], defaults[back] if back >= 0 else MISSING))
        if i + 1 == only:
            parts.append("/")
    position = positional + keyword
    if code.co_flags & 0x04:
        parts.append(one(names[position], MISSING, "*"))
        position += 1
    elif keyword:
        parts.append("*")
    for name in names[positional : positional + keyword]:
        parts.append(one(name, reading.lookup(keyword_defaults, name)))
    if code.co_flags & 0x08:
        parts.append(one(names[position], MISSING, "**"))
    returned = _annotation(reading.lookup(notes, "return")) if type(notes) is dict else None
    return "(%s)%s" % (", ".join(parts), " -> " + returned if returned else "")


_DEFAULT = Limits(text=60, string=40, items=3, depth=1, nodes=10)


def _annotation(note: Any) -> str | None:
    """Simple annotations: a class by its name, a text as it is; others (typing's) are left out."""
    if note is MISSING:
        return None
    if note is None:
        return "None"
    if issubclass(type(note), type):
        return reading.qualname(note)
    text = reading.text_of(note)
    return text[:80] if text is not None else None
