"""Waiting with a limit: a result, a limit, a cancellation, and two of them at once."""

import asyncio

import pytest

from dap_agent.proxy.patience import within

from .fakes import run


async def result(value="found", seconds=0):
    await asyncio.sleep(seconds)
    return value


def test_the_result():
    async def main():
        assert await within(result(), 10) == "found"
        assert await within(result(), None) == "found"

    run(main)


def test_an_error():
    async def main():
        async def fails():
            raise KeyError("gone")

        with pytest.raises(KeyError, match="gone"):
            await within(fails(), 10)

    run(main)


def test_what_takes_too_long_has_ended():
    async def main():
        ended = []

        async def waits():
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(True)

        with pytest.raises(asyncio.TimeoutError):
            await within(waits(), 0.01)
        assert ended

    run(main)


@pytest.mark.parametrize("outcome", ["result", "error"])
def test_a_cancellation_that_comes_together_with_the_result_is_not_lost(outcome):
    async def main():
        for turns in range(8):  # in which turn of the loop the result is noticed is the loop's business
            future = asyncio.get_running_loop().create_future()
            waiting = asyncio.ensure_future(within(future, 10))
            await asyncio.sleep(0)
            if outcome == "result":
                future.set_result("found")
            else:
                future.set_exception(KeyError("gone"))
            for _ in range(turns):
                await asyncio.sleep(0)
            if waiting.cancel():
                with pytest.raises(asyncio.CancelledError):
                    await waiting
                assert waiting.cancelled()
            else:
                await asyncio.wait({waiting})
                assert (waiting.exception() is None) == (outcome == "result")

    run(main)
