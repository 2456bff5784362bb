"""From where Python imports a file: the folder that has to be on `sys.path`."""

from pathlib import Path

_INSTALLED = frozenset({"site-packages", "dist-packages"})


def package_top(path: Path) -> Path:
    """The outermost package around a file or folder, by its `__init__.py`; without a package *path* itself."""
    top = path
    while (top.parent / "__init__.py").exists() and top.parent != top.parent.parent:
        top = top.parent
    return top


def import_base(path: Path) -> Path:
    """The folder on `sys.path` from which *path*, a module or a package's folder, is imported.

    For what is installed that is the folder of packages, also for namespace packages, which have no `__init__.py`.
    """
    for parent in path.parents:
        if parent.name in _INSTALLED:
            return parent
    return package_top(path).parent


def is_package(folder: Path) -> bool:
    """Whether a folder is a package itself (an installed one or one with an `__init__.py`), not a project around it."""
    return is_installed(folder) or (folder / "__init__.py").exists()


def is_installed(path: Path) -> bool:
    """Whether a file or folder lies among installed packages."""
    return any(parent.name in _INSTALLED for parent in path.parents)


def dotted_name(file: Path) -> tuple[str, ...]:
    """The name by which a Python file is imported, in parts."""
    parts = file.relative_to(import_base(file)).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts
