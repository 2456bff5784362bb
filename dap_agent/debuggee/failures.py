"""Exceptions as JSON: message, notes, attributes, cause, context, group members; no `__str__` of the user's runs."""

from __future__ import annotations

import types
from typing import Any

from . import marks, packages, reading, sources
from .reading import MISSING
from .values import Formatter, Limits

MESSAGE = 4000
"""Characters of a message."""

_CHAIN = 10  # exceptions in a chain, and members of a group on each level
_MEMBERS = 15
_ALL = 60  # exceptions in all
_ARGUMENT = Limits(text=MESSAGE, string=MESSAGE, items=20, depth=3, nodes=300)
_BRIEF = Limits(text=200, string=80, items=6, depth=1, nodes=30)
_MARKS = (marks.SEEN, "__pydevd_tag__", "__notes__", "__traceback__")  # ours, pydevd's, the interpreter's

# what the C structures of built-in exceptions hold beyond their arguments (Objects/exceptions.c)
_FIELDS = (
    (OSError, ("errno", "filename", "filename2", "winerror")),
    (UnicodeError, ("encoding", "object", "start", "end", "reason")),
    (ImportError, ("name", "path")),
    (NameError, ("name",)),
    (StopIteration, ("value",)),
    (SystemExit, ("code",)),
)


class Teller:
    """Tells exceptions.

    Args:
        formatter: writes their values, knows the secrets.
        notes: gets a sentence on whatever could not be told as Python would.
    """

    def __init__(self, formatter: Formatter, notes: list[str]) -> None:
        self.formatter = formatter
        self.notes = notes
        self._told: list[BaseException] = []

    def tell(self, exc: BaseException, tb: types.TracebackType | None = None) -> dict[str, Any]:
        """*exc* as an Exc of the snapshot schema.

        Args:
            tb: its traceback if it is not the one that it holds itself.
        """
        self._told.append(exc)
        found: dict[str, Any] = {
            "type": self._mask(reading.type_name(type(exc))),
            "message": self.message(exc),
            "notes": self._notes(exc),
            "attributes": self._attributes(exc),
            "where": self._where(tb if tb is not None else _field(exc, "__traceback__")),
            "cause": None,
            "context": None,
            "group": [],
            "syntax": self._syntax(exc),
        }
        cause, context = _field(exc, "__cause__"), _field(exc, "__context__")
        if isinstance_of(cause, BaseException):
            found["cause"] = self._next(cause)
        elif isinstance_of(context, BaseException) and _field(exc, "__suppress_context__") is not True:
            found["context"] = self._next(context)
        members = group_members(exc)
        for member in members[:_MEMBERS]:
            told = self._next(member)
            if told is not None:
                found["group"].append(told)
        if len(members) > _MEMBERS:
            self.notes.append("%d more exceptions of the group are not shown." % (len(members) - _MEMBERS))
        return found

    def _next(self, exc: BaseException) -> dict[str, Any] | None:
        if any(exc is known for known in self._told):
            return None
        if len(self._told) >= _ALL or (len(self._told) > _CHAIN and not group_members(exc) and self._deep()):
            if not any("chain" in note for note in self.notes):
                self.notes.append("The rest of the chain of exceptions is not shown.")
            return None
        return self.tell(exc)

    def _deep(self) -> bool:
        """Whether the last exceptions told are one chain of more than _CHAIN."""
        chain = 0
        for inner, outer in zip(reversed(self._told), reversed(self._told[:-1])):
            if _field(outer, "__cause__") is not inner and _field(outer, "__context__") is not inner:
                break
            chain += 1
        return chain >= _CHAIN

    def message(self, exc: BaseException) -> str:
        """What `str(exc)` would say, without running a `__str__` that is not the interpreter's."""
        try:
            text, left_out = self.formatter.clip(self._message(exc), MESSAGE)
        except Exception as error:  # a bad value hides only itself
            return "<unreadable: %s>" % reading.type_name(type(error))
        return self.formatter.secrets.mask_known(text) + ("..." if left_out else "")

    def _message(self, exc: BaseException) -> str:
        members = group_members(exc)
        if members:
            args = arguments_of(exc)
            text = self._plain(args[0]) if args else ""
            return "%s (%d sub-exception%s)" % (text, len(members), "s" if len(members) > 1 else "")
        for base in reading.mro(type(exc)):
            method = reading.lookup(reading.class_dict(base), "__str__")
            if method is MISSING:
                continue
            if type(method) is types.WrapperDescriptorType and not reading.is_heap_type(base):
                return self._builtin_message(exc, base)
            if type(method) is types.FunctionType and self._harmless(exc, method):
                return str(method(exc))
            if _is_pydantic(base):
                return _pydantic_message(exc)
            return self._derived_message(exc, base)
        return self._arguments(exc)

    def _builtin_message(self, exc: BaseException, base: type) -> str:
        if base is KeyError:
            args = arguments_of(exc)
            return self.formatter.text(args[0], _ARGUMENT) if len(args) == 1 else self._arguments(exc)
        if base is OSError:
            return self._os_error(exc)
        if base is SyntaxError:
            return self._syntax_error(exc)
        if base is ImportError:
            told = _field(exc, "msg")
            return told if type(told) is str else self._arguments(exc)
        if issubclass(base, UnicodeError) and all(
            type(_field(exc, name)) in (str, bytes, int) for name in ("encoding", "object", "start", "end", "reason")
        ):
            return str(reading.lookup(reading.class_dict(base), "__str__")(exc))
        return self._arguments(exc)

    def _arguments(self, exc: BaseException) -> str:
        args = arguments_of(exc)
        if not args:
            return ""
        return self._plain(args[0]) if len(args) == 1 else self.formatter.text(args, _ARGUMENT)

    def _plain(self, value: Any) -> str:
        """What `str(value)` would say of a plain value; others as the formatter writes them."""
        text = reading.text_of(value)
        return text if text is not None else self.formatter.text(value, _ARGUMENT)

    def _os_error(self, exc: BaseException) -> str:
        number, said, first, second = (_field(exc, name) for name in ("errno", "strerror", "filename", "filename2"))
        if number is None or said is None or number is MISSING or said is MISSING:
            return self._arguments(exc)
        text = "[Errno %s] %s" % (self._plain(number), self._plain(said))
        if first is not None and first is not MISSING:
            text += ": %s" % self.formatter.text(first, _ARGUMENT)
            if second is not None and second is not MISSING:
                text += " -> %s" % self.formatter.text(second, _ARGUMENT)
        return text

    def _syntax_error(self, exc: BaseException) -> str:
        said, file, line = (_field(exc, name) for name in ("msg", "filename", "lineno"))
        where = []
        if type(file) is str:
            where.append(file.rpartition("/")[2])
        if type(line) is int:
            where.append("line %d" % line)
        return self._plain(said) + (" (%s)" % ", ".join(where) if where else "")

    def _harmless(self, exc: BaseException, method: types.FunctionType) -> bool:
        """Whether *method* is the standard library's and all that it can meet are plain values."""
        if not packages.origin_of(method.__code__.co_filename).stdlib:
            return False
        if not packages_is_stdlib_class(type(exc)):
            return False
        wanted = set(method.__code__.co_names)
        for name in wanted:
            if type(reading.class_attribute(type(exc), name)) in (types.FunctionType, property):
                wanted = set()  # it goes through another method: that one may look at anything
                break
        held = [(name, item) for name, item in reading.attributes(exc, 100) if not wanted or name in wanted]
        args = list(arguments_of(exc)) if not wanted or "args" in wanted else []
        return is_plain(args) and all(is_plain(item) for _, item in held)

    def _derived_message(self, exc: BaseException, base: type) -> str:
        args = arguments_of(exc)
        text = ""
        if len(args) == 1 and reading.text_of(args[0]) is not None:
            text = self._plain(args[0])
        if not text:
            for name in ("message", "msg", "detail", "reason", "description"):
                told = reading.text_of(reading.own(exc, name))
                if told:
                    text = told
                    break
        text = text or self._arguments(exc)
        self._note("The message of %s is its arguments: its own __str__ was not run." % reading.type_name(type(exc)))
        return text

    def _note(self, sentence: str) -> None:
        if sentence not in self.notes:
            self.notes.append(sentence)

    def _notes(self, exc: BaseException) -> list[str]:
        held = reading.own(exc, "__notes__")
        if not issubclass(type(held), (list, tuple)):
            return []
        base = list if issubclass(type(held), list) else tuple
        notes = base.__getitem__(held, slice(0, 20))
        return [self._mask(self._plain(note)[:MESSAGE]) for note in notes]

    def _attributes(self, exc: BaseException) -> list[dict[str, Any]]:
        pairs: list[tuple[str, Any]] = []
        target: Any = MISSING
        for base, names in _FIELDS:
            if issubclass(type(exc), base):
                pairs.extend((name, _field(exc, name)) for name in names)
        if issubclass(type(exc), AttributeError):
            pairs.append(("name", _field(exc, "name")))
            target = _field(exc, "obj")
            if target is not MISSING and target is not None:
                pairs.append(("obj", target))
        known = {name for name, _ in pairs}
        for name, item in reading.attributes(exc, 40):
            if name not in _MARKS and name not in known and not (name.startswith("__") and name.endswith("__")):
                pairs.append((name, item))
        return [
            {
                "name": self._mask(name[:200]),
                # it is among the values of the frame as well, in full
                "value": self.formatter.value(item, name, _BRIEF if item is target else None),
            }
            for name, item in pairs[:20]
            if item is not MISSING and not (item is None and name in known)
        ]

    def _where(self, tb: Any) -> dict[str, Any] | None:
        if type(tb) is not types.TracebackType:
            return None
        for _ in range(100000):
            if tb.tb_next is None:
                break
            tb = tb.tb_next
        code = tb.tb_frame.f_code
        return {
            "function": sources.qualified_name(tb.tb_frame),
            "file": self._mask(sources.absolute(code.co_filename)),
            "line": tb.tb_lineno if tb.tb_lineno is not None else code.co_firstlineno,
        }

    def _syntax(self, exc: BaseException) -> dict[str, Any] | None:
        if not issubclass(type(exc), SyntaxError):
            return None
        file, line, column, text = (_field(exc, name) for name in ("filename", "lineno", "offset", "text"))
        return {
            "file": self._mask(sources.absolute(file)) if type(file) is str else None,
            "line": line if type(line) is int else None,
            "column": column if type(column) is int else None,
            "text": self.formatter.secrets.mask(text[:400], code=True) if type(text) is str else None,
        }

    def _mask(self, text: str) -> str:
        return self.formatter.secrets.mask_known(self.formatter.secrets.mask(text))


def _field(exc: BaseException, name: str) -> Any:
    """A field of the C structure of a built-in exception, whatever a subclass calls so."""
    for base in reading.mro(type(exc)):
        if not reading.is_heap_type(base):
            found = reading.lookup(reading.class_dict(base), name)
            if type(found) is reading.MEMBER or type(found) is reading.GETSET:
                try:
                    return found.__get__(exc, type(exc))
                except Exception:  # UnicodeError's fields before __init__, for one
                    return MISSING
    return MISSING


def isinstance_of(value: Any, base: type) -> bool:
    """isinstance by the real class alone."""
    return issubclass(type(value), base)


def arguments_of(exc: BaseException) -> tuple[Any, ...]:
    """`exc.args`."""
    args: tuple[Any, ...] = BaseException.__dict__["args"].__get__(exc)
    return args


def group_members(exc: BaseException) -> list[BaseException]:
    """The exceptions of a group: the built-in one (3.11+) or that of the `exceptiongroup` package; else []."""
    members = _field(exc, "exceptions")
    if members is MISSING and any(reading.qualname(base) == "BaseExceptionGroup" for base in reading.mro(type(exc))):
        members = reading.own(exc, "_exceptions")
    if type(members) is not tuple and type(members) is not list:
        return []
    return [member for member in members if isinstance_of(member, BaseException)]


def is_plain(value: Any, depth: int = 3) -> bool:
    """Whether *value* is of built-in types all through: nothing in it has methods of its own."""
    cls = type(value)
    if cls in _PLAIN_BY_IDENTITY:
        return True
    if depth and (cls is list or cls is tuple):
        return all(is_plain(item, depth - 1) for item in value[:50]) and len(value) <= 50
    if depth and cls is dict and len(value) <= 50:
        return all(is_plain(key, 0) and is_plain(item, depth - 1) for key, item in reading.entries(value, 50))
    return False


class _Classes:
    """A set of classes by identity: hashing or comparing a class could run its metaclass."""

    def __init__(self, *classes: type) -> None:
        self._ids = frozenset(map(id, classes))

    def __contains__(self, cls: type) -> bool:
        return id(cls) in self._ids


_PLAIN_BY_IDENTITY = _Classes(type(None), bool, int, float, complex, str, bytes)


def packages_is_stdlib_class(cls: type) -> bool:
    """Whether *cls* and what it overrides come from the standard library's files."""
    for base in reading.mro(cls):
        if not reading.is_heap_type(base):
            continue
        namespace = reading.loaded_module(reading.module(base) or "")
        file = reading.text_of(reading.lookup(namespace, "__file__")) if namespace is not None else None
        if file is None or not packages.origin_of(file).stdlib:
            return False
    return True


def _is_pydantic(base: type) -> bool:
    return reading.module(base) == "pydantic_core._pydantic_core" and reading.qualname(base) == "ValidationError"


def _pydantic_message(exc: Any) -> str:
    """pydantic's ValidationError: its own __str__ would repr the inputs, its list of errors can leave them out."""
    errors = exc.errors(include_url=False, include_context=False, include_input=False)
    lines = ["%d validation error%s for %s" % (len(errors), "" if len(errors) == 1 else "s", exc.title)]
    for error in errors[:20]:
        lines.append(".".join(map(str, error["loc"])) or "(whole)")
        lines.append("  %s [type=%s]" % (error["msg"], error["type"]))
    return "\n".join(lines)
