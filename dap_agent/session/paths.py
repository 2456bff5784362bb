"""Where dap-agent keeps what outlives one run (journals, undo records), and where its live sessions meet."""

import os
import stat
from pathlib import Path

from dap_agent.errors import DapAgentError


def state_dir() -> Path:
    """The user's state directory for dap-agent, made if missing, readable by the user alone.

    `DAP_AGENT_STATE_DIR` overrides the platform's place (XDG Base Directory specification on Linux).
    """
    given = os.environ.get("DAP_AGENT_STATE_DIR")
    if given:
        path = Path(given)
    else:
        import platformdirs

        path = Path(platformdirs.user_state_dir("dap-agent", appauthor=False))
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    return path


def runtime_dir() -> Path:
    """The folder of the live sessions' sockets and entries, made if missing; nobody else can enter it.

    `$XDG_RUNTIME_DIR/dap-agent`, where there is none (or `DAP_AGENT_STATE_DIR` is set) `run` in the state directory.

    Raises:
        DapAgentError: it is another user's, or no folder.
    """
    given = os.environ.get("XDG_RUNTIME_DIR")
    if given and Path(given).is_dir() and not os.environ.get("DAP_AGENT_STATE_DIR"):
        return private_dir(Path(given) / "dap-agent")
    return private_dir(state_dir() / "run")


def private_dir(path: Path) -> Path:
    """*path* as a folder of this user's that nobody else can enter, made if missing.

    Raises:
        DapAgentError: it is another user's, a symbolic link, or no folder.
    """
    path.mkdir(exist_ok=True, mode=0o700)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or (hasattr(os, "geteuid") and found.st_uid != os.geteuid()):
        raise DapAgentError(
            f"{path} is not a folder of your own, so dap-agent puts nothing there. Remove it, or set "
            "DAP_AGENT_STATE_DIR to a folder of yours."
        )
    if hasattr(os, "geteuid") and stat.S_IMODE(found.st_mode) != 0o700:
        path.chmod(0o700)
    return path
