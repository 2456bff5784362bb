"""What the client has asked us and was not told yet. A client may use a number twice; so it is counted."""


class Questions:
    """Open requests, each known by the client's number and the command."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, str], int] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, question: tuple[int, str]) -> bool:
        return question in self._open

    def add(self, seq: int, command: str) -> None:
        """The client asks."""
        self._open[seq, command] = self._open.get((seq, command), 0) + 1
        self._count += 1

    def remove(self, seq: int, command: str) -> None:
        """It is answered; it must be open."""
        self._open[seq, command] -= 1
        self._count -= 1
        if not self._open[seq, command]:
            del self._open[seq, command]

    def take_all(self) -> list[tuple[int, str]]:
        """All that are open, in the order asked; none is any more."""
        taken, self._open, self._count = self._open, {}, 0
        return [question for question, times in taken.items() for _ in range(times)]
