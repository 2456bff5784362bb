"""A stop that an editor's debug session has made: its picture, and questions about it by the thread that stands.

Nobody tells this side when the program is resumed. So a stop is kept in pydevd's own list of the thread's frames, which
ends with it: nothing of the program lives longer because it was looked at.
"""

from __future__ import annotations

import sys
import types
from typing import Any

from . import reading, stop
from .paths import NotThere
from .pydevd_threads import Suspended, frame_of, suspended
from .stop import Stop

_KEPT = "_dap_agent_stop"
_LATE = (
    "Stopped when the exception had left the frames it was raised in: the finally, with and except blocks on its way "
    'have run, so what they change has changed since. "Raised and not going to be handled" stops before that.'
)


def halted(thread: int) -> dict[str, Any]:
    """Look at a thread that has stopped.

    Args:
        thread: the DAP id of the thread.

    Returns:
        `snapshot` (`schemas/snapshot.schema.json`), and `frame`: a DAP frame id by which code can be run in the thread.

    Raises:
        NotThere: it is not stopped.
    """
    from . import api

    found = suspended(thread)
    return {"snapshot": api.snapshot_of(_made(found)), "frame": found.number}


def stop_of(thread: int) -> Stop:
    """The stop of the thread with this DAP id.

    Raises:
        NotThere: it is not stopped.
    """
    return _made(suspended(thread))


def frame_number(thread: int, frame: int) -> int:
    """Which frame of the thread's snapshot a client knows as *frame*.

    Args:
        thread, frame: DAP ids.

    Raises:
        NotThere: none; the message says what it is instead.
    """
    found = suspended(thread)
    wanted, owner = frame_of(frame)
    if wanted is None:
        raise NotThere("That frame is gone: it belongs to an earlier stop.")
    for number, (own, _) in enumerate(_made(found).frames):
        if own is wanted:
            return number
    if owner != found.key:
        raise NotThere("That frame belongs to another thread than the one that has stopped: choose one of its frames.")
    if stop.is_hidden(wanted):
        raise NotThere("That frame is one of the debugger's own: choose one of the program's.")
    raise NotThere("That frame is not part of the stop, but of an exception before it: choose a frame further up.")


def _made(found: Suspended) -> Stop:
    kept = getattr(found.frames, _KEPT, None)
    if kept is None:
        kept = _make(found)
        setattr(found.frames, _KEPT, kept)
    made: Stop = kept
    return made


def _make(found: Suspended) -> Stop:
    failed = found.exception
    live = found.live_frame
    if failed is None:
        shown = [frame for frame in found.shown if type(frame) is types.FrameType]
        if not shown:
            raise NotThere("The thread that has stopped has no frame of Python's.")
        made = Stop.from_frame(shown[0], thread_id=found.ident)
    else:
        made = Stop.from_exception(*failed, live_frame=live)
        made.thread = stop.this_thread(None, found.ident)
        if made.frames and not _runs(made.frames[0][0], found.ident):
            made.notes.append(_LATE)
    made.task = _task(found.ident, made)
    return made


def _runs(frame: types.FrameType, ident: int) -> bool:
    """Whether a thread is in *frame* or in what it calls."""
    running = sys._current_frames().get(ident)
    while running is not None and running is not frame:
        running = running.f_back
    return running is not None


def _task(ident: int, made: Stop) -> dict[str, Any] | None:
    """The asyncio task that runs in another thread: by the loop's own word, else by a frame of the task's."""
    asyncio = reading.loaded_module("_asyncio")
    running = reading.lookup(asyncio, "_current_tasks") if asyncio is not None else None
    if running is None or not issubclass(type(running), dict):
        return None
    frames = {id(frame) for frame, _ in made.frames}
    for loop, task in reading.entries(running, 1000):
        owner = reading.own(loop, "_thread_id")
        if owner == ident if type(owner) is int else _frame_of(task) in frames:
            return stop.this_task(task)
    return None


def _frame_of(task: Any) -> int | None:
    native = reading.loaded_module("_asyncio")
    cls = reading.lookup(native, "Task") if native is not None else None
    if cls is None or not issubclass(type(task), cls):
        return None
    coroutine = reading.lookup(reading.class_dict(cls), "get_coro")(task)
    return id(coroutine.cr_frame) if type(coroutine) is types.CoroutineType else None
