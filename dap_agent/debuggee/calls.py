"""What the flight recorder remembers of calls: text and numbers only, so that no object of the program's lives longer.

Distinct functions, each with its count, the order of its newest call and what was read of its first and newest calls.
Reading values costs microseconds, so it has a budget of time, and of functions that are called very often it takes some
calls only.
"""

from __future__ import annotations

import ast
import itertools
import sys
import threading
import time
from _thread import allocate_lock, get_ident
from types import CodeType, FrameType
from typing import Any

from . import packages, reading, values
from .call_frames import (
    alarmed,
    argument_names,
    caller_of,
    identity,
    is_function,
    locals_of,
    made_for,
    running,
    task_name,
    thread_name,
)
from .installed import is_installed
from .secrets import Secrets

MOST = 1000
"""Functions that are remembered; the ones that were not called for the longest time are forgotten first."""

NEWEST = 3
"""Newest calls of each function of which arguments and result are kept, besides the first."""

READS = 40
"""Calls of one function that are read, however quickly they come."""

READS_LATER = 3
"""The same, when it has been found to be called very often."""

_PAUSE = 0.005  # seconds after which a call is read at any rate
_OPEN = 8
_CREDIT = 0.02  # seconds that reading may take at once
_SHARE = 0.04  # of the time that has passed since, the part that it gets
_ARGUMENTS = 8
_SECONDS = 0.005  # for the values of one call
_LIMITS = values.Limits(text=120, string=80, items=4, depth=2, nodes=24)

_PLAIN = (int, float, bool, str, bytes, type(None))
_MAKERS = ("__create_fn__",)  # run once by a library (dataclasses, attrs) to make functions

clock = time.perf_counter  # programs replace it
_traceback = BaseException.__dict__["__traceback__"].__get__


class _Brief(values.Formatter):
    """Shows every value as if it stood inside another one: no statistics of arrays and tables, which take long."""

    def whole(self, depth: int) -> bool:
        return False

    def drop(self) -> None:
        """Keep no class of the program's alive."""
        self._parts = []
        for key in [key for key, kind in self._kinds.items() if reading.is_heap_type(kind[0])]:
            del self._kinds[key]
        reading.forget()


class Call:
    """What was read of one call.

    Args:
        order: its number among all calls that were seen.
        arguments: `name` and `value` of each.
        caller: `file` and `line` that it was called from, if they are known.
        thread: name of the thread.
        task: name of the asyncio task, or None.

    Attributes:
        frame: identity of its frame, which may be another one's when that is gone.
        ended: whether it has returned, and its frame's place in memory may be that of an earlier call's by now.
        plain: names of the arguments that are told exactly by their text, unless that was cut or masked.
    """

    __slots__ = ("arguments", "caller", "ended", "frame", "left_with", "order", "plain", "result", "task", "thread")

    def __init__(
        self, order: int, arguments: list[dict[str, Any]], caller: dict[str, Any] | None, thread: str, task: str | None
    ) -> None:
        self.order = order
        self.arguments = arguments
        self.caller = caller
        self.thread = thread
        self.task = task
        self.frame = 0
        self.ended = False
        self.plain: tuple[str, ...] = ()
        self.result: dict[str, Any] | None = None
        self.left_with: str | None = None

    def to_json(self) -> dict[str, Any]:
        """A `call` of the snapshot's schema."""
        return {
            "order": self.order,
            "arguments": self.arguments,
            "result": self.result,
            "left_with": self.left_with,
            "called_from": self.caller,
            "thread": self.thread,
            "task": self.task,
        }


class Record:
    """One function.

    Attributes:
        calls: how many were seen.
        thinned: whether there may have been more: it was not watched all the time.
        order: number of the newest call among all calls.
        left: how many calls are watched until the budget is looked at.
        portions: how many times that may be so many more at once.
        opened: when they were given.
        reads: how many more calls may be read, however quickly they come.
        read_at: when a call was read last.
        forgotten: it was dropped for others.
    """

    __slots__ = ("calls", "file", "first", "forgotten", "left", "left_with", "line", "name", "newest", "open", "opened",
                 "order", "portions", "read_at", "reads", "thinned", "thread")  # fmt: skip

    def __init__(self, name: str, file: str, line: int) -> None:
        self.name, self.file, self.line = name, file, line
        self.calls = self.order = self.thread = 0
        self.left = self.portions = 0
        self.opened = self.read_at = 0.0
        self.reads = READS
        self.thinned = self.forgotten = False
        self.left_with: str | None = None
        self.first: Call | None = None
        self.newest: list[Call] = []
        self.open: dict[int, Call] = {}

    @property
    def place(self) -> tuple[str, int]:
        """File and first line: what a frame of it has as well."""
        return self.file, self.line


class Memory:
    """The functions that were called. Its methods are called in the program's threads, between its instructions.

    Args:
        hidden: what the names of files begin with that are not the user's.

    Attributes:
        began: when the first call might have been seen.
        unseen: seconds since then in which calls of some thread were not.
        partly: whether there were any.
    """

    def __init__(self, hidden: tuple[str, ...]) -> None:
        self.records: dict[tuple[str, str, int], Record] = {}
        self.known: dict[int, Record] = {}  # by identity of the code
        self.reads_values = True
        self.began = clock()
        self.unseen = 0.0
        self.partly = False
        self._hidden = hidden
        self._files: dict[str, bool] = {}
        self._numbers = itertools.count(1)
        self._credit, self._since = _CREDIT, self.began
        self._lock = allocate_lock()
        self._secrets = Secrets()
        self._formatter = _Brief(self._secrets, _LIMITS)
        self._formatter.value([self, {"a": 1.5}])  # so that the first one takes no longer than the others
        self._formatter.drop()
        self._main = reading.own(threading._main_thread, "_ident")  # type: ignore[attr-defined]

    def clear(self) -> None:
        """Forget all calls; what is watched stays so."""
        for record in list(self.records.values()):
            record.forgotten = True
        self.records.clear()
        self._numbers = itertools.count(1)
        self._credit = _CREDIT
        self.began, self.unseen, self.partly = clock(), 0.0, False

    def thin(self) -> None:
        """From now on not all calls are seen, of whatever function, and nobody tells of the ends of those that run."""
        self.partly = True
        for record in list(self.records.values()):
            if record.open:
                record.open.clear()

    def after_fork(self) -> None:
        """In a fork's child: its calls are its own, and the parent's other threads hold no locks."""
        self._lock = allocate_lock()
        self._main = get_ident()
        self.clear()

    def _is_file_of_users(self, filename: str) -> bool:
        if filename.startswith(self._hidden):
            return False
        if self.reads_values:
            return packages.origin_of(filename).user
        return not is_installed(filename)  # without looking at files, which others would notice

    def may_be_users(self, filename: str) -> bool:
        """Whether code of a file is the user's; of what was made by `exec` only its calls tell whose it is."""
        known = self._files.get(filename)
        if known is None:
            known = self._is_file_of_users(filename)
            if len(self._files) < 20000:
                self._files[filename] = known
        return known

    def of_user(self, code: CodeType, depth: int) -> bool:
        """Whether *code* is a function of the user's own: as the snapshot sees it, and not made by a library.

        Args:
            depth: how many frames further out than this method's it runs.
        """
        filename = code.co_filename
        if not self.may_be_users(filename) or not is_function(code):
            return False
        if filename.startswith("<"):  # made by exec: it belongs to whoever's module it runs in
            frame = running(depth)
            return frame is None or self._is_users(frame, code.co_name in _MAKERS)
        return True

    def _is_users(self, frame: FrameType, made: bool) -> bool:
        """Whether the module that a frame runs in is the user's; where it is none, or *made*, the one that calls it."""
        known = True
        for _ in range(2):
            held: Any = frame.f_globals
            space = held if type(held) is dict else {}
            file = reading.text_of(space.get("__file__"))
            if file is not None:
                known = self._is_file_of_users(file)
                if not known or not made:
                    return known
            outer = frame.f_back
            if outer is None or (
                file is None and (reading.text_of(space.get("__name__")) or "").startswith("namedtuple_")
            ):
                return outer is None and known
            frame = outer
        return known

    def record_of(self, code: CodeType, depth: int) -> Record:
        """The record of a function of the user's, made if there is none.

        Args:
            depth: how many frames further out than this method's it runs.
        """
        name = getattr(code, "co_qualname", None) or code.co_name
        if code.co_filename.startswith("<"):
            name = made_for(code, name, running(depth))
        key = code.co_filename, name, code.co_firstlineno
        record = self.records.get(key)
        if record is None:
            if len(self.records) >= MOST:
                self._forget_oldest()
            record = self.records[key] = Record(name, code.co_filename, code.co_firstlineno)
        if len(self.known) > 20 * MOST:
            self.known.clear()
        self.known[identity(code)] = record
        return record

    def _forget_oldest(self) -> None:
        ordered = sorted(self.records.items(), key=lambda item: item[1].order)
        for key, record in ordered[: MOST // 4]:
            record.forgotten = True
            del self.records[key]

    def count(self, record: Record, code: CodeType, depth: int) -> None:
        """Note a call that has just begun.

        Args:
            depth: how many frames further out than this method's it runs.
        """
        record.calls += 1
        record.order = next(self._numbers)
        record.thread = get_ident()
        if (record.reads > 0 or clock() - record.read_at > _PAUSE) and self.reads_values and self._affords():
            record.reads -= 1
            record.read_at = self._since
            frame = running(depth)
            if frame is not None:
                self._read(record, code, frame)

    def _affords(self) -> bool:
        now = clock()
        self._credit = min(_CREDIT, self._credit + _SHARE * (now - self._since))
        self._since = now
        return self._credit > 0 and not (get_ident() == self._main and alarmed())

    def _read(self, record: Record, code: CodeType, frame: FrameType) -> None:
        if not self._lock.acquire(False):
            return
        began = clock()
        try:
            self._formatter.deadline = reading.Deadline(_SECONDS)
            held = locals_of(frame, argument_names(code)[:_ARGUMENTS])
            told = [{"name": name, "value": self._formatter.value(value, name)} for name, value in held.items()]
            call = Call(record.order, told, caller_of(frame), thread_name(), task_name())
            call.frame = identity(frame)
            call.plain = tuple([name for name, value in held.items() if _is_plain(value)])
            del held
            if record.first is None:
                record.first = call
            else:
                record.newest.append(call)
                del record.newest[:-NEWEST]
            if len(record.open) >= _OPEN:
                del record.open[next(iter(record.open))]
            record.open[identity(frame)] = call
            self._formatter.drop()
        finally:
            self._credit -= clock() - began
            self._lock.release()

    def returned(self, record: Record, frame: FrameType | None, value: Any) -> None:
        """Note what a call has returned of which the arguments were read."""
        call = record.open.pop(identity(frame), None)
        if call is not None:
            call.ended = _FRAMES_ON_DEMAND
        if call is None or not self.reads_values or not self._affords() or not self._lock.acquire(False):
            return
        began = clock()
        try:
            self._formatter.deadline = reading.Deadline(_SECONDS)
            call.result = self._formatter.value(value)
            self._formatter.drop()
        finally:
            self._credit -= clock() - began
            self._lock.release()

    def left(self, record: Record, exc: BaseException) -> None:
        """Note that an exception has left a call."""
        record.left_with = name = reading.type_name(type(exc))[:200]
        if record.open:
            trace = _traceback(exc)
            call = record.open.pop(identity(trace.tb_frame), None) if trace is not None else None
            if call is not None:
                call.left_with = name

    def arguments_at(self, frame: FrameType) -> dict[str, Any]:
        """What the arguments of the call that runs, or has failed, in *frame* were when it began.

        Those alone that are told exactly, and only if it is certain that it is this call's: the newest of a function of
        which all were seen. A frame that lives is no other's.
        """
        record = self.known.get(identity(frame.f_code))
        if record is None or record.thinned or self.partly or record.forgotten:
            return {}
        call = record.newest[-1] if record.newest else record.first
        if call is None or call.ended or call.order != record.order or call.frame != identity(frame):
            return {}
        found = {}
        for pair in call.arguments:
            text = pair["value"]["text"]
            if pair["name"] in call.plain and not pair["value"].get("masked"):  # a mask within quotes is a literal, too
                try:
                    value = ast.literal_eval(text)
                except (ValueError, SyntaxError, MemoryError, RecursionError):
                    continue  # it was cut, or is infinite
                if repr(value) == text:
                    found[pair["name"]] = value
        return found

    def mask_known(self, text: str) -> str:
        """*text* without the values that were met under secret names."""
        return self._secrets.mask_known(text)


_FRAMES_ON_DEMAND = sys.version_info >= (3, 12)  # before, the profile function gets each call's, and errors as returns


def _is_plain(value: Any) -> bool:
    """Whether its repr tells a value exactly; `==` would ask a metaclass of the program's."""
    cls = type(value)
    for plain in _PLAIN:
        if cls is plain:
            return True
    return cls is tuple and len(value) <= 10 and all(any(type(item) is plain for plain in _PLAIN) for item in value)
