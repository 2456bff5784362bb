"""Below Python 3.12: who is to be told, in each thread that `threading` starts, of its beginning.

`threading.settrace` and `threading.setprofile` would do it, and are the program's.
"""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict

from . import stop

_told: Dict[str, Callable[[], None]] = {}


def tell(name: str, begun: Callable[[], None]) -> None:
    """Have *begun* called at the beginning of each thread that is started from now on, but for the debugger's.

    Args:
        name: of who is told; what was there under it is told no more.
    """
    first = not _told
    _told[name] = begun
    if not first:
        return
    stock = threading.Thread._set_tstate_lock  # type: ignore[attr-defined]

    def _set_tstate_lock(self: Any) -> None:
        stock(self)
        if not stop.is_debuggers(self):
            for each in tuple(_told.values()):
                each()

    threading.Thread._set_tstate_lock = _set_tstate_lock  # type: ignore[attr-defined]
