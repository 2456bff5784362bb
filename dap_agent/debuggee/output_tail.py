"""The last lines of stdout and stderr, kept without taking the streams' place.

A stream object of the standard library accepts an instance attribute `write`, which print(), writelines() and the
interpreter's own traceback printing look up: the stream's type, isatty(), buffer and descriptor stay what they are.
"""

import collections
import contextlib
import functools
import operator
import os
import sys
from typing import Any, Callable, Deque, Dict, Iterator, List

LINES = 40
LINE_LENGTH = 500
_PIECES = 400

_tails: Dict[str, Deque[str]] = {}
_instead: Dict[str, str] = {}


def install() -> None:
    """Begin to remember what is written to sys.stdout and sys.stderr, as they are now."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None or name in _tails:
            continue
        pieces: Deque[str] = collections.deque(maxlen=_PIECES)
        try:
            stream.write = _tee(stream.write, pieces)
        except AttributeError:
            continue  # a stream type without instance attributes: its output is just not quoted
        _tails[name] = pieces


def _tee(write: Callable[[str], Any], pieces: Deque[str]) -> Callable[[str], Any]:
    """*write*, and *pieces* gets the text.

    What *write* raises (a broken pipe, an unencodable character, Ctrl-C) must not show a frame of ours, so C code calls
    it: reduce() computes `text + Remember() + Write()`; the first gives the text on, the other's `__radd__` is *write*.
    """

    class Remember:
        def __radd__(self, text: Any) -> Any:
            if type(text) is str:
                pieces.append(text if len(text) <= LINE_LENGTH * LINES else text[-LINE_LENGTH * LINES :])
            return text

    class Write:
        __radd__ = staticmethod(write)

    tee = functools.partial(functools.reduce, operator.add, (Remember(), Write()))
    for name in ("__name__", "__qualname__", "__doc__", "__self__"):
        if hasattr(write, name):
            setattr(tee, name, getattr(write, name))
    return tee


@contextlib.contextmanager
def instead(captured: Dict[str, str]) -> Iterator[None]:
    """For the time of a stop, quote *captured* (by stream name) where a test runner has kept the output to itself."""
    _instead.update(captured)
    try:
        yield
    finally:
        _instead.clear()


def lines() -> Dict[str, List[str]]:
    """The last lines of each stream, without their line ends."""
    result: Dict[str, List[str]] = {}
    for name in ("stdout", "stderr"):
        text = _instead.get(name) or "".join(list(_tails.get(name, ())))
        result[name] = [line[:LINE_LENGTH] for line in text.splitlines()[-LINES:]]
    return result


def captured_by(manager: Any) -> Dict[str, str]:
    """What pytest has captured of the running test so far, by stream name, without taking it away.

    Args:
        manager: its capture manager; other versions of it may be built otherwise: then there is nothing.
    """
    found: Dict[str, str] = {}
    capture = getattr(manager, "_global_capturing", None)
    for name, part in (("stdout", "out"), ("stderr", "err")):
        file: Any = getattr(getattr(capture, part, None), "tmpfile", None)
        try:
            if hasattr(file, "getvalue"):
                found[name] = file.getvalue()
            elif file is not None:
                number = file.fileno()
                size = os.fstat(number).st_size
                length = LINES * LINE_LENGTH
                text = os.pread(number, length, max(0, size - length))  # its position is the test's, too
                found[name] = text.decode("utf-8", "replace")
        except (OSError, ValueError):
            continue  # closed
    return found
