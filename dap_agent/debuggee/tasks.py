"""Who gets an exception that leaves a coroutine's task or a worker's job: the frames that wait for it, if any do."""

from __future__ import annotations

import functools
import sys
import types
from typing import Any, NamedTuple

from . import reading, stop
from .effects import Effect

_COROUTINE = 0x80 | 0x100  # CO_COROUTINE, CO_ITERABLE_COROUTINE (inspect)
_DEPTH = 20


class Onward(NamedTuple):
    """Where the exception goes on.

    Args:
        waiting: suspended frames that await it, innermost first.
        then: the task that they belong to; None where a running frame waits.
        running: the frame that goes on with it (a blocking `result()`, `run_until_complete`).
        grouped: whether it comes in an exception group.
    """

    waiting: tuple[Any, ...]
    then: Any
    running: Any
    grouped: bool


def task_that_ends(frame: Any) -> Any:
    """The task whose outermost frame *frame* is, or None."""
    if not frame.f_code.co_flags & _COROUTINE:
        return None
    task = stop._running_task()
    if task is None or task is reading.MISSING:
        return None
    coroutine = _coroutine(task)
    return task if coroutine is not None and _frame_of(coroutine) is frame else None


def _coroutine(task: Any) -> Any:
    native = reading.loaded_module("_asyncio")
    cls = reading.lookup(native, "Task") if native is not None else None
    if type(cls) is type and issubclass(type(task), cls):
        return reading.lookup(reading.class_dict(cls), "get_coro")(task)
    found = reading.own(task, "_coro")
    return None if found is reading.MISSING else found


def _frame_of(coroutine: Any) -> Any:
    if type(coroutine) is types.CoroutineType:
        return coroutine.cr_frame
    return coroutine.gi_frame if type(coroutine) is types.GeneratorType else None


def after(future: Any, frame: Any, depth: int = 0) -> Effect | Onward:
    """What becomes of the exception that ends a task or an asyncio future.

    Args:
        frame: a frame of the stack that runs now.
    """
    if depth > _DEPTH:
        return Effect("maybe", "futures that wait for futures")
    callbacks = [entry[0] if type(entry) is tuple else entry for entry in reading_list(future, "_callbacks")]
    unknown = False
    for callback in callbacks:
        found = _of_callback(callback, future, frame, depth)
        if found is not None:
            return found
        unknown = unknown or not _harmless(callback)
    if unknown:
        return Effect("maybe", "a task with a callback")
    if depth:
        return Effect("maybe", "a future that nobody waits for yet")
    return Effect("ends", "nobody awaits the task", sure=_nobody_has(future) or bool(callbacks))


def reading_list(value: Any, name: str) -> list[Any]:
    """A list that an object holds, or an empty one."""
    found = reading.read(value, name)
    return list(found) if type(found) is list else []


def _nobody_has(task: Any) -> bool:
    """Whether only the event loop still refers to the task, so that nobody can ask for its result later."""
    # asyncio's own structures hold 1 or 2 references, arguments and locals on our way here the rest (3.8 to 3.13)
    return sys.getrefcount(task) <= _REFERENCES


_REFERENCES = 6 if sys.version_info >= (3, 11) else 8


def _harmless(callback: Any) -> bool:
    """`done_callback(tasks.discard)`: keeps books, and does not ask for the result."""
    return type(callback) is types.BuiltinFunctionType and type(callback.__self__) in (set, list, dict)


def _of_callback(callback: Any, future: Any, frame: Any, depth: int) -> Effect | Onward | None:
    kind = type(callback)
    if kind.__name__ == "TaskWakeupMethWrapper" or (
        kind is types.BuiltinFunctionType and callback.__name__ in ("task_wakeup", "wakeup")
    ):
        return _waiting_task(callback.__self__)
    if kind is types.MethodType:
        name, owner = callback.__func__.__name__, callback.__self__
        if name.endswith("__wakeup"):
            return _waiting_task(owner)
        if name == "_on_task_done" and reading.module(type(owner)) == "asyncio.taskgroups":
            parent = reading.own(owner, "_parent_task")
            found = _waiting_task(parent) if parent is not reading.MISSING else None
            return found._replace(grouped=True) if isinstance(found, Onward) else found
        return None
    if kind is functools.partial:
        if getattr(callback.func, "__name__", "") == "_release_waiter":  # asyncio.wait_for below 3.12
            for waiter in callback.args:
                return after(waiter, frame, depth + 1)
        return None
    if kind is not types.FunctionType or not (callback.__module__ or "").startswith("asyncio"):
        return None
    name = callback.__qualname__
    cells = dict(zip(callback.__code__.co_freevars, callback.__closure__ or ()))
    if name == "_run_until_complete_cb":
        return _blocked_loop(future, frame)
    if name.endswith("gather.<locals>._done_callback"):
        if "return_exceptions" in cells and cells["return_exceptions"].cell_contents:
            return Effect("handled", "gather(return_exceptions=True)")
        outer = cells.get("outer")
        return after(outer.cell_contents, frame, depth + 1) if outer is not None else None
    if name == "shield.<locals>._inner_done_callback" and "outer" in cells:
        return after(cells["outer"].cell_contents, frame, depth + 1)
    if name == "_chain_future.<locals>._call_set_state":
        return _chained(cells, frame, depth)
    return None


def _chained(cells: dict[str, Any], frame: Any, depth: int) -> Effect | Onward | None:
    """`wrap_future`, `run_in_executor`, `run_coroutine_threadsafe`: the result is handed on to another future."""
    if "destination" not in cells:
        return None
    destination = cells["destination"].cell_contents
    if reading.own(destination, "_waiters") is not reading.MISSING:
        return after_job(destination, frame, depth + 1)
    return after(destination, frame, depth + 1)


def _waiting_task(task: Any) -> Effect | Onward:
    coroutine = _coroutine(task)
    frames: list[Any] = []
    while coroutine is not None and len(frames) < 1000:
        frame = _frame_of(coroutine)
        if frame is None:
            frame = getattr(coroutine, "ag_frame", None) if type(coroutine) is types.AsyncGeneratorType else None
        if frame is None:
            if type(coroutine).__name__ in ("async_generator_asend", "async_generator_athrow", "anext_awaitable"):
                return Effect("maybe", "an async generator that waits")
            break
        frames.append(frame)
        coroutine = (
            coroutine.cr_await if type(coroutine) is types.CoroutineType else getattr(coroutine, "gi_yieldfrom", None)
        )
    if not frames:
        return Effect("maybe", "a task that runs")
    return Onward(tuple(reversed(frames)), task, None, False)


def _blocked_loop(future: Any, frame: Any) -> Effect | Onward:
    """The frame that called `run_until_complete(future)`."""
    for innermost in [frame, *sys._current_frames().values()]:
        current: Any = innermost
        while current is not None:
            if current.f_code.co_name == "run_until_complete" and current.f_locals.get("future") is future:
                return Onward((), None, current.f_back, False)
            current = current.f_back
    return Effect("maybe", "an event loop of another kind")


def after_job(future: Any, frame: Any, depth: int = 0) -> Effect | Onward:
    """What becomes of the exception that ends a concurrent.futures job."""
    for callback in reading_list(future, "_done_callbacks"):
        found = _of_callback(callback, future, frame, depth)
        if found is not None:
            return found
    for innermost in sys._current_frames().values():
        current: Any = innermost
        for _ in range(10):  # it waits in threading's Condition.wait, a few frames below result()
            if current is None:
                break
            code = current.f_code
            if code.co_name == "result" and current.f_globals.get("__name__") == "concurrent.futures._base":
                if current.f_locals.get("self") is future:
                    return Onward((), None, current, False)
                break
            current = current.f_back
    return Effect("ends", "the job's future keeps it", sure=False)
