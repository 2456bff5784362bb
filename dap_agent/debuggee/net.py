"""The net under the stops: what is left in files when a crash cannot be stopped at.

Death by a signal leaves the interpreter's own dump of the stacks (faulthandler); an exception inside a garbage
collection, or in a process that no debugger can be attached to, leaves its snapshot as JSON.
"""

import faulthandler
import json
import os
import tempfile
from typing import Any, List, Optional

from . import api
from .stop import Stop

_folder: Optional[str] = None
_dump: List[Any] = []  # keeps the dump's file object alive for faulthandler


def spread(folder: str) -> None:
    """Leave files in *folder* from now on; it is dap-agent's private folder of this run."""
    global _folder
    _folder = folder
    _introduce()
    open_dump()


def _introduce() -> None:
    """Who this process is, for the report of a death that leaves it no time to say so."""
    if _folder is None:
        return
    import sysconfig
    # (kept small: this runs at the start of every process of the program)


def open_dump() -> None:
    """Let faulthandler write the stacks of this very process to a file of its own, if the program has not enabled it."""
    if _folder is None:
        return
    if faulthandler.is_enabled() and not _dump:
        return  # the program's own choice (-X faulthandler): its output belongs on stderr
    try:
        file = open(os.path.join(_folder, "stacks-%d.txt" % os.getpid()), "w")
    except OSError:
        return  # dap-agent has gone and taken its folder along
    faulthandler.enable(file, all_threads=True)
    del _dump[:]
    _dump.append(file)


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
    descriptor, temporary = tempfile.mkstemp(dir=_folder, prefix="." + kind)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(content, file)
    os.replace(temporary, os.path.join(_folder, "%s-%d-%s.json" % (kind, os.getpid(), os.path.basename(temporary)[-8:])))
