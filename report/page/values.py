"""What the templates are given: quantities with their ranges, systems, chips and pictures; no sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from report.buying.cost_inputs import Range
from report.charts.drawing import Chart
from report.charts.marks import Look
from report.compare.cells import Cell, Ratio
from report.compare.figures import Figure
from report.compare.pairs import SpeedRange
from report.stats.intervals import Interval
from report.text import THIS

Measured = Figure | Ratio | Interval | Range | float | None

ChipKind = Literal["stop", "care", "good"]
"""Forbids a use, asks for care, or is as it should be."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in `unit` with its 95 % range; null where it is not known.

    `unit` is a name that the filter `value` writes: seconds, ratio, bytes, share, count, hours, or a unit
    that stands behind the number as it is ('images/s', 'EUR').
    """

    value: float | None
    unit: str
    low: float | None = None
    high: float | None = None
    tied: bool = False
    """Whether its range shows no difference."""
    best: bool = False
    """Whether it is the best of its row."""

    def __bool__(self) -> bool:
        """Whether it is known."""
        return self.value is not None


@dataclass(frozen=True, slots=True)
class System:
    """A card in a machine as the page calls it; `slot` is its colour in every picture and table head."""

    machine: str
    card: str
    name: str
    slot: int
    own: bool

    @property
    def look(self) -> Look:
        """Of a bar of what was ranked on it."""
        return "own" if self.own else "other"

    @property
    def title(self) -> str:
        """Its name in a key, which says which one is this machine."""
        return f"{THIS}, {self.name}" if self.own and self.name != THIS else self.name


@dataclass(frozen=True, slots=True)
class Chip:
    """What a reader must know before believing the headline; worded by `name` in the template."""

    kind: ChipKind
    name: str
    anchor: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Headline:
    """The first sentence: its state, which the template words, and what stands in it."""

    state: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Picture:
    """A chart with a name of its own on the page, and what it shows for those who cannot see it."""

    name: str
    chart: Chart
    alt: str
    paper: bool = False
    """Whether it has a layout for paper, too, as page one's has."""


def quantity(of: Measured, unit: str = "ratio", *, best: bool = False) -> Quantity:
    """A value with its range; without one where it has none, or one without width."""
    value, low, high = _with_ends(of)
    if low is None or high is None or low == high:
        return Quantity(value, unit, best=best)
    return Quantity(value, unit, low, high, tied=unit == "ratio" and low <= 1 <= high, best=best)


def _with_ends(of: Measured) -> tuple[float | None, float | None, float | None]:
    if isinstance(of, tuple):
        low, value, high = of
        return value, low, high
    if isinstance(of, Interval):
        return of.estimate, of.low, of.high
    if isinstance(of, Figure | Ratio):
        mean = of.mean if isinstance(of, Figure) else of.estimate
        return mean, of.interval.low if of.interval else None, of.interval.high if of.interval else None
    return of, None, None


def between(best: float | None, span: SpeedRange | Interval | None, unit: str = "ratio") -> Quantity:
    """A value in a range, such as a ratio of speeds."""
    return quantity((span.low, best, span.high) if span and best is not None else best, unit)


def rate_unit(cell: Cell) -> str:
    """'images/s'"""
    return f"{cell.trials[0].sample_unit}s/s"


def rate(cell: Cell) -> Quantity:
    """Samples a second with the range of their mean."""
    return quantity(cell.throughput, rate_unit(cell))
