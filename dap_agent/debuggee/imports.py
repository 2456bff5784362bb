"""Modules that are not loaded yet come from a candidate's texts, not from the disk: an importer of its own."""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, Dict, Tuple

_texts: Dict[str, Tuple[str, Callable[[Any], None]]] = {}


def add(path: str, text: str, compiled: Callable[[Any], None]) -> None:
    """From now on a module in the file *path* is made of *text*.

    Args:
        compiled: is called with its code object when it is imported.
    """
    _texts[os.path.realpath(path)] = text, compiled
    if not any(type(each) is _Finder for each in sys.meta_path):
        import importlib.util  # now: the finder would be asked for it

        sys.meta_path.insert(0, _Finder(importlib.util.spec_from_file_location))


class _Finder:
    """Goes before the others in `sys.meta_path`."""

    def __init__(self, make_spec: Callable[..., Any]) -> None:
        self._make_spec = make_spec

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The spec (PEP 451) of a module with a text; None for all others."""
        last = name.rpartition(".")[2]
        for folder in sys.path if path is None else path:
            if type(folder) is not str:
                continue
            base = os.path.realpath(os.path.join(folder, last))
            for file, inside in ((os.path.join(base, "__init__.py"), [base]), (base + ".py", None)):
                if file in _texts:
                    loader: Any = _Loader(file)
                    return self._make_spec(name, file, loader=loader, submodule_search_locations=inside)
        return None

    def invalidate_caches(self) -> None:
        """There are none."""


class _Loader:
    def __init__(self, file: str) -> None:
        self._file = file

    def create_module(self, spec: Any) -> Any:
        """As usual."""
        return None

    def exec_module(self, module: Any) -> None:
        """Run the text."""
        text, compiled = _texts[self._file]
        code = compile(text, self._file, "exec", 0, True)
        compiled(code)
        exec(code, module.__dict__)
