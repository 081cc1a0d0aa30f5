"""All cases in their groups, the work of several processes, and the one table that they make."""

from __future__ import annotations

import csv
import io
from concurrent.futures import ProcessPoolExecutor

from benchmarks.coverage import families, intervals, purchase, selection, steady, verdicts
from benchmarks.coverage.cases import Case, Row

GROUPS: dict[str, list[Case]] = {
    "Intervals hold the truth": intervals.CASES,
    "All intervals that are read together hold it": families.CASES,
    "A verdict": verdicts.CASES,
    "A buyer's range holds the delivered pair": purchase.CASES,
    "The kind of a trial's step times": steady.CASES,
    "Which runs count": selection.CASES,
}
COLUMNS = (
    "group",
    "scenario",
    "found_percent",
    "standard_error",
    "target_percent",
    "with_caveat_percent",
)
WORKERS = 2
QUICK = 1
"""Pages of a case that only shows that it runs."""


def rows(*, quick: bool = False) -> dict[str, list[Row]]:
    """The row of every case, by group."""
    places = [(group, number) for group, cases in GROUPS.items() for number in range(len(cases))]
    draws = [QUICK if quick else None] * len(places)
    with ProcessPoolExecutor(WORKERS) as pool:
        made = list((map if quick else pool.map)(_row, places, draws))
    by_group: dict[str, list[Row]] = {group: [] for group in GROUPS}
    for (group, _), row in zip(places, made, strict=True):
        by_group[group].append(row)
    return by_group


def _row(place: tuple[str, int], draws: int | None) -> Row:
    group, number = place
    return GROUPS[group][number].row(draws)


def table(by_group: dict[str, list[Row]]) -> str:
    """The rows as comma-separated values, each with the name of its group."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(COLUMNS)
    lines.writerows((group, *row.cells()) for group, made in by_group.items() for row in made)
    return text.getvalue()
