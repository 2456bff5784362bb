"""What may be used, what has been used, and when the model is told."""

from dap_agent.agent.budget import MAX_OUTPUT_TOKENS, Budget, Meter
from dap_agent.models.base import Usage


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def free(usage: Usage) -> float | None:
    return 0.0


def test_nothing_is_exhausted_at_the_start() -> None:
    meter = Meter(Budget(), free)
    assert meter.exhausted() is None
    assert meter.nearly() is None
    assert meter.output_limit() == MAX_OUTPUT_TOKENS


def test_turns() -> None:
    meter = Meter(Budget(turns=2), free)
    assert meter.nearly() is None
    meter.add(Usage(1, 1), 0)
    assert (meter.exhausted(), meter.nearly()) == (None, "turns")
    meter.add(Usage(1, 1), 0)
    assert meter.exhausted() == "all 2 model calls are used (--max-turns)"


def test_a_single_turn_is_the_last_one_at_once() -> None:
    assert Meter(Budget(turns=1), free).nearly() == "turns"


def test_tokens_judged_by_the_last_call() -> None:
    meter = Meter(Budget(tokens=9_000), free)
    meter.add(Usage(2_000, 100), 0)
    assert meter.nearly() is None
    meter.add(Usage(2_300, 100), 0)
    assert (meter.exhausted(), meter.nearly()) == (None, "tokens")
    meter.add(Usage(6_000, 100), 0)
    assert meter.exhausted() == "10600 of 9000 tokens are used (--max-tokens)"


def test_the_output_limit_shrinks_with_the_tokens() -> None:
    meter = Meter(Budget(tokens=10_000), free)
    meter.add(Usage(5_000, 1_000), 0)
    assert meter.output_limit() == 4_000
    meter.add(Usage(3_900, 0), 0)
    assert meter.output_limit() == 1024


def test_money() -> None:
    meter = Meter(Budget(cost=1.0), lambda usage: usage.input_tokens / 1000)
    meter.add(Usage(200, 0), 0)
    assert meter.nearly() is None
    meter.add(Usage(300, 0), 0)
    assert (meter.cost, meter.exhausted(), meter.nearly()) == (0.5, None, "money")
    meter.add(Usage(500, 0), 0)
    assert meter.exhausted() == "$1.00 of $1.00 are spent (--max-cost)"


def test_money_is_no_limit_where_the_price_is_unknown_or_none_is_set() -> None:
    for meter in (Meter(Budget(cost=0.01), lambda usage: None), Meter(Budget(cost=None), lambda usage: 100.0)):
        meter.add(Usage(1000, 1000), 0)
        assert (meter.exhausted(), meter.nearly()) == (None, None)


def test_seconds() -> None:
    clock = Clock()
    meter = Meter(Budget(seconds=100), free, clock)
    clock.now = 30
    meter.add(Usage(1, 1), 30)
    assert (meter.nearly(), meter.seconds_left) == (None, 70)
    clock.now = 45
    meter.add(Usage(1, 1), 15)
    assert (meter.exhausted(), meter.nearly()) == (None, "time")
    clock.now = 101
    assert meter.exhausted() == "100 seconds are over (--timeout)"
    assert meter.seconds_left == 0
