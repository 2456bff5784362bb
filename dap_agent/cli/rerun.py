"""Running the program again after a fix: with which input, and what counts as passed."""

import os
import stat
from dataclasses import dataclass
from typing import Any, Literal

InputKind = Literal["same", "rewound", "empty"]


class Input:
    """The program's standard input, so that a second run can be given the same.

    A terminal or device is simply read on. A file is rewound to where the first run began. What came through a pipe is
    gone: the second run gets an empty input.
    """

    def __init__(self) -> None:
        self._offset: int | None = None
        self._gone = False
        try:
            mode = os.fstat(0).st_mode
            if stat.S_ISREG(mode):
                self._offset = os.lseek(0, 0, os.SEEK_CUR)
            self._gone = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
        except OSError:
            # a closed standard input stays closed
            return

    @property
    def kind(self) -> InputKind:
        """What a second run reads."""
        return "empty" if self._gone else "rewound" if self._offset is not None else "same"

    def again(self) -> int | None:
        """Make the input ready for a second run.

        Returns:
            A descriptor to be used as its standard input and closed afterwards; None for our own.
        """
        if self._offset is not None:
            os.lseek(0, self._offset, os.SEEK_SET)
        return os.open(os.devnull, os.O_RDONLY) if self._gone else None


@dataclass(frozen=True)
class Rerun:
    """How the program did when it ran again.

    Args:
        exit_status: its own, negative for a signal.
        stops: the headlines of the exceptions it met.
        same: whether one of them is the exception that was to be fixed.
        input: what it read.
    """

    exit_status: int
    stops: tuple[str, ...]
    same: bool
    input: InputKind

    @property
    def passed(self) -> bool:
        """Whether it ended with status 0 and met no uncaught exception."""
        return self.exit_status == 0 and not self.stops

    @property
    def summary(self) -> str:
        """The result in one sentence."""
        if self.passed:
            text = "the fix is applied, and the program now runs through (exit status 0)."
        elif self.same:
            text = f"the fix is applied, and the program still fails with {self.stops[0]}."
        elif self.stops:
            text = f"the fix is applied and the exception is gone, but the program now fails with {self.stops[0]}."
        else:
            text = f"the fix is applied and the exception is gone, but the program ended {_words(self.exit_status)}."
        if self.input == "empty":
            text += " Its input is a pipe and could not be read twice, so this run had an empty input."
        return text

    def to_json(self) -> dict[str, Any]:
        """For the report."""
        return {
            "passed": self.passed,
            "exit_status": self.exit_status,
            "stops": list(self.stops),
            "same_exception": self.same,
            "input": self.input,
            "summary": self.summary,
        }


def _words(status: int) -> str:
    """`with status 3` or `by signal SIGTERM`."""
    if status >= 0:
        return f"with status {status}"
    import signal

    try:
        return f"by signal {signal.Signals(-status).name}"
    except ValueError:
        return f"by signal {-status}"
