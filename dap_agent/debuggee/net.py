"""The net under the stops: what is left in files when a crash cannot be stopped at.

Death by a signal leaves the interpreter's own dump of the stacks (faulthandler); an exception inside a garbage
collection, or in a process that no debugger can be attached to, leaves its snapshot as JSON.
"""

import faulthandler
import itertools
import json
import os
import sys
from typing import Any, List, Optional

from . import api, descriptors, secrets
from .stop import Stop

_folder: Optional[str] = None
_number = itertools.count()
_dump: List[Any] = []  # keeps the dump's file object alive for faulthandler


def spread(folder: str) -> None:
    """Leave files in *folder* from now on; it is dap-agent's private folder of this run."""
    global _folder
    _folder = folder
    _introduce()
    open_dump()


def _introduce() -> None:
    """Leave a card of this process: a death by signal gives it no time to say who it was."""
    library = {os.path.dirname(os.__file__), os.path.dirname(json.__file__)}
    card = {
        "python": {
            "version": ".".join(map(str, sys.version_info[:3])),
            "implementation": sys.implementation.name,
            "executable": sys.executable or "",
            "platform": sys.platform,
        },
        "process": {"pid": os.getpid(), "argv": _arguments(), "cwd": _cwd()},
        "library": sorted(library),
    }
    _write_to("process-%d.json" % os.getpid(), card)


def _arguments() -> List[str]:
    return [secrets.mask_text(str(part)) for part in getattr(sys, "orig_argv", sys.argv)]


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""  # a deleted working directory


def open_dump() -> None:
    """Let faulthandler write the stacks of this very process to a file of ours, if the program has not enabled it."""
    if _folder is None:
        return
    if faulthandler.is_enabled() and not _dump:
        return  # the program's own choice (-X faulthandler): its output belongs on stderr
    try:
        file = descriptors.opened(os.path.join(_folder, "stacks-%d.txt" % os.getpid()))
    except OSError:
        return  # dap-agent has gone and taken its folder along
    faulthandler.enable(file, all_threads=True)
    del _dump[:]
    _dump.append(file)


def take_in() -> None:
    """Leave no more files: the program goes on without us."""
    global _folder
    _folder = None
    if _dump:
        faulthandler.disable()
        file = _dump.pop()
        descriptors.release(file.fileno())
        file.close()


def record(stop: Stop) -> None:
    """Write the snapshot of *stop* where dap-agent looks for crashes without a stop."""
    if _folder is None:
        return
    _write("crash", api.snapshot_of(stop))


def failed(what: str, error: BaseException) -> None:
    """Note that we ourselves failed, for dap-agent to show: the user's stderr is not ours."""
    _write("failure", {"what": what, "error": "%s: %s" % (type(error).__name__, error)})


def _write(kind: str, content: Any) -> None:
    if _folder is None or not os.path.isdir(_folder):
        return
    _write_to("%s-%d-%d.json" % (kind, os.getpid(), next(_number)), content)


def _write_to(name: str, content: Any) -> None:
    path = os.path.join(_folder or "", name)
    try:
        with open(path + ".part", "w", encoding="utf-8") as file:
            json.dump(content, file)
        os.replace(path + ".part", path)
    except OSError:
        return  # dap-agent has just gone and taken its folder along, or the disk is full: not the program's concern
