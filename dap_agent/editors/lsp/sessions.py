"""Follows the live sessions of a workspace, and what is kept of those that are over.

The folders of both are looked at five times a second by their modification time alone, which costs nothing; the rest
comes by itself over the sessions' sockets.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dap_agent.control import kept, registry
from dap_agent.control.client import ControlClient, Refused, SessionGone
from dap_agent.editors.lsp import state
from dap_agent.editors.lsp.state import Session
from dap_agent.errors import DapAgentError

_LOOK = 0.2  # seconds
_COARSE = 100_000_000  # nanoseconds: a modification time is not finer than the kernel's clock
_NAME = "dap-agent lsp"

OnProgress = Callable[[Session, dict[str, Any]], None]


class Sessions:
    """See the module.

    Args:
        folders: of the workspace, links resolved; without any, all sessions of the user are followed.
        changed: is called when anything is different.
        progress: is told how an investigation goes on (`progress` of the schema).
        stopped: is told of each exception stop.
    """

    def __init__(
        self,
        folders: Callable[[], Sequence[Path]],
        changed: Callable[[], None],
        progress: OnProgress,
        stopped: Callable[[Session], None],
    ) -> None:
        self._folders = folders
        self._changed = changed
        self._progress = progress
        self._stopped = stopped
        self._followed: dict[str, _Followed] = {}
        self._kept: dict[str, tuple[kept.Kept, Session]] = {}
        self._seen: dict[Path, int] = {}
        self._work: set[asyncio.Task[Any]] = set()
        self._again = False
        self._saved = False

    def begin(self) -> None:
        """Look from now on."""
        self._start(self._watch())

    def look_again(self) -> None:
        """The workspace has other folders now."""
        self._again = True

    def saved(self) -> None:
        """A file was saved: what is kept may not fit it any more, or fit it again."""
        if self._kept:
            self._saved = self._again = True

    async def close(self) -> None:
        """Let all sessions go."""
        for task in self._work:
            task.cancel()
        if self._work:
            await asyncio.wait(self._work)
        for followed in tuple(self._followed.values()):  # others may end meanwhile
            await followed.client.close()

    def all(self) -> list[Session]:
        """The live sessions, then what is kept of workspaces whose live sessions have nothing to show yet."""
        live = [followed.session for followed in self._followed.values() if followed.session is not None]
        busy = {folder for one in live if one.stop is not None for folder in one.workspace}
        ids = {one.id for one in live}
        over = [session for key, (found, session) in self._kept.items() if key not in busy and found.session not in ids]
        return [*live, *over]

    def find(self, id: str) -> Session:
        """A session by its id.

        Raises:
            DapAgentError: there is none.
        """
        found = next((one for one in self.all() if one.id == id), None)
        if found is None:
            raise DapAgentError("This debug session has ended, and a newer one has taken its place.")
        return found

    async def ask(self, session: Session, method: str, **params: Any) -> dict[str, Any]:
        """Ask a live session.

        Raises:
            DapAgentError: it is over, or it refuses; the message says which.
        """
        followed = self._followed.get(session.id)
        if followed is None:
            raise SessionGone("The debug session has ended: start the program again.")
        return await followed.client.request(method, params)

    async def report(self, session: Session) -> str:
        """All that is known, as Markdown.

        Raises:
            DapAgentError: there is nothing.
        """
        if session.live:
            with contextlib.suppress(SessionGone):
                return str((await self.ask(session, "report"))["markdown"])
        for found, one in self._kept.values():
            if one.id == session.id:
                return found.report
        raise DapAgentError("Nothing is known of this session any more.")

    def kept_of(self, session: Session) -> "kept.Kept | None":
        """What is kept of a session that is over."""
        return next((found for found, one in self._kept.values() if one.id == session.id), None)

    # How it is found

    async def _watch(self) -> None:
        while True:
            if await asyncio.to_thread(self._may_differ):
                await self._look()
            await asyncio.sleep(_LOOK)

    def _may_differ(self) -> bool:
        """Whether one of the folders may have changed since the last look."""
        changed = self._again
        self._again = False
        with contextlib.suppress(OSError, DapAgentError):  # no state directory: nothing to find
            for folder in (registry.folder(), kept.folder()):
                at = folder.stat().st_mtime_ns
                changed = changed or self._seen.get(folder) != at
                # what comes in the same tick of the clock would not be seen
                self._seen[folder] = at if time.time_ns() - at > _COARSE else -1
        return changed

    async def _look(self) -> None:
        try:
            entries, over = await asyncio.to_thread(lambda: (registry.entries(), kept.all_kept()))
        except (OSError, DapAgentError):
            return
        folders = tuple(self._folders())
        for entry in entries:
            if entry.id not in self._followed and (not folders or entry.within(folders)):
                self._follow(entry)
        there = {entry.id for entry in entries}
        for followed in tuple(self._followed.values()):
            if followed.refused and followed.entry.id not in there:  # without a connection nothing else tells of it
                self.dropped(followed.entry)
        before = {key: found for key, (found, _) in self._kept.items()}
        now = {str(one.root): one for one in over if not folders or one.within(folders)}
        anew, self._saved = self._saved, False
        if now != before or anew:
            self._kept = {
                key: self._kept[key]
                if before.get(key) == one and not anew
                else (one, await asyncio.to_thread(_over, one))
                for key, one in now.items()
            }
            self._changed()

    def _follow(self, entry: registry.Entry) -> None:
        followed = self._followed[entry.id] = _Followed(entry, self)
        self._start(followed.connect())

    def dropped(self, entry: registry.Entry) -> None:
        """A session is over."""
        followed = self._followed.pop(entry.id, None)
        session = followed.session if followed is not None else None
        if session is not None and session.working is not None:  # it was killed, and could not tell it
            working, text = session.working, "The debug session has ended, and the investigation with it."
            end = {"id": working.id, "task": working.task, "kind": "end", "text": text, "status": "failed"}
            self._progress(session, end)
        self._again = True  # it may have left something
        self._changed()

    def told(self, followed: "_Followed", method: str, params: dict[str, Any]) -> None:
        """A session has told something."""
        session = followed.session
        assert session is not None, "it tells nothing before"
        if method == "progress":
            self._progress(session, params)
        elif method == "snapshot":
            self._stopped(session)
        if method != "progress" or params["kind"] != "text":  # a model's words change nothing that is shown
            self._changed()

    def _start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)


class _Followed:
    """One live session."""

    def __init__(self, entry: registry.Entry, sessions: Sessions) -> None:
        self.entry = entry
        self.session: Session | None = None
        self.refused = False
        self._sessions = sessions
        self.client = ControlClient(entry, self._heard, lambda: sessions.dropped(entry))

    async def connect(self) -> None:
        """Connect; an entry that nobody stands behind is swept."""
        try:
            status = (await self.client.connect(_NAME))["session"]
            session = Session(self.entry.id, True, status["program"], self.entry.workspace).with_status(status)
            self.session = session  # from here on what it tells is heard
            self._sessions.told(self, "state", status)
            if session.shown is not None:
                self._sessions.told(self, "snapshot", status["stop"])
            if status["proposal"] is not None:
                found = (await self.client.request("proposal"))["proposal"]
                if found is not None:
                    self._heard("proposal", found)
        except SessionGone:
            await asyncio.to_thread(_sweep, self.entry)
            await self.client.close()
            self._sessions.dropped(self.entry)
        except Refused:
            self.refused = True
            await self.client.close()  # it lets nobody in: it is not tried again

    def _heard(self, method: str, params: dict[str, Any]) -> None:
        session = self.session
        if session is None:
            return  # the answer to initialize has it, too
        if method == "state":
            session = session.with_status(params)
        elif method == "snapshot":
            stop = state.parse_stop(params)
            # the lines are those of the file as it is now: it may be saved while the program stands there
            session = replace(session, stop=stop.with_text() if stop is not None else None, program="stopped")
        elif method == "proposal":
            fix = state.parse_fix(params)
            if fix.stop is not None:
                former = session.fix.stop if session.fix is not None else None
                fix = replace(fix, stop=fix.stop.with_text(session.stop, former))
            session = replace(session, fix=fix)
        elif method == "progress" and params["kind"] in ("turn", "tool", "note", "verdict", "retry"):
            session = session.with_step(params["text"])
        elif method == "ended":
            return  # the connection ends
        self.session = session
        self._sessions.told(self, method, params)


def _sweep(entry: registry.Entry) -> None:
    if not registry.is_live(entry):
        registry.remove(entry)


def _over(found: kept.Kept) -> Session:
    """A session that is over, as it is offered: its fix is planned on the files as they are now."""
    stop = state.parse_stop(found.stop)
    stop = stop.with_text() if stop is not None else None
    fix = None
    if found.fix is not None:
        given, files = found.fix, _files(found)
        if files is not None:
            fix = state.Fix(
                given["id"], given["title"], str(found.root), given["proved"], given["applied"], files, stop
            )
    shown = stop if found.stands else None
    return Session(found.session, False, "ended", (str(found.root),), shown, None, fix)


def _files(found: kept.Kept) -> tuple[state.FixFile, ...] | None:
    """What a kept fix would do to the files; None if it does not fit them any more."""
    from dap_agent.control.views import file_texts

    if found.fix is None or found.fix["applied"]:
        return ()
    changes = found.planned()
    if changes is None:
        return None
    texts = file_texts(changes)
    return tuple(state.FixFile(state.real(path), text["oldText"], text["newText"]) for path, text in texts.items())
