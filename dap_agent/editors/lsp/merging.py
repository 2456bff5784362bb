"""A change of a file carried over to a buffer that may hold unsaved changes, and as edits of whole lines.

Lines are compared without their ends: editors convert those.
"""

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dap_agent.fixes.source_text import SourceText, ending, split_lines


@dataclass(frozen=True)
class LineEdit:
    """Lines of a text replaced by others.

    Args:
        start, start_column: where the replaced part begins, from 0.
        end, end_column: where it ends, exclusive.
        text: what stands there then.
    """

    start: int
    start_column: int
    end: int
    end_column: int
    text: str


def same(one: str, other: str) -> bool:
    """Whether two texts have the same lines, whatever ends them."""
    return _bare(split_lines(one)) == _bare(split_lines(other)) and _closed(one) == _closed(other)


def merge(old: str, new: str, buffer: str) -> str | None:
    """*buffer* with the change from *old* to *new* made in it; its own changes and line ends stay.

    Returns:
        The new text; None if the buffer differs from *old* in lines that the change replaces.
    """
    if same(buffer, new):
        return buffer
    if same(buffer, old):
        return _with_ends(new, buffer)
    before, after, now = split_lines(old), split_lines(new), split_lines(buffer)
    blocks = _matcher(before, now).get_matching_blocks()
    newline = SourceText(buffer, "utf-8").newline
    pieces: list[str] = []
    done = 0  # lines of the buffer that are dealt with
    for tag, i, i_end, j, j_end in _matcher(before, after).get_opcodes():
        if tag == "equal":
            continue
        place = _place(blocks, i, i_end, len(before), len(now))
        if place is None or place < done:
            return None
        pieces += now[done:place]
        pieces += [_bare_line(line) + newline for line in after[j:j_end]]
        done = place + (i_end - i)
    merged = [*pieces, *now[done:]]
    return "".join(line if ending(line) else line + newline for line in merged[:-1]) + "".join(merged[-1:])


def edits(before: str, after: str, width: Callable[[str], int]) -> list[LineEdit]:
    """What turns *before* into *after*, in the order of the lines; the parts do not overlap.

    Args:
        width: the length of a line's text in the units of the client's columns.
    """
    old, new = split_lines(before), split_lines(after)
    # the position behind the last line does not exist if that line has no end
    open_end = bool(old) and not ending(old[-1])
    found = []
    for tag, i, i_end, j, j_end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        text = "".join(new[j:j_end])
        if open_end and i == len(old):  # lines are added behind such a line: its end comes first
            column = width(old[-1])
            found.append(LineEdit(i - 1, column, i - 1, column, (ending(new[j - 1]) if j else "") + text))
        elif open_end and i_end == len(old):
            found.append(LineEdit(i, 0, i_end - 1, width(old[-1]), text))
        else:
            found.append(LineEdit(i, 0, i_end, 0, text))
    return found


def changed_lines(before: str, after: str) -> list[tuple[int, int]]:
    """The lines of *before* that change, from 0, both ends included; between two lines: the one behind."""
    spans = []
    old, new = _bare(split_lines(before)), _bare(split_lines(after))
    for tag, i, i_end, _, _ in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            spans.append((i, max(i, i_end - 1)))
    return spans


def line_in(saved: str, buffer: str, line: int) -> int:
    """Where a line of the saved file is in the buffer, both from 0; the nearest one if it is gone."""
    old, now = split_lines(saved), split_lines(buffer)
    last = max(len(now) - 1, 0)
    for tag, i, i_end, j, j_end in _matcher(old, now).get_opcodes():
        if i <= line < i_end:
            return min(j + (line - i) if tag == "equal" else min(j + (line - i), max(j_end - 1, j)), last)
    return min(line, last)


def _place(blocks: Sequence[difflib.Match], i: int, i_end: int, total: int, buffer_total: int) -> int | None:
    """Where lines *i* to *i_end* of the old text are in the buffer, if they are there as they were."""
    for block in blocks:
        shift = block.b - block.a
        if i_end > i:
            if block.a <= i and i_end <= block.a + block.size:
                return i + shift
        elif block.a < i < block.a + block.size:  # between two lines that are neighbours there, too
            return i + shift
    if i_end == i == 0 and blocks[0].size and blocks[0].a == blocks[0].b == 0:
        return 0
    for block in blocks:
        if (
            i_end == i == total
            and block.size
            and block.a + block.size == total
            and block.b + block.size == buffer_total
        ):
            return buffer_total
    return None


def _matcher(one: Sequence[str], other: Sequence[str]) -> "difflib.SequenceMatcher[str]":
    return difflib.SequenceMatcher(None, _bare(one), _bare(other), autojunk=False)


def _bare(lines: Sequence[str]) -> list[str]:
    return [_bare_line(line) for line in lines]


def _bare_line(line: str) -> str:
    return line.removesuffix(ending(line)) if ending(line) else line


def _closed(text: str) -> bool:
    return not text or bool(ending(text))


def _with_ends(text: str, like: str) -> str:
    """*text* with the line ends that *like* has most of."""
    if not like:
        return text
    newline = SourceText(like, "utf-8").newline
    return "".join(_bare_line(line) + (newline if ending(line) else "") for line in split_lines(text))
