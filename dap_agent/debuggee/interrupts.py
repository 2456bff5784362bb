"""What a signal handler of the program's raises in the middle of our code: it is for the program, whatever we were at.

A handler may run between any two instructions of the main thread, ours included. Whoever of us catches what its own
work may raise, on a way that the program's threads take outside of a stop, hands everything else on.
"""

from __future__ import annotations

import os
from types import TracebackType

from .installed import in_packages, is_installed

_OURS = ("<dap-agent", os.path.dirname((lambda: None).__code__.co_filename))
_SENT = "__dap_agent_sent__"

_attributes = BaseException.__dict__["__dict__"].__get__
_traceback = BaseException.__dict__["__traceback__"].__get__


def is_ours(error: BaseException, *, packages: bool = False) -> bool:
    """Whether our code, or the standard library's for it, has raised *error*.

    Args:
        packages: whether that of installed packages is run for us, too (to read their values).
    """
    if not issubclass(type(error), Exception) or _SENT in _attributes(error):
        return False
    trace: TracebackType | None = _traceback(error)
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not name.startswith(_OURS) and (not is_installed(name) or (in_packages(name) and not packages)):
            return False
        trace = trace.tb_next
    return True


def pass_on(error: BaseException, *, packages: bool = False) -> None:
    """Raise *error* again if it is not ours: to be called first in every `except` on such a way.

    Args:
        packages: see `is_ours`.
    """
    if not is_ours(error, packages=packages):
        raise error


def send(error: BaseException) -> None:
    """Note that *error* is sent to its thread anew: it may come up in our code once more, and then has no trace."""
    _attributes(error)[_SENT] = True


def came(error: BaseException) -> None:
    """Note that *error* has come to the program."""
    _attributes(error).pop(_SENT, None)
