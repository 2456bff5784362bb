"""The files of a tree as git sees them: `.gitignore` on every level, caches and virtual environments left out."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pathspec

_SKIPPED = frozenset(
    [
        ".git",
        ".hg",
        ".svn",
        ".bzr",
        ".jj",
        "__pycache__",
        "node_modules",
        ".tox",
        ".nox",
        ".mypy_cache",
        ".ruff_cache",
        ".pytest_cache",
        ".hypothesis",
        ".ipynb_checkpoints",
        ".eggs",
        "__pypackages__",
        ".pytype",
    ]
)
# imports of a package need these even when they are built and so ignored (extensions, _version.py)
_NEEDED_BY_IMPORTS = (".so", ".pyd", ".dylib", ".py")
_GIT_SECONDS = 10


@dataclass(frozen=True)
class Entry:
    """One thing in the tree.

    Args:
        path: relative to the tree's root, with slashes.
        stat: of the thing itself, symlinks not followed.
        link: whether it is a symlink (to a file or a folder).
    """

    path: str
    stat: os.stat_result
    link: bool


@dataclass(frozen=True)
class _Level:
    """One `.gitignore`: how a path below the tree's root becomes one below its folder."""

    prepend: str
    cut: int
    spec: "pathspec.GitIgnoreSpec"

    def verdict(self, path: str) -> bool | None:
        return self.spec.check_file(self.prepend + path[self.cut :]).include


def walk(root: Path, *, for_copy: bool = False) -> Iterator[Entry]:
    """Files, symlinks and the like below *root*, in a stable order; folders that cannot be read are passed over.

    Args:
        for_copy: also folders (before what is in them), and what imports need and git does not ignore for good:
            files that git tracks although they match a pattern, and built extensions and Python files that are
            ignored one by one (`_version.py`) or with their folder (generated code), if it has some at its top.
    """
    tracked = _tracked_but_ignored(root) if for_copy else frozenset()
    folders = frozenset(str(parent) for path in tracked for parent in PurePosixPath(path).parents)
    yield from _Walk(for_copy, tracked, folders).folder(str(root), "", _levels_above(root), False)


@dataclass(frozen=True)
class _Walk:
    for_copy: bool
    tracked: frozenset[str]
    tracked_folders: frozenset[str]

    def folder(
        self, absolute: str, relative: str, levels: tuple[_Level, ...], ignored: bool, imported: bool = False
    ) -> Iterator[Entry]:
        """One folder; *imported*: it is ignored, and what imports need of it is taken all the same."""
        try:
            with os.scandir(absolute) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError:
            return  # no permission, or gone since: what cannot be listed cannot be read or copied either
        names = {entry.name for entry in entries}
        if relative:
            if "pyvenv.cfg" in names:
                return
            if ignored and not imported and relative[:-1] not in self.tracked_folders:
                imported = any(name.endswith(".py") for name in names)
                if not imported:
                    return
            if self.for_copy:
                yield Entry(relative[:-1], os.lstat(absolute), False)
        if ".gitignore" in names:
            spec = _read_spec(Path(absolute, ".gitignore"))
            if spec is not None:
                levels = (*levels, _Level("", len(relative), spec))
        for entry in entries:
            path = relative + entry.name
            try:
                is_folder = entry.is_dir(follow_symlinks=False)
                hidden = ignored or (bool(levels) and _ignored(levels, path + "/" if is_folder else path))
                if is_folder:
                    if entry.name in _SKIPPED or (hidden and not self.for_copy):
                        continue
                    yield from self.folder(entry.path, path + "/", levels, hidden, imported)
                elif (
                    not hidden
                    or path in self.tracked
                    or (self.for_copy and (imported or not ignored) and _needed(path))
                ):
                    yield Entry(path, entry.stat(follow_symlinks=False), entry.is_symlink())
            except OSError:
                continue  # gone between the listing and here


def _needed(path: str) -> bool:
    return path.endswith(_NEEDED_BY_IMPORTS)


def _ignored(levels: tuple[_Level, ...], path: str) -> bool:
    for level in reversed(levels):  # the deepest .gitignore that says something wins
        verdict = level.verdict(path)
        if verdict is not None:
            return verdict
    return False


def _read_spec(path: Path) -> "pathspec.GitIgnoreSpec | None":
    import pathspec

    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        return pathspec.GitIgnoreSpec.from_lines(line for line in lines if line.strip() and not line.startswith("#"))
    except (OSError, ValueError):
        return None  # an unreadable .gitignore ignores nothing, as in git


def _levels_above(root: Path) -> tuple[_Level, ...]:
    """The patterns of the repository around *root*: `.git/info/exclude` and each `.gitignore` above *root*."""
    top = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), None)
    if top is None:
        return ()
    levels = []
    between = [*reversed([folder for folder in root.parents if folder == top or top in folder.parents])]
    for path, folder in [
        (top / ".git" / "info" / "exclude", top),
        *((folder / ".gitignore", folder) for folder in between),
    ]:
        spec = _read_spec(path) if path.is_file() else None
        if spec is not None:
            prefix = root.relative_to(folder).as_posix()
            levels.append(_Level("" if prefix == "." else prefix + "/", 0, spec))
    if _ignored(tuple(level for level in levels if level.prepend), ""):
        return ()  # ignored as a whole: a project of its own in a scratch folder, and nothing would be left of it
    return tuple(levels)


def _tracked_but_ignored(root: Path) -> frozenset[str]:
    if not any((folder / ".git").exists() for folder in (root, *root.parents)):
        return frozenset()
    command = ["git", "-C", str(root), "-c", "core.fsmonitor=false", "ls-files", "-ci", "--exclude-standard", "-z"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_GIT_SECONDS, stdin=subprocess.DEVNULL, check=True)
    except (OSError, subprocess.SubprocessError):
        return frozenset()  # no git, or not a repository it will read: the patterns alone decide
    return frozenset(os.fsdecode(name) for name in done.stdout.split(b"\0") if name)
