"""Source text and qualified names of running code, without importing, without loaders of the user's."""

from __future__ import annotations

import io
import linecache
import os
import re
import sys
import tokenize
import types
from typing import Any

from . import interrupts, reading

_MAX_FILE = 5000000  # bytes
_FULL = 300  # lines of a function or module that are shown whole
_AROUND = 100  # lines before and after the running one of what is longer
_MAX_LINE = 400

_open = io.open
_files: dict[str, tuple[Any, list[str]]] = {}


def forget() -> None:
    """Drop the texts that are kept between calls at one stop."""
    _files.clear()


def lines_of(filename: str, namespace: Any = None) -> list[str] | None:
    """The lines of a source file without their ends; None if it can't be had.

    Args:
        filename: as a code object has it.
        namespace: the globals of that code: its loader is asked only if it is the standard zip importer.
    """
    stamp = _stamp(filename)
    if stamp is None:
        return _unfiled(filename, namespace)
    known = _files.get(filename)
    if known is not None and known[0] == stamp:
        return known[1]
    if stamp[1] > _MAX_FILE:
        return None
    try:
        with _open(filename, "rb") as file:
            text = _decode(file.read(_MAX_FILE))
    except OSError as error:
        interrupts.pass_on(error)
        return None
    _files[filename] = (stamp, text)
    return text


def _stamp(filename: str) -> tuple[float, int] | None:
    try:
        state = os.stat(filename)
    except (OSError, ValueError) as error:
        interrupts.pass_on(error)
        return None
    return state.st_mtime, state.st_size


def _decode(data: bytes) -> list[str]:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except (SyntaxError, LookupError) as error:
        interrupts.pass_on(error)
        encoding = "latin-1"
    text = data.decode(encoding, "replace").lstrip("\ufeff")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", " ").split("\n")


def _unfiled(filename: str, namespace: Any) -> list[str] | None:
    entry = linecache.cache.get(filename) if type(linecache.cache) is dict else None  # notebooks, doctest, attrs
    if type(entry) is tuple and len(entry) == 4 and type(entry[2]) is list:
        return [line.rstrip("\r\n") for line in entry[2] if type(line) is str]
    loader: Any = reading.lookup(namespace, "__loader__") if type(namespace) is dict else None
    zipimport = reading.loaded_module("zipimport")
    if zipimport is not None and type(loader) is reading.lookup(zipimport, "zipimporter"):
        try:
            source = loader.get_source(reading.lookup(namespace, "__name__"))
        except Exception as error:  # zipimport.ZipImportError, or the archive is gone
            interrupts.pass_on(error)
            return None
        return source.split("\n") if type(source) is str else None
    return None


def inner_codes(code: types.CodeType) -> list[types.CodeType]:
    """The code objects directly inside *code*."""
    return [const for const in code.co_consts if type(const) is types.CodeType]


def last_line(code: types.CodeType) -> int:
    """The last line that *code*, with what is defined in it, has instructions on."""
    import dis

    last = code.co_firstlineno
    for _, line in dis.findlinestarts(code):
        if line is not None and line > last:
            last = line
    for inner in inner_codes(code):
        last = max(last, last_line(inner))
    return last


def function_source(code: types.CodeType, line: int, namespace: Any = None) -> tuple[int, list[str]] | None:
    """The whole function (or module, cut around *line*): its first line's number, its lines; None without source."""
    lines = lines_of(code.co_filename, namespace)
    if not lines:
        return None
    first = max(1, code.co_firstlineno)
    if code.co_name == "<module>":
        first, last = 1, len(lines)
        while last > first and not lines[last - 1].strip():
            last -= 1
    else:
        last = _block_end(lines, first, last_line(code), code.co_name)
    last = min(max(last, line), len(lines))
    if first > last:
        return None
    if last - first + 1 > _FULL:
        first, last = max(first, line - _AROUND), min(last, line + _AROUND)
    return first, [text if len(text) <= _MAX_LINE else text[:_MAX_LINE] + "..." for text in lines[first - 1 : last]]


def _block_end(lines: list[str], first: int, known: int, name: str) -> int:
    """Where the block that begins at *first* ends: at least at *known*, then as far as it is indented."""
    if name in ("<lambda>", "<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>"):
        return known
    head = lines[first - 1] if first <= len(lines) else ""
    indent = len(head) - len(head.lstrip())
    last = known
    for number in range(known + 1, len(lines) + 1):
        text = lines[number - 1]
        stripped = text.strip()
        if not stripped:
            continue
        if len(text) - len(text.lstrip()) <= indent and stripped[0] not in ")]}":
            break
        last = number
    return last


def matches(code: types.CodeType, lines: list[str]) -> bool:
    """Whether a function seems to stand where *code* says: the file may have been changed since it was loaded."""
    if code.co_name.startswith("<"):
        return True
    return any("def " + code.co_name in text or "class " + code.co_name in text for text in lines[:30])


# ---- qualified names


def qualified_name(frame: Any, names: Any = None) -> str:
    """`Class.method`, `outer.<locals>.inner`: `co_qualname` from 3.11 on, else found out.

    Args:
        frame: a frame; its first argument's class is searched for the function.
        names: the frame's locals, if they are at hand.
    """
    code = frame.f_code
    known = getattr(code, "co_qualname", None)
    if known is not None:
        return str(known)
    if code.co_name == "<module>":
        return "<module>"
    return _by_owner(frame, code, names) or _by_global(frame, code) or _by_text(frame, code) or str(code.co_name)


def _function_with(code: types.CodeType, value: Any) -> str | None:
    for function in reading.functions_of(value):
        if function.__code__ is code:
            return function.__qualname__
    return None


def _by_owner(frame: Any, code: types.CodeType, names: Any) -> str | None:
    if not code.co_argcount:
        return None
    owner = reading.lookup(names if type(names) is dict else frame.f_locals, code.co_varnames[0])
    if owner is reading.MISSING:
        return None
    cls = owner if issubclass(type(owner), type) else type(owner)
    for base in reading.mro(cls):
        if base is object:
            continue
        found = reading.lookup(reading.class_dict(base), code.co_name)
        if found is not reading.MISSING:
            name = _function_with(code, found)
            if name is not None:
                return name
    return None


def _by_global(frame: Any, code: types.CodeType) -> str | None:
    found = reading.lookup(frame.f_globals, code.co_name)
    return _function_with(code, found) if found is not reading.MISSING else None


def _by_text(frame: Any, code: types.CodeType) -> str | None:
    """From the indentation: the `def` and `class` lines that enclose the first line of *code*."""
    lines = lines_of(code.co_filename, frame.f_globals)
    if lines is None or not 0 < code.co_firstlineno <= len(lines):
        return None
    indent = _indent(lines[code.co_firstlineno - 1])
    if indent is None:
        return None
    name = code.co_name
    for text in reversed(lines[: code.co_firstlineno - 1]):
        outer = _indent(text)
        if outer is None or outer >= indent:
            continue
        indent = outer
        definition = _DEFINITION.match(text)
        if definition:
            name = definition[2] + (".%s" if definition[1] == "class" else ".<locals>.%s") % name
        if not indent:
            break
    return name


_DEFINITION = re.compile(r"\s*(?:async\s+)?(class|def)\s+(\w+)")


def _indent(line: str) -> int | None:
    """Columns before the text of a line; None for an empty one, a comment, or the end of something in brackets."""
    stripped = line.lstrip()
    if not stripped or stripped[0] in "#)]}":
        return None
    return len(line[: len(line) - len(stripped)].expandtabs())


def module_name(namespace: Any) -> str:
    """`__name__` of a frame's globals."""
    found = reading.lookup(namespace, "__name__") if type(namespace) is dict else None
    return reading.text_of(found) or "?"


def absolute(filename: str) -> str:
    """The path of a source file; names like `<string>` stay."""
    if filename.startswith("<") or os.path.isabs(filename):
        return filename
    for folder in [os.curdir] + [entry for entry in sys.path if type(entry) is str]:
        path = os.path.join(folder, filename)
        if os.path.exists(path):
            return os.path.abspath(path)
    return filename
