"""What is kept of sessions that are over, offered to their user again: listed, applied, taken back, forgotten."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dap_agent.control import kept, registry
from dap_agent.control.kept import Kept
from dap_agent.errors import DapAgentError


def offered(folders: Sequence[Path]) -> list[Kept]:
    """What is kept of *folders*, and of folders in and above them, by sessions that are over.

    Args:
        folders: absolute, links resolved; without any, all of the user's.

    Raises:
        DapAgentError: the folder where sessions meet is another user's.
    """
    live = {entry.id for entry in registry.sweep()}
    return [one for one in kept.all_kept() if one.session not in live and (not folders or one.within(folders))]


def find(id: str, folders: Sequence[Path] = ()) -> Kept:
    """What is kept under the id of a fix or of a session.

    Raises:
        DapAgentError: nothing is, or its session goes on.
    """
    for one in offered(folders):
        if id in (one.session, one.fix["id"] if one.fix is not None else None):
            return one
    raise DapAgentError(
        f"Nothing is kept of {id!r:.60}: a newer exception has taken its place, or its session goes on. "
        "`dap-agent kept list` shows what there is."
    )


def described(one: Kept) -> dict[str, Any]:
    """For an editor: `session`, `root`, `stop` (`schemas/control.schema.json`), `stands` (the failing line is what it
    was), `report` (Markdown) and `fix` (None if there is none).

    `fix` has `id`, `title`, `proved`, `applied` (never if the files are what they were before it), `fits` (it can be
    applied to them), `diff` and `files` (`path`, `new`, `ranges`, `oldText`, `newText`); the last two are empty if not.
    """
    return {
        "session": one.session,
        "root": str(one.root),
        "stop": one.stop,
        "stands": one.stands,
        "report": one.report,
        "fix": _fix(one) if one.fix is not None else None,
    }


def _fix(one: Kept) -> dict[str, Any]:
    from dap_agent.control.changes import changed_files
    from dap_agent.control.views import file_texts

    assert one.fix is not None, "the caller has looked"
    fix = {key: one.fix[key] for key in ("id", "title", "proved", "applied")}
    changes = one.planned()
    if changes is None:
        return {**fix, "fits": False, "diff": "", "files": []}
    texts = file_texts(changes)
    files = [{**file, **texts[file["path"]]} for file in changed_files(changes)]
    return {**fix, "applied": False, "fits": True, "diff": changes.masked_diff(), "files": files}


def apply(one: Kept, *, unproved: bool = False) -> list[str]:
    """Write a kept fix to the files.

    Args:
        unproved: also if its proof has not succeeded.

    Returns:
        The files, absolute.

    Raises:
        DapAgentError: nothing was written.
    """
    if one.fix is None:
        raise DapAgentError("No fix was kept: start the program again, and have its exception investigated.")
    if one.fix["applied"] and one.planned() is None:  # else somebody has taken it out of the files
        raise DapAgentError("This fix is applied already.")
    if not one.fix["proved"] and not unproved:
        raise DapAgentError("The fix is not proved, so it was not written. With --unproved it is written all the same.")
    return write(one)


def write(one: Kept) -> list[str]:
    """The same, whatever is known of the fix; there is one."""
    from dap_agent.fixes import applying
    from dap_agent.fixes.workspace import Workspace

    assert one.fix is not None, "the caller has looked"
    changes = one.plan()
    applying.apply(Workspace(one.root), changes, label=one.fix["title"])
    kept.mark(one.root, one.fix["id"], applied=True)
    return [str(change.path) for change in changes.files]


def undo(one: Kept) -> list[str]:
    """Take a kept fix out of the files again.

    Returns:
        The files, absolute.

    Raises:
        DapAgentError: nothing was taken back.
    """
    from dap_agent.fixes.undo_record import records

    if one.fix is None or not one.fix["applied"] or one.planned() is not None:
        raise DapAgentError("This fix is not applied.")
    found = records(one.root)
    if not found or found[-1].label != one.fix["title"]:
        raise DapAgentError(
            "This fix is not the last that dap-agent has written here: take it back in your editor or by version "
            "control."
        )
    return take_back(one)[1]


def take_back(one: Kept) -> tuple[str, list[str]]:
    """Take back what was written last in the workspace, the kept fix or another: its title and the files."""
    from dap_agent.fixes import applying

    undone = applying.undo(one.root)
    if one.fix is not None and undone.label == one.fix["title"]:
        kept.mark(one.root, one.fix["id"], applied=False)
    return undone.label, [str(path) for path in (*undone.restored, *undone.removed)]
