"""Call a function once a named module has been imported, now or later.

Frameworks are prepared only if the program uses them: nothing is imported that the program does not import itself.
"""

import sys
from typing import Any, Callable, Dict


class _Finder:  # not one of importlib.abc: that alone imports a hundred modules (3.12)
    def __init__(self) -> None:
        self.waiting: Dict[str, Callable[[Any], None]] = {}

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        callback = self.waiting.pop(fullname, None)
        if callback is None:
            return None
        for finder in sys.meta_path:
            spec = finder.find_spec(fullname, path, target) if finder is not self else None
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, callback)  # type: ignore[assignment]
                return spec
        return None


class _Loader:
    """Stands before the real loader for the time of one import, then gives the spec its loader back."""

    def __init__(self, real: Any, callback: Callable[[Any], None]) -> None:
        self.real = real
        self.callback = callback

    def create_module(self, spec: Any) -> Any:
        return self.real.create_module(spec)

    def exec_module(self, module: Any) -> None:
        module.__spec__.loader = self.real
        module.__loader__ = self.real
        self.real.exec_module(module)
        try:
            self.callback(module)
        except AttributeError:
            return  # not the module we know: a file of the program's own with that name


_finder = _Finder()


def when_imported(name: str, callback: Callable[[Any], None]) -> None:
    """Call *callback* with the module *name* right after its import; at once if it is imported already."""
    module = sys.modules.get(name)
    if module is not None:
        callback(module)
        return
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    others = _finder.waiting.get(name)
    _finder.waiting[name] = callback if others is None else _both(others, callback)


def _both(first: Callable[[Any], None], second: Callable[[Any], None]) -> Callable[[Any], None]:
    def call(module: Any) -> None:
        first(module)
        second(module)

    return call
