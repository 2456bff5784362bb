"""Places outside the interpreter where an exception of user code ends: runners and servers that print it themselves."""

import sys
from typing import Any, Callable

from .after_import import when_imported

Report = Callable[..., None]


def install(report: Report) -> None:
    """Let *report* (`hooks.report`) know of what ends there, as soon as the program imports one of them."""
    when_imported("socketserver", lambda module: _servers(module, report))
    when_imported("wsgiref.handlers", lambda module: _wsgi(module, report))
    when_imported("coverage.execfile", lambda module: _coverage(module, report))
    when_imported("gevent.hub", lambda module: _gevent(module, report))
    when_imported("werkzeug.debug.tbtools", lambda module: _werkzeug(module, report))


def _servers(module: Any, report: Report) -> None:
    """http.server and its kin print what a handler raises; those that expect it (a broken pipe) don't ask the base."""
    server = module.BaseServer
    stock = server.handle_error

    def handle_error(self: Any, request: Any, client_address: Any) -> Any:
        report(sys.exc_info()[1])
        return stock(self, request, client_address)

    server.handle_error = handle_error


def _wsgi(module: Any, report: Report) -> None:
    """The handler of wsgiref prints what the application raises, and answers with status 500."""
    handler = module.BaseHandler
    stock = handler.log_exception

    def log_exception(self: Any, exc_info: Any) -> Any:
        report(exc_info[1], exc_info[2])
        return stock(self, exc_info)

    handler.log_exception = log_exception


class _System:
    """Stands in for the module `sys` in coverage.execfile, which calls sys.excepthook itself: no audit event then."""

    def __init__(self, report: Report) -> None:
        object.__setattr__(self, "_report", report)

    def __getattr__(self, name: str) -> Any:
        return getattr(sys, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(sys, name, value)

    @property
    def excepthook(self) -> Callable[..., Any]:
        def excepthook(kind: Any, exc: Any, tb: Any) -> Any:
            self._report(exc, tb)
            return sys.excepthook(kind, exc, tb)

        return excepthook


def _coverage(module: Any, report: Report) -> None:
    """`python -m coverage run` runs the program within itself."""
    module.sys = _System(report)


def _gevent(module: Any, report: Report) -> None:
    """Its hub prints what has ended a greenlet."""
    hub = module.Hub
    stock = hub.print_exception

    def print_exception(self: Any, context: Any, t: Any, v: Any, tb: Any) -> Any:
        if isinstance(v, BaseException):
            report(v, tb)
        return stock(self, context, t, v, tb)

    hub.print_exception = print_exception


def _werkzeug(module: Any, report: Report) -> None:
    """Its debugger (`flask run --debug`) shows what the application raises in the browser."""
    shown = module.DebugTraceback
    stock = shown.__init__

    def __init__(self: Any, exc: Any, *args: Any, **kwargs: Any) -> None:
        report(exc)
        stock(self, exc, *args, **kwargs)

    shown.__init__ = __init__
