"""Search in the workspace's files: plain text here, regular expressions in a process that can be ended."""

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

_MAX_FILE = 2 * 1024 * 1024
_SHOWN = 300

# A pattern such as (a+)+$ can run for ever and cannot be interrupted in a thread of ours.
_WORKER = r"""
import json, re, sys
task = json.loads(sys.stdin.readline())
pattern, left = re.compile(task["pattern"]), task["limit"]
for line in sys.stdin:
    number, path = json.loads(line)
    try:
        with open(path, "rb") as stream:
            data = stream.read(task["max"] + 1)
    except OSError:
        continue
    if len(data) > task["max"] or b"\0" in data[:8192]:
        continue
    for at, text in enumerate(data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        if pattern.search(text):
            sys.stdout.write(json.dumps([number, at, text[:task["shown"]]]) + "\n")
            left -= 1
            if not left:
                sys.exit()
    sys.stdout.flush()
"""


@dataclass(frozen=True)
class Match:
    """One matching line: the file's path for people, the line's number from 1, and its text (cut at 300 characters)."""

    file: str
    line: int
    text: str


@dataclass(frozen=True)
class SearchResult:
    """What a search found.

    Args:
        matches: in the order of the files.
        note: what was cut or read differently, in words; empty when nothing was.
    """

    matches: tuple[Match, ...]
    note: str = ""


def search(files: Iterable[tuple[str, Path]], pattern: str, *, limit: int, regex: bool, seconds: float) -> SearchResult:
    """See `Workspace.search`; *files* are (path for people, absolute path)."""
    import re

    deadline = time.monotonic() + seconds
    notes = []
    limit = max(1, limit)
    if not pattern:
        return SearchResult((), "The pattern is empty; give the text to look for.")
    if regex:
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            notes.append(f"The pattern is no valid regular expression ({error}), so it was searched as plain text.")
            regex = False
    if re.escape(pattern) == pattern:
        regex = False
    late = False
    matches: list[Match] = []
    if regex:
        matches, late = _by_worker(files, pattern, limit, deadline)
    else:
        for name, path in files:
            if len(matches) >= limit or (late := time.monotonic() > deadline):
                break
            matches += _plain(name, path, pattern, limit - len(matches))
    if late:
        notes.append(f"Stopped after {seconds:g} s; narrow the pattern or give a glob.")
    elif len(matches) >= limit:
        notes.append(f"Only the first {limit} matches are shown; narrow the pattern or give a glob.")
    return SearchResult(tuple(matches), " ".join(notes))


def fits(glob: str | None, *names: str) -> bool:
    """Whether a file, or its name alone, matches *glob* under one of its *names*; no glob fits all."""
    if not glob:
        return True
    # "**/" means any depth, none as well; a * spans folders
    wanted = glob.removeprefix("./").replace("**/", "")
    return any(
        fnmatchcase(name, glob) or fnmatchcase(name, wanted) or fnmatchcase(name.rpartition("/")[2], wanted)
        for name in names
    )


def _plain(name: str, path: Path, text: str, limit: int) -> Iterator[Match]:
    wanted = text.encode("utf-8", "surrogatepass")
    try:
        with path.open("rb") as stream:
            data = stream.read(_MAX_FILE + 1)
    except OSError:
        return
    if len(data) > _MAX_FILE or wanted not in data or b"\0" in data[:8192]:
        return
    for number, line in enumerate(_lines(data), 1):
        if text in line:
            yield Match(name, number, line[:_SHOWN])
            limit -= 1
            if not limit:
                return


def _lines(data: bytes) -> list[str]:
    """Lines as editors and tracebacks count them: a form feed ends none."""
    return data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _by_worker(
    files: Iterable[tuple[str, Path]], pattern: str, limit: int, deadline: float
) -> tuple[list[Match], bool]:
    listed = list(files)
    head = json.dumps({"pattern": pattern, "limit": limit, "max": _MAX_FILE, "shown": _SHOWN})
    task = "\n".join([head, *(json.dumps([index, str(path)]) for index, (_, path) in enumerate(listed))])
    command = [sys.executable, "-I", "-S", "-X", "utf8", "-c", _WORKER]
    late = False
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as worker:
        try:
            out, _ = worker.communicate(task.encode("utf-8", "surrogateescape"), max(0.05, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            late = True
            worker.kill()
            out, _ = worker.communicate()
    matches = []
    for line in out.decode("utf-8", "replace").splitlines():
        try:
            index, number, text = json.loads(line)
        except ValueError:
            break  # the worker was ended in the middle of a line
        matches.append(Match(listed[index][0], number, text))
    return matches, late
