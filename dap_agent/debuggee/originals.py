"""The standard library as it was before the program came: what the program replaces, the debugger must not meet.

Tests replace `time.sleep`, `socket.socket` or `builtins.open`; programs have files of their own called `queue.py`.
While we work, the debugger and our modules see the real ones; afterwards the program finds its own again.
"""

import contextlib
import os
import sys
from types import ModuleType
from typing import Any, Dict, Iterator, List, Set, Tuple

_REPLACED = ("builtins", "os", "posixpath", "io", "time", "socket", "_socket", "threading", "_thread", "json", "queue",
             "traceback", "linecache", "inspect", "select", "signal", "itertools", "functools", "collections", "re",
             "importlib", "weakref", "tokenize", "struct", "contextlib")  # fmt: skip
"""Modules that the debugger uses and programs replace functions in."""

_real: List[Tuple[Dict[str, Any], Dict[str, Any]]] = []
_hidden: Dict[str, ModuleType] = {}  # modules of the standard library that the program has a namesake of
_FUNCTIONS = (type, type(len), type(os.path.join))
_library = os.path.dirname(os.path.abspath(os.__file__))


def remember() -> None:
    """Note what the functions and classes of the standard library are, as far as it is imported; at the start."""
    del _real[:]
    for name in _REPLACED:
        module = sys.modules.get(name)
        if module is not None:
            names = vars(module)
            _real.append((names, {k: v for k, v in names.items() if _replaceable(k, v)}))


def _replaceable(name: str, value: Any) -> bool:
    # state (threading._active_limbo_lock) belongs to the program, and so do the hooks that we have put in ourselves
    return isinstance(value, _FUNCTIONS) and (name == "__import__" or not name.startswith("__"))


class restored:  # noqa: N801 - a context manager, read as a verb
    """For a while, the real standard library. Not for two threads at once."""

    def __enter__(self) -> None:
        own: List[Tuple[Dict[str, Any], str, Any]] = []
        gone: List[Tuple[Dict[str, Any], str]] = []
        for names, real in _real:  # no function is called but dict's own methods: any builtin may be replaced
            for name in real:
                if name not in names:
                    gone.append((names, name))
                    names[name] = real[name]
                elif names[name] is not real[name]:
                    own.append((names, name, names[name]))
                    names[name] = real[name]
        self._own, self._gone = own, gone
        self._modules = {name: sys.modules[name] for name in _hidden if name in sys.modules}
        sys.modules.update(_hidden)

    def __exit__(self, *exc_info: Any) -> None:
        for name in _hidden:
            sys.modules.pop(name, None)
        sys.modules.update(self._modules)
        for names, name, value in self._own:
            names[name] = value
        for names, name in self._gone:
            names.pop(name, None)


@contextlib.contextmanager
def importable(first: str) -> Iterator[None]:
    """For a while, imports find *first* and the standard library before anything of the program's."""
    before = set(sys.modules)
    namesakes = _namesakes()
    for name in namesakes:
        sys.modules.pop(name, None)
    sys.path[:0] = added = [first, *_library_path()]
    try:
        yield
    finally:
        if sys.path[: len(added)] == added:
            del sys.path[: len(added)]
        for name in namesakes:
            if name in sys.modules:
                _hidden[name] = sys.modules[name]
        sys.modules.update(namesakes)
        give_back(set(sys.modules) - before)


def _library_path() -> List[str]:
    packages = ("site-packages", "dist-packages")
    return [p for p in sys.path if p.startswith(_library) and not p.rstrip(os.sep).endswith(packages)] or [_library]


def _namesakes() -> Dict[str, ModuleType]:
    """The program's modules that are called like one of the standard library."""
    found = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) if type(module) is ModuleType else None
        if not file or file.startswith(_library):
            continue
        base = os.path.join(_library, name.partition(".")[0])
        if os.path.exists(base + ".py") or os.path.exists(os.path.join(base, "__init__.py")):
            found[name] = module
    return found


def give_back(names: Set[str]) -> None:
    """Let the program import its own files where it has some of the name of a module that we have imported.

    Args:
        names: of the modules that are there only because of us.
    """
    from importlib.machinery import PathFinder

    before = _before_library()
    if not before:
        return
    stems = {name.partition(".")[0] for path in before for name in _listed(path)}
    top = {name for name in names if "." not in name and name not in _hidden}
    for name in top:
        module = sys.modules.get(name)
        file = getattr(module, "__file__", None)
        if not file or not file.startswith(_library):
            continue
        if name not in stems and not any(os.path.isfile(path) for path in before):
            continue
        spec = PathFinder.find_spec(name, before)
        if spec is None or not spec.origin:
            continue
        for each in [n for n in sys.modules if n == name or n.startswith(name + ".")]:
            _hidden[each] = sys.modules.pop(each)


def _before_library() -> List[str]:
    before = []
    for path in sys.path:
        zipped = path.endswith(".zip") and os.path.dirname(path) == os.path.dirname(_library)
        if zipped or path.startswith(_library):
            break
        before.append(path)
    return before


def _listed(path: str) -> List[str]:
    try:
        return os.listdir(path or ".")
    except OSError:
        return []


def when_started(names: Set[str]) -> None:
    """`give_back` *names* as soon as the program is about to run: only then is its own folder on sys.path."""
    waiting = [names]

    def audit(event: str, args: Any) -> None:
        # of Modules/main.c: cpython.run_file, run_module, run_command ...
        if waiting and event.startswith("cpython.run_"):
            give_back(waiting.pop())

    sys.addaudithook(audit)
