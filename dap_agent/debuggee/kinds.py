"""What values of the built-in types and of their subclasses show: written by unbound methods of the built-in base."""

from __future__ import annotations

import types
from typing import Any, Callable

from . import objects, reading, science
from .secrets import MASK, is_secret_name, is_token_name

Writer = Callable[..., None]

_BIG_INT_BITS = 4096
_UNSECRET = frozenset(
    id(cls)
    for cls in (type(None), bool, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType,
                type(Ellipsis), type(NotImplemented), type, property, staticmethod, classmethod)
)  # fmt: skip


def can_be_secret(value: Any) -> bool:
    """Whether a secret name hides *value*: not None, a bool, something empty, a function, a class or a module."""
    cls = type(value)
    if id(cls) in _UNSECRET or issubclass(cls, (type, types.ModuleType)):
        return False
    for base in (str, bytes, dict, list, tuple, set, frozenset):
        if issubclass(cls, base):
            return bool(base.__len__(value))
    return True


def is_lexical(name: str, value: Any) -> bool:
    """Whether *value*, found under the secret *name*, may be a parser's token: an object of a class made by a user."""
    return is_token_name(name) and type(value) is not tuple and writer_for(type(value)) in _OBJECTS


def is_plain(writer: Writer) -> bool:
    """Whether a writer shows nothing but other values, numbers and names of classes."""
    return writer in _OBJECTS or writer in (
        put_scalar, put_int, put_float, put_list, put_dict, put_set, objects.put_class, objects.put_enum
    )  # fmt: skip


def name_of(key: Any) -> str | None:
    """A dict's key as a name: str or bytes of any subclass."""
    cls = type(key)
    if cls is str:
        name: str = key[-128:]
        return name
    if issubclass(cls, str):
        return str.__getitem__(key, slice(-128, None))
    if issubclass(cls, bytes):
        return bytes.__getitem__(key, slice(-128, None)).decode("latin-1")
    return None


def put_scalar(f: Any, value: Any, depth: int) -> None:
    """None, bool, Ellipsis, float, complex: exact types whose repr is C code."""
    f.write(repr(value))


def put_int(f: Any, value: Any, depth: int) -> None:
    """An int; a huge one by its size (int.__repr__ refuses it or takes quadratic time)."""
    bits = int.bit_length(value)
    if bits > _BIG_INT_BITS:
        f.truncated = True
        f.write(
            "<int of %d bits, %s0x%x...>"
            % (bits, "-" if int.__lt__(value, 0) else "", abs(int.__rshift__(value, bits - 64)))
        )
    else:
        f.write(int.__repr__(value))


def put_str(f: Any, value: Any, depth: int) -> None:
    """A str."""
    if f.whole(depth):
        f.length = str.__len__(value)
    f.put_string(value)


def put_bytes(f: Any, value: Any, depth: int) -> None:
    """Bytes or a bytearray."""
    base = bytes if issubclass(type(value), bytes) else bytearray
    length = base.__len__(value)
    if f.whole(depth):
        f.length = length
    limit = f.limits.string
    head = bytes(base.__getitem__(value, slice(0, limit + f.secrets.margin))).decode("latin-1")
    text, _ = f.clip(head, limit)
    prefix, end = ("", "") if base is bytes else ("bytearray(", ")")
    f.write(prefix + repr(text.encode("latin-1")) + end)
    if length > limit:
        f.truncated = True
        f.write("...")


def _put_sequence(f: Any, items: list[Any], length: int, brackets: str, value: Any, depth: int) -> None:
    if f.whole(depth):
        f.length = length
    if f.inside(value):
        f.write(brackets[0] + "..." + brackets[1])
        return
    if length and depth <= 0:
        f.truncated = True
        f.write("%s... %d items%s" % (brackets[0], length, brackets[1]))
        return
    f.enter(value)
    f.write(brackets[0])
    hide = False
    first = True
    for item in items:
        if not first:
            f.write(", ")
        if hide and can_be_secret(item):
            f.hide(item)
            f.write(MASK)
        else:
            f.put(item, depth - 1)
        hide = _announces_secret(item, length, first)
        first = False
    if length > len(items):
        f.truncated = True
        f.write(", ... %d more" % (length - len(items)))
    f.write("," + brackets[1] if brackets == "()" and length == 1 else brackets[1])
    f.leave()


def _announces_secret(item: Any, length: int, first: bool) -> bool:
    """Whether the next element is a secret: `("password", "x")`, `["--api-key", "x"]`."""
    cls = type(item)
    if cls is not str and cls is not bytes:
        return False
    if not (length == 2 and first) and item[:1] not in ("-", b"-"):
        return False
    name = name_of(item)
    return name is not None and "=" not in name and is_secret_name(name)


def _subclass(f: Any, value: Any, exact: tuple[type, ...]) -> bool:
    cls = type(value)
    if cls in exact:
        return False
    f.write(f.kind(cls)[1] + "(")
    return True


def put_list(f: Any, value: Any, depth: int) -> None:
    """A list of any subclass."""
    length = list.__len__(value)
    named = type(value) is not list
    if named:
        f.write(f.kind(type(value))[1] + "(")
    items = list.__getitem__(value, slice(0, f.limits.items if depth > 0 else 0))
    _put_sequence(f, items, length, "[]", value, depth)
    if named:
        f.write(")")


def put_tuple(f: Any, value: Any, depth: int) -> None:
    """A tuple of any subclass; a named one with its field names."""
    cls = type(value)
    length = tuple.__len__(value)
    items = tuple.__getitem__(value, slice(0, f.limits.items if depth > 0 else 0))
    names = field_names(cls) if cls is not tuple else ()
    if names and len(names) == length:
        if f.whole(depth):
            f.length = length
        objects.put_fields(f, value, list(zip(names, items)), length, depth, "(", ")")
        return
    if cls is not tuple:
        f.write(f.kind(cls)[1] + "(")
    _put_sequence(f, list(items), length, "()", value, depth)
    if cls is not tuple:
        f.write(")")


def field_names(cls: type) -> tuple[str, ...]:
    """The fields of a named tuple or of a C structure sequence; empty for any other class."""
    for attribute in ("_fields", "__match_args__"):
        names = reading.class_attribute(cls, attribute)
        if type(names) is tuple and all(type(name) is str for name in names):
            return names
    return ()


def put_set(f: Any, value: Any, depth: int) -> None:
    """A set or frozenset of any subclass, in its own order."""
    cls = type(value)
    base = set if issubclass(cls, set) else frozenset
    length = base.__len__(value)
    items = reading.elements(value, f.limits.items if depth > 0 else 0)
    if cls is set and length:
        _put_sequence(f, items, length, "{}", value, depth)
        return
    f.write(f.kind(cls)[1] + "(")
    if length:
        _put_sequence(f, items, length, "{}", value, depth)
    elif f.whole(depth):
        f.length = 0
    f.write(")")


def put_dict(f: Any, value: Any, depth: int) -> None:
    """A dict of any subclass."""
    cls = type(value)
    if cls is dict:
        put_mapping(f, value, depth, value)
        return
    f.write(f.kind(cls)[1] + "(")
    factory = reading.read(value, "default_factory")
    if factory is not reading.MISSING and factory is not None:
        f.put(factory, 0)
        f.write(", ")
    put_mapping(f, value, depth, value)
    f.write(")")


def put_mapping(f: Any, mapping: dict[Any, Any], depth: int, owner: Any) -> None:
    """The items of *mapping*; *owner* is the object that shows them."""
    length = dict.__len__(mapping)
    if f.whole(depth):
        f.length = length
    if f.inside(owner):
        f.write("{...}")
        return
    if length and depth <= 0:
        f.truncated = True
        f.write("{... %d items}" % length)
        return
    f.enter(owner)
    f.write("{")
    items = reading.entries(mapping, f.limits.items) if length else []
    first = True
    for key, item in items:
        if not first:
            f.write(", ")
        first = False
        f.put(key, min(depth - 1, 1))
        f.write(": ")
        if type(key) is str and key == "value" and _named_in(items):
            f.put_named("password", item, depth - 1)
        else:
            f.put_named(key, item, depth - 1)
    if length > len(items):
        f.truncated = True
        f.write(", ... %d more" % (length - len(items)))
    f.write("}")
    f.leave()


def _named_in(items: list[tuple[Any, Any]]) -> bool:
    """Whether a record like {"name": "Authorization", "value": ...} names a secret."""
    for key, item in items:
        if type(key) is str and key in ("name", "key", "header") and type(item) is str and is_secret_name(item):
            return True
    return False


def put_float(f: Any, value: Any, depth: int) -> None:
    """A float of a subclass."""
    f.write(float.__repr__(value))


def put_complex(f: Any, value: Any, depth: int) -> None:
    """A complex of a subclass."""
    f.write(complex.__repr__(value))


_EXACT: dict[int, Writer] = {
    id(cls): writer
    for cls, writer in (
        (type(None), put_scalar), (bool, put_scalar), (type(Ellipsis), put_scalar), (type(NotImplemented), put_scalar),
        (float, put_scalar), (complex, put_scalar), (int, put_int), (str, put_str), (bytes, put_bytes),
        (bytearray, put_bytes), (list, put_list), (tuple, put_tuple), (set, put_set), (frozenset, put_set),
        (dict, put_dict),
    )
}  # fmt: skip
_BASES: tuple[tuple[type, Writer], ...] = (
    (dict, put_dict), (list, put_list), (tuple, put_tuple), (set, put_set), (frozenset, put_set),
    (bytes, put_bytes), (bytearray, put_bytes), (str, put_str), (int, put_int), (float, put_float),
    (complex, put_complex),
)  # fmt: skip


def writer_for(cls: type) -> Writer:
    """The function that writes values of *cls*."""
    exact = _EXACT.get(id(cls))
    if exact is not None:
        return exact
    special = science.writer_for(cls) or objects.writer_for(cls)
    if special is not None:
        return special
    for base, writer in _BASES:
        if issubclass(cls, base):
            return writer
    return objects.put_object


# what instances of user-made classes show: their attributes or fields
_OBJECTS = (objects.put_object, objects.put_dataclass, objects.put_attrs, put_tuple)
