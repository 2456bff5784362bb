"""What the standard library's data types show: dates, decimals, paths, patterns, deques, arrays, files, tasks."""

from __future__ import annotations

import types
from typing import Any, Callable

from . import reading
from .reading import MISSING

Writer = Callable[..., None]


def _get(module: str, owner: str, name: str, value: Any) -> Any:
    """What the descriptor *name* of a C class of the standard library says of *value*."""
    cls = reading.lookup(reading.loaded_module(module), owner)
    return reading.lookup(reading.class_dict(cls), name).__get__(value, cls)


def _call(module: str, owner: str, name: str, value: Any, *arguments: Any) -> Any:
    """Call a method that is written in C; anything else raises TypeError."""
    cls = reading.lookup(reading.loaded_module(module), owner)
    method = reading.lookup(reading.class_dict(cls), name)
    if type(method) not in (types.MethodDescriptorType, types.WrapperDescriptorType):
        raise TypeError("not written in C")
    return method(value, *arguments)


def put_deque(f: Any, value: Any, depth: int) -> None:
    """collections.deque: from the left."""
    length = _call("collections", "deque", "__len__", value)
    items = []
    for i in range(min(length, f.limits.items) if depth > 0 else 0):
        try:
            items.append(_call("collections", "deque", "__getitem__", value, i))
        except IndexError:
            break  # another thread is emptying it
    f.write(f.kind(type(value))[1] + "(")
    if f.whole(depth):
        f.length = length
    if f.inside(value):
        f.write("[...]")
    elif length and not items:
        f.truncated = True
        f.write("[... %d items]" % length)
    else:
        f.enter(value)
        f.write("[")
        for i, item in enumerate(items):
            f.write(", " if i else "")
            f.put(item, depth - 1)
        if length > len(items):
            f.truncated = True
            f.write(", ... %d more" % (length - len(items)))
        f.write("]")
        f.leave()
    maxlen = _get("collections", "deque", "maxlen", value)
    f.write(")" if maxlen is None else ", maxlen=%d)" % maxlen)


def put_array(f: Any, value: Any, depth: int) -> None:
    """array.array: type code, length and the first items."""
    length = _call("array", "array", "__len__", value)
    head = _call("array", "array", "__getitem__", value, slice(0, f.limits.items))
    items = _call("array", "array", "tolist", head)
    if f.whole(depth):
        f.length = length
    f.write("array('%s', [%s" % (_get("array", "array", "typecode", value), ", ".join(map(repr, items))))
    if length > len(items):
        f.truncated = True
        f.write(", ... %d more" % (length - len(items)))
    f.write("])")


def _zone(f: Any, zone: Any) -> str:
    """A tzinfo, which may be anybody's class: its name where it is stored, else its type."""
    if zone is None:
        return ""
    name = f.kind(type(zone))[1]
    if name in ("datetime.timezone", "zoneinfo.ZoneInfo", "zoneinfo._zoneinfo.ZoneInfo"):
        stored = reading.read(zone, "key")
        if name == "datetime.timezone":
            arguments = _call("datetime", "timezone", "__getinitargs__", zone)
            minutes = (arguments[0].days * 86400 + arguments[0].seconds) // 60
            stored = "%s%02d:%02d" % ("-" if minutes < 0 else "+", abs(minutes) // 60, abs(minutes) % 60)
            return " UTC" if minutes == 0 else " UTC" + stored
        if type(stored) is str:
            return " " + stored
    stored = reading.read(zone, "zone")
    return " %s" % (stored if type(stored) is str else "<%s>" % name)


def put_datetime(f: Any, value: Any, depth: int) -> None:
    """datetime.datetime, with its zone."""
    day = tuple(_get("datetime", "date", part, value) for part in ("year", "month", "day"))
    hour = tuple(_get("datetime", "datetime", part, value) for part in ("hour", "minute", "second", "microsecond"))
    text = "%04d-%02d-%02d %02d:%02d:%02d" % (day + hour[:3]) + (".%06d" % hour[3] if hour[3] else "")
    f.write("%s(%s%s)" % (f.kind(type(value))[1], text, _zone(f, _get("datetime", "datetime", "tzinfo", value))))


def put_date(f: Any, value: Any, depth: int) -> None:
    """datetime.date."""
    day = tuple(_get("datetime", "date", part, value) for part in ("year", "month", "day"))
    f.write("%s(%04d-%02d-%02d)" % ((f.kind(type(value))[1],) + day))


def put_time(f: Any, value: Any, depth: int) -> None:
    """datetime.time."""
    parts = tuple(_get("datetime", "time", part, value) for part in ("hour", "minute", "second", "microsecond"))
    zone = _zone(f, _get("datetime", "time", "tzinfo", value))
    f.write("%s(%02d:%02d:%02d.%06d%s)" % ((f.kind(type(value))[1],) + parts + (zone,)))


def put_timedelta(f: Any, value: Any, depth: int) -> None:
    """datetime.timedelta."""
    parts = [(part, _get("datetime", "timedelta", part, value)) for part in ("days", "seconds", "microseconds")]
    f.write("%s(%s)" % (f.kind(type(value))[1], ", ".join("%s=%d" % pair for pair in parts if pair[1]) or "0"))


def put_decimal(f: Any, value: Any, depth: int) -> None:
    """decimal.Decimal; one with very many digits only by its size."""
    size = _call("decimal", "Decimal", "__sizeof__", value)
    if size > 4096:
        f.truncated = True
        f.write("<Decimal of about %d digits>" % (size * 19 // 8))
    else:
        f.write("%s('%s')" % (f.kind(type(value))[1], _call("decimal", "Decimal", "__str__", value)[: f.limits.string]))


def put_fraction(f: Any, value: Any, depth: int) -> None:
    """fractions.Fraction."""
    f.write(f.kind(type(value))[1] + "(")
    f.put(reading.read(value, "_numerator"), 0)
    f.write(", ")
    f.put(reading.read(value, "_denominator"), 0)
    f.write(")")


def put_uuid(f: Any, value: Any, depth: int) -> None:
    """uuid.UUID."""
    number = reading.read(value, "int")
    text = "%032x" % number if type(number) is int else "?"
    f.write(
        "%s('%s')" % (f.kind(type(value))[1], "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:])))
    )


def path_text(value: Any) -> str | None:
    """The text of a pathlib path, from where its class keeps it (3.8 to 3.11: parts; from 3.12 on: what was given)."""
    cached = reading.read(value, "_str")
    if type(cached) is str:
        return cached
    raw = reading.read(value, "_raw_paths")
    if type(raw) is list:
        parts = [reading.text_of(part) for part in raw]
        text = ""
        for part in parts:
            if part is not None:
                text = part if part.startswith("/") or not text else text.rstrip("/") + "/" + part
        return text or "."
    drive, root, tail = (reading.read(value, name) for name in ("_drv", "_root", "_parts"))
    if type(drive) is str and type(root) is str and type(tail) is list and all(type(part) is str for part in tail):
        if drive or root:
            return drive + root + "/".join(tail[1:])
        return "/".join(tail) or "."
    return None


def put_path(f: Any, value: Any, depth: int) -> None:
    """A pathlib path."""
    text = path_text(value)
    f.write(f.kind(type(value))[1] + "(")
    f.put(text, 0) if text is not None else f.write("?")
    f.write(")")


def put_pattern(f: Any, value: Any, depth: int) -> None:
    """A compiled regular expression."""
    f.write("re.compile(")
    f.put(_get("re", "Pattern", "pattern", value), 0)
    flags = _get("re", "Pattern", "flags", value)
    f.write(")" if flags in (0, 32) else ", flags=%d)" % flags)


def put_match(f: Any, value: Any, depth: int) -> None:
    """A match: where, and what was matched."""
    start, end = _call("re", "Match", "span", value)
    f.write("<re.Match span=(%d, %d) match=" % (start, end))
    text = _get("re", "Match", "string", value)
    if type(text) in (str, bytes):
        f.put(text[start : min(end, start + f.limits.string * 2)], 0)
    else:
        f.write("...")
    f.write(">")


def put_file(f: Any, value: Any, depth: int) -> None:
    """An open file of the io module: its name, mode and whether it is closed."""
    raw, name, mode = value, MISSING, reading.own(value, "mode")
    for _ in range(3):
        name = reading.own(raw, "name")
        inner = reading.read(raw, "raw")
        if inner is MISSING:
            inner = reading.read(raw, "buffer")
        if type(name) in (str, int) or inner is MISSING or inner is None:
            break
        raw = inner
    f.write("<%s name=" % f.kind(type(value))[1])
    f.put(name, 0) if type(name) in (str, bytes, int) else f.write("?")
    f.write(" mode=%r>" % mode if type(mode) is str else ">")


def put_future(f: Any, value: Any, depth: int) -> None:
    """asyncio futures and tasks that are written in C."""
    cls = type(value)
    f.write("<%s" % f.kind(cls)[1])
    if "Task" in reading.qualname(cls):
        name = _call("_asyncio", "Task", "get_name", value)
        f.write(" name=")
        f.put(name, 0)
        f.write(" coro=")
        f.put(_call("_asyncio", "Task", "get_coro", value), 0)
    state = reading.read(value, "_state")
    if type(state) is str:
        f.write(" " + state)
    f.write(">")


def put_lock(f: Any, value: Any, depth: int) -> None:
    """A lock."""
    f.write("<lock, %s>" % ("locked" if _call("_thread", "LockType", "locked", value) else "unlocked"))


_KNOWN: dict[tuple[str, str], tuple[Writer, str]] = {
    (module, name): (writer, where)
    for module, name, writer, where in (
        ("collections", "deque", put_deque, "collections"),
        ("array", "array", put_array, "array"),
        ("datetime", "datetime", put_datetime, "datetime"),
        ("datetime", "date", put_date, "datetime"),
        ("datetime", "time", put_time, "datetime"),
        ("datetime", "timedelta", put_timedelta, "datetime"),
        ("decimal", "Decimal", put_decimal, "decimal"),
        ("fractions", "Fraction", put_fraction, "fractions"),
        ("uuid", "UUID", put_uuid, "uuid"),
        ("pathlib", "PurePath", put_path, "pathlib"),
        ("pathlib._local", "PurePath", put_path, "pathlib"),
        ("re", "Pattern", put_pattern, "re"),
        ("re", "Match", put_match, "re"),
        ("_io", "TextIOWrapper", put_file, "_io"),
        ("_io", "BufferedReader", put_file, "_io"),
        ("_io", "BufferedWriter", put_file, "_io"),
        ("_io", "BufferedRandom", put_file, "_io"),
        ("_io", "FileIO", put_file, "_io"),
        ("_asyncio", "Task", put_future, "_asyncio"),
        ("_asyncio", "Future", put_future, "_asyncio"),
        ("_thread", "lock", put_lock, "_thread"),
    )
}
_ALIASES = {"lock": "LockType"}


def writer_for(cls: type) -> Writer | None:
    """The function that writes instances of *cls*, if it is one of these types or derives from one."""
    for base in reading.mro(cls):
        module, name = reading.module(base), reading.qualname(base)
        known = _KNOWN.get((module or "", name))
        if known is not None:
            namespace = reading.loaded_module(known[1])
            if namespace is not None and reading.lookup(namespace, _ALIASES.get(name, name)) is base:
                return known[0]  # the real one, not one that only says so
    return None
