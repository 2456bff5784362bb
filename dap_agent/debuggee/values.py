"""Values as bounded text, written without running any code of theirs.

A `Formatter` knows how to walk; what each type shows is in `kinds.py` (built-in types), `objects.py` (the standard
library's and user-made ones) and `tables.py` (numpy, pandas, torch).
"""

from __future__ import annotations

from typing import Any, Callable

from . import kinds, reading
from .interrupts import pass_on
from .secrets import MASK, Secrets, is_secret_name


class Limits:
    """How much of a value is shown.

    Args:
        text: characters of the whole text.
        string: characters of each string in it.
        items: elements or attributes of each container.
        depth: containers within containers.
        nodes: values looked at in all.
    """

    def __init__(self, text: int = 600, string: int = 200, items: int = 10, depth: int = 4, nodes: int = 300) -> None:
        self.text = text
        self.string = string
        self.items = items
        self.depth = depth
        self.nodes = nodes


WIDE = Limits(text=4000, string=2000, items=30, depth=4, nodes=1500)
NARROW = Limits(text=240, string=120, items=6, depth=3, nodes=80)


class _Full(Exception):
    """The text has reached its limit."""


class Formatter:
    """Turns values into `Value` objects of the snapshot schema.

    Args:
        secrets: the masking rules.
        limits: for values that are given none of their own.
        deadline: after it values are named, not read.
    """

    full = _Full

    def __init__(
        self,
        secrets: Secrets | None = None,
        limits: Limits | None = None,
        deadline: reading.Deadline | None = None,
    ) -> None:
        self.secrets = secrets if secrets is not None else Secrets()
        self.limits = limits if limits is not None else Limits()
        self.deadline = deadline
        self.summary: dict[str, Any] | None = None
        self.length: int | None = None
        self.truncated = False
        self.masked = False
        self._margin = self.secrets.margin
        self._kinds: dict[int, tuple[type, str, Callable[..., None]]] = {}
        self._parts: list[str] = []
        self._room = 0
        self._nodes = 0
        self._path: list[int] = []
        self._ended = False
        self._strict = 0

    def value(self, value: Any, name: str | None = None, limits: Limits | None = None) -> dict[str, Any]:
        """*value* as {"type", "text", "length"?, "truncated"?, "masked"?, "summary"?}; never raises for a bad value.

        Args:
            name: what it is called where it was found; a secret name hides it.
            limits: for this value.
        """
        before, self.limits = self.limits, limits if limits is not None else self.limits
        self._begin()
        type_text = "?"
        try:
            type_text = self.kind(type(value))[1]
            if self.deadline is not None and self.deadline.passed():
                self.truncated = True
                text = "<not read: out of time>"
            elif name is not None:
                self.put_named(name, value, self.limits.depth)
                text = "".join(self._parts)
            else:
                self.put(value, self.limits.depth)
                text = "".join(self._parts)
        except _Full:
            text = "".join(self._parts)
        except Exception as error:  # a bad value hides only itself
            pass_on(error, packages=True)
            text = "<unreadable: %s>" % reading.type_name(type(error))
        finally:
            self.limits = before
        return self._finish(type_text, text, (limits if limits is not None else before).text)

    def text(self, value: Any, limits: Limits | None = None) -> str:
        """Only the text of *value*."""
        text: str = self.value(value, None, limits)["text"]
        return text

    def _begin(self) -> None:
        self.summary = self.length = None
        self.truncated = self.masked = self._ended = False
        self._parts = []
        self._room = self.limits.text
        self._nodes = self.limits.nodes
        self._path = []
        self._strict = 0

    def _finish(self, type_text: str, text: str, limit: int) -> dict[str, Any]:
        text = self.secrets.mask_known(text)
        if len(text) > limit + 3:
            text = text[:limit] + "..."
            self.truncated = True
        if MASK in text:
            self.masked = True
        found: dict[str, Any] = {"type": type_text, "text": text}
        if text != MASK:
            if self.length is not None:
                found["length"] = self.length
            if self.summary is not None:
                found["summary"] = self.summary
        if self.truncated:
            found["truncated"] = True
        if self.masked:
            found["masked"] = True
        return found

    # ---- what the kinds use

    def kind(self, cls: type) -> tuple[type, str, Callable[..., None]]:
        """The class (kept, so that its id stays its own), its name, and what writes its instances."""
        known = self._kinds.get(id(cls))
        if known is None:
            known = self._kinds[id(cls)] = (cls, self.secrets.mask(reading.type_name(cls)[:300]), kinds.writer_for(cls))
        return known

    def put(self, value: Any, depth: int) -> None:
        """Write *value*; *depth* more levels of containers may be opened."""
        self._nodes -= 1
        if self._nodes < 0 or (self._nodes & 31 == 0 and self.deadline is not None and self.deadline.passed()):
            self.cut()
        cls = type(value)
        known = self._kinds.get(id(cls)) or self.kind(cls)
        try:
            if self._strict and not kinds.is_plain(known[2]) and kinds.can_be_secret(value):
                self.hide(value)
                self.write(MASK)
                return
            known[2](self, value, depth)
        except _Full:
            raise
        except Exception as error:  # a bad value hides only itself
            pass_on(error, packages=True)
            self.write("<unreadable: %s>" % reading.type_name(type(error)))

    def write(self, text: str) -> None:
        """Add text of our own or text that is masked already."""
        self._parts.append(text)
        self._room -= len(text)
        if self._room < 0:
            self.truncated = True
            raise _Full

    def cut(self) -> None:
        """Say that the rest is left out, and end."""
        self.truncated = self._ended = True
        self._parts.append("...")
        raise _Full

    def close(self, closing: str) -> None:
        """End what is cut within, so that what follows is not taken for a part of it."""
        self._parts.append("..." + closing)

    def hide(self, value: Any) -> None:
        """Note that *value* is masked, so that its text is masked elsewhere too."""
        self.masked = True
        if issubclass(type(value), str) and str.__len__(value) <= 4096:
            self.secrets.learn(str.__str__(value))

    def put_field(self, name: Any, value: Any, depth: int, last: bool) -> None:
        """Like `put_named`, but one that is not the last takes at most half of the room: the others matter as well."""
        room, path = self._room, len(self._path)
        share = room if last else max(40, room // 2)
        self._room = share
        try:
            self.put_named(name, value, depth)
        except _Full:
            if last or self._ended:
                raise
            del self._path[path:]
            if not self._parts[-1].startswith("..."):
                self._parts.append("...")
        finally:
            self._room += room - share

    def put_named(self, name: Any, value: Any, depth: int) -> None:
        """Write the *value* of an attribute, argument or key called *name* (anything but a text hides nothing)."""
        text = kinds.name_of(name)
        if text is None or not is_secret_name(text) or not kinds.can_be_secret(value):
            self.put(value, depth)
        elif kinds.is_lexical(text, value):
            # its structure is needed to debug a parser; no text in it is shown, in case it is a credential after all
            self._strict += 1
            try:
                self.put(value, depth)
            finally:
                self._strict -= 1
        else:
            self.hide(value)
            self.write(MASK)

    def put_string(self, value: Any) -> None:
        """Write the repr of a str of any subclass, cut to the limit, masked before it is escaped."""
        limit = max(0, min(self.limits.string, self._room))
        if type(value) is str and len(value) <= limit:
            spans = self.secrets.spans(value)
            if not spans:
                self.write(repr(value))
                return
        text, left_out = self.clip(value, limit)
        self.write(repr(text))
        if left_out:
            self.truncated = True
            self.write("...")

    def clip(self, value: Any, limit: int, start: int = 0) -> tuple[str, bool]:
        """*limit* characters of a str of any subclass from *start* on, masked; and whether more follow.

        What is a secret in the whole text stays one where the cut goes through it.
        """
        length = str.__len__(value)
        first = max(0, start - self._margin)
        window = str.__getitem__(value, slice(first, start + limit + self._margin))
        spans = self.secrets.spans(window)
        begin, end = start - first, start - first + limit
        if not spans:
            return window[begin:end], length > start + limit
        parts, last = [], begin
        for low, high in spans:
            if high <= begin or low >= end:
                continue
            parts.append(window[last : max(low, last)])
            parts.append(MASK)
            last = min(high, end)
        parts.append(window[last:end])
        self.masked = True
        return "".join(parts), length > start + limit

    def inside(self, value: Any) -> bool:
        """Whether *value* is being written already, further out: it contains itself."""
        return id(value) in self._path

    def enter(self, value: Any) -> None:
        """Begin to write the inside of *value*."""
        self._path.append(id(value))

    def leave(self) -> None:
        """End the inside of the last value that was entered."""
        self._path.pop()

    def fields(self, depth: int) -> int:
        """How many attributes are shown: of the value that was asked for twice as many as of one inside it."""
        return self.limits.items * 2 if self.whole(depth) else self.limits.items

    def whole(self, depth: int) -> bool:
        """Whether the value being written is the one that was asked for, not one inside it."""
        return depth == self.limits.depth and not self._path
