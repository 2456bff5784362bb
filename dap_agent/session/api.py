"""What the layers above need of a stopped program."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

from dap_agent.errors import DapAgentError

if TYPE_CHECKING:
    from dap_agent.session.reload import Changed, ReloadReport
    from dap_agent.session.restart import FrameRestart
    from dap_agent.session.snapshot import Snapshot


class ProgramResumed(DapAgentError):
    """The stop that was asked about is over: the program was resumed or has ended."""


class InspectionError(DapAgentError):
    """The question cannot be answered at this stop; the message says what can be asked."""


class StopOver(DapAgentError):
    """The stop has ended while it was being looked into, by no doing of dap-agent's."""


class StoppedProgram(Protocol):
    """A program paused at an exception, with the powers that the tools use."""

    @property
    def snapshot(self) -> "Snapshot":
        """The picture taken at the stop."""

    async def frame(self, number: int) -> dict[str, Any]:
        """One frame with its source and locals (a `Frame` of `schemas/snapshot.schema.json`)."""

    async def variable(self, frame: int, path: str, start: int = 0, count: int = 50) -> dict[str, Any]:
        """The value at *path* (`order.items[3].price`) in frame number *frame*, children *start* to *start + count*."""

    async def members(self, frame: int, path: str) -> dict[str, Any]:
        """The attributes and methods of the object at *path*, without running properties."""

    async def history(
        self, function: str = "", order: str = "newest", start: int = 0, count: int = 20
    ) -> dict[str, Any]:
        """The user's functions that were called before the stop: `functions`, `total` and `start`.

        Args:
            function: only those with this text in their name or file.
            order: `newest` or `oldest` first, or `calls`: the most often called first.
            start: the first one.
            count: how many, at most 50.
        """

    async def evaluate(self, frame: int, code: str, timeout: float = 5.0, *, jailed: bool = False) -> dict[str, Any]:
        """Run *code* in the frame, for at most *timeout* seconds; value, output and error.

        Args:
            jailed: in a copy of the process that can change nothing outside itself (`dap_agent/debuggee/jailed.py`):
                then also `effects` and `isolation`.
        """

    async def try_fix(
        self, candidates: list[list[dict[str, Any]]], texts: list[str], frame: int | None, timeout: float = 5.0
    ) -> dict[str, Any]:
        """Try candidates for a fix on the failing call, in copies like those of a jailed `evaluate`.

        Args:
            candidates, texts: the new files, as `dap_agent/debuggee/trial.py` takes them (`fixes.trials` makes them).
            frame: number of the frame that is called again, None: found out.
            timeout: seconds for each call.

        Returns:
            `trials` and `isolation`, see there.
        """

    async def reload(self, changes: "Iterable[Changed]") -> "ReloadReport":
        """Put changed files into the live program, which goes on with them.

        Args:
            changes: the files with their old and new texts.

        Returns:
            What has become of each function (`session/reload.py`).
        """

    async def trace(self, timeout: float = 5.0, **wanted: Any) -> dict[str, Any]:
        """Call a function again in a copy like that of a jailed `evaluate`, and tell what it does line by line.

        Args:
            timeout: seconds for the call.
            **wanted: what is called and what is told: the arguments of `dap_agent/debuggee/traced.py` from `number` to
                `steps`.

        Returns:
            See there; `session.trace.trace_text` makes a text of it.
        """

    async def restart_frame(
        self, frame: int, limit: float = 5.0, *, strict: bool = False, expects: str = ""
    ) -> "FrameRestart":
        """Have a frame call its function again, with the code that it has by then, as soon as the program goes on.

        It is rehearsed in a copy like that of a jailed `evaluate` first.

        Args:
            frame: its number.
            limit: seconds for the call in the copy.
            strict: only if the call returns in the copy, or fails there of what a copy may not do.
            expects: only if it does not return a value of another type than the one of this name.
        """

    async def until_over(self) -> str:
        """Wait until the stop has ended; returns a sentence on how."""
