"""A RecursionError that meets our callbacks at the limit: is there room, and the frame that it has lost to us."""

from __future__ import annotations

from types import TracebackType


def three_deep() -> None:
    """Tells whether the limit is that near: it fails then."""
    _two_deep()


def _two_deep() -> None:
    _nothing()


def _nothing() -> None:
    pass


def complete(trace: TracebackType) -> None:
    """Give a RecursionError the frame back that it has lost to us; there must be room for this and an audit hook.

    At the limit there is none for our callback: its own error takes the program's place, without the frame that has
    raised. For that one stands the frame where the recursion was once before, which looks the same in a traceback.
    """
    code, offset = trace.tb_frame.f_code, trace.tb_lasti
    inner, outer = trace.tb_frame, trace.tb_frame.f_back
    while outer is not None:
        if outer.f_lasti == offset and outer.f_code is code:
            trace.tb_next = TracebackType(None, inner, inner.f_lasti, inner.f_lineno)
            return
        inner, outer = outer, outer.f_back
