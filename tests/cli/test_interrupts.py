"""Signals to dap-agent."""

import asyncio
import os
import signal
from typing import Any

import pytest

from dap_agent.cli import interrupts
from dap_agent.cli.interrupts import Interrupted, Interrupts


class Program:
    """Notes the signals it gets, and tells when it got one."""

    def __init__(self) -> None:
        self.got: list[int] = []
        self.changed = asyncio.Event()

    def send_signal(self, number: int) -> None:
        self.got.append(number)
        self.changed.set()


async def forever() -> None:
    await asyncio.Event().wait()


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "from_terminal", lambda: False)


def run(scenario: Any) -> None:
    asyncio.run(scenario())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_ctrl_c_ends_what_can_be_interrupted() -> None:
    async def scenario() -> None:
        with Interrupts() as handler:
            asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGINT)
            with pytest.raises(Interrupted):
                await handler.interruptible(forever())
            assert handler.ended_by is None

    run(scenario)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_that_only_we_got_reaches_the_program(number: int) -> None:
    async def scenario() -> None:
        with Interrupts() as handler:
            handler.program = program = Program()
            os.kill(os.getpid(), number)
            await program.changed.wait()
            assert program.got == [number]

    run(scenario)


def test_ctrl_c_at_the_terminal_has_reached_the_program_already(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "from_terminal", lambda: True)

    async def scenario() -> None:
        with Interrupts() as handler:
            handler.program = program = Program()
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGTERM)
            await program.changed.wait()
            assert program.got == [signal.SIGTERM]

    run(scenario)


def test_sigterm_ends_an_investigation_and_goes_to_the_program() -> None:
    async def scenario() -> None:
        with Interrupts() as handler:
            handler.program = program = Program()
            asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGTERM)
            with pytest.raises(Interrupted):
                await handler.interruptible(forever())
            assert program.got == [signal.SIGTERM]

    run(scenario)


def test_without_a_program_a_signal_ends_the_run() -> None:
    async def scenario() -> None:
        with Interrupts() as handler:
            os.kill(os.getpid(), signal.SIGTERM)
            with pytest.raises(asyncio.CancelledError):
                await forever()
            assert handler.ended_by == signal.SIGTERM

    run(scenario)


def test_an_ignored_signal_stays_ignored() -> None:
    async def scenario() -> None:
        with Interrupts():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        asyncio.run(scenario())
    finally:
        signal.signal(signal.SIGHUP, before)


def test_cancelling_the_run_cancels_the_work() -> None:
    async def scenario() -> None:
        ended = asyncio.Event()

        async def work() -> None:
            try:
                await forever()
            finally:
                ended.set()

        with Interrupts() as handler:
            task = asyncio.ensure_future(handler.interruptible(work()))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert ended.is_set()

    run(scenario)
