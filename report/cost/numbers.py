"""What money figures are worked out from: the numbers of a purchase, and draws that never change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

DRAWS = 2048
HOURS_A_YEAR = 8760.0
HOURS_A_WEEK = 168.0
Z975 = 1.959963984540054

Floats = NDArray[numpy.float64]
Range = tuple[float, float, float]
"""Low, best, high."""

INPUTS = (
    "life_years",
    "utilisation",
    "electricity_price",
    "pue",
    "residual_share",
    "host_price",
    "host_watts",
)
FOR_ALL = len(INPUTS)
STREAMS = 4
"""Streams of draws: one for each input, then four for each card (price, watts, own time), then the pairs'."""


@dataclass(frozen=True, slots=True)
class CardNumbers:
    """One offer. Null is unknown; `watts` and `seconds` have an entry for each row of the mix."""

    name: str
    rented: bool
    price: Range | None
    watts: tuple[Range | None, ...]
    board_watts: float | None
    fits: bool
    seconds: tuple[Range | None, ...]
    """Of one unit of the row's work; an other unit of the card is within the range."""


@dataclass(frozen=True, slots=True)
class RowNumbers:
    """One line of the mix: hours a week on the card `hours_on`."""

    name: str
    hours: float


@dataclass(frozen=True, slots=True)
class Numbers:
    """All that a cost depends on. `speed[i][j][k]` is card i's time over card j's on row k."""

    inputs: dict[str, Range]
    limits: dict[str, float | None]
    """budget, cards, slots, watts; null sets none."""
    cards: tuple[CardNumbers, ...]
    rows: tuple[RowNumbers, ...]
    hours_on: int
    speed: tuple[tuple[tuple[Range | None, ...], ...], ...]
    draws: int = DRAWS


@dataclass(frozen=True, slots=True)
class Point:
    """The inputs at one point (scalars) or over all draws (arrays)."""

    life_years: Any
    utilisation: Any
    electricity_price: Any
    pue: Any
    residual_share: Any
    host_price: Any
    host_watts: Any

    @property
    def owning(self) -> Any:
        """What one unit of price costs per hour."""
        return (1 - self.residual_share) / (self.life_years * HOURS_A_YEAR * self.utilisation)

    def running(self, watts: Any) -> Any:
        return (watts + self.host_watts) * self.pue * self.electricity_price / 1000

    def hourly(self, rented: bool, price: Any, watts: Any) -> Any:
        return price if rented else (price + self.host_price) * self.owning + self.running(watts)

    def price_for(self, rented: bool, hourly: Any, watts: Any) -> Any:
        """The price at which an hour costs `hourly`."""
        return hourly if rented else (hourly - self.running(watts)) / self.owning - self.host_price


def uniform(stream: int, draws: int) -> Floats:
    """Numbers between 0 and 1, by a hash of draw and stream: no version of a library draws others."""
    at = numpy.arange(1, draws + 1, dtype=numpy.uint32) * numpy.uint32(0x9E3779B1)
    bits = at ^ numpy.full(draws, (stream + 1) * 0x85EBCA77 & 0xFFFFFFFF, dtype=numpy.uint32)
    bits = (bits ^ bits >> numpy.uint32(16)) * numpy.uint32(0x21F0AAAD)
    bits = (bits ^ bits >> numpy.uint32(15)) * numpy.uint32(0x735A2D97)
    return (numpy.asarray(bits ^ bits >> numpy.uint32(15), dtype=numpy.float64) + 0.5) / 4294967296


def triangular(values: Range, stream: int, draws: int) -> Floats:
    """Draws between low and high with the peak at best."""
    low, best, high = values
    if high == low:
        return numpy.full(draws, best)
    u, span = uniform(stream, draws), high - low
    rising = low + numpy.sqrt(u * span * (best - low))
    falling = high - numpy.sqrt((1 - u) * span * (high - best))
    return numpy.where(u * span < best - low, rising, falling)


def spread(low: float, high: float, stream: int, draws: int) -> Floats:
    """Factors around 1 whose logarithm is normal on each side: `low` and `high` are its 95 % limits."""
    if low == 0 and high == 0:
        return numpy.ones(draws)
    u, v = uniform(stream, draws), uniform(stream + 1, draws)
    z = numpy.sqrt(-2 * numpy.log(u)) * numpy.cos(2 * numpy.pi * v)
    return numpy.asarray(numpy.exp(numpy.where(z < 0, -low, high) * z / Z975))


def summary(draws: Any, best: float) -> Range:
    """Best, with the 2.5 and 97.5 % points of the draws; the range always holds the best value."""
    low, high = numpy.quantile(numpy.asarray(draws), (0.025, 0.975))
    return (min(float(low), best), best, max(float(high), best))
