"""What a token costs: a small dated table of well-known models.

Prices are list prices in US dollars per million tokens, for prompts of ordinary length (both vendors charge more per
token above 100k to 272k prompt tokens for some models), without batch, priority or regional terms. `DAP_AGENT_PRICE`
("INPUT,OUTPUT" or "INPUT,OUTPUT,CACHED", dollars per million tokens) goes before the table.
"""

import os
import re
from collections.abc import Mapping

from dap_agent.models.base import ModelError, Usage

AS_OF = "2026-11"
VARIABLE = "DAP_AGENT_PRICE"
_CACHE_WRITE = 1.25  # both vendors: writing the default cache costs a quarter more than plain input

# model: (input, output, cached input)
_TABLE: dict[str, tuple[float, float, float]] = {
    "claude-fable-5-1": (10, 50, 0.25),
    "claude-fable-5": (10, 50, 1),
    "claude-opus-5-5": (4, 20, 0.2),
    "claude-opus-5": (5, 25, 0.5),
    "claude-opus-4-8": (5, 25, 0.5),
    "claude-opus-4-7": (5, 25, 0.5),
    "claude-opus-4-6": (5, 25, 0.5),
    "claude-opus-4-5": (5, 25, 0.5),
    "claude-sonnet-5-5": (2, 10, 0.1),
    "claude-sonnet-5": (2, 10, 0.2),
    "claude-sonnet-4-6": (3, 15, 0.3),
    "claude-sonnet-4-5": (3, 15, 0.3),
    "claude-haiku-5-5": (0.1, 0.5, 0.01),
    "claude-haiku-4-5": (1, 5, 0.1),
    "gpt-6.2-astra": (8, 40, 0.4),
    "gpt-6.2-sol": (2, 10, 0.1),
    "gpt-6.1-sol": (2, 10, 0.1),
    "gpt-6.1-terra": (1, 5, 0.05),
    "gpt-6-astra": (10, 50, 1),
    "gpt-6-sol": (2, 10, 0.2),
    "gpt-6-luna": (0.1, 0.5, 0.01),
    "gpt-5.6-terra": (2, 12, 0.2),
    "gpt-5.6-luna": (0.2, 1.2, 0.02),
    "gpt-5.5": (5, 30, 0.5),
    "gpt-5.4": (2.5, 15, 0.25),
    "gpt-5.4-mini": (0.75, 4.5, 0.075),
    "gpt-5": (1.25, 10, 0.125),
    "gpt-5-mini": (0.25, 2, 0.025),
    "gpt-4.1": (2, 8, 0.5),
    "gpt-4.1-mini": (0.4, 1.6, 0.1),
    "gpt-4o": (2.5, 10, 1.25),
    "gpt-4o-mini": (0.15, 0.6, 0.075),
}
_DATE = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2})$")


def from_environment(environ: Mapping[str, str] | None = None) -> tuple[float, float, float] | None:
    """The price set by `DAP_AGENT_PRICE`, None if it is not set.

    Raises:
        ModelError: the variable cannot be read as two or three numbers that are not negative.
    """
    text = (os.environ if environ is None else environ).get(VARIABLE, "").strip()
    if not text:
        return None
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in (2, 3) or not all(0 <= number < float("inf") for number in numbers):
        raise ModelError(
            f"{VARIABLE} is {text!r}, which is no price: write INPUT,OUTPUT or INPUT,OUTPUT,CACHED in US dollars per "
            "million tokens, for example 3,15,0.3.",
            "bad-request",
        )
    return numbers[0], numbers[1], numbers[-1] if len(numbers) == 3 else numbers[0]


def price(model: str) -> tuple[float, float, float] | None:
    """(input, output, cached input) of *model* in US dollars per million tokens, None if unknown.

    A date at the end of the name (`-20250929`, `-2025-08-07`) is ignored.
    """
    return from_environment() or _TABLE.get(model) or _TABLE.get(_DATE.sub("", model))


def cost(model: str, usage: Usage) -> float | None:
    """US dollars for *usage* of *model*, None if its price is unknown."""
    known = price(model)
    if known is None:
        return None
    per_input, per_output, per_cached = known
    plain = max(0, usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens)
    dollars = (
        plain * per_input
        + usage.cached_tokens * per_cached
        + usage.cache_write_tokens * per_input * _CACHE_WRITE
        + usage.output_tokens * per_output
    )
    return dollars / 1_000_000
