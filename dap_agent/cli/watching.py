"""A run of the command line made known to editors: they can look at its stop, its investigation and its fix."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from dap_agent.cli.settings import Settings
from dap_agent.control.sharing import Sharing
from dap_agent.control.watched import Watched
from dap_agent.control.work import Configuration


@contextlib.asynccontextmanager
async def watched(kind: str, settings: Settings, folders: Sequence[Path], program: str) -> AsyncIterator[Watched]:
    """A session of the command line that others may look at while it lasts.

    If it cannot be made known, nobody is told: the terminal is what its user looks at.

    Args:
        kind: `run` or `attach`.
        folders: what it is about, the first is the root.
        program: what is debugged, for people.
    """
    configuration = Configuration(model=settings.model, workspace=settings.workspace, project=folders[0])
    found = Watched(configuration)
    sharing = Sharing(found, kind, lambda sentence: None)
    sharing.open(folders, program)
    try:
        yield found
    finally:
        await found.close()
        await sharing.close()
