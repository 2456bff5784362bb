"""dap-agent: an AI debugger for Python, from a crash to a proven, applied fix."""

__version__ = "0.1.0"
