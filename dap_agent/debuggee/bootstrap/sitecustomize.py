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
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != here or entry == ""]
    config, root = os.environ.pop("DAP_AGENT_BOOTSTRAP", None), os.environ.pop("DAP_AGENT_ROOT", None)
    rest = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if os.path.abspath(entry) != here]
    if any(rest):
        os.environ["PYTHONPATH"] = os.pathsep.join(rest)
    else:
        os.environ.pop("PYTHONPATH", None)
    return here, config, root


def _chain():
    """Import the sitecustomize that this one stands before, if there is one."""
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if getattr(error, "name", "sitecustomize") != "sitecustomize":
            raise
    finally:
        # `site` is in the middle of importing it: the import machinery looks it up once more
        sys.modules.setdefault("sitecustomize", ours)


def _start():
    here, config, root = _leave_no_trace()
    if config is not None and sys.version_info >= (3, 8) and os.path.exists(config):
        import io
        import json

        with io.open(config, encoding="utf-8") as file:
            settings = json.load(file)
        with io.open(settings["payload"], encoding="utf-8") as file:
            exec(compile(file.read(), "<dap-agent>/payload.py", "exec"), {})
        settings.update(bootstrap=here, config=config, root=int(root) if root else None)
        sys.modules["_dap_agent_debuggee.start"].start(settings)
    _chain()


_start()
