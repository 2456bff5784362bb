"""Below Python 3.12, on demand: a trace function of our own that wants nothing but exceptions. It slows the program.

A tracer of the program's own (coverage, pdb) takes the place of ours; then the hooks see to the crashes.
"""

from __future__ import annotations

import os
import sys
import threading
from types import FrameType
from typing import TYPE_CHECKING, Any, Optional

from . import at_raise, stop

if TYPE_CHECKING:
    from .at_raise import Watch


def install(watch: Watch) -> None:
    """Let *watch* judge the raises of this thread and of those that are started from now on."""

    def local(frame: FrameType, event: str, arg: Any) -> Any:
        if event != "exception":
            return local
        try:
            trace = arg[2]
            # a C function that was called with a class and no arguments may tell of the class alone
            told = trace is not None and trace.tb_next is None and issubclass(type(arg[1]), BaseException)
            if told and not watch.knows(type(arg[1]), trace):
                watch.met(arg[1], frame)
        except (RecursionError, MemoryError):
            return local  # no room to judge it
        except BaseException as error:
            if not at_raise.failed(error):
                raise
        return local

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        if frame.f_code.co_filename.startswith(stop.OURS):
            return None
        frame.f_trace_lines = False
        return local

    def begin() -> None:
        running: Optional[FrameType] = sys._getframe()
        while running is not None:
            running.f_trace = None  # pydevd's, from when it was attached: called again it would take our place
            running = running.f_back
        sys.settrace(trace)
        threading.settrace(trace)

    begin()
    os.register_at_fork(after_in_child=begin)  # after children.py has rid the child of the debugger's
