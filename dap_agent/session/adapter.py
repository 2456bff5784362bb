"""Where debugpy is, and how its debug adapter is started."""

import importlib.util
import sys
from pathlib import Path

from dap_agent.errors import DapAgentError

_START = Path(__file__).with_name("adapter_start.py")


def debugpy_folder() -> Path:
    """The folder that the debuggee imports debugpy from: ours, whatever its own interpreter has installed.

    Raises:
        DapAgentError: there is none.
    """
    spec = importlib.util.find_spec("debugpy")
    if spec is None or spec.origin is None:
        raise DapAgentError("debugpy is not installed beside dap-agent; install it with `pip install debugpy`.")
    return Path(spec.origin).parents[1]


def adapter_command() -> list[str]:
    """How debugpy's adapter is started: isolated (-I), as the working folder and PYTHONPATH are the program's.

    A `queue.py` of the program's would break it, a sitecustomize that prints would break into its protocol.

    Raises:
        DapAgentError: see `debugpy_folder`.
    """
    return [sys.executable, "-I", str(_START), str(debugpy_folder())]
