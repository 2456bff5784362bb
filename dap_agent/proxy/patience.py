"""To wait for something, but not for ever, and to be cancelled meanwhile."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

_T = TypeVar("_T")


async def within(awaitable: Awaitable[_T], seconds: float | None) -> _T:
    """Its result, if that comes in time.

    `asyncio.wait_for` loses a cancellation that comes together with the result (before Python 3.12; bpo-37658): who has
    cancelled would then wait for somebody who goes on.

    Args:
        awaitable: is cancelled, and its end waited for, if it takes longer or the caller is cancelled.
        seconds: how long; None: for ever.

    Raises:
        asyncio.TimeoutError: it takes longer.
    """
    task = asyncio.ensure_future(awaitable)
    try:
        await asyncio.wait({task}, timeout=seconds)
        if task.done():
            return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # it counts as retrieved
    if task.cancelled():
        raise asyncio.TimeoutError
    return task.result()
