"""What the templates are given: quantities with their ranges, systems, chips and pictures; no sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from report.charts.drawing import Chart
from report.compare.cells import Ratio
from report.compare.figures import Figure

ChipKind = Literal["stop", "care", "good"]
"""Forbids a use, asks for care, or is as it should be."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in `unit` with its 95 % range; null where it is not known.

    `unit` is a name that the filter `quantity` writes: seconds, ratio, bytes, share, count, hours, or a unit
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


@dataclass(frozen=True, slots=True)
class System:
    """A card in a machine as the page calls it; `slot` is its colour in every picture and table head."""

    machine: str
    card: str
    name: str
    slot: int
    own: bool


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


@dataclass(frozen=True, slots=True)
class Command:
    """A line to type, and how long it takes; null where that is not known."""

    line: str
    seconds: float | None = None


def of_figure(figure: Figure, unit: str) -> Quantity:
    """A cell's figure with the interval of its mean."""
    interval = figure.interval
    return Quantity(
        figure.mean, unit, interval.low if interval else None, interval.high if interval else None
    )


def of_ratio(ratio: Ratio | None) -> Quantity:
    """A ratio with its interval, and whether that shows no difference."""
    if ratio is None:
        return Quantity(None, "ratio")
    interval = ratio.interval
    low, high = (interval.low, interval.high) if interval else (None, None)
    return Quantity(ratio.estimate, "ratio", low, high, tied=bool(ratio.tied))
