"""What is kept so that a fix can be taken back, also after a crash in the middle of applying it.

One JSON file per applied fix under `state_dir()/undo/<workspace>/`, newest last. It is complete on the disk before
the first file of the user's is touched, and says in which state the files may be.
"""

import base64
import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from dap_agent.fixes.failures import UndoRecordError
from dap_agent.session.paths import state_dir

State = Literal["applying", "applied", "undoing"]


@dataclass(frozen=True)
class Entry:
    """One file of a fix.

    Args:
        path: absolute.
        old: base64 of its bytes before; None = the fix made the file.
        new_digest: SHA-256 of its bytes after.
        mode: permission bits before (for a new file: those it got).
        temporary: the file beside it through which it is written.
    """

    path: str
    old: str | None
    new_digest: str
    mode: int
    temporary: str

    @property
    def old_bytes(self) -> bytes | None:
        """The bytes before; None = the file did not exist."""
        return None if self.old is None else base64.b64decode(self.old)


@dataclass(frozen=True)
class Record:
    """One fix.

    Args:
        root: the workspace's root.
        label: what the fix is called, for people.
        time: when it was applied, ISO 8601 in UTC.
        state: how far it got.
        files: what it changed.
        folders: those it made, outermost first.
        path: where the record lies.
    """

    root: str
    label: str
    time: str
    state: State
    files: tuple[Entry, ...]
    folders: tuple[str, ...]
    path: Path

    def write(self, state: State) -> "Record":
        """Puts the record on the disk for good, in *state*."""
        record = replace(self, state=state)
        data = asdict(record)
        del data["path"]
        write_durably(self.path, json.dumps(data).encode("utf-8"), 0o600, self.path.with_suffix(".tmp"))
        return record

    def delete(self) -> None:
        """Takes the record off the disk."""
        self.path.unlink(missing_ok=True)
        sync_folder(self.path.parent)


def folder_of(root: Path) -> Path:
    """Where the records of one workspace lie; made if missing."""
    key = hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:24]
    folder = state_dir() / "undo" / key
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def records(root: Path) -> list[Record]:
    """All records of a workspace, oldest first. A file that is no record is passed over."""
    found = []
    for path in sorted(folder_of(root).glob("*.json")):
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            files = tuple(Entry(**entry) for entry in data.pop("files"))
            found.append(Record(**{**data, "files": files, "folders": tuple(data["folders"]), "path": path}))
        except (OSError, ValueError, TypeError, KeyError):
            continue  # written by another version or damaged: nothing that can be taken back
    return found


def next_path(root: Path) -> Path:
    """A free place for the next record of a workspace."""
    numbers = [int(path.stem) for path in folder_of(root).glob("*.json") if path.stem.isdigit()]
    return folder_of(root) / f"{max(numbers, default=0) + 1:08d}.json"


@contextlib.contextmanager
def lock(root: Path) -> Iterator[None]:
    """Keeps two processes from applying or undoing in one workspace at the same time.

    Raises:
        UndoRecordError: there is no place for undo records.
    """
    try:
        stream = (folder_of(root) / "lock").open("wb")
    except OSError as error:
        raise UndoRecordError(
            f"Nothing was changed: what undoes a fix cannot be kept in {error.filename} ({error.strerror}); "
            "set DAP_AGENT_STATE_DIR to a folder you may write."
        ) from None
    with stream:
        try:
            import fcntl
        except ImportError:  # Windows: no lock, the digests still notice a change
            yield
            return
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield  # closing the file gives the lock back


def write_durably(path: Path, data: bytes, mode: int, temporary: Path) -> None:
    """Writes a file so that after a crash it holds either all of the old bytes or all of *data*.

    Args:
        path: the file; must not be a symlink.
        mode: its permission bits.
        temporary: a name in the same folder; nothing stays there, also on failure.

    Raises:
        OSError: writing failed; *path* is as before.
    """
    prepare(temporary, data, mode)
    try:
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def prepare(temporary: Path, data: bytes, mode: int) -> None:
    """Writes *data* under a temporary name, on the disk for good, with *mode*; removes it again on failure."""
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(mode)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Puts the names in *folder* on the disk for good, where the system can."""
    with contextlib.suppress(OSError):  # Windows and some network file systems cannot open or sync a folder
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
