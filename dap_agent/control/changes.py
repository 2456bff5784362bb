"""Fixes written to the user's files and taken back, and what there is to say of them."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dap_agent.control.watching import Texts, decoded
from dap_agent.control.work import Work
from dap_agent.errors import DapAgentError

if TYPE_CHECKING:
    from dap_agent.fixes.applying import Undone
    from dap_agent.fixes.edits import ChangeSet


def write(work: Work, *, unproved: bool = False) -> tuple[str, ...]:
    """Write a work's fix to the user's files.

    Args:
        work: one that proposes.
        unproved: also if its proof has not succeeded.

    Returns:
        The files, relative to the workspace.

    Raises:
        DapAgentError: nothing was written.
    """
    from dap_agent.fixes import applying

    outcome = work.outcome
    assert outcome is not None and outcome.changes is not None, "only what proposes is applied"
    if work.applied:
        raise DapAgentError("This fix is applied already. /undo takes it back.")
    if not outcome.proved and not unproved:
        verdict = outcome.verdict
        why = f"{verdict.kind}: {verdict.summary.rstrip('.')}" if verdict is not None else "it was not tried"
        raise DapAgentError(
            f"The fix is not proved ({why}), so it was not written. /show shows it, /apply --unproved writes it "
            "all the same."
        )
    applying.apply(work.workspace, outcome.changes, label=work.title)
    return names(work)


def names(work: Work) -> tuple[str, ...]:
    """The files of a work's fix, relative to the workspace."""
    assert work.outcome is not None and work.outcome.changes is not None, "it proposes"
    return tuple(work.workspace.relative(change.path) for change in work.outcome.changes.files)


def texts(work: Work) -> Texts:
    """`python_texts` of a work's fix."""
    assert work.outcome is not None and work.outcome.changes is not None, "it proposes"
    return python_texts(work.outcome.changes)


def python_texts(changes: "ChangeSet") -> Texts:
    """The Python files of a fix with their texts before and after it, by absolute path."""
    found = {}
    for change in changes.files:
        new = decoded(change.new)
        if new is not None and change.path.suffix in (".py", ".pyw"):
            found[str(change.path)] = None if change.old is None else decoded(change.old), new
    return found


def take_back(root: Path) -> "Undone":
    """Take back the last fix that was applied in a workspace.

    Raises:
        DapAgentError: there is none, or it cannot be taken back.
    """
    from dap_agent.fixes import applying

    return applying.undo(root)


def changed_files(changes: "ChangeSet") -> list[dict[str, Any]]:
    """Each file of a fix with the lines that change, as in the heads of a unified diff (lines from 1)."""
    return [
        {
            "path": str(change.path),
            "new": change.old is None,
            "ranges": [] if change.old is None else _ranges(change.old, change.new),
        }
        for change in changes.files
    ]


def _ranges(old: bytes, new: bytes) -> list[dict[str, int]]:
    import difflib

    matcher = difflib.SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False)
    return [
        {"oldStart": i + 1, "oldLines": i_end - i, "newStart": j + 1, "newLines": j_end - j}
        for tag, i, i_end, j, j_end in matcher.get_opcodes()
        if tag != "equal"
    ]
