"""What the process has made of a source file: the namespaces of its modules, and all functions in them."""

from __future__ import annotations

import gc
import os
import sys
import types
from typing import Any, Dict, Iterable, List

from . import reading, sources


class Live:
    """What there is of one file.

    Args:
        path: of the file, symbolic links resolved.
        filename: as its code objects have it.
        namespaces: of the modules made of it: more than one if it was loaded under several names.
    """

    def __init__(self, path: str, filename: str, namespaces: List[Dict[str, Any]]) -> None:
        self.path = path
        self.filename = filename
        self.namespaces = namespaces
        self.functions: List[types.FunctionType] = []


class Files:
    """Tells which file a code object is of.

    Args:
        paths: the files of interest.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self.real = {path: os.path.realpath(path) for path in paths}
        self._wanted = {os.path.basename(path): [] for path in self.real.values()}  # type: Dict[str, List[str]]
        for path in self.real.values():
            self._wanted[os.path.basename(path)].append(path)
        self._known: Dict[str, str] = {}

    def path_of(self, filename: str) -> str:
        """The file of interest that *filename* is; empty for all others."""
        known = self._known.get(filename)
        if known is None:
            known = self._known[filename] = self._sought(filename)
        return known

    def _sought(self, filename: str) -> str:
        if not filename or os.path.basename(filename) not in self._wanted:
            return ""
        real = os.path.realpath(sources.absolute(filename))
        return real if real in self._wanted[os.path.basename(real)] else ""


def look(paths: Iterable[str], frames: Iterable[types.FrameType], also: List[Dict[str, Any]]) -> Dict[str, Any]:
    """What there is of each file, and all functions whose globals are theirs or one of *also*.

    Args:
        paths: of the files.
        frames: of the stop: a file may run without being in `sys.modules`.
        also: further namespaces.

    Returns:
        `files`: given path -> Live, those that are not loaded left out; `functions`: all.
    """
    files = Files(paths)
    found: Dict[str, Live] = {}

    def add(path: str, filename: str, namespace: Any) -> None:
        if path and type(namespace) is dict:
            live = found.setdefault(path, Live(path, filename, []))
            if not any(namespace is each for each in live.namespaces):
                live.namespaces.append(namespace)

    for frame in frames:
        add(files.path_of(frame.f_code.co_filename), frame.f_code.co_filename, frame.f_globals)
    for module in list(sys.modules.values()):
        if issubclass(type(module), types.ModuleType):
            namespace = reading.module_dict(module)
            name = namespace.get("__file__")
            if type(name) is str:
                add(files.path_of(name), name, namespace)
    wanted = [*also]
    for live in found.values():
        wanted += [each for each in live.namespaces if not any(each is known for known in wanted)]
    functions = functions_in(wanted)
    for function in functions:
        path = files.path_of(function.__code__.co_filename)
        if path in found:
            found[path].functions.append(function)
            found[path].filename = function.__code__.co_filename
    return {
        "files": {given: found[real] for given, real in files.real.items() if real in found},
        "functions": functions,
    }


def functions_in(namespaces: List[Dict[str, Any]]) -> List[types.FunctionType]:
    """All functions whose globals are one of *namespaces*, wherever something holds them."""
    if not namespaces:
        return []
    found: List[types.FunctionType] = []
    seen = set()
    # a function refers to its globals; nothing is written to the objects that are looked through
    for each in [*gc.get_referrers(*namespaces), *_frozen(namespaces)]:
        if type(each) is types.FunctionType and id(each) not in seen:
            seen.add(id(each))
            found.append(each)
    return found


def _frozen(namespaces: List[Dict[str, Any]]) -> List[Any]:
    """After `gc.freeze()` the collector does not know what was there before: what the names lead to."""
    if not gc.get_freeze_count():
        return []
    found: List[Any] = []
    for namespace in namespaces:
        waiting = [value for _, value in reading.entries(namespace, None)]
        while waiting:
            value = waiting.pop()
            if issubclass(type(value), type):
                if reading.module(value) == namespace.get("__name__"):
                    waiting += [
                        item for _, item in list(reading.class_dict(value).items()) if not isinstance(item, type)
                    ]
                continue
            for function in reading.functions_of(value):
                if not any(function is known for known in found):
                    found.append(function)
                    waiting += [
                        cell for cell in map(cell_value, function.__closure__ or ()) if cell is not reading.MISSING
                    ]
    return [each for each in found if any(each.__globals__ is namespace for namespace in namespaces)]


def cell_value(cell: Any) -> Any:
    """What a cell holds; MISSING if it is empty."""
    try:
        return cell.cell_contents
    except ValueError:
        return reading.MISSING
