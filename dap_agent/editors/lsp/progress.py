"""An investigation as work-done progress of an editor."""

import asyncio
from collections.abc import Callable

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from dap_agent.session.rendering import clip, one_line

_WIDTH = 120


class Shown:
    """One investigation that is shown.

    Args:
        server: of the editor.
        id: of the investigation.
        headline: of the exception.
    """

    def __init__(self, server: LanguageServer, id: str, headline: str) -> None:
        self._server = server
        self._token = f"dap-agent-{id}"
        self._headline = headline
        self._told: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    def tell(self, kind: str, text: str) -> None:
        """It goes on (`progress` of the schema)."""
        self._told.put_nowait((kind, text))

    async def run(self, task: str, cancel: Callable[[], None]) -> None:
        """Show it until it ends.

        Args:
            task: `autodebug` or `ask`.
            cancel: is called when the user wants it to end.
        """
        progress, loop = self._server.work_done_progress, asyncio.get_running_loop()
        await progress.create_async(self._token)
        progress.tokens[self._token].add_done_callback(
            lambda future: loop.call_soon_threadsafe(cancel) if future.cancelled() else None
        )
        title = "Autodebug" if task == "autodebug" else "dap-agent looks"
        message = clip(one_line(self._headline), _WIDTH)
        progress.begin(self._token, lsp.WorkDoneProgressBegin(title=title, message=message, cancellable=True))
        kind = ""
        while kind != "end":
            kind, text = await self._told.get()
            if kind != "end":
                shown = clip(one_line(text), _WIDTH)
                progress.report(self._token, lsp.WorkDoneProgressReport(message=shown, cancellable=True))
        progress.end(self._token, lsp.WorkDoneProgressEnd(message=clip(one_line(text), _WIDTH)))
        progress.tokens.pop(self._token, None)
