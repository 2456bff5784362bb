"""How long a scratch copy of a big tree takes, against the plain `shutil.copytree` of the same files."""

import asyncio
import shutil
import time
from pathlib import Path

import pytest

from dap_agent.fixes.scratch import scratch_copy
from dap_agent.fixes.workspace import Workspace

FILES = 20_000


@pytest.mark.perf
@pytest.mark.timeout(300)
def test_scratch_copy_of_20000_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "proj"
    for folder in range(FILES // 50):
        below = root / f"pkg{folder % 20}" / f"m{folder}"
        below.mkdir(parents=True)
        for number in range(50):
            (below / f"f{number}.py").write_text(f"def f{number}():\n    return {number}\n" * 20)
    (root / ".gitignore").write_text("*.log\nbuild/\ndist/\n*.egg-info/\n.cache\n/data/\n*.so\n.coverage\nhtmlcov/\n")
    start = time.perf_counter()
    shutil.copytree(root, tmp_path / "plain")
    plain = time.perf_counter() - start
    times = {}

    async def main() -> None:
        start = time.perf_counter()
        async with scratch_copy(Workspace(root)) as scratch:
            times["copy"] = time.perf_counter() - start
            start = time.perf_counter()
            scratch.reset()
            times["reset"] = time.perf_counter() - start

    asyncio.run(main())
    copy, reset = times["copy"], times["reset"]
    ratio = f"{copy / plain:.2f}x"
    with capsys.disabled():
        print(f"\n{FILES} files: copytree {plain:.2f} s, copy {copy:.2f} s ({ratio}), reset {reset:.2f} s")
    assert times["copy"] < plain * 1.2
    assert times["reset"] < plain * 0.3
