"""`dap-agent mcp`: the MCP server, on standard input and output."""

import os
import signal
from collections.abc import Sequence
from pathlib import Path


def command(workspace: Sequence[str], show: str | None) -> int:
    """Serve an agent host until it leaves, or print what its configuration has to say.

    Args:
        workspace: folders whose sessions are offered; empty: Claude Code's project, else the current folder.
        show: the host whose configuration is printed.

    Returns:
        The exit status.
    """
    from dap_agent.mcp import server

    if show is not None:
        print(server.print_config(show, workspace))
        return 0
    _find_runtime_dir()
    folders = workspace or [os.environ.get("CLAUDE_PROJECT_DIR") or os.getcwd()]  # noqa: PTH109 - as a string
    # there is nothing to clean up, and a thread waits for the host's next line
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    server.run([Path(folder).resolve() for folder in folders])
    return 0


def _find_runtime_dir() -> None:
    """Hosts built on the official SDKs give their servers six variables, and `XDG_RUNTIME_DIR` is none of them."""
    if "XDG_RUNTIME_DIR" in os.environ or not hasattr(os, "geteuid"):
        return
    path = Path(f"/run/user/{os.geteuid()}")  # the place of pam_systemd(8)
    if path.is_dir() and path.stat().st_uid == os.geteuid():
        os.environ["XDG_RUNTIME_DIR"] = str(path)
