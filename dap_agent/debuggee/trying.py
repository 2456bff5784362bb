"""In the jail: put a candidate in, call the function again, and say what became of it."""

from __future__ import annotations

import sys
import types
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from . import (
    again,
    calling,
    codes,
    confining,
    evaluation,
    jailed,
    modulerun,
    patching,
    reached,
    reading,
    snapshot,
    sources,
    statements,
)
from .alarm import Alarm, TimeUp
from .failures import Teller
from .live import Live
from .paths import NotThere
from .stop import Stop, is_hidden
from .values import WIDE


class Job(NamedTuple):
    """One candidate, and what is to be called.

    Args:
        stop: the stop.
        changes: its files.
        live: given path -> what the process has of that file.
        compiled: given path -> its old text, as far as it compiles.
        target: the frame to call again.
        function: its function; None if nothing refers to it any more, or it is a module.
        seconds: for the call.
        onward: whether another frame is tried if this call does not reach what was changed.
        entry: name -> value that arguments of the call had when it began, where they have others now.
    """

    stop: Stop
    changes: List[patching.Change]
    live: Dict[str, Live]
    compiled: Dict[str, codes.Source]
    target: again.Target
    function: Optional[types.FunctionType]
    seconds: float
    onward: bool
    entry: Dict[str, Any]


class _Result(NamedTuple):
    value: Any
    error: Optional[BaseException]
    yielded: Optional[int]
    seconds: float


def tried(job: Job) -> Dict[str, Any]:
    """Run *job*; what has become of it, as JSON (`trial.try_fix`)."""
    jailed._take_streams()
    frames = [frame for frame, _ in job.stop.frames]
    picture = snapshot.Picture()
    found = blank(job.target.number)
    patch = patching.Patch(frames)
    function: Any = job.function
    defaults = again.defaults_of(function)
    try:
        rest = _rest(job) if job.target.is_module else None
        for change in job.changes:
            until = {job.live[change.path].path: rest.place} if rest and _runs(job, change.path) else {}
            patch.put(change, job.live.get(change.path), until, job.compiled.get(change.path))
        found["functions"] = patch.told
        if not patch.effective and not (rest and any(_runs(job, change.path) for change in job.changes)):
            raise NotThere(_nothing_in(patch))
        call = _module(job, patch, rest) if rest is not None else _function(job, patch, picture, defaults)
    except NotThere as error:
        found["summary"], found["onward"] = str(error), job.onward and bool(patch.effective)
        return _cleaned(picture, found)
    found["call"] = call.text
    found["notes"] += call.notes
    watch = reached.Watch()
    for _, _, code in patch.watched:
        watch.add(code)
    patch.started = watch.add
    for filename, (_, new) in patch.sources.items():
        sources._files[filename] = (sources._stamp(filename), new.lines)  # for the lines of tracebacks
    result = timed(call, job.seconds, job.stop.thread["main"], watch)
    confining.last_memory()
    found["seconds"] = round(result.seconds, 6)
    found["lines"] = _lines(patch, watch)
    ran = any(each["reached"] for each in found["lines"])
    _judge(found, job, call.text, result, snapshot.Picture(), ran or watch.blind or not patch.certain or call.certain)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # the code has closed it, or put something of its own there
            continue
    return _cleaned(picture, found)


def blank(number: int) -> Dict[str, Any]:
    """What is told of a trial, before anything is known.

    Args:
        number: of the frame that is called again.
    """
    return {
        "verdict": "cannot be tried", "summary": "", "frame": number, "call": "", "value": None, "error": None,
        "functions": [], "lines": [], "seconds": 0.0, "notes": [], "onward": False, "refusal": False,
    }  # fmt: skip


def _cleaned(picture: snapshot.Picture, found: Dict[str, Any]) -> Dict[str, Any]:
    cleaned: Dict[str, Any] = picture.clean(found)
    return cleaned


def _runs(job: Job, path: str) -> bool:
    """Whether the module that is run again is made of the file *path*."""
    live = job.live.get(path)
    return live is not None and live.filename == job.target.frame.f_code.co_filename


def _nothing_in(patch: patching.Patch) -> str:
    if not patch.told:
        return "The candidate changes nothing that runs: its functions are the same as before."
    first = patch.told[0]
    more = " (and %d more)" % (len(patch.told) - 1) if len(patch.told) > 1 else ""
    return "Nothing of it could be put into the stopped program: %s: %s%s." % (first["name"], first["how"], more)


# ---- what is called


def _function(job: Job, patch: patching.Patch, picture: snapshot.Picture, before: Dict[str, Any]) -> Any:
    frame = job.target.frame
    function: Any = job.function if job.function is not None else _made(frame, patch)
    source = next((old for name, (old, _) in patch.sources.items() if name == frame.f_code.co_filename), None)
    return calling.Function(job.stop, job.target, function, picture, before, source, job.entry)


def _made(frame: types.FrameType, patch: patching.Patch) -> types.FunctionType:
    """The function of a frame that nothing refers to any more."""
    old, new = patch.moved.get(id(frame.f_code), (frame.f_code, frame.f_code))
    for source, changed in patch.sources.values():
        entry = source.entry_of(frame.f_code) if new is frame.f_code else None
        after = changed.entries.get(entry.key) if entry is not None else None
        if after is not None and source.code.co_filename == frame.f_code.co_filename:
            new = after.code
    return calling.made(frame, old, new)


def _body(text: str, filename: str) -> statements.Body:
    return statements.Body(codes.parse(text, filename).body, text.split("\n"))


def _rest(job: Job) -> modulerun.Rest:
    filename = job.target.frame.f_code.co_filename
    change = next((each for each in job.changes if _runs(job, each.path)), None)
    if change is None:
        return calling.rest_of(job.target)
    try:
        before, after = _body(change.old or "", filename), _body(change.new, filename)
        return modulerun.rest_of(before, after, job.target.line)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotThere("The module's text does not compile: %s." % error) from None


def _module(job: Job, patch: patching.Patch, rest: modulerun.Rest) -> Any:
    call = calling.Module(job.target, rest)
    call.certain = any(_runs(job, change.path) for change in job.changes) and not patch.effective
    for change in job.changes:
        if _runs(job, change.path):
            patch.watch_within(change.path, job.target.frame.f_code.co_filename, call.code)
    return call


def timed(call: Callable[[], Tuple[Any, Optional[int]]], seconds: float, main: bool, watch: Any) -> _Result:
    """Make a call under a time limit.

    Args:
        call: gives the value and how many a generator has yielded.
        seconds: the limit; then its error is `TimeUp`.
        main: whether the thread was the main one before the fork.
        watch: its `start` is called just before.
    """
    value: Any = None
    yielded: Optional[int] = None
    error: Optional[BaseException] = None
    clock = reading.Deadline(seconds)
    alarm = Alarm(seconds, main)

    def watched() -> Tuple[Any, Optional[int]]:
        watch.start()
        return call()

    try:
        alarm.start()
        # a stop at the raise is made inside of an event's callback, where the interpreter tells of no others
        value, yielded = sys.call_tracing(watched, ())
    except BaseException as raised:  # the code may raise anything, SystemExit too: it is its result
        error = raised
    alarm.stop()
    sys.settrace(None)
    return _Result(value, error, yielded, clock.elapsed())


# ---- what is told


def _lines(patch: patching.Patch, watch: reached.Watch) -> List[Dict[str, Any]]:
    found: Dict[Tuple[str, str], Tuple[set[int], set[int]]] = {}
    for path, name, code in patch.watched:
        if name == "(module)":
            continue
        ran, there = found.setdefault((path, name), (set(), set()))
        ran.update(watch.reached(code))
        there.update(codes.line_numbers(code))
    return [
        {"function": name, "file": path, "reached": sorted(ran), "lines": len(there)}
        for (path, name), (ran, there) in found.items()
    ]


def _judge(found: Dict[str, Any], job: Job, call: str, result: _Result, picture: snapshot.Picture, ran: bool) -> None:
    error = result.error
    if isinstance(error, SystemExit) and error.code in (None, 0):
        found["notes"].append("It ended the program with status 0.")
        error = None
        result = result._replace(value=reading.MISSING)
    if error is None:
        if result.value is not reading.MISSING:
            found["value"] = picture.formatter.value(result.value, None, WIDE)
        found["verdict"], found["summary"] = "passes", returned(call, result, found["value"])
    else:
        notes: List[str] = []
        found["error"] = evaluation.told(error, "", picture, notes)
        found["error"]["where"] = where(error)
        found["notes"] += notes
        found["refusal"] = _is_of_the_system(error)
        found["verdict"], found["summary"] = _failed(found, job, call, error, picture)
    if not ran and found["verdict"] != "timeout":
        if found["verdict"] != "other failure":  # of a call that does not fit the new signature, for one
            found["verdict"] = "not reached"
        found["summary"] = "None of the changed lines ran: %s" % found["summary"]
        found["onward"] = job.onward
    cleaned = picture.clean({key: found[key] for key in ("value", "error", "summary", "notes")})
    found.update(cleaned)


def returned(call: str, result: _Result, value: Any) -> str:
    """A sentence on a call that has not failed.

    Args:
        call: it, in words.
        result: of `timed`.
        value: what is shown of the value.
    """
    if result.value is reading.MISSING:
        return "%s ran to its end" % call
    if result.yielded is None:
        text = value["text"]
        return "%s returned %s" % (call, text if len(text) <= 200 else text[:200] + "...")
    more = " or more" if result.yielded >= calling.ITEMS else ""
    return "%s yielded %d%s: %s" % (call, result.yielded, more, value["text"][:200])


def _failed(
    found: Dict[str, Any], job: Job, call: str, error: BaseException, picture: snapshot.Picture
) -> Tuple[str, str]:
    told = found["error"]
    where = told["where"]
    at = " (%s, line %d)" % (where["function"], where["line"]) if where else ""
    if isinstance(error, TimeUp):
        found["error"] = None
        return "timeout", "%s still ran after %.1f s%s" % (call, job.seconds, at)
    said = "%s: %s" % (told["type"], told["message"]) if told["message"] else told["type"]
    if len(said) > 300:
        said = said[:300] + "..."
    exc = job.stop.exc
    if exc is not None and job.stop.frames and reading.type_name(type(exc)) == told["type"]:
        code = job.stop.frames[0][0].f_code
        here = where is not None and where["function"].rpartition(".")[2] == code.co_name
        if here or Teller(picture.formatter, []).message(exc) == told["message"]:
            return "same failure", "%s raised %s again%s" % (call, said, at)
    return "other failure", "%s raised %s%s" % (call, said, at)


def _is_of_the_system(error: Optional[BaseException]) -> bool:
    """Whether it may come from a system call that was refused."""
    for _ in range(10):
        if error is None:
            break
        if isinstance(error, OSError) or (reading.module(type(error)) or "").partition(".")[0] == "sqlite3":
            return True
        error = error.__cause__ or error.__context__
    return False


def where(error: BaseException) -> Optional[Dict[str, Any]]:
    """`function`, `file` and `line` of the innermost frame of an error that is not ours; None: there is none."""
    entry = BaseException.__dict__["__traceback__"].__get__(error)
    found = None
    while entry is not None:
        frame = entry.tb_frame
        if not is_hidden(frame):
            found = {
                "function": sources.qualified_name(frame),
                "file": sources.absolute(frame.f_code.co_filename),
                "line": entry.tb_lineno or frame.f_code.co_firstlineno,
            }
        entry = entry.tb_next
    return found
