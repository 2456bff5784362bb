"""`Server` bound to pygls' features and commands, and served."""

import os
from collections.abc import Callable, Coroutine
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from dap_agent import __version__
from dap_agent.editors.lsp import offers
from dap_agent.editors.lsp.server import Server

NAME = "dap-agent"


def make() -> LanguageServer:
    """A language server that is ready to be started; one for each editor."""
    server = LanguageServer(NAME, __version__, text_document_sync_kind=lsp.TextDocumentSyncKind.Incremental)
    ours: list[Server] = []

    @server.feature(lsp.INITIALIZED)
    async def initialized(params: lsp.InitializedParams) -> None:
        ours.append(Server(server))
        ours[0].sessions.begin()

    @server.feature(lsp.SHUTDOWN)
    async def shutdown(*_: Any) -> None:
        if ours:
            await ours[0].close()

    @server.feature(lsp.TEXT_DOCUMENT_CODE_LENS, lsp.CodeLensOptions(resolve_provider=False))
    async def lenses(params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
        return await ours[0].lenses(params.text_document.uri) if ours else []

    options = lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix], resolve_provider=True)

    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, options)
    async def actions(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        return await ours[0].actions(params) if ours else []

    @server.feature(lsp.CODE_ACTION_RESOLVE)
    async def resolve(action: lsp.CodeAction) -> lsp.CodeAction:
        return await ours[0].resolve(action) if ours else action

    def touch(_: Any) -> None:
        if ours:
            ours[0].touched()

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: lsp.DidSaveTextDocumentParams) -> None:
        if ours:
            ours[0].sessions.saved()
            ours[0].touched()

    for feature in (lsp.TEXT_DOCUMENT_DID_OPEN, lsp.TEXT_DOCUMENT_DID_CHANGE, lsp.TEXT_DOCUMENT_DID_CLOSE):
        server.feature(feature)(_named(touch))

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def folders(params: lsp.DidChangeWorkspaceFoldersParams) -> None:
        if ours:
            ours[0].sessions.look_again()

    for name in offers.COMMANDS:
        server.command(name)(_command(ours, name))
    return server


def _named(function: Callable[[Any], None]) -> Callable[[Any], None]:
    """A function of its own for each feature: pygls keeps marks on it."""
    return lambda params: function(params)


def _command(ours: list[Server], name: str) -> Callable[..., Coroutine[Any, Any, dict[str, Any]]]:
    async def run(argument: Any = None) -> dict[str, Any]:
        if not ours:
            return {"ok": False, "message": "The language server is not initialized."}
        return await ours[0].command(name, argument)

    return run


def serve() -> None:
    """Serve the editor at standard input and output, until it leaves."""
    reader, writer = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # the protocol has it to itself: nothing that prints by mistake can meet it
    make().start_io(reader, writer)
