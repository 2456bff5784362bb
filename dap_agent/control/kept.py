"""The last exception and fix of a workspace, kept when the session is over: one file each, for this user alone.

Of the last hundred workspaces: temporary folders are workspaces, too, and whoever looks reads all files.

All of it is masked. A fix is kept as the edits that it consists of, and is planned anew on the files as they are then.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dap_agent.control.registry import overlap
from dap_agent.errors import DapAgentError
from dap_agent.session.paths import private_dir, state_dir

if TYPE_CHECKING:
    from dap_agent.control.work import Work
    from dap_agent.fixes.edits import ChangeSet
    from dap_agent.session.snapshot import Snapshot

_FORMAT = 1
_MOST = 100


@dataclass(frozen=True)
class Kept:
    """What is known of a workspace's last exception.

    Args:
        root: the workspace's.
        session: the id of the session.
        stop: as in `views.stop`.
        snapshot: the whole of it.
        report: Markdown.
        fix: `id`, `title`, `proved`, `applied`, `proposal` (JSON of `fixes.proposal`) and `files` (path ->
            digest of the bytes that it was made on, None for a new file), None if there is none.
    """

    root: Path
    session: str
    stop: dict[str, Any]
    snapshot: dict[str, Any]
    report: str
    fix: dict[str, Any] | None

    def plan(self) -> "ChangeSet":
        """What the fix does to the files as they are now.

        Raises:
            DapAgentError: they are not those that it was made and tried on, or it was kept without a secret in it.
        """
        from dap_agent.fixes.edits import plan_proposal
        from dap_agent.fixes.failures import StaleFile
        from dap_agent.fixes.proposal import parse
        from dap_agent.fixes.workspace import Workspace, digest
        from dap_agent.session.redaction import mask

        assert self.fix is not None, "only a fix is planned"
        if mask() in json.dumps([self.fix["proposal"].get(part) for part in ("edits", "test")], ensure_ascii=False):
            raise DapAgentError(
                "The fix holds a secret, which was not kept with it, so nothing was written. Start the program again, "
                "and have its exception investigated anew."
            )
        for name, known in self.fix["files"].items():
            path = Path(name)
            if (digest(path.read_bytes()) if path.exists() else None) != known:
                raise StaleFile(f"{path.name} has changed since the fix was made.")
        return plan_proposal(Workspace(self.root), parse(self.fix["proposal"]))

    def planned(self) -> "ChangeSet | None":
        """The same; None if the fix does not fit the files, which it does not if it is in them."""
        try:
            return self.plan()
        except (DapAgentError, OSError):
            return None

    def within(self, folders: Iterable[Path]) -> bool:
        """Whether it is of one of *folders*, or of a folder in or above one."""
        return overlap([self.root], folders)

    @property
    def stands(self) -> bool:
        """Whether the line that failed is what it was: an exception of former days is of no use beside other code."""
        from dap_agent.session.redaction import mask_code
        from dap_agent.session.snapshot import Snapshot

        frame = Snapshot(self.snapshot).user_frame
        source = frame.get("source") if frame is not None else None
        if frame is None or not source:
            return True
        try:
            now = Path(frame["file"]).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return False
        place = frame["line"] - source["first_line"]
        if not 0 <= place < len(source["lines"]):
            return True
        then = source["lines"][place].strip()
        return 0 < frame["line"] <= len(now) and mask_code(now[frame["line"] - 1]).strip() == mask_code(then)


def folder() -> Path:
    """Where they lie; its modification time changes whenever one is written."""
    return private_dir(state_dir() / "workspaces")


def keep(root: Path, session: str, snapshot: "Snapshot", stop: dict[str, Any], work: "Work | None") -> None:
    """Keep the newest of a workspace in place of what was kept.

    Args:
        root: the workspace's.
        session: the session's id.
        snapshot: of the exception.
        stop: as in `views.stop`.
        work: the investigation of it, if there was one.

    Raises:
        OSError: it cannot be written.
    """
    from dap_agent.control.markdown import report
    from dap_agent.fixes.undo_record import write_durably
    from dap_agent.fixes.workspace import digest
    from dap_agent.session.redaction import mask_json, mask_known, mask_snapshot

    fix = None
    outcome = work.outcome if work is not None else None
    if work is not None and work.proposes and outcome is not None and outcome.proposal and outcome.changes:
        fix = {
            "id": work.id,
            "title": work.title,
            "proved": outcome.proved,
            "applied": bool(work.applied),
            # as in a journal: the model has seen masked text only, and its words have to stay what they are
            "proposal": mask_json(outcome.proposal.to_json(), mask_known),
            "files": {
                str(change.path): None if change.old is None else digest(change.old) for change in outcome.changes.files
            },
        }
    data = {
        "format": _FORMAT,
        "root": str(root),
        "session": session,
        "stop": mask_json({**stop, "current": False}),
        "snapshot": mask_snapshot(snapshot.data),
        "report": report(snapshot, work),
        "fix": fix,
    }
    path = _path(root)
    write_durably(path, json.dumps(data).encode("ascii"), 0o600, path.with_suffix(f".{os.getpid()}"))
    with contextlib.suppress(OSError):  # another session removes them, too
        for old in sorted(folder().glob("*.json"), key=lambda one: one.stat().st_mtime_ns)[:-_MOST]:
            old.unlink()


def mark(root: Path, id: str, *, applied: bool) -> None:
    """Note that a kept fix was written to the files, or taken back; nothing if it is not kept any more.

    Raises:
        OSError: it cannot be written.
    """
    from dap_agent.fixes.undo_record import write_durably

    path = _path(root)
    found = load(path)
    if found is None or found.fix is None or found.fix["id"] != id:
        return
    data = json.loads(path.read_bytes())
    data["fix"]["applied"] = applied
    write_durably(path, json.dumps(data).encode("ascii"), 0o600, path.with_suffix(f".{os.getpid()}"))


def forget(root: Path) -> None:
    """Keep nothing of a workspace any more.

    Raises:
        OSError: it cannot be removed.
    """
    _path(root).unlink(missing_ok=True)


def load(path: Path) -> Kept | None:
    """What a file of `folder` holds; None if it is none of ours."""
    try:
        data = json.loads(path.read_bytes())
        if data["format"] != _FORMAT:
            return None
        found = Kept(Path(data["root"]), data["session"], data["stop"], data["snapshot"], data["report"], data["fix"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found


def all_kept() -> list[Kept]:
    """What is kept of all workspaces."""
    return [found for path in sorted(folder().glob("*.json")) if (found := load(path)) is not None]


def _path(root: Path) -> Path:
    return folder() / f"{hashlib.sha256(str(root).encode('utf-8', 'surrogateescape')).hexdigest()[:24]}.json"
