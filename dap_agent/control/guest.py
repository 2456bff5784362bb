"""What is needed of a debug session, as `session.guest` gives it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from dap_agent.session.api import StoppedProgram
    from dap_agent.session.snapshot import Snapshot

State = Literal["starting", "running", "stopped", "ended"]


class GuestListener(Protocol):
    """Told of stops and their ends."""

    def stopped(self, snapshot: "Snapshot", thread_id: int) -> None:
        """The program has stopped at an exception, and its snapshot is there."""

    def resumed(self) -> None:
        """The stop is over."""

    def ended(self) -> None:
        """The program has ended."""


class Guest(Protocol):
    """What is needed of a debug session (`session.guest`)."""

    @property
    def state(self) -> State:
        """What the program does."""

    @property
    def last(self) -> "Snapshot | None":
        """The newest exception stop's."""

    def listen(self, listener: Any) -> Callable[[], None]:
        """Tell a `GuestListener` of all further stops; the result ends that."""

    async def program(self) -> "StoppedProgram":
        """The stopped program, or what is known of one that has ended."""

    async def frame_number(self, frame_id: int | None) -> int:
        """Which frame of the snapshot an id of the client's is."""

    async def restart(self) -> None:
        """Start the program again."""
