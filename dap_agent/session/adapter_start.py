"""Run as a script: debugpy's adapter, which ends soon after its client is gone, whatever it waits for.

debugpy's adapter reads its input in the thread that carries out requests. An `attach` that waits for its debuggee
(servers.wait_for_connection) never ends, so the loss of its client is not seen: it would stay for good.
"""

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
    """Run the package whose folder is the first argument; the others are its own."""
    if hasattr(select, "poll"):
        threading.Thread(target=_watch, daemon=True).start()
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
