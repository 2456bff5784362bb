"""What the program has printed last, as the adapter tells it by `output` events.

They are kept as they came and read when somebody wants to know: a program may print a million lines.
"""

from collections import deque

from dap_agent.wire.frames import Frame
from dap_agent.wire.messages import InvalidMessage, body_of

_EVENTS = 400  # debugpy sends a line and its end apart
_BIGGEST = 16_384  # bytes of an event; a bigger one is not kept
_LINES = 100
_ROOM = 8192  # characters of a stream


class Printed:
    """The newest output of one session."""

    def __init__(self) -> None:
        self._frames: deque[Frame] = deque(maxlen=_EVENTS)

    def add(self, frame: Frame) -> None:
        """An `output` event has come."""
        if len(frame.body) <= _BIGGEST:
            self._frames.append(frame)

    def clear(self) -> None:
        """The program is started again."""
        self._frames.clear()

    def lines(self) -> dict[str, list[str]]:
        """The last lines of `stdout` and `stderr`, not masked."""
        texts: dict[str, list[str]] = {"stdout": [], "stderr": []}
        for frame in self._frames:
            try:
                body = body_of(frame.message)
            except InvalidMessage:
                continue  # it was passed on as it is, and is nothing that can be shown
            category, text = body.get("category"), body.get("output")
            if isinstance(category, str) and category in texts and isinstance(text, str):
                texts[category].append(text)
        return {name: "".join(pieces)[-_ROOM:].splitlines()[-_LINES:] for name, pieces in texts.items()}
