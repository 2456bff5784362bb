"""Edits -> new bytes of files, without touching the disk: all of them or none."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dap_agent.fixes.compiling import syntax_problem, syntax_problems_under
from dap_agent.fixes.exact import str_replace
from dap_agent.fixes.failures import EditError, StaleFile, UnreadableFile, WorkspaceError
from dap_agent.fixes.inserting import add_symbol, insert_import
from dap_agent.fixes.proposal import (
    Edit,
    InsertImport,
    Proposal,
    RegressionTest,
    ReplaceSymbol,
    StrReplace,
    WriteFile,
    kind_of,
)
from dap_agent.fixes.replacing import Splice, replace_symbol
from dap_agent.fixes.source_text import SourceText, decode, is_python, new_file, unix
from dap_agent.fixes.symbols import module
from dap_agent.fixes.workspace import Workspace
from dap_agent.session.redaction import mask_lines

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass(frozen=True)
class FileChange:
    """One file before and after.

    Args:
        path: the file itself, symlinks resolved.
        name: its path for people, relative to the workspace's root, with slashes.
        old: its bytes when the change was planned; None = a new file.
        new: its bytes afterwards.
        mode: its permission bits; those of an existing file are kept.
    """

    path: Path
    name: str
    old: bytes | None
    new: bytes
    mode: int


@dataclass(frozen=True)
class ChangeSet:
    """What a proposal does to files.

    Args:
        root: the workspace's root.
        files: the changes, one per file.
    """

    root: Path
    files: tuple[FileChange, ...]

    def diff(self) -> str:
        """All changes as a unified diff in git's format."""
        return "".join(_diff(change) for change in self.files)

    def masked_diff(self) -> str:
        """The same for models and records: masked, each file by the rules for its kind."""
        return "".join(_diff(change, masked=True) for change in self.files)


class _File:
    """A file under change: its text after the edits so far."""

    def __init__(self, path: Path, name: str, old: bytes | None, mode: int, source: SourceText) -> None:
        self.path, self.name, self.old, self.mode, self.source = path, name, old, mode, source
        self._moves: list[tuple[int, int]] = []  # (line of the file as it was after the moves before, lines added)

    def splice(self, splice: Splice) -> None:
        text = self.source.text
        line = unix(text[: splice.start]).count("\n") + 1
        gone = unix(text[splice.start : splice.end]).count("\n")
        self._moves.append((line, unix(splice.text).count("\n") - gone))
        self.source = self.source.with_text(text[: splice.start] + splice.text + text[splice.end :])

    def line_now(self, line: int | None) -> int | None:
        """Where a line of the file on disk is after the edits so far."""
        for at, added in self._moves:
            if line is not None and line > at:
                line += added
        return line


def plan(
    workspace: Workspace,
    edits: Sequence[Edit],
    *,
    test: RegressionTest | None = None,
    python: Path | None = None,
    check: bool = True,
) -> ChangeSet:
    """What *edits* do to the files of *workspace*. Nothing is written.

    Several edits to one file apply in order. Every Python file must compile under its own encoding.

    Args:
        test: a regression test, written as a new file after the edits.
        python: the debuggee's interpreter; it compiles the results too, since its grammar may be older or newer
            than ours. Without it our own grammar decides.
        check: whether they are compiled at all.

    Raises:
        EditError: an edit cannot be made; every edit that fails is told, and how to do it right.
        OutsideWorkspace, ProtectedFile: a file may not be edited.
        StaleFile: a file changed since the model read it.
    """
    files: dict[Path, _File] = {}
    problems: list[str] = []
    failures: list[Exception] = []
    steps = [(f"edit {number} ({kind_of(edit)} in {edit.file})", edit) for number, edit in enumerate(edits, 1)]
    if test is not None:
        steps.append((f"the test ({test.file})", WriteFile(test.file, test.source)))
    for number, (step, edit) in enumerate(steps):
        try:
            _apply(workspace, files, edit, is_test=number == len(edits))
        except (EditError, UnreadableFile, WorkspaceError) as error:
            problems.append(f"{step}: {error.message}")
            failures.append(error)
    if problems:
        first = next((error for error in failures if not isinstance(error, EditError)), None)
        kind = type(first) if first is not None and len(failures) == 1 else EditError
        raise kind("\n".join(problems))
    changes = []
    for file in files.values():
        try:
            new = file.source.encode()
        except EditError as error:
            raise EditError(f"{file.name}: {error.message}") from None
        if new != file.old:
            changes.append(FileChange(file.path, file.name, file.old, new, file.mode))
    if not changes:
        raise EditError("the edits change nothing: every file would be as it is now")
    if check:
        _check_syntax(changes, python)
    return ChangeSet(workspace.root, tuple(changes))


def plan_proposal(workspace: Workspace, proposal: Proposal, *, python: Path | None = None) -> ChangeSet:
    """`plan` for all of a proposal: its edits and its regression test as a new file.

    Raises:
        As `plan`; EditError also when the test's file exists.
    """
    return plan(workspace, proposal.edits, test=proposal.test, python=python)


def _apply(workspace: Workspace, files: dict[Path, _File], edit: Edit, *, is_test: bool = False) -> None:
    path = workspace.resolve(edit.file)
    file = files.get(path)
    if isinstance(edit, WriteFile):
        if file is not None or path.exists():
            how = "a regression test goes into" if is_test else "change it by replace_symbol or str_replace, or take"
            raise EditError(f"the file exists already; {how} a new one")
        for parent in path.parents:
            if parent.exists() and not parent.is_dir():
                raise EditError(f"{workspace.relative(parent)} is a file, so nothing can be written below it")
        source = new_file(edit.content, path.name)
        files[path] = _File(path, workspace.relative(path), None, 0o666 & ~workspace.umask, source)
        return
    if file is None:
        file = files[path] = _load(workspace, path)
    text, newline = file.source.text, file.source.newline
    if isinstance(edit, StrReplace):
        file.splice(str_replace(text, edit.old, edit.new, newline=newline, code=is_python(path.name)))
        return
    if not is_python(path.name):
        raise EditError("it is not a Python file; use str_replace")
    parsed = module(text)
    if isinstance(edit, ReplaceSymbol):
        line = file.line_now(edit.first_line)
        file.splice(replace_symbol(parsed, edit.symbol, edit.source, first_line=line, newline=newline))
    elif isinstance(edit, InsertImport):
        found = insert_import(parsed, edit.statement, newline=newline)
        if found is not None:
            file.splice(found)
    else:
        file.splice(add_symbol(parsed, edit.source, after=edit.after, inside=edit.inside, newline=newline))


def _load(workspace: Workspace, path: Path) -> _File:
    name = workspace.relative(path)
    data = workspace.bytes_of(path)
    if workspace.changed_since_seen(path, data):
        raise StaleFile(f"{name} changed since it was read; read it again and base the edit on what it says now.")
    return _File(path, name, data, path.stat().st_mode & 0o7777, decode(data, name))


def _check_syntax(changes: list[FileChange], python: Path | None) -> None:
    sources = {change.name: change.new for change in changes if is_python(change.name)}
    if python is not None:
        found = syntax_problems_under(python, sources)
        if found is not None:
            if found:
                raise EditError("\n".join(found.values()))
            return
    problems = [problem for name, data in sources.items() if (problem := syntax_problem(name, data))]
    if problems:
        raise EditError("\n".join(problems))


def _diff(change: FileChange, *, masked: bool = False) -> str:
    a, b = f"a/{change.name}", f"b/{change.name}"
    old = _lines(change.old or b"", change.name)
    new = _lines(change.new, change.name)
    head = [f"diff --git {a} {b}\n"]
    if change.old is None:
        head.append(f"new file mode {'100755' if change.mode & 0o100 else '100644'}\n")
        a = "/dev/null"
    # masked as whole files: a few lines out of the middle of a private key look harmless
    shown = (_masked(old, change.name), _masked(new, change.name)) if masked else (old, new)
    found = list(difflib.unified_diff(old, new, a, b))
    body, at = found[:2], [0, 0]
    for line in found[2:]:
        if hunk := _HUNK.match(line):
            # of an empty range the header names the line before it
            at = [int(first) - (size != "0") for first, size in (hunk.group(1, 2), hunk.group(3, 4))]
        else:
            side = 1 if line[0] == "+" else 0
            line = line[0] + shown[side][at[side]]
            at = [at[0] + (line[0] != "+"), at[1] + (line[0] != "-")]
        body.append(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n")
    return "".join(head + body)


def _masked(lines: list[str], name: str) -> list[str]:
    masked = mask_lines([line.removesuffix("\n") for line in lines], code=is_python(name))
    return [text + ("\n" if line.endswith("\n") else "") for text, line in zip(masked, lines, strict=True)]


def _lines(data: bytes, name: str) -> list[str]:
    """Lines for the diff: git's lines end at \\n only."""
    try:
        source = decode(data, name)
    except UnreadableFile:
        text = data.decode("utf-8", "surrogateescape")
    else:
        text = ("\ufeff" if source.bom else "") + source.text
    parts = text.split("\n")
    lines = [part + "\n" for part in parts[:-1]]
    return lines + ([parts[-1]] if parts[-1] else [])
