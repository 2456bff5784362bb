"""Finds the debug sessions of a workspace when a tool is called, live ones and what is kept of those that are over."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dap_agent.control import kept, registry
from dap_agent.control.client import ControlClient, Refused, SessionGone
from dap_agent.control.kept import Kept
from dap_agent.errors import DapAgentError
from dap_agent.proxy.patience import within
from dap_agent.session.redaction import mask_text
from dap_agent.session.rendering import clip, one_line

_NAME = "dap-agent mcp"
_PATIENCE = 5.0  # seconds for a session to greet

Heard = Callable[[str, dict[str, Any]], None]


@dataclass(frozen=True)
class Found:
    """A debug session.

    Args:
        id: its name.
        entry: where it can be reached; None: it is over.
        status: `status` of `schemas/control.schema.json`; empty if it is over.
        kept: what is kept of it if it is over.
    """

    id: str
    entry: registry.Entry | None
    status: dict[str, Any]
    kept: Kept | None = None

    @property
    def stop(self) -> dict[str, Any] | None:
        """The newest exception."""
        stop: dict[str, Any] | None = self.kept.stop if self.kept is not None else self.status["stop"]
        return stop

    @property
    def fix(self) -> dict[str, Any] | None:
        """The newest fix: `id`, `title`, `proved`, `applied`."""
        fix = self.kept.fix if self.kept is not None else self.status["proposal"]
        return None if fix is None else {key: fix.get(key, False) for key in ("id", "title", "proved", "applied")}

    @property
    def rank(self) -> int:
        """How likely it is meant, from 0: it stands at an exception; it stands; it has met one; it runs; it is over."""
        if self.kept is not None:
            return 4
        if self.status["program"] == "stopped":
            return 0 if self.stop is not None and self.stop["current"] else 1
        return 2 if self.stop is not None and self.status["program"] == "ended" else 3

    def to_json(self) -> dict[str, Any]:
        """For a host."""
        stop, entry = self.stop, self.entry
        return {
            "session": self.id,
            "kind": entry.kind if entry is not None else "over",
            "program": self.status["program"] if entry is not None else "over",
            "debugs": entry.program if entry is not None else "",
            "workspace": list(entry.workspace) if entry is not None else [str(self.kept.root)] if self.kept else [],
            # it goes to a model, unlike in an editor
            "exception": clip(mask_text(stop["headline"]), 400) if stop is not None else None,
            "place": f"{stop['path']}:{stop['line']}" if stop is not None and stop["path"] else None,
            "working": (self.status["working"] or {}).get("message") if entry is not None else None,
            "fix": self.fix,
        }

    @property
    def line(self) -> str:
        """For people."""
        seen = self.to_json()
        parts = [f"{self.id}: {one_line(seen['debugs']) or 'a session that is over'} ({seen['program']})"]
        if seen["exception"]:
            parts.append(f"{one_line(seen['exception'])}" + (f" at {seen['place']}" if seen["place"] else ""))
        if seen["working"]:
            parts.append(f"investigating: {seen['working']}")
        if seen["fix"]:
            how = "applied" if seen["fix"]["applied"] else "proved" if seen["fix"]["proved"] else "not proved"
            parts.append(f"fix ready: {one_line(seen['fix']['title'])} ({how})")
        return "; ".join(parts)


class Sessions:
    """See the module.

    Args:
        folders: of the workspace, absolute, links resolved.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = tuple(folders)

    async def all(self) -> list[Found]:
        """The live sessions, the likeliest first, then those that are over, the newest first.

        Raises:
            DapAgentError: the folder where they meet is another user's.
        """
        entries = await asyncio.to_thread(registry.find, self.folders)
        asked = await asyncio.gather(*(_look(entry) for entry in entries))
        live = [found for found in asked if found is not None]
        over = await asyncio.to_thread(self._over, {found.id for found in live})
        return [*sorted(live, key=lambda found: found.rank), *over]

    async def choose(self, id: str | None) -> Found:
        """The session that is meant.

        Args:
            id: of it; None: the only one that stands at an exception, else the only one that stands, and so on.

        Raises:
            DapAgentError: there is none, or there are several; the message says what to do.
        """
        found = await self.all()
        if id is not None:
            named = next((one for one in found if one.id == id), None)
            if named is None:
                raise DapAgentError(f"There is no session {id!r:.40}. {self._listed(found) if found else self.none()}")
            return named
        if not found:
            raise DapAgentError(self.none())
        best = [one for one in found if one.rank == found[0].rank]
        if len(best) > 1 and best[0].entry is not None:
            raise DapAgentError(f"Several debug sessions can be meant: give one as `session`. {self._listed(best)}")
        return best[0]

    def none(self) -> str:
        """The sentence that there is no session."""
        where = ", ".join(map(str, self.folders)) or "any folder"
        return (
            f"No Python program is being debugged through dap-agent in {where}, and nothing is kept of an earlier "
            "session. Ask the user to start one: F5 in an editor that uses dap-agent (VS Code extension, nvim-dap with "
            "`dap-agent adapter`), or in a terminal `dap-agent run PROGRAM` or `dap-agent attach --pid N`. It is found "
            "at the next call, whenever it starts."
        )

    def _listed(self, found: Sequence[Found]) -> str:
        return "Sessions:\n" + "\n".join(f"  {one.line}" for one in found[:20])

    def _over(self, live: set[str]) -> list[Found]:
        found = []
        with contextlib.suppress(OSError):
            paths = [(path.stat().st_mtime, path) for path in kept.folder().glob("*.json")]
            for _, path in sorted(paths, reverse=True):
                one = kept.load(path)
                if one is not None and one.session not in live and one.within(self.folders):
                    found.append(Found(one.session, None, {}, one))
        return found


@contextlib.asynccontextmanager
async def connected(
    entry: registry.Entry, heard: Heard = lambda method, params: None, gone: Callable[[], None] = lambda: None
) -> AsyncIterator[tuple[ControlClient, dict[str, Any]]]:
    """A connection to a live session, with its `status`.

    Raises:
        SessionGone: it is over.
        Refused: it lets nobody in.
    """
    client = ControlClient(entry, heard, gone)
    try:
        try:
            greeting = await within(client.connect(_NAME), _PATIENCE)
        except asyncio.TimeoutError as error:
            raise SessionGone(f"The session {entry.id} does not answer.") from error
        yield client, greeting["session"]
    finally:
        await client.close()


async def _look(entry: registry.Entry) -> Found | None:
    try:
        async with connected(entry) as (_, status):
            return Found(entry.id, entry, status)
    except (SessionGone, Refused):
        return None
