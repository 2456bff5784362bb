"""The one door into the debuggee side: `call(name, arguments)` answers a question about the current stop with JSON.

Everything else is imported when the first question comes: a process that never fails pays for nothing.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    from .stop import Stop

_HEADROOM = 400  # frames of our own, at most, on top of a stack that may be at its limit

_current: list[Stop] = []


def set_stop(stop: Stop | None) -> None:
    """Make *stop* the one that questions are about; None when the program goes on."""
    del _current[:]
    recorder = sys.modules.get("%s.recorder" % __package__)
    if stop is not None:
        if recorder is not None:
            recorder.freeze("stop")
        _current.append(stop)
    elif recorder is not None:
        recorder.thaw("stop")


def current_stop() -> Stop | None:
    """The stop that questions are about."""
    return _current[0] if _current else None


def snapshot_of(stop: Stop) -> dict[str, Any]:
    """The picture of *stop* (`schemas/snapshot.schema.json`)."""
    from . import snapshot

    try:
        with _Headroom():
            return snapshot.take(stop)
    finally:
        _forget()


def call(name: str, arguments_json: str = "{}") -> str:
    """Answer one question; never raises.

    Args:
        name: `snapshot`, `frame`, `variable`, `members`, `history`, `evaluate`, `evaluate_jailed`, `try_fix`,
            `trace`, `restart_frame`, `restart_shown` (all with `halted`: the DAP id of a thread that an editor's
            debugger has stopped) or `threads`; `interrupt` ends what is evaluated or tried; `halted` or
            `frame_number` (`suspended.py`); for a program that ran before us `attach`, `detach`, `pausable`, `paused`
            or `unpause` (`attached.py`); `stops` or `no_stops` (`raising.py`); `reload` (`reload.py`).
        arguments_json: an object with the arguments of the function of that name (`inspection.py`, `evaluation.py`,
            `jailed.py`).

    Returns:
        JSON: {"ok": true, "result": ...} or {"ok": false, "error": {"type", "message"}}; the type is `NotThere`
        where the question was wrong, else that of an error of ours.
    """
    try:
        import json

        with _Headroom():
            return json.dumps({"ok": True, "result": _answer(name, json.loads(arguments_json))})
    except Exception as error:  # the answer says what failed
        return _failed(error)
    finally:
        _forget()


def _failed(error: Exception) -> str:
    import json

    from . import secrets

    # our own exceptions: their texts are ours, but may quote a name or value of the program's
    message = secrets.mask_text(str(error)) if type(error).__module__.startswith((__package__, "builtins")) else ""
    if type(error).__name__ != "NotThere":
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        if place is not None:
            code = place.tb_frame.f_code
            message += " (in %s, %s line %d)" % (code.co_name, code.co_filename.rpartition("/")[2], place.tb_lineno)
    return json.dumps({"ok": False, "error": {"type": type(error).__name__, "message": message}})


def _answer(name: str, arguments: dict[str, Any]) -> Any:
    if name in ("attach", "detach", "pausable", "paused", "unpause"):
        from . import attached

        return getattr(attached, name)(**arguments)
    if name in ("stops", "no_stops"):
        from . import raising

        return raising.configure(**arguments) if name == "stops" else raising.disable()
    if name in ("halted", "frame_number"):
        from . import suspended

        return suspended.halted(**arguments) if name == "halted" else suspended.frame_number(**arguments)
    if name == "reload":
        from . import reload

        return reload.reload(**arguments)
    from . import evaluation, inspection, paths, snapshot

    if name == "interrupt":
        return evaluation.interrupt(**arguments)
    questions: dict[str, Callable[..., Any]] = {
        "snapshot": snapshot.take,
        "frame": inspection.frame,
        "variable": inspection.variable,
        "members": inspection.members,
        "evaluate": evaluation.evaluate,
    }
    if name == "evaluate_jailed":
        from . import jailed

        questions[name] = jailed.evaluate_jailed
    if name == "try_fix":
        from . import trial

        questions[name] = trial.try_fix
    if name in ("restart_frame", "restart_shown"):
        from . import restart

        questions[name] = getattr(restart, name)
    if name == "trace":
        from . import traced

        questions[name] = traced.trace
    if name == "history":
        from . import recorder

        questions[name] = recorder.history
    if name == "threads":
        return snapshot.all_threads()
    if name not in questions:
        raise paths.NotThere("There is no question %s; there are: threads, %s." % (name, ", ".join(questions)))
    stop = _stop(name, arguments.pop("halted", None))
    if stop is None:
        raise paths.NotThere("The program is not stopped: it was resumed, or has not failed yet.")
    return questions[name](stop, **arguments)


def _stop(name: str, thread: int | None) -> Stop | None:
    """The stop that question *name* is about: that of the thread with this DAP id, in an editor's session."""
    if thread is None:
        return current_stop()
    from . import pydevd_threads, suspended

    if name in ("evaluate", "evaluate_jailed", "try_fix", "restart_frame", "restart_shown", "trace"):
        pydevd_threads.hush()
    return suspended.stop_of(thread)


def _forget() -> None:
    """Keep nothing of the program alive between questions."""
    for name in ("reading", "sources"):
        module = sys.modules.get("%s.%s" % (__package__, name))
        if module is not None:
            module.forget()


class _Headroom:
    """Raises the recursion limit where the stack is nearly full: a RecursionError is a stop like any other."""

    def __init__(self) -> None:
        self._before: int | None = None

    def __enter__(self) -> None:
        limit = sys.getrecursionlimit()
        depth = 0
        frame = sys._getframe()
        while frame is not None and depth < limit:
            frame = frame.f_back  # type: ignore[assignment]
            depth += 1
        if limit - depth < _HEADROOM:
            self._before = limit
            sys.setrecursionlimit(limit + 2 * _HEADROOM)

    def __exit__(self, *exc: object) -> None:
        if self._before is not None:
            try:
                sys.setrecursionlimit(self._before)
            except RecursionError:
                pass  # 3.8: refused this close to the old limit; the program keeps the higher one
