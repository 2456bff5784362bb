"""The folders a model may read and edit, and what it may not even there."""

import contextlib
import hashlib
import os
import re
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path
from stat import S_ISREG

from dap_agent.fixes.failures import OutsideWorkspace, ProtectedFile, UnreadableFile
from dap_agent.fixes.ignoring import walk
from dap_agent.fixes.importing import is_package
from dap_agent.fixes.protected import inside_venv, installed_in, installed_part, secret_reason
from dap_agent.fixes.searching import SearchResult, fits, search
from dap_agent.fixes.source_text import decode, unix

MAX_BYTES = 2 * 1024 * 1024
_MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git", "pytest.ini", "tox.ini")


def digest(data: bytes) -> str:
    """The digest by which a changed file is noticed (SHA-256)."""
    return hashlib.sha256(data).hexdigest()


def find_root(program: Path) -> Path:
    """The project around a program: the nearest folder with a project's files, else the program's own folder.

    The home folder and the file system's root are never taken for a project because of a marker in them.

    Args:
        program: a file or a folder.
    """
    program = program.resolve()
    start = program if program.is_dir() else program.parent
    barred = {Path(start.anchor)}
    with contextlib.suppress(RuntimeError, OSError):  # a user without a home folder has none to protect
        barred.add(Path.home().resolve())
    for folder in (start, *start.parents):
        if folder in barred:
            break
        if any((folder / marker).exists() for marker in _MARKERS):
            return folder
    return start


class Workspace:
    """A project's folder as the model may use it.

    Args:
        root: where edits may go.
        also: further folders named by the user, such as an installed package's.
    """

    def __init__(self, root: Path, *, also: Sequence[Path] = ()) -> None:
        self.root = root.resolve()
        self.also = tuple(folder.resolve() for folder in also)
        self.folders = (self.root, *self.also)
        self._seen: dict[Path, str] = {}
        self.umask = _umask()

    def resolve(self, path: str) -> Path:
        """The file that *path* names, symlinks resolved, if it may be edited. It need not exist.

        Args:
            path: relative to the root, or absolute.

        Raises:
            OutsideWorkspace: it lies outside of the root and of *also*.
            ProtectedFile: it is a secret, version control's, or an installed package's file.
        """
        found = self._absolute(path)
        owner = self._owner(found)
        if owner is None:
            hint = ""
            if installed_part(found) is not None or _in_our_stdlib(found):
                hint = " It belongs to an installed package: fix the calling code, or propose an upgrade in words."
            raise OutsideWorkspace(
                f"{path} is outside the workspace {self.root}; only files below it can be edited.{hint}"
            )
        self._refuse_secrets(path, found)
        part = installed_part(found.relative_to(owner))
        venv = inside_venv(owner, found) if part is None else None
        if part is not None or venv is not None:
            raise ProtectedFile(
                f"{path} is read-only: it lies in {part or venv}, among installed packages. "
                "Fix the calling code, or propose an upgrade in words."
            )
        return found

    def holds(self, path: str) -> bool:
        """Whether *path*, a frame's file, may be edited; see `resolve`. `<frozen codecs>` and the like are no files."""
        if not Path(path).is_absolute():
            return False
        try:
            self.resolve(path)
        except (OutsideWorkspace, ProtectedFile, UnreadableFile):
            return False
        return True

    def original_of(self, path: str) -> Path | None:
        """The workspace's own file of which *path*, a frame's file, is an installed copy; None if it is no such copy.

        A project that was installed without `pip install -e` runs the copy, whatever is changed in the workspace.
        """
        inner = installed_in(path)[1]
        if not inner or self.holds(path):
            return None
        places = (folder.joinpath(*inner) for folder in (self.root / "src", self.root))
        return next((place for place in places if place.is_file() and self.holds(str(place))), None)

    def exists(self, path: str) -> bool:
        """Whether *path* names a file of the workspace that is there."""
        try:
            found = self._absolute(path)
        except (OutsideWorkspace, UnreadableFile):
            return False
        return self._owner(found) is not None and found.is_file()

    def relative(self, path: Path) -> str:
        """*path* for people: relative to the root if it is below it, with slashes."""
        try:
            return path.relative_to(self.root).as_posix()
        except ValueError:
            return path.as_posix()

    def read(self, path: str) -> str:
        """The text of a file, newlines as \\n, noted as seen by the model.

        Installed packages and the standard library may be read too.

        Raises:
            OutsideWorkspace, ProtectedFile: it may not be read.
            UnreadableFile: it is missing, binary or larger than 2 MiB.
        """
        found = self._absolute(path)
        if self._owner(found) is None and installed_part(found) is None and not _in_our_stdlib(found):
            raise OutsideWorkspace(f"{path} is outside the workspace {self.root}; only files below it can be read.")
        self._refuse_secrets(path, found)
        data = self.bytes_of(found)
        text = unix(decode(data, self.relative(found)).text)
        self._seen[found] = digest(data)
        return text

    def bytes_of(self, path: Path) -> bytes:
        """The bytes of a resolved path.

        Raises:
            UnreadableFile: it is missing, not a regular file, or larger than 2 MiB.
        """
        name = self.relative(path)
        try:
            if path.is_dir():
                raise UnreadableFile(f"{name} is a folder, not a file.")
            if not path.is_file():
                missing = "is not a regular file" if path.exists() else "does not exist"
                raise UnreadableFile(f"{name} {missing}; look for it with search, or create it with write_file.")
            with path.open("rb") as stream:
                data = stream.read(MAX_BYTES + 1)
        except OSError as error:
            raise UnreadableFile(f"{name} cannot be read: {error.strerror}.") from None
        if len(data) > MAX_BYTES:
            raise UnreadableFile(f"{name} is larger than {MAX_BYTES // 1024 // 1024} MiB; search it for what matters.")
        return data

    def note_seen(self, path: str) -> None:
        """Notes that the model was shown a file as it is now, for example in the snapshot.

        A path that may not be edited is not noted, since no edit can go there.
        """
        try:
            found = self.resolve(path)
            self._seen[found] = digest(self.bytes_of(found))
        except (OutsideWorkspace, ProtectedFile, UnreadableFile):
            return

    def changed_since_seen(self, path: Path, data: bytes) -> bool:
        """Whether a resolved path's bytes are others than those the model was shown."""
        return self._seen.get(path, digest(data)) != digest(data)

    def files(self) -> Iterator[Path]:
        """The workspace's files, absolute.

        Left out: what `.gitignore` names, caches, virtual environments, secrets, and symlinks that lead elsewhere.
        """
        for folder in (self.root, *self.also):
            for entry in walk(folder):
                path = folder / entry.path
                if secret_reason(path.relative_to(folder)) is not None or not (
                    entry.link or S_ISREG(entry.stat.st_mode)
                ):
                    continue
                if not entry.link or self._leads_inside(path):
                    yield path

    def search(
        self, pattern: str, glob: str | None = None, limit: int = 100, *, regex: bool = True, seconds: float = 5.0
    ) -> SearchResult:
        """Lines of the workspace's files that match; it blocks, so call it in a thread from async code.

        Args:
            pattern: a regular expression (Python's); one that is invalid is searched as plain text.
            glob: only files whose path from the root, or whose name, matches, such as `tests/*.py`.
            limit: most matches returned.
            seconds: most time spent; what was found until then is returned and marked as cut.
        """
        named = ((self.relative(path), path) for path in self.files() if fits(glob, *self._names(path)))
        return search(named, pattern, limit=limit, regex=regex, seconds=seconds)

    def _names(self, path: Path) -> Iterator[str]:
        """What `resolve` takes for a file: from the root, absolute, and `pkg/module.py` of a named folder."""
        yield self.relative(path)
        yield path.as_posix()
        for folder in self.folders:
            if path.is_relative_to(folder):
                yield path.relative_to(folder.parent if is_package(folder) else folder).as_posix()

    def _absolute(self, path: str) -> Path:
        if not path or "\0" in path:
            raise OutsideWorkspace("The path is empty or malformed; give one relative to the workspace's root.")
        try:
            return (self._named(Path(path)) or self.root / path).resolve()
        except (OSError, RuntimeError) as error:  # a symlink loop
            raise UnreadableFile(f"{path} cannot be resolved: {error}.") from None

    def _named(self, path: Path) -> Path | None:
        """A path that does not start at the root: `pkg/module.py` where the root or another named folder is pkg."""
        if path.is_absolute() or (self.root / path).exists():
            return None
        for folder in self.folders:
            if path.parts[:1] == (folder.name,) and is_package(folder) and not (self.root / path.parts[0]).exists():
                return folder.parent / path
        return next((folder / path for folder in self.also if (folder / path).exists()), None)

    def _owner(self, path: Path) -> Path | None:
        """The innermost of the named folders that holds *path*."""
        owners = [folder for folder in (self.root, *self.also) if path != folder and path.is_relative_to(folder)]
        return max(owners, key=lambda folder: len(folder.parts), default=None)

    def _leads_inside(self, link: Path) -> bool:
        try:
            target = link.resolve()
        except (OSError, RuntimeError):  # a symlink loop
            return False
        owner = self._owner(target)
        return owner is not None and secret_reason(target.relative_to(owner)) is None and target.is_file()

    def _refuse_secrets(self, given: str, found: Path) -> None:
        owner = self._owner(found)
        reason = secret_reason(found.relative_to(owner) if owner is not None else found)
        reason = reason or secret_reason(Path(re.sub(r"^.*[/\\]", "", given)))
        if reason is not None:
            raise ProtectedFile(f"{given} is neither read nor edited: {reason}.")


def _in_our_stdlib(path: Path) -> bool:
    return any(path.is_relative_to(Path(sysconfig.get_path(name)).resolve()) for name in ("stdlib", "platstdlib"))


def _umask() -> int:
    with contextlib.suppress(OSError):  # without changing it, which other threads would notice (Linux)
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
