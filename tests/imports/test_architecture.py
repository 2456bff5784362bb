"""The house keeps its shape: who imports whom, what code for old debuggees may use, how big a module is."""

import ast
import builtins
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "dap_agent"
MODULES = [path for path in sorted(PACKAGE.rglob("*.py")) if "demo_project" not in path.parts]
LAYERS = ["errors", "wire", "proxy", "session", "fixes", "agent", "control"]  # each may import those before it
FACES = ["cli", "editors", "mcp", "testing", "__main__"]  # on top: may import all layers, and one another
# Files that run under the debuggee's interpreter, which may be Python 3.8: sent there as text, or started there.
OLD_PYTHON = [path for path in MODULES if path.parent == PACKAGE / "debuggee" or "bootstrap" in path.parts]
OLD_PYTHON += [PACKAGE / "fixes" / "runner.py"]
# Found in a debuggee without our doing: the debugger's modules, and the sitecustomize that ours stands before.
IN_THE_DEBUGGEE = re.compile(r"debugpy|_?pydevd\w*|sitecustomize|_dap_agent_debuggee")


def by_name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def room(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else path.stem


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imported(path: Path) -> list[tuple[str, int]]:
    """All modules that *path* imports anywhere, as absolute names, with the line."""
    package = ("dap_agent", *path.relative_to(PACKAGE).parts[:-1])
    found = []
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            name = ".".join(part for part in (base, node.module) if part)
            found.append((name, node.lineno))
            if name == "dap_agent":  # from dap_agent import wire
                found += [(f"dap_agent.{alias.name}", node.lineno) for alias in node.names]
    return found


def allowed(importer: str) -> set[str]:
    if importer == "models":
        return {"models", "errors"}
    if importer == "debuggee":
        return {"debuggee"}
    if importer in FACES:
        return {*LAYERS, *FACES, "models"}
    below = set(LAYERS[: LAYERS.index(importer) + 1])
    return below | {"models"} if importer in ("agent", "control") else below


@pytest.mark.parametrize("path", MODULES, ids=by_name)
def test_imports_go_one_way(path: Path) -> None:
    if path == PACKAGE / "__init__.py":
        assert imported(path) == []
        return
    wrong = []
    for name, line in imported(path):
        parts = name.split(".")
        known = len(parts) > 1 and parts[0] == "dap_agent" and parts[1] != "__version__"
        if known and parts[1] not in allowed(room(path)):
            wrong.append(f"{by_name(path)}:{line} imports {name}")
    assert not wrong


def test_every_room_has_a_place_in_the_order() -> None:
    assert {room(path) for path in MODULES} <= {*LAYERS, *FACES, "models", "debuggee", "__init__"}


@pytest.mark.parametrize("path", OLD_PYTHON, ids=by_name)
def test_code_for_the_debuggee_imports_the_standard_library_and_siblings_only(path: Path) -> None:
    if path.parent.name == "fixes":
        assert not [name for name, _ in imported(path) if name.startswith("dap_agent")]
        return
    wrong = []
    for name, line in imported(path):
        top = name.split(".")[0]
        if (
            not name.startswith("dap_agent.debuggee")
            and top not in sys.stdlib_module_names
            and not IN_THE_DEBUGGEE.fullmatch(top)
        ):
            wrong.append(f"{by_name(path)}:{line} imports {name}")
        if top == "dap_agent" and not _is_relative(path, line):
            wrong.append(f"{by_name(path)}:{line} must import its sibling relatively: there it has another package")
    assert not wrong


def _is_relative(path: Path, line: int) -> bool:
    nodes = (node for node in ast.walk(tree(path)) if isinstance(node, ast.ImportFrom) and node.lineno == line)
    return all(node.level for node in nodes)


WITH_IO = ("server", "links", "process", "asking", "attention", "patience", "hub")
IO_FREE = [path for path in MODULES if room(path) == "wire"]
IO_FREE += [path for path in MODULES if room(path) == "proxy" and path.stem not in WITH_IO]


@pytest.mark.parametrize("path", IO_FREE, ids=by_name)
def test_the_protocol_is_free_of_io(path: Path) -> None:
    banned = {"asyncio", "socket", "selectors", "subprocess", "threading", "os", "io", "time", "ssl", "signal"}
    assert not [f"{name} in line {line}" for name, line in imported(path) if name.split(".")[0] in banned]
    assert not [node.id for node in ast.walk(tree(path)) if isinstance(node, ast.Name) and node.id in ("open", "print")]


# Python 3.8


@pytest.mark.parametrize("path", OLD_PYTHON, ids=by_name)
def test_code_for_the_debuggee_is_python_3_8(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    parsed = ast.parse(source, str(path), feature_version=(3, 8))
    assert not list(newer_than_3_8(parsed))


GENERIC_SINCE_3_9 = {
    "list",
    "dict",
    "tuple",
    "set",
    "frozenset",
    "type",
    "deque",
    "defaultdict",
    "OrderedDict",
    "Counter",
}
GENERIC_SINCE_3_9 |= {"Callable", "Iterator", "Iterable", "Sequence", "Mapping", "Generator", "Awaitable"}
METHODS_SINCE_3_9 = {"removeprefix", "removesuffix", "is_relative_to", "with_stem", "bit_count", "to_thread"}
FUNCTIONS_SINCE_3_9 = {"functools.cache", "itertools.pairwise", "math.lcm", "contextlib.aclosing", "sys.exception"}


def newer_than_3_8(module: ast.Module) -> list[str]:
    """What would fail at run time on 3.8 though the grammar takes it."""
    lazy = any(
        isinstance(node, ast.ImportFrom) and node.module == "__future__" and node.names[0].name == "annotations"
        for node in module.body
    )
    from_typing = {
        alias.asname or alias.name
        for node in ast.walk(module)
        if isinstance(node, ast.ImportFrom) and node.module == "typing"
        for alias in node.names
    }
    found: list[str] = []

    def visit(node: ast.AST, *, evaluated: bool, annotation: bool) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            for child in node.orelse:
                visit(child, evaluated=evaluated, annotation=False)
            return
        where = f"line {getattr(node, 'lineno', '?')}"
        if evaluated:
            if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
                name = node.value.id
                known = name in GENERIC_SINCE_3_9 and name not in from_typing
                if known and (annotation or hasattr(builtins, name)):
                    found.append(f"{where}: {name}[...]")
            if annotation and isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
                found.append(f"{where}: X | Y as a type")
            if isinstance(node, ast.Attribute) and node.attr in METHODS_SINCE_3_9:
                found.append(f"{where}: .{node.attr}")
            if isinstance(node, ast.Attribute) and ast.unparse(node) in FUNCTIONS_SINCE_3_9:
                found.append(f"{where}: {ast.unparse(node)}")
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                keywords = {keyword.arg for keyword in node.keywords}
                if node.func.id == "zip" and "strict" in keywords:
                    found.append(f"{where}: zip(strict=)")
                if node.func.id == "dataclass" and keywords & {"slots", "kw_only"}:
                    found.append(f"{where}: dataclass(slots or kw_only)")
        for field, value in ast.iter_fields(node):
            is_annotation = field in ("annotation", "returns")
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    visit(
                        child,
                        evaluated=evaluated and not (is_annotation and lazy),
                        annotation=annotation or is_annotation,
                    )

    visit(module, evaluated=True, annotation=False)
    return found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def f(x: int | None): ...", 1),
        ("from __future__ import annotations\ndef f(x: int | None) -> list[int]: ...", 0),
        ("def f() -> dict[str, int]: ...", 1),
        ("X = list[int]", 1),
        ("from typing import Dict, Callable\ndef f(x: Callable[[], Dict[str, int]]): ...", 0),
        ("a = flags | 3; b = table[0]", 0),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    X = list[int]", 0),
        ("'x'.removeprefix('y'); zip(a, b, strict=True); functools.cache(f)", 3),
    ],
)
def test_the_check_itself_finds_what_it_should(source: str, found: int) -> None:
    assert len(newer_than_3_8(ast.parse(source))) == found


# Manners


@pytest.mark.parametrize("path", MODULES, ids=by_name)
def test_every_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(tree(path)), "a docstring is missing"


@pytest.mark.parametrize("path", MODULES, ids=by_name)
def test_no_module_is_too_big(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 600


def test_no_file_knows_the_machine_it_was_written_on() -> None:
    here = re.compile(
        "|".join([re.escape(str(ROOT)), re.escape(str(Path.home())) + r"\b", r"(?<![\w.])/(root|home|Users)/\w"])
    )
    wrong = []
    for top in ("dap_agent", "tests", "schemas", "README.md", "CHANGELOG.md", "pyproject.toml"):
        for path in [ROOT / top, *(ROOT / top).rglob("*")]:
            if path.is_file() and "__pycache__" not in path.parts:
                text = path.read_text(encoding="utf-8", errors="replace")
                wrong += [f"{by_name(path)}: {match[0]}" for match in here.finditer(text)]
    assert not wrong
