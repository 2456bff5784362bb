"""Stop epochs: how long a frame id or a variable reference is worth something."""


class Epochs:
    """Follows the stops and resumes of one debuggee.

    Attributes:
        number: changes at every stop and at every resume, so what was read under one number is valid under no other.
        stopped: whether the debuggee is paused.
    """

    def __init__(self) -> None:
        self.number = 0
        self.stopped = False
        self._resuming = False  # a request that resumes was sent since the last change

    def resume_sent(self) -> None:
        """A request that resumes the debuggee goes to the adapter."""
        self._resuming = True

    def resume_answered(self, success: bool, sent_in: int) -> bool:
        """The answer to such a request, sent in epoch *sent_in*, has come. Whether that changes the epoch."""
        if sent_in != self.number:
            return False  # the next stop was reported before the answer
        if not success:
            self._resuming = False
            return False
        return self.resumed()

    def stop(self) -> bool:
        """`stopped` has come. Whether that changes the epoch: ids stay valid when one more thread stops."""
        if self.stopped and not self._resuming:
            return False
        self._next(stopped=True)
        return True

    def resumed(self) -> bool:
        """The debuggee runs, or is gone. Whether that changes the epoch."""
        if not self.stopped:
            return False
        self._next(stopped=False)
        return True

    def _next(self, *, stopped: bool) -> None:
        self.number += 1
        self.stopped = stopped
        self._resuming = False
