"""Scenarios of a session with code of ours in the debuggee."""

import pytest

from dap_agent.proxy.core import Proxy
from dap_agent.proxy.editor import Editor
from dap_agent.proxy.stops import FILTER
from dap_agent.wire.messages import event, request, response

from .playbook import Scenario

RAISED = {"filter": "raised", "label": "Raised Exceptions", "default": False}
UNCAUGHT = {"filter": "uncaught", "label": "Uncaught Exceptions", "default": True}
SAYS = {"supportsDebuggerProperties": True, "exceptionBreakpointFilters": [RAISED, UNCAUGHT]}
SHOWN = {**SAYS, "exceptionBreakpointFilters": [RAISED, UNCAUGHT, FILTER], "supportsRestartFrame": True}
SET = "setExceptionBreakpoints"
NO_FRAMES = event("capabilities", {"capabilities": {"supportsRestartFrame": False}})


class Side:
    """Stands for the code of the debuggee: what is asked is written in plain words."""

    def install_expression(self):
        return "install"

    def call_expression(self, name, arguments):
        wanted = {key: value for key, value in arguments.items() if value and key not in ("nodelay", "record")}
        return f"{name} {wanted}"

    def problem(self, result):
        return None if result == "ok" else f"it said {result}"


@pytest.fixture
def begin():
    """Begins a scenario after the answer to `initialize`."""
    begun = []

    def make(*, side=Side, says=SAYS, shown=SHOWN, **options):
        proxy = Proxy()
        editor = Editor(proxy, side=side() if side else None, **options)
        one = Scenario(proxy, client=True, editor=editor)
        begun.append(one)
        one.client(request("initialize", {"clientID": "x"}, seq=1)).to_adapter(request("initialize", {"clientID": "x"}))
        return one.adapter_answers("initialize", says).to_client(response(1, "initialize", shown))

    yield make
    for one in begun:
        one.silence()


def evaluate(what):
    return request("evaluate", {"expression": what, "context": "clipboard"})


def launched(one, ours=None):
    """The debuggee waits for its configuration; our side is being put in."""
    more = {} if ours is None else {"dapAgent": ours}
    one.client(request("launch", {"program": "a.py", **more}, seq=2)).to_adapter(request("launch", {"program": "a.py"}))
    return one.adapter(event("initialized")).published("initialized").to_client(event("initialized"))
