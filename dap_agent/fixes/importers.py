"""Which existing tests import the files that a fix changes, directly or through other modules of the workspace."""

import ast
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from dap_agent.fixes.importing import dotted_name, import_base, is_package
from dap_agent.fixes.source_text import is_python
from dap_agent.fixes.symbols import parse
from dap_agent.fixes.workspace import Workspace

_MAX_FILE = 1024 * 1024
_DEPTH = 4


@dataclass(frozen=True)
class Importers:
    """Test files, nearest to the change first, relative to the workspace's root.

    Args:
        files: those that are to be run.
        note: what was cut, in words; empty when nothing was.
    """

    files: tuple[str, ...]
    note: str = ""


def test_files_of(workspace: Workspace, changed: Sequence[Path], *, limit: int = 30, seconds: float = 8.0) -> Importers:
    """The test files that import one of *changed*.

    Imports are read from the source, not run: names built at run time are not seen. A `conftest.py` that imports a
    changed file stands for the tests below it.

    Args:
        limit: most files returned.
        seconds: most time spent.
    """
    deadline = time.monotonic() + seconds
    sources = _Sources(workspace)
    targets = {sources.relative(path) for path in changed} - {None}
    found: dict[str, None] = {name: None for name in targets if name and _is_test(name, sources)}
    done = {name for name in targets if name is not None}
    # of a file in another folder of the workspace: the name by which it is imported
    outside = {dotted_name(path) for path in changed if sources.relative(path) is None and is_python(path.name)}
    level, late = set(done), False
    for _ in range(_DEPTH):
        nearer: set[str] = set()
        wanted = {parts for name in level for parts in sources.names(name)} | outside
        outside = set()
        words = re.compile(rb"\b(?:%s)\b" % b"|".join({re.escape(parts[-1]).encode() for parts in wanted}))
        for name in sources.files:
            if time.monotonic() > deadline:
                late = True
                break
            if name not in done and sources.mentions(name, words) and sources.imports(name) & wanted:
                nearer.add(name)
        done |= nearer
        for name in sorted(nearer):
            if _is_test(name, sources):
                found[name] = None
            elif PurePosixPath(name).name == "conftest.py":
                folder = name.rpartition("/")[0]
                below = [one for one in sources.files if not folder or one.startswith(folder + "/")]
                found.update(dict.fromkeys(one for one in below if _is_test(one, sources)))
        level = nearer
        if not level or late or len(found) >= limit:
            break
    files = tuple(found)
    notes = []
    if late:
        notes.append(f"the search for tests that import the changed files was ended after {seconds:g} s")
    if len(files) > limit:
        notes.append(f"of {len(files)} test files that import the changed files, the {limit} nearest were run")
    return Importers(files[:limit], "; ".join(notes))


def _is_test(name: str, sources: "_Sources") -> bool:
    path = PurePosixPath(name)
    if path.name in {"conftest.py", "__init__.py"}:
        return False
    if path.name.startswith("test_") or path.stem.endswith("_test"):
        return True
    in_tests = any(part in {"tests", "test"} for part in path.parts[:-1])
    return in_tests and (b"def test" in sources.text(name) or b"class Test" in sources.text(name))


class _Sources:
    """The workspace's Python files by relative path; read and parsed when asked for, once."""

    def __init__(self, workspace: Workspace) -> None:
        self.root = workspace.root
        self.files = [name for path in workspace.files() if (name := self.relative(path)) and is_python(name)]
        # the dotted name of a root that is a package itself
        self._above = self.root.relative_to(import_base(self.root)).parts if is_package(self.root) else ()
        self._texts: dict[str, bytes] = {}
        self._imports: dict[str, frozenset[tuple[str, ...]]] = {}

    def relative(self, path: Path) -> str | None:
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else None

    def text(self, name: str) -> bytes:
        if name not in self._texts:
            try:
                with (self.root / name).open("rb") as stream:
                    self._texts[name] = stream.read(_MAX_FILE)
            except OSError:
                self._texts[name] = b""  # unreadable: it cannot be run as a test either
        return self._texts[name]

    def mentions(self, name: str, words: re.Pattern[bytes]) -> bool:
        return words.search(self.text(name)) is not None

    def names(self, name: str) -> set[tuple[str, ...]]:
        """The dotted names under which a file may be imported, as tuples: from its package's root, the root, `src`."""
        parts = PurePosixPath(name).with_suffix("").parts
        if parts[-1] == "__init__":
            parts = parts[:-1]
        found = {parts[start:] for start in (0, self._package_start(name)) if parts[start:]}
        found |= {self._above + parts} if self._above + parts else set()
        if len(parts) > 1 and parts[0] in {"src", "lib"}:
            found.add(parts[1:])
        return found

    def _package_start(self, name: str) -> int:
        folders = PurePosixPath(name).parts[:-1]
        start = len(folders)
        while start and (self.root.joinpath(*folders[:start]) / "__init__.py").exists():
            start -= 1
        return start

    def imports(self, name: str) -> frozenset[tuple[str, ...]]:
        """Every dotted name that a file imports, with all its prefixes: importing `a.b` runs `a`, too."""
        if name not in self._imports:
            try:
                tree = parse(self.text(name).decode("utf-8", "replace").removeprefix("\ufeff"))
            except SyntaxError:
                self._imports[name] = frozenset()
            else:
                package = PurePosixPath(name).parts[self._package_start(name) : -1]
                self._imports[name] = frozenset(_imported(tree, package))
        return self._imports[name]


def _imported(tree: ast.AST, package: tuple[str, ...]) -> set[tuple[str, ...]]:
    found: set[tuple[str, ...]] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            dotted = [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            base += tuple(node.module.split(".")) if node.module else ()
            dotted = [base, *((*base, alias.name) for alias in node.names)]
        else:
            continue
        found.update(parts[:end] for parts in dotted for end in range(1, len(parts) + 1))
    return found
