"""A module that has failed, run on from the failing statement: which statements of its new text that are."""

from __future__ import annotations

import ast
from typing import Any, List, NamedTuple

from . import codes, statements
from .paths import NotThere
from .statements import Body, Operation


class Rest(NamedTuple):
    """What is left of a module to run.

    Args:
        body: the statements.
        place: of the first one in the module's body, or of the one that it stands in.
        notes: sentences on what runs again.
    """

    body: List[Any]
    place: int
    notes: List[str]


def rest_of(before: Body, after: Body, line: int) -> Rest:
    """The statements of the new body from the one on that the old one has failed in.

    Args:
        before: the body as it has run.
        after: the same in the new text.
        line: that the old module is at.

    Raises:
        NotThere: no statement stands there.
    """
    old, new = before.statements, after.statements
    number = next(
        (n for n, each in enumerate(old) if codes.first_line(each) <= line <= (each.end_lineno or each.lineno)), None
    )
    if number is None:
        raise NotThere("Line %d of the module is no statement of its text: the file has changed since it ran." % line)
    operations = statements.opcodes(before, after)
    start = _place_of(number, operations)
    for tag, _, _, j1, j2 in operations:
        earlier = [j for j in range(j1, min(j2, start)) if tag != "equal" and not statements.binds_only(new[j])]
        if earlier:
            note = "The module was run again from line %d on, which has changed." % new[earlier[0]].lineno
            return Rest(list(new[earlier[0] :]), earlier[0], [note])
    failed = old[number]
    same_kind = start < len(new) and type(new[start]) is type(failed)
    if isinstance(failed, ast.If) and same_kind:
        for branch in ("body", "orelse"):
            inner = getattr(failed, branch)
            if inner and codes.first_line(inner[0]) <= line <= (inner[-1].end_lineno or line):
                rest = rest_of(Body(inner, before.lines), Body(getattr(new[start], branch), after.lines), line)
                return Rest([*rest.body, *new[start + 1 :]], start, rest.notes)
    notes = []
    if isinstance(failed, (ast.For, ast.While)):
        notes.append("The loop that failed at module level began anew, with the names as they are now.")
    elif isinstance(failed, (ast.Try, ast.With)) and line > failed.lineno:
        notes.append("The %s statement that failed at module level began anew." % type(failed).__name__.lower())
    return Rest(list(new[start:]), start, notes)


def _place_of(number: int, operations: List[Operation]) -> int:
    for tag, i1, i2, j1, j2 in operations:
        if i1 <= number < i2:
            return j1 if tag == "delete" else min(j1 + number - i1, max(j1, j2 - 1))
    return 0
