"""How much an investigation may use, and how much it has used."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dap_agent.models.base import Usage

if TYPE_CHECKING:
    from dap_agent.agent.outcome import Outcome

#: The most that a model may write in one turn, in tokens: room for a function, a test and some thought.
MAX_OUTPUT_TOKENS = 16_000


@dataclass(frozen=True)
class Budget:
    """The limits of one investigation.

    Args:
        turns: model calls.
        tokens: prompt and output tokens of all calls together.
        cost: US dollars, None for no limit; cannot be kept for a model whose price is unknown.
        seconds: wall clock from the start. A proof that is already running may end later.
    """

    turns: int = 40
    tokens: int = 500_000
    cost: float | None = 5.0
    seconds: float = 900.0

    def less(self, outcome: "Outcome") -> "Budget":
        """What is left of this budget after an investigation."""
        return Budget(
            self.turns - outcome.turns,
            self.tokens - outcome.usage.input_tokens - outcome.usage.output_tokens,
            None if self.cost is None else self.cost - (outcome.cost or 0.0),
            self.seconds - outcome.seconds,
        )

    @property
    def spent(self) -> bool:
        """Whether not enough is left for anything."""
        return self.turns <= 0 or self.tokens <= 0 or self.seconds <= 0 or (self.cost is not None and self.cost <= 0)


class Meter:
    """What has been used of a budget.

    Args:
        budget: the limits.
        price: dollars for a usage, None if unknown (`Backend.cost`).
        clock: seconds, monotonic.
    """

    def __init__(
        self, budget: Budget, price: Callable[[Usage], float | None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.budget = budget
        self.usage = Usage()
        self.turns = 0
        self._price = price
        self._clock = clock
        self._began = clock()
        self._last = Usage()
        self._longest = 0.0

    @property
    def seconds(self) -> float:
        """Since the start."""
        return self._clock() - self._began

    @property
    def seconds_left(self) -> float:
        """Until the limit; zero when it has passed."""
        return max(0.0, self.budget.seconds - self.seconds)

    @property
    def cost(self) -> float | None:
        """Dollars so far, None if the price is unknown."""
        return self._price(self.usage)

    def add(self, usage: Usage, seconds: float) -> None:
        """Count one model call."""
        self.turns += 1
        self.usage = self.usage + usage
        self._last = usage
        self._longest = max(self._longest, seconds)

    def exhausted(self) -> str | None:
        """Why no further model call may be made, as words for the user; None while one may."""
        budget = self.budget
        if self.turns >= budget.turns:
            return f"all {budget.turns} model calls are used (--max-turns)"
        if self._tokens >= budget.tokens:
            return f"{self._tokens} of {budget.tokens} tokens are used (--max-tokens)"
        cost = self.cost
        if budget.cost is not None and cost is not None and cost >= budget.cost:
            return f"${cost:.2f} of ${budget.cost:.2f} are spent (--max-cost)"
        if self.seconds >= budget.seconds:
            return f"{budget.seconds:.0f} seconds are over (--timeout)"
        return None

    def nearly(self) -> str | None:
        """Which limit the call after the next would break, judged by the last call; None while there is more room."""
        budget = self.budget
        if self.turns >= budget.turns - 1:
            return "turns"
        step = self._last.input_tokens + 2 * self._last.output_tokens
        if self._tokens + 2 * step >= budget.tokens:
            return "tokens"
        cost, last = self.cost, self._price(self._last)
        if budget.cost is not None and cost is not None and last is not None and cost + 2 * last >= budget.cost:
            return "money"
        if self._longest and self.seconds + 2 * self._longest >= budget.seconds:
            return "time"
        return None

    def output_limit(self) -> int:
        """How many tokens the next call may write."""
        return max(1024, min(MAX_OUTPUT_TOKENS, self.budget.tokens - self._tokens))

    @property
    def _tokens(self) -> int:
        return self.usage.input_tokens + self.usage.output_tokens
