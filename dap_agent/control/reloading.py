"""Which changes of files go into the live program of a session: those of fixes, and those that the user saves."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from dap_agent.control import watching
from dap_agent.control.watching import Texts, changed_at, text_of
from dap_agent.errors import DapAgentError

if TYPE_CHECKING:
    from dap_agent.session.reload import Changed, ReloadReport

Mode = Literal["auto", "applied", "never"]
"""The option `reload` below `dapAgent`: saved files and applied fixes, applied fixes alone, or nothing."""

OnMoved = Callable[[Mapping[str, Sequence[Sequence[int]]], Mapping[str, float]], None]


class Live(Protocol):
    """The program (`session.guest.Guest`)."""

    @property
    def alive(self) -> bool:
        """Whether it can be given new code."""

    async def reload(self, changes: "Iterable[Changed]") -> "ReloadReport":
        """Give it new code."""


@dataclass(frozen=True)
class Given:
    """What has become of a change in the live program.

    Args:
        report: what it has taken; None: it was not given anything.
        problem: why not, if it should have been.
    """

    report: "ReloadReport | None" = None
    problem: str | None = None

    def text(self, show: Callable[[str], str] = str) -> str:
        """For people: a sentence, and line by line what was refused or is to be known; empty if there is nothing.

        Args:
            show: how a path is shown.
        """
        if self.problem is not None:
            return f"The running program keeps its old code, as it could not be given the new: {self.problem}"
        if self.report is None:
            return ""
        lines = [f"  {one.line}" for each in self.report.files for one in each.outcomes if one.reason]
        return "\n".join([self.report.summary, *lines])

    def to_json(self) -> dict[str, Any] | None:
        """For messages (`schemas/messages.schema.json`)."""
        if self.problem is not None:
            return {"summary": self.text(), "files": []}
        return self.report.to_json() if self.report is not None else None


class Reloading:
    """See the module.

    Args:
        program: of the session.
        mode: what the user wants, at the moment.
        moved: is told which lines have moved in which file, and when the file was changed.
        told: is told of what was put in without having been asked for.
    """

    def __init__(
        self,
        program: Live,
        mode: Callable[[], str] = lambda: "applied",
        moved: OnMoved = lambda moved, changed: None,
    ) -> None:
        self.told: Callable[[Given], None] = lambda given: None
        self._program = program
        self._mode = mode
        self._moved = moved
        self._known: dict[str, str] = {}  # path -> the text that the program was given last
        self._folders: list[watching.Folder] = []
        self._unlisten: list[Callable[[], None]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._one = asyncio.Lock()

    def watch(self, roots: Iterable[Path]) -> None:
        """From now on, know what the files of these folders held, and put saved ones in, if that is wished."""
        if self._mode() == "never":
            return
        for root in roots:
            found = watching.folder(root)
            self._folders.append(found)
            self._unlisten.append(found.listen(self._saved))

    async def close(self) -> None:
        """Look no more."""
        for unlisten in self._unlisten:
            unlisten()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def fresh(self) -> None:
        """The program was started anew: it has what the files hold."""
        self._known.clear()

    async def written(self, texts: Texts) -> Given:
        """Files were written by us: give them to the program, if it is alive and that is wished."""
        async with self._one:
            # what was saved before and not put in goes in with it: what the program has is one text of the file
            texts = {path: (self._known.get(path, old), new) for path, (old, new) in texts.items()}
            if self._mode() == "never" or not self._program.alive:
                self._keeps(texts)
                return Given()
            try:
                return Given(await self._put(texts))
            except DapAgentError as error:
                return Given(problem=error.message)

    async def reload(self, files: Iterable[str] | None = None) -> Given:
        """Put what files hold now into the live program.

        Args:
            files: absolute paths; None: all that are known to have changed.

        Raises:
            DapAgentError: it is not alive, or a file cannot be read.
        """
        async with self._one:
            paths = list(files) if files is not None else list({**dict.fromkeys(self._watched()), **self._known})
            texts = await asyncio.to_thread(lambda: {path: text_of(path) for path in paths})
            unreadable = [path for path, text in texts.items() if text is None]
            if files is not None and unreadable:
                raise DapAgentError(f"{unreadable[0]} cannot be read as a Python file, so nothing was reloaded.")
            found = {path: (self.seen(path), text) for path, text in texts.items() if text is not None}
            if files is None:
                found = {path: pair for path, pair in found.items() if pair[0] != pair[1]}
            return Given(await self._put(found))

    def _keeps(self, texts: Texts) -> None:
        """The program stays with the old texts."""
        for path, (old, _) in texts.items() if self._program.alive else ():
            if old is not None:
                self._known.setdefault(path, old)

    def _watched(self) -> list[str]:
        return [path for each in self._folders for path in each.paths()]

    def seen(self, path: str) -> str | None:
        """The text of a file as the program has it, as far as that is known."""
        if path in self._known:
            return self._known[path]
        texts = (each.text(path) for each in self._folders)
        return next((text for text in texts if text is not None), None)

    def _saved(self, texts: Texts, unreadable: list[str]) -> None:
        if unreadable and self._mode() == "auto" and self._program.alive:
            files = ", ".join(Path(path).name for path in unreadable)
            self.told(
                Given(
                    problem=f"{files} cannot be read as a Python file in its encoding (UTF-8, if its first two lines "
                    "do not name another), so the program keeps its old code. Save it in that encoding."
                )
            )
        self._keeps(texts)
        task = asyncio.get_running_loop().create_task(self._put_saved(texts))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _put_saved(self, texts: Texts) -> None:
        async with self._one:
            changed = {path: (self._known.get(path, old), new) for path, (old, new) in texts.items()}
            changed = {path: (old, new) for path, (old, new) in changed.items() if old != new}
            if not changed or self._mode() != "auto" or not self._program.alive:
                return
            try:
                given = Given(await self._put(changed))
            except DapAgentError as error:
                given = Given(problem=error.message)
        report = given.report
        if report is None or any(each.outcomes or (each.error and each.module) for each in report.files):
            self.told(given)

    async def _put(self, texts: Texts) -> "ReloadReport":
        from dap_agent.session.reload import Changed

        report = await self._program.reload([Changed(path, old, new) for path, (old, new) in texts.items()])
        for each in report.files:
            old, new = texts[each.path]
            if each.error is None:
                self._known[each.path] = new
            elif old is not None:  # it has changed nothing: what is saved next is compared with what is in
                self._known[each.path] = old
        if report.moved:
            self._moved(report.moved, await asyncio.to_thread(changed_at, report.moved))
        return report
