"""A test of pytest's, run in the jail by pytest itself: what its call phase does is traced."""

from __future__ import annotations

import sys
from typing import Any, Callable, List, Optional, Tuple

from . import paths, reading

_QUIET = ["-q", "-x", "--no-header", "--tb=short", "-p", "no:cacheprovider", "-p", "no:terminalreporter",
          "-o", "addopts=", "--capture=sys"]  # fmt: skip


class TestFailed(Exception):
    """Pytest could not run the test."""


def of(test: str) -> Tuple[str, Callable[[Any], Callable[[], Tuple[Any, Optional[int]]]]]:
    """The call in words, and what makes it, for a tracer.

    Args:
        test: `FILE::NAME`, relative to the folder that the program runs in.

    Raises:
        NotThere: the program's Python has no pytest.
    """
    import importlib.util

    if importlib.util.find_spec("pytest") is None:
        raise paths.NotThere("The program's Python has no pytest (%s), so that no test can be traced." % sys.executable)
    return "test %s" % test, lambda watch: lambda: _run(test, watch)


def _run(test: str, watch: Any) -> Tuple[Any, Optional[int]]:
    import importlib

    from .tracer import settrace

    pytest: Any = importlib.import_module("pytest")  # the program's own

    settrace()(None)  # collecting imports whatever the test needs
    plugin = _plugin(pytest, watch)
    status = int(pytest.main([*_QUIET, test], plugins=[plugin]))
    settrace()(None)
    if plugin.error is not None:
        raise plugin.error
    if not plugin.ran:
        why = " ".join(plugin.reasons)[-500:] or "no such test"
        raise TestFailed("pytest ran no test (status %d): %s" % (status, why))
    return reading.MISSING, None


def _plugin(pytest: Any, watch: Any) -> Any:
    class Plugin:
        def __init__(self) -> None:
            self.ran = False
            self.error: Optional[BaseException] = None
            self.reasons: List[str] = []

        @pytest.hookimpl(tryfirst=True)  # type: ignore[untyped-decorator]
        def pytest_pyfunc_call(self, pyfuncitem: Any) -> None:
            self.ran = True
            watch.start()

        @pytest.hookimpl(tryfirst=True)  # type: ignore[untyped-decorator]
        def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
            from .tracer import settrace

            settrace()(None)
            if call.excinfo is not None:
                self.error = self.error or call.excinfo.value

        def pytest_collectreport(self, report: Any) -> None:
            if report.failed:
                self.reasons.append(str(report.longrepr))

    return Plugin()
