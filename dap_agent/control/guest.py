"""What is needed of a debug session, as `session.guest` gives it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from dap_agent.session.api import StoppedProgram
    from dap_agent.session.guest import GuestListener, State
    from dap_agent.session.snapshot import Snapshot


class Guest(Protocol):
    """What is needed of a debug session (`session.guest`)."""

    @property
    def state(self) -> "State":
        """What the program does."""

    @property
    def last(self) -> "Snapshot | None":
        """The newest exception stop's."""

    def listen(self, listener: "GuestListener") -> Callable[[], None]:
        """Tell a `GuestListener` of all further stops; the result ends that."""

    async def program(self) -> "StoppedProgram":
        """The stopped program, or what is known of one that has ended."""

    async def frame_number(self, frame_id: int | None) -> int:
        """Which frame of the snapshot an id of the client's is."""

    async def restart(self) -> None:
        """Start the program again."""

    async def resume(self) -> None:
        """Let the program go on."""
