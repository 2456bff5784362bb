"""One stop: the exception or the pause, its frames, the thread and task they belong to, the output so far."""

from __future__ import annotations

import builtins
import os
import sys
import threading
import types
from typing import Any, List, Tuple

from . import interrupts, reading

OURS = "<dap-agent"
"""What the file names of our own code in the debuggee begin with."""


Frames = List[Tuple[types.FrameType, int]]
"""Frames and the line each is at, innermost first."""


class Stop:
    """A paused thread.

    Args:
        reason: `exception`, `pause` or `exit`.
        frames: (frame, line) pairs, innermost first.
        exc: the exception, None at a pause.
        tb: its traceback.
        thread: `id`, `name`, `main`.
        task: `name` and `coroutine` of the asyncio task, or None.
    """

    def __init__(
        self,
        reason: str,
        frames: Frames,
        exc: BaseException | None = None,
        tb: types.TracebackType | None = None,
        thread: dict[str, Any] | None = None,
        task: dict[str, Any] | None = None,
    ) -> None:
        self.reason = reason
        self.frames = frames
        self.exc = exc
        self.tb = tb
        self.thread = thread if thread is not None else this_thread(None)
        self.task = task
        self.output: dict[str, list[str]] = {"stdout": [], "stderr": []}
        self.notes: list[str] = []

    @classmethod
    def from_exception(
        cls,
        exc: BaseException,
        tb: types.TracebackType | None = None,
        thread_name: str | None = None,
        live_frame: types.FrameType | None = None,
        task: Any = None,
        reason: str = "exception",
    ) -> Stop:
        """The stop at *exc*, made in the thread that it was raised in.

        Args:
            tb: the traceback, if not the one that the exception holds.
            thread_name: if it is known under another name than `threading` has.
            live_frame: the innermost frame that still runs; it and its callers are added outside of the traceback's.
            task: an asyncio task that the exception has ended; without one the running task is found.
        """
        if tb is None:
            tb = BaseException.__dict__["__traceback__"].__get__(exc)
        frames: Frames = []
        for entry in [tb, *_member_tracebacks(exc)]:
            while entry is not None:
                frames.append((entry.tb_frame, _line(entry.tb_lineno, entry.tb_frame)))
                entry = entry.tb_next
        frames.reverse()
        if live_frame is not None:
            frames.extend(_outside(frames, live_frame))
        return cls(reason, without_debugger(frames), exc, tb, this_thread(thread_name), this_task(task))

    @classmethod
    def from_frame(
        cls,
        frame: types.FrameType,
        thread_name: str | None = None,
        thread_id: int | None = None,
        task: Any = None,
        reason: str = "pause",
    ) -> Stop:
        """A pause at a live frame.

        Args:
            thread_id: of the thread that *frame* runs in; None: this one.
        """
        frames = without_debugger(users_part(live_frames(frame)))
        told = this_task(task) if thread_id in (None, threading.get_ident()) or task is not None else None
        return cls(reason, frames, None, None, this_thread(thread_name, thread_id), told)


def _member_tracebacks(exc: BaseException) -> list[types.TracebackType | None]:
    """The tracebacks down to the first leaf of an exception group: the failure is there, not at the group."""
    found: list[types.TracebackType | None] = []
    group = getattr(builtins, "BaseExceptionGroup", None)
    while group is not None and issubclass(type(exc), group) and len(found) < 20:
        exc = group.exceptions.__get__(exc)[0]
        found.append(BaseException.__dict__["__traceback__"].__get__(exc))
    return found


def live_frames(frame: types.FrameType | None) -> Frames:
    """*frame* and its callers."""
    found = []
    while frame is not None:
        found.append((frame, _line(frame.f_lineno, frame)))
        frame = frame.f_back
    return found


def _line(line: int | None, frame: types.FrameType) -> int:
    """The line; an instruction without one (3.11+) stands for the function's first."""
    return line if line is not None else frame.f_code.co_firstlineno


def _outside(inner: Frames, live: types.FrameType) -> Frames:
    """The live frames that call the outermost of *inner*."""
    chain = live_frames(live)
    if inner:
        base = inner[-1][0]
        for i, (frame, _) in enumerate(chain):
            if frame is base:
                return chain[i + 1 :]
    return chain


def is_hidden(frame: types.FrameType) -> bool:
    """Whether a frame is the debugger's or ours."""
    filename = frame.f_code.co_filename
    if filename.startswith(OURS):
        return True
    folders = debugger_folders()
    if filename.startswith(folders):
        return True
    # started by `launch`, debugpy runs from debugpy/launcher/../../debugpy
    return os.pardir in filename and os.path.normpath(filename).startswith(folders)


def debugger_folders() -> tuple[str, ...]:
    """Where the loaded debugger lives; a program of the user's may well have a folder called debugpy."""
    folders = []
    for name in ("debugpy", "pydevd"):
        module = reading.loaded_module(name)
        file = reading.text_of(reading.lookup(module, "__file__")) if module is not None else None
        if file is not None:
            folders += [os.path.dirname(file) + os.sep, os.path.normpath(os.path.dirname(file)) + os.sep]
    return tuple(folders)


def users_part(frames: Frames) -> Frames:
    """Live *frames* without those that the debugger has called in the user's: a paused thread waits inside of it.

    The debugger's frames at the other end, which have started the program or the thread, do not count.
    """
    base = len(frames)
    while base and (is_hidden(frames[base - 1][0]) or _starts(frames[base - 1][0])):
        base -= 1
    calls = [n for n, (frame, _) in enumerate(frames[:base]) if is_hidden(frame)]
    return frames[calls[-1] + 1 :] if calls else frames


def _starts(frame: types.FrameType) -> bool:
    """Whether a frame is of the standard library's that start a program or a thread."""
    name = os.path.basename(frame.f_code.co_filename)
    return name in ("runpy.py", "<frozen runpy>") or (name == "threading.py" and "bootstrap" in frame.f_code.co_name)


def without_debugger(frames: Frames) -> Frames:
    """*frames* without those of the debugger and ours, and without the runpy that they start the program with."""
    kept = [pair for pair in frames if not is_hidden(pair[0])]
    if len(kept) < len(frames):
        while kept and os.path.basename(kept[-1][0].f_code.co_filename) in ("runpy.py", "<frozen runpy>"):
            kept.pop()
    return kept


def this_thread(name: str | None, ident: int | None = None) -> dict[str, Any]:
    """`id`, `name` and `main` of a thread; this one if *ident* is None."""
    if ident is None:
        ident = threading.get_ident()
    found = thread_names()
    main = reading.own(threading._main_thread, "_ident")  # type: ignore[attr-defined]
    return {"id": ident, "name": name or found.get(ident) or "Thread %d" % ident, "main": ident == main}


def thread_names() -> dict[int, str]:
    """Names by ident, without running a Thread's properties."""
    names: dict[int, str] = {}
    active = threading._active  # type: ignore[attr-defined]
    for ident, thread in reading.entries(active, 10000) if issubclass(type(active), dict) else []:
        name = reading.text_of(reading.own(thread, "_name"))
        if type(ident) is int and name is not None:
            names[ident] = name
    return names


def is_debuggers(thread: Any) -> bool:
    """Whether a Thread is marked as one of the debugger's own."""
    return any(reading.own(thread, name) is True for name in ("is_pydev_daemon_thread", "pydev_do_not_trace"))


def debugger_threads() -> set[int]:
    """Idents of the debugger's own threads."""
    found = set()
    active = threading._active  # type: ignore[attr-defined]
    for ident, thread in reading.entries(active, 10000) if issubclass(type(active), dict) else []:
        where = reading.module(type(thread)) or ""
        if is_debuggers(thread) or where.startswith(("pydevd", "_pydevd", "_pydev_bundle", "debugpy")):
            found.add(ident)
    return found


def this_task(task: Any = None) -> dict[str, Any] | None:
    """Name and coroutine of an asyncio task: the given one, or the one that runs in this thread."""
    if task is None:
        task = _running_task()
    if task is None:
        return None
    try:
        return _told(task)
    except Exception as error:  # another implementation of tasks: no name can be read there without running it
        interrupts.pass_on(error)
        return {"name": reading.type_name(type(task)), "coroutine": "?"}


def _running_task() -> Any:
    asyncio = reading.loaded_module("_asyncio")
    if asyncio is None:
        return None
    running = reading.lookup(asyncio, "_get_running_loop")
    if type(running) is not types.BuiltinFunctionType:
        return None
    loop = running()
    if loop is None:
        return None
    tasks = reading.lookup(asyncio, "_current_tasks")
    if issubclass(type(tasks), dict):
        for key, task in reading.entries(tasks, 1000):
            if key is loop:
                return task
        return None
    current = reading.lookup(asyncio, "current_task")  # 3.14: kept by the interpreter
    return current(loop) if type(current) is types.BuiltinFunctionType else None


def _told(task: Any) -> dict[str, Any]:
    native = reading.loaded_module("_asyncio")
    cls = reading.lookup(native, "Task") if native is not None else None
    name = coroutine = reading.MISSING
    if cls is not None and issubclass(type(task), cls):
        methods = reading.class_dict(cls)
        name = reading.lookup(methods, "get_name")(task)
        coroutine = reading.lookup(methods, "get_coro")(task)
    else:  # asyncio's Python implementation keeps both in the instance
        name, coroutine = reading.own(task, "_name"), reading.own(task, "_coro")
    code_name = None
    if type(coroutine) in (types.CoroutineType, types.GeneratorType):
        code_name = coroutine.__qualname__
    return {
        "name": reading.text_of(name) or reading.type_name(type(task)),
        "coroutine": code_name or reading.type_name(type(coroutine)),
    }


def other_stacks(own_id: int, limit: int, depth: int) -> list[tuple[int, str, Frames]]:
    """Id, name and innermost frames of up to *limit* other threads, the debugger's left out."""
    names, hidden = thread_names(), debugger_threads()
    found = []
    for ident, frame in list(sys._current_frames().items()):
        if ident == own_id or ident in hidden:
            continue
        frames = without_debugger(users_part(live_frames(frame)))
        if not frames:
            continue
        found.append((ident, names.get(ident, "Thread %d" % ident), frames[:depth]))
        if len(found) == limit:
            break
    return found
