"""The base of every failure that a user can meet."""


class DapAgentError(Exception):
    """A failure told in one sentence: what happened, why, and what to do.

    Args:
        message: the sentence, ready to be shown.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
