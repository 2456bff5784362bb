"""Run as a script: debugpy's adapter, which ends soon after its client is gone, whatever it waits for.

debugpy's adapter reads its input in the thread that carries out requests. An `attach` that waits for its debuggee
(servers.wait_for_connection) never ends, so the loss of its client is not seen: it would stay for good.
"""

import importlib
import os
import runpy
import select
import sys
import threading

_GRACE = 2.0
"""Seconds to end a session in order (`dap_agent.proxy.process` gives an adapter as many)."""


def _watch() -> None:
    poll = select.poll()
    poll.register(0, 0)  # POLLHUP is told unasked, and what has not been read yet is no matter
    poll.poll()
    threading.Event().wait(_GRACE)
    os._exit(1)


def main() -> None:
    """Run `debugpy.adapter` of the folder that is the first argument, as `python -m` does; the others are its own."""
    if hasattr(select, "poll"):
        threading.Thread(target=_watch, daemon=True).start()
    folder = sys.argv.pop(1)
    sys.path.insert(0, folder)
    importlib.import_module("debugpy")
    sys.path.remove(folder)  # what else is in there is no concern of the adapter's
    runpy.run_module("debugpy.adapter", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
