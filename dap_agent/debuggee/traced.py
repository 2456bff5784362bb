"""The question `trace`: a call is made again in a jail, and what it does is told line by line."""

from __future__ import annotations

import sys
import types
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from . import (
    again,
    branches,
    calling,
    confining,
    evaluation,
    jail,
    jailed,
    live,
    packages,
    paths,
    reading,
    snapshot,
    sources,
    trace_test,
    tracer,
    trial,
    trying,
)
from .alarm import TimeUp
from .inspection import _frame
from .paths import NotThere
from .stop import Stop
from .values import NARROW, WIDE

MOST = 400
"""Steps that can be asked for."""

_REPORTING = 2.0  # seconds to put the answer together, beside the call
_LINE = 160  # characters of a line of source


class _Job(NamedTuple):
    """What is traced.

    Args:
        make: makes the call, in the jail.
        first: the code that is traced wherever it comes from; None: none.
        main: whether the thread is the main one.
    """

    make: Callable[[tracer.Tracer], Callable[[], Tuple[Any, Optional[int]]]]
    first: Optional[types.CodeType]
    text: str
    notes: List[str]
    frame: Optional[int]
    wanted: tracer.Wanted
    seconds: float
    main: bool


def trace(
    stop: Stop,
    number: Optional[int] = None,
    code: str = "",
    test: str = "",
    functions: Sequence[str] = (),
    variables: Sequence[str] = (),
    first_change: str = "",
    when: str = "",
    steps: int = 120,
    timeout: float = 5.0,
    ticket: str = "",
    most_lines: int = tracer.STEPS,
    without: Sequence[str] = (),
) -> dict[str, Any]:
    """Call a function again in a jailed copy of this process, and tell what it does.

    Args:
        number: of the frame whose function is called with its arguments; None: the innermost of the user's code.
        code: Python that is run in that frame instead (None: frame 0).
        test: a test of pytest's that is run instead: `FILE::NAME`.
        functions: names of those that are told of, or ends of files; empty: all of the user's code.
        variables: names and paths that are told of; empty: all local variables.
        first_change: a name or path: where does it change first?
        when: a condition over the variables of a function: only steps at which it holds are told.
        steps: how many are told, at most, besides the last ones.
        timeout: seconds.
        ticket: by which it can be interrupted from outside.
        most_lines: lines that are looked at, at most.
        without: means of isolation not to use (`jail.run_all`).

    Returns:
        `call`, `frame`, `outcome` (a sentence), `value`, `error` (as `try_fix`), `functions` (`name`, `file`, `line`,
        `calls`, `steps`), `steps` (`kind`, `function`: its index, `depth`, `line`, `text`, `changes`: `name`, `before`,
        `value`, `late`; `branch`, `value`; a `gap` has `lines` instead), `total` of lines that ran, `first_change` and
        `when` (None if not asked for), `limits` (sentences on those that were met), `stdout`, `stderr`, `effects`,
        `notes`, `seconds`, `isolation`.

    Raises:
        NotThere: the question is wrong, or nothing can be traced here.
    """
    seconds = max(0.05, min(float(timeout), 600.0))
    wanted = tracer.Wanted(
        tuple(functions),
        tuple(variables),
        first_change.strip(),
        _condition(when),
        max(1, min(int(steps), MOST)),
        max(1, int(most_lines)),
    )
    for path in (*wanted.variables, *([wanted.first_change] if wanted.first_change else ())):
        paths.parse(path)
    job = _job(stop, number, code, test, wanted, seconds)
    limits = confining.Limits(seconds=seconds + _REPORTING)
    for frame, _ in stop.frames:
        packages.origin_of(frame.f_code.co_filename)  # is kept: the copy need not find it out for itself
    outcome = jail.run(lambda: _traced(job), limits, without, lambda: evaluation.is_void(ticket))
    picture = snapshot.Picture()
    for frame, _ in stop.frames[:20]:  # what is secret there is so in all that is told
        for name, value in snapshot.locals_of(frame).items():
            picture.formatter.value(value, name, NARROW)
    told: Dict[str, Any] = outcome.result if type(outcome.result) is dict else {}
    if set(told) != set(_blank(job)):
        told = _blank(job)
        told["seconds"] = round(outcome.seconds, 6)
        told["outcome"] = outcome.failure or "What came back is no result: the code has written to all descriptors."
        if outcome.timed_out:
            told["outcome"] = "It could not be interrupted and was ended after %.1f s." % outcome.seconds
    told["effects"] = [picture.mask(effect) for effect in outcome.effects]
    told["stdout"] = picture.mask(evaluation.shortened(outcome.stdout))
    told["stderr"] = picture.mask(evaluation.shortened(outcome.stderr))
    told["notes"] = [*told["notes"], *outcome.notes]
    told["isolation"] = outcome.isolation
    cleaned: dict[str, Any] = picture.clean(told)
    return cleaned


def _condition(text: str) -> Optional[types.CodeType]:
    if not text.strip():
        return None
    try:
        return compile(text.strip(), "<evaluate when>", "eval", 0, True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotThere("The condition %r is no Python expression: %s." % (text[:200], error)) from None


def _job(stop: Stop, number: Optional[int], code: str, test: str, wanted: tracer.Wanted, seconds: float) -> _Job:
    if test:
        text, make = trace_test.of(test)
        return _Job(make, None, text, [], None, wanted, seconds, stop.thread["main"])
    if code:
        frame, line = _frame(stop, 0 if number is None else number)
        flags = frame.f_code.co_flags & evaluation.FUTURES
        body, last = evaluation.compiled(code, flags, awaiting=True)
        namespace = evaluation.namespace_of(frame, line)

        def evaluated(watch: tracer.Tracer) -> Callable[[], Tuple[Any, Optional[int]]]:
            return _checked(watch, lambda: (jailed._run(body, last, namespace), None))

        text = " ".join(code.split())[:120]
        return _Job(evaluated, None, text, [], number or 0, wanted, seconds, stop.thread["main"])
    target = again.named(stop, number) if number is not None and _frame(stop, number) else again.by_default(stop, [])[0]
    call = _call(stop, target)
    # a module's code is compiled anew; each function has its own
    notes = [note.replace("the trial got", "the trace got") for note in call.notes]
    return _Job(
        lambda watch: _checked(watch, call),
        call.code,
        call.text,
        notes,
        target.number,
        wanted,
        seconds,
        stop.thread["main"],
    )


def _checked(watch: tracer.Tracer, call: Callable[[], Tuple[Any, Optional[int]]]) -> Callable[[], Any]:
    """*call*; if it has taken the tracing away from us, that is said."""

    def checked() -> Any:
        value = call()
        watch.check()
        return value

    return checked


def _call(stop: Stop, target: again.Target) -> Any:
    if target.is_module:
        return calling.Module(target, calling.rest_of(target))
    namespace = target.frame.f_globals
    functions = live.functions_in([namespace]) if type(namespace) is dict else []
    function: Any = again.function_of(target.frame, functions)
    if function is None:
        function = calling.made(target.frame, target.frame.f_code, target.frame.f_code)
    picture = snapshot.Picture()
    return calling.Function(stop, target, function, picture, again.defaults_of(function), None, trial.entry_of(target))


def _blank(job: _Job) -> Dict[str, Any]:
    return {
        "call": job.text, "frame": job.frame, "outcome": "", "value": None, "error": None, "functions": [], "steps": [],
        "total": 0, "first_change": None, "when": None, "limits": [], "seconds": 0.0, "notes": list(job.notes),
    }  # fmt: skip


# ---- in the jail


def _traced(job: _Job) -> Dict[str, Any]:
    jailed._take_streams()
    picture = snapshot.Picture()
    found = _blank(job)
    watch = tracer.Tracer(job.wanted, picture, job.first)
    result = trying.timed(job.make(watch), job.seconds, job.main, watch)
    tracer.settrace()(None)
    confining.last_memory()
    found["seconds"] = round(result.seconds, 6)
    steps = watch.told()
    found["total"] = watch.steps
    found["notes"] += watch.notes
    found["functions"] = [
        {
            "name": each.name,
            "file": sources.absolute(each.code.co_filename),
            "line": each.code.co_firstlineno,
            "calls": each.calls,
            "steps": each.steps,
        }
        for each in watch.functions
    ]
    source = _Source()
    found["steps"] = [_told(step, source) for step in steps]
    found["limits"] = _limits(watch, job)
    change, when = watch.first_change, watch.when
    if change is not None:
        found["first_change"] = {
            "name": job.wanted.first_change,
            "began": _at(watch, change.began, source),
            "changes": [_at(watch, one, source) for one in change.changes],
            "count": change.count,
            "other_type": _at(watch, change.other_type, source),
        }
    if when is not None:
        found["when"] = {"first": _at(watch, when.first, source), "count": when.count}
    _end(found, job, result)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # the code has closed it, or put something of its own there
            continue
    cleaned: Dict[str, Any] = picture.clean(found)
    return cleaned


def _end(found: Dict[str, Any], job: _Job, result: Any) -> None:
    picture = snapshot.Picture(10)
    error = result.error
    if isinstance(error, TimeUp):
        where = trying.where(error)
        at = " (%s, line %d)" % (where["function"], where["line"]) if where else ""
        found["outcome"] = "%s still ran after %.1f s%s" % (job.text, job.seconds, at)
        found["limits"].append("The time was up after %.1f s (timeout): what came later was not traced." % job.seconds)
        return
    if error is not None:
        found["error"] = evaluation.told(error, "", picture, found["notes"])
        found["error"]["where"] = where = trying.where(error)
        at = " (%s, line %d)" % (where["function"], where["line"]) if where else ""
        said = "%s: %s" % (found["error"]["type"], found["error"]["message"])
        found["outcome"] = "%s raised %s%s" % (job.text, said[:300].rstrip(": "), at)
        return
    if result.value is not reading.MISSING:
        found["value"] = picture.formatter.value(result.value, None, WIDE)
    found["outcome"] = trying.returned(job.text, result, found["value"])


def _limits(watch: tracer.Tracer, job: _Job) -> List[str]:
    said = {
        "steps": "Only the first %d lines that ran were looked at: the rest ran untraced." % job.wanted.steps,
        "kept": "More than %d steps are worth telling: of the later ones only the last are told (steps)."
        % job.wanted.kept,
    }
    return [said[limit] for limit in watch.limits]


class _Source:
    """Lines and branches of the files that are told of."""

    def __init__(self) -> None:
        self._branches: Dict[str, Optional[branches.Branches]] = {}

    def line(self, code: types.CodeType, number: int) -> str:
        lines = sources.lines_of(code.co_filename) or []
        return lines[number - 1].strip()[:_LINE] if 0 < number <= len(lines) else ""

    def taken(self, code: types.CodeType, line: int, following: int) -> str:
        name = code.co_filename
        if name not in self._branches:
            self._branches[name] = None
            lines = sources.lines_of(name)
            if lines is not None and len(self._branches) <= 20:
                try:
                    self._branches[name] = branches.Branches("\n".join(lines))
                except (SyntaxError, ValueError, RecursionError, MemoryError):
                    pass  # the file has changed meanwhile, or is none of Python's
        found = self._branches[name]
        return found.taken(line, following) if found is not None else ""


def _told(step: Any, source: _Source) -> Dict[str, Any]:
    if step.kind == "gap":
        lines: Dict[int, List[int]] = {}
        for (function, line), count in step.count.items():
            span = lines.setdefault(function, [line, line, 0])
            span[:] = [min(span[0], line), max(span[1], line), max(span[2], count)]
        told = [{"function": n, "first": f, "last": last, "times": times} for n, (f, last, times) in lines.items()]
        return {"kind": "gap", "depth": step.depth, "steps": sum(step.count.values()), "lines": told}
    code = step.function.code
    return {
        "kind": step.kind,
        "function": step.function.number,
        "depth": step.depth,
        "line": step.line,
        "text": step.text or (source.line(code, step.line) if step.kind in ("line", "resume") else ""),
        "changes": [dict(change, before=_text(change["before"])) for change in step.changes],
        "branch": source.taken(code, step.line, step.next) if step.kind == "line" else "",
        "value": step.value,
    }


def _text(value: Optional[Dict[str, Any]]) -> Optional[str]:
    return value["text"] if value is not None else None


def _at(watch: tracer.Tracer, place: Optional[Dict[str, Any]], source: _Source) -> Optional[Dict[str, Any]]:
    if place is None:
        return None
    function = watch.functions[place["function"]]
    return {
        **place,
        "function": function.name,
        "file": sources.absolute(function.code.co_filename),
        "text": source.line(function.code, place["line"]),
    }
