"""A thread of ours that runs no Python code, so that debuggers do not see it: C code takes one step after the other."""

from __future__ import annotations

import _thread
import collections
import operator
from functools import partial
from typing import Any, Callable, Iterable

_call: Any = getattr(operator, "call", partial.__call__)  # 3.11+


def start(steps: Iterable[Callable[[], Any]]) -> bool:
    """Have a new thread take *steps*.

    Args:
        steps: calls of C functions; what gives them is C code, too, or soon done. Below Python 3.11 `partial`s.

    Returns:
        False where there may be no more threads, or the interpreter shuts down.
    """
    # that of the interpreter: pydevd's would tell an editor of the thread
    begin = getattr(_thread, "_original_start_new_thread", None) or _thread.start_new_thread
    try:
        begin(collections.deque, (map(_call, steps), 0))
    except RuntimeError:
        return False
    return True
