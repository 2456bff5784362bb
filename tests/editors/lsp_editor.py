"""An editor as a language server meets it: buffers, edits, progress, and lies if wanted (over pygls' client)."""

import asyncio
import contextlib
import itertools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Union

from lsprotocol import types as lsp
from pygls.lsp.client import BaseLanguageClient
from pygls.protocol import default_converter

from dap_agent.fixes.source_text import split_lines

from ..proxy.editor_double import environment

VSCODE: dict[str, Any] = {
    "workspace": {
        "applyEdit": True,
        "codeLens": {"refreshSupport": True},
        "workspaceEdit": {"documentChanges": True, "changeAnnotationSupport": {"groupsOnLabel": True}},
    },
    "window": {"workDoneProgress": True, "showDocument": {"support": True}},
}
NEOVIM: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-8", "utf-32", "utf-16"]},
    "workspace": {"applyEdit": True, "codeLens": {"refreshSupport": True}},
    "window": {"workDoneProgress": True, "showDocument": {"support": True}},
}


class Editor:
    """One editor with one language server.

    Args:
        client: speaks with the server.
        encoding: of columns.
    """

    def __init__(self, client: BaseLanguageClient) -> None:
        self.client = client
        self.encoding = "utf-16"
        self.buffers: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.shown: list[str] = []
        self.messages: list[str] = []
        self.progress: list[tuple[str, Any]] = []
        self.refreshes = 0
        self.edits: list[lsp.WorkspaceEdit] = []
        self.saved: list[str] = []
        self.applies: Callable[[lsp.WorkspaceEdit], None] | None = self.take
        self.beside: list[BaseLanguageClient] = []  # other servers of the same buffers
        self._event = asyncio.Event()
        for method, what in (
            (lsp.WORKSPACE_APPLY_EDIT, self._apply),
            (lsp.WORKSPACE_CODE_LENS_REFRESH, self._refresh),
            (lsp.WINDOW_SHOW_DOCUMENT, self._show),
            (lsp.WINDOW_SHOW_MESSAGE, self._message),
            (lsp.WINDOW_WORK_DONE_PROGRESS_CREATE, lambda params: None),
            (lsp.PROGRESS, self._progress),
            ("dapAgent/save", self._save),
        ):
            client.feature(method)(self._handler(what))

    def _handler(self, what: Callable[[Any], Any]) -> Any:
        def handle(params: Any = None) -> Any:
            try:
                return what(params)
            finally:
                self._event.set()

        return handle

    def _apply(self, params: lsp.ApplyWorkspaceEditParams) -> lsp.ApplyWorkspaceEditResult:
        self.edits.append(params.edit)
        if self.applies is not None:
            self.applies(params.edit)
        return lsp.ApplyWorkspaceEditResult(applied=True)

    def _refresh(self, _: Any) -> None:
        self.refreshes += 1

    def _show(self, params: lsp.ShowDocumentParams) -> lsp.ShowDocumentResult:
        self.shown.append(params.uri)
        return lsp.ShowDocumentResult(success=True)

    def _message(self, params: lsp.ShowMessageParams) -> None:
        self.messages.append(params.message)

    def _progress(self, params: Any) -> None:
        value = params.value
        kind = value["kind"] if isinstance(value, dict) else getattr(value, "kind", value)
        self.progress.append((str(params.token), kind))

    def _save(self, params: Any) -> None:
        for uri in params.uris if not isinstance(params, dict) else params["uris"]:
            self.saved.append(uri)
            self.save(Path(uri.removeprefix("file://")))

    # What its user does

    def open(self, path: Path, text: str | None = None) -> None:
        self.buffers[path.as_uri()] = path.read_text() if text is None else text
        self.versions[path.as_uri()] = 1
        item = lsp.TextDocumentItem(
            uri=path.as_uri(), language_id="python", version=1, text=self.buffers[path.as_uri()]
        )
        for client in (self.client, *self.beside):
            client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))

    def type(self, path: Path, text: str) -> None:
        """The buffer holds something else now, and is not saved."""
        uri = path.as_uri()
        self.buffers[uri] = text
        self.versions[uri] += 1
        changed = lsp.DidChangeTextDocumentParams(
            text_document=lsp.VersionedTextDocumentIdentifier(uri=uri, version=self.versions[uri]),
            content_changes=[lsp.TextDocumentContentChangeWholeDocument(text=text)],
        )
        for client in (self.client, *self.beside):
            client.text_document_did_change(changed)

    def save(self, path: Path) -> None:
        path.write_text(self.buffers[path.as_uri()], newline="")
        self.client.text_document_did_save(
            lsp.DidSaveTextDocumentParams(text_document=lsp.TextDocumentIdentifier(uri=path.as_uri()))
        )

    def text(self, path: Path) -> str:
        return self.buffers[path.as_uri()]

    def take(self, edit: lsp.WorkspaceEdit) -> None:
        """Change the buffers, as the protocol says."""
        changes: dict[str, Any] = dict(edit.changes or {})
        for document in edit.document_changes or []:
            assert isinstance(document, lsp.TextDocumentEdit)
            assert document.text_document.version == self.versions[document.text_document.uri]
            changes[document.text_document.uri] = document.edits
        for uri, edits in changes.items():
            self.type(Path(uri.removeprefix("file://")), applied(self.buffers[uri], edits, self.encoding))

    async def lenses(self, path: Path) -> list[lsp.CodeLens]:
        document = lsp.TextDocumentIdentifier(uri=path.as_uri())
        found = await self.client.text_document_code_lens_async(lsp.CodeLensParams(text_document=document))
        return list(found or [])

    async def titles(self, path: Path) -> list[tuple[int, str]]:
        return [(lens.range.start.line, lens.command.title) for lens in await self.lenses(path) if lens.command]

    async def lens(self, path: Path, words: str, timeout: float = 30) -> lsp.Command:
        """The command of the lens with *words*, as soon as there is one: asked for at each refresh, as editors do."""

        async def wait() -> lsp.Command:
            while True:
                self._event.clear()
                for lens in await self.lenses(path):
                    if lens.command is not None and words in lens.command.title:
                        return lens.command
                await self._event.wait()

        return await asyncio.wait_for(wait(), timeout)

    async def until(self, found: Callable[[], Any], timeout: float = 30) -> Any:
        async def wait() -> Any:
            while not (result := found()):
                self._event.clear()
                await self._event.wait()
            return result

        return await asyncio.wait_for(wait(), timeout)

    async def actions(
        self, path: Path, line: int, only: list[str] | None = None, client: Any = None
    ) -> dict[str, lsp.CodeAction]:
        found = await (client or self.client).text_document_code_action_async(
            lsp.CodeActionParams(
                text_document=lsp.TextDocumentIdentifier(uri=path.as_uri()),
                range=lsp.Range(start=lsp.Position(line, 0), end=lsp.Position(line, 0)),
                context=lsp.CodeActionContext(diagnostics=[], only=only),
            )
        )
        return {action.title: action for action in found or [] if isinstance(action, lsp.CodeAction)}

    async def resolve(self, action: lsp.CodeAction) -> lsp.CodeAction:
        return await self.client.code_action_resolve_async(action)

    async def do(self, command: lsp.Command | None) -> Any:
        assert command is not None
        params = lsp.ExecuteCommandParams(command=command.command, arguments=command.arguments)
        return await asyncio.wait_for(self.client.workspace_execute_command_async(params), 60)


def _converter() -> Any:
    """The client's; left to itself it takes code actions with a command for commands, and no notebooks' filters."""
    found = default_converter()
    found.register_structure_hook(lsp.NotebookDocumentSyncOptions, lambda data, _: None)
    found.register_structure_hook(lsp.Command | lsp.CodeAction, lambda data, _: found.structure(data, lsp.CodeAction))
    found.register_structure_hook(
        Union[lsp.Command, lsp.CodeAction],  # noqa: UP007 - another type than the one above
        lambda data, _: found.structure(data, lsp.CodeAction),
    )
    return found


@contextlib.asynccontextmanager
async def editor(root: Path | None, capabilities: dict[str, Any] = VSCODE, **env: str) -> Any:
    """An editor whose server is `dap-agent lsp`; at the end it ends by itself, with status 0."""
    client = BaseLanguageClient("test-editor", "1", converter_factory=_converter)
    double = Editor(client)
    await client.start_io(sys.executable, "-m", "dap_agent", "lsp", env=environment(**env))
    assert client._server is not None
    known = _converter().structure(capabilities, lsp.ClientCapabilities)
    folders = [lsp.WorkspaceFolder(uri=root.as_uri(), name="shop")] if root is not None else None
    params = lsp.InitializeParams(capabilities=known, process_id=os.getpid(), workspace_folders=folders)
    found = await client.initialize_async(params)
    double.encoding = str(found.capabilities.position_encoding or "utf-16").rpartition(".")[2].lower().replace("_", "-")
    double.server = found.capabilities  # type: ignore[attr-defined]
    client.initialized(lsp.InitializedParams())
    process = client._server
    try:
        yield double
        if not client.stopped and process.returncode is None:
            await client.shutdown_async(None)
            client.exit(None)
            assert await asyncio.wait_for(process.wait(), 10) == 0
    finally:
        if process.returncode is None:
            process.kill()
        await client.stop()


@contextlib.asynccontextmanager
async def other_server(root: Path, *command: str) -> Any:
    """Another language server for the buffers of an editor."""
    client = BaseLanguageClient("test-editor", "1", converter_factory=_converter)
    client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: None)
    await client.start_io(*command)
    literals = {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix"]}}}
    known = _converter().structure({"textDocument": {"codeAction": literals}}, lsp.ClientCapabilities)
    folders = [lsp.WorkspaceFolder(uri=root.as_uri(), name="shop")]
    await client.initialize_async(lsp.InitializeParams(capabilities=known, workspace_folders=folders))
    client.initialized(lsp.InitializedParams())
    try:
        yield client
    finally:
        assert client._server is not None
        client._server.kill()
        await client.stop()


def applied(text: str, edits: Any, encoding: str) -> str:
    """A text after edits of the protocol; ranges must not overlap."""
    starts = [0]
    for line in split_lines(text):
        starts.append(starts[-1] + len(line))

    def offset(position: lsp.Position) -> int:
        if position.line >= len(starts):
            return len(text)
        line = text[starts[position.line] : starts[position.line + 1] if position.line + 1 < len(starts) else len(text)]
        count = 0
        for i, char in enumerate(line):
            if count >= position.character:
                return starts[position.line] + i
            count += {"utf-8": len(char.encode()), "utf-16": len(char.encode("utf-16-le")) // 2}.get(encoding, 1)
        return starts[position.line] + len(line)

    spans = sorted((offset(edit.range.start), offset(edit.range.end), edit.new_text) for edit in edits)
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(spans))
    for start, end, new in reversed(spans):
        text = text[:start] + new + text[end:]
    return text
