"""The question `try_fix`: candidates for a fix, each tried in a jail on the failing call of the stopped program."""

from __future__ import annotations

import base64
import sys
import warnings
import zlib
from typing import Any, Dict, List, Optional, Sequence

from . import again, codes, confining, evaluation, jail, live, patching, reading, snapshot, trying
from .inspection import _frame
from .paths import NotThere
from .stop import Stop
from .values import NARROW

CANDIDATES = 16
"""Tried by one question, at most."""

_REPORTING = 1.0  # seconds for a trial to put itself together and to tell of itself, beside the call
_TEXT = 16 * 2**20  # bytes of all texts of one question


def try_fix(
    stop: Stop,
    candidates: Sequence[Sequence[Dict[str, Any]]],
    texts: Sequence[str],
    number: Optional[int] = None,
    timeout: float = 5.0,
    ticket: str = "",
    without: Sequence[str] = (),
) -> dict[str, Any]:
    """Try each candidate: put it into a jailed copy of this process, and call the failing function there again.

    Args:
        candidates: each a list of files: `path`, `old` and `new` (indices into *texts*; `old` None: a new file).
        texts: of files, each as UTF-8, zlib, base64.
        number: of the frame to call again; None: the innermost of the user's code, then its callers as long as
            nothing of what was changed is reached.
        timeout: seconds for each call.
        ticket: by which it can be interrupted from outside.
        without: means of isolation not to use (`jail.run_all`).

    Returns:
        `trials`, one for each candidate: `verdict` (`passes`, `same failure`, `other failure`, `not reached`,
        `timeout`, `refused effect`, `cannot be tried`), `summary` (a sentence), `frame`, `call`, `value` (a Value or
        None), `error` (None or `type`, `message`, `traceback`, `where`), `stdout`, `stderr`, `effects`, `functions`
        (`name`, `file`, `swapped`, `how`), `lines` (`function`, `file`, `reached`, `lines`), `seconds`, `notes`;
        and `isolation` (`confining.Plan.isolation`).

    Raises:
        NotThere: the question is wrong, or nothing can be tried here.
    """
    if not 1 <= len(candidates) <= CANDIDATES:
        raise NotThere("%d candidates were given; 1 to %d can be tried at once." % (len(candidates), CANDIDATES))
    _prepare()
    read = _texts(texts)
    changes = [[_change(file, read) for file in files] for files in candidates]
    paths = list(dict.fromkeys(change.path for files in changes for change in files))
    if number is not None:
        _frame(stop, number)
        targets = [again.named(stop, number)]
    else:
        targets = again.by_default(stop, paths)
    frames = [frame for frame, _ in stop.frames]
    looked = live.look(paths, frames, _globals(targets))
    functions = [None if each.is_module else again.function_of(each.frame, looked["functions"]) for each in targets]
    compiled = _compiled(changes, looked["files"])
    limits = confining.Limits(seconds=max(0.05, min(float(timeout), 600.0)) + _REPORTING)
    deadline = reading.Deadline(3 * limits.seconds)
    picture = snapshot.Picture()
    for target in targets:  # what is secret there is so in all that the trials tell
        for name, value in snapshot.locals_of(target.frame).items():
            picture.formatter.value(value, name, NARROW)
    found: Dict[int, Dict[str, Any]] = {}
    isolation: Any = None
    waiting = list(range(len(changes)))
    for place, target in enumerate(targets):
        jobs = [
            trying.Job(
                stop,
                changes[n],
                looked["files"],
                compiled,
                target,
                functions[place],
                limits.seconds - _REPORTING,
                place + 1 < len(targets),
                entry_of(target),
            )
            for n in waiting
        ]
        outcomes = jail.run_all([_job(job) for job in jobs], limits, without, lambda: evaluation.is_void(ticket))
        for n, outcome in zip(waiting, outcomes):
            told = _told(outcome, target, picture)
            if n not in found or not told["onward"]:
                found[n] = told
            isolation = outcome.isolation
        waiting = [n for n in waiting if found[n]["onward"]]
        if not waiting or deadline.passed() or evaluation.is_void(ticket):
            break
    for told in found.values():
        del told["onward"]
    cleaned: dict[str, Any] = picture.clean({"trials": [found[n] for n in range(len(changes))], "isolation": isolation})
    return cleaned


def _prepare() -> None:
    """Import here, once, what each of the copies would have to import for itself."""
    import difflib  # noqa: F401
    import dis  # noqa: F401
    import importlib.util  # noqa: F401


def _job(job: trying.Job) -> Any:
    return lambda: trying.tried(job)


def _texts(packed: Sequence[str]) -> List[str]:
    found, left = [], _TEXT
    for each in packed:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(base64.b64decode(each), left)
        if unpacker.unconsumed_tail:
            raise NotThere("The texts of the candidates have more than %d MiB: try fewer at once." % (_TEXT // 2**20))
        left -= len(data)
        found.append(data.decode("utf-8"))
    return found


def _change(file: Dict[str, Any], texts: List[str]) -> patching.Change:
    old = file["old"]
    return patching.Change(file["path"], texts[old] if old is not None else None, texts[file["new"]])


def _compiled(changes: List[List[patching.Change]], files: Dict[str, live.Live]) -> Dict[str, codes.Source]:
    """The old texts, compiled once for all candidates."""
    found: Dict[str, codes.Source] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the compiler, about the user's text
        for change in (change for each in changes for change in each):
            if change.path in files and change.path not in found and change.old is not None:
                try:
                    found[change.path] = codes.Source(change.old, files[change.path].filename)
                except (SyntaxError, ValueError, RecursionError, MemoryError):
                    continue  # each trial says so
    return found


def _globals(targets: List[again.Target]) -> List[Dict[str, Any]]:
    found: List[Dict[str, Any]] = []
    for target in targets:
        namespace = target.frame.f_globals
        if type(namespace) is dict and not any(namespace is each for each in found):
            found.append(namespace)
    return found


def entry_of(target: again.Target) -> Dict[str, Any]:
    """The arguments that the call was begun with, as far as the flight recorder has them exactly."""
    recorder: Any = sys.modules.get("%s.recorder" % __package__)
    if recorder is None or target.is_module:
        return {}
    return again.entry_values(target.frame, recorder.arguments_at(target.frame))


def _told(outcome: jail.Outcome, target: again.Target, picture: snapshot.Picture) -> Dict[str, Any]:
    told: Dict[str, Any] = outcome.result if type(outcome.result) is dict else {}
    if set(told) != set(trying.blank(0)):
        told = trying.blank(target.number)
        told["verdict"], told["seconds"] = "other failure", round(outcome.seconds, 6)
        if outcome.timed_out:
            told["verdict"] = "timeout"
            told["summary"] = "It could not be interrupted and was ended after %.1f s" % outcome.seconds
        elif outcome.failure.startswith(("What ran in the jail raised", "The jail ")):
            told["verdict"] = "cannot be tried"
            told["summary"] = outcome.failure
        else:
            told["summary"] = outcome.failure or "What came back is no result: the code has written to all descriptors."
    effects = [picture.mask(effect) for effect in outcome.effects]
    refused = [effect for effect in effects if effect.startswith("tried to ")]
    if told["verdict"] == "other failure" and refused and told["refusal"]:
        told["verdict"] = "refused effect"
        told["summary"] = "It %s, which a jail refuses: %s" % (refused[-1], told["summary"])
    del told["refusal"]
    told["effects"] = effects
    told["stdout"] = picture.mask(evaluation.shortened(outcome.stdout))
    told["stderr"] = picture.mask(evaluation.shortened(outcome.stderr))
    told["notes"] = [*told["notes"], *outcome.notes]
    return told
