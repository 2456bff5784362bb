"""New texts of buffers as an edit of the protocol, in the form that a client can take."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lsprotocol import types as lsp
from pygls.workspace import TextDocument

from dap_agent.editors.lsp.merging import LineEdit, edits

_FIX = "fix"
_PROVED = "proved: its regression test fails on the old code and passes on the new"


@dataclass(frozen=True)
class Label:
    """What a client shows of an edit.

    Args:
        text: what it is.
        confirm: the user is to be asked, where the client can do that.
        proved: whether it is proved.
    """

    text: str
    confirm: bool
    proved: bool


def build(
    capabilities: lsp.ClientCapabilities,
    documents: Mapping[str, TextDocument],
    texts: Mapping[str, str],
    width: Callable[[str], int],
    label: Label,
) -> lsp.WorkspaceEdit | None:
    """The edit that changes open buffers to other texts; None if they hold them already.

    Args:
        capabilities: the client's.
        documents: by URI.
        texts: what they are to hold, by URI.
        width: the length of a line in the client's units.
        label: for the user.
    """
    plain = {
        uri: [lsp.TextEdit(range=_range(one), new_text=one.text) for one in made]
        for uri, text in texts.items()
        if (made := edits(documents[uri].source, text, width))
    }
    if not plain:
        return None
    can = capabilities.workspace.workspace_edit if capabilities.workspace is not None else None
    annotated = label.confirm and can is not None and can.change_annotation_support is not None
    if not annotated and not (can is not None and can.document_changes):
        return lsp.WorkspaceEdit(changes=plain)
    changes = []
    for uri, made_edits in plain.items():
        document = lsp.OptionalVersionedTextDocumentIdentifier(uri=uri, version=documents[uri].version)
        given: list[lsp.TextEdit | lsp.AnnotatedTextEdit | lsp.SnippetTextEdit] = [*made_edits]
        if annotated:
            given = [
                lsp.AnnotatedTextEdit(annotation_id=_FIX, range=one.range, new_text=one.new_text) for one in made_edits
            ]
        changes.append(lsp.TextDocumentEdit(text_document=document, edits=given))
    if not annotated:
        return lsp.WorkspaceEdit(document_changes=changes)
    annotation = lsp.ChangeAnnotation(
        label=label.text, needs_confirmation=True, description=_PROVED if label.proved else "not proved"
    )
    return lsp.WorkspaceEdit(document_changes=changes, change_annotations={_FIX: annotation})


def _range(edit: LineEdit) -> lsp.Range:
    return lsp.Range(
        start=lsp.Position(line=edit.start, character=edit.start_column),
        end=lsp.Position(line=edit.end, character=edit.end_column),
    )
