"""`insert_import` and `add_symbol`: new code at the place where a person would put it."""

import ast

from dap_agent.fixes.failures import EditError
from dap_agent.fixes.replacing import Splice
from dap_agent.fixes.snippet import Snippet, snippet
from dap_agent.fixes.source_text import ending, indent_of
from dap_agent.fixes.symbols import Definition, Module, find

_Import = (ast.Import, ast.ImportFrom)


def insert_import(parsed: Module, statement: str, *, newline: str = "\n") -> Splice | None:
    """The splice that adds an import after the docstring, the `__future__` imports and the imports that are there.

    A `from` import goes behind an import of the same module further down, if there is one (a script may have to set
    up `sys.path` first). Imports under `if TYPE_CHECKING:` are left alone and do not count as present.

    Returns:
        None when everything is imported already.

    Raises:
        EditError: *statement* is something other than import statements.
    """
    new = snippet(statement)
    for node in new.tree.body:
        if not isinstance(node, _Import):
            raise EditError("statement must be an import and nothing else, such as 'from decimal import Decimal'")
    present = _present(parsed.tree)
    missing = [_missing(node, present) for node in new.tree.body if isinstance(node, _Import)]
    if all(node is None for node in missing):
        return None
    if all(kept is node for kept, node in zip(missing, new.tree.body, strict=True)):
        text = [line for line in new.lines if line.strip()]
    else:
        text = [ast.unparse(node) for node in missing if node is not None]
    first = next(node for node in missing if node is not None)
    anchor = _anchor(parsed, first)
    lines = parsed.lines
    if anchor is not None:
        line = _line_end(parsed.tree, anchor)
        body = text
        if not isinstance(parsed.tree.body[anchor], _Import):  # behind the docstring
            body = ["", *text, *_gap(lines, line)]
        return _insertion(parsed, line, body, newline)
    line = _after_header(lines, parsed.tree)
    before = [""] if line and lines[line - 1].strip() and not lines[line - 1].startswith("#!") else []
    return _insertion(parsed, line, [*before, *text, *_gap(lines, line)], newline)


def _present(tree: ast.Module) -> set[tuple[str | None, int, str, str | None]]:
    """(module, level, name, as) of each import at module level, also those tried under `try`."""
    nodes: list[ast.stmt] = []
    for node in tree.body:
        nodes += node.body if isinstance(node, ast.Try) else [node]
    found: set[tuple[str | None, int, str, str | None]] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found.update((None, 0, alias.name, alias.asname) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.update((node.module or "", node.level, alias.name, alias.asname) for alias in node.names)
    return found


def _missing(
    node: ast.Import | ast.ImportFrom, present: set[tuple[str | None, int, str, str | None]]
) -> ast.Import | ast.ImportFrom | None:
    """The part of an import that is not there yet: the node itself when all of it is missing."""
    if isinstance(node, ast.Import):
        names = [alias for alias in node.names if (None, 0, alias.name, alias.asname) not in present]
        return node if len(names) == len(node.names) else ast.Import(names) if names else None
    key = (node.module or "", node.level)
    names = [alias for alias in node.names if (*key, alias.name, alias.asname) not in present]
    return node if len(names) == len(node.names) else ast.ImportFrom(node.module, names, node.level) if names else None


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_future(node: ast.stmt | ast.Import | ast.ImportFrom) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _anchor(parsed: Module, new: ast.Import | ast.ImportFrom) -> int | None:
    """Index in the module's body of the statement to insert behind; None = before everything."""
    body = parsed.tree.body
    found = 0 if body and _is_docstring(body[0]) else None
    if _is_future(new):
        return max((i for i, node in enumerate(body) if _is_future(node)), default=found)
    for index, node in enumerate(body):
        if isinstance(node, _Import):
            found = index
        elif not (index == 0 and _is_docstring(node)) and not _only_imports(node):
            break
    if isinstance(new, ast.ImportFrom) and not _is_future(new):
        same = [i for i, n in enumerate(body) if isinstance(n, ast.ImportFrom) and _module_of(n) == _module_of(new)]
        if same and (found is None or same[-1] > found):
            return same[-1]
    return found


def _module_of(node: ast.ImportFrom) -> tuple[int, str | None]:
    return node.level, node.module


def _only_imports(node: ast.stmt) -> bool:
    """`if TYPE_CHECKING:` and `try: import` blocks stand among imports and do not end them."""
    if isinstance(node, ast.If):
        return all(isinstance(child, _Import) for child in node.body + node.orelse)
    if isinstance(node, ast.Try):
        return all(isinstance(child, _Import) for child in node.body)
    return False


def _line_end(tree: ast.Module, anchor: int) -> int:
    """The last line of a statement and of those that start on its last line behind a semicolon."""
    end = tree.body[anchor].end_lineno or 0
    for node in tree.body[anchor + 1 :]:
        if node.lineno > end:
            break
        end = max(end, node.end_lineno or end)
    return end


def _after_header(lines: list[str], tree: ast.Module) -> int:
    """How many lines of comments (shebang, coding, licence) stand at the top."""
    count = 0
    limit = tree.body[0].lineno - 1 if tree.body else len(lines)
    while count < limit and lines[count].startswith("#"):
        count += 1
    return count


def _gap(lines: list[str], line: int) -> list[str]:
    """Blank lines between an inserted import and code that follows at once."""
    return [""] if line < len(lines) and lines[line].strip() else []


def add_symbol(
    parsed: Module, source: str, *, after: str | None = None, inside: str | None = None, newline: str = "\n"
) -> Splice:
    """The splice that adds definitions.

    Args:
        source: functions, classes or assignments.
        after: qualified name of the definition behind which they go, on its level.
        inside: qualified name of a class at whose end (or behind whose member *after*) they go.
            Without both: the end of the module, before an `if __name__ == "__main__":` block.

    Raises:
        EditError: the name is taken, the place is unknown, or *source* has other statements.
    """
    owner = _class(parsed, inside) if inside is not None else None
    neighbour = _neighbour(parsed, after, owner) if after is not None else None
    lines = parsed.lines
    if neighbour is not None:
        indent = indent_of(lines[neighbour.line - 1])
        line = _with_comments(lines, neighbour.last_line, indent, deeper=True)
        scope = neighbour.qualname.rpartition(".")[0]
    elif owner is not None:
        indent = indent_of(lines[owner.node.body[0].lineno - 1])
        line = _with_comments(lines, owner.last_line, indent, deeper=False)
        scope = owner.qualname
    else:
        indent, line, scope = "", _module_end(parsed), ""
    new = snippet(source, indent)
    _check_new(parsed, new, scope)
    text = [one.text for one in new.indented(indent, "\t" in indent or _tabs(parsed))]
    gap = [""] * (1 if indent else 2)
    blank_before = _blank_lines_before(lines, line)
    before = gap[blank_before:] if any(one.strip() for one in lines[:line]) else []
    following = line < len(lines) and lines[line].strip()
    return _insertion(parsed, line, [*before, *text, *(gap if following else [])], newline)


def _class(parsed: Module, name: str) -> Definition:
    owner = find(parsed, name)
    if not isinstance(owner.node, ast.ClassDef):
        raise EditError(f"inside names {name}, which is a function; name a class, or use replace_symbol")
    first = owner.node.body[0]
    if parsed.lines[first.lineno - 1][: first.col_offset].strip():
        raise EditError(f"the class {name} is written on one line; use replace_symbol to give it a body")
    return owner


def _neighbour(parsed: Module, after: str, owner: Definition | None) -> Definition:
    if owner is not None and not after.startswith(owner.qualname + "."):
        after = f"{owner.qualname}.{after}"
    found = parsed.definitions.get(after)
    return found[-1] if found else find(parsed, after)


def _with_comments(lines: list[str], line: int, indent: str, *, deeper: bool) -> int:
    """*line* moved over comment lines that belong to the block which ends there."""
    while line < len(lines) and lines[line].lstrip().startswith("#"):
        own = indent_of(lines[line])
        if not (own.startswith(indent) and (len(own) > len(indent) or not deeper)):
            break
        line += 1
    return line


def _module_end(parsed: Module) -> int:
    """The line behind which a definition at the end of the module goes."""
    lines = parsed.lines
    line = len(lines)
    for node in parsed.tree.body:
        if isinstance(node, ast.If) and _tests_main(node.test):
            line = node.lineno - 1
            while line and lines[line - 1].lstrip().startswith("#"):
                line -= 1
            break
    while line and not lines[line - 1].strip():
        line -= 1
    return line


def _tests_main(test: ast.expr) -> bool:
    names = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    return "__name__" in names and any(isinstance(n, ast.Constant) and n.value == "__main__" for n in ast.walk(test))


def _check_new(parsed: Module, new: Snippet, scope: str) -> None:
    for node in new.tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            continue
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            hint = (
                "use insert_import for imports" if isinstance(node, _Import) else "use str_replace for other statements"
            )
            raise EditError(f"add_symbol takes functions, classes and assignments; {hint}")
        qualname = f"{scope}.{node.name}" if scope else node.name
        taken = parsed.definitions.get(qualname)
        if taken and not node.decorator_list:  # an overload or a property's setter shares its name
            raise EditError(f"{qualname} exists already at line {taken[0].first_line}; use replace_symbol to change it")


def _tabs(parsed: Module) -> bool:
    """Whether the file indents its definitions by tabs."""
    for found in parsed.definitions.values():
        body = found[0].node.body[0]
        if body.lineno > found[0].line:
            return "\t" in indent_of(parsed.lines[body.lineno - 1])
    return False


def _blank_lines_before(lines: list[str], line: int) -> int:
    count = 0
    while count < line and not lines[line - 1 - count].strip():
        count += 1
    return count


def _insertion(parsed: Module, line: int, text: list[str], newline: str) -> Splice:
    """The splice that inserts lines behind *line*; a file without a newline at its end stays one."""
    at = parsed.offset(line + 1)
    local = (ending(parsed.lines[line - 1]) if line else "") or newline
    joined = "".join(one + local for one in text)
    if line and not ending(parsed.lines[line - 1]):
        joined = local + joined.removesuffix(local)
    return Splice(at, at, joined)
