"""What happens to an exception on its way out: the words that the predictor's parts tell one another."""

from __future__ import annotations

import builtins
from typing import Any, NamedTuple

from . import reading

GROUP: Any = getattr(builtins, "BaseExceptionGroup", None)
_EXCEPTION_GROUP: Any = getattr(builtins, "ExceptionGroup", None)


class Effect(NamedTuple):
    """What one guard or boundary does.

    Args:
        kind: `pass`; `handled`; `maybe` (handled or passed: can't be known); `becomes` (another exception goes on);
            `ends` (nobody above will handle it: the thread, test, task or request fails with it).
        why: in words.
        type: of the exception that goes on, for `becomes`; None if not known.
        sure: for `ends`: whether that is known.
    """

    kind: str
    why: str = ""
    type: Any = None
    sure: bool = True


PASS = Effect("pass")
_is_subclass: Any = type.__subclasscheck__  # of two classes: by the MRO, no code of theirs is asked


class Raised:
    """The exception under way.

    Args:
        type: its class; None if it is not known.
        exc: the exception itself, if it is at hand.
        inner: for an exception group: the classes of the exceptions in it; None if not known.
    """

    def __init__(
        self, type_: type | None, exc: BaseException | None = None, inner: tuple[type, ...] | None = None
    ) -> None:
        self.type = type_
        self.exc = exc
        self.inner = inner
        if inner is None and exc is not None and self.is_group():
            self.inner = tuple(_leaves(exc, 0))

    def is_group(self) -> bool:
        """Whether it is an exception group."""
        return GROUP is not None and self.type is not None and _is_subclass(GROUP, self.type)

    def is_a(self, *classes: Any) -> bool:
        """Whether it is known to be an instance of one of the classes."""
        return self.type is not None and any(_is_subclass(cls, self.type) for cls in classes)

    def named(self, *names: str) -> bool:
        """Whether a class in its MRO has one of these qualified names (`package.module.Class`)."""
        if self.type is None:
            return False
        return any("%s.%s" % (reading.module(cls), reading.qualname(cls)) in names for cls in reading.mro(self.type))

    def caught_by(self, classes: tuple[type, ...]) -> bool | None:
        """Whether `except classes` catches it (by the MRO, as the interpreter decides); None if not known."""
        if self.type is None:
            return True if _holds(classes, BaseException) else None
        return any(_is_subclass(cls, self.type) for cls in classes)

    def caught_by_star(self, classes: tuple[type, ...]) -> bool | None:
        """The same for `except*`: None also if only a part of a group is caught."""
        if not self.is_group():
            return self.caught_by(classes)
        if self.inner is None:
            return True if _holds(classes, BaseException) else None
        hits = [any(_is_subclass(cls, leaf) for cls in classes) for leaf in self.inner]
        return None if any(hits) and not all(hits) else any(hits)

    def in_group(self) -> Raised:
        """The group that a task group makes of it."""
        if self.is_group() or GROUP is None:
            return self
        plain = self.is_a(Exception)
        return Raised(_EXCEPTION_GROUP if plain else GROUP, None, (self.type,) if self.type is not None else None)


def _leaves(exc: Any, depth: int) -> Any:
    for inner in GROUP.exceptions.__get__(exc):
        if _is_subclass(GROUP, type(inner)) and depth < 50:
            for leaf in _leaves(inner, depth + 1):
                yield leaf
        else:
            yield type(inner)


def _holds(classes: tuple[type, ...], wanted: type) -> bool:
    return any(cls is wanted for cls in classes)


def joined(effects: list[Effect]) -> Effect:
    """The one effect of alternatives of which any may be the case."""
    if not effects:
        return PASS
    kinds = {(effect.kind, id(effect.type)) for effect in effects}
    if len(kinds) == 1:
        return effects[0]
    return Effect("maybe", next(effect.why for effect in effects if effect.kind != "pass"))
