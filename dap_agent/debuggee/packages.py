"""Whose code a file is: the user's, a package's (with its version) or the standard library's.

Versions are read from the names of `*.dist-info` folders; `importlib.metadata` would read every package's files and
take hundreds of milliseconds in a big environment.
"""

from __future__ import annotations

import io
import os
import re
import sys
from typing import Any

from . import reading
from .own_os import path as _path

_FOLDERS = ("site-packages", "dist-packages")
_INFO = re.compile(r"(?P<name>.+?)-(?P<version>[^-]+)(?:-py[\d.]+)?(?:-[^-]+)?\.(?:dist-info|egg-info|egg)\Z")
_MAX_RECORD = 3000000  # bytes of one RECORD
_SEARCH = 0.15  # seconds for looking through the RECORDs of one environment

_open = io.open
_listdir = os.listdir
_STDLIB = [_path.dirname(_path.abspath(os.__file__))]
_origins: dict[str, Origin] = {}
_listings: dict[str, list[str]] = {}
_owners: dict[tuple[str, str], tuple[str, str | None] | None] = {}


class Origin:
    """Where code comes from.

    Args:
        user: the user's own: neither of the others.
        stdlib: the standard library's.
        package: name and version (None: unknown) of the distribution that it belongs to.
    """

    def __init__(self, user: bool, stdlib: bool, package: tuple[str, str | None] | None = None) -> None:
        self.user = user
        self.stdlib = stdlib
        self.package = package

    def to_json(self) -> dict[str, Any]:
        """The keys `user`, `package` and `stdlib` of a Frame."""
        package = {"name": self.package[0], "version": self.package[1]} if self.package is not None else None
        return {"user": self.user, "package": package, "stdlib": self.stdlib}


def origin_of(filename: str) -> Origin:
    """Judge a code object's file name. Editable installs are the user's; so is code without a file (`<string>`)."""
    known = _origins.get(filename)
    if known is None:
        known = _origins[filename] = _judge(filename)
    return known


def _judge(filename: str) -> Origin:
    if filename.startswith("<frozen "):
        return Origin(False, True)
    if filename.startswith("<"):
        return Origin(not filename.startswith("<dap-agent"), False)
    path = _path.abspath(filename)
    parts = path.split(os.sep)
    for i in range(len(parts) - 2, 0, -1):
        if parts[i] in _FOLDERS:
            return Origin(False, False, _distribution(os.sep.join(parts[: i + 1]), parts[i + 1 :]))
    if _in_stdlib(path, parts):
        return Origin(False, True)
    beside = _installed_beside(path)
    return Origin(True, False) if beside is None else Origin(False, False, beside)


def _in_stdlib(path: str, parts: list[str]) -> bool:
    if any(path.startswith(folder + os.sep) for folder in _STDLIB):
        return True
    if any(part.endswith(".zip") and part.startswith("python3") for part in parts):
        return True
    return bool(_path.realpath(path).startswith(_path.realpath(_STDLIB[0]) + os.sep))


def _installed_beside(path: str) -> tuple[str, str | None] | None:
    """The distribution of a file that `pip install --target` put into any folder."""
    top = _path.dirname(path)
    while _path.exists(_path.join(top, "__init__.py")) and _path.dirname(top) != top:
        top = _path.dirname(top)
    if not any(name.endswith(".dist-info") for name in _listing(top)):
        return None
    relative = _path.relpath(path, top).split(os.sep)
    info = _owner(top, relative)
    return _named(top, info) if info is not None else None


def _listing(folder: str) -> list[str]:
    known = _listings.get(folder)
    if known is None:
        try:
            known = sorted(_listdir(folder))
        except OSError:
            known = []
        _listings[folder] = known
    return known


def _distribution(folder: str, relative: list[str]) -> tuple[str, str | None]:
    top = relative[0]
    if top.endswith(".egg"):
        match = _INFO.match(top)
        return (match["name"], match["version"]) if match else (top, None)
    key = (folder, top if len(relative) == 1 else os.sep.join(relative[:2]))
    if key not in _owners:
        info = _owner(folder, relative)
        _owners[key] = _named(folder, info) if info is not None else None
    return _owners[key] or (top[:-3] if top.endswith(".py") else top, None)


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _owner(folder: str, relative: list[str]) -> str | None:
    """The `*.dist-info` (or egg-info) of *folder* that owns the file *relative*."""
    infos = [name for name in _listing(folder) if name.endswith((".dist-info", ".egg-info")) and _INFO.match(name)]
    top = relative[0][:-3] if relative[0].endswith(".py") else relative[0]
    path = "/".join(relative)
    alike = [name for name in infos if _plain(name).startswith(_plain(top) + "-")]
    same = [name for name in alike if _plain(_INFO.match(name)["name"]) == _plain(top)]  # type: ignore[index]
    for name in same + [name for name in alike if name not in same]:
        if _records(folder, name, path) is not False and (name in same or _records(folder, name, path)):
            return name
    deadline = reading.Deadline(_SEARCH)
    for name in infos:
        if _top_level(folder, name, top) and _records(folder, name, path) is not False:
            return name
    for name in infos:
        if deadline.passed():
            return None
        if _records(folder, name, path):
            return name
    return None


def _read(folder: str, info: str, name: str, limit: int) -> bytes | None:
    try:
        with _open(_path.join(folder, info, name), "rb") as file:
            return file.read(limit)
    except OSError:
        return None


def _records(folder: str, info: str, path: str) -> bool | None:
    """Whether the distribution lists *path* among its files; None if it has no list."""
    name = "RECORD" if info.endswith(".dist-info") else "installed-files.txt"
    content = _read(folder, info, name, _MAX_RECORD)
    if content is None:
        return None
    text = path.encode("utf-8", "replace")
    return (b"\n" + text + b",") in content or content.startswith(text + b",") or (b"../" + text + b"\n") in content


def _top_level(folder: str, info: str, top: str) -> bool:
    content = _read(folder, info, "top_level.txt", 10000)
    return content is not None and top.encode("utf-8", "replace") in content.split()


def _named(folder: str, info: str) -> tuple[str, str | None]:
    """The distribution's name as its metadata spells it, and its version."""
    match = _INFO.match(info)
    name, version = (match["name"], match["version"]) if match else (info, None)
    head = _read(folder, info, "METADATA" if info.endswith(".dist-info") else "PKG-INFO", 4000)
    for line in (head or b"").split(b"\n"):
        if line.startswith(b"Name:"):
            return line[5:].strip().decode("utf-8", "replace"), version
    return name, version


if getattr(sys, "platlibdir", None) and sys.base_prefix:
    _STDLIB.append(_path.join(sys.base_prefix, sys.platlibdir, "python%d.%d" % sys.version_info[:2]))
