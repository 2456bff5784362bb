"""Summaries of numpy arrays: shape, dtype, NaN count, extremes, first values.

Only classes and functions that numpy wrote in C are used, on plain arrays: no override of a subclass runs.
"""

from __future__ import annotations

from typing import Any

from . import reading

SAMPLE = 1000000
"""Elements up to which NaNs are counted and extremes looked for; a larger array is sampled."""

HEAD = 5
_KINDS = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex", "M": "datetime64", "m": "timedelta64",
          "O": "object", "S": "bytes", "U": "str", "V": "void", "T": "str"}  # fmt: skip


def real(cls: type, module: str, name: str) -> bool:
    """Whether *cls* or a base of it is the class *name* of the loaded *module*."""
    namespace = reading.loaded_module(module)
    if namespace is None:
        return False
    found = reading.lookup(namespace, name)
    return any(base is found for base in reading.mro(cls))


def numpy(name: str) -> Any:
    """A name of the loaded numpy."""
    return reading.lookup(reading.loaded_module("numpy"), name)


def array_part(array: Any, name: str) -> Any:
    """What ndarray itself says of *array*, whatever its subclass overrides."""
    return reading.lookup(reading.class_dict(numpy("ndarray")), name).__get__(array)


def plain(array: Any) -> Any:
    """The array without its subclass: a view, no copy, no Python code."""
    ndarray = numpy("ndarray")
    return array if type(array) is ndarray else reading.lookup(reading.class_dict(ndarray), "view")(array, ndarray)


def is_array(value: Any) -> bool:
    """Whether *value* is exactly a numpy array."""
    return reading.loaded_module("numpy") is not None and type(value) is numpy("ndarray")


def dtype_name(dtype: Any) -> str:
    """`float64`, `datetime64`, `{a: int64, ...}` for a structured one."""
    kind = dtype.kind
    names = dtype.names
    if names:
        return "{%s}" % ", ".join("%s: %s" % (name, dtype_name(dtype.fields[name][0])) for name in names[:10])
    if kind in "biufc" and kind != "b":
        return "%s%d" % (_KINDS[kind], dtype.itemsize * 8)
    if kind in "SU":
        return "%s%d" % (_KINDS[kind], dtype.itemsize // (4 if kind == "U" else 1))
    return _KINDS.get(kind, "kind %s" % kind)


def sample(array: Any) -> tuple[Any, bool]:
    """The array itself, or about SAMPLE of its elements spread over it, and whether it was sampled."""
    size = array.size
    if size <= SAMPLE:
        return array, False
    return array.flat[:: -(-size // (SAMPLE // 4))], True


def facts(array: Any, summary: dict[str, Any]) -> None:
    """NaN count and extremes of a plain array of numbers or dates, into *summary*."""
    kind = array.dtype.kind
    if kind not in "fciumMb" or not array.size:
        return
    chosen, sampled = sample(array)
    ufunc = type(numpy("isnan"))
    errstate = numpy("errstate")(all="ignore")
    with errstate:
        if kind in "fcmM":
            missing = numpy("isnan" if kind in "fc" else "isnat")
            if type(missing) is ufunc:
                summary["nan"] = int(numpy("count_nonzero")(missing(chosen)))
        if kind in "fiu":
            for key, name in (("min", "fmin"), ("max", "fmax")):
                summary[key] = _scalar_text(numpy(name).reduce(chosen, axis=None))
            if kind == "f":
                summary["inf"] = int(numpy("count_nonzero")(numpy("isinf")(chosen)))
                if not summary["inf"]:
                    del summary["inf"]
    if sampled:
        summary["sampled"] = int(chosen.size)


def _scalar_text(value: Any) -> str:
    number = value.item()
    return repr(number) if type(number) in (int, float, bool, complex) else "?"


def head_of(array: Any, count: int) -> list[Any]:
    """The first elements of a plain array, as Python objects."""
    kind = array.dtype.kind
    head = array.flat[:count]
    if kind in "mM":
        return [text_of_date(item) for item in head]
    items: list[Any] = head.tolist()
    return items


class Text(str):
    """Text to be written as it is, not quoted."""


def text_of_date(item: Any) -> Any:
    """A datetime64 or timedelta64 as ISO text; numpy's own C code."""
    if item.dtype.kind == "m":
        return Text(item.astype("i8"))
    text = str(numpy("datetime_as_string")(item))
    whole, _, rest = text.partition(".")
    return Text(whole if rest and not rest.strip("0") else text)


def put_ndarray(f: Any, value: Any, depth: int) -> None:
    """A numpy array of any subclass."""
    shape, dtype = array_part(value, "shape"), array_part(value, "dtype")
    whole = f.whole(depth)
    name = f.kind(type(value))[1]
    if whole:
        f.length = shape[0] if shape else None
    array = plain(value)
    count = f.limits.items if depth > 0 else 0
    if dtype.names:
        count = 0  # fields have names, and names can tell of secrets
    head = head_of(array, count) if count else []
    if whole:
        summary: dict[str, Any] = {"shape": list(shape), "dtype": dtype_name(dtype)}
        if not real(type(value), "numpy", "memmap"):
            facts(array, summary)
        f.summary = summary
    f.write("%s(shape=%s, dtype=%s" % (name, tuple(shape), dtype_name(dtype)))
    if head or (count and not array.size):
        f.write(", [")
        put_items(f, head, array.size, depth)
        f.write("]")
    f.write(")")
    if whole and f.summary is not None and head:
        f.summary["head"] = [cell(f, item) for item in head[:HEAD]]


def put_items(f: Any, items: list[Any], total: int, depth: int) -> None:
    """Items in a row, and how many of *total* are missing."""
    for i, item in enumerate(items):
        f.write(", " if i else "")
        f.write(f.secrets.mask(str(item))) if type(item) is Text else f.put(item, depth - 1)
    if total > len(items):
        f.truncated = True
        f.write(", ... %d more" % (total - len(items)))


def cell(f: Any, item: Any) -> str:
    """A short text of one element, written by a formatter of its own."""
    if type(item) is Text:
        return str(f.secrets.mask(str(item)))
    from .values import Formatter, Limits

    inner = Formatter(f.secrets, Limits(text=80, string=60, items=3, depth=1, nodes=20), f.deadline)
    inner._kinds = f._kinds
    return inner.text(item)


def put_scalar(f: Any, value: Any, depth: int) -> None:
    """A numpy scalar."""
    cls = type(value)
    if not reading.is_heap_type(cls):
        kind = reading.read(value, "dtype").kind
        if kind in "mM":
            f.write("%s(%s)" % (f.kind(cls)[1], text_of_date(value)))
            return
        item = numpy("generic").item(value)
        names = reading.read(value, "dtype").names
        if names and type(item) is tuple:
            item = dict(zip(names, item))
        if type(item) is not cls:
            f.put(item, depth)
            return
    f.write("<%s object>" % f.kind(cls)[1])
