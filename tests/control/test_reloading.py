"""Which saved and written files go into the live program, by the option `reload`."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dap_agent.control.reloading import Reloading
from dap_agent.errors import DapAgentError
from dap_agent.session.reload import FileReport, Outcome, ReloadReport

from ..proxy.fakes import run


class Program:
    """Takes everything, but for texts with an error."""

    alive = True

    def __init__(self) -> None:
        self.given: list[tuple[str, str | None, str]] = []
        self.came = asyncio.Event()

    async def reload(self, changes: Any) -> ReloadReport:
        files = []
        for each in changes:
            self.given.append((Path(each.path).name, each.old, each.new))
            error = "it does not compile" if "(" in each.new else None
            files.append(FileReport(each.path, "m", () if error else (Outcome("f", "swapped"),), (), error))
        self.came.set()
        return ReloadReport(tuple(files), {each.path: [[1, 1, 1]] for each in files if each.error is None})


async def wait(event: asyncio.Event) -> None:
    await asyncio.wait_for(event.wait(), 10)
    event.clear()


def test_saved_files_are_compared_with_what_the_program_has(tmp_path: Path) -> None:
    async def scenario() -> None:
        (tmp_path / "a.py").write_text("one")
        (tmp_path / "other.txt").write_text("one")
        program, moved, told = Program(), [], []
        reloading = Reloading(program, lambda: "auto", lambda lines, changed: moved.append((lines, changed)))
        ready = asyncio.Event()
        reloading.told = lambda given: (told.append(given.text()), ready.set())
        reloading.watch([tmp_path])
        folder = reloading._folders[0]
        while not folder.paths():
            await asyncio.sleep(0.01)  # polling: the first look at a folder is told to nobody
        try:
            for text in ("two", "three (", "four"):
                (tmp_path / "a.py").write_text(text)
                (tmp_path / "other.txt").write_text(text)
                await wait(ready)
            await reloading.written({str(tmp_path / "a.py"): ("four", "five")})
            (tmp_path / "a.py").write_text("five")  # as an applied fix is: it is in already
            (tmp_path / "b.py").write_text("new")
            await reloading.reload([str(tmp_path / "b.py")])
            with pytest.raises(DapAgentError, match=r"nothing\.py cannot be read"):
                await reloading.reload([str(tmp_path / "nothing.py")])
            (tmp_path / "a.py").write_text("six")
            await wait(ready)
        finally:
            await reloading.close()
        assert program.given == [
            ("a.py", "one", "two"),
            ("a.py", "two", "three ("),  # nothing of it is in, so the next one is compared with the one before
            ("a.py", "two", "four"),
            ("a.py", "four", "five"),
            ("b.py", None, "new"),
            ("a.py", "five", "six"),
        ]
        assert [text.split(" ")[4] for text in told] == ["the", "its", "the", "the"]
        assert all(set(changed) == set(lines) for lines, changed in moved)

    run(scenario)


def test_a_saved_file_that_is_no_text_in_its_encoding_is_told(tmp_path: Path) -> None:
    async def scenario() -> None:
        path = tmp_path / "a.py"
        path.write_text("one")
        program, told = Program(), []
        reloading = Reloading(program, lambda: "auto")
        ready = asyncio.Event()
        reloading.told = lambda given: (told.append(given.text()), ready.set())
        reloading.watch([tmp_path])
        while reloading._folders[0].text(str(path)) != "one":
            await asyncio.sleep(0.01)  # polling, as above
        path.write_bytes("name = 'M\u00fcller'".encode("latin-1"))
        await wait(ready)
        path.write_bytes("# coding: latin-1\nname = 'M\u00fcller'".encode("latin-1"))
        await wait(ready)
        await reloading.close()
        assert "a.py cannot be read as a Python file in its encoding" in told[0] and len(told) == 2
        assert program.given == [("a.py", "one", "# coding: latin-1\nname = 'M\u00fcller'")]

    run(scenario)


def test_what_is_saved_and_not_put_in_is_compared_with_what_the_program_has_when_the_user_says_so(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        path = tmp_path / "a.py"
        path.write_text("one")
        program = Program()
        reloading = Reloading(program, lambda: "applied")
        reloading.watch([tmp_path])
        folder = reloading._folders[0]
        while folder.text(str(path)) != "one":
            await asyncio.sleep(0.01)  # polling, as above
        path.write_text("two")
        while folder.text(str(path)) != "two":
            await asyncio.sleep(0.01)
        await reloading.reload()
        await reloading.reload()
        await reloading.close()
        assert program.given == [("a.py", "one", "two")]

    run(scenario)


def test_a_fix_takes_along_what_was_saved_before_and_not_put_in(tmp_path: Path) -> None:
    async def scenario() -> None:
        path = tmp_path / "a.py"
        path.write_text("one")
        program = Program()
        reloading = Reloading(program, lambda: "applied")
        reloading.watch([tmp_path])
        folder = reloading._folders[0]
        while folder.text(str(path)) != "one":
            await asyncio.sleep(0.01)  # polling, as above
        path.write_text("two")
        while folder.text(str(path)) != "two":
            await asyncio.sleep(0.01)
        await reloading.written({str(path): ("two", "three")})  # the program has "one", whatever the file has had
        await reloading.close()
        assert program.given == [("a.py", "one", "three")]

    run(scenario)


@pytest.mark.parametrize(("mode", "alive", "given"), [("auto", False, 0), ("applied", True, 1), ("never", True, 0)])
def test_what_is_not_wished_or_not_alive_gets_nothing(tmp_path: Path, mode: str, alive: bool, given: int) -> None:
    async def scenario() -> None:
        program = Program()
        program.alive = alive
        reloading = Reloading(program, lambda: mode)
        reloading.watch([tmp_path])
        assert bool(reloading._folders) == (mode != "never")
        found = await reloading.written({str(tmp_path / "a.py"): ("one", "two")})
        assert (found.report is not None, len(program.given)) == (bool(given), given)
        assert found.text() == ("The running program has the new code (f)." if given else "")
        await reloading.close()

    run(scenario)
