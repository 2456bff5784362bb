"""Functions of the standard library and of frameworks that catch everything, and what it means to get there.

Their `except Exception` does not handle a failure: it reports the end of a thread, a test, a task or a request.
"""

from __future__ import annotations

import ast
import sys
from typing import Any, Callable

from . import c_calls, call_sites, guards, reading, stop, tasks
from .effects import PASS, Effect, Raised
from .statics import UNKNOWN, Scope, value_of

Rule = Callable[[Any, Any, Raised], Any]
"""(frame, the one inside of it, what is raised) -> Effect, tasks.Onward; None: to judge like any other function."""


def _ends(why: str, *handled: str) -> Rule:
    """The failure ends there, but for exceptions (qualified names) that mean something else to the framework."""

    def rule(frame: Any, inner: Any, raised: Raised) -> Any:
        if handled and raised.named(*handled):
            return Effect("handled", why)
        return Effect("ends", why, sure=not handled or raised.type is not None)

    return rule


def _unsure(why: str) -> Rule:
    return lambda frame, inner, raised: Effect("ends", why, sure=False)


def _transparent(frame: Any, inner: Any, raised: Raised) -> Any:
    return PASS


_PYTEST_OUTCOMES = (  # pytest says that some of its classes are builtins
    "builtins.Skipped",
    "builtins.Exit",
    "_pytest.outcomes.Skipped",
    "_pytest.outcomes.Exit",
    "_pytest.outcomes.XFailed",
    "unittest.case.SkipTest",
)


def _pytest_phase(frame: Any, inner: Any, raised: Raised) -> Any:
    if raised.named(*_PYTEST_OUTCOMES):
        return Effect("handled", "an outcome of pytest")
    return Effect("ends", "the test fails", sure=raised.type is not None)


def _pytest_call(frame: Any, inner: Any, raised: Raised) -> Any:
    """`pytest_runtest_call(item)` and its siblings: only here the test is at hand."""
    if _expected_to_fail(Scope.of_frame(frame).look_up("item")):
        return Effect("maybe", "a test that is expected to fail")
    return None


def _expected_to_fail(item: Any) -> bool:
    for _ in range(20):
        if item is UNKNOWN or item is None:
            return False
        marks = reading.own(item, "own_markers")
        if type(marks) is list and any(reading.read(mark, "name") == "xfail" for mark in marks):
            return True
        item = reading.read(item, "parent")
    return False


def _unittest_run(frame: Any, inner: Any, raised: Raised) -> Any:
    if raised.named("unittest.case.SkipTest", "unittest.case._ShouldStop", *_PYTEST_OUTCOMES):
        return Effect("handled", "the test is skipped")
    test = Scope.of_frame(frame).look_up("self")
    name = reading.own(test, "_testMethodName") if test is not UNKNOWN else None
    method = reading.class_attribute(type(test), name) if type(name) is str else None
    for holder in (type(test), method):
        attributes = reading.class_dict(holder) if isinstance(holder, type) else getattr(holder, "__dict__", {})
        if reading.lookup(attributes, "__unittest_expecting_failure__") is True:
            return Effect("maybe", "a test that is expected to fail")
    return Effect("ends", "the test fails", sure=raised.type is not None)


def _flask(frame: Any, inner: Any, raised: Raised) -> Any:
    if raised.named("werkzeug.exceptions.HTTPException"):
        return Effect("handled", "an HTTP error")
    app = Scope.of_frame(frame).look_up("self")
    spec = reading.own(app, "error_handler_spec") if app is not UNKNOWN else UNKNOWN
    if not issubclass(type(spec), dict):
        return Effect("ends", "Flask answers 500", sure=False)
    for _, by_code in reading.entries(spec, None):
        for code, by_class in reading.entries(by_code, None) if issubclass(type(by_code), dict) else ():
            if code is None and issubclass(type(by_class), dict):
                for cls, _ in reading.entries(by_class, None):
                    if issubclass(type(cls), type) and raised.caught_by((cls,)) is not False:
                        return Effect("handled", "an error handler of the application")
    return Effect("ends", "Flask answers 500", sure=raised.type is not None)


def _starlette(frame: Any, inner: Any, raised: Raised) -> Any:
    if raised.named("starlette.exceptions.HTTPException"):
        return Effect("handled", "an HTTP error")
    handlers = Scope.of_frame(frame).look_up("exception_handlers")
    if raised.type is None or not issubclass(type(handlers), dict):
        return Effect("maybe", "Starlette's exception handlers")
    for cls, _ in reading.entries(handlers, None):
        if issubclass(type(cls), type) and raised.caught_by((cls,)) is not False:
            return Effect("handled", "an exception handler of the application")
    return PASS


def _django_view(frame: Any, inner: Any, raised: Raised) -> Any:
    handler = Scope.of_frame(frame).look_up("self")
    middleware = reading.own(handler, "_exception_middleware") if handler is not UNKNOWN else UNKNOWN
    return PASS if type(middleware) is list and not middleware else Effect("maybe", "Django's exception middleware")


_DJANGO = (
    "django.http.response.Http404",
    "django.core.exceptions.PermissionDenied",
    "django.core.exceptions.SuspiciousOperation",
    "django.core.exceptions.BadRequest",
    "django.http.multipartparser.MultiPartParserError",
)


def _rest_framework(frame: Any, inner: Any, raised: Raised) -> Any:
    if raised.named("rest_framework.exceptions.APIException", *_DJANGO):
        return Effect("handled", "an error of the API")
    return PASS


def _job(frame: Any, inner: Any, raised: Raised) -> Any:
    item = Scope.of_frame(frame).look_up("self")
    future = reading.own(item, "future") if item is not UNKNOWN else UNKNOWN
    if future is UNKNOWN:
        return Effect("ends", "the job's future keeps it", sure=False)
    return tasks.after_job(future, frame)


def _anyio_job(frame: Any, inner: Any, raised: Raised) -> Any:
    future = Scope.of_frame(frame).look_up("future")
    return Effect("maybe", "a thread of anyio") if future is UNKNOWN else tasks.after(future, frame)


def _handle(frame: Any, inner: Any, raised: Raised) -> Any:
    """asyncio's `Handle._run`: a callback of its own; what comes out of a task has gone its own way before."""
    return Effect("ends", "the event loop reports it")


def _importing(frame: Any, inner: Any, raised: Raised) -> Any:
    # `from package import name` looks for a submodule of that name; that there is none is told by IMPORT_FROM
    missing = raised.exc.name if type(raised.exc) is ModuleNotFoundError else None
    if missing is not None and missing == Scope.of_frame(frame).look_up("from_name"):
        return Effect("handled", "a submodule that is looked for")
    probed = inner is not None and inner.f_code.co_name == "__getattr__"
    return Effect("handled", "hasattr in an import") if probed and raised.is_a(AttributeError) else PASS


_RULES: dict[tuple[str, str], Rule] = {
    ("importlib._bootstrap", "_handle_fromlist"): _importing,
    ("_frozen_importlib", "_handle_fromlist"): _importing,
    ("threading", "_bootstrap_inner"): _ends("the thread ends with it"),
    ("multiprocessing.process", "_bootstrap"): _ends("the process ends with it"),
    ("multiprocessing.pool", "worker"): _unsure("the pool's result keeps it"),
    ("concurrent.futures.thread", "run"): _job,
    ("concurrent.futures.process", "_process_worker"): _unsure("the job's future keeps it"),
    ("asyncio.events", "_run"): _handle,
    ("_pytest.runner", "from_call"): _pytest_phase,
    ("_pytest.runner", "pytest_runtest_call"): _pytest_call,
    ("pluggy._callers", "_multicall"): _transparent,
    ("pluggy._execution", "_multicall"): _transparent,
    ("pluggy.callers", "_multicall"): _transparent,
    ("unittest.case", "run"): _unittest_run,
    ("doctest", "__run"): _unsure("doctest compares it"),
    ("flask.app", "full_dispatch_request"): _flask,
    ("starlette._exception_handler", "wrapped_app"): _starlette,
    ("starlette.middleware.errors", "__call__"): _ends("Starlette answers 500"),
    ("starlette.middleware.base", "coro"): _unsure("a middleware gets it"),
    ("anyio._backends._asyncio", "run"): _anyio_job,
    ("django.core.handlers.base", "_get_response"): _django_view,
    ("django.core.handlers.base", "_get_response_async"): _django_view,
    ("django.core.handlers.exception", "inner"): _ends("Django answers 500", *_DJANGO),
    ("rest_framework.views", "dispatch"): _rest_framework,
    ("celery.app.trace", "trace_task"): _ends(
        "the Celery task fails", "celery.exceptions.Retry", "celery.exceptions.Ignore", "celery.exceptions.Reject"
    ),
    ("tkinter", "__call__"): _ends("tkinter reports it"),
    ("socketserver", "_handle_request_noblock"): _ends("the server reports it"),
    ("socketserver", "process_request_thread"): _ends("the server reports it"),
    ("wsgiref.handlers", "run"): _ends("the server answers 500"),
    ("werkzeug.serving", "run_wsgi"): _ends("the server answers 500"),
    ("uvicorn.protocols.http.h11_impl", "run_asgi"): _ends("the server answers 500"),
    ("uvicorn.protocols.http.httptools_impl", "run_asgi"): _ends("the server answers 500"),
    ("aiohttp.web_protocol", "_handle_request"): _ends(
        "the server answers 500", "aiohttp.web_exceptions.HTTPException", "asyncio.exceptions.TimeoutError"
    ),
    ("tornado.web", "_execute"): _ends("the server answers 500", "tornado.web.HTTPError", "tornado.web.Finish"),
    ("gunicorn.workers.sync", "handle_request"): _ends("the server answers 500"),
    ("IPython.core.interactiveshell", "run_code"): _ends("IPython prints it"),
    ("code", "runcode"): _ends("the console prints it"),
}
_MODULES: dict[str, Rule] = {  # every function of them
    "asyncio.base_events": _transparent,  # run_forever and its like: reached by callbacks only through Handle._run
    "trio._core._run": _unsure("a trio nursery gets it"),
}


def rule_for(record: guards.Code, frame: Any) -> Rule | None:
    """The rule for a function, remembered in its record."""
    if record.boundary is None:
        code = record.code
        if stop.is_hidden(frame):
            record.boundary = _transparent
        elif code.co_name == "__del__":
            record.boundary = _unsure("an exception in __del__ is reported, not raised")
        else:
            record.boundary = _RULES.get((record.module, code.co_name)) or _MODULES.get(record.module) or False
    return record.boundary or None


# Calls through C code, which has no frame


_PROBES = ("__getattr__", "__getattribute__", "__get__")


def through_c(frame: Any, inner: Any, raised: Raised, record: guards.Code) -> Effect:
    """What C code between two frames does: hasattr, getattr with a default, iteration, `from m import x`."""
    name = inner.f_code.co_name
    if raised.is_a(AttributeError):
        return _attribute_lost(frame, inner, name, record)
    if raised.is_a(IndexError) and name == "__getitem__":
        operation = _operation(frame)
        if operation.startswith("CALL") or operation == "PRECALL":
            return Effect("maybe", "the end of an iteration")
        return PASS if operation == "BINARY_SUBSCR" else Effect("handled", "the end of an iteration")
    if raised.is_a(TypeError) and name in ("__len__", "__length_hint__") and _operation(frame).startswith("CALL"):
        return Effect("maybe", "a length hint")
    operation = _operation(frame)
    calls = _calls_at(record, frame.f_lasti) if "CALL" in operation else []
    doubt = c_calls.doubt(frame, inner, operation, *_site(record, frame.f_lasti, calls))
    return PASS if doubt is None else Effect("maybe", doubt)


def _operation(frame: Any) -> str:
    import opcode

    at = frame.f_lasti
    names = frame.f_code.co_code
    while at > 0 and opcode.opname[names[at]] == "CACHE":  # 3.11, 3.12: a frame that waits for a call stands at its end
        at -= 2
    return opcode.opname[names[at]] if at >= 0 else ""


def _attribute_lost(frame: Any, inner: Any, name: str, record: guards.Code) -> Effect:
    """An AttributeError comes out of *inner*: whoever has looked for the attribute may have wanted to know no more."""
    operation = _operation(frame)
    if operation == "IMPORT_FROM":
        return Effect("becomes", "from ... import", ImportError)
    if operation.startswith("IMPORT_") and not inner.f_globals.get("__name__", "").startswith(("importlib", "_frozen")):
        return Effect("handled", "a module that is asked for what it may not have")
    calls = _calls_at(record, frame.f_lasti) if "CALL" in operation else []
    for call in calls:
        if getattr(call.func, "attr", getattr(call.func, "id", None)) == name:
            return PASS  # called by its name, not for an attribute
    for call in calls:
        if isinstance(call.func, ast.Name) and len(call.args) > 1:
            function = value_of(call.func, Scope.of_frame(frame))
            asked = call.args[1].value if isinstance(call.args[1], ast.Constant) else None
            silent = function is hasattr or (function is getattr and len(call.args) == 3)
            if silent and (name in _PROBES or name == asked or asked is None):
                return Effect("handled", "%s()" % call.func.id)
    if name in _PROBES[:2] and _asked_for_dunder(inner):
        return Effect("maybe", "a special method that is looked for")
    looked_up = "ATTR" in operation or "METHOD" in operation or any(_is_getattr(call) for call in calls)
    if name != "__getattr__" and (looked_up or name == "__getattribute__") and inner.f_code.co_argcount:
        receiver = Scope.of_frame(inner).look_up(inner.f_code.co_varnames[0])
        if receiver is not UNKNOWN and reading.class_attribute(type(receiver), "__getattr__") is not UNKNOWN:
            kind = "handled" if name == "__getattribute__" else "maybe"
            return Effect(kind, "__getattr__ is asked next")
    return PASS


def _is_getattr(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "getattr"


def _asked_for_dunder(inner: Any) -> bool:
    code = inner.f_code
    number = code.co_argcount - 1
    asked = Scope.of_frame(inner).look_up(code.co_varnames[number]) if number >= 0 else UNKNOWN
    return type(asked) is str and asked.startswith("__") and asked.endswith("__")


def _site(record: guards.Code, offset: int, calls: list[ast.Call]) -> tuple[list[ast.Call], bool]:
    """Of the calls that an instruction may be the one that it is; whether that is known for sure."""
    if sys.version_info >= (3, 11):
        return calls, True
    if len(calls) < 2 or record.node is None:
        return calls, False
    if offset not in record.sites:
        record.sites[offset] = call_sites.call_at(record.code, offset, record.node)
    found = record.sites[offset]
    return (calls, False) if found is None else ([found], True)


def _calls_at(record: guards.Code, offset: int) -> list[ast.Call]:
    found = record.calls.get(offset)
    if found is None:
        found = record.calls[offset] = _search_calls(record, offset)
    return found


def _search_calls(record: guards.Code, offset: int) -> list[ast.Call]:
    line, column, last, last_column = record.place(offset).position
    node = record.node
    if node is None:
        return _lambda_calls(record, line)
    found = []
    for entry in ast.walk(node):
        if isinstance(entry, ast.Call) and entry.lineno <= line <= (entry.end_lineno or line):
            exact = (entry.lineno, entry.col_offset, entry.end_lineno, entry.end_col_offset)
            if column is None or exact == (line, column, last, last_column):
                found.append(entry)
    return found


def _lambda_calls(record: guards.Code, line: int) -> list[ast.Call]:
    """Of a lambda or comprehension, which has no definition of its own: those of the file in that line."""
    tree = guards.tree_of(record)
    if tree is None:
        return []
    return [n for n in ast.walk(tree) if isinstance(n, ast.Call) and n.lineno <= line <= (n.end_lineno or line)]
