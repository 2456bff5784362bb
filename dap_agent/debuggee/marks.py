"""Which exceptions have had their stop: a mark on the object, as BaseException takes no weak references.

The mark goes where the exception goes: into a caller's frame, another thread, a process that it is pickled for.
"""

from __future__ import annotations

import builtins
from typing import Any

SEEN = "__dap_agent_seen__"
"""Attribute of an exception for which there has been a stop."""

AT_RAISE = "willBeUnhandled"
"""How an exception is marked whose stop was made at its raise: for it, or another one raised in its place."""

_CHAIN = 20  # causes and contexts that are followed

# Read past what a class of the program's may have put in front: a `__getattribute__` or a metaclass that raises.
_attributes = BaseException.__dict__["__dict__"].__get__
_cause = BaseException.__dict__["__cause__"].__get__
_context = BaseException.__dict__["__context__"].__get__
_group: Any = getattr(builtins, "BaseExceptionGroup", None)


def put(exc: BaseException, how: Any = True) -> None:
    """Mark *exc*: it has had its stop; *how* is for whoever asks."""
    _attributes(exc)[SEEN] = how


def of(exc: BaseException) -> Any:
    """How *exc* is marked; None if it is not."""
    return _attributes(exc).get(SEEN)


def take(exc: BaseException) -> None:
    """Remove the mark: its stop could not be made."""
    _attributes(exc).pop(SEEN, None)


def told_at_raise(exc: BaseException) -> bool:
    """Whether there was a stop at a raise for what *exc* tells: it follows from that one, or is a group of such."""
    return raised_for(exc, AT_RAISE) or _of_such(exc, 0)


def _of_such(exc: BaseException, depth: int) -> bool:
    if _group is None or not issubclass(type(exc), _group) or depth > _CHAIN:
        return False
    for inner in _group.exceptions.__get__(exc):
        if of(inner) != AT_RAISE and not raised_for(inner, AT_RAISE) and not _of_such(inner, depth + 1):
            return False
    return True


def raised_for(exc: BaseException, how: Any) -> bool:
    """Whether *exc* was raised while an exception marked *how* was dealt with (`raise New from old`)."""
    met = {id(exc)}
    left = [_cause(exc), _context(exc)]
    while left and len(met) < _CHAIN:
        found = left.pop()
        if found is None or id(found) in met:
            continue
        if of(found) == how:
            return True
        met.add(id(found))
        left += [_cause(found), _context(found)]
    return False
