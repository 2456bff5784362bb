"""What the language server does for one editor: what it asks, what sessions tell, its buffers, over pygls."""

import asyncio
import contextlib
import sys
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

from dap_agent.control import failure
from dap_agent.editors.lsp import offers, reports
from dap_agent.editors.lsp.editing import PATIENCE, Editing, Then
from dap_agent.editors.lsp.offers import Document
from dap_agent.editors.lsp.progress import Shown
from dap_agent.editors.lsp.sessions import Sessions
from dap_agent.editors.lsp.state import Session, read, real
from dap_agent.editors.lsp.workspace_edits import Label, build
from dap_agent.errors import DapAgentError
from dap_agent.proxy.patience import within

SAVE = "dapAgent/save"
"""Request to a client that has `experimental.dapAgent.save`: save the files of `uris`."""
_REFRESH = 0.1  # seconds between two refreshes of lenses
_AGAIN = 0.8  # seconds after a stop: an editor that moves its focus to the stop loses a refresh (VS Code)
_OVER = 20
_FOLLOWING: dict[str, Then] = {
    offers.APPLY: "nothing",
    offers.APPLY_AND_RESTART_FRAME: "frame",
    offers.APPLY_AND_RESTART_PROGRAM: "program",
}


class Server:
    """The server of one editor.

    Args:
        server: pygls' side of it.
    """

    def __init__(self, server: LanguageServer) -> None:
        self._server = server
        self.sessions = Sessions(self._folders, self._changed, self._progress, self._stopped)
        self.editing = Editing(self, self.sessions)
        self._shown: dict[str, Shown] = {}
        self._explained: set[str] = set()  # questions whose answers are to be shown
        self._over: dict[str, str] = {}  # the newest questions that have ended before it was known whose they are
        self._event = asyncio.Event()
        self._refreshing: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Leave nothing running."""
        if self._refreshing is not None:
            self._refreshing.cancel()
        for task in self._tasks:
            task.cancel()
        await self.editing.close()
        await self.sessions.close()

    # What the editor asks

    async def lenses(self, uri: str) -> list[lsp.CodeLens]:
        """See `offers.lenses`."""
        document = await self._document(uri)
        if document is None:
            return []
        return [
            lsp.CodeLens(
                range=_line(lens.line),
                command=lsp.Command(title=lens.title, command=lens.command, arguments=[dict(lens.argument)]),
            )
            for lens in offers.lenses(self.sessions.all(), document)
        ]

    async def actions(self, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        """See `offers.actions`; edits come with `resolve`."""
        only = params.context.only
        kind = lsp.CodeActionKind.QuickFix
        if only is not None and not any(kind == one or kind.startswith(f"{one}.") or one == "" for one in only):
            return []
        document = await self._document(params.text_document.uri)
        if document is None:
            return []
        first, last = params.range.start.line, params.range.end.line
        found = offers.actions(self.sessions.all(), document, first, last)
        return [
            lsp.CodeAction(
                title=action.title,
                kind=kind,
                is_preferred=action.preferred or None,
                command=lsp.Command(title=action.title, command=action.command, arguments=[dict(action.argument)]),
                data=dict(action.argument) if action.edit else None,
            )
            for action in found
        ]

    async def resolve(self, action: lsp.CodeAction) -> lsp.CodeAction:
        """The edit of a quick fix, against what the buffers hold now; no edit if it does not fit them."""
        if not isinstance(action.data, Mapping):
            return action
        try:
            session = self.sessions.find(str(action.data.get("session")))
        except DapAgentError:
            return action
        fix = session.fix
        if fix is None or fix.id != action.data.get("proposal") or fix.applied:
            return action
        texts = {}
        for file in fix.files:
            text = self.text(file.path)
            wanted = offers.target(file, text) if text is not None else None
            if text is not None and wanted is not None:
                texts[file.path] = wanted
        action.edit = self._edit(texts, fix.title, confirm=True, proved=fix.proved)
        return action

    async def command(self, name: str, argument: Any) -> dict[str, Any]:
        """Do a command; what goes wrong is shown, and said in the result."""
        try:
            given = argument if isinstance(argument, Mapping) else {}
            session = self.sessions.find(str(given.get("session"))) if given.get("session") else self._only()
            return {"ok": True, **await self._do(name, session, given)}
        except DapAgentError as error:
            self.say(error.message, error=True)
            return {"ok": False, "message": error.message}
        except Exception as error:  # noqa: BLE001 - a bug of ours: the user hears of it in a sentence
            told = failure.describe(error)
            self.say(told, error=True)
            return {"ok": False, "message": told}

    async def _do(self, name: str, session: Session, given: Mapping[str, Any]) -> dict[str, Any]:
        if name == offers.AUTODEBUG:
            instructions = given.get("instructions")
            return await self.sessions.ask(
                session, "autodebug", **({"instructions": instructions} if instructions else {})
            )
        if name == offers.CANCEL:
            return await self.sessions.ask(session, "cancel")
        if name == offers.EXPLAIN:
            return await self._explain(session)
        if name == offers.SHOW:
            return await self._show(session)
        if given.get("proposal") not in (None, session.fix.id if session.fix is not None else None):
            raise DapAgentError("There is a newer fix by now: look at it first.")
        if name == offers.UNDO:
            return await self.editing.undo(session)
        return await self.editing.apply(session, _FOLLOWING[name], edited=given.get("edited") is True)

    def _only(self) -> Session:
        """The session that is meant if none is named."""
        found = self.sessions.all()
        meant = [one for one in found if one.shown is not None or one.fix is not None] or found
        if not meant:
            raise DapAgentError(
                "There is no debug session in this workspace, and no exception is known of a former one."
            )
        return meant[0]

    async def _explain(self, session: Session) -> dict[str, Any]:
        if session.live:
            try:
                begun = await self.sessions.ask(session, "explain")
            except DapAgentError as error:
                # without a model the report says what is known
                return {**await self._show(session), "message": error.message}
            self._explained.add(begun["id"])
            if begun["id"] in self._over:  # it was quicker than its answer
                self._answered(session, begun["id"], self._over[begun["id"]])
            return begun
        return await self._show(session)

    async def _show(self, session: Session) -> dict[str, Any]:
        markdown = await self.sessions.report(session)
        path = await asyncio.to_thread(reports.write, session.id, markdown)
        uri = from_fs_path(str(path)) or path.as_uri()
        window = self._server.client_capabilities.window
        if window is not None and window.show_document is not None and window.show_document.support:
            await self._server.window_show_document_async(lsp.ShowDocumentParams(uri=uri, take_focus=True))
        else:
            self.say(f"The report is in {path}.")
        return {"uri": uri, "markdown": markdown}

    # What sessions tell

    def _changed(self) -> None:
        self._wake()
        if self._refreshing is None:
            self._refreshing = asyncio.get_running_loop().call_later(_REFRESH, self._refresh)

    def _refresh(self) -> None:
        self._refreshing = None
        workspace = self._server.client_capabilities.workspace
        if workspace is not None and workspace.code_lens is not None and workspace.code_lens.refresh_support:
            self._start(self._server.workspace_code_lens_refresh_async(None))

    def _stopped(self, session: Session) -> None:
        if self._refreshing is not None:
            self._refreshing.cancel()
        self._refresh()  # at once
        asyncio.get_running_loop().call_later(_AGAIN, self._changed)

    def _progress(self, session: Session, params: dict[str, Any]) -> None:
        """An investigation as progress of the editor's, and what is to be said at its end."""
        id, kind = params["id"], params["kind"]
        if kind == "begin":
            window = self._server.client_capabilities.window
            if window is not None and window.work_done_progress:
                shown = self._shown[id] = Shown(self._server, id, session.stop.headline if session.stop else "")
                self._start(shown.run(params["task"], lambda: self._start(self._cancel(session))))
            return
        if id in self._shown and kind != "text":
            self._shown[id].tell(kind, params["text"])
        if kind != "end":
            return
        self._shown.pop(id, None)
        if params["task"] == "autodebug" or params["status"] == "failed":
            text, ready = params["text"], params["status"] == "proposed"
            self.say(f"Fix ready: {text}" if ready else text or "No fix was found.", error=not ready)
        else:
            self._answered(session, id, params["status"])

    def _answered(self, session: Session, id: str, status: str) -> None:
        """A question has come to its end: an explanation that was asked for here is shown."""
        if id not in self._explained:
            self._over[id] = status
            for old in [*self._over][:-_OVER]:
                del self._over[old]
            return
        self._explained.discard(id)
        self._over.pop(id, None)
        if status == "answered":
            self._start(self._show_quietly(session))

    async def _cancel(self, session: Session) -> None:
        with contextlib.suppress(DapAgentError):  # it is over already
            await self.sessions.ask(session, "cancel")

    async def _show_quietly(self, session: Session) -> None:
        try:
            await self._show(session)
        except DapAgentError as error:
            self.say(error.message, error=True)

    # `editing.Editor`

    def text(self, path: str) -> str | None:
        """See `Editor`."""
        uri = self._uri(path)
        if uri is None:
            return None
        text: str = self._server.workspace.text_documents[uri].source
        return text

    async def edit(self, texts: Mapping[str, str], label: str) -> None:
        """See `Editor`; what the client answers is not looked at."""
        edit = self._edit(texts, label, confirm=False, proved=True)
        if edit is None:
            return  # the buffers hold it by now, or are closed
        asked = self._server.workspace_apply_edit_async(lsp.ApplyWorkspaceEditParams(edit=edit, label=label))
        with contextlib.suppress(asyncio.TimeoutError):  # whether it was done is seen from the buffers
            await within(asyncio.shield(asked), PATIENCE)  # shielded: pygls may still get the answer

    def changed(self) -> asyncio.Event:
        """See `Editor`."""
        return self._event

    async def save(self, paths: Sequence[str]) -> bool:
        """See `Editor`."""
        experimental = self._server.client_capabilities.experimental
        ours = experimental.get("dapAgent") if isinstance(experimental, Mapping) else None
        if not isinstance(ours, Mapping) or ours.get("save") is not True:
            return False
        uris = [uri for path in paths if (uri := self._uri(path)) is not None]
        try:
            asked = self._server.protocol.send_request_async(SAVE, {"uris": uris})
            await within(asyncio.shield(asked), PATIENCE)
        except Exception:  # noqa: BLE001 - whatever the client answers: whether it has saved is seen from the files
            return False
        return True

    def say(self, text: str, *, error: bool = False) -> None:
        """See `Editor`."""
        kind = lsp.MessageType.Error if error else lsp.MessageType.Info
        self._server.window_show_message(lsp.ShowMessageParams(type=kind, message=f"dap-agent: {text}"))

    def touched(self) -> None:
        """A buffer was opened, changed, saved or closed."""
        self._wake()

    def _wake(self) -> None:
        # all who wait now go on; who waits again waits for the next one
        self._event.set()
        self._event = asyncio.Event()

    # Documents

    def _folders(self) -> list[Path]:
        workspace = self._server.workspace
        uris = [*workspace.folders] or ([workspace.root_uri] if workspace.root_uri else [])
        paths = [to_fs_path(uri) for uri in uris]
        return [Path(real(path)) for path in paths if path]

    def _uri(self, path: str) -> str | None:
        """Of the open document of a file."""
        uri: str
        for uri in self._server.workspace.text_documents:
            found = to_fs_path(uri) if uri.startswith("file:") else None
            if found is not None and real(found) == path:
                return uri
        return None

    async def _document(self, uri: str) -> Document | None:
        found = to_fs_path(uri) if uri.startswith("file:") else None
        document = self._server.workspace.text_documents.get(uri)
        if found is None or document is None:
            return None
        path = real(found)
        return Document(path, document.source, await asyncio.to_thread(read, path))

    def _edit(self, texts: Mapping[str, str], label: str, *, confirm: bool, proved: bool) -> lsp.WorkspaceEdit | None:
        documents = self._server.workspace.text_documents
        wanted = {uri: text for path, text in texts.items() if (uri := self._uri(path)) is not None}
        return build(
            self._server.client_capabilities,
            {uri: documents[uri] for uri in wanted},
            wanted,
            self._server.workspace.position_codec.client_num_units,
            Label(label, confirm, proved),
        )

    def _start(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.get_running_loop().create_task(_quiet(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _quiet(work: Coroutine[Any, Any, Any]) -> None:
    """What a client answers to a request of ours that needs no answer."""
    try:
        await work
    except Exception as error:  # noqa: BLE001 - it may refuse in any way; the next refresh comes
        print(f"dap-agent lsp: {error}", file=sys.stderr)


def _line(line: int) -> lsp.Range:
    return lsp.Range(start=lsp.Position(line=line, character=0), end=lsp.Position(line=line, character=0))
