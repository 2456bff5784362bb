"""Whether a test is red for the right reason: because of the failure that stopped the program.

It is when the test ended in the call phase with
1. an exception of the same type (or one raised from it, or a member of its group) whose traceback goes through the
   failing function or another function of the workspace that was on the failing stack; a library's failing function
   alone is not enough when the stack had functions of the workspace. What the program's exception held as a group or
   was raised from counts as well: the test may call that function without the code around it; or
2. an assertion of the test's own (`assert`, `pytest.fail`, "DID NOT RAISE"), after it had run a function of the
   failing file or of a file that the fix changes. The cause of a failure often lies before the place where it showed,
   so a test of the cause asserts and never gets to the exception. Where the program itself stopped at an
   AssertionError, or no Python file is changed, the assertion alone is enough.
A failure in collection or in a fixture, a skip, a time-out is never red for this reason.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from dap_agent.fixes.importing import is_installed
from dap_agent.fixes.testrun import TestFailure, TestFrame, TestResult, TestRun


@dataclass(frozen=True)
class Failure:
    """The failure that stopped the program.

    Args:
        type: qualified name of the exception's type, as Python prints it; for a death by signal its name (`SIGSEGV`).
        message: its message.
        function: qualified name of the innermost function.
        file: that function's file.
        frames: the rest of the stack as (function, file), innermost first; optional.
        origins: the members of the exception's group and what it was raised from, as failures of their own.
    """

    type: str
    message: str
    function: str
    file: str
    frames: tuple[tuple[str, str], ...] = ()
    origins: tuple["Failure", ...] = ()

    def at_originals(self, original_of: Callable[[str], Path | None]) -> "Failure":
        """The same, with files of the workspace in the place of their installed copies (`Workspace.original_of`)."""

        def own(file: str) -> str:
            return str(original_of(file) or file)

        frames = tuple((function, own(file)) for function, file in self.frames)
        origins = tuple(one.at_originals(original_of) for one in self.origins)
        return replace(self, file=own(self.file), frames=frames, origins=origins)

    def with_origins(self) -> Iterator["Failure"]:
        """This one and its origins, at any depth."""
        yield self
        for one in self.origins:
            yield from one.with_origins()


def problem_of(
    run: TestRun, failure: Failure, roots: Sequence[Path], test_file: Path, changed: Collection[Path]
) -> str | None:
    """Why the regression test's run on the old code is not red for *failure*; None when it is.

    Args:
        roots: the workspace's folders.
        test_file: the regression test.
        changed: the files that the fix changes.
    """
    if run.outcome == "timeout":
        return f"the test did not end within {run.seconds:.0f} s"
    if run.outcome == "crashed":
        if run.exit_status is not None and run.exit_status < 0 and _signal(-run.exit_status) == failure.type:
            return None
        return f"the test's process ended early with {_status(run.exit_status)}, not with {failure.type}"
    if not run.failed:
        return _asynchronous(run) or (_collection(run) if run.outcome == "error" else "no test failed")
    problems = []
    for test in run.failed:
        problem = _problem(test, failure, roots, test_file, changed)
        if problem is None:
            return None
        problems.append(problem)
    return problems[0]


def _problem(
    test: TestResult, failure: Failure, roots: Sequence[Path], test_file: Path, changed: Collection[Path]
) -> str | None:
    if test.failure is None:
        return f"{test.id} failed without an exception"
    if test.coroutine and "async def" in test.failure.message:
        return _ASYNC
    if test.phase != "call":
        return f"{test.failure.type} in the {test.phase} of {test.id} (a fixture), not in the test itself"
    found = f"{test.failure.type}{': ' + _short(test.failure.message) if test.failure.message else ''}"
    raised = list(_with_related(test.failure))
    same = [one for one in raised if same_type(one.type, failure.type)]
    for wanted in failure.with_origins():
        if any(same_type(one.type, wanted.type) and _goes_through(one, wanted, roots) for one in raised):
            return None
    if test.failure.assertion and _own_assertion(test.failure, roots, test_file):
        python = [path for path in changed if path.suffix == ".py"]
        if same_type(failure.type, "AssertionError") or not python or _ran(test, failure, python):
            return None
        return (
            f"{found} in the test, which ran neither {failure.function} nor any other function of the files concerned "
            "(in another process they are not seen: call them in the test itself, a script by runpy.run_path)"
        )
    if same:
        return f"{found} does not come from {failure.function}"
    wanted_ones = " or ".join(f"{one.type} from {one.function}" for one in islice(failure.with_origins(), 3))
    return f"it fails with {found}, not with {wanted_ones}"


_ASYNC = (
    "the test is an async def, which needs a pytest plugin that is not installed or not configured; "
    "call asyncio.run inside a plain def"
)


def _asynchronous(run: TestRun) -> str | None:
    return _ASYNC if any(test.coroutine and test.outcome == "skipped" for test in run.tests) else None


def _collection(run: TestRun) -> str:
    if run.errors:
        text = run.errors[0].strip().splitlines()
        last = next((line for line in reversed(text) if line.strip().startswith("E ")), text[-1]).strip()
        if run.runner == "script" and last.endswith("No module named 'pytest'"):
            return "pytest is not installed there: write plain test functions, without fixtures and without pytest"
        return (
            f"the test file cannot be collected ({_short(last.removeprefix('E').strip())}); "
            "import what fails inside the test function"
        )
    lines = [line for line in run.output.strip().splitlines() if line.strip()]
    return f"pytest did not start: {_short(lines[-1]) if lines else 'it printed nothing'}"


def same_type(one: str, other: str) -> bool:
    """Whether two qualified names are of one type; the program's `__main__` is a module of some name in the test."""
    if one == other:
        return True
    (first, _, name), (second, _, other_name) = one.rpartition("."), other.rpartition(".")
    return name == other_name and "__main__" in {first, second}


def _with_related(failure: TestFailure) -> Iterator[TestFailure]:
    yield failure
    for one in failure.related:
        yield from _with_related(one)


def _goes_through(raised: TestFailure, failure: Failure, roots: Sequence[Path]) -> bool:
    file = str(Path(failure.file).resolve())
    if raised.syntax_file is not None and raised.syntax_file == file:
        return True
    users = [(function, name) for function, name in failure.frames if _is_users(Path(name).resolve(), roots)]
    if any(_is(frame, failure.function, file) for frame in raised.frames):
        if _is_users(Path(file), roots) or not users:
            return True
        return any(
            _is(frame, function, str(Path(name).resolve())) for function, name in users for frame in raised.frames
        )
    return any(
        _is(frame, function, str(Path(name).resolve()))
        for function, name in users
        if not function.endswith("<module>")
        for frame in raised.frames
    )


def _is_users(path: Path, roots: Sequence[Path]) -> bool:
    return any(path.is_relative_to(root) and not is_installed(path.relative_to(root)) for root in roots)


def _is(frame: TestFrame, function: str, file: str) -> bool:
    # before 3.11 code objects know only their plain name
    names = {frame.function, frame.name}
    return frame.file == file and (function in names or (frame.function == frame.name and _last(function) in names))


def _last(qualname: str) -> str:
    return qualname.rpartition(".")[2]


def _own_assertion(raised: TestFailure, roots: Sequence[Path], test_file: Path) -> bool:
    """Whether the assertion stands in the test's own code: below it are only libraries (numpy.testing, unittest)."""
    users = [frame.file for frame in raised.frames if _is_users(Path(frame.file), roots)]
    return bool(users) and users[-1] == str(test_file)


def _ran(test: TestResult, failure: Failure, changed: Collection[Path]) -> bool:
    wanted = {*(str(Path(one.file).resolve()) for one in failure.with_origins()), *map(str, changed)}
    return any(file in wanted for file, _ in test.reached)


def _signal(number: int) -> str:
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _status(status: int | None) -> str:
    if status is None:
        return "an unknown status"
    return f"signal {_signal(-status)}" if status < 0 else f"exit status {status}"


def _short(text: str) -> str:
    line = text.strip().splitlines()[0] if text.strip() else ""
    return line if len(line) <= 200 else line[:200] + "..."
