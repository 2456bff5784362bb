"""What still runs a function's old code after it was swapped: nothing can change a frame that has begun."""

from __future__ import annotations

import gc
import sys
import threading
import types
from typing import List, Sequence, Tuple

_KINDS = (
    (types.GeneratorType, "gi_code", "gi_frame", "generator"),
    (types.CoroutineType, "cr_code", "cr_frame", "coroutine"),
    (types.AsyncGeneratorType, "ag_code", "ag_frame", "asynchronous generator"),
)


def still_running(codes: Sequence[types.CodeType]) -> List[Tuple[types.CodeType, str]]:
    """Which of the old *codes* still run, each with a sentence's rest on it."""
    if not codes:
        return []
    wanted = {id(code): code for code in codes}
    found: List[Tuple[types.CodeType, str]] = []
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, innermost in sys._current_frames().items():
        frame: "types.FrameType | None" = innermost
        while frame is not None:
            if id(frame.f_code) in wanted:
                how = "the call that runs in thread %s keeps its old code until it returns" % names.get(ident, ident)
                found.append((frame.f_code, how))
            frame = frame.f_back
    counts: "dict[tuple[int, str], int]" = {}
    for each in gc.get_referrers(*codes):
        for kind, code, own_frame, word in _KINDS:
            if type(each) is kind and id(getattr(each, code)) in wanted and getattr(each, own_frame) is not None:
                key = id(getattr(each, code)), word
                counts[key] = counts.get(key, 0) + 1
    for (number, word), count in counts.items():
        how = "1 %s that has begun keeps its old code" if count == 1 else "%d %ss that have begun keep their old code"
        found.append((wanted[number], how % (word if count == 1 else (count, word))))
    return found
