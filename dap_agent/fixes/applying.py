"""Changes written to the user's files, all or none, and taken back on request."""

import base64
import contextlib
import os
import secrets
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from dap_agent.fixes.edits import ChangeSet, FileChange
from dap_agent.fixes.failures import ApplyError, StaleFile, UndoError
from dap_agent.fixes.undo_record import Entry, Record, lock, next_path, prepare, records, sync_folder, write_durably
from dap_agent.fixes.workspace import Workspace, digest


@dataclass(frozen=True)
class Applied:
    """A fix that is in the user's files.

    Args:
        label: what it is called.
        files: the paths written, absolute.
        record: where what undoes it is kept.
    """

    label: str
    files: tuple[Path, ...]
    record: Path


@dataclass(frozen=True)
class Undone:
    """A fix that was taken back.

    Args:
        label, time: of the fix (time in ISO 8601, UTC).
        restored: files that have their old bytes and mode again.
        removed: files that the fix had made.
    """

    label: str
    time: str
    restored: tuple[Path, ...]
    removed: tuple[Path, ...]


def apply(workspace: Workspace, changes: ChangeSet, *, label: str) -> Applied:
    """Writes all files of *changes*, or none.

    Each file is replaced atomically and keeps its permission bits; a symlink stays and its target is written. A file
    with several hard links is parted from the others. What undoes it is on the disk before the first file changes.

    Args:
        label: what the fix is called, shown by undo.

    Raises:
        StaleFile: a file is not what it was when the change was planned.
        OutsideWorkspace, ProtectedFile: a file may not be edited.
        ApplyError: writing failed; the message says what was taken back.
    """
    with lock(workspace.root):
        recover(workspace.root)
        for change in changes.files:
            workspace.resolve(str(change.path))
            _check_unchanged(change)
        record = _record(workspace.root, changes, label)
        try:
            record.write("applying")
        except OSError as error:
            raise ApplyError(f"Nothing was changed: the undo record cannot be written ({error}).") from None
        touched: set[str] = set()
        try:
            _write(record, changes, touched)
            record.write("applied")
        except BaseException as error:
            left = _roll_back(record, touched)
            if not isinstance(error, (OSError, StaleFile)):
                raise
            if left:
                raise ApplyError(
                    f"Applying failed ({error}), and so did taking it back: {', '.join(left)}. "
                    "Repair the cause and run dap-agent undo."
                ) from None
            if isinstance(error, StaleFile):
                raise
            raise ApplyError(f"Nothing was changed: applying failed ({error}).") from None
    return Applied(label, tuple(change.path for change in changes.files), record.path)


def _record(root: Path, changes: ChangeSet, label: str) -> Record:
    folders: list[str] = []
    entries = []
    for change in changes.files:
        missing = []
        for parent in change.path.parents:
            if parent.exists() or str(parent) in folders:
                break
            missing.append(str(parent))
        folders += reversed(missing)
        beside = change.path.parent / f".{change.path.name[:100]}.{secrets.token_hex(6)}.dap-agent"
        old = None if change.old is None else base64.b64encode(change.old).decode("ascii")
        entries.append(Entry(str(change.path), old, digest(change.new), change.mode, str(beside)))
    time = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return Record(str(root), label, time, "applying", tuple(entries), tuple(folders), next_path(root))


def _write(record: Record, changes: ChangeSet, touched: set[str]) -> None:
    for folder in record.folders:
        Path(folder).mkdir()
    for change, entry in zip(changes.files, record.files, strict=True):
        prepare(Path(entry.temporary), change.new, change.mode)
        if change.old is not None:
            _keep_owner(change.path, Path(entry.temporary), change.mode)
    for change, entry in zip(changes.files, record.files, strict=True):
        _check_unchanged(change)
        Path(entry.temporary).replace(change.path)
        touched.add(entry.path)
    for parent in {change.path.parent for change in changes.files} | {Path(f).parent for f in record.folders}:
        sync_folder(parent)


def _keep_owner(path: Path, temporary: Path, mode: int) -> None:
    """A file of another user's or group's keeps them where we may set them (as root)."""
    old, new = path.stat(), temporary.stat()
    if hasattr(os, "chown") and (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        with contextlib.suppress(PermissionError):
            os.chown(temporary, old.st_uid, old.st_gid)
            temporary.chmod(mode)  # chown clears set-id bits


def _check_unchanged(change: FileChange) -> None:
    now = _bytes(change.path)
    if now == change.old and not (now is None and change.path.is_symlink()):
        return
    if change.old is None:
        raise StaleFile(f"{change.name} exists by now; it was not written over. Make the proposal again.")
    what = "was removed" if now is None else "changed"
    raise StaleFile(f"{change.name} {what} since the fix was planned; nothing was written. Make the proposal again.")


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _roll_back(record: Record, touched: set[str] | None = None) -> list[str]:
    """Puts every file back that holds the fix (of *touched*, where that is known); returns those that could not be.

    The record stays when something is left, so that undo can go on from there.
    """
    left = []
    for entry in record.files:
        path = Path(entry.path)
        try:
            Path(entry.temporary).unlink(missing_ok=True)
            now = _bytes(path) if touched is None or entry.path in touched else None
            if now is not None and digest(now) == entry.new_digest:
                _restore(path, entry)
        except OSError as error:
            left.append(f"{path} ({error.strerror})")
    _remove_folders(record)
    if not left:
        with contextlib.suppress(OSError):  # a record that stays is found done by the next recovery
            record.delete()
    return left


def _restore(path: Path, entry: Entry) -> None:
    old = entry.old_bytes
    if old is None:
        path.unlink(missing_ok=True)
        sync_folder(path.parent)
    else:
        write_durably(path, old, entry.mode, Path(entry.temporary))


def _remove_folders(record: Record) -> None:
    for folder in reversed(record.folders):
        with contextlib.suppress(OSError):  # something else was put into it, so it stays
            Path(folder).rmdir()


def recover(root: Path) -> list[str]:
    """Takes back what a killed process left half applied, and ends what it left half undone.

    `apply` and `undo` do this first. A file that someone changed since is left alone.

    Returns:
        The labels of the fixes that were taken back.
    """
    labels = []
    for record in records(root):
        if record.state == "applying" or record.state == "undoing":
            if _roll_back(record):
                continue
            labels.append(record.label)
    return labels


def undo(workspace_root: Path, *, force: bool = False) -> Undone:
    """Takes back the last fix that was applied in a workspace; again for the one before.

    Args:
        force: also restore files that changed since the fix, losing those changes.

    Raises:
        UndoError: there is nothing to undo, a file changed since (the message says which), or writing failed.
    """
    root = workspace_root.resolve()
    with lock(root):
        recovered = recover(root)
        found = records(root)
        if not found:
            if recovered:
                raise UndoError(f"The fix {recovered[-1]!r} was only half applied and has now been taken back.")
            raise UndoError(f"There is no applied fix to undo in {root}.")
        record = found[-1]
        restored: list[Entry] = []
        removed: list[Entry] = []
        changed: list[str] = []
        for entry in record.files:
            path = Path(entry.path)
            try:
                now = _bytes(path)
            except OSError as error:
                raise UndoError(f"Nothing was undone: {path} cannot be read ({error.strerror}).") from None
            if now == entry.old_bytes:
                continue
            if (now is None or digest(now) != entry.new_digest or path.is_symlink()) and not force:
                changed.append(entry.path)
            (removed if entry.old is None else restored).append(entry)
        if changed:
            raise UndoError(
                f"Nothing was undone: {', '.join(changed)} changed since the fix {record.label!r} was applied. "
                "`dap-agent undo --force` restores the old files all the same."
            )
        try:
            record = record.write("undoing")
            for entry in (*restored, *removed):
                _restore(Path(entry.path), entry)
        except OSError as error:
            raise UndoError(f"The fix {record.label!r} was not undone completely ({error}); run undo again.") from None
        _remove_folders(record)
        record.delete()
        return Undone(
            record.label, record.time, tuple(Path(e.path) for e in restored), tuple(Path(e.path) for e in removed)
        )
