"""Proof of a fix in a scratch copy: its test is red on the old code, green on the new, and other tests are no worse."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from dap_agent.fixes.edits import ChangeSet, FileChange
from dap_agent.fixes.failures import ScratchError
from dap_agent.fixes.importers import test_files_of
from dap_agent.fixes.importing import import_base
from dap_agent.fixes.proposal import Proposal
from dap_agent.fixes.reasons import Failure, problem_of
from dap_agent.fixes.scratch import Scratch, scratch_copy
from dap_agent.fixes.source_text import new_file
from dap_agent.fixes.testrun import CannotRun, Runner, TestRun
from dap_agent.fixes.workspace import Workspace

__all__ = ["Failure", "TestRun", "Verdict", "prove", "run_test"]

Kind = Literal["proved", "red-but-not-for-this-reason", "not red", "still red", "breaks", "unproven"]


@dataclass(frozen=True)
class Verdict:
    """What the proof gave.

    Args:
        kind: the verdict.
        summary: one sentence: what was shown, or what is missing and what to do.
        breaks: ids of the tests that passed before and do not pass after.
        red, green, others: the runs: old code, new code, existing tests on the new code; None = did not come to it.
        runner: `script` when pytest is not in the debuggee's environment.
        notes: what limits the verdict, one sentence each.
    """

    kind: Kind
    summary: str
    breaks: tuple[str, ...] = ()
    red: TestRun | None = None
    green: TestRun | None = None
    others: TestRun | None = None
    runner: Literal["pytest", "script"] = "pytest"
    notes: tuple[str, ...] = ()


async def prove(
    workspace: Workspace,
    proposal: Proposal,
    changes: ChangeSet,
    *,
    python: Path,
    failure: Failure,
    timeout: float = 60.0,
    on_progress: Callable[[str], None] | None = None,
    env: Mapping[str, str] | None = None,
    sys_path: Sequence[str] = (),
) -> Verdict:
    """Runs the regression test on the old and the new code, and the existing tests that import the changed files.

    Nothing of the workspace is touched; the copy and every process are gone when this returns or is cancelled.

    Args:
        changes: what the proposal's edits do; whether its test is among them does not matter.
        python: the debuggee's interpreter.
        failure: what stopped the program; see `reasons.py` for what counts as red for this reason.
        timeout: seconds, for each of the runs.
        on_progress: told what is being done, in a few words.
        env: environment to start from; ours by default.
        sys_path: the debuggee's `sys.path`; its folders in the workspace are importable from the copy.
    """
    tell = on_progress or (lambda _: None)
    if not os.access(python, os.X_OK):
        return Verdict("unproven", f"The fix is unproven: there is no interpreter {python}; name one with --python.")
    test_path = workspace.resolve(proposal.test.file)
    edits = tuple(change for change in changes.files if change.path != test_path)
    changed = [change.path for change in edits]
    if any(test_path.name == path.name and test_path.parent == path.parent for path in changed) or test_path.exists():
        return Verdict("not red", f"{proposal.test.file} exists already; the regression test must be a new file.")
    outside = [path for path in (*changed, test_path) if not path.is_relative_to(workspace.root)]
    try:
        tell("copying the workspace")
        async with scratch_copy(workspace, outside) as scratch:
            runner = _runner(scratch, python, env, sys_path, [workspace.root / failure.file, *changed])
            proof = _Proof(workspace, proposal, edits, failure, timeout, tell, scratch, runner, test_path)
            verdict = await proof.run()
    except (ScratchError, CannotRun) as error:
        return Verdict("unproven", f"The fix is unproven: {error.message}")
    return verdict


async def run_test(
    workspace: Workspace,
    test_file: str,
    source: str | None,
    *,
    python: Path,
    timeout: float = 60.0,
    changes: ChangeSet | None = None,
    env: Mapping[str, str] | None = None,
    sys_path: Sequence[str] = (),
) -> TestRun:
    """Runs one test file in a scratch copy.

    Args:
        test_file: its path, relative to the workspace's root; one of its tests alone is `FILE::NAME`, as for pytest.
        source: its content; None runs the file that is there.
        timeout: seconds.
        changes: made in the copy first; None = the code as it is.
        env, sys_path: as for `prove`.

    Raises:
        OutsideWorkspace, ProtectedFile: the test's path is not one for edits.
        ScratchError: the workspace could not be copied.
        CannotRun: the interpreter does not run.
    """
    test_file, colons, name = test_file.partition("::")
    path = workspace.resolve(test_file)
    if source is None:
        workspace.bytes_of(path)
    edits = changes.files if changes is not None else ()
    concerned = [path, *(edit.path for edit in edits)]
    outside = [one for one in concerned if not one.is_relative_to(workspace.root)]
    async with scratch_copy(workspace, outside) as scratch:
        _lay(scratch, edits)
        if source is not None:
            scratch.put(path, new_file(source, path.name).encode())
        runner = _runner(scratch, python, env, sys_path, [])
        return await runner.run([scratch.argument(path) + colons + name], timeout=timeout)


def _runner(
    scratch: Scratch, python: Path, env: Mapping[str, str] | None, sys_path: Sequence[str], concerned: Sequence[Path]
) -> Runner:
    concerned = [path.resolve() for path in concerned]
    roots = [import_base(path) for path in concerned] + [Path(entry).resolve() for entry in sys_path if entry]
    copied = [root for root in dict.fromkeys(roots) if (copy := scratch.copy_of(root)) is not None and copy.is_dir()]
    return Runner(scratch, python, os.environ if env is None else env, copied, concerned)


def _lay(scratch: Scratch, edits: Sequence[FileChange], *, old: bool = False) -> None:
    for edit in edits:
        scratch.put(edit.path, edit.old if old else edit.new, edit.mode)


@dataclass
class _Proof:
    workspace: Workspace
    proposal: Proposal
    edits: tuple[FileChange, ...]
    failure: Failure
    timeout: float
    tell: Callable[[str], None]
    scratch: Scratch
    runner: Runner
    test_path: Path

    async def run(self) -> Verdict:
        name = self.scratch.argument(self.test_path)
        self.scratch.put(self.test_path, new_file(self.proposal.test.source, name).encode())
        self.tell("running the regression test on the old code")
        red = await self.runner.run([name], timeout=self.timeout)
        notes = [*red.notes, *_leaks(red)]
        base = Verdict("unproven", "", red=red, runner=red.runner, notes=tuple(dict.fromkeys(notes)))
        bad = self._not_red(red)
        if bad is not None:
            return replace(base, kind=bad[0], summary=bad[1])
        await self.scratch.reset_in_thread()
        _lay(self.scratch, self.edits)
        self.tell("running the regression test on the new code")
        green = await self.runner.run([name], timeout=self.timeout)
        base = replace(base, green=green)
        problem = _not_green(red, green)
        if problem is not None:
            if green.leaked:
                summary = (
                    f"The regression test cannot tell: it ran {', '.join(green.leaked)} instead of the changed copy."
                )
                return replace(base, kind="unproven", summary=summary)
            return replace(
                base, kind="still red", summary=f"The regression test is not green on the new code: {problem}."
            )
        return await self._others(base)

    def _not_red(self, red: TestRun) -> tuple[Kind, str] | None:
        changed = [edit.path for edit in self.edits]
        if red.outcome in {"passed", "skipped", "no-tests"}:
            problem = problem_of(red, self.failure, self.workspace.folders, self.test_path, changed)
            if problem is not None and "async def" in problem:
                return "red-but-not-for-this-reason", f"The regression test does not show the failure: {problem}."
            ran = {
                "passed": "it passes on the old code, so it does not show the failure",
                "skipped": "no test ran (all were skipped or marked xfail)",
                "no-tests": "no test ran (the file has none that is collected)",
            }[red.outcome]
            skipped = next((test.text for test in red.tests if test.text), "")
            more = f": {skipped.splitlines()[-1]}" if skipped and red.outcome == "skipped" else ""
            return "not red", f"The regression test is not red: {ran}{more}."
        problem = problem_of(red, self.failure, self.workspace.folders, self.test_path, changed)
        if problem is None:
            return None
        return (
            "red-but-not-for-this-reason",
            f"The regression test fails on the old code, but not for this failure: {problem}.",
        )

    async def _others(self, base: Verdict) -> Verdict:
        """The existing tests, on the old code and on the new."""
        proved = "The regression test fails on the old code for this failure and passes on the new"
        found = await asyncio.to_thread(test_files_of, self.workspace, [edit.path for edit in self.edits])
        notes = [*base.notes, found.note] if found.note else [*base.notes]
        if not found.files:
            notes.append("no existing test imports the changed files")
            return replace(base, kind="proved", summary=f"{proved}.", notes=tuple(notes))
        self.tell(f"running the existing tests that import the changed files ({len(found.files)} files)")
        after = await self._run_others(found.files)
        edits_tests = any(self.workspace.relative(edit.path) in found.files for edit in self.edits)
        if after.outcome == "passed" and not edits_tests:
            summary = f"{proved}; {_count(after)} that import the changed files pass, too."
            return replace(base, kind="proved", summary=summary, others=after, notes=tuple(notes))
        self.tell("running them on the old code, to compare")
        _lay(self.scratch, self.edits, old=True)
        before = await self._run_others(found.files)
        _lay(self.scratch, self.edits)
        breaks = _worse(before, after)
        if breaks:
            # a test that fails by chance is not broken by the fix: it gets a second run
            again = await self._run_others(tuple(dict.fromkeys(name.partition("::")[0] for name in breaks)))
            passed = {test.id for test in again.tests if test.outcome in _GOOD}
            flaky = [name for name in breaks if name in passed]
            breaks = tuple(name for name in breaks if name not in passed)
            if flaky:
                notes.append(f"failed once and passed once on the new code: {', '.join(flaky)}")
        if after.outcome in {"timeout", "crashed"} or before.outcome in {"timeout", "crashed"}:
            notes.append("the existing tests did not run to their end; those that did were compared")
        if breaks:
            listed = ", ".join(breaks[:5]) + (f" and {len(breaks) - 5} more" if len(breaks) > 5 else "")
            summary = f"{proved}, but it breaks: {listed}."
            return replace(base, kind="breaks", summary=summary, breaks=breaks, others=after, notes=tuple(notes))
        summary = f"{proved}; of the existing tests none that passed before fails."
        return replace(base, kind="proved", summary=summary, others=after, notes=tuple(notes))

    async def _run_others(self, files: tuple[str, ...]) -> TestRun:
        await self.scratch.reset_in_thread()
        return await self.runner.run(files, timeout=self.timeout)


_GOOD = frozenset({"passed", "xpassed"})


def _not_green(red: TestRun, green: TestRun) -> str | None:
    if green.outcome == "timeout":
        return f"it did not end within {green.seconds:.0f} s"
    if green.outcome == "crashed":
        return f"its process ended early (exit status {green.exit_status})"
    if green.outcome in {"skipped", "no-tests"}:
        return "no test ran"
    if green.outcome != "passed":
        where = f" in {green.exception_function}" if green.exception_function else ""
        error = f"{green.exception_type}: {green.exception_message}" if green.exception_type else ""
        return (error.strip().splitlines()[0] + where) if error else (green.errors[0] if green.errors else "it failed")
    good = {test.id for test in green.tests if test.outcome == "passed"}
    missing = [test.id for test in red.failed if test.id not in good]
    return f"{missing[0]} did not pass (skipped or marked xfail)" if missing else None


def _worse(before: TestRun, after: TestRun) -> tuple[str, ...]:
    now = {test.id: test.outcome for test in after.tests}
    cut = after.outcome in {"timeout", "crashed"}
    worse = []
    for test in before.tests:
        if test.outcome not in _GOOD:
            continue
        outcome = now.get(test.id)
        if outcome in {"failed", "error"} or (outcome is None and not cut):
            worse.append(test.id)
    return tuple(worse)


def _leaks(run: TestRun) -> list[str]:
    if not run.leaked:
        return []
    return [f"the test imported {', '.join(run.leaked)} from the workspace itself instead of the copy"]


def _count(run: TestRun) -> str:
    passed = sum(test.outcome == "passed" for test in run.tests)
    return "1 existing test" if passed == 1 else f"{passed} existing tests"
