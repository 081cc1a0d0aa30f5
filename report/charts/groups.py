"""What stands in a picture of bars: groups of bars, what is tied, and the words of each."""

from __future__ import annotations

import math
from dataclasses import dataclass

from report.charts.marks import Look
from report.charts.sheet import Words
from report.charts.style import INK, LABEL, NOTE, RED, SOFT, system_colour, width_of


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a value and its range; `text` and `small` stand at its end, in place of what has no value.

    `note` follows the name, `slot` is its colour's, `cells` has a text for each column.
    """

    label: str
    look: Look
    value: float | None = None
    low: float | None = None
    high: float | None = None
    text: str = ""
    small: str = ""
    note: str = ""
    slot: int = 0
    cells: tuple[str, ...] = ()

    @property
    def shown(self) -> float | None:
        """The value, where it can be drawn."""
        return self.value if self.value is not None and math.isfinite(self.value) else None


@dataclass(frozen=True, slots=True)
class Tie:
    """Neighbours of a group without a difference: a bracket with a text, or a word at each name."""

    first: int
    last: int
    text: str
    word: str = "tie"


@dataclass(frozen=True, slots=True)
class Group:
    """Bars under one name; each of `notes` is a line below it."""

    label: str
    bars: tuple[Bar, ...]
    notes: tuple[str, ...] = ()
    ties: tuple[Tie, ...] = ()


def reach(bar: Bar, most: float) -> float:
    """How far a bar and its range reach, at most so far."""
    value = bar.shown or 0.0
    return max(value, min(bar.high, most)) if bar.high is not None else value


def is_firm(bar: Bar) -> bool:
    """Whether it was measured, or should have been: its words are bold."""
    return bar.look not in ("published", "expected")


def name_words(bar: Bar) -> list[Words]:
    """Its name and note."""
    colour = INK if is_firm(bar) else SOFT
    return [Words(bar.label, LABEL, is_firm(bar), colour), *([Words(bar.note)] if bar.note else [])]


def figure_words(bar: Bar) -> list[Words]:
    """What stands at a bar's end, or in its place."""
    if bar.look == "failed":
        return [Words("✕", LABEL, False, RED), Words(bar.text, LABEL, True, INK), Words(bar.small)]
    if bar.look == "missing":
        return [Words(bar.text, LABEL, False, system_colour(bar.slot))]
    words = [Words(bar.text, LABEL, is_firm(bar), INK)] if bar.text else []
    return [*words, *([Words(bar.small)] if bar.small else [])]


def heading_words(group: Group) -> list[Words]:
    """Its name and notes on one line."""
    return [Words(group.label, LABEL, True, INK), *map(Words, group.notes)]


def group_width(group: Group) -> float:
    """Of its name and notes below each other, px."""
    return max([width_of(group.label, LABEL, True), *(width_of(note, NOTE) for note in group.notes)])
