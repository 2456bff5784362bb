"""The snapshot of one exception stop, as the rest of dap-agent reads it."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Snapshot:
    """A bounded, redacted picture of one stop.

    Args:
        data: the JSON that `schemas/snapshot.schema.json` describes.
    """

    data: dict[str, Any]

    @property
    def reason(self) -> str:
        """`exception`, `pause` or `exit`."""
        return str(self.data["reason"])

    @property
    def exception(self) -> dict[str, Any] | None:
        """The exception that stopped the program; None at a pause or a death by signal."""
        found: dict[str, Any] | None = self.data["exception"]
        return found

    @property
    def frames(self) -> list[dict[str, Any]]:
        """The kept frames, innermost first."""
        frames: list[dict[str, Any]] = self.data["frames"]
        return frames

    @property
    def failing_frame(self) -> dict[str, Any] | None:
        """The innermost frame."""
        return self.frames[0] if self.frames else None

    @property
    def user_frame(self) -> dict[str, Any] | None:
        """The innermost frame of the user's own code."""
        return next((frame for frame in self.frames if frame["user"]), None)

    @property
    def package_frame(self) -> dict[str, Any] | None:
        """The innermost frame of a package, if there is none of the user's before it: what the user's code called."""
        for frame in self.frames:
            if frame["user"]:
                return None
            if not frame["stdlib"]:
                return frame
        return None

    @property
    def headline(self) -> str:
        """`KeyError: 'qty'`, or what stopped the program where there is no exception."""
        exception = self.exception
        if exception is None:
            return self.data["notes"][0] if self.data["notes"] else self.reason
        return f"{exception['type']}: {exception['message']}" if exception["message"] else str(exception["type"])
