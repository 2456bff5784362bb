"""Under pytest the flight recorder begins anew at each test's call, and rests while pytest writes its report."""

from __future__ import annotations

import functools
from typing import Any, Callable

from .after_import import when_imported


class _Plugin:
    def __init__(self, clear: Callable[[], None], rest: Callable[[bool], None]) -> None:
        self.clear, self.rest = clear, rest

    def pytest_runtest_setup(self, item: Any) -> None:
        self.clear()

    def pytest_runtest_call(self, item: Any) -> None:
        self.clear()

    def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
        if call.excinfo is not None:
            self.rest(True)  # what pytest calls to write its report

    def pytest_exception_interact(self, node: Any, call: Any, report: Any) -> None:
        self.rest(False)


def install(clear: Callable[[], None], rest: Callable[[bool], None]) -> None:
    """Follow the tests of this process.

    Args:
        clear: forgets what was recorded.
        rest: stops recording, or goes on.
    """
    when_imported("_pytest.config", lambda module: _watch(module, _Plugin(clear, rest)))
    when_imported("_pytest.assertion.rewrite", lambda module: _leave_out_reprs(module, rest))


def _leave_out_reprs(module: Any, rest: Callable[[bool], None]) -> None:
    """A failed assertion shows values by their own `__repr__`, before it raises: that has not led to the failure."""
    for name in ("_saferepr", "_call_reprcompare"):
        stock = getattr(module, name, None)
        if stock is not None:
            setattr(module, name, _resting(stock, rest))


def _resting(stock: Callable[..., Any], rest: Callable[[bool], None]) -> Callable[..., Any]:
    @functools.wraps(stock)
    def shown(*args: Any, **kwargs: Any) -> Any:
        rest(True)
        try:
            return stock(*args, **kwargs)
        finally:
            rest(False)

    return shown


def _watch(module: Any, plugin: _Plugin) -> None:
    manager = module.PytestPluginManager
    stock = manager.__init__

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        stock(self, *args, **kwargs)
        self.register(plugin, "dap-agent-recorder")

    manager.__init__ = __init__
    for name in ("pytest_runtest_setup", "pytest_runtest_call", "pytest_runtest_makereport"):
        module.hookimpl(tryfirst=True)(getattr(_Plugin, name))
    module.hookimpl(trylast=True)(_Plugin.pytest_exception_interact)  # after the stop
