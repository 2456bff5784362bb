"""Where dap-agent keeps what outlives one run: journals and undo records."""

import os
from pathlib import Path


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
