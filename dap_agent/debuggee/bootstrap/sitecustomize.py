"""Run by the interpreter itself before the user's program: makes the process a debuggee of dap-agent.

The folder of this file leads PYTHONPATH, so `site` imports it (Python documentation, module `site`). The program then
starts natively: its `__main__`, `sys.argv`, `sys.path`, traceback and exit status are what they are without us.
Any Python may meet this file (a script of the program's may start an old one), hence the syntax that all of them read.
"""

import os
import sys


def _leave_no_trace():
    """Take this folder and our variables out of the process; returns folder, configuration file and root's pid."""
    here = os.path.dirname(os.path.abspath(__file__))
    config, root = os.environ.pop("DAP_AGENT_BOOTSTRAP", None), os.environ.pop("DAP_AGENT_ROOT", None)
    ours, colon, given = os.environ.get("PYTHONPATH", "").partition(os.pathsep)
    if os.path.abspath(ours) == here:
        if colon:
            os.environ["PYTHONPATH"] = given
        else:
            del os.environ["PYTHONPATH"]
        at = [os.path.abspath(entry) for entry in sys.path].index(here)
        # an empty PYTHONPATH stands for none, but "ours:" also for the current folder
        del sys.path[at : at + (2 if colon and not given else 1)]
    return here, config, root


def _chain():
    """Import the sitecustomize that this one stands before; the ImportError if there is none is what `site` expects."""
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    finally:
        # `site` is in the middle of importing it: the import machinery looks it up once more
        sys.modules.setdefault("sitecustomize", ours)


def _start():
    imported = set(sys.modules)
    here, config, root = _leave_no_trace()
    if config is not None and sys.version_info >= (3, 8) and os.path.exists(config):
        import io
        import json

        try:
            with io.open(config, encoding="utf-8") as file:
                settings = json.load(file)
            with io.open(settings["payload"], encoding="utf-8") as file:
                payload = file.read()
        except (OSError, ValueError):
            payload = None  # dap-agent has just ended and taken its folder away
        if payload is not None:
            exec(compile(payload, "<dap-agent>/payload.py", "exec"), {"cache": settings["folder"]})
            settings.update(bootstrap=here, config=config, root=int(root) if root else None, imported=imported)
            sys.modules["_dap_agent_debuggee"].load("start").start(settings)
    _chain()


_start()
