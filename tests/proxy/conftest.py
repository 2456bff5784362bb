"""Fixtures of the proxy's tests."""

import pytest

from dap_agent.proxy.core import Proxy

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
