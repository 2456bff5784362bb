"""A failure that is a bug of ours: one sentence for the user, the traceback in a file."""

import traceback
from typing import TYPE_CHECKING, Any

from dap_agent.errors import DapAgentError

if TYPE_CHECKING:
    import asyncio

    from dap_agent.cli.ui import Ui


def describe(error: BaseException) -> str:
    """Say what failed, and keep the traceback.

    Args:
        error: an exception that no user should ever meet.

    Returns:
        One sentence, naming the file with the traceback.
    """
    from dap_agent.session.paths import state_dir

    what = f"dap-agent itself failed with {type(error).__name__}: {error}; this is a bug in dap-agent"
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    try:
        path = state_dir() / "last-failure.txt"
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError:
        return f"{what}.\n{text}"
    return f"{what}. Its traceback is in {path}: please report it."


def tell_on(loop: "asyncio.AbstractEventLoop", ui: "Ui") -> None:
    """Tell failures of background tasks in a sentence, instead of asyncio's way."""

    def failed(loop: "asyncio.AbstractEventLoop", context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, DapAgentError):
            ui.note(error.message, "bad")
        elif error is not None:
            ui.note(describe(error), "bad")
        else:
            loop.default_exception_handler(context)

    loop.set_exception_handler(failed)
