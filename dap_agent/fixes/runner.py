"""Runs test files under the debuggee's interpreter and reports each result as a JSON line.

Started by `testrun.py` as `python runner.py CONFIG.json`; Python 3.8+, stdlib only, imports nothing of ours. With
pytest 6 or newer it is a plugin of pytest's, so the user's configuration, conftest files and plugins count; without,
it calls the functions named `test*` and the `unittest` cases of each file itself.
"""

# Python 3.8, code of others at every call (so any exception), and no time for pathlib
# ruff: noqa: BLE001, PTH100, PTH109, PTH110, PTH118, PTH119, PTH120, PTH122, PTH123, RUF005, UP031
from __future__ import annotations

import faulthandler
import json
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # Python 3.8 has neither dict[...] nor tuple[...] at run time
    from collections.abc import Callable, Iterator

    Json = dict[str, Any]
    Test = tuple[str, Callable[[], Any], str, bool]

_MAX_TEXT = 2000
_MAX_FRAMES = 200
_OPTIMIZED = 1  # co_flags: set for functions, not for the bodies of modules and classes


class Report:
    """Appends events to a file; opened anew for each, since a test may close every descriptor."""

    def __init__(self, path: str) -> None:
        self.path = path

    def write(self, kind: str, **data: Any) -> None:
        data["kind"] = kind
        line = json.dumps(data) + "\n"
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line.encode("utf-8", "backslashreplace"))
        finally:
            os.close(descriptor)


class Watch:
    """Notes which functions of the watched files run, by the profile hook: one dict look-up per call."""

    def __init__(self, files: list[str]) -> None:
        self.files = {os.path.realpath(name) for name in files}
        self.known: dict[str, str] = {}
        self.reached: set[tuple[str, str]] = set()

    def __call__(self, frame: Any, event: str, arg: Any) -> None:
        if event != "call":
            return
        code = frame.f_code
        name = self.known.get(code.co_filename)
        if name is None:
            path = os.path.realpath(code.co_filename)
            name = self.known[code.co_filename] = path if path in self.files else ""
        if name and code.co_flags & _OPTIMIZED:
            self.reached.add((name, code.co_name))

    def start(self) -> None:
        self.reached = set()
        if self.files and sys.getprofile() is None:
            threading.setprofile(self)
            sys.setprofile(self)

    def stop(self) -> list[tuple[str, str]]:
        if sys.getprofile() is self:
            sys.setprofile(None)
            threading.setprofile(None)
        return sorted(self.reached)


def type_name(type_: type) -> str:
    module = getattr(type_, "__module__", "builtins")
    return type_.__qualname__ if module in ("builtins", None) else "%s.%s" % (module, type_.__qualname__)


def text_of(value: object) -> str:
    try:
        return str(value)[:_MAX_TEXT]
    except Exception as error:
        return "<str() raised %s>" % type(error).__name__


def frames_of(traceback: Any) -> list[Json]:
    """The frames outermost first; of a deep recursion its two ends and one of each function between."""
    found = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        found.append(
            {
                "function": getattr(code, "co_qualname", code.co_name),
                "name": code.co_name,
                "file": os.path.realpath(code.co_filename),
                "line": traceback.tb_lineno,
            }
        )
        traceback = traceback.tb_next
    if len(found) <= _MAX_FRAMES:
        return found
    half = _MAX_FRAMES // 2
    middle = {(frame["file"], frame["function"]): frame for frame in found[half:-half]}
    return found[:half] + list(middle.values())[:_MAX_FRAMES] + found[-half:]


def is_assertion(error: BaseException) -> bool:
    if isinstance(error, AssertionError):
        return True
    outcomes = sys.modules.get("_pytest.outcomes")
    return outcomes is not None and isinstance(error, outcomes.Failed)


def describe(error: BaseException, traceback: Any = None, depth: int = 0) -> Json:
    """An exception as JSON, with its cause (or context) and the members of a group."""
    data: Json = {
        "type": type_name(type(error)),
        "message": text_of(error),
        "assertion": is_assertion(error),
        "frames": frames_of(traceback if traceback is not None else error.__traceback__),
        "related": [],
    }
    if isinstance(error, SyntaxError) and error.filename:
        data["syntax_file"] = os.path.realpath(error.filename)
    if depth < 5:
        inner = list(getattr(error, "exceptions", ()) or ())[:20]
        cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if cause is not None:
            inner.append(cause)
        data["related"] = [describe(one, None, depth + 1) for one in inner if isinstance(one, BaseException)]
    return data


def map_path(path: str, places: list[list[str]]) -> str:
    """A path of the workspace -> the same in the copy, if it is there (a virtual environment is not)."""
    real = os.path.realpath(path or os.getcwd())
    for original, copy in places:
        if real == original or real.startswith(original + os.sep):
            moved = copy + real[len(original) :]
            return moved if os.path.exists(moved) else path
    return path


def redirect_imports(config: Json) -> None:
    """Lets everything that would be imported from the workspace be imported from the copy."""
    places = config["places"]
    own = os.path.dirname(os.path.abspath(__file__))
    if sys.path and os.path.abspath(sys.path[0]) == own:
        del sys.path[0]
    mapped = [map_path(entry, places) for entry in sys.path]
    sys.path[:] = list(dict.fromkeys(list(config["paths"]) + mapped + list(config["late_paths"])))
    for name, module in list(sys.modules.items()):
        # the finders of setuptools' editable installs
        if name.startswith("__editable__"):
            mapping = getattr(module, "MAPPING", None)
            if isinstance(mapping, dict):
                mapping.update({key: map_path(value, places) for key, value in mapping.items()})
            spaces = getattr(module, "NAMESPACES", None)
            if isinstance(spaces, dict):
                spaces.update({key: [map_path(one, places) for one in value] for key, value in spaces.items()})
    for name, path in imported_from_workspace(config):
        if map_path(path, places) != path:
            sys.modules.pop(name, None)


def imported_from_workspace(config: Json) -> list[tuple[str, str]]:
    found = []
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if not isinstance(path, str) or name == "__main__":
            continue
        real = os.path.realpath(path)
        for original, copy in config["places"]:
            if real.startswith(original + os.sep) and os.path.exists(copy + real[len(original) :]):
                found.append((name, real))
    return found


class Plugin:
    """What pytest calls."""

    def __init__(self, report: Report, watch: Watch) -> None:
        self.report = report
        self.watch = watch
        self.reached: list[tuple[str, str]] = []
        self.deselected = 0

    def pytest_sessionstart(self) -> None:
        self.report.write("session")

    def pytest_deselected(self, items: list[Any]) -> None:
        self.deselected += len(items)

    def pytest_collection_finish(self, session: Any) -> None:
        self.report.write("collected", count=len(session.items), deselected=self.deselected)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.report.write("collect", id=report.nodeid, text=text_of(report.longrepr)[-_MAX_TEXT:])
        elif report.skipped:
            self.report.write("collect-skip", id=report.nodeid, text=text_of(report.longrepr))


def pytest_plugin(report: Report, watch: Watch) -> Plugin:
    """The plugin; pytest's marks for hooks are there only once pytest is imported."""
    import inspect

    import pytest

    class WithWrappers(Plugin):
        @pytest.hookimpl(hookwrapper=True)
        def pytest_runtest_call(self, item: Any) -> Iterator[None]:
            self.reached = []
            self.watch.start()
            try:
                yield
            finally:
                self.reached = self.watch.stop()

        @pytest.hookimpl(hookwrapper=True, tryfirst=True)
        def pytest_runtest_makereport(self, item: Any, call: Any) -> Any:
            result = yield
            found = result.get_result()
            if found.when != "call" and found.outcome == "passed":
                return
            if found.when == "teardown" and found.outcome != "failed":
                return
            error = call.excinfo.value if call.excinfo is not None else None
            function = getattr(item, "obj", None)
            self.report.write(
                "test",
                id=found.nodeid,
                when=found.when,
                outcome=found.outcome,
                xfail=hasattr(found, "wasxfail"),
                text=text_of(found.longrepr) if found.outcome == "skipped" else "",
                error=describe(error, call.excinfo.tb) if error is not None and found.outcome == "failed" else None,
                reached=self.reached if found.when == "call" else [],
                coroutine=inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function),
            )

    return WithWrappers(report, watch)


def has(name: str) -> bool:
    import importlib.util

    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def run_pytest(config: Json, report: Report, watch: Watch) -> int:
    import pytest

    args = list(config["files"])
    args += ["--rootdir", config["root"], "--tb=short", "--color=no", "--maxfail=0", "--continue-on-collection-errors"]
    if config["addopts"]:
        # one process, or exceptions and call events would be in another; no coverage, which costs time only
        args += ["-n0"] if has("xdist") else []
        args += ["--no-cov"] if has("pytest_cov") else []
    else:
        args += ["-o", "addopts=", "-o", "required_plugins="]
    return int(pytest.main(args, plugins=[pytest_plugin(report, watch)]))


def run_scripts(config: Json, report: Report, watch: Watch) -> int:
    report.write("session")
    failed = ran = 0
    for wanted in config["files"]:
        name, colons, _ = wanted.partition("::")
        path = os.path.join(config["root"], name)
        module = load(path, name, report)
        if module is None:
            failed += 1
            continue
        for test_id, call, skip, coroutine in tests_of(module, name):
            if colons and test_id != wanted and not test_id.startswith(wanted + "::"):
                continue
            ran += 1
            error: BaseException | None = None
            watch.start()
            try:
                if not skip and not coroutine:
                    call()
            except BaseException as caught:
                error = caught
            reached = watch.stop()
            if error is not None and type_name(type(error)) == "unittest.case.SkipTest":
                skip, error = text_of(error), None
            if coroutine:
                skip = "async def functions are not supported without pytest"
            if error is not None:
                import traceback

                traceback.print_exception(type(error), error, error.__traceback__)
                failed += 1
            report.write(
                "test",
                id=test_id,
                when="call",
                outcome="failed" if error is not None else "skipped" if skip else "passed",
                xfail=False,
                text=skip or "",
                error=describe(error) if error is not None else None,
                reached=reached,
                coroutine=coroutine,
            )
            print("%s %s" % (test_id, "FAILED" if error is not None else "skipped: " + skip if skip else "passed"))
    report.write("collected", count=ran, deselected=0)
    return 1 if failed else 0 if ran else 5


def load(path: str, name: str, report: Report) -> Any:
    import importlib.util
    import traceback

    module_name = os.path.splitext(os.path.basename(path))[0]
    sys.path.insert(0, os.path.dirname(path))
    try:
        spec: Any = importlib.util.spec_from_file_location(module_name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module
        spec.loader.exec_module(module)
        return module
    except BaseException as error:
        traceback.print_exc()
        report.write("collect", id=name, text="%s: %s" % (type_name(type(error)), text_of(error)))
        return None


def tests_of(module: Any, name: str) -> Iterator[Test]:
    """(id, callable, why it cannot run, whether it is async) of each test, in the order of the file."""
    import inspect
    import unittest

    for attribute, value in list(vars(module).items()):
        if getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isfunction(value) and attribute.startswith("test"):
            yield ("%s::%s" % (name, attribute),) + plain(value, inspect)
        elif inspect.isclass(value) and issubclass(value, unittest.TestCase):
            for method in unittest.defaultTestLoader.getTestCaseNames(value):
                case = value(method)
                yield "%s::%s::%s" % (name, attribute, method), case.debug, "", False
        elif inspect.isclass(value) and attribute.startswith("Test"):
            for method, function in list(vars(value).items()):
                if inspect.isfunction(function) and method.startswith("test"):
                    bound = getattr(value(), method)
                    yield ("%s::%s::%s" % (name, attribute, method),) + plain(bound, inspect)


def plain(function: Any, inspect: Any) -> tuple[Callable[[], Any], str, bool]:
    coroutine = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    needed = [p.name for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    return function, "it needs pytest for %s" % ", ".join(needed) if needed else "", coroutine


def pytest_version() -> str | None:
    try:
        import pytest

        return pytest.__version__
    except Exception:
        return None


def main(path: str) -> int:
    with open(path, encoding="utf-8") as stream:
        config = json.load(stream)
    report = Report(config["report"])
    redirect_imports(config)
    version = pytest_version()
    usable = version is not None and int(version.split(".")[0]) >= 6
    report.write("start", runner="pytest" if usable else "script", pytest=version, python=sys.version.split()[0])
    start = time.time()
    # where a test hangs; pytest puts another file in the place of 2 while a test runs
    errors = os.fdopen(os.dup(2), "w")
    faulthandler.dump_traceback_later(max(config["timeout"] - 3, config["timeout"] * 0.5), file=errors)
    try:
        status = (run_pytest if usable else run_scripts)(config, report, Watch(config["watch"]))
    finally:
        faulthandler.cancel_dump_traceback_later()
        leaked = sorted(path for _, path in imported_from_workspace(config))[:5]
    report.write("end", status=status, leaked=leaked, seconds=time.time() - start)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
