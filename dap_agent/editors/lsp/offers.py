"""Which lenses and actions follow from what is known of sessions: no editor, no files, no waiting in here."""

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dap_agent.editors.lsp.merging import changed_lines, line_in, merge
from dap_agent.editors.lsp.state import Fix, FixFile, Session, Stop
from dap_agent.session.rendering import clip, one_line

AUTODEBUG = "dapAgent.autodebug"
CANCEL = "dapAgent.cancel"
APPLY = "dapAgent.applyFix"
APPLY_AND_RESTART_FRAME = "dapAgent.applyAndRestartFrame"
APPLY_AND_RESTART_PROGRAM = "dapAgent.applyAndRestartProgram"
EXPLAIN = "dapAgent.explain"
SHOW = "dapAgent.showReport"
UNDO = "dapAgent.undoFix"
COMMANDS = (
    AUTODEBUG,
    CANCEL,
    APPLY,
    APPLY_AND_RESTART_FRAME,
    APPLY_AND_RESTART_PROGRAM,
    EXPLAIN,
    SHOW,
    UNDO,
)

_TITLE = 80


@dataclass(frozen=True)
class Lens:
    """One line's code lens.

    Args:
        line: from 0, in the buffer.
        title: what it says.
        command: of `COMMANDS`.
        argument: the command's only one.
    """

    line: int
    title: str
    command: str
    argument: Mapping[str, Any]


@dataclass(frozen=True)
class Action:
    """One code action.

    Args:
        title: what it says.
        command: of `COMMANDS`.
        argument: the command's only one.
        edit: it is a quick fix: the fix's edit comes before the command.
        preferred: it is the one to take.
    """

    title: str
    command: str
    argument: Mapping[str, Any]
    edit: bool = False
    preferred: bool = False


@dataclass(frozen=True)
class Document:
    """A buffer.

    Args:
        path: of its file, links resolved.
        text: what it holds.
        saved: what the file holds; None if there is none.
    """

    path: str
    text: str
    saved: str | None

    def line(self, stop: Stop) -> int:
        """Where the line of a stop in this file is in the buffer, from 0."""
        then = next((text for text in (stop.text, self.saved) if text is not None), self.text)
        return line_in(then, self.text, stop.line)


def lenses(sessions: Iterable[Session], document: Document) -> list[Lens]:
    """The code lenses of a buffer."""
    found = []
    for session in sessions:
        fix, shown = session.fix, session.shown
        argument = {"session": session.id}
        if shown is not None and shown.path == document.path:
            line = document.line(shown)
            if session.working is not None:
                step = clip(one_line(session.working.message), _TITLE)
                found.append(Lens(line, f"Investigating: {step} (cancel)", CANCEL, argument))
            elif fix is not None and shown.is_at(fix.stop):
                found.append(_fix_lens(fix, line, argument))
            elif session.live:
                found.append(Lens(line, "Autodebug this exception", AUTODEBUG, argument))
            if session.working is None:
                found.append(Lens(line, "Explain this exception", EXPLAIN, argument))
        if fix is not None and fix.stop is not None and fix.stop.path == document.path and not fix.stop.is_at(shown):
            found.append(_fix_lens(fix, document.line(fix.stop), argument))
    return found


def _fix_lens(fix: Fix, line: int, argument: Mapping[str, Any]) -> Lens:
    title = clip(one_line(fix.title), _TITLE)
    given = {**argument, "proposal": fix.id}
    if fix.applied:
        return Lens(line, f"Fix applied: {title} (undo)", UNDO, given)
    return Lens(line, f"Fix ready: {title}" + ("" if fix.proved else " (not proved)"), SHOW, given)


def actions(sessions: Iterable[Session], document: Document, first: int, last: int) -> list[Action]:
    """The code actions for lines *first* to *last* of a buffer, from 0, both included."""
    found: list[Action] = []
    for session in sessions:
        fix, shown = session.fix, session.shown
        argument = {"session": session.id}
        at_stop = any(
            stop is not None and stop.path == document.path and first <= document.line(stop) <= last
            for stop in (shown, fix.stop if fix is not None else None)
        )
        if fix is not None and (at_stop or _touches(fix, document, first, last)):
            found += _fix_actions(session, fix)
            at_stop = True
        elif not at_stop:
            continue
        elif session.live and session.working is None:
            found.append(Action("Autodebug this exception", AUTODEBUG, argument))
        if session.working is not None:
            found.append(Action("Cancel the investigation", CANCEL, argument))
        elif session.stop is not None:
            found.append(Action("Explain this exception", EXPLAIN, argument))
        found.append(Action("Show the investigation", SHOW, argument))
    return found


def _fix_actions(session: Session, fix: Fix) -> list[Action]:
    argument = {"session": session.id, "proposal": fix.id}
    title = clip(one_line(fix.title), _TITLE)
    if fix.applied:
        return [Action("Undo the fix", UNDO, argument)]
    given = {**argument, "edited": True}
    found = [Action(title if fix.proved else f"{title} (not proved)", APPLY, given, edit=True, preferred=fix.proved)]
    if session.live and session.stop is not None and session.stop.current:
        found.append(Action("Apply fix and restart frame", APPLY_AND_RESTART_FRAME, argument))
    if session.live:
        found.append(Action("Apply fix and restart program", APPLY_AND_RESTART_PROGRAM, argument))
    return found


def _touches(fix: Fix, document: Document, first: int, last: int) -> bool:
    file = next((file for file in fix.files if file.path == document.path), None)
    if file is None or file.old is None or file.new is None:
        return False
    before, after = (file.new, file.old) if fix.applied else (file.old, file.new)
    spans = changed_lines(before, after)
    return any(
        line_in(before, document.text, start) <= last and first <= line_in(before, document.text, end)
        for start, end in spans
    )


def target(file: FixFile, text: str | None, *, back: bool = False) -> str | None:
    """What a file is to hold with the fix.

    Args:
        text: what its buffer, or the file, holds now; None: there is no such file.
        back: the fix is to be taken back instead.

    Returns:
        The text; None if the fix does not fit what is there.
    """
    old, new = (file.new, file.old) if back else (file.old, file.new)
    if old is None:
        return new if text is None or text == new else None
    if new is None or text is None:
        return None
    return merge(old, new, text)


def frame_of(session: Session, fix: Fix) -> int:
    """The number of the frame that is to start again: the innermost one whose function the fix changes.

    If there is none: the innermost one in a file that it changes, else the innermost of the user's.
    """
    stop = session.stop
    if stop is None or not stop.frames:
        return 0
    changed: set[tuple[str, tuple[int, int]]] = set()
    spans: dict[str, list[tuple[int, int]]] = {}
    for file in fix.files:
        if file.old is not None and file.new is not None:
            spans[file.path] = _functions(file.old)
            for start, end in changed_lines(file.old, file.new):
                changed |= {(file.path, _around(spans[file.path], line)) for line in range(start, end + 1)}
    for number, path, line in stop.frames:
        if path in spans and (path, _around(spans[path], line)) in changed:
            return number
    return next((number for number, path, _ in stop.frames if path in spans), stop.frames[0][0])


def _functions(source: str) -> list[tuple[int, int]]:
    """First and last line of each function, from 0, inner ones behind outer ones."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return []
    return [
        (node.lineno - 1, (node.end_lineno or node.lineno) - 1)
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]


def _around(functions: Sequence[tuple[int, int]], line: int) -> tuple[int, int]:
    """The innermost function around a line; (-1, -1) for a module's own."""
    return max((span for span in functions if span[0] <= line <= span[1]), default=(-1, -1))
