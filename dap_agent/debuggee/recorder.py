"""The flight recorder: which functions of the user's own were called before the stop.

The culprit has often returned before the failure: its name, and what it got and gave, is what a stack cannot show.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from _thread import get_ident
from types import FrameType, FunctionType
from typing import TYPE_CHECKING, Any

from . import call_events, calls, hooks, paths, recorded_tests, secrets, sources, stop

if TYPE_CHECKING:
    from . import call_profile
    from .snapshot import Picture

SHOWN = 20
"""Functions that a snapshot carries."""

_PAGE = 50

_memory: calls.Memory | None = None
_source: call_events.CallEvents | call_profile.CallProfile | None = None
_reasons: dict[str, int] = {}  # why nothing is recorded at present, and the thread that wants it so
_why_not = (
    "The recorder is off: it was not started, or is switched off (--no-record, in an editor "
    '"dapAgent": {"record": false}).'
)
_followed = False  # forks and tests, for good


def start(hidden: tuple[str, ...] = (), running: bool = False, in_full: bool = False) -> bool:
    """Record from now on; False if that cannot be done: stops work without it, and who asks for it later is told why.

    Args:
        hidden: folders whose code is not the user's.
        running: whether the program runs already: then its functions, or threads, are looked for.
        in_full: below Python 3.12 see each call, whatever that costs.
    """
    global _why_not
    if _memory is not None:
        return True
    try:
        return _begin(hidden, running, in_full)
    except Exception as error:  # whatever is odd in this interpreter
        _why_not = "The recorder is off: it could not begin (%s: %s)." % (type(error).__name__, error)
        stop_recording()
        return False


def _begin(hidden: tuple[str, ...], running: bool, in_full: bool) -> bool:
    global _memory, _source, _why_not, _followed
    memory = calls.Memory((stop.OURS, *hidden))
    source: call_events.CallEvents | call_profile.CallProfile
    if sys.version_info >= (3, 12):
        source = call_events.CallEvents(memory)
        if not source.begin():
            _why_not = "The recorder is off: the program uses the interpreter's tools for events itself."
            return False
    else:
        from . import call_profile

        source = call_profile.CallProfile(memory, not in_full)
        if not source.begin(running):
            _why_not = "The recorder is off: calls cannot be watched here (%s)." % source.why_not
            return False
    _memory, _source = memory, source
    atexit.register(source.end)  # later, what our functions refer to is gone
    hooks.listen(source.saw, spare_values)
    if not _followed:
        _followed = True
        os.register_at_fork(after_in_child=_after_fork)
        recorded_tests.install(clear, lambda wanted: (freeze if wanted else thaw)("test"))
    if running and sys.version_info >= (3, 12):
        for each in gc.get_objects():
            if type(each) is FunctionType:
                source.saw(each.__code__)
    return True


def stop_recording() -> None:
    """Record no more, and leave nothing in the interpreter that costs."""
    global _memory, _source
    if _source is None:
        return
    hooks.listen(_nothing, _nothing)
    atexit.unregister(_source.end)
    _source.end()
    _reasons.clear()
    _memory = _source = None


def _nothing(*_: Any) -> None:
    """What is called at events that nobody wants to hear of any more."""


def clear() -> None:
    """Forget what was called until now: a test begins."""
    if _memory is not None and _source is not None:
        _memory.clear()
        thaw("test")
        _source.again()


def freeze(reason: str) -> None:
    """Record nothing until `thaw`: what is called now is no part of what led to the failure."""
    if _source is not None:
        _reasons[reason] = get_ident()
        _source.frozen = True


def thaw(reason: str) -> None:
    """Take a `freeze` back."""
    if _source is not None and _reasons.pop(reason, None) is not None and not _reasons:
        _source.frozen = False
        _source.again()


def spare_values() -> None:
    """Read no more values: the program listens to audit events, of which reading makes some."""
    if _memory is not None:
        _memory.reads_values = False


def _after_fork() -> None:
    """A fork's child begins anew. One that was forked by a thread that stands (a jail) records nothing."""
    if _memory is None or _source is None:
        return
    me = get_ident()
    for reason in [reason for reason, ident in _reasons.items() if ident != me]:
        del _reasons[reason]
    _memory.after_fork()
    if not _reasons:
        _source.frozen = False
        _source.again()


# ---- what is told of it


def called(at: stop.Stop, picture: Picture) -> list[dict[str, Any]] | None:
    """The functions that were called last, newest last, for a snapshot; None if nothing is recorded."""
    if _memory is None:
        return None
    functions = [record for record in _memory.records.copy().values() if record.calls]
    records = sorted(functions, key=lambda record: record.order)[-SHOWN:]
    return [_summary(record, at, picture) for record in records]


def history(
    at: stop.Stop, function: str = "", order: str = "newest", start: int = 0, count: int = 20
) -> dict[str, Any]:
    """The functions that were called, a page of them.

    Args:
        function: only those with this text in their name or file, or of just this name.
        order: `newest` first, `oldest` first, or `calls`: those that were called most often first.
        start: the first one that is told.
        count: how many of them.

    Returns:
        `functions`, each with its first and newest calls that were read; `total` of those that match; `start`.

    Raises:
        NotThere: nothing is recorded.
    """
    if _memory is None:
        raise paths.NotThere(_why_not)
    records = [record for record in _memory.records.copy().values() if record.calls]
    records = [record for record in records if function in record.name or function in record.file]
    if order == "calls":
        records.sort(key=lambda record: (-record.calls, -record.order))
    else:
        records.sort(key=lambda record: record.order, reverse=order != "oldest")
    from .snapshot import Picture

    picture = Picture()
    chosen = records[start : start + min(count, _PAGE)]
    functions = []
    for record in chosen:
        found = _summary(record, at, picture)
        read = [call for call in [record.first, *record.newest] if call is not None]
        found["read"] = [_masked(call.to_json(), picture) for call in read]
        functions.append(found)
    return {"functions": functions, "total": len(records), "start": start, "note": seen_partly()}


def seen_partly() -> str | None:
    """What has to be known of the record of a program that calls too often to be watched all the time; else None."""
    if _memory is None or not _memory.partly or _source is None or not hasattr(_source, "unseen"):
        return None
    return (
        "Calls were watched in short windows, about %.0f %% of the time, because the program calls very often (Python "
        "below 3.12): counts are lower bounds, and a function that is not listed may have been called."
        % max(1, 100 * (1 - _source.unseen()))
    )


def arguments_at(frame: FrameType) -> dict[str, Any]:
    """See `calls.Memory.arguments_at`; nothing where nothing is recorded."""
    return _memory.arguments_at(frame) if _memory is not None else {}


def _summary(record: calls.Record, at: stop.Stop, picture: Picture) -> dict[str, Any]:

    call = record.newest[-1] if record.newest else record.first
    places = {(frame.f_code.co_filename, frame.f_code.co_firstlineno) for frame, _ in at.frames}
    thread = stop.thread_names().get(record.thread) or (call.thread if call is not None else None)
    found = {
        "function": picture.mask(record.name),
        "file": sources.absolute(record.file),
        "line": record.line,
        "calls": record.calls,
        "thinned": record.thinned or (_memory is not None and _memory.partly),
        "order": record.order,
        "on_stack": record.place in places,
        "thread": thread or "Thread %d" % record.thread,
        "task": call.task if call is not None else None,
        "left_with": record.left_with,
        "arguments": call.arguments if call is not None else None,
        "arguments_of": call.order if call is not None else None,
        "result": call.result if call is not None else None,
    }
    masked: dict[str, Any] = _masked(found, picture)
    return masked


def _masked(value: Any, picture: Picture) -> Any:
    """*value* without what the recorder has met under secret names; it is masked by shape when it is read."""
    assert _memory is not None
    if type(value) is str:
        return _memory.mask_known(picture.secrets.mask_known(value))
    if type(value) is list:
        return [_masked(item, picture) for item in value]
    if type(value) is dict:
        copy = {key: _masked(item, picture) for key, item in value.items()}
        if secrets.MASK in str(copy.get("text", "")) and "type" in copy:
            copy["masked"] = True
        return copy
    return value
