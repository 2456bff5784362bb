"""One job of a jail, as the parent sees it: what has come through its pipes, and what became of it."""

from __future__ import annotations

import json
import signal
from typing import Any, List, Optional, Set, Tuple

from . import clib, reading
from .confining import Plan

BUILDING = 10.0
"""Seconds for the walls to stand."""

KEPT = 2**17
"""Bytes kept of each stream: the first and the last half."""

_LONGEST_RESULT = 8 * 2**20


class Job:
    """A child and what is known of it."""

    def __init__(
        self, number: int, attempt: int, pid: int, unseen: bool, plan: Plan, pipes: Tuple[int, int, int]
    ) -> None:
        self.number = number
        self.attempt = attempt
        self.pid = pid
        self.status: Optional[int] = None
        self.unseen = unseen
        self.plan = plan
        self.pipes = pipes  # its messages, standard output, standard error
        self.open: Set[int] = set(pipes)
        self.clock = reading.Deadline(BUILDING)
        self.ready = self.done = self.has_result = self.timed_out = False
        self.goes_on = False  # after its result
        self.failure = self.no_overlay = ""
        self.result: Any = None
        self.effects: List[str] = []
        self.notes: List[str] = []
        self.printed = [_Kept(), _Kept()]
        self._unread = b""
        self.seconds = 0.0
        self.machine = clib.machine()

    def heard(self, fd: int, data: bytes) -> None:
        """Take what has come through a pipe."""
        if fd != self.pipes[0]:
            self.printed[self.pipes.index(fd) - 1].add(data)
            if sum(kept.size for kept in self.printed) > self.plan.limits.output:
                self.end("It printed more than %d bytes and was ended." % self.plan.limits.output)
            return
        self._unread += data
        if len(self._unread) > _LONGEST_RESULT:
            self.end("Its result is too long to be told.")
            return
        *lines, self._unread = self._unread.split(b"\n")
        for line in lines:
            self._told(line)

    def _told(self, line: bytes) -> None:
        try:
            message = json.loads(line)
            kind, value = message["kind"], message["value"]
        except (ValueError, TypeError, KeyError, RecursionError):
            return  # code in there has found the descriptor
        if kind == "ready":
            self.ready = True
            self.clock = reading.Deadline(self.plan.limits.seconds)
        elif kind == "effect" and type(value) is str and len(self.effects) < 100:
            self.effects.append(value[:1000])
        elif kind == "note" and type(value) is str and len(self.notes) < 20:
            self.notes.append(value[:1000])
        elif kind == "overlay":
            self.no_overlay = str(value) or "?"
            self.done = True
        elif kind == "failed":
            self.end(str(value)[:1000])
        elif kind == "result" and not self.done:
            self.result = value
            took = message.get("seconds")
            self.seconds = took if type(took) is float else self.clock.elapsed()
            self.has_result, self.done = True, not self.goes_on

    def end(self, failure: str) -> None:
        """It has no result, because of *failure*."""
        if not self.done:
            self.done = True
            self.failure = failure


class _Kept:
    """The first and the last bytes of a stream."""

    def __init__(self) -> None:
        self.size = 0
        self._first = b""
        self._last = b""

    def add(self, data: bytes) -> None:
        """Some more."""
        self.size += len(data)
        room = KEPT // 2 - len(self._first)
        if room > 0:
            self._first += data[:room]
            data = data[room:]
        self._last = (self._last + data)[-KEPT // 2 :]

    def text(self) -> str:
        """What was kept, with a word on what was not."""
        left_out = self.size - len(self._first) - len(self._last)
        between = "\n... %d bytes left out ...\n" % left_out if left_out else ""
        return self._first.decode("utf-8", "replace") + between + self._last.decode("utf-8", "replace")


def ended(status: Optional[int]) -> str:
    """A sentence on the end of a process that has told no result."""
    if status is None or status < 0:
        return "It ended its process before it had a result."
    number = status & 0x7F
    if not number:
        return "It ended its process with status %d before it had a result." % (status >> 8 & 0xFF)
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = "signal %d" % number
    more = {"SIGXCPU": ": it used too much processor time", "SIGSYS": ": it made a system call that is not allowed"}
    return "Its process was ended by %s%s." % (name, more.get(name, ""))
