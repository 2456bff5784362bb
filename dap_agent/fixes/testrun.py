"""One run of test files in a scratch copy, under the debuggee's interpreter."""

import json
import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from dap_agent.errors import DapAgentError
from dap_agent.fixes.importing import is_installed
from dap_agent.fixes.processes import Finished, run
from dap_agent.fixes.scratch import Scratch
from dap_agent.proxy.private import handed_on

Outcome = Literal["passed", "failed", "error", "skipped", "no-tests", "timeout", "crashed"]
TestOutcome = Literal["passed", "failed", "error", "skipped", "xfailed", "xpassed"]
_RUNNER = Path(__file__).with_name("runner.py")
# of an outer test run, a coverage tool or our own settings: they would change what the user's tests do
_DROPPED = ("DAP_AGENT_", "PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST", "PYTEST_XDIST_", "COV_CORE_", "COVERAGE_", "PYDEVD_")


class CannotRun(DapAgentError):
    """The debuggee's interpreter does not even start our runner."""


@dataclass(frozen=True)
class TestFrame:
    """One frame of a test's traceback; *file* is a path of the workspace, not of the copy."""

    __test__ = False  # pytest must not take it for a test

    function: str
    name: str
    file: str
    line: int


@dataclass(frozen=True)
class TestFailure:
    """An exception that ended a test.

    Args:
        type: qualified as Python prints it.
        assertion: an AssertionError or pytest.fail.
        frames: outermost first.
        related: its cause or context, and the members of a group.
        syntax_file: for a SyntaxError: the file that has it.
    """

    __test__ = False

    type: str
    message: str
    assertion: bool
    frames: tuple[TestFrame, ...]
    related: tuple["TestFailure", ...] = ()
    syntax_file: str | None = None


@dataclass(frozen=True)
class TestResult:
    """One test of a run.

    Args:
        id: pytest's node id.
        phase: `setup`, `call` or `teardown`: where the outcome came from.
        text: why it was skipped.
        reached: the watched functions that ran, as (file of the workspace, function's name).
        coroutine: whether it is an `async def`.
    """

    __test__ = False

    id: str
    outcome: TestOutcome
    phase: str = "call"
    text: str = ""
    failure: TestFailure | None = None
    reached: tuple[tuple[str, str], ...] = ()
    coroutine: bool = False


@dataclass(frozen=True)
class TestRun:
    """What running one or more test files gave.

    Args:
        outcome: of all of it; `error` = collection, fixture or configuration failed.
        exit_status: the process's; None when its time was up; negative = killed by that signal.
        output: the last 20 kB of stdout and stderr.
        seconds: how long it ran.
        exception_type, exception_message, exception_function: of the first test that failed, innermost function.
        tests: each test that ran.
        errors: what went wrong in collection, one text each.
        notes: what a reader of the result should know.
        runner: what ran the tests; `script` when pytest is not there.
        leaked: files that were imported from the workspace instead of the copy.
    """

    __test__ = False

    outcome: Outcome
    exit_status: int | None
    output: str
    seconds: float
    exception_type: str | None = None
    exception_message: str | None = None
    exception_function: str | None = None
    tests: tuple[TestResult, ...] = ()
    errors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    runner: Literal["pytest", "script"] = "pytest"
    leaked: tuple[str, ...] = ()

    @property
    def failed(self) -> tuple[TestResult, ...]:
        """The tests that failed or had an error."""
        return tuple(test for test in self.tests if test.outcome in {"failed", "error"})


@dataclass
class Runner:
    """Runs tests in one scratch copy.

    Args:
        python: the debuggee's interpreter; not resolved, since a virtual environment's is a symlink.
        env: the environment to start from.
        import_roots: folders of the workspace from which its programs import, besides the root and its `src`.
        watch: files of the workspace whose functions are noted when they run.
    """

    scratch: Scratch
    python: Path
    env: Mapping[str, str]
    import_roots: Sequence[Path] = ()
    watch: Sequence[Path] = ()
    _without_addopts: bool = field(default=False, init=False)

    async def run(self, files: Sequence[str], *, timeout: float) -> TestRun:
        """Runs test files, given relative to the root.

        When pytest does not start with the project's own `addopts` (they name a plugin that is not installed), it
        is run once more without them, and from then on; the result says so.

        Args:
            timeout: seconds, for each of the two attempts.

        Raises:
            CannotRun: the interpreter is missing or does not run.
        """
        result, started = await self._attempt(files, timeout)
        if not started and not self._without_addopts and result.outcome == "error":
            self._without_addopts = True
            second, started = await self._attempt(files, timeout)
            if not started:
                self._without_addopts = False
                return result
            result = second
        if self._without_addopts:
            note = "pytest did not start with the project's addopts, so they were left out"
            result = replace(result, notes=(*result.notes, note))
        return result

    async def _attempt(self, files: Sequence[str], timeout: float) -> tuple[TestRun, bool]:
        """The result, and whether pytest got as far as a session."""
        scratch, mark = self.scratch, secrets.token_hex(4)
        config, report = scratch.private / f"config-{mark}.json", scratch.private / f"report-{mark}.jsonl"
        early, late = self._import_roots()
        paths = self._paths(early)
        data = {
            "report": str(report),
            "root": str(scratch.root),
            "files": list(files),
            "paths": paths,
            "late_paths": [str(copy) for copy in late],
            "places": [[str(original), str(copy)] for original, copy in scratch.places],
            "watch": [str(copy) for path in self.watch if (copy := scratch.copy_of(path)) is not None],
            "addopts": not self._without_addopts,
            "timeout": timeout,
        }
        _write(config, json.dumps(data))
        finished = await run(
            [str(self.python), str(_RUNNER), str(config)],
            cwd=scratch.root,
            env=self._environment(paths),
            folder=scratch.base,
            timeout=timeout,
        )
        events = _events(report)
        return self._result(finished, events, timeout), any(event["kind"] == "session" for event in events)

    def _import_roots(self) -> tuple[list[Path], list[Path]]:
        """The copies of the import roots that go first on `sys.path`, and those that go last.

        A namespace package's folder is taken for an import root, and may hold a `types.py`.
        """
        copies = [copy for path in self.import_roots if (copy := self.scratch.copy_of(path)) is not None]
        late = [copy for copy in copies if _shadows(copy)]
        return [copy for copy in copies if copy not in late], late

    def _paths(self, import_roots: Sequence[Path]) -> list[str]:
        """What goes first on `sys.path`."""
        root = self.scratch.root
        source = root / "src"
        paths = [self.scratch.import_root] if self.scratch.import_root is not None else []
        if not paths or not (is_installed(self.scratch.workspace.root) or _shadows(root)):
            paths.append(root)
        if source.is_dir() and not (source / "__init__.py").exists():
            paths.append(source)
        paths += import_roots
        if self.scratch.packages.exists():
            paths.append(self.scratch.packages)
        return list(dict.fromkeys(str(path) for path in paths))

    def _environment(self, paths: Sequence[str]) -> dict[str, str]:
        env = {name: value for name, value in handed_on(self.env).items() if not name.startswith(_DROPPED)}
        inherited = [entry for entry in env.get("PYTHONPATH", "").split(os.pathsep) if entry]
        mapped = [str(self.scratch.copy_of(Path(entry).resolve()) or entry) for entry in inherited]
        # at an interpreter's start nothing may hide the standard library; the runner adds the rest
        harmless = [path for path in paths if not _shadows(Path(path))]
        env["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([*harmless, *mapped]))
        env["PYTHONDONTWRITEBYTECODE"] = "1"
        env["PYTHONBREAKPOINT"] = "0"  # nobody is there to answer a prompt
        env["TMPDIR"] = str(self.scratch.temp)
        return env

    def _result(self, finished: Finished, events: list[dict[str, Any]], timeout: float) -> TestRun:
        by_kind: dict[str, list[dict[str, Any]]] = {}
        for event in events:
            by_kind.setdefault(event["kind"], []).append(event)
        if "start" not in by_kind and not finished.timed_out:
            raise CannotRun(
                f"{self.python} does not run ({finished.error or f'exit status {finished.exit_status}'}). "
                f"{finished.output.strip()[-500:]}".rstrip()
            )
        start = by_kind.get("start", [{}])[0]
        tests = self._tests(by_kind.get("test", []))
        errors = tuple(f"{event['id']}: {event['text']}" for event in by_kind.get("collect", []))
        end = by_kind.get("end", [None])[0]
        first = next((test for test in tests if test.failure is not None), None)
        failure = first.failure if first is not None else None
        notes = list(self.scratch.notes)
        if start.get("runner") == "script":
            version = start.get("pytest")
            missing = f"pytest {version} is too old" if version else "pytest is not installed"
            notes.append(f"{missing} under {self.python}, so the test ran as a plain script")
        collected = by_kind.get("collected", [{}])[0]
        if collected.get("deselected") and not collected.get("count"):
            notes.append("the project's pytest options (-m, -k) deselect every test of this run")
        return TestRun(
            outcome=_outcome(finished, by_kind, tests, errors),
            exit_status=finished.exit_status,
            output=self._plain(finished.output),
            seconds=finished.seconds,
            exception_type=failure.type if failure else None,
            exception_message=failure.message if failure else None,
            exception_function=failure.frames[-1].function if failure and failure.frames else None,
            tests=tests,
            errors=tuple(self._plain(error) for error in errors),
            notes=tuple(notes),
            runner="script" if start.get("runner") == "script" else "pytest",
            leaked=tuple(end["leaked"]) if end else (),
        )

    def _tests(self, events: list[dict[str, Any]]) -> tuple[TestResult, ...]:
        found: dict[str, TestResult] = {}
        for event in events:
            outcome: TestOutcome = event["outcome"]
            if outcome == "failed" and event["when"] != "call":
                outcome = "error"
            elif event["xfail"]:
                outcome = "xpassed" if outcome == "passed" else "xfailed"
            reached = tuple((self.scratch.original(file), name) for file, name in event["reached"])
            before = found.get(event["id"])
            if before is not None and _badness(outcome) <= _badness(before.outcome):
                # of a test with subtests: what ran is known when it is over
                found[event["id"]] = replace(before, reached=reached or before.reached)
                continue
            found[event["id"]] = TestResult(
                id=event["id"],
                outcome=outcome,
                phase=event["when"],
                text=event["text"],
                failure=self._failure(event["error"]) if event["error"] else None,
                reached=reached or (before.reached if before is not None else ()),
                coroutine=event["coroutine"],
            )
        return tuple(found.values())

    def _failure(self, data: dict[str, Any]) -> TestFailure:
        syntax = data.get("syntax_file")
        return TestFailure(
            type=data["type"],
            message=self._plain(data["message"]),
            assertion=data["assertion"],
            frames=tuple(TestFrame(**{**f, "file": self.scratch.original(f["file"])}) for f in data["frames"]),
            related=tuple(self._failure(one) for one in data["related"]),
            syntax_file=self.scratch.original(syntax) if syntax else None,
        )

    def _plain(self, text: str) -> str:
        """Paths of the copy as the user's own, which still exist when they read this."""
        for original, copy in self.scratch.places:
            text = text.replace(str(copy), str(original))
        return text


def _badness(outcome: TestOutcome) -> int:
    """A test is told about several times if it has subtests (or is torn down in vain): the worst counts."""
    return {"error": 2, "failed": 1}.get(outcome, 0)


def _shadows(folder: Path) -> bool:
    """Whether modules in a folder would hide the standard library's if it were on `sys.path`."""
    return any(
        entry.name.partition(".")[0] in sys.stdlib_module_names
        and (entry.suffix in {".py", ".so", ".pyd"} or (entry / "__init__.py").exists())
        for entry in folder.iterdir()
    )


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _events(report: Path) -> list[dict[str, Any]]:
    try:
        lines = report.read_text(encoding="utf-8").split("\n")
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue  # the process was ended in the middle of a line
    return found


def _outcome(
    finished: Finished,
    events: dict[str, list[dict[str, Any]]],
    tests: tuple[TestResult, ...],
    errors: tuple[str, ...],
) -> Outcome:
    if finished.timed_out:
        return "timeout"
    if "end" not in events:
        return "crashed"
    outcomes = {test.outcome for test in tests}
    if errors or "session" not in events or "error" in outcomes:
        return "error"
    if "failed" in outcomes:
        return "failed"
    if outcomes & {"passed", "xpassed"}:
        return "passed"
    if tests or "collect-skip" in events:
        return "skipped"
    return "no-tests"
