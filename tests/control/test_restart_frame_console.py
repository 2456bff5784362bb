"""`/restart frame` and `dapAgent/restartFrame` in real sessions: the fixed code is called, and the program goes on."""

from pathlib import Path

import pytest

from dap_agent.control.console import completions

from ..proxy.fakes import run
from .test_console_debugpy import PROPOSE, Session

WILL = "willBeUnhandled"


@pytest.fixture
def session(root: Path, tmp_path: Path) -> Session:
    return Session(root, tmp_path)


@pytest.mark.parametrize("way", ["console", "request"])
def test_the_program_goes_on_with_the_fix(session: Session, way: str, all_interpreters: dict[str, str]) -> None:
    async def main() -> None:
        more = {"filters": [WILL], "python": [all_interpreters["3.13" if way == "request" else "3.11"]]}
        async with session.begun(session.script(PROPOSE), **more) as client:
            assert (await client.event("stopped"))["body"]["reason"] == "exception"
            await session.crashed()
            await session.type("/fix")
            await session.end_of_work()
            assert "The running program has the new code (total)." in await session.type("/apply")
            answer = await session.type("/restart frame 99")
            assert answer.startswith("ERROR There is no frame 99; there are 0 to "), answer
            assert (await session.type("/restart program")).startswith("ERROR Usage: /restart, or /restart frame")
            if way == "console":
                answer = await session.type("/restart frame")
                assert answer.startswith("total (frame 0) is called again. Rehearsed in a copy of the program: total ")
            else:
                answered = await client.ask("dapAgent/restartFrame", {"frame": 0}, timeout=60)
                assert answered["success"], answered
                assert (answered["body"]["function"], answered["body"]["rehearsal"]) == ("total", "returned")
            assert (await client.event("terminated", "stopped"))["event"] == "terminated"
            assert session.console("stdout").strip() == "sum 3.5"
            assert "total was called again" in await session.type("/history")
            assert "no frame of it can be restarted" in await session.type("/restart frame")
            await client.leave()

    run(main, timeout=100)


def test_completions_know_the_word_behind_it() -> None:
    assert [text for text, _ in completions("/restart f")] == ["/restart frame"]
    assert [text for text, _ in completions("/resta")] == ["/restart"]
