"""What a difference between two systems is worth, by published pairs that differ in nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from harness.record import Model
from report.expected.figures import TIMES, PublishedRow, task_of
from report.expected.specs import FOLDER, csv_rows

FILE = FOLDER / "pairs.csv"
FEWEST_PAIRS = 4
ENDS = (0.05, 0.95)
LAYOUTS = (" NCHW", " channels_last")

SystemDifference = Literal["software", "layout", "memory clock", "display"]


class PublishedPair(Model):
    """Two published figures of one work on one model of card: `after` has the difference, `before` not."""

    difference: SystemDifference
    source: str
    commit: str = ""
    path: str
    work: str
    card: str
    since: int | None = None
    until: int | None = None
    before: Annotated[float, Field(gt=0)]
    after: Annotated[float, Field(gt=0)]
    unit: str

    @property
    def gain(self) -> float:
        """The logarithm of how many times as fast it is after."""
        gain = float(np.log(self.after / self.before))
        return -gain if self.unit in TIMES else gain


@dataclass(frozen=True, slots=True)
class DifferenceSize:
    """`low` and `high` hold nine in ten pairs: shares by which the speed grows; of software, either way."""

    difference: SystemDifference
    low: float
    high: float
    pairs: int
    sources: tuple[str, ...]
    years: tuple[int, int] | None = None
    """The years of the oldest and the newest software of its pairs."""


def read_pairs(root: Path, rows: Iterable[PublishedRow]) -> list[PublishedPair]:
    """Return the pairs of the file and of the tables; raises UserError with the line that is wrong.

    An archive for a site has neither.
    """
    found = csv_rows(root, FILE, PublishedPair) if (root / FILE).exists() else ()
    return [*(pair for _, pair in found), *_in_tables(list(rows))]


def _in_tables(rows: Sequence[PublishedRow]) -> Iterator[PublishedPair]:
    """Yield the pairs of each source: equal works on one card with equal batches."""
    alike: dict[tuple[object, ...], list[PublishedRow]] = {}
    for row in rows:
        if row.batch:
            work = row.work.removesuffix(LAYOUTS[0]).removesuffix(LAYOUTS[1])
            place = (row.source, row.program, work, row.precision, row.batch, row.card, row.unit)
            alike.setdefault(place, []).append(row)
    for found in alike.values():
        for first, second in combinations(sorted(found, key=lambda row: (row.work, row.software)), 2):
            difference = _difference(first, second)
            if difference:
                yield _pair(difference, first, second)


def _difference(first: PublishedRow, second: PublishedRow) -> SystemDifference | None:
    """Return the only difference; null where there is none, or the software is no other release."""
    if first.work == second.work:
        releases = [re.sub(r"[\d.]+\S*", "", row.software) for row in (first, second)]
        return "software" if first.software != second.software and releases[0] == releases[1] else None
    return "layout" if first.software == second.software else None


def _pair(difference: SystemDifference, first: PublishedRow, second: PublishedRow) -> PublishedPair:
    return PublishedPair(
        difference=difference,
        source=first.source,
        commit=first.commit,
        path=first.path,
        work=task_of(first).work,
        card=first.card,
        since=first.year,
        until=second.year,
        before=first.value,
        after=second.value,
        unit=first.unit,
    )


def sizes(pairs: Sequence[PublishedPair]) -> dict[SystemDifference, DifferenceSize]:
    """Return the size of each difference that enough pairs have."""
    found: dict[SystemDifference, DifferenceSize] = {}
    for name in dict.fromkeys(pair.difference for pair in pairs):
        of_it = [pair for pair in pairs if pair.difference == name]
        gains = np.array([pair.gain for pair in of_it])
        if len(of_it) >= FEWEST_PAIRS:
            # Which of two releases is the faster is not known beforehand.
            low, high = np.quantile(np.abs(gains) if name == "software" else gains, ENDS)
            sources = tuple(dict.fromkeys(pair.source.removeprefix("github:") for pair in of_it))
            years = sorted(year for pair in of_it for year in (pair.since, pair.until) if year)
            ends = (years[0], years[-1]) if years else None
            shares = float(np.expm1(low)), float(np.expm1(high))
            found[name] = DifferenceSize(name, *shares, len(of_it), sources, ends)
    return found
