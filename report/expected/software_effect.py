"""What another release of the software is worth, by published pairs that differ in nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from harness.record import Model
from report.expected.figures import PublishedRow, read_tables
from report.expected.specs import FOLDER, csv_rows

FILE = FOLDER / "pairs.csv"
FEWEST_PAIRS = 4
ENDS = (0.05, 0.95)


class PublishedPair(Model):
    """Two published figures of one work on one model of card, `after` with the later release."""

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
    def change(self) -> float:
        """How many times as fast the faster one is, as a logarithm: which that is, is unknown before."""
        return float(abs(np.log(self.after / self.before)))


@dataclass(frozen=True, slots=True)
class SoftwareEffect:
    """`low` and `high` hold nine in ten pairs: shares by which the speed changes, either way."""

    low: float
    high: float
    pairs: int
    years: tuple[int, int] | None = None
    """The years of the oldest and the newest software of its pairs."""


def read_software_effect(root: Path) -> SoftwareEffect | None:
    """Return the effect by a clone's tables; null without tables, as in an archive for a site."""
    if not (root / FOLDER).is_dir():
        return None
    return software_effect(read_pairs(root, [row for table in read_tables(root).values() for row in table]))


def read_pairs(root: Path, rows: Iterable[PublishedRow]) -> list[PublishedPair]:
    """Return the pairs of the file and of the tables; raises UserError with the line that is wrong."""
    found = csv_rows(root, FILE, PublishedPair) if (root / FILE).exists() else ()
    return [*(pair for _, pair in found), *_pairs_in_tables(rows)]


def _pairs_in_tables(rows: Iterable[PublishedRow]) -> Iterator[PublishedPair]:
    """Yield the pairs of each source: equal works on one card with equal batches, by two releases."""
    alike: dict[tuple[object, ...], list[PublishedRow]] = {}
    for row in (row for row in rows if row.batch):
        place = (row.source, row.program, row.work, row.precision, row.batch, row.card, row.unit)
        alike.setdefault(place, []).append(row)
    for found in alike.values():
        for first, second in combinations(sorted(found, key=lambda row: row.software), 2):
            if first.software != second.software and _without_release(first) == _without_release(second):
                yield PublishedPair(
                    **first.model_dump(include={"source", "commit", "path", "work", "card", "unit"}),
                    since=first.year,
                    until=second.year,
                    before=first.value,
                    after=second.value,
                )


def _without_release(row: PublishedRow) -> str:
    return re.sub(r"[\d.]+\S*", "", row.software)


def software_effect(pairs: Sequence[PublishedPair]) -> SoftwareEffect | None:
    """Return the effect that so many pairs show; null where they are too few."""
    if len(pairs) < FEWEST_PAIRS:
        return None
    low, high = np.expm1(np.quantile([pair.change for pair in pairs], ENDS))
    years = sorted(year for pair in pairs for year in (pair.since, pair.until) if year)
    return SoftwareEffect(float(low), float(high), len(pairs), (years[0], years[-1]) if years else None)
