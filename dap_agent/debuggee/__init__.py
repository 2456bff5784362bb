"""Code that runs inside the program being debugged, as the package `_dap_agent_debuggee`.

Sent there as text (`dap_agent/session/payload.py`), Python 3.8 syntax, standard library only. `api.call` is the door.
"""
