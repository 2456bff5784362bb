"""Hot reload: changed files put into this process, which goes on with them.

The same code swaps functions here as in a trial's jailed copy (`putting.py`), but with three differences: statements
with effects do not run again and the program's own state stays (`caution.py`), what has failed on the way is taken back
(`ledger.py`), and functions that only stand on other lines get those. jurigged, the best of the existing ones, is not
used: it would have to be installed where the program runs (this side is the standard library alone, and is sent there),
it says per file and not per function what has become of a change, and cannot take one back.
"""

from __future__ import annotations

import linecache
import os
import sys
import time
import types
import warnings
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence

from . import api, codes, live, patching, reading, running, secrets, statements, swapping
from .codes import Source

_SLICE = 0.05  # seconds that a thread keeps the interpreter meanwhile: a change is put in within one, if nothing waits

_UNFIT = (SyntaxError, ValueError, RecursionError, MemoryError)

_put_in: Dict[str, Source] = {}  # real path -> the text that was put in last
_refused: Dict[str, Dict[str, str]] = {}  # real path -> functions that have not taken it, and why
_left_out: Dict[str, str] = {}  # real path -> why nothing is in of the text that came last


def reload(files: Sequence[Dict[str, Any]], dry: bool = False) -> Dict[str, Any]:
    """Put changed files into this process; works whether it stands or runs.

    Args:
        files: each `path`, `old` (its text as it was loaded; None: not known) and `new`.
        dry: only say which files compile, and which functions differ.

    Returns:
        `files`, for each: `path`, `module` (its names, comma separated; empty: it is not loaded), `functions` and
        `names` (`name`, `outcome`: `swapped`, `added`, `removed` or `refused`, `reason`), `error` (None, or why nothing
        of the file is in); and `moved`, given path -> blocks of lines that both texts share (`same_lines`).
    """
    frames = list(_frames())
    looked = live.look([file["path"] for file in files], frames, [])["files"]
    told = [_file(file, looked.get(file["path"]), frames, dry) for file in files]
    if not dry:
        for file, each in zip(files, told):
            _note(os.path.realpath(file["path"]), each)
    moved = {}
    for file, each in zip(files, told):
        old = each.pop("old")
        if old is not None and each["error"] is None:
            moved[file["path"]] = same_lines(old, file["new"])
    return {"files": told, "moved": moved}


def _file(file: Dict[str, Any], found: Optional[live.Live], frames: List[types.FrameType], dry: bool) -> Dict[str, Any]:
    path, text = file["path"], file["new"]
    told: Dict[str, Any] = {"path": path, "module": "", "functions": [], "names": [], "error": None, "old": None}
    if not path.endswith((".py", ".pyw")):
        told["error"] = "it is no Python source"
        return told
    if found is not None:
        told["module"] = ", ".join(_names(found))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the compiler, about the user's text
        try:
            new = Source(text, found.filename if found is not None else path)
        except _UNFIT as error:
            told["error"] = "it does not compile: %s" % error
            return told
        if found is None:
            return told
        real = os.path.realpath(path)
        known = _put_in.get(real)
        told["old"] = known.text if known is not None else file["old"]
        old = known or assumed(new, found)
        if known is None and told["old"] is not None:
            try:
                old = Source(told["old"], found.filename)
            except _UNFIT:
                told["old"] = None  # then it is not what was loaded
        if dry:
            _compare(old, new, told)
            return told
        refused = _refused.get(real, {})
        suspect: Callable[[str], bool] = refused.__contains__ if told["old"] is not None else lambda name: True
        _put(path, found, old, new, frames, suspect, told)
    if told["error"] is None:
        _put_in[real] = new
        linecache.checkcache(found.filename)
    return told


def _note(real: str, told: Dict[str, Any]) -> None:
    """Remember what of a file is not in, for `why_old`."""
    if told["error"] is not None:
        _left_out[real] = told["error"]
        return
    _left_out.pop(real, None)
    _refused[real] = {each["name"]: each["reason"] for each in told["functions"] if each["outcome"] == "refused"}


def why_old(code: types.CodeType) -> Optional[str]:
    """Why a function still has the code that it had before its file was changed; None: it has not, as far as is known.

    Args:
        code: of one of its calls.
    """
    real = os.path.realpath(code.co_filename)
    if real in _left_out:
        return _left_out[real]
    return _refused.get(real, {}).get(getattr(code, "co_qualname", code.co_name))  # 3.11+


def assumed(new: Source, found: live.Live) -> Source:
    """The text that was loaded, where nobody knows it: as the new one, without what the program does not have."""
    lines = list(new.lines)

    def blank(body: List[Any], own: Any) -> None:
        for statement in body:
            names = statements.names_of(statement)
            if names and all(reading.lookup(own, name) is reading.MISSING for name in names):
                begin, end = codes.first_line(statement) - 1, statement.end_lineno
                lines[begin:end] = [""] * (end - begin)

    namespace = found.namespaces[0]
    for statement in new.tree.body:
        cls = swapping.class_named(namespace, statement.name) if statements.is_class(statement) else None
        if cls is not None:
            blank(statement.body[1:], reading.class_dict(cls))
    blank(new.tree.body, namespace)
    try:
        return Source("\n".join(lines), found.filename)
    except _UNFIT:
        return new


def _put(
    path: str,
    found: live.Live,
    old: Source,
    new: Source,
    frames: List[types.FrameType],
    suspect: Callable[[str], bool],
    told: Dict[str, Any],
) -> None:
    patch = patching.Patch(frames, goes_on=True)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(max(interval, _SLICE))
    time.sleep(0)  # ours begins now: others may have asked for the interpreter already
    try:
        patch.put_compiled(path, found, old, new, None, suspect)
    except Exception as error:  # a mistake of ours, or of a class of the program's: the file is as it was before
        end = "it was taken back"
        try:
            patch.ledger.roll_back()
        except Exception as refused:  # of a class of the program's
            end = "not all of it could be taken back (%s): start the program again" % reading.type_name(type(refused))
        told["error"] = secrets.mask_text(
            "putting it in failed with %s: %s; %s" % (reading.type_name(type(error)), str(error)[:200], end)
        )
        return
    except BaseException:  # the thread is being ended, or interrupted
        patch.ledger.roll_back()
        raise
    finally:
        sys.setswitchinterval(interval)
    busy = _busy(patch, found.filename)
    seen = set()
    for each in patch.outcomes:
        if (each.name, each.outcome) in seen:
            continue
        seen.add((each.name, each.outcome))
        notes = busy.get(each.name, []) if each.outcome == "swapped" else []
        reasons = [each.reason] if each.reason and each.outcome not in ("added", "removed") else []
        reason = "; ".join([*reasons, *dict.fromkeys(notes)])
        told["functions" if each.function else "names"].append(
            {"name": each.name, "outcome": each.outcome, "reason": secrets.mask_text(reason)}
        )


def _busy(patch: patching.Patch, filename: str) -> Dict[str, List[str]]:
    """Name of a changed function -> what still runs its old code."""
    new, keys = patch.sources[filename][1], patch.changed.get(filename, set())
    entries = {}
    for before, after in patch.moved.values():
        entry = new.entry_of(after)
        if entry is not None and entry.key in keys:
            entries[id(before)] = before, entry.named.name
    found: Dict[str, List[str]] = {}
    for code, how in running.still_running([code for code, _ in entries.values()]):
        found.setdefault(entries[id(code)][1], []).append(how)
    return found


def _compare(old: Source, new: Source, told: Dict[str, Any]) -> None:
    for key, entry in new.entries.items():
        known = old.entries.get(key)
        if entry.node is None or entry.is_class or (known is not None and codes.same(known.code, entry.code)):
            continue
        outcome = "added" if known is None else "swapped"
        told["functions"].append({"name": entry.name, "outcome": outcome, "reason": ""})


def _frames() -> Iterator[types.FrameType]:
    """Of the stop, if there is one, and of all threads, the innermost first."""
    seen = set()
    stop = api.current_stop()
    chains = [[frame for frame, _ in stop.frames]] if stop is not None else []
    for chain in [*chains, *map(_outwards, sys._current_frames().values())]:
        for frame in chain:
            if id(frame) not in seen:
                seen.add(id(frame))
                yield frame


def _outwards(frame: Optional[types.FrameType]) -> List[types.FrameType]:
    found = []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return found


def _names(found: live.Live) -> List[str]:
    names = [
        name
        for name, module in list(sys.modules.items())
        if issubclass(type(module), types.ModuleType)
        and any(reading.module_dict(module) is each for each in found.namespaces)
    ]
    others = [str(each.get("__name__")) for each in found.namespaces]
    return sorted(dict.fromkeys(names or others))


def same_lines(old: str, new: str) -> List[List[int]]:
    """Blocks of lines that two texts share: first old line, first new line (from 1), number of lines."""
    import difflib

    one, other = old.split("\n"), new.split("\n")
    most = min(len(one), len(other))
    head = 0
    while head < most and one[head] == other[head]:
        head += 1
    tail = 0
    while tail < most - head and one[-1 - tail] == other[-1 - tail]:
        tail += 1
    # what is the same at both ends need not be compared with everything
    ends = len(one) - tail, len(other) - tail
    matcher = difflib.SequenceMatcher(None, one[head : ends[0]], other[head : ends[1]], autojunk=False)
    blocks = [[1, 1, head]]
    blocks += [[i + head + 1, j + head + 1, size] for i, j, size in matcher.get_matching_blocks()]
    blocks.append([ends[0] + 1, ends[1] + 1, tail])
    return [block for block in blocks if block[2]]
