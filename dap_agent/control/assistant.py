"""The assistant of one debug session: investigates its stops, one at a time, applies fixes and takes them back.

Knows nothing of how it is asked and shown: the debug console, messages of the debug adapter and others use it. Imports
the heavy rooms (agent, fixes, models) when they are first needed, as it is part of every debug session's start.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dap_agent.control import changes, failure
from dap_agent.control.guest import Guest
from dap_agent.control.history import History
from dap_agent.control.investigating import Investigator, prepare
from dap_agent.control.reloading import Given, Reloading
from dap_agent.control.watching import Texts, text_of
from dap_agent.control.work import Configuration, Listener, Task, Work
from dap_agent.errors import DapAgentError
from dap_agent.session.api import StopOver
from dap_agent.session.redaction import mask_text

if TYPE_CHECKING:
    from dap_agent.agent.outcome import Outcome
    from dap_agent.agent.progress import Progress
    from dap_agent.fixes.applying import Undone
    from dap_agent.models.base import Backend
    from dap_agent.session.restart import FrameRestart
    from dap_agent.session.snapshot import Snapshot

NO_MODEL = (
    "No model is configured. Give one as `model` below `dapAgent` in the launch configuration, in DAP_AGENT_MODEL, or "
    "as `model` in [tool.dap-agent] of pyproject.toml: anthropic:NAME (key in ANTHROPIC_API_KEY), openai:NAME (key in "
    "OPENAI_API_KEY), or local:URL for a server of your own."
)
NO_EXCEPTION_YET = "There has been no exception in this session so far."
RESUMED = "The program was resumed, which ends the investigation."
ENDED = "The program has ended, which ends the investigation; /fix and /ask look at what is known of its exception."
CANCELLED = "The investigation was cancelled."
CLOSED = "The debug session has ended, and the investigation with it."


class Assistant:
    """See the module.

    Args:
        guest: the debug session.
        configure: what the user has set, known once the program is being started; may change at a restart.
        reloading: gives the live program what is written; without one it keeps its code.

    Attributes:
        history: what has happened.
        given: what has become in the live program of the newest change that was written or taken back.
    """

    def __init__(
        self,
        guest: Guest,
        configure: Callable[[], Awaitable[Configuration]],
        reloading: Reloading | None = None,
    ) -> None:
        self.history = History()
        self.given = Given()
        self._reloading = reloading
        if reloading is not None:
            reloading.told = self._reloaded
        self._guest = guest
        self._configure = configure
        self._listeners: list[Listener] = []
        self._work: Work | None = None  # that runs
        self._task: asyncio.Task[Outcome] | None = None
        self._beginning = False
        self._why = RESUMED  # what the running work is cancelled for
        self._last: Work | None = None  # that has ended
        self._proposed: Work | None = None  # the newest with a fix
        self._investigator = Investigator(self._tell)
        self._spent = 0.0  # US dollars
        self._stops = 0
        self._files = asyncio.Lock()  # the user's files are written by one at a time
        self._unlisten = guest.listen(self)

    def listen(self, listener: Listener) -> None:
        """Tell *listener* of everything from now on."""
        self._listeners.append(listener)

    async def close(self) -> None:
        """End everything; nothing is left running."""
        self._unlisten()
        await self.cancel(CLOSED)
        if self._proposed is not None:
            self._proposed.journal.close()
        await self._investigator.close()

    # What the guest tells

    def stopped(self, snapshot: "Snapshot", thread_id: int) -> None:
        """See `GuestListener`."""
        self._stops += 1
        self.history.add("stop", snapshot.headline)
        for listener in self._listeners:
            listener.stopped(snapshot, thread_id)

    def resumed(self) -> None:
        """See `GuestListener`; a running investigation hears of it from its program."""

    def ended(self) -> None:
        """See `GuestListener`."""
        self.history.add("end", "the program has ended")

    # Questions that need no model

    @property
    def guest(self) -> Guest:
        """The debug session."""
        return self._guest

    @property
    def proposed(self) -> Work | None:
        """The newest investigation that has ended with a fix."""
        return self._proposed

    @property
    def working(self) -> Work | None:
        """The investigation that runs."""
        return self._work

    @property
    def last(self) -> Work | None:
        """The newest investigation that has ended."""
        return self._last

    async def configuration(self) -> Configuration:
        """What the user has set for this session."""
        return await self._configure()

    def snapshot(self) -> "Snapshot":
        """The newest exception stop's.

        Raises:
            DapAgentError: there was none.
        """
        if self._guest.last is None:
            raise DapAgentError(NO_EXCEPTION_YET)
        return self._guest.last

    async def evaluate(self, code: str, frame_id: int | None) -> dict[str, Any]:
        """Run the user's own *code* in the live program, in the frame that the client has selected.

        Args:
            frame_id: the client's; None for the innermost frame.

        Returns:
            The answer of `StoppedProgram.evaluate`.

        Raises:
            DapAgentError: it cannot be run.
        """
        program = await self._guest.program()
        if self._guest.state == "ended":
            raise DapAgentError("The program has ended: nothing can be run in it any more. /restart starts it again.")
        return await program.evaluate(await self._guest.frame_number(frame_id), code)

    async def restart(self) -> None:
        """Start the program again, with the code that the files hold now.

        Raises:
            DapAgentError: it cannot be restarted.
        """
        await self._guest.restart()
        self.history.add("restart", "the program was started again")
        self._changed()

    async def restart_frame(self, frame: int = 0, frame_id: int | None = None) -> "FrameRestart":
        """Have a call on the stack made again, with the code that is in the program now, and let the program go on.

        Args:
            frame: its number in the snapshot.
            frame_id: the client's id of it, which comes before that.

        Returns:
            What is called again, and how that went in the rehearsal.

        Raises:
            DapAgentError: it cannot be done; nothing has happened to the program.
        """
        program = await self._guest.program()
        if self._guest.state == "ended":
            raise DapAgentError("The program has ended: no frame of it can be restarted. /restart starts it again.")
        number = frame if frame_id is None else await self._guest.frame_number(frame_id)
        found = await program.restart_frame(number)
        if not found.allowed:
            raise DapAgentError(found.text)
        await self._guest.resume()
        self.history.add("restart", f"{found.function} was called again")
        return found

    # Investigations

    async def autodebug(self, instructions: str | None = None) -> Work:
        """Begin to look for a fix of the exception that the program stands at, or has ended of.

        Args:
            instructions: the user's own words for the model.

        Returns:
            The work; listeners are told how it goes on.

        Raises:
            DapAgentError: it cannot begin.
        """
        return await self._begin("autodebug", instructions or "")

    async def propose(self, arguments: Mapping[str, Any], client: str) -> Work:
        """Begin to prove a fix that somebody else's model has found; it costs nothing and needs no model.

        Args:
            arguments: of the tool `propose`; if they are wrong, the work ends with a sentence that says so.
            client: who has found it.

        Returns, raises:
            As `autodebug`.
        """
        from dap_agent.agent.given import GivenProposal

        return await self._begin("autodebug", "", f"a fix of {client}", GivenProposal(arguments, client))

    async def ask(self, text: str, *, called: str | None = None) -> Work:
        """Begin to answer a question about the stop; a further question at the same stop goes on from the last.

        Args:
            text: the question.
            called: what the history calls it, instead of *text*.

        Returns, raises:
            As `autodebug`.
        """
        if not text.strip():
            raise DapAgentError("The question is empty.")
        return await self._begin("ask", text, called)

    async def cancel(self, why: str = CANCELLED) -> Work | None:
        """End the investigation that runs; returns when nothing is left of it.

        Returns:
            The work, None if there was none.
        """
        work, task = self._work, self._task
        if task is None or task.done():
            return None
        self._why = why
        task.cancel(why)
        await asyncio.wait({task})
        return work

    async def _begin(
        self, task: Task, question: str, called: str | None = None, backend: "Backend | None" = None
    ) -> Work:
        if self._beginning or self._work is not None:
            raise DapAgentError("An investigation runs already: wait for its end, or end it with /cancel.")
        self._beginning = True
        try:
            program = await self._guest.program()
            if task == "autodebug" and program.snapshot.reason == "pause":
                raise DapAgentError(
                    "There is no exception at this stop, so there is nothing to fix. /ask QUESTION looks at it; "
                    "/fix works when an exception has stopped the program."
                )
            configuration = await self._configure()
            if backend is not None:
                configuration = replace(configuration, model=backend.name, max_cost=None)
            if configuration.model is None:
                raise DapAgentError(NO_MODEL)
            if configuration.max_cost is not None and self._spent >= configuration.max_cost:
                raise DapAgentError(
                    f"${self._spent:.2f} of the ${configuration.max_cost:.2f} for this session are spent: a higher "
                    "maxCost allows more."
                )
            work = await asyncio.to_thread(prepare, program, configuration, task, question)
        finally:
            self._beginning = False
        self._work = work
        self._why = RESUMED
        self.history.add(task, called or question or program.snapshot.headline, work.id)
        for listener in self._listeners:
            listener.began(work)
        limit = configuration.max_cost
        left = None if limit is None else limit - self._spent
        running = self._investigator.run(work, program, configuration, left=left, backend=backend)
        self._task = asyncio.get_running_loop().create_task(running)
        self._task.add_done_callback(lambda task: self._over(work, task))
        return work

    def _over(self, work: Work, task: "asyncio.Task[Outcome]") -> None:
        """The investigation has come to its end, whatever that is."""
        error = None if task.cancelled() else task.exception()
        if task.cancelled():
            work.failure = self._why  # by `cancel`
        elif isinstance(error, StopOver):
            work.failure = RESUMED if self._guest.state != "ended" else ENDED
        elif isinstance(error, DapAgentError):
            work.failure = error.message
        elif error is not None:  # a bug of ours; the debug session has to go on
            work.failure = failure.describe(error)
        else:
            work.outcome = task.result()
            if work.outcome.status == "resumed":
                work.failure = RESUMED
        self._finish(work)

    def _tell(self, work: Work, event: "Progress") -> None:
        if event.kind == "turn":
            work.cost = event.data.get("cost") or 0.0
        for listener in self._listeners:
            listener.progress(work, event)

    def _finish(self, work: Work) -> None:
        if work.outcome is not None:
            work.cost = work.outcome.cost or 0.0
        self._spent += work.cost
        self._work, self._last = None, work
        if work.proposes:
            if self._proposed is not None:
                self._proposed.journal.close()
            self._proposed = work
        else:
            work.journal.failed(work.failure or "")
            work.journal.close()
        self.history.ended(work)
        for listener in self._listeners:
            listener.ended(work)

    # Fixes

    async def apply(self, *, unproved: bool = False, id: str | None = None) -> Work:
        """Write the newest fix to the user's files.

        Args:
            unproved: also if its proof has not succeeded.
            id: of the fix that is meant; if it is not the newest one, nothing is written.

        Returns:
            Its investigation, with the files in `applied`.

        Raises:
            DapAgentError: nothing was written; the message says why.
        """
        async with self._files:
            work = self._proposed
            if work is None:
                raise DapAgentError("There is no fix to apply. /fix looks for one.")
            if id is not None and id != work.id:
                raise DapAgentError(f"The fix {id} is not the newest one, which is {work.id}: nothing was written.")
            work.applied = await asyncio.to_thread(changes.write, work, unproved=unproved)
        work.journal.applied(work.applied)
        await self._give(changes.texts(work))
        self._applied(work)
        return work

    async def wrote(self, id: str, *, written: bool) -> Work:
        """Note that somebody else, such as the user's editor, has written the newest fix, or has taken it back.

        Args:
            id: of the fix.
            written: whether it is in the files now.

        Raises:
            DapAgentError: it is not the newest one.
        """
        async with self._files:
            work = self._proposed
            if work is None or work.id != id:
                raise DapAgentError(f"The fix {id} is not the newest one of this session.")
            if written == bool(work.applied):
                return work
            work.applied = changes.names(work) if written else ()
        texts = changes.texts(work)
        await self._give(
            texts if written else {path: (new, old) for path, (old, new) in texts.items() if old is not None}
        )
        if written:
            work.journal.applied(work.applied)
            self._applied(work)
        else:
            self.history.add("undo", work.title)
            self._changed()
        return work

    def _applied(self, work: Work) -> None:
        self.history.add("apply", ", ".join(work.applied), work.id)
        self._changed()

    def _changed(self) -> None:
        for listener in self._listeners:
            listener.changed()

    async def undo(self) -> "Undone":
        """Take back the last fix that was applied in the workspace.

        Raises:
            DapAgentError: there is none, or it cannot be taken back.
        """
        async with self._files:
            root = self._proposed.workspace.root if self._proposed is not None else await self._root()
            undone = await asyncio.to_thread(changes.take_back, root)
            if self._proposed is not None and self._proposed.title == undone.label:
                self._proposed.applied = ()
        await self._give(await asyncio.to_thread(self._taken_back, undone))
        self.history.add("undo", undone.label)
        self._changed()
        return undone

    def _taken_back(self, undone: "Undone") -> Texts:
        known = self._reloading.seen if self._reloading is not None else lambda path: None
        texts = {str(path): text_of(str(path)) for path in undone.restored}
        return {path: (known(path), text) for path, text in texts.items() if text is not None}

    async def _give(self, texts: Texts) -> None:
        self.given = await self._reloading.written(texts) if self._reloading is not None and texts else Given()

    async def reload(self, files: list[str] | None = None) -> dict[str, Any] | None:
        """Put what files hold now into the live program.

        Args:
            files: absolute paths; None: all that are known to have changed.

        Returns:
            What has become of each function (`reload` in `schemas/messages.schema.json`).

        Raises:
            DapAgentError: it is not alive, or a file cannot be read.
        """
        if self._reloading is None:
            raise DapAgentError("Code cannot be put into the live program here; restart it instead.")
        self._reloaded(await self._reloading.reload(files))
        return self.given.to_json()

    def _reloaded(self, given: Given) -> None:
        self.given = given
        if given.report is not None:
            self.history.add("reload", given.report.summary)
        for listener in self._listeners:
            listener.reloaded(given.text())

    async def _root(self) -> Path:
        configuration = await self._configure()
        if configuration.workspace:
            return configuration.workspace[0]
        from dap_agent.agent.stopping import root_of_attached

        return root_of_attached(self.snapshot())

    # What others may want to know

    async def status(self) -> dict[str, Any]:
        """What goes on, as JSON (`schemas/messages.schema.json`)."""
        model = (await self._configure()).model  # first: while this takes its time, the rest changes
        last, proposed, work = self._guest.last, self._proposed, self._work
        return {
            "program": self._guest.state,
            "exception": mask_text(last.headline) if last is not None else None,
            "model": model,
            "working": {"id": work.id, "task": work.task} if work is not None else None,
            "proposal": (
                {"id": proposed.id, "title": proposed.title, "applied": bool(proposed.applied)}
                if proposed is not None
                else None
            ),
            "cost": round(self._spent, 6),
        }
