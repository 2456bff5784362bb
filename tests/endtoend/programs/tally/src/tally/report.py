"""Consumption per meter."""

from __future__ import annotations

from collections.abc import Iterable

from .readings import Reading


def by_meter(readings: Iterable[Reading]) -> dict[str, list[Reading]]:
    """The readings of each meter, in the order of their days."""
    found: dict[str, list[Reading]] = {}
    for reading in sorted(readings):
        found.setdefault(reading.meter, []).append(reading)
    return found


def average(readings: list[Reading]) -> float:
    """The average consumption between two readings."""
    return (readings[-1].value - readings[0].value) / (len(readings) - 1)


def report(readings: Iterable[Reading]) -> list[str]:
    """One line for each meter."""
    return [f"{meter} {average(found):.1f}" for meter, found in by_meter(readings).items()]
