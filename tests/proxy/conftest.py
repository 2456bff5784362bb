"""Fixtures of the proxy's tests."""

import pytest

from dap_agent.proxy.core import Proxy
from dap_agent.proxy.editor import Editor
from dap_agent.wire.messages import event, request, response

from .playbook import Scenario


@pytest.fixture
def scenario():
    """Begins a scenario; at the test's end nothing may be left unsaid in any."""
    begun = []

    def begin(*, client=False, capabilities=None) -> Scenario:
        proxy = Proxy()
        proxy.capabilities.update(capabilities or {})
        begun.append(Scenario(proxy, client=client))
        return begun[-1]

    yield begin
    for one in begun:
        one.silence()


DEBUGPY_SAYS = {
    "supportsConfigurationDoneRequest": True,
    "supportsExceptionInfoRequest": True,
    "supportsFunctionBreakpoints": True,
    "supportsTerminateRequest": True,
}
SOCKETS = event("debugpySockets", {"sockets": [{"host": "127.0.0.1", "port": 4000, "internal": False}]})
OUR_SOCKETS = event("debugpySockets", {"sockets": [{"host": "127.0.0.1", "port": 5000, "internal": False}]})


@pytest.fixture
def session():
    """Begins a scenario with an editor's policies, after the answer to `initialize` (request 1 of the client)."""
    begun = []

    def begin(*, spawned=True, debugpy=True) -> Scenario:
        proxy = Proxy()
        one = Scenario(proxy, client=True, editor=Editor(proxy, spawned=spawned))
        begun.append(one)
        if debugpy:
            one.adapter(SOCKETS).published("debugpySockets").adopts("127.0.0.1", 4000, None)
            one.door("127.0.0.1", 5000).to_client(OUR_SOCKETS)
        one.client(request("initialize", {"clientID": "x"}, seq=1)).to_adapter(request("initialize", {"clientID": "x"}))
        shown = {**DEBUGPY_SAYS, "supportsRestartRequest": True} if spawned and debugpy else DEBUGPY_SAYS
        return one.adapter_answers("initialize", DEBUGPY_SAYS).to_client(response(1, "initialize", shown))

    yield begin
    for one in begun:
        one.silence()
