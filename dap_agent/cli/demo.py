"""`dap-agent demo`: a small project with a bug in a new folder, and the main job on it."""

import itertools
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from dap_agent.cli import run
from dap_agent.cli.command_line import UsageError
from dap_agent.cli.settings import Settings
from dap_agent.session.launch import ProgramCommand

PROGRAM = "bill.py"
ARGUMENTS = ("data", "--month", "2024-05")
HERE = Path(__file__).parent
TURNS = HERE / "demo_turns.json"


def command(directory: Path, settings_in: Callable[[Path], Settings]) -> int:
    """Make the project and run its program under dap-agent.

    Args:
        directory: the new folder.
        settings_in: loads the settings for a workspace.

    Returns:
        The exit status, as for `run`.

    Raises:
        UsageError: the folder has something in it already.
    """
    root = directory.expanduser().absolute()
    copy_project(root)
    settings = settings_in(root)
    text = f"dap-agent: a small project with a bug is in {root}.\n"
    if settings.model is None:
        settings = replace(settings, model=f"scripted:{TURNS}")
        text += (
            "dap-agent: no model is configured, so the demo plays recorded turns of a model from its files.\n"
            "           Everything else is real: the crash, the answers of the tools, proof, change, and second run.\n"
            "           With --model PROVIDER:NAME a real model does it.\n"
        )
    shown = f"dap-agent run {PROGRAM} {' '.join(ARGUMENTS)}"
    text += f"dap-agent: in that folder, this is the same as `{shown}`:\n"
    if settings.json != "-":
        sys.stderr.write(text)
        sys.stderr.flush()
    program = ProgramCommand(settings.python, PROGRAM, False, ARGUMENTS, root)
    return run.command(settings, program, root, unasked="auto")


def free_folder(parent: Path) -> Path:
    """`dap-agent-demo` in *parent*, with a number behind if that one is taken."""
    names = itertools.chain(["dap-agent-demo"], (f"dap-agent-demo-{number}" for number in itertools.count(2)))
    return next(path for path in map(parent.joinpath, names) if not _taken(path))


def _taken(path: Path) -> bool:
    return path.exists() and (not path.is_dir() or any(path.iterdir()))


def copy_project(root: Path) -> None:
    """Put the demo's project into a new or empty folder.

    Raises:
        UsageError: the folder has something in it, or cannot be made.
    """
    try:
        if _taken(root):
            what = "is not empty" if root.is_dir() else "is no folder"
            raise UsageError(f"{root} {what}: name a new folder, dap-agent demo DIR.")
        for source in sorted((HERE / "demo_project").rglob("*")):
            target = root / source.relative_to(HERE / "demo_project")
            if source.is_file() and "__pycache__" not in source.parts:
                # contents only: an installation may be read-only, the user's copy must not be
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
    except OSError as error:
        raise UsageError(f"The demo cannot be put into {root}: {error.strerror or error}.") from error
