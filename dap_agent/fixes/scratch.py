"""A private copy of the workspace in which tests run, removed afterwards whatever happens."""

# one system call per file: Path objects cost more than the copy
# ruff: noqa: PTH101, PTH102, PTH108, PTH114, PTH115, PTH117, PTH118, PTH211

import asyncio
import contextlib
import errno
import os
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from dap_agent.fixes.failures import ScratchError
from dap_agent.fixes.ignoring import Entry, walk
from dap_agent.fixes.importing import import_base, is_package, package_top
from dap_agent.fixes.processes import uninterrupted
from dap_agent.fixes.workspace import Workspace

PREFIX = "dap-agent-scratch-"
MAX_FILE = 200 * 1024 * 1024
MAX_TOTAL = 4 * 1024**3
MAX_FILES = 200_000
_FICLONE = 0x40049409  # ioctl of Linux: share the blocks until one side writes (btrfs, xfs, bcachefs)
_SMALL = 64 * 1024


class Scratch:
    """The copy.

    Args:
        base: the folder that holds everything of it.
        workspace: what is copied.

    Attributes:
        root: the copy of the workspace's root; it has the same name.
        import_root: the folder from which the root is imported, if it is a package itself; else None.
        packages: copies of packages outside of the root that the fix edits; goes on `sys.path`. May not exist.
        temp: for `TMPDIR`.
        private: for our own files.
        notes: what was not copied, in words.
        places: (original, copy) of each folder or module that was copied.
    """

    def __init__(self, base: Path, workspace: Workspace) -> None:
        base = base.resolve()
        self.base = base
        self.workspace = workspace
        # of a package that is the root the whole package is copied: `import package.part` needs all of it
        top, above = workspace.root, Path(workspace.root.name or "root")
        self.import_root: Path | None = None
        if is_package(workspace.root):
            top, above = package_top(workspace.root), workspace.root.relative_to(import_base(workspace.root))
            self.import_root = base / "w"
        self.root = base / "w" / above
        self.packages = base / "p"
        self.temp = base / "t"
        self.private = base / "r"
        self.notes: list[str] = []
        self._manifest: dict[str, tuple[int, ...] | str] = {}
        self._own: dict[str, tuple[bytes, int]] = {}
        self._folders: dict[str, int] = {}  # with their permission bits
        copy = self.root.parents[len(workspace.root.relative_to(top).parts) - 1] if top != workspace.root else self.root
        self.places: list[tuple[Path, Path]] = [(top, copy)]
        self._reflink = True
        self._files = self._bytes = 0

    def fill(self, outside: Iterable[Path], stop: threading.Event) -> None:
        """Copies the workspace, and the packages that hold the files *outside* of its root.

        Raises:
            ScratchError: it is too large, or the disk is full.
        """
        (top, copy), *_ = self.places
        for folder in (copy, self.temp, self.private):
            folder.mkdir(parents=True)
        self._note_folder(str(copy))
        # an ini file that always matches: pytest must not find one of the temporary folder's
        (self.base / "pytest.ini").write_text("[pytest]\n")
        with self._told():
            for entry in walk(top, for_copy=True):
                if stop.is_set():
                    return
                self._copy(top, copy, entry)
            for path in outside:
                self._copy_package(path, stop)

    def copy_of(self, path: Path) -> Path | None:
        """Where a file of the workspace (or of a copied package) is in the copy; None for any other path."""
        for original, copy in self.places:
            if path == original:
                return copy
            if path.is_relative_to(original):
                return copy / path.relative_to(original)
        return None

    def argument(self, path: Path) -> str:
        """How the copy of the workspace's file *path* is named to what runs in the copy of the root."""
        copy = self.copy_of(path) or path
        return copy.relative_to(self.root).as_posix() if copy.is_relative_to(self.root) else str(copy)

    def original(self, path: str) -> str:
        """The path in the workspace of a path in the copy; any other path unchanged."""
        found = Path(path)
        for original, copy in self.places:
            if found.is_relative_to(copy):
                return str(original / found.relative_to(copy))
        return path

    def put(self, path: Path, data: bytes | None, mode: int = 0o644) -> None:
        """Writes (None: removes) the copy of the workspace's file *path*; `reset` keeps it so."""
        target = self.copy_of(path)
        if target is None:
            raise ScratchError(f"{path} is not part of the scratch copy.")
        key = str(target)
        with self._told():
            target.unlink(missing_ok=True)
            if data is None:
                self._own.pop(key, None)
                self._manifest.pop(key, None)
                return
            for parent in reversed(target.parents):
                if parent.is_relative_to(self.base) and not parent.exists():
                    parent.mkdir()
                    self._note_folder(str(parent))
            self._own[key] = (data, mode)
            self._write_own(key)

    def reset(self) -> None:
        """Takes back what a run changed in the copy, so that the next run starts from the same files."""
        seen: set[str] = set()
        with self._told():
            for top in (self.places[0][1], self.packages):
                if top.exists():
                    self._reset_folder(str(top), seen)
            for folder in sorted(self._folders):
                Path(folder).mkdir(exist_ok=True)
            for key in [key for key in self._manifest if key not in seen]:
                self._restore(key)
            remove_tree(self.temp)
            self.temp.mkdir()

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Turns a failure of the file system into a ScratchError."""
        try:
            yield
        except OSError as error:
            why = "the disk is full" if error.errno == errno.ENOSPC else str(error)
            raise ScratchError(f"The scratch copy of the workspace in {self.base} failed: {why}.") from None

    def _note_folder(self, folder: str) -> None:
        self._folders[folder] = stat.S_IMODE(os.lstat(folder).st_mode)

    async def reset_in_thread(self) -> None:
        """`reset` without blocking the loop; a cancelled caller still waits for its end."""
        await _finish(asyncio.to_thread(self.reset))

    def _reset_folder(self, folder: str, seen: set[str]) -> None:
        mode = self._folders.get(folder)
        if mode is not None and stat.S_IMODE(os.lstat(folder).st_mode) != mode:
            os.chmod(folder, mode)
        with os.scandir(folder) as found:
            entries = list(found)
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.path in self._folders:
                    self._reset_folder(entry.path, seen)
                else:
                    remove_tree(Path(entry.path))
                continue
            known = self._manifest.get(entry.path)
            if known is not None and known == self._state(entry.path, entry.stat(follow_symlinks=False)):
                seen.add(entry.path)
            else:
                os.unlink(entry.path)

    def _restore(self, key: str) -> None:
        if key in self._own:
            self._write_own(key)
            return
        original = Path(self.original(key))
        try:
            entry = Entry("", original.stat(follow_symlinks=False), original.is_symlink())
            self._copy_file(str(original), key, entry)
        except OSError:
            self._manifest.pop(key)  # gone from the workspace meanwhile, so it is gone here, too

    def _write_own(self, key: str) -> None:
        data, mode = self._own[key]
        descriptor = os.open(key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            os.fchmod(stream.fileno(), mode & 0o777)
        self._manifest[key] = self._state(key, os.lstat(key))

    @staticmethod
    def _state(path: str, found: os.stat_result) -> tuple[int, ...] | str:
        if stat.S_ISLNK(found.st_mode):
            return os.readlink(path)
        return found.st_mtime_ns, found.st_size, found.st_ino, found.st_mode

    def _copy(self, source: Path, target: Path, entry: Entry) -> None:
        self._files += 1
        self._bytes += 0 if entry.link else entry.stat.st_size
        if self._files > MAX_FILES or self._bytes > MAX_TOTAL:
            limit = f"{MAX_FILES} files" if self._files > MAX_FILES else f"{MAX_TOTAL // 1024**3} GB"
            raise ScratchError(
                f"The workspace {self.workspace.root} has more than {limit}, too much for a scratch copy; "
                "name a smaller one with --workspace, or list what tests do not need in .gitignore."
            )
        destination = f"{target}/{entry.path}"
        if stat.S_ISDIR(entry.stat.st_mode):
            os.mkdir(destination)
            self._note_folder(destination)
        elif entry.link or stat.S_ISREG(entry.stat.st_mode):
            self._copy_file(f"{source}/{entry.path}", destination, entry)

    def _copy_file(self, source: str, destination: str, entry: Entry) -> None:
        if entry.link:
            aim = os.readlink(source)
            inside = self.copy_of(Path(aim)) if os.path.isabs(aim) else None
            os.symlink(str(inside) if inside is not None else aim, destination)
            self._manifest[destination] = os.readlink(destination)
            return
        if entry.stat.st_size > MAX_FILE:
            self.notes.append(f"{self.original(destination)} is larger than 200 MB and was not copied")
            return
        try:
            descriptor = os.open(source, os.O_RDONLY)
        except PermissionError:
            self.notes.append(f"{self.original(destination)} may not be read and was not copied")
            return
        try:
            out = os.open(destination, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                self._copy_content(descriptor, out, entry.stat.st_size)
                os.fchmod(out, entry.stat.st_mode & 0o777)
                self._manifest[destination] = self._state(destination, os.fstat(out))
            finally:
                os.close(out)
        finally:
            os.close(descriptor)

    def _copy_content(self, source: int, target: int, size: int) -> None:
        if size > _SMALL and self._reflink:
            try:
                import fcntl

                fcntl.ioctl(target, _FICLONE, source)
            except (ImportError, OSError):
                self._reflink = False  # not this file system, or another one: plain copies from here on
            else:
                return
        while chunk := os.read(source, 1 << 20):
            view = memoryview(chunk)
            while view:
                view = view[os.write(target, view) :]

    def _copy_package(self, path: Path, stop: threading.Event) -> None:
        """Copies the package (or module) to which an edited file outside of the root belongs."""
        if self.copy_of(path) is not None:
            return
        top = path
        while not top.exists():
            top = top.parent  # of a new file the folder in which it will be
        top = package_top(top)
        target = self.packages / top.relative_to(import_base(top))
        self.places.append((top, target))
        for folder in reversed(target.parents):
            if folder.is_relative_to(self.packages) and not folder.exists():
                folder.mkdir()
                self._note_folder(str(folder))
        if top.is_file():
            self._copy_file(str(top), str(target), Entry("", top.stat(), False))
            return
        target.mkdir()
        self._note_folder(str(target))
        for entry in walk(top, for_copy=True):
            if stop.is_set():
                return
            self._copy(top, target, entry)


@contextlib.asynccontextmanager
async def scratch_copy(workspace: Workspace, outside: Iterable[Path] = ()) -> AsyncIterator[Scratch]:
    """A scratch copy for as long as the block runs; it is gone afterwards, also on failure and cancellation.

    What a killed process left behind is removed first.

    Args:
        outside: edited files outside of the workspace's root; their packages are copied, too.

    Raises:
        ScratchError: it cannot be made.
    """
    stop = threading.Event()
    try:
        base = Path(tempfile.mkdtemp(prefix=PREFIX))
    except OSError as error:
        raise ScratchError(f"No scratch folder could be made in {tempfile.gettempdir()}: {error}.") from None
    held = _hold(base)
    scratch = Scratch(base, workspace)
    try:
        filling = asyncio.ensure_future(asyncio.to_thread(_sweep_and_fill, scratch, tuple(outside), stop))
        try:
            await asyncio.shield(filling)
        except asyncio.CancelledError:
            stop.set()
            with contextlib.suppress(Exception):  # cancelled: whether the copy failed, too, does not matter
                await filling
            raise
        yield scratch
    finally:
        await _finish(asyncio.to_thread(remove_tree, base))
        held.close()


async def _finish(work: Coroutine[Any, Any, None]) -> None:
    """Waits for *work* to its end even when cancelled meanwhile."""
    _, cancelled = await uninterrupted(work)
    if cancelled:
        raise asyncio.CancelledError


def _sweep_and_fill(scratch: Scratch, outside: tuple[Path, ...], stop: threading.Event) -> None:
    sweep()
    scratch.fill(outside, stop)


def _hold(base: Path) -> IO[bytes]:
    """Marks the folder as in use for as long as this process lives and the file is open."""
    stream = (base / "lock").open("wb")
    with contextlib.suppress(ImportError):  # Windows: no marks, nothing is swept
        import fcntl

        fcntl.flock(stream, fcntl.LOCK_EX)
    return stream


def sweep() -> None:
    """Removes scratch folders whose process was killed."""
    try:
        import fcntl
    except ImportError:
        return
    for base in Path(tempfile.gettempdir()).glob(PREFIX + "*"):
        with contextlib.suppress(OSError):  # another user's, in use, or swept by someone else at the same time
            if base.stat().st_uid != os.getuid():
                continue
            mark = base / "lock"
            if not mark.exists():
                if time.time() - base.stat().st_mtime > 60:  # younger: its owner is about to mark it
                    remove_tree(base)
                continue
            with mark.open("wb") as stream:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_tree(base)


def remove_tree(folder: Path) -> None:
    """Removes a folder with everything in it, also where a test took away permissions."""
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        return
    for top, names, _ in os.walk(folder):
        for name in (".", *names):
            with contextlib.suppress(OSError):
                path = os.path.join(top, name)
                if not os.path.islink(path):
                    os.chmod(path, 0o700)
    shutil.rmtree(folder, ignore_errors=True)
