"""The scratch copy: complete, apart from the original, and always removed."""

import asyncio
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dap_agent.fixes import scratch as scratch_module
from dap_agent.fixes.failures import ScratchError
from dap_agent.fixes.scratch import PREFIX, scratch_copy, sweep
from dap_agent.fixes.workspace import Workspace


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_copy_is_complete_and_apart(tmp_path: Path, temp: Path) -> None:
    root = tree(tmp_path / "proj", {"a.py": "1", "sub/run.sh": "x", ".venv/pyvenv.cfg": "", "__pycache__/a.pyc": ""})
    (root / "empty").mkdir()
    os.chmod(root / "sub/run.sh", 0o755)
    (root / "rel").symlink_to("a.py")
    (root / "abs").symlink_to(root / "sub")
    (root / "big.bin").write_bytes(os.urandom(300_000))

    async def main() -> None:
        async with scratch_copy(Workspace(root)) as scratch:
            copy = scratch.root
            assert copy.name == "proj"
            assert sorted(p.name for p in copy.iterdir()) == ["a.py", "abs", "big.bin", "empty", "rel", "sub"]
            assert (copy / "big.bin").read_bytes() == (root / "big.bin").read_bytes()
            assert stat.S_IMODE((copy / "sub/run.sh").stat().st_mode) == 0o755
            assert os.readlink(copy / "rel") == "a.py"
            assert (copy / "abs").resolve() == copy / "sub"
            (copy / "a.py").write_text("changed")
            (copy / "abs/run.sh").write_text("changed")
            assert (root / "a.py").read_text() == "1"
            assert scratch.original(str(copy / "sub/run.sh")) == str(root / "sub/run.sh")
            scratch.put(root / "new/x.py", b"n", 0o600)
            scratch.put(root / "a.py", b"edited")
            scratch.put(root / "rel", None)
            for path in (copy / "new/x.py", copy / "big.bin"):
                path.unlink()
            (copy / "junk").mkdir()
            (copy / "junk/f").write_text("x")
            (scratch.temp / "t").write_text("x")
            scratch.reset()
            assert (copy / "a.py").read_text() == "edited"
            assert (copy / "new/x.py").read_text() == "n"
            assert (copy / "big.bin").read_bytes() == (root / "big.bin").read_bytes()
            assert (copy / "sub/run.sh").read_text() == "x"
            assert not (copy / "junk").exists() and not (copy / "rel").is_symlink()
            assert list(scratch.temp.iterdir()) == []

    asyncio.run(main())
    assert list(temp.iterdir()) == []
    assert sorted(os.listdir(root)) == [".venv", "__pycache__", "a.py", "abs", "big.bin", "empty", "rel", "sub"]


def test_removed_on_failure_and_with_odd_permissions(tmp_path: Path, temp: Path) -> None:
    async def main() -> None:
        async with scratch_copy(Workspace(tree(tmp_path / "proj", {"a/b.py": "1"}))) as scratch:
            os.chmod(scratch.root / "a", 0)
            raise ValueError

    with pytest.raises(ValueError):
        asyncio.run(main())
    assert list(temp.iterdir()) == []


def test_removed_when_cancelled_while_copying(tmp_path: Path, temp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started, go_on = threading.Event(), threading.Event()
    real = scratch_module.Scratch._copy

    def slow(self: object, *args: object) -> None:
        started.set()
        go_on.wait(10)
        real(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(scratch_module.Scratch, "_copy", slow)

    async def use() -> None:
        async with scratch_copy(Workspace(tree(tmp_path / "proj", {f"{n}.py": "" for n in range(50)}))):
            raise AssertionError("cancelled before")

    async def main() -> None:
        task = asyncio.ensure_future(use())
        await asyncio.to_thread(started.wait)
        task.cancel()
        await asyncio.sleep(0)
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert list(temp.iterdir()) == []


def test_limits(tmp_path: Path, temp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = Workspace(tree(tmp_path / "proj", {"a.py": "x" * 50, "b.py": "y", "c.py": ""}))

    async def main() -> list[str]:
        async with scratch_copy(workspace) as scratch:
            return [*scratch.notes, *sorted(p.name for p in scratch.root.iterdir())]

    monkeypatch.setattr(scratch_module, "MAX_FILE", 10)
    notes = asyncio.run(main())
    assert notes[1:] == ["b.py", "c.py"] and "a.py is larger than 200 MB" in notes[0]
    monkeypatch.setattr(scratch_module, "MAX_FILES", 2)
    with pytest.raises(ScratchError, match="more than 2 files"):
        asyncio.run(main())
    assert list(temp.iterdir()) == []


def test_sweep_removes_what_a_killed_process_left(tmp_path: Path, temp: Path) -> None:
    code = f"""
import asyncio, os, tempfile
from pathlib import Path
tempfile.tempdir = {str(temp)!r}
from dap_agent.fixes.scratch import scratch_copy
from dap_agent.fixes.workspace import Workspace
async def main():
    async with scratch_copy(Workspace(Path({str(tree(tmp_path / "proj", {"a.py": ""}))!r}))) as scratch:
        print("ready", flush=True)
        input()
asyncio.run(main())
"""
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        sweep()
        assert len(list(temp.glob(PREFIX + "*"))) == 1  # in use
        process.kill()
    sweep()
    assert list(temp.iterdir()) == []
