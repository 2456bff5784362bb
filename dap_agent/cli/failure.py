"""Failures of background tasks, told in a sentence."""

from typing import TYPE_CHECKING, Any

from dap_agent.control.failure import describe
from dap_agent.errors import DapAgentError

if TYPE_CHECKING:
    import asyncio

    from dap_agent.cli.ui import Ui

__all__ = ["describe", "tell_on"]


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
