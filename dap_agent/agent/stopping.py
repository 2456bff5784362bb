"""What belongs to every investigation, whoever began it: the end of the stop, the project, the interpreter."""

import asyncio
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from dap_agent.session.api import StopOver

if TYPE_CHECKING:
    from dap_agent.session.api import StoppedProgram
    from dap_agent.session.snapshot import Snapshot

T = TypeVar("T")


async def while_stopped(program: "StoppedProgram", work: Coroutine[object, object, T]) -> T:
    """Do *work* as long as *program* is stopped: a model may take minutes, nobody would wait for it then.

    *work* is cancelled with the sentence that says how the stop ended as the cancellation's message.

    Raises:
        StopOver: the stop has ended before.
    """
    over, task = asyncio.ensure_future(program.until_over()), asyncio.ensure_future(work)
    how: str | None = None
    try:
        await asyncio.wait({over, task}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            how = over.result()
            raise StopOver(f"{how} This ends the investigation.")
        return task.result()
    finally:
        over.cancel()
        task.cancel(how)
        await asyncio.wait({over, task})


def root_of_attached(snapshot: "Snapshot") -> Path:
    """The project of a program that somebody else started: found from the program if the failing code is in there."""
    from dap_agent.fixes.workspace import find_root

    process, frame = snapshot.data["process"], snapshot.user_frame
    here = Path(process["cwd"])
    program = here / (process["argv"] or [""])[0]
    file = Path(frame["file"]).resolve() if frame else None
    if file is None or not file.is_file():
        return find_root(program if program.is_file() else here)
    home = Path(os.path.expanduser("~")).resolve()  # noqa: PTH111 - Path.expanduser raises where a user has no home
    for place in (program, here):
        root = find_root(place)
        # a folder above all projects would be the workspace of everything in it
        if file.is_relative_to(root) and root not in (home, Path(root.anchor)):
            return root
    return find_root(file)


def python_of(snapshot: "Snapshot", otherwise: Path) -> Path:
    """The interpreter that runs the program, for tests; *otherwise* if it is not a file of this machine."""
    own = Path(snapshot.data["python"]["executable"])
    return own if own.is_file() else otherwise
