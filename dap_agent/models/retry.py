"""Repeating a request: exponential back-off with jitter, and the server's own wish where it states one.

The SDKs' retries are switched off. They end when the headers have arrived, but a stream breaks in the middle too, and
the user should hear of each repetition.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from dap_agent.models.base import ModelError, OnRetry, Retry
from dap_agent.models.errors import Failure

T = TypeVar("T")


@dataclass
class Retries:
    """How often and how fast.

    Args:
        limit: repetitions after the first attempt.
        base: seconds before the first repetition; doubled each time.
        cap: at most so many seconds, unless the server asks for more.
        longest: a server that asks for more seconds than this is not waited for.
        sleep: how to wait (tests put in their own).
        jitter: a number from 0 to 1; up to a quarter is taken off a delay of ours.
    """

    limit: int = 4
    base: float = 0.5
    cap: float = 20.0
    longest: float = 120.0
    sleep: Callable[[float], Awaitable[object]] = field(default=asyncio.sleep, repr=False)
    jitter: Callable[[], float] = field(default=random.random, repr=False)

    async def run(
        self,
        attempt: Callable[[], Awaitable[T]],
        classify: Callable[[Exception], Failure | None],
        *,
        on_retry: OnRetry | None = None,
        discarded: Callable[[], int] = lambda: 0,
    ) -> T:
        """*attempt* until it succeeds.

        Args:
            classify: what an exception means; None for one that is not the model's (it is raised as it is).
            on_retry: told of each repetition.
            discarded: characters of text that the failed attempt had already handed out.

        Raises:
            ModelError: a failure that cannot be repeated, or the last of too many.
        """
        number = 1
        while True:
            try:
                return await attempt()
            except Exception as error:
                failure = classify(error)
                if failure is None:
                    raise
            # outside of the except block: an SDK's exception holds the request, and with it the key
            delay = self.delay(failure, number)
            if delay is None:
                raise ModelError(failure.message if number == 1 else failure.after(number), failure.kind)
            if on_retry is not None:
                on_retry(Retry(failure.message, number, delay, discarded()))
            await self.sleep(delay)
            number += 1

    def delay(self, failure: Failure, number: int) -> float | None:
        """Seconds to wait after attempt *number*, None to give up."""
        limit = self.limit if failure.limit is None else min(self.limit, failure.limit)
        if not failure.retryable or number > limit:
            return None
        if failure.retry_after is not None:
            return failure.retry_after if failure.retry_after <= self.longest else None
        return float(min(self.cap, self.base * 2 ** (number - 1)) * (1 - 0.25 * self.jitter()))
