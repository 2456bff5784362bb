"""The picture of one stop as JSON (`schemas/snapshot.schema.json`): bounded in size and time, without secrets."""

from __future__ import annotations

import os
import sys
import types
from typing import Any, Iterable

from . import packages, reading, sources
from .call_frames import argument_names as argument_names
from .failures import Teller
from .secrets import Secrets
from .stop import Stop, other_stacks
from .values import NARROW, Formatter, Limits

VERSION = 1
SECONDS = 0.8
"""For the whole picture; what is not read by then is said to be missing."""

KEPT = 60
"""Frames that are shown at most."""

_OUTERMOST = 15
_TOP = 20
_PERIOD = 12
_LOCALS = 60
_ARGUMENTS = 25
_ROOM = 120000
"""Characters of values after which the remaining ones are kept very short."""

_SHORT = Limits(text=60, string=50, items=3, depth=1, nodes=20)
_OUTPUT = 12000
_THREADS, _THREAD_DEPTH = 20, 10
_FAST_TO_LOCALS = type((lambda: sys._getframe().f_locals)())


class Picture:
    """What is needed to describe the frames of one stop.

    Args:
        seconds: how long reading may take.
    """

    def __init__(self, seconds: float = SECONDS) -> None:
        self.deadline = reading.Deadline(seconds)
        self.secrets = Secrets()
        self.formatter = Formatter(self.secrets, Limits(), self.deadline)
        self.notes: list[str] = []
        self.room = _ROOM

    def note(self, sentence: str) -> None:
        """Say once what was left out, and why."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def frame(
        self,
        number: int,
        frame: types.FrameType,
        line: int,
        full: bool,
        limits: Limits | None = None,
        with_source: bool = True,
    ) -> dict[str, Any]:
        """A Frame of the schema.

        Args:
            full: with locals and source.
            limits: for its values.
            with_source: False: a full one without its source.
        """
        code = frame.f_code
        names = locals_of(frame)
        arguments = list(argument_names(code))
        # the cell behind super() is nothing that the source names
        hidden = set(arguments) | ({"__class__"} & set(code.co_freevars))
        # pytest's assertion rewriting keeps its messages in variables, too
        others = [name for name in names if name not in hidden and not name.startswith("@py_format")]
        if code.co_name == "<module>":
            others = _module_order(names, others)
        shown = (arguments + others)[:_LOCALS] if full else []
        source = sources.function_source(code, line, frame.f_globals) if full and with_source else None
        if source is not None and not sources.matches(code, source[1]) and code.co_firstlineno >= source[0]:
            self.note("The source of %s on disk does not look like the code that runs." % code.co_name)
        found = {
            "number": number,
            "function": self.mask(sources.qualified_name(frame, names)),
            "module": self.mask(sources.module_name(frame.f_globals)),
            "file": self.secrets.mask_known(sources.absolute(code.co_filename)),
            "line": line,
            "first_line": code.co_firstlineno,
            "arguments": self._values(names, arguments[:_ARGUMENTS], limits),
            "locals": self._values(names, shown, limits),
            "locals_total": len(arguments) + len(others) if names else 0,
            "source": None,
        }
        found.update(packages.origin_of(code.co_filename).to_json())
        if source is not None:
            found["source"] = {"first_line": source[0], "lines": self.secrets.mask_lines(source[1], code=True)}
        return found

    def _values(self, names: dict[str, Any], wanted: Iterable[str], limits: Limits | None) -> list[dict[str, Any]]:
        found = []
        for name in wanted:
            if name not in names:
                continue  # deleted since
            if self.room <= 0:
                limits = _SHORT
                self.note("Values are cut short: the picture would have become too big.")
            value = self.formatter.value(names[name], name, limits)
            self.room -= len(value["text"]) + 40
            found.append({"name": name[:200], "value": value})
        return found

    def mask(self, text: str) -> str:
        """*text* without secrets."""
        return self.secrets.mask(text)

    def clean(self, value: Any) -> Any:
        """A copy of JSON data where every text is without the values of secrets that were met anywhere in it."""
        return self._clean(value) if self.secrets.knows_values() else value

    def _clean(self, value: Any) -> Any:
        if type(value) is str:
            return self.secrets.mask_known(value)
        if type(value) is list:
            return [self._clean(item) for item in value]
        if type(value) is dict:
            if (
                "text" in value
                and type(value["text"]) is str
                and self.secrets.mask_known(value["text"]) != value["text"]
            ):
                value = dict(value, masked=True)
            return {self.secrets.mask_known(key): self._clean(item) for key, item in value.items()}
        return value


DEBUGGERS_NAME = "__exception__"
"""pydevd puts the exception under this name among the locals of the frame that it stops in."""


def locals_of(frame: types.FrameType) -> dict[str, Any]:
    """Name -> value. The namespace of a class body may be of any mapping type; what is not a dict stays unread."""
    held = frame.f_locals
    cls = type(held)
    if cls is _FAST_TO_LOCALS:  # 3.13: a view of the frame (PEP 667)
        pairs = list(held.items())
    elif issubclass(cls, dict):
        pairs = reading.entries(held, None)
    else:
        pairs = []
    return {name: value for name, value in pairs if type(name) is str and name != DEBUGGERS_NAME}


def _module_order(names: dict[str, Any], wanted: list[str]) -> list[str]:
    """The variables of a module: data first, then functions, classes and modules; none of the interpreter's own."""
    kept = [name for name in wanted if not (name.startswith("__") and name.endswith("__"))]
    return [name for name in kept if not _is_definition(names[name])] + [
        name for name in kept if _is_definition(names[name])
    ]


def _is_definition(value: Any) -> bool:
    cls = type(value)
    return cls is types.FunctionType or cls is types.BuiltinFunctionType or issubclass(cls, (type, types.ModuleType))


def folded(frames: list[tuple[types.FrameType, int]]) -> tuple[list[int], list[dict[str, int]]]:
    """Which frames are kept, and the runs of repeated frames that are not.

    Returns:
        Numbers, and `first`, `last`, `period`, `count` for each run: the frames *first* to *last* are *count* times the
        same *period* frames as the ones before.
    """
    keys = [(id(frame.f_code), line) for frame, line in frames]
    total = len(keys)
    dropped: set[int] = set()
    folds: list[dict[str, int]] = []
    i = 0
    while i < total:
        best, period = 0, 0
        for size in range(1, _PERIOD + 1):
            end = i
            while end + size < total and keys[end] == keys[end + size]:
                end += 1
            length = end - i + size if end > i else 0
            if length >= 3 * size and length > best:
                best, period = length, size
        if best and best - best % period > 12:
            stop = i + best - period  # the last time is kept
            first = max(i + 2 * period, _TOP if i < _TOP else i + 2 * period)
            count = (stop - first) // period
            if count >= 2:
                first = stop - count * period
                folds.append({"first": first, "last": stop - 1, "period": period, "count": count})
                dropped.update(range(first, stop))
            i += best
        else:
            i += 1
    kept = [number for number in range(total) if number not in dropped]
    return kept, folds


def take(stop: Stop, seconds: float = SECONDS, locals_of_all: bool = False) -> dict[str, Any]:
    """The snapshot of *stop*.

    Args:
        seconds: budget of time.
        locals_of_all: locals of every kept frame, not only of the failing one.
    """
    picture = Picture(seconds)
    teller = Teller(picture.formatter, picture.notes)
    exception = teller.tell(stop.exc, stop.tb) if stop.exc is not None else None
    kept, folds = folded(stop.frames)
    if len(kept) > KEPT:
        left_out = len(kept) - KEPT
        kept = kept[: KEPT - _OUTERMOST] + kept[-_OUTERMOST:]
        picture.note(
            "%d of the %d frames, from %d on, are not shown."
            % (left_out, len(stop.frames), kept[KEPT - _OUTERMOST - 1] + 1)
        )
        folds = [
            fold for fold in folds if fold["last"] < kept[KEPT - _OUTERMOST - 1] or fold["first"] > kept[-_OUTERMOST]
        ]
    frames = []
    full = _in_full(stop, kept)
    for number in kept:
        frame, line = stop.frames[number]
        limits = None if number in full else NARROW
        frames.append(picture.frame(number, frame, line, number in full or locals_of_all, limits, number in full))
    found: dict[str, Any] = {
        "version": VERSION,
        "reason": stop.reason,
        "python": _python(),
        "process": _process(picture),
        "thread": dict(stop.thread, name=picture.mask(stop.thread["name"])),
        "task": {key: picture.mask(text) for key, text in stop.task.items()} if stop.task is not None else None,
        "exception": exception,
        "frames": frames,
        "frames_total": len(stop.frames),
        "folds": folds,
        "output": {name: _tail(picture, stop.output.get(name, [])) for name in ("stdout", "stderr")},
        "threads": threads(picture, stop.thread["id"]),
        "notes": picture.notes + stop.notes,
    }
    recorder = sys.modules.get("%s.recorder" % __package__)
    functions = recorder.called(stop, picture) if recorder is not None else None
    if recorder is not None and functions is not None:
        found["called"] = functions
        found["notes"] += [note for note in (recorder.seen_partly(),) if note is not None]
    if picture.deadline.passed():
        found["notes"].append("Time was up after %.1f s: some values were not read." % seconds)
    cleaned: dict[str, Any] = picture.clean(found)
    cleaned["elapsed_ms"] = round(picture.deadline.elapsed() * 1000, 3)
    return cleaned


def _in_full(stop: Stop, kept: list[int]) -> set[int]:
    """The failing frame; the package's and the user's that led there; of a comprehension the function too."""
    full = {0}
    origins = {number: packages.origin_of(stop.frames[number][0].f_code.co_filename) for number in kept}
    user = [number for number in kept if origins[number].user]
    # where the standard library refuses what it was given, the package that gave it is of interest
    full.update([number for number in kept if not origins[number].stdlib][:1])
    for number in user:
        full.add(number)
        if stop.frames[number][0].f_code.co_name not in (
            "<listcomp>",
            "<setcomp>",
            "<dictcomp>",
            "<genexpr>",
            "<lambda>",
        ):
            break
        if len(full) > 3:
            break
    return full


def _python() -> dict[str, str]:
    return {
        "version": "%d.%d.%d" % sys.version_info[:3]
        + ("" if sys.version_info[3] == "final" else "%s%d" % sys.version_info[3:]),
        "implementation": sys.implementation.name,
        "executable": sys.executable if type(sys.executable) is str else "",
        "platform": sys.platform,
    }


def _process(picture: Picture) -> dict[str, Any]:
    held = sys.argv if type(sys.argv) is list else []
    words = [reading.text_of(word) or "?" for word in held[:50]]
    try:
        folder = os.getcwd()
    except OSError:
        folder = ""  # it has been removed
    return {"pid": os.getpid(), "argv": _masked_words(picture, words), "cwd": picture.secrets.mask_known(folder)}


def _masked_words(picture: Picture, words: list[str]) -> list[str]:
    """A command line: what follows `--password` is masked as well."""
    from .secrets import MASK, is_secret_name

    found, hide = [], False
    for word in words:
        found.append(MASK if hide and not word.startswith("-") else picture.formatter.clip(word, 500)[0])
        hide = word.startswith("-") and "=" not in word and is_secret_name(word)
    return found


def _tail(picture: Picture, lines: list[str]) -> list[str]:
    """The last lines of a stream, as many as fit."""
    kept: list[str] = []
    room = _OUTPUT
    for line in reversed([line for line in lines if type(line) is str][-100:]):
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    kept.reverse()
    return picture.secrets.mask_lines(kept)


def threads(picture: Picture, own_id: int) -> list[dict[str, Any]]:
    """The other threads' stacks, innermost first."""
    found = []
    for ident, name, frames in other_stacks(own_id, _THREADS, _THREAD_DEPTH):
        stack = [
            {
                "function": picture.mask(sources.qualified_name(frame)),
                "file": picture.secrets.mask_known(sources.absolute(frame.f_code.co_filename)),
                "line": line,
            }
            for frame, line in frames
        ]
        found.append({"id": ident, "name": picture.mask(name), "stack": stack})
    return found


def all_threads() -> list[dict[str, Any]]:
    """Every thread's stack (why does it hang?), this one's too."""
    return threads(Picture(), 0)
