"""Where the functions and classes of a Python file are, by qualified name."""

import ast
import difflib
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate

from dap_agent.fixes.failures import EditError
from dap_agent.fixes.source_text import split_lines

Definable = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Definition:
    """One `def` or `class`.

    Args:
        qualname: as `__qualname__` has it.
        node: its syntax tree.
        first_line: line (from 1) of its first decorator, or of the `def` itself; equals `co_firstlineno`.
        line: line of the `def` or `class` keyword.
        last_line: line of its last token.
    """

    qualname: str
    node: Definable
    first_line: int
    line: int
    last_line: int

    @property
    def kind(self) -> str:
        """`class` or `function`."""
        return "class" if isinstance(self.node, ast.ClassDef) else "function"

    def describe(self) -> str:
        """`line 12 (@x.setter)`, to tell it from another one of the same name."""
        decorators = ", ".join(f"@{ast.unparse(decorator)}" for decorator in self.node.decorator_list)
        return f"line {self.first_line}" + (f" ({decorators})" if decorators else "")


@dataclass(frozen=True)
class Module:
    """A parsed file: its lines (ends kept), its tree, and its definitions in source order."""

    lines: list[str]
    tree: ast.Module
    offsets: list[int]
    definitions: dict[str, list[Definition]] = field(default_factory=dict)

    def offset(self, line: int) -> int:
        """Where *line* (from 1; one past the last is allowed) starts in the text, in characters."""
        return self.offsets[line - 1]


def parse(text: str) -> ast.Module:
    """The tree of *text*.

    Raises:
        SyntaxError: also for text that the parser refuses in another way (NUL, too deep).
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an invalid escape in the user's file is not ours to report
        try:
            return ast.parse(text)
        except (ValueError, RecursionError, MemoryError) as error:
            raise SyntaxError(str(error) or "it is nested too deeply") from None


@lru_cache(maxsize=8)
def module(text: str) -> Module:
    """*text* parsed, with all its definitions.

    Raises:
        EditError: it does not parse under the Python that runs dap-agent.
    """
    try:
        tree = parse(text)
    except SyntaxError as error:
        raise EditError(
            f"the file does not parse (line {error.lineno}: {error.msg}), so its functions cannot be found by name; "
            "use str_replace"
        ) from None
    lines = split_lines(text)
    result = Module(lines, tree, list(accumulate(map(len, lines), initial=0)))
    for definition in sorted(_definitions(tree, lines), key=lambda d: d.line):
        result.definitions.setdefault(definition.qualname, []).append(definition)
    return result


def _definitions(tree: ast.Module, lines: list[str]) -> Iterable[Definition]:
    # an explicit stack: a long elif chain nests deeper than Python recurses
    stack: list[tuple[ast.AST, str]] = [(tree, "")]
    while stack:
        node, prefix = stack.pop()
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            block = getattr(node, name, None)
            if not isinstance(block, list):
                continue
            for child in block:
                if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    qualname = prefix + child.name
                    yield Definition(
                        qualname, child, _first_line(child, lines), child.lineno, child.end_lineno or child.lineno
                    )
                    inner = "." if isinstance(child, ast.ClassDef) else ".<locals>."
                    stack.append((child, qualname + inner))
                else:
                    stack.append((child, prefix))


def _first_line(node: Definable, lines: list[str]) -> int:
    if not node.decorator_list:
        return node.lineno
    line = node.decorator_list[0].lineno
    while line > 1 and not lines[line - 1].lstrip().startswith("@"):
        line -= 1  # "@(" may stand alone on the line before the expression
    return line


def find(
    parsed: Module, qualname: str, first_line: int | None = None, decorators: Iterable[ast.expr] | None = None
) -> Definition:
    """The one definition that is meant.

    Args:
        qualname: `Cart.total`, `outer.<locals>.inner`; `.<locals>` may be left out.
        first_line: tells definitions of the same name apart: the line of the first decorator or of the `def`.
        decorators: those of the new source; they tell a property's getter from its setter.

    Raises:
        EditError: there is none or there are several; the message lists the candidates.
    """
    found = parsed.definitions.get(qualname) or _without_locals(parsed, qualname)
    if not found:
        raise EditError(_unknown(parsed, qualname))
    if len(found) == 1:
        return found[0]
    if first_line is not None:
        exact = [d for d in found if first_line in (d.first_line, d.line)]
        if len(exact) == 1:
            return exact[0]
    elif decorators is not None:
        wanted = [ast.dump(decorator) for decorator in decorators]
        same = [d for d in found if wanted and [ast.dump(decorator) for decorator in d.node.decorator_list] == wanted]
        if len(same) == 1:
            return same[0]
    listed = ", ".join(d.describe() for d in found)
    given = f"none of them starts at line {first_line}" if first_line is not None else "it is not clear which is meant"
    raise EditError(f"{qualname} is defined {len(found)} times and {given}; give first_line as one of: {listed}")


def _without_locals(parsed: Module, qualname: str) -> list[Definition]:
    plain = qualname.replace(".<locals>", "")
    return [d for name, found in parsed.definitions.items() if name.replace(".<locals>", "") == plain for d in found]


def _unknown(parsed: Module, qualname: str) -> str:
    if qualname.split(".")[-1].startswith("<"):
        return f"{qualname} has no definition of its own; replace the function around it or use str_replace"
    names = list(parsed.definitions)
    last = qualname.split(".")[-1]
    close = [name for name in names if name.split(".")[-1] == last]
    close += [name for name in difflib.get_close_matches(qualname, names, 5, 0.6) if name not in close]
    if close:
        return f"there is no {qualname} in the file; nearest: {', '.join(close[:5])}"
    if not names:
        return f"there is no {qualname} in the file: it defines no function and no class; use str_replace"
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    return f"there is no {qualname} in the file; it defines: {', '.join(names[:20])}{more}"
