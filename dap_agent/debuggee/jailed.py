"""Evaluate in a jail: code of the model's, in a copy of the stopped thread that can change nothing outside itself."""

from __future__ import annotations

import inspect
import sys
from typing import Any, Sequence

from . import attempts, confining, evaluation, jail, reading, snapshot
from .inspection import _frame
from .stop import Stop
from .values import WIDE


def evaluate_jailed(
    stop: Stop, number: int, code: str, timeout: float = 5.0, ticket: str = "", without: Sequence[str] = ()
) -> dict[str, Any]:
    """Like `evaluation.evaluate`, in a forked copy of the program, with `await` allowed.

    Args:
        timeout: seconds after which the copy is ended, whatever it is at.
        ticket: by which it can be interrupted from outside.
        without: means of isolation not to use (`jail.run_all`).

    Returns:
        What `evaluate` gives and `effects` (sentences on what it tried to change outside), `isolation`
        (`confining.Plan.isolation`).

    Raises:
        NotThere: no such frame, *code* is not Python, or no copy can be made here.
    """
    frame, line = _frame(stop, number)
    flags = frame.f_code.co_flags & evaluation.FUTURES
    body, last = evaluation.compiled(code, flags, awaiting=True)
    namespace = evaluation.namespace_of(frame, line)
    limits = confining.Limits(seconds=max(0.05, min(float(timeout), 600.0)))
    outcome = jail.run(
        lambda: _evaluated(code, body, last, namespace), limits, without, lambda: evaluation.is_void(ticket)
    )
    picture = snapshot.Picture()
    told = outcome.result if type(outcome.result) is dict else {}
    found: dict[str, Any] = {
        "value": told.get("value"),
        "stdout": picture.mask(evaluation.shortened(outcome.stdout)),
        "stderr": picture.mask(evaluation.shortened(outcome.stderr)),
        "error": told.get("error"),
        "timed_out": outcome.timed_out,
        "seconds": round(outcome.seconds, 3),
        "notes": [*told.get("notes", []), *outcome.notes],
        "effects": [picture.mask(effect) for effect in outcome.effects],
        "isolation": outcome.isolation,
    }
    if not outcome.failure and not {"value", "error", "notes"} <= set(told):
        outcome = outcome._replace(failure="What came back is no result: the code has written to all descriptors.")
    if outcome.failure:
        kind = "TimeoutError" if outcome.timed_out else "RuntimeError"
        message = picture.mask(outcome.failure)
        if outcome.timed_out:
            message = "The code was ended after %.1f s (limit %.1f s)." % (outcome.seconds, limits.seconds)
        found["error"] = {"type": kind, "message": message, "traceback": "%s: %s" % (kind, message)}
    cleaned: dict[str, Any] = picture.clean(found)
    return cleaned


def _evaluated(code: str, body: Any, last: Any, namespace: dict[str, Any]) -> dict[str, Any]:
    """In the jail: run the code; its value and its error."""
    _take_streams()
    result: Any = reading.MISSING
    error: BaseException | None = None
    try:
        result = _run(body, last, namespace)
    except BaseException as raised:  # the code may raise anything, SystemExit too: it is its result
        error = raised
    confining.last_memory()
    picture = snapshot.Picture()
    notes: list[str] = []
    found: dict[str, Any] = {"value": None, "error": None, "notes": notes}
    if error is not None:
        attempts.refused(error)
        found["error"] = evaluation.told(error, code, picture, notes)
    elif result is not reading.MISSING:
        found["value"] = picture.formatter.value(result, None, WIDE)
    cleaned: dict[str, Any] = picture.clean(found)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # the code has closed it, or put something of its own there
            continue
    return cleaned


def _run(body: Any, last: Any, namespace: dict[str, Any]) -> Any:
    """The value of *last*; MISSING without one."""
    waits = [each is not None and bool(each.co_flags & inspect.CO_COROUTINE) for each in (body, last)]
    if not any(waits):
        exec(body, namespace)
        return eval(last, namespace) if last is not None else reading.MISSING

    async def run() -> Any:
        done: Any = eval(body, namespace)
        if waits[0]:
            await done
        value: Any = eval(last, namespace) if last is not None else reading.MISSING
        return await value if waits[1] else value

    import asyncio

    # not the program's policy: its loops may keep threads and handles of their own
    loop = asyncio.SelectorEventLoop()
    asyncio.set_event_loop(loop)
    return loop.run_until_complete(run())


def _take_streams() -> None:
    """Fresh sys.stdout and sys.stderr; what the program had buffered for its own goes nowhere."""
    import io
    import os
    import posix

    old = [getattr(sys, name, None) for name in ("stdout", "stderr", "__stdout__", "__stderr__")]
    capture = [posix.dup(1), posix.dup(2)]
    null = posix.open("/dev/null", posix.O_WRONLY)
    posix.dup2(null, 1)
    posix.dup2(null, 2)
    for stream in old:
        try:
            if type(stream) is io.TextIOWrapper:
                stream.flush()
        except Exception:  # it is closed, or its encoding can't hold what is in it
            continue
    for fd, kept in enumerate(capture, 1):
        posix.dup2(kept, fd)
        posix.close(kept)
    posix.close(null)
    for fd, name in ((1, "stdout"), (2, "stderr")):
        # without a buffer, as with `python -u`: what was printed before the end of its time is there
        raw: Any = io.FileIO(fd, "w", closefd=False)
        text = io.TextIOWrapper(raw, "utf-8", "backslashreplace", write_through=True)
        setattr(sys, name, text)
        setattr(sys, "__%s__" % name, text)
    _kept.append((old, os.devnull))


_kept: list[Any] = []  # the program's streams: freed, they would close their descriptors
