"""What a session is like as JSON for clients of its socket (`schemas/control.schema.json`)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dap_agent.control.events import proposal_body
from dap_agent.control.work import Work
from dap_agent.session.rendering import clean, clip

if TYPE_CHECKING:
    from dap_agent.fixes.edits import ChangeSet
    from dap_agent.session.snapshot import Snapshot

_FRAMES = 50


def stop(snapshot: "Snapshot", *, thread_id: int | None, current: bool) -> dict[str, Any]:
    """An exception stop.

    Args:
        snapshot: its picture.
        thread_id: DAP id of the thread; None if that is not known.
        current: the program still stands there.
    """
    frame = snapshot.user_frame or snapshot.failing_frame
    exception = snapshot.exception or {"type": "", "message": snapshot.headline}
    return {
        "threadId": thread_id,
        "headline": clip(clean(snapshot.headline), 2000),
        "exception": {"type": str(exception["type"]), "message": clip(clean(str(exception["message"])), 2000)},
        "path": frame["file"] if frame else None,
        "line": frame["line"] if frame else None,
        "function": frame["function"] if frame else None,
        "frames": [
            {"number": one["number"], "path": one["file"], "line": one["line"], "function": one["function"]}
            for one in snapshot.frames
            if one["user"]
        ][:_FRAMES],
        "current": current,
    }


def proposal(work: Work) -> dict[str, Any]:
    """A fix with the texts that it takes to put it into buffers; these are the user's own and not masked.

    Args:
        work: one that proposes.
    """
    assert work.outcome is not None and work.outcome.changes is not None, "it proposes"
    body = proposal_body(work)
    texts = file_texts(work.outcome.changes)
    return {
        **body,
        "root": str(work.workspace.root),
        "applied": bool(work.applied),
        "stop": stop(work.snapshot, thread_id=None, current=False),
        "files": [{**file, **texts[file["path"]]} for file in body["files"]],
    }


def file_texts(changes: "ChangeSet") -> dict[str, dict[str, str | None]]:
    """Path -> `oldText` (None: the file is new) and `newText` (None: it cannot be shown as text)."""
    from dap_agent.fixes.failures import UnreadableFile
    from dap_agent.fixes.source_text import decode

    texts: dict[str, dict[str, str | None]] = {}
    for change in changes.files:
        try:
            old = None if change.old is None else decode(change.old, change.path.name).text
            texts[str(change.path)] = {"oldText": old, "newText": decode(change.new, change.path.name).text}
        except UnreadableFile:
            texts[str(change.path)] = {"oldText": None, "newText": None}
    return texts


def working(work: Work | None, message: str) -> Mapping[str, Any] | None:
    """An investigation that runs, with its newest step in one line."""
    return {"id": work.id, "task": work.task, "message": message} if work is not None else None
