"""Apply and undo: all or none, whatever fails, also a kill in the middle."""

import contextlib
import errno
import os
import signal
import stat
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from dap_agent.fixes import applying, undo_record
from dap_agent.fixes.applying import apply, undo
from dap_agent.fixes.edits import ChangeSet, plan
from dap_agent.fixes.failures import ApplyError, StaleFile, UndoError
from dap_agent.fixes.proposal import StrReplace, WriteFile
from dap_agent.fixes.workspace import Workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "proj"
    folder.mkdir()
    (folder / "a.py").write_bytes(b"a = 1\r\n")
    (folder / "b.py").write_bytes(b"b = 1")
    return folder


EDITS = [StrReplace("a.py", "1", "2"), StrReplace("b.py", "1", "2"), WriteFile("new/deep/c.py", "c = 1\n")]
OLD = {"a.py": b"a = 1\r\n", "b.py": b"b = 1"}
NEW = {"a.py": b"a = 2\r\n", "b.py": b"b = 2", "new/deep/c.py": b"c = 1\n"}


def contents(root: Path) -> dict[str, bytes]:
    """Every file below *root*, temporary ones too; a folder alone counts as well."""
    found = {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}
    for folder in root.rglob("*"):
        if folder.is_dir() and not any(folder.iterdir()):
            found[folder.relative_to(root).as_posix() + "/"] = b""
    return found


def applied(root: Path) -> Workspace:
    workspace = Workspace(root)
    apply(workspace, plan(workspace, EDITS), label="fix")
    return workspace


def test_apply_and_undo(root: Path) -> None:
    os.chmod(root / "a.py", 0o754)
    os.chmod(root / "b.py", 0o444)
    applied(root)
    assert contents(root) == NEW
    assert stat.S_IMODE((root / "a.py").stat().st_mode) == 0o754
    assert stat.S_IMODE((root / "b.py").stat().st_mode) == 0o444
    done = undo(root)
    assert contents(root) == OLD
    assert (done.label, [p.name for p in done.restored], [p.name for p in done.removed]) == (
        "fix",
        ["a.py", "b.py"],
        ["c.py"],
    )
    assert stat.S_IMODE((root / "a.py").stat().st_mode) == 0o754
    with pytest.raises(UndoError, match="no applied fix"):
        undo(root)


def test_new_file_gets_the_umasks_mode(root: Path) -> None:
    mask = os.umask(0o027)
    try:
        applied(root)
    finally:
        os.umask(mask)
    assert stat.S_IMODE((root / "new/deep/c.py").stat().st_mode) == 0o640


def test_several_levels_of_undo(root: Path) -> None:
    workspace = Workspace(root)
    for number in (2, 3, 4):
        apply(workspace, plan(workspace, [StrReplace("b.py", str(number - 1), str(number))]), label=f"fix {number}")
    assert [undo(root).label for _ in range(3)] == ["fix 4", "fix 3", "fix 2"]
    assert contents(root) == OLD


def test_symlink_is_written_through(root: Path) -> None:
    (root / "link.py").symlink_to("a.py")
    workspace = Workspace(root)
    apply(workspace, plan(workspace, [StrReplace("link.py", "1", "2")]), label="fix")
    assert (root / "link.py").is_symlink()
    assert (root / "a.py").read_bytes() == NEW["a.py"]


def test_stale_files_are_not_overwritten(root: Path) -> None:
    workspace = Workspace(root)
    changes = plan(workspace, EDITS)
    (root / "b.py").write_text("mine")
    with pytest.raises(StaleFile, match=r"b\.py changed since"):
        apply(workspace, changes, label="fix")
    assert contents(root) == {**OLD, "b.py": b"mine"}
    (root / "b.py").unlink()
    with pytest.raises(StaleFile, match="was removed"):
        apply(workspace, changes, label="fix")
    (root / "b.py").write_bytes(OLD["b.py"])
    (root / "new/deep").mkdir(parents=True)
    (root / "new/deep/c.py").write_text("mine")
    with pytest.raises(StaleFile, match="exists by now"):
        apply(workspace, changes, label="fix")
    assert contents(root) == {**OLD, "new/deep/c.py": b"mine"}


def test_undo_refuses_changed_files(root: Path) -> None:
    applied(root)
    (root / "b.py").write_text("mine")
    with pytest.raises(UndoError, match=r"b\.py changed since the fix 'fix'"):
        undo(root)
    assert contents(root) == {**NEW, "b.py": b"mine"}
    undo(root, force=True)
    assert contents(root) == OLD


def test_undo_keeps_a_folder_that_got_more(root: Path) -> None:
    applied(root)
    (root / "new/mine.txt").write_text("x")
    undo(root)
    assert contents(root) == {**OLD, "new/mine.txt": b"x"}


# Python 3.10's pathlib keeps the functions that `os` had at its import: there, let it look them up at each call
LATE = """
import os, pathlib
accessor = getattr(pathlib, "_normal_accessor", None)
for name in ("chmod", "mkdir", "replace", "rmdir", "unlink") if accessor is not None else ():
    setattr(type(accessor), name, staticmethod(lambda *a, _name=name, **o: getattr(os, _name)(*a, **o)))
"""
exec(LATE, {})


def faulty(real: Callable[..., object], fail_at: int, counter: list[int]) -> Callable[..., object]:
    def call(*args: object, **options: object) -> object:
        counter[0] += 1
        if counter[0] == fail_at:
            raise OSError(errno.EIO, "Input/output error")
        return real(*args, **options)

    return call


@pytest.mark.parametrize("function", ["replace", "fsync", "open", "mkdir", "chmod"])
def test_a_failure_at_any_call_changes_nothing(root: Path, monkeypatch: pytest.MonkeyPatch, function: str) -> None:
    """Every n-th call of each system function fails once: the files are all new or all old, nothing else is there."""
    workspace = Workspace(root)
    changes = plan(workspace, EDITS)
    (undo_record.folder_of(root) / "lock").touch()
    failed = 0
    for fail_at in range(1, 60):
        counter = [0]
        with monkeypatch.context() as patch:
            patch.setattr(os, function, faulty(getattr(os, function), fail_at, counter))
            try:
                apply(workspace, changes, label="fix")
            except ApplyError as error:
                failed += 1
                assert "Nothing was changed" in error.message
                outcome = OLD
            else:
                outcome = NEW
        assert contents(root) == outcome, fail_at
        if outcome == NEW:
            undo(root)
            assert contents(root) == OLD
        if counter[0] < fail_at:
            break
    else:
        raise AssertionError("more calls than expected")
    assert failed
    with pytest.raises(UndoError, match="no applied fix"):
        undo(root)


def test_when_taking_back_fails_too_undo_goes_on_from_there(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = Workspace(root)
    changes = plan(workspace, EDITS)
    real = os.replace
    broken = [False]

    def replace(source: object, target: object) -> None:
        if str(target).endswith("b.py"):
            broken[0] = True
        if broken[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(source, target)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace)
        with pytest.raises(ApplyError, match=r"taking it back.*a\.py.*dap-agent undo"):
            apply(workspace, changes, label="fix")
    assert contents(root)["a.py"] == NEW["a.py"]
    with pytest.raises(UndoError, match="half applied"):
        undo(root)
    assert contents(root) == OLD


def test_kill_9_at_any_moment(root: Path, state: Path) -> None:
    """A process is killed before each system call that changes the disk; afterwards all can be made old."""
    program = textwrap.dedent(
        """
        import os, signal, sys
        from pathlib import Path
        root, kill_at, what = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
        from dap_agent.fixes.applying import apply, undo
        from dap_agent.fixes.edits import plan
        from dap_agent.fixes.proposal import StrReplace, WriteFile
        from dap_agent.fixes.workspace import Workspace
        workspace = Workspace(root)
        edits = [StrReplace("a.py", "1", "2"), StrReplace("b.py", "1", "2"), WriteFile("new/deep/c.py", "c = 1\\n")]
        changes = plan(workspace, edits) if what == "apply" else None
        count = 0
        def counted(real):
            def call(*args, **options):
                global count
                count += 1
                if count == kill_at:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*args, **options)
            return call
        for name in ("replace", "fsync", "unlink", "mkdir", "rmdir", "chmod"):
            setattr(os, name, counted(getattr(os, name)))
        apply(workspace, changes, label="fix") if what == "apply" else undo(root)
        """
    )
    program = LATE + program
    for what in ("apply", "undo"):
        for kill_at in range(1, 80, 1):
            if what == "undo":
                applied(root)
            done = subprocess.run([sys.executable, "-c", program, str(root), str(kill_at), what], capture_output=True)
            if done.returncode == 0:
                break
            assert done.returncode == -signal.SIGKILL, done.stderr
            with contextlib.suppress(UndoError):  # nothing was applied yet, or it was taken back while looking
                undo(root)
            assert contents(root) == OLD, (what, kill_at)
            assert list(state.rglob("*.json")) == []
        else:
            raise AssertionError("it never came to its end")
        assert kill_at > 10
        if what == "apply":
            undo(root)


def test_state_is_private_and_names_no_secret(root: Path, state: Path) -> None:
    applied(root)
    folder = undo_record.folder_of(root)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(next(folder.glob("*.json")).stat().st_mode) == 0o600
    (folder / "99999999.json").write_text("{damaged")
    assert undo(root).label == "fix"


def test_two_processes_take_turns(root: Path) -> None:
    """Two processes apply different fixes at the same time: both are in, and both can be undone."""
    program = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        from dap_agent.fixes.applying import apply
        from dap_agent.fixes.edits import plan
        from dap_agent.fixes.proposal import StrReplace
        from dap_agent.fixes.workspace import Workspace
        workspace = Workspace(Path(sys.argv[1]))
        sys.stdin.read()
        for number in range(20):
            change = plan(workspace, [StrReplace(sys.argv[2], str(number + 1), str(number + 2))])
            apply(workspace, change, label=sys.argv[2])
        """
    )
    both = [
        subprocess.Popen([sys.executable, "-c", program, str(root), name], stdin=subprocess.PIPE)
        for name in ("a.py", "b.py")
    ]
    for one in both:
        assert one.stdin is not None
        one.stdin.close()
    assert [one.wait(60) for one in both] == [0, 0]
    assert contents(root) == {"a.py": b"a = 21\r\n", "b.py": b"b = 21"}
    for _ in range(40):
        undo(root)
    assert contents(root) == OLD


def test_recover_leaves_a_file_alone_that_someone_changed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = Workspace(root)
    changes: ChangeSet = plan(workspace, EDITS)

    def stop(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(applying, "_roll_back", lambda *_: [])  # as if killed: nothing is taken back
        patch.setattr(applying, "sync_folder", stop)
        with pytest.raises(SystemExit):
            apply(workspace, changes, label="fix")
    (root / "b.py").write_text("mine")
    assert applying.recover(root) == ["fix"]
    assert contents(root) == {**OLD, "b.py": b"mine"}


def test_without_a_place_for_undo_records_nothing_is_changed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root.parent / "a-file").write_text("")
    changes = plan(Workspace(root), EDITS)
    monkeypatch.setenv("DAP_AGENT_STATE_DIR", str(root.parent / "a-file/state"))
    with pytest.raises(ApplyError, match=r"Nothing was changed: .*a-file.*DAP_AGENT_STATE_DIR"):
        apply(Workspace(root), changes, label="fix")
    with pytest.raises(UndoError, match="Nothing was changed"):
        undo(root)
    assert contents(root) == OLD
