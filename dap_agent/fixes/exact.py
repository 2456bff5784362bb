"""`str_replace`: one exact, unique place in a file; a near miss is an error that shows the nearest text."""

import difflib
import re
from bisect import bisect_left

from dap_agent.fixes.failures import EditError
from dap_agent.fixes.replacing import Splice
from dap_agent.fixes.source_text import check_model_text, ending, split_lines, unix
from dap_agent.session.redaction import mask, mask_lines

_WINDOWS = 40
_SHOWN_LINES = 30
_SCORED_LINES = 50_000
_MASKED_AROUND = 200  # the middle of a private key alone looks harmless


def str_replace(text: str, old: str, new: str, *, newline: str = "\n", code: bool = True) -> Splice:
    """The splice that replaces *old*, which must occur exactly once, by *new*.

    Newlines of *old* match any newline of the file; what *new* adds gets the newline of its surroundings.

    Args:
        code: whether the file is Python: by which rules what an error shows of it is masked.

    Raises:
        EditError: *old* is empty, equals *new*, is not there (with the nearest text), or is there more than once.
    """
    check_model_text(new)
    plain, old, new = unix(text), unix(old), unix(new)
    if not old:
        raise EditError("old is empty; give the exact text to replace, or use add_symbol or insert_import to add text")
    if old == new:
        raise EditError("old and new are the same text, so nothing would change")
    places = _places(plain, old)
    if not places:
        raise EditError(_not_found(plain, old, code))
    if len(places) > 1:
        numbers = ", ".join(str(plain.count("\n", 0, place) + 1) for place in places[:20])
        raise EditError(f"old occurs {len(places)} times (at lines {numbers}); take in more of the lines around it")
    start, end = places[0], places[0] + len(old)
    # what both texts share at their ends keeps its bytes
    head = _common_prefix(old, new)
    tail = _common_prefix(old[head:][::-1], new[head:][::-1])
    start, end, new = start + head, end - tail, new[head : len(new) - tail]
    raw = _raw_offsets(text, (start, end))
    local = _newline_near(text, raw[0]) or newline
    return Splice(raw[0], raw[1], new.replace("\n", local))


def _places(text: str, old: str) -> list[int]:
    found: list[int] = []
    at = text.find(old)
    while at >= 0 and len(found) < 1000:
        found.append(at)
        at = text.find(old, at + 1)
    return found


def _common_prefix(one: str, other: str) -> int:
    size = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        size += 1
    return size


def _raw_offsets(text: str, offsets: tuple[int, int]) -> tuple[int, int]:
    """Offsets in the text with \\n only -> offsets in the text as it is."""
    if "\r\n" not in text:
        return offsets
    # each \r\n before an offset adds one character
    pairs = [match.start() - index for index, match in enumerate(re.finditer("\r\n", text))]
    return offsets[0] + _count_below(pairs, offsets[0]), offsets[1] + _count_below(pairs, offsets[1])


def _count_below(ordered: list[int], limit: int) -> int:
    return bisect_left(ordered, limit)


def _newline_near(text: str, at: int) -> str:
    match = re.compile(r"\r\n|\r|\n").search(text, at)
    if match:
        return match.group()
    lines = split_lines(text[:at])
    return ending(lines[-1]) or (ending(lines[-2]) if len(lines) > 1 else "") if lines else ""


def _not_found(text: str, old: str, code: bool) -> str:
    if mask() in old:
        return f"old holds {mask()}, which stands for a secret that the file has there: take the lines around it"
    lines, wanted = text.split("\n"), old.strip("\n").split("\n")
    nearest = _nearest(lines, wanted)
    if nearest is None:
        return "old is not in the file, and nothing in it is similar; read the file again"
    line, found, ratio = nearest
    if [one.split() for one in found] == [one.split() for one in wanted]:
        why = "it differs in blanks only"
    else:
        why = f"{ratio:.0%} alike"
    first = max(0, line - 1 - _MASKED_AROUND)
    around = mask_lines(lines[first : line - 1 + len(found) + _MASKED_AROUND], code=code)
    shown = "\n".join(around[line - 1 - first :][: min(len(found), _SHOWN_LINES)])
    more = f"\n... {len(found) - _SHOWN_LINES} more lines" if len(found) > _SHOWN_LINES else ""
    return f"old is not in the file; the nearest text is at line {line} ({why}):\n{shown}{more}"


def _nearest(lines: list[str], wanted: list[str]) -> tuple[int, list[str], float] | None:
    """(line from 1, its lines, ratio) of the window most like *wanted*; None when nothing is half alike."""
    size = len(wanted)
    stripped = [line.strip() for line in lines[:_SCORED_LINES]]
    target = [line.strip() for line in wanted]
    last = max(1, len(stripped) - size + 1)
    # equal lines at their places are cheap to count; only the best windows are compared letter by letter
    where: dict[str, list[int]] = {}
    for index, line in enumerate(target):
        if line:
            where.setdefault(line, []).append(index)
    score = dict.fromkeys(range(last), 0)
    for number, line in enumerate(stripped):
        for index in where.get(line, ()):
            if 0 <= number - index < last:
                score[number - index] += 1
    best = sorted((start for start in score if score[start]), key=lambda start: -score[start])[:_WINDOWS]
    if not best:
        key = max(target, key=len)
        close = difflib.get_close_matches(key, list(dict.fromkeys(stripped[:5000])), 3, 0.5)
        offset = target.index(key)
        best = [min(max(0, n - offset), last - 1) for n, line in enumerate(stripped) if line in close][:_WINDOWS]
    found: tuple[int, list[str], float] | None = None
    text = "\n".join(wanted)[:20_000]
    for start in best:
        window = lines[start : start + size]
        matcher = difflib.SequenceMatcher(None, "\n".join(window)[:20_000], text, autojunk=len(text) > 2000)
        if found is None or (matcher.quick_ratio() > found[2] and matcher.ratio() > found[2]):
            found = (start + 1, window, matcher.ratio())
    return found if found and found[2] >= 0.5 else None
