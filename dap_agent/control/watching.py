"""Python files of a project that are saved while a program runs: polled, as that works on every file system.

All sessions of this process share the look at a folder.
"""

import asyncio
import contextlib
import io
import os
import time
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

INTERVAL = 0.5
"""Seconds between two looks at the known files; a change counts once a further look finds it as it was."""
WALK = 10.0
"""Seconds between two looks for files that are new; more where a look takes long."""
MOST = 3000
"""Files of a folder that are watched; of a bigger project the first ones."""
LONGEST = 2 * 2**20
"""Bytes of a file that is watched."""
ENTRIES = 50_000
"""Files of any kind that are gone through: the folder may be somebody's home."""

# after so many files that were read the others of this process have so many seconds for themselves
_BREATH = (100, 0.005)

Stamp = tuple[int, int, int]
Texts = Mapping[str, tuple[str | None, str]]
"""Absolute path -> old text (None: there was no file, or it is not known) and new text."""

OnSaved = Callable[[Texts, list[str]], None]

_folders: dict[tuple[asyncio.AbstractEventLoop, Path], "Folder"] = {}


def text_of(path: str) -> str | None:
    """The text of a Python file as the interpreter reads it; None if it cannot be had."""
    try:
        return decoded(Path(path).read_bytes())
    except OSError:
        return None


def decoded(data: bytes) -> str | None:
    """The text of a Python file as the interpreter reads it; None if it is none."""
    import tokenize

    try:
        encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
        return io.TextIOWrapper(io.BytesIO(data), encoding).read()
    except (SyntaxError, UnicodeError, LookupError):
        return None


class Folder:
    """A folder, while somebody wants to know of it.

    Args:
        root: of the project.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._over = False
        self._kept: dict[str, bytes] = {}  # path -> the text that was seen last, packed
        self._listeners: list[OnSaved] = []
        self._unreadable: list[str] = []  # saved since the last look, and no text of a Python file
        self._stamps: dict[str, Stamp] = {}
        self._unsteady: dict[str, Stamp] = {}
        self._task: asyncio.Task[None] | None = None

    def paths(self) -> list[str]:
        """The files that are watched."""
        return list(self._kept)

    def text(self, path: str) -> str | None:
        """The text that a file was last seen with; None: it is not watched."""
        kept = self._kept.get(path)
        return zlib.decompress(kept).decode("utf-8", "surrogatepass") if kept is not None else None

    def _keep(self, path: str, text: str) -> None:
        self._kept[path] = zlib.compress(text.encode("utf-8", "surrogatepass"), 1)

    def listen(self, on_saved: OnSaved) -> Callable[[], None]:
        """Tell *on_saved* of files that were saved.

        Returns:
            What ends it; nothing is left running when the last listener has gone.
        """
        self._listeners.append(on_saved)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._watch())

        def unlisten() -> None:
            with contextlib.suppress(ValueError):
                self._listeners.remove(on_saved)
            if not self._listeners and self._task is not None:
                self._over = True
                self._task.cancel()
                self._task = None
                for key in [key for key, folder in _folders.items() if folder is self]:
                    del _folders[key]

        return unlisten

    async def _watch(self) -> None:
        due = 0.0
        while True:
            if time.monotonic() >= due:
                began = time.monotonic()
                await asyncio.to_thread(self._walk)
                due = time.monotonic() + max(WALK, 50 * (time.monotonic() - began))
            await asyncio.sleep(INTERVAL)
            saved = await asyncio.to_thread(self._look)
            for path, (_, text) in saved.items():
                self._keep(path, text)
            unreadable, self._unreadable = self._unreadable, []
            for listener in tuple(self._listeners) if saved or unreadable else ():
                listener(saved, unreadable)

    def _walk(self) -> None:
        """Find files; those that are new count as never changed."""
        from dap_agent.fixes.ignoring import walk

        for number, entry in enumerate(walk(self._root)):
            if self._over or number > ENTRIES or len(self._stamps) >= MOST:
                return
            path = str(self._root / entry.path)
            if not path.endswith((".py", ".pyw")) or path in self._stamps or entry.stat.st_size > LONGEST:
                continue
            text = text_of(path)
            if text is not None:
                self._keep(path, text)
                self._stamps[path] = _stamp(entry.stat)
                if len(self._stamps) % _BREATH[0] == 0:
                    time.sleep(_BREATH[1])

    def _look(self) -> Texts:
        saved: dict[str, tuple[str | None, str]] = {}
        for path, known in list(self._stamps.items()):
            try:
                stamp = _stamp(Path(path).stat())
            except OSError:
                self._unsteady.pop(path, None)
                continue  # gone, or being replaced: what the program has of it stays
            if stamp == known:
                self._unsteady.pop(path, None)
            elif self._unsteady.get(path) != stamp:
                self._unsteady[path] = stamp  # it may be in the middle of being written
            else:
                del self._unsteady[path]
                self._stamps[path] = stamp
                text, before = text_of(path), self.text(path)
                if text is None:
                    self._unreadable.append(path)
                elif text != before:
                    saved[path] = before, text
        return saved


def _stamp(stat: os.stat_result) -> Stamp:
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def folder(root: Path) -> Folder:
    """The look at *root* that all share."""
    key = asyncio.get_running_loop(), root
    if key not in _folders:
        _folders[key] = Folder(root)
    return _folders[key]


def changed_at(paths: Mapping[str, object]) -> dict[str, float]:
    """Path -> when the file was changed last, in seconds; those that are gone are left out."""
    found = {}
    for path in paths:
        with contextlib.suppress(OSError):
            found[path] = Path(path).stat().st_mtime
    return found
