"""What instances show: exceptions, enums, dataclasses and other records, functions, classes, generators."""

from __future__ import annotations

import enum
import functools
import gc
import os
import types
import weakref
from typing import Any, Callable

from . import reading
from .reading import MISSING

Writer = Callable[..., None]


def put_object(f: Any, value: Any, depth: int) -> None:
    """Any instance: its type and the attributes that it holds itself."""
    cls = type(value)
    held = reading.attributes(value, 200 if depth > 0 else 10)
    pairs = [pair for pair in held if not (pair[0].startswith("__") and pair[0].endswith("__"))]
    if not pairs:
        f.write("<%s object>" % f.kind(cls)[1])
        return
    put_fields(f, value, pairs[: f.fields(depth)], len(pairs), depth, " ", ">", "<")


def put_fields(
    f: Any,
    owner: Any,
    pairs: list[tuple[str, Any]],
    total: int,
    depth: int,
    opening: str,
    closing: str,
    before: str = "",
) -> None:
    """`Type(name=value, ...)`: named values that belong to *owner*; *total* is how many there are."""
    f.write(before + f.kind(type(owner))[1])
    if f.inside(owner) or (depth <= 0 and pairs):
        f.truncated = True
        f.write(opening + "..." + closing)
        return
    f.enter(owner)
    f.write(opening)
    try:
        for i, (name, item) in enumerate(pairs):
            f.write((", " if i else "") + f.secrets.mask(name[:200]) + "=")
            f.put_field(name, item, depth - 1, i == total - 1)
    except f.full:
        f.close(closing)
        raise
    if total > len(pairs):
        f.truncated = True
        f.write(", ... %d more" % (total - len(pairs)))
    f.write(closing)
    f.leave()


def _put_record(f: Any, value: Any, names: list[str], depth: int) -> None:
    """A record type's instance: the fields that it has, in their order, not the other attributes."""
    pairs = []
    for name in names[: f.fields(depth)]:
        item = reading.read(value, name)
        if item is not MISSING:
            pairs.append((name, item))
    put_fields(f, value, pairs, len(pairs) + max(0, len(names) - f.fields(depth)), depth, "(", ")")


def put_dataclass(f: Any, value: Any, depth: int) -> None:
    """A dataclass: the fields that its own repr would show."""
    fields = reading.class_attribute(type(value), "__dataclass_fields__")
    names = []
    for key, field in reading.entries(fields, 100):
        name = reading.text_of(key)
        if name is not None and reading.read(field, "repr") is not False:
            names.append(name)
    _put_record(f, value, names, depth)


def put_attrs(f: Any, value: Any, depth: int) -> None:
    """An attrs class."""
    fields = reading.class_attribute(type(value), "__attrs_attrs__")
    names = [reading.text_of(reading.read(field, "name")) for field in tuple.__getitem__(fields, slice(0, 100))]
    _put_record(f, value, [name for name in names if name is not None], depth)


def put_enum(f: Any, value: Any, depth: int) -> None:
    """A member of an Enum: its name and value."""
    held = reading.instance_dict(value) or {}
    name = reading.text_of(reading.lookup_any(held, "_name_"))
    f.write("<%s.%s: " % (f.kind(type(value))[1], name if name is not None else "?"))
    inner = reading.lookup_any(held, "_value_")
    f.put(inner if inner is not MISSING else None, min(depth - 1, 1))
    f.write(">")


def put_exception(f: Any, value: Any, depth: int) -> None:
    """An exception: its arguments, as `BaseException.__repr__` shows them."""
    args = BaseException.__dict__["args"].__get__(value)
    put_fields_plain(f, value, list(args[: f.limits.items]), len(args), depth)


def put_fields_plain(f: Any, owner: Any, items: list[Any], total: int, depth: int) -> None:
    """`Type(value, ...)`."""
    f.write(f.kind(type(owner))[1] + "(")
    if f.inside(owner) or (depth <= 0 and items):
        f.truncated = True
        f.write("...)")
        return
    f.enter(owner)
    for i, item in enumerate(items):
        f.write(", " if i else "")
        f.put(item, depth - 1)
    f.write(", ... %d more)" % (total - len(items)) if total > len(items) else ")")
    f.leave()


def put_class(f: Any, value: Any, depth: int) -> None:
    """A class, and its metaclass if it is not `type`."""
    meta = type(value)
    f.write("<class '%s'%s>" % (reading.type_name(value), "" if meta is type else " of " + f.kind(meta)[1]))


def put_module(f: Any, value: Any, depth: int) -> None:
    """A module and its file."""
    namespace = reading.module_dict(value)
    name, file = (reading.text_of(reading.lookup(namespace, key)) for key in ("__name__", "__file__"))
    f.write("<module '%s'%s>" % (name or "?", " from '%s'" % file if file else ""))


def _where(code: types.CodeType) -> str:
    return "%s:%d" % (os.path.basename(code.co_filename), code.co_firstlineno)


def function_name(function: types.FunctionType) -> str:
    """`module.qualname`."""
    where = reading.text_of(function.__module__)
    return "%s.%s" % (where, function.__qualname__) if where not in (None, "__main__") else function.__qualname__


def put_function(f: Any, value: Any, depth: int) -> None:
    """A function and where it is defined."""
    f.write("<function %s at %s>" % (function_name(value), _where(value.__code__)))


def put_method(f: Any, value: Any, depth: int) -> None:
    """A bound method: the function, and what it is bound to by its type."""
    inner, owner = value.__func__, value.__self__
    name = function_name(inner) if type(inner) is types.FunctionType else f.kind(type(inner))[1]
    bound = reading.type_name(owner) if issubclass(type(owner), type) else f.kind(type(owner))[1]
    f.write("<bound method %s of %s>" % (name, bound))


def put_builtin(f: Any, value: Any, depth: int) -> None:
    """Functions and descriptors written in C: their repr names types only."""
    f.write(repr(value)[:200])


def put_partial(f: Any, value: Any, depth: int) -> None:
    """functools.partial: function, arguments, keywords."""
    func, args, keywords = (functools.partial.__dict__[name].__get__(value) for name in ("func", "args", "keywords"))
    f.write("functools.partial(")
    f.put(func, 0)
    for item in args[: f.limits.items]:
        f.write(", ")
        f.put(item, depth - 1)
    for key, item in reading.entries(keywords, f.limits.items):
        f.write(", %s=" % (reading.text_of(key) or "?"))
        f.put_named(key, item, depth - 1)
    f.write(")")


def put_wrapper(f: Any, value: Any, depth: int) -> None:
    """property, staticmethod, classmethod: the functions inside."""
    names = [function_name(function) for function in reading.functions_of(value)]
    f.write("<%s %s>" % (f.kind(type(value))[1], ", ".join(names) or "object"))


def _put_running(prefix: str, word: str) -> Writer:
    def put(f: Any, value: Any, depth: int) -> None:
        code, frame, running = (getattr(value, prefix + part) for part in ("code", "frame", "running"))
        name = reading.text_of(value.__qualname__) or "?"
        if frame is None:
            state = "finished"
        else:
            state = "%s at line %s" % ("running" if running else "suspended", frame.f_lineno)
        f.write("<%s %s of %s, %s>" % (word, name, _where(code), state))

    return put


def put_code(f: Any, value: Any, depth: int) -> None:
    """A code object."""
    f.write("<code %s at %s>" % (value.co_name, _where(value)))


def put_frame(f: Any, value: Any, depth: int) -> None:
    """A frame."""
    f.write("<frame %s at %s, line %s>" % (value.f_code.co_name, _where(value.f_code), value.f_lineno))


def put_range(f: Any, value: Any, depth: int) -> None:
    """A range; its length can exceed what len() may return."""
    parts = [value.start, value.stop] + ([value.step] if value.step != 1 else [])
    f.write("range(")
    for i, part in enumerate(parts):
        f.write(", " if i else "")
        f.put(part, 0)
    f.write(")")


def put_slice(f: Any, value: Any, depth: int) -> None:
    """A slice; its parts can be anything."""
    f.write("slice(")
    for i, part in enumerate((value.start, value.stop, value.step)):
        f.write(", " if i else "")
        f.put(part, depth - 1)
    f.write(")")


def put_memoryview(f: Any, value: Any, depth: int) -> None:
    """A memoryview: size, format and the first bytes."""
    try:
        f.write("<memoryview of %d bytes, format %r, shape %r" % (value.nbytes, value.format, value.shape))
        if f.whole(depth):
            f.length = value.nbytes
        if value.contiguous and value.ndim == 1 and value.nbytes:
            f.write(": ")
            f.put(value[: 32 // max(1, value.itemsize) or 1].tobytes(), 0)
    except ValueError:
        f.write("<memoryview, released")
    f.write(">")


def put_proxy(f: Any, value: Any, depth: int) -> None:
    """A read-only view of a mapping; the mapping itself could be anything, so only a dict is read."""
    inner = gc.get_referents(value)
    f.write("mappingproxy(")
    if len(inner) == 1 and issubclass(type(inner[0]), dict):
        f.put(inner[0], depth)
    else:
        f.write("...")
    f.write(")")


def put_view(f: Any, value: Any, depth: int) -> None:
    """dict_keys, dict_values, dict_items."""
    cls = type(value)
    f.write(f.kind(cls)[1] + "(")
    inner = [item for item in gc.get_referents(value) if issubclass(type(item), dict)]
    if not inner or depth <= 0 or f.inside(value):
        f.write("...")
    elif cls is type({}.keys()):
        f.put([key for key, _ in reading.entries(inner[0], f.limits.items)], depth)
        if dict.__len__(inner[0]) > f.limits.items:
            f.truncated = True
            f.write(", ... %d in all" % dict.__len__(inner[0]))
    else:  # values and items are shown with their keys, which tell what is secret
        f.enter(value)
        f.put(inner[0], depth - 1)
        f.leave()
    f.write(")")


def put_reference(f: Any, value: Any, depth: int) -> None:
    """A weak reference: the type of what it refers to."""
    target = weakref.ref.__call__(value)
    f.write("<weakref to %s>" % ("nothing (dead)" if target is None else f.kind(type(target))[1]))


def put_traceback(f: Any, value: Any, depth: int) -> None:
    """A traceback: its first line."""
    f.write("<traceback at %s, line %s>" % (_where(value.tb_frame.f_code), value.tb_lineno))


def put_namespace(f: Any, value: Any, depth: int) -> None:
    """types.SimpleNamespace."""
    held = reading.instance_dict(value) or {}
    pairs = reading.attributes(value, f.limits.items)
    put_fields(f, value, pairs, dict.__len__(held), depth, "(", ")")


_EXACT: dict[int, Writer] = {
    id(cls): writer
    for cls, writer in (
        (type, put_class), (types.FunctionType, put_function), (types.MethodType, put_method),
        (types.BuiltinFunctionType, put_builtin), (types.WrapperDescriptorType, put_builtin),
        (types.MethodWrapperType, put_builtin), (types.MethodDescriptorType, put_builtin),
        (types.ClassMethodDescriptorType, put_builtin), (types.GetSetDescriptorType, put_builtin),
        (types.MemberDescriptorType, put_builtin), (functools.partial, put_partial), (property, put_wrapper),
        (staticmethod, put_wrapper), (classmethod, put_wrapper), (functools.cached_property, put_wrapper),
        (types.GeneratorType, _put_running("gi_", "generator")),
        (types.CoroutineType, _put_running("cr_", "coroutine")),
        (types.AsyncGeneratorType, _put_running("ag_", "async generator")), (types.CodeType, put_code),
        (types.FrameType, put_frame), (range, put_range), (slice, put_slice), (memoryview, put_memoryview),
        (types.MappingProxyType, put_proxy), (type({}.keys()), put_view), (type({}.values()), put_view),
        (type({}.items()), put_view), (weakref.ref, put_reference), (types.TracebackType, put_traceback),
        (types.SimpleNamespace, put_namespace),
    )
}  # fmt: skip


def writer_for(cls: type) -> Writer | None:
    """The function that writes instances of *cls*; None: nothing special about them."""
    exact = _EXACT.get(id(cls))
    if exact is not None:
        return exact
    if issubclass(cls, BaseException):
        return put_exception
    if issubclass(cls, type):
        return put_class
    if issubclass(cls, types.ModuleType):
        return put_module
    for base in reading.mro(cls):
        if base is enum.Enum:
            return put_enum
    from . import stdlib_types

    special = stdlib_types.writer_for(cls)
    if special is not None:
        return special
    if issubclass(type(reading.class_attribute(cls, "__dataclass_fields__")), dict):
        return put_dataclass
    if issubclass(type(reading.class_attribute(cls, "__attrs_attrs__")), tuple):
        return put_attrs
    return None
