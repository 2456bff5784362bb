"""A session that the command line drives: tools may look at it over its socket, what happens is decided there."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from dap_agent.control import changes
from dap_agent.control.assistant import Assistant
from dap_agent.control.work import Configuration, Work
from dap_agent.errors import DapAgentError
from dap_agent.session.stopped import PostMortem

if TYPE_CHECKING:
    from dap_agent.agent.outcome import Outcome
    from dap_agent.agent.progress import Progress
    from dap_agent.fixes.applying import Undone
    from dap_agent.session.api import StoppedProgram
    from dap_agent.session.guest import GuestListener, State
    from dap_agent.session.snapshot import Snapshot

_NOT_HERE = (
    "This program is run by dap-agent in a terminal, which decides what is done: it can only be looked at from here."
)
_NOTHING_YET = "The program runs, and no exception has stopped it so far: there is nothing to look at."


class Watched(Assistant):
    """See the module. What it is told by who drives it, it tells its listeners.

    Args:
        configuration: what the user has set.
    """

    def __init__(self, configuration: Configuration) -> None:
        async def configure() -> Configuration:
            return configuration

        self._program = _Program()
        super().__init__(self._program, configure)

    async def close(self) -> None:
        """Tell nothing more; the journals are those of who drives it."""
        self._unlisten()

    # What who drives it tells

    def met(self, program: "StoppedProgram", *, ended: bool) -> None:
        """An exception has stopped the program, or it was found when it had *ended*."""
        snapshot = program.snapshot
        self._program.last = snapshot
        self._program.stopped = program
        self._program.state = "ended" if ended else "stopped"
        thread = snapshot.data["thread"]["id"]
        if ended:
            self._program.tell(lambda listener: listener.ended())
        else:
            self._program.tell(lambda listener: listener.stopped(snapshot, thread if type(thread) is int else 0))

    def resumed_after(self) -> None:
        """The program goes on."""
        self._program.state = "running"
        self._program.stopped = None
        self._program.tell(lambda listener: listener.resumed())

    def over(self) -> None:
        """The program has ended."""
        self._program.stopped = PostMortem(self._program.last) if self._program.last is not None else None
        self._program.state = "ended"
        self._program.tell(lambda listener: listener.ended())

    def begin(self, work: Work) -> None:
        """An investigation has begun."""
        self._work = work
        for listener in self._listeners:
            listener.began(work)

    def step(self, event: "Progress") -> None:
        """It goes on."""
        if self._work is not None:
            self._tell(self._work, event)

    def finish(self, outcome: "Outcome | None", failure: str | None = None) -> None:
        """It is over.

        Args:
            outcome: its result.
            failure: why there is none.
        """
        work = self._work
        if work is None:
            return
        work.outcome, work.failure = outcome, failure
        work.cost = (outcome.cost or 0.0) if outcome is not None else work.cost
        self._spent += work.cost
        self._work, self._last = None, work
        if work.proposes:
            self._proposed = work
        for listener in self._listeners:
            listener.ended(work)

    def wrote_fix(self) -> None:
        """The newest fix was written to the files."""
        if self._proposed is not None:
            self._proposed.applied = changes.names(self._proposed)
            self._changed()

    # What cannot be asked of it

    async def evaluate(self, code: str, frame_id: int | None) -> dict[str, Any]:
        """Not here."""
        _refuse()

    async def restart(self) -> None:
        """Not here."""
        _refuse()

    async def autodebug(self, instructions: str | None = None) -> Work:
        """Not here."""
        _refuse()

    async def propose(self, arguments: Mapping[str, Any], client: str) -> Work:
        """Not here."""
        _refuse()

    async def ask(self, text: str, *, called: str | None = None) -> Work:
        """Not here."""
        _refuse()

    async def cancel(self, why: str = "") -> Work | None:
        """Not here."""
        _refuse()

    async def apply(self, *, unproved: bool = False, id: str | None = None) -> Work:
        """Not here."""
        _refuse()

    async def wrote(self, id: str, *, written: bool) -> Work:
        """Not here."""
        _refuse()

    async def undo(self) -> "Undone":
        """Not here."""
        _refuse()

    async def reload(self, files: list[str] | None = None) -> dict[str, Any] | None:
        """Not here."""
        _refuse()

    async def restart_frame(self, *_: Any, **__: Any) -> Any:
        """Not here."""
        _refuse()


def _refuse() -> NoReturn:
    raise DapAgentError(_NOT_HERE)


class _Program:
    """The session as `control.guest.Guest`."""

    def __init__(self) -> None:
        self.state: State = "running"
        self.last: Snapshot | None = None
        self.stopped: StoppedProgram | None = None  # for those who look
        self._listeners: list[GuestListener] = []

    def listen(self, listener: "GuestListener") -> Callable[[], None]:
        """See `Guest`."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def tell(self, what: "Callable[[GuestListener], None]") -> None:
        """Tell all listeners."""
        for listener in tuple(self._listeners):
            what(listener)

    async def program(self) -> "StoppedProgram":
        """See `Guest`."""
        if self.stopped is None:
            raise DapAgentError(_NOTHING_YET)
        return self.stopped

    async def frame_number(self, frame_id: int | None) -> int:
        """See `Guest`."""
        _refuse()

    async def resume(self) -> None:
        """Not here."""
        _refuse()

    async def restart(self) -> None:
        """See `Guest`."""
        _refuse()
