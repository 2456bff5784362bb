"""A fix put into the user's buffers and files, and taken back. Texts are looked at, answers are not believed.

Files that are open are changed in the editor; whether it has done so is seen from its buffers. The others are written
here, with a record for `dap-agent undo`. The program is told when all of them are saved.
"""

import asyncio
import contextlib
import os
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from dap_agent.control import kept
from dap_agent.control.client import SessionGone
from dap_agent.editors.lsp import offers
from dap_agent.editors.lsp.merging import merge, same
from dap_agent.editors.lsp.sessions import Sessions
from dap_agent.editors.lsp.state import Fix, FixFile, Session, read
from dap_agent.errors import DapAgentError
from dap_agent.proxy.patience import within

Then = Literal["nothing", "frame", "program"]
PATIENCE = 5.0
"""Seconds in which an editor has to show in its buffers what it was asked to put there."""


class Editor(Protocol):
    """What is needed of an editor."""

    def text(self, path: str) -> str | None:
        """What the buffer of a file holds; None if it is not open."""

    async def edit(self, texts: Mapping[str, str], label: str) -> None:
        """Ask it to change buffers of open files to these texts."""

    def changed(self) -> asyncio.Event:
        """Is set when a buffer changes, is saved, opened or closed for the next time from now on."""

    async def save(self, paths: Sequence[str]) -> bool:
        """Ask it to save these files; false if it cannot be asked."""

    def say(self, text: str, *, error: bool = False) -> None:
        """Show a message."""


class Editing:
    """See the module.

    Args:
        editor: the user's.
        sessions: whose fixes these are.
    """

    def __init__(self, editor: Editor, sessions: Sessions) -> None:
        self._editor = editor
        self._sessions = sessions
        self._lock = asyncio.Lock()
        self._waiting: asyncio.Task[None] | None = None  # for the user to save
        self._following: set[asyncio.Task[None]] = set()  # the program and the tests get what was saved
        self.awaited: tuple[str, ...] = ()
        # what formatters have made of the newest fix when it was saved, by its id and the file
        self._formatted: dict[tuple[str, str], FixFile] = {}

    async def close(self) -> None:
        """Wait for nothing any more."""
        tasks = {*self._following, *({self._waiting} if self._waiting is not None else ())}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def apply(self, session: Session, then: Then, *, edited: bool = False) -> dict[str, Any]:
        """Put a session's fix in.

        Args:
            then: what starts again with it, once all files are saved.
            edited: the editor is about to make the change in its buffers by itself.

        Returns:
            `applied`, `saved` (the rest is done when the user saves otherwise), `files`.

        Raises:
            DapAgentError: it was not put in.
        """
        async with self._lock:
            fix = _fix_of(session)
            if fix.applied:
                raise DapAgentError("This fix is applied already.")
            if then != "nothing" and not session.live:
                raise DapAgentError("The debug session has ended: apply the fix and start the program again.")
            opened = [file for file in fix.files if self._editor.text(file.path) is not None]
            closed = [file for file in fix.files if file not in opened]
            writes = await asyncio.to_thread(_plan, closed, back=False)
            before = {file.path: self._without(file) for file in opened}
            await self._change(opened, f"dap-agent: {fix.title}", back=False, edited=edited)
            try:
                await asyncio.to_thread(_write, fix, writes, fix.title)
            except DapAgentError:
                with contextlib.suppress(DapAgentError):  # what it says is less than why the files were not written
                    await self._change(opened, f"dap-agent: undo {fix.title}", back=True, edited=False)
                raise
            paths = [file.path for file in opened]
            saved = await self._saved(paths, self._applied(session, fix, then))
            self._formatted = {
                (fix.id, path): FixFile(path, old, self._editor.text(path)) for path, old in before.items() if saved
            }
            return {"applied": True, "saved": saved, "files": [file.path for file in fix.files]}

    async def undo(self, session: Session) -> dict[str, Any]:
        """Take a session's fix back.

        Returns:
            `applied` (false), `saved`, `files`.

        Raises:
            DapAgentError: it was not taken back.
        """
        async with self._lock:
            fix = _fix_of(session)
            if not fix.applied:
                raise DapAgentError("This fix is not applied.")
            opened = [file for file in fix.files if self._editor.text(file.path) is not None and file.old is not None]
            await self._change(
                [self._as_saved(fix, file) for file in opened], f"dap-agent: undo {fix.title}", back=True, edited=False
            )
            rest = [file for file in fix.files if file not in opened]
            paths = [file.path for file in opened]
            saved = await self._saved(paths, self._taken_back(session, fix, rest))
            return {"applied": False, "saved": saved, "files": [file.path for file in fix.files]}

    # Buffers

    def _without(self, file: FixFile) -> str | None:
        """What a buffer holds, without a fix that the editor may have put in already."""
        text = self._editor.text(file.path)
        if text is None or not _holds(file, text, back=False):
            return text
        return offers.target(file, text, back=True)

    def _as_saved(self, fix: Fix, file: FixFile) -> FixFile:
        """A file of an applied fix: as a formatter has left it when it was saved, if it is not as it was put in."""
        text = self._editor.text(file.path)
        if text is not None and not _holds(file, text, back=True) and offers.target(file, text, back=True) is None:
            return self._formatted.get((fix.id, file.path), file)
        return file

    async def _change(self, files: Sequence[FixFile], label: str, *, back: bool, edited: bool) -> None:
        """Have the editor change its buffers, and see that it has."""
        targets: dict[str, str] = {}
        for file in files:
            text = self._editor.text(file.path)
            if text is None or _holds(file, text, back=back):
                continue
            wanted = offers.target(file, text, back=back)
            if wanted is None:
                raise DapAgentError(_conflict(file.path, back=back))
            targets[file.path] = wanted
        if targets and not edited:
            await self._editor.edit(targets, label)

        async def seen() -> None:
            while not all(self._shows(file, targets, back=back) for file in files):
                await self._editor.changed().wait()

        try:
            await within(seen(), PATIENCE)
        except asyncio.TimeoutError:
            raise DapAgentError(
                "The editor has not made the change in its buffers, so nothing else was done. Try again, or use the "
                "debug console: /apply."
            ) from None

    def _shows(self, file: FixFile, targets: Mapping[str, str], *, back: bool) -> bool:
        text = self._editor.text(file.path)
        if text is None:
            return False
        return _holds(file, text, back=back) or (file.path in targets and same(text, targets[file.path]))

    async def _saved(self, paths: Sequence[str], afterwards: Coroutine[Any, Any, None]) -> bool:
        """Do *afterwards* when all files are saved: at once if the editor can be asked for that."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        if await self._unsaved(paths):
            await self._editor.save(paths)
        left = await self._unsaved(paths)
        if not left:
            await afterwards
            return True
        names = ", ".join(Path(path).name for path in left)
        self._editor.say(f"Save {names}: then the program and the tests have it, too.")
        self.awaited = tuple(left)
        self._waiting = asyncio.get_running_loop().create_task(self._wait(paths, afterwards))
        return False

    async def _wait(self, paths: Sequence[str], afterwards: Coroutine[Any, Any, None]) -> None:
        try:
            changed = self._editor.changed()  # before the files are read: what is saved meanwhile is not missed
            while await self._unsaved(paths):
                await changed.wait()
                changed = self._editor.changed()
        except asyncio.CancelledError:
            afterwards.close()
            raise
        self.awaited = ()
        # of its own: what is applied or taken back next ends the waiting, not half of what follows from the saving
        task = asyncio.get_running_loop().create_task(self._follow(afterwards))
        self._following.add(task)
        task.add_done_callback(self._following.discard)

    async def _follow(self, afterwards: Coroutine[Any, Any, None]) -> None:
        try:
            await afterwards
        except DapAgentError as error:
            self._editor.say(error.message, error=True)
        except OSError as error:
            self._editor.say(f"What was saved is not all that belongs to the fix: {error}.", error=True)

    async def _unsaved(self, paths: Sequence[str]) -> list[str]:
        def differs(path: str) -> bool:
            text = self._editor.text(path)
            saved = read(path)
            return text is not None and (saved is None or not same(text, saved))

        return [path for path in paths if await asyncio.to_thread(differs, path)]

    # What follows when all is saved

    async def _applied(self, session: Session, fix: Fix, then: Then) -> None:
        refused = _refused(await self._note(session, fix, written=True))
        if then == "frame" and refused:
            raise DapAgentError(
                f"The fix is written, but no frame was restarted. {refused} Restart the program instead."
            )
        if then == "frame":
            await self._sessions.ask(session, "restartFrame", frame=offers.frame_of(session, fix))
        elif then == "program":
            await self._sessions.ask(session, "restart")
        self._editor.say(f"The fix is applied: {fix.title}.")

    async def _taken_back(self, session: Session, fix: Fix, files: Sequence[FixFile]) -> None:
        recorded = await asyncio.to_thread(_is_recorded, fix)
        if recorded and session.live:
            await self._sessions.ask(session, "undo")
        elif recorded:
            from dap_agent.fixes import applying

            await asyncio.to_thread(applying.undo, Path(fix.root))
        elif not fix.files:
            raise DapAgentError(
                "dap-agent has not written this fix itself: take it back in your editor or by version control."
            )
        left = [file for file in files if file.old is not None]
        writes = await asyncio.to_thread(_plan, left, back=True)
        await asyncio.to_thread(_write, fix, writes, f"undo: {fix.title}")
        await self._note(session, fix, written=False)
        self._editor.say(f"The fix is taken back: {fix.title}.")

    async def _note(self, session: Session, fix: Fix, *, written: bool) -> dict[str, Any]:
        """Tell the session, which answers, or what was kept of it."""
        if session.live:
            try:
                return await self._sessions.ask(session, "applied", proposal=fix.id, written=written)
            except SessionGone:
                pass  # in the meantime: what was kept is told instead
        await asyncio.to_thread(kept.mark, Path(fix.root), fix.id, applied=written)
        return {}


def _refused(answer: Mapping[str, Any]) -> str:
    """What the live program has not taken of a fix, as a sentence; empty if it has all of it."""
    given = answer.get("reload")
    if given is None:
        return ""
    lacking = not given["files"] or any(  # without a file it could not be asked
        file["error"] is not None or any(one["outcome"] == "refused" for one in (*file["functions"], *file["names"]))
        for file in given["files"]
    )
    return str(given["summary"]) if lacking else ""


def _fix_of(session: Session) -> Fix:
    if session.fix is None:
        raise DapAgentError("There is no fix to apply: autodebug the exception first.")
    return session.fix


def _holds(file: FixFile, text: str, *, back: bool) -> bool:
    """Whether a text has the change already."""
    before, after = (file.new, file.old) if back else (file.old, file.new)
    if after is None:
        return False
    return same(text, after) or (
        before is not None and not same(text, before) and merge(after, before, text) is not None
    )


def _conflict(path: str, *, back: bool) -> str:
    if back:
        return (
            f"{Path(path).name} has changed where the fix has changed it, so the fix was not taken back. Take it back "
            "in your editor."
        )
    return (
        f"{Path(path).name} has changed where the fix changes it, so the fix was not put in. Autodebug the exception "
        "again, or take back your change."
    )


def _plan(files: Sequence[FixFile], *, back: bool) -> dict[str, str]:
    """Path -> text, of files that are to be written."""
    writes = {}
    for file in files:
        text = read(file.path)
        if text is not None and _holds(file, text, back=back):
            continue
        if text is None and os.path.lexists(file.path):
            raise DapAgentError(f"{file.path} cannot be read as text, so the fix was not put in.")
        wanted = offers.target(file, text, back=back)
        if wanted is None:
            raise DapAgentError(_conflict(file.path, back=back))
        writes[file.path] = wanted
    return writes


def _write(fix: Fix, writes: Mapping[str, str], label: str) -> None:
    """Write files, all or none, with a record for undo."""
    from dap_agent.fixes import applying
    from dap_agent.fixes.edits import ChangeSet, FileChange
    from dap_agent.fixes.source_text import decode, new_file
    from dap_agent.fixes.workspace import Workspace

    if not writes:
        return
    root = Path(fix.root)
    # the session has planned it, with the further folders that its user has named
    also = [Path(path).parent for path in writes if not Path(path).is_relative_to(root)]
    workspace = Workspace(root, also=also)
    changes = []
    for name, text in writes.items():
        path = Path(name)
        old = path.read_bytes() if path.exists() else None
        source = new_file(text, path.name) if old is None else decode(old, path.name).with_text(text)
        mode = path.stat().st_mode & 0o7777 if old is not None else 0o666 & ~workspace.umask
        changes.append(FileChange(path, workspace.relative(path), old, source.encode(), mode))
    applying.apply(workspace, ChangeSet(root, tuple(changes)), label=label)


def _is_recorded(fix: Fix) -> bool:
    """Whether the last thing that undo would take back is this fix."""
    from dap_agent.fixes.undo_record import records

    found = records(Path(fix.root))
    return bool(found) and found[-1].label == fix.title
