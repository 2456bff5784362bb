"""The judgement of one raise: whether a stop is made at it. The debugger (raising.py) and our own events ask for it."""

from __future__ import annotations

import sys
import threading
from typing import Any, Callable, Iterable

from . import reading

_predict: Any = None
_quick: Any = None


def load() -> None:
    """Import what a judgement needs: not in the middle of a raise, and not where no raise is judged."""
    global _predict, _quick
    from . import predict

    _predict = predict
    if sys.version_info >= (3, 12):
        from . import quick

        _quick = quick


class Ignored:
    """Exceptions that are never a stop.

    Args:
        types: names of exception classes, bare or qualified; their subclasses are ignored too.
        modules: names of modules and packages; what is raised in their code is ignored.
    """

    def __init__(self, types: Iterable[str] = (), modules: Iterable[str] = ()) -> None:
        self.types = frozenset(types)
        self.modules = tuple(modules)

    def ignores(self, exc_type: type, frame: Any) -> bool:
        """Whether an exception of this class, raised in *frame*, is one of them."""
        return self.ignores_module(frame) or self.ignores_type(exc_type)

    def ignores_type(self, exc_type: type) -> bool:
        """Whether the class or one of its bases is named."""
        if not self.types:
            return False
        for cls in reading.mro(exc_type):
            name = reading.qualname(cls)
            if name in self.types or "%s.%s" % (reading.module(cls), name) in self.types:
                return True
        return False

    def ignores_module(self, frame: Any) -> bool:
        """Whether *frame* runs code of a module that is named."""
        if not self.modules:
            return False
        module = reading.text_of(frame.f_globals.get("__name__")) or ""
        return any(module == ignored or module.startswith(ignored + ".") for ignored in self.modules)


class Judge:
    """Judges raises (after `load`), and remembers for each thread at which one it has had its stop.

    Args:
        seen: whether a frame is one whose raises are told of: then its callers need not be asked about them.

    Attributes:
        ignored: what is never a stop.
        asked: how many raises have been judged so far.
        stops: how many of them were stops.
        why: the reason of the last stop, in words.
        seen: see above.
    """

    def __init__(self, seen: Callable[[Any], bool]) -> None:
        self.ignored = Ignored()
        self.asked = 0
        self.stops = 0
        self.why = ""
        self.seen = seen
        self._here = threading.local()

    def stops_at(self, exc_type: type, trace: Any, exc: BaseException | None = None) -> bool:
        """Whether to stop: it is the raise itself, and for certain nothing will handle it.

        Args:
            exc_type: the class of the exception.
            trace: its traceback so far, which begins with the frame that is asked about.
            exc: the exception, where it is at hand.
        """
        if self._asked_before(trace) or self.ignored.ignores(exc_type, trace.tb_frame):
            return False
        self.asked += 1
        if exc is None and _quick is not None and _quick.handled(exc_type, trace.tb_frame) is not None:
            return False  # nearly all raises
        verdict = _predict.will_be_unhandled(exc_type, exc, trace.tb_frame)
        if not (verdict.unhandled and verdict.certain) or self._consequence():
            return False
        self._here.stopped = _place(trace)
        self.stops += 1
        self.why = verdict.why
        return True

    def _asked_before(self, trace: Any) -> bool:
        """Whether this is a caller's frame that the exception gets to, and its raise was judged already.

        Below 3.12 frames of libraries are not traced with justMyCode: then the user's first frame is asked about.
        """
        raise_ = _place(trace)
        before, self._here.asked = getattr(self._here, "asked", None), raise_
        if raise_ == before and trace.tb_next is not None:
            return True
        inner = trace.tb_next
        while inner is not None:
            if self.seen(inner.tb_frame):
                return True
            inner = inner.tb_next
        return False

    def _consequence(self) -> bool:
        """Whether it is raised while the exception of the last stop is being dealt with: `raise X from e`."""
        last = getattr(self._here, "stopped", None)
        if last is None:
            return False
        handled = sys.exc_info()[1]
        for _ in range(20):
            if handled is None:
                return False
            if _place(BaseException.__dict__["__traceback__"].__get__(handled)) == last:
                return True
            handled = BaseException.__dict__["__context__"].__get__(handled)
        return False


def _place(trace: Any) -> tuple[int, int] | None:
    """Stands for the raise that a traceback leads to; its frame is not kept alive for it, but by the exception."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return None if trace is None else (id(trace.tb_frame), trace.tb_lasti)
