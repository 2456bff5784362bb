"""Readings as the meters' gateways export them: date;meter;value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Reading(NamedTuple):
    """What a meter showed on a day, in kWh."""

    day: str
    meter: str
    value: float


def parse_value(text: str) -> float:
    """The value of a reading."""
    return float(text.replace(",", "."))


def read(lines: Iterable[str]) -> Iterator[Reading]:
    """The readings in *lines*; blank lines and comments are left out."""
    for line in lines:
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        day, meter, value = line.split(";")
        yield Reading(day, meter, parse_value(value))
