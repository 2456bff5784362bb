"""The failures of this package that a user or a model can meet."""

from dap_agent.errors import DapAgentError


class EditError(DapAgentError):
    """An edit that cannot be made; the message says how to make it."""


class StaleFile(DapAgentError):
    """A file is not what it was when it was read; nothing was written over it."""


class WorkspaceError(DapAgentError):
    """A file that may not be read or edited."""


class OutsideWorkspace(WorkspaceError):
    """A path outside the folders that may be edited."""


class ProtectedFile(WorkspaceError):
    """A path inside the workspace that is kept from the model: secrets, version control, installed packages."""


class UnreadableFile(WorkspaceError):
    """A file that is missing, binary, too large, or not text in its declared encoding."""


class ApplyError(DapAgentError):
    """Writing the files failed; what had been written was taken back unless the message says otherwise."""


class UndoError(DapAgentError):
    """The last fix cannot be taken back as asked."""


class UndoRecordError(ApplyError, UndoError):
    """There is no place to keep what undoes a fix: the state directory cannot be written."""


class ProposalError(DapAgentError):
    """A proposal that does not follow `schemas/proposal.schema.json`.

    Args:
        problems: one sentence per problem, each starting with its JSON path.
    """

    def __init__(self, problems: list[str]) -> None:
        super().__init__(
            "The proposal does not follow its schema:\n" + "\n".join(f"- {problem}" for problem in problems)
        )
        self.problems = tuple(problems)


class ScratchError(DapAgentError):
    """No scratch copy of the workspace could be made."""
