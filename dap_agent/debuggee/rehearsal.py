"""The rehearsal of a restart: the very same is done in a jailed copy of this process, and what becomes of it is told.

The copy has the stack of this thread: the program's frames, on top of them those of the debugger and ours, which wait.
All of these are left at once, the outermost of them by returning, so that the interpreter goes on with the exception.
"""

from __future__ import annotations

import ctypes
import signal
import sys
import types
from typing import Any, Callable, Dict, List, NoReturn

from . import clib, confining, evaluation, jail, jail_child, jailed, landing, reading, snapshot
from .again import Target
from .calling import in_a_loop
from .stop import Stop
from .values import WIDE

_AFTER = 0.05  # seconds that the program is watched after the call has returned
_CRASHES = ("SIGSEGV", "SIGBUS", "SIGILL", "SIGABRT", "SIGFPE", "SIGTRAP", "SIGSYS")
_COROUTINE = 0x80 | 0x100  # CO_COROUTINE, CO_ITERABLE_COROUTINE
_LANDED = "landed"


class _Out(BaseException):
    """Leaves the frames of the debugger."""


class _Done:
    """Something to await that has been awaited."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __await__(self) -> Any:
        """At once."""
        return self._value
        yield


def rehearse(
    stop: Stop,
    target: Target,
    raiser: types.FrameType,
    name: str,
    call: landing.Call,
    limit: float,
    ticket: str,
) -> Dict[str, Any]:
    """See `restart.restart_frame`: its `rehearsal`, and `notes`.

    Raises:
        NotThere: it can't be rehearsed here.
    """
    began = reading.Deadline(0)
    landing.site_of(target.frame.f_code)
    limits = confining.Limits(seconds=max(0.05, min(limit, 600.0)))
    outcome = jail.run_all(
        [lambda: _leave(target, raiser, call)], limits, (), lambda: evaluation.is_void(ticket), goes_on=True
    )[0]
    picture = snapshot.Picture()
    told: Dict[str, Any] = outcome.result if type(outcome.result) is dict else {}
    found: Dict[str, Any] = {
        "ended": told.get("ended", "not reached"), "summary": "", "value": told.get("value"),
        "error": told.get("error"), "stdout": picture.mask(evaluation.shortened(outcome.stdout)),
        "stderr": picture.mask(evaluation.shortened(outcome.stderr)),
        "effects": [picture.mask(effect) for effect in outcome.effects], "seconds": round(outcome.seconds, 6),
        "took": 0.0, "notes": [note for note in outcome.notes if note != _LANDED],
    }  # fmt: skip
    landed = _LANDED in outcome.notes
    crash = _crash(outcome.status)
    if crash:
        found["ended"] = "crashed"
        found["summary"] = "In the rehearsal, in a copy of the program, it crashed (%s)." % crash
    elif not told and outcome.timed_out and landed:
        found["ended"] = "timeout"
        found["summary"] = "In the rehearsal, in a copy of the program, %s still ran after %.1f s." % (
            name, outcome.seconds,
        )  # fmt: skip
    elif not told and landed:
        found["ended"] = "crashed"
        found["summary"] = "In the rehearsal, in a copy of the program, %s did not come to its end: %s" % (
            name, outcome.failure,
        )  # fmt: skip
    elif not told:
        found["summary"] = (
            "In the rehearsal, in a copy of the program, the exception did not come to frame %d: something on its way "
            "deals with it, or waits." % target.number
        )
    elif found["ended"] == "raised":
        error = found["error"]
        found["summary"] = "%s raised %s: %s" % (name, error["type"], error["message"])
        if [effect for effect in found["effects"] if effect.startswith("tried to ")] and told["refusal"]:
            found["ended"] = "refused effect"
    else:
        found["summary"] = "%s returned %s" % (name, found["value"]["text"][:200])
    found["took"] = round(began.elapsed(), 6)
    cleaned: Dict[str, Any] = picture.clean(found)
    return cleaned


def _crash(status: Any) -> str:
    number = status & 0x7F if status is not None and status >= 0 else 0
    try:
        name = signal.Signals(number).name if number else ""
    except ValueError:
        name = "signal %d" % number
    return name if name in _CRASHES else ""


def _leave(target: Target, raiser: types.FrameType, call: landing.Call) -> NoReturn:
    """In the copy."""
    jailed._take_streams()
    frames: List[types.FrameType] = []
    each: Any = sys._getframe()
    while each is not raiser:
        frames.append(each)
        each = each.f_back
    outermost = landing.Site(frames[-1].f_code)
    undo: List[Callable[[], None]] = []

    def landed() -> Any:
        for back in undo:
            back()
        return _called(target, call)

    landing.site_of(target.frame.f_code).arm(target.frame, (landed, (), {}))
    for code in {id(frame.f_code): frame.f_code for frame in frames}.values():
        if code is not frames[-1].f_code:
            undo.append(landing.without_handlers(code))
    outermost.arm(frames[-1], (_status if frames[-1].f_code.co_name == "_told" else _nothing, (), {}), whole=True)
    raise _Out


def _nothing() -> None:
    """What the debugger's outermost function returns."""


def _status() -> int:
    """What tracefunc.py returns to the C code that has called it: nothing was wrong."""
    return 0


def _called(target: Target, call: landing.Call) -> Any:
    child = jail_child.here[0]
    child._say("note", _LANDED)
    error, value = None, None
    waits = target.frame.f_code.co_flags & _COROUTINE
    function, positional, by_name = call
    try:
        value = function(*positional, **by_name)
        value = in_a_loop(value) if waits else value
    except BaseException as raised:  # it may raise anything: it is its result
        error = raised
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # the code has closed it, or put something of its own there
            continue
    child.tell(_result(value, error))
    _end_soon()
    if error is not None:
        raise error
    return _Done(value) if waits else value


def _result(value: Any, error: Any) -> Dict[str, Any]:
    picture = snapshot.Picture()
    found: Dict[str, Any] = {"ended": "returned", "value": None, "error": None, "refusal": False}
    if error is None:
        found["value"] = picture.formatter.value(value, None, WIDE)
    else:
        notes: List[str] = []
        told = evaluation.told(error, "", picture, notes)
        found.update(ended="raised", error={"type": told["type"], "message": told["message"]})
        found["refusal"] = isinstance(error, OSError)
    cleaned: Dict[str, Any] = picture.clean(found)
    return cleaned


def _end_soon() -> None:
    """The program goes on for a moment, without a word, then the kernel ends it, whatever it does."""
    import posix

    null = posix.open("/dev/null", posix.O_WRONLY)
    posix.dup2(null, 1)
    posix.dup2(null, 2)
    number = int(signal.SIGALRM)
    clib.library.signal(number, ctypes.c_void_p(0))  # SIG_DFL; Python's own function is for the main thread only
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    signal.setitimer(signal.ITIMER_REAL, _AFTER)
