"""The question `restart_frame`: at a raise, a call on the stack is made again, and the program goes on with its value.

The exception unwinds the calls inside of it as ever, with their `finally` and `with`; where it would leave the frame,
that one calls its function again and returns what it gives (`landing.py`). Before anything of the live process is
touched, the same is done in a jailed copy of it (`rehearsal.py`).
"""

from __future__ import annotations

import sys
import types
from typing import Any, Dict, List, NamedTuple, Optional

from . import again, landing, live, rehearsal, reload, sources, trial
from .again import Target
from .paths import NotThere
from .stop import Stop

_INSTEAD = "Restart the program instead."
_STOP_AT_RAISE = "With the exception filter willBeUnhandled, or in a run without --stop-at-raise never, there"
_GENERATOR, _ASYNC_GENERATOR = 0x20, 0x200

_armed: List[landing.Site] = []  # what waits for its exception


class Prepared(NamedTuple):
    """A call that can be made again.

    Args:
        target: its frame.
        raiser: the frame in which the exception was raised.
        name: of the function.
        call: function, positional and keyword arguments.
        notes: sentences on its arguments.
    """

    target: Target
    raiser: types.FrameType
    name: str
    call: landing.Call
    notes: List[str]


def restart_frame(
    stop: Stop,
    frame: int,
    rehearse: bool = True,
    limit: float = 5.0,
    strict: bool = False,
    expects: str = "",
    ticket: str = "",
) -> Dict[str, Any]:
    """Have frame *frame* call its function again, with the code that it has now, once the program is let go on.

    Args:
        frame: its number in the snapshot.
        rehearse: first in a jailed copy; without that it is only looked at whether it can be done.
        limit: seconds that the call may take in the copy.
        strict: do it only if the call returns in the copy, or fails there of what a copy may not do.
        expects: name of the type that it is to return there; empty if nothing is known of it.
        ticket: by which the rehearsal can be interrupted from outside.

    Returns:
        `allowed`; `reason` (a sentence or two, empty if it is); `frame` and `function` that are restarted; `notes`
        (sentences); and `rehearsal`: None, or `ended` (`returned`, `differs`, `raised`, `refused effect`,
        `not reached`, `timeout`, `crashed`), `summary` (a sentence), `value` (a Value or None), `error` (None or
        `type`, `message`), `stdout`, `stderr`, `effects`, `seconds` (of the call), `took` (of it all).
    """
    forget()
    told: Dict[str, Any] = {
        "allowed": False, "reason": "", "frame": frame, "function": "", "notes": [], "rehearsal": None,
    }  # fmt: skip
    try:
        prepared = _prepared(stop, frame)
        told.update(frame=prepared.target.number, function=prepared.name, notes=prepared.notes)
        site = landing.site_of(prepared.target.frame.f_code)
        if rehearse:
            told["rehearsal"] = rehearsal.rehearse(
                stop, prepared.target, prepared.raiser, prepared.name, prepared.call, limit, ticket
            )
            told["notes"] += told["rehearsal"].pop("notes")
            ended, summary = told["rehearsal"]["ended"], told["rehearsal"]["summary"]
            if ended == "raised" and strict:
                told["reason"] = "In the rehearsal, in a copy of the program, %s. %s" % (summary.rstrip("."), _INSTEAD)
                return told
            if ended == "returned" and expects and told["rehearsal"]["value"]["type"] != expects:
                told["rehearsal"]["ended"] = "differs"
                differs = "In the rehearsal, in a copy of the program, %s, and in its trial a value of the type %s. %s"
                told["reason"] = differs % (summary.rstrip("."), expects, _INSTEAD)
                return told
            if ended in ("not reached", "timeout", "crashed"):
                told["reason"] = "%s %s" % (summary, _INSTEAD)
                return told
        site.arm(prepared.target.frame, prepared.call)
        _armed.append(site)
    except NotThere as error:
        text = str(error)
        told["reason"] = text if text.endswith(_INSTEAD) else "%s. %s" % (text.rstrip("."), _INSTEAD)
        return told
    told["allowed"] = True
    return told


def restart_shown(stop: Stop, thread: int, frame: int, limit: float = 5.0) -> Dict[str, Any]:
    """The same for an editor, whose user may want a call that fails once more.

    Args:
        thread: DAP id of the thread that has stopped.
        frame: DAP id of a frame.

    Raises:
        NotThere: it does not happen; the message says why, and what to do instead.
    """
    from . import suspended

    told = restart_frame(stop, suspended.frame_number(thread, frame), True, limit)
    if not told["allowed"]:
        raise NotThere(told["reason"])
    return told


def forget() -> None:
    """What was prepared for a restart does not happen any more."""
    for site in _armed:
        site.disarm()
    del _armed[:]


def _prepared(stop: Stop, number: int) -> Prepared:
    reason = landing.unsupported()
    if reason:
        raise NotThere("No frame can be restarted in this program: %s" % reason)
    if stop.reason != "exception" or stop.exc is None:
        raise NotThere("A frame can be restarted where an exception is raised, and the program does not stand at one")
    if not 0 <= number < len(stop.frames):
        raise NotThere("There is no frame %d; there are 0 to %d" % (number, len(stop.frames) - 1))
    running = []
    each: Optional[types.FrameType] = sys._getframe()
    while each is not None:
        running.append(each)
        each = each.f_back
    raiser = _raiser(stop)
    if raiser is None or raiser not in running:
        raise NotThere(
            "The program stands where the exception came to light, and not at its raise: the frames that it has passed "
            "have ended. %s is a stop at the raise" % _STOP_AT_RAISE
        )
    target = again.named(stop, number)
    frame = target.frame
    if target.is_module:
        raise NotThere(
            "Frame %d is the code of a module, which is no function: run again from its start, it would do everything "
            "twice" % number
        )
    if frame.f_code.co_flags & (_GENERATOR | _ASYNC_GENERATOR):
        kind = "an asynchronous generator" if frame.f_code.co_flags & _ASYNC_GENERATOR else "a generator"
        raise NotThere(
            "Frame %d is %s, whose values so far have been taken: it can't begin anew in the place of this one"
            % (target.number, kind)
        )
    if frame not in running or running.index(frame) < running.index(raiser):
        raise NotThere("Frame %d has ended already" % target.number)
    _refuse_old(running[running.index(raiser) : running.index(frame) + 1])
    function = _function(frame)
    entry = trial.entry_of(target)
    positional, by_name = again.arguments_of(
        frame, function.__code__, len(function.__defaults__ or ()), function.__kwdefaults__, (), entry
    )
    notes = [note.replace("the trial got", "the restart gets") for note in again.hints(frame, target.line, None, entry)]
    if target.asked != target.number:
        notes.append("Frame %d is a part of frame %d, which is restarted." % (target.asked, target.number))
    return Prepared(target, raiser, sources.qualified_name(frame), (function, positional, by_name), notes)


def _refuse_old(frames: List[types.FrameType]) -> None:
    """Raise `NotThere` if a call that would be made again has not taken the change of its function.

    Args:
        frames: from the raiser's to the one that is restarted.
    """
    names: Any = [getattr(each.f_code, "co_qualname", "") for each in frames]  # 3.11+
    for index, each in enumerate(frames):
        if any(names[index].startswith(outer + ".<locals>.") for outer in names[index + 1 :]):
            continue  # the new call makes it anew
        why = reload.why_old(each.f_code)
        if why is not None:
            raise NotThere(
                "%s was changed and still has its old code (%s), so the call would do again what it did"
                % (names[index], why.rstrip("."))
            )


def _raiser(stop: Stop) -> Optional[types.FrameType]:
    trace = stop.tb
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame if trace is not None else None


def _function(frame: types.FrameType) -> types.FunctionType:
    """The function of *frame*, which may have other code by now."""
    code: Any = frame.f_code
    functions = live.functions_in([frame.f_globals])
    found = again.function_of(frame, functions)
    if found is not None:
        return found
    alike = []
    for function in functions:
        new: Any = function.__code__
        if new.co_qualname == code.co_qualname and new.co_filename == code.co_filename:
            alike.append(function)
    alike = [each for each in alike if each.__code__.co_argcount == code.co_argcount] or alike
    best, most = None, -1
    for function in alike:
        names = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        held = frame.f_locals
        same = sum(name in held and live.cell_value(cell) is held[name] for name, cell in names.items())
        if same > most:
            best, most = function, same
    if best is None:
        raise NotThere("Nothing refers to the function %s any more" % code.co_qualname)
    return best
