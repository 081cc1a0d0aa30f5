"""Sides that differ in one factor: a ratio with its range for each work and pair of sides, and the places.

A contrast needs no settled window: what an unsettled start does to both sides alike cancels. So every run of
a side counts that is not invalid, and what the runs cannot show is assumed, by name and size.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from statistics import geometric_mean
from typing import Literal, NamedTuple

from harness.record import Factor
from report.compare.cells import Cell, cell_of
from report.compare.ratio import (
    Speed,
    WorkRatio,
    hour_spread,
    speed_known,
    terms_between,
    work_ratio,
)
from report.expected.software_effect import SoftwareEffect
from report.stats.contrast import Assumption, order_shown
from report.stats.intervals import Interval
from report.trials.factors import FACTORS, FactorRule
from report.trials.key import MEASURED_FIELDS, Key, Pairs, PartialKey, Term, grouped_by, without_fields
from report.trials.trial import TrialResult

TERMS = ("data_mode", "weights", "weights_sha256", "layout", "profile")
"""Fields that may differ besides the factor: each is named beside the figure."""

MOST_PLACED = 100
"""Among more sides no range that holds for all pairs together shows a place."""


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """One side by its values of the factor."""

    values: Pairs
    machine: str
    card: str
    own: bool
    """Whether it is of what was asked about, and not a record beside it."""
    cells: tuple[Cell, ...] = field(compare=False)
    hours: Assumption | None = None
    """How far its machine's blocks of time lie apart, by the work of the most; null below three."""


@dataclass(frozen=True, slots=True)
class MeanRatio:
    """How many times as fast one side is as another in several works; `n` are the fewest processes."""

    estimate: float
    interval: Interval | None
    n: tuple[int, int]


class Places(NamedTuple):
    """The first and the last place that a side's ranges allow."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ComparedWork:
    """One work: its key less the factor, and each side's cell, in the order of the sides."""

    key: Key
    cells: tuple[Cell | None, ...]
    speed: Speed
    placed: tuple[int, ...]
    """The places among the sides of those with several processes that do not only emulate the precision."""


@dataclass(frozen=True, slots=True)
class MissingFigure:
    """Why a side has no figure of a work."""

    side: ComparedSide
    work: ComparedWork
    reason: Literal["failed", "invalid", "other-work", "not-measured"]
    failure: str = ""
    terms: tuple[Term, ...] = ()
    """What the nearest work of that side has otherwise."""


@dataclass(frozen=True)
class Comparison:
    """Sides and works; the first side is what the others are over."""

    factor: Factor
    sides: tuple[ComparedSide, ...]
    works: tuple[ComparedWork, ...]
    missing: tuple[MissingFigure, ...]
    software: SoftwareEffect | None = None

    @cached_property
    def ratios(self) -> tuple[WorkRatio, ...]:
        """Each side over the first that has the work, work by work."""
        return tuple(
            ratio
            for work in self.works
            for known in [[at for at, cell in enumerate(work.cells) if cell]]
            for at in known[1:]
            if (ratio := self.ratio(work, at, known[0]))
        )

    def ratio(
        self, work: ComparedWork, of: int, over: int, comparisons: int | None = None
    ) -> WorkRatio | None:
        """Return one side over another, by their places among the sides; null where one has no figure.

        The level holds for all `comparisons` together: if null for all pairs of a work where the data choose
        which side leads, for this pair alone where the sides were asked for in an order.
        """
        first, second = work.cells[of], work.cells[over]
        if first is None or second is None:
            return None
        asked = FACTORS[self.factor].order is not None
        comparisons = comparisons or (1 if asked else _count_pairs(work.placed))
        terms = terms_between(first, second, _free_fields(FACTORS[self.factor]), self.software)
        hours = self.sides[of].hours, self.sides[over].hours
        twins = self.factor == "stack"
        return work_ratio(first, second, work.speed, terms, hours, comparisons=comparisons, twins=twins)

    def mean_of_works(self, of: int, over: int) -> MeanRatio | None:
        """Return one side over another in all works that both did; null where they share none.

        It is the geometric mean, and its ends are those of the works' ends, as if all erred together: exact
        for one work, wide for more.
        """
        return mean_ratio([found for work in self.works if (found := self.ratio(work, of, over))])

    @cached_property
    def places(self) -> tuple[Places | None, ...]:
        """Each side's places in the works that the most sides did alike, all pairs together.

        Null of a side without a range in them.
        """
        alike = Counter(work.placed for work in self.works)
        ranged = max(alike, key=lambda placed: (len(placed), alike[placed]), default=())
        decide = tuple(work for work in self.works if work.placed == ranged)
        if not 1 < len(ranged) <= MOST_PLACED:
            return (None,) * len(self.sides)
        comparisons = _count_pairs(ranged)
        before, behind = [0] * len(self.sides), [0] * len(self.sides)
        for of, over in combinations(ranged, 2):
            found = [self.ratio(work, of, over, comparisons) for work in decide]
            mean = mean_ratio([ratio for ratio in found if ratio])
            order = order_shown(mean.interval, min(mean.n)) if mean else "not-shown"
            if order in ("faster", "slower"):
                fast, slow = (of, over) if order == "faster" else (over, of)
                before[slow], behind[fast] = before[slow] + 1, behind[fast] + 1
        spans = {at: Places(1 + before[at], len(ranged) - behind[at]) for at in ranged}
        return tuple(spans.get(at) for at in range(len(self.sides)))

    @property
    def group_starts(self) -> tuple[int, ...]:
        """Return the first place of each group of sides whose places do not overlap another's."""
        found, last = [], 0
        for span in sorted(filter(None, self.places)):
            found += [span.first] if span.first > last else []
            last = max(last, span.last)
        return tuple(found)


def mean_ratio(ratios: Sequence[WorkRatio]) -> MeanRatio | None:
    """Return the geometric mean of ratios and of their ends; null of none, no ends where one has none."""
    if not ratios:
        return None
    best = geometric_mean([ratio.estimate for ratio in ratios])
    n = min(ratio.n[0] for ratio in ratios), min(ratio.n[1] for ratio in ratios)
    ends = [ratio.interval for ratio in ratios if ratio.interval]
    if len(ends) < len(ratios):
        return MeanRatio(best, None, n)
    low, high = geometric_mean([each.low for each in ends]), geometric_mean([each.high for each in ends])
    return MeanRatio(best, replace(ends[0], low=low, estimate=best, high=high), n)


def _count_pairs(sides: Sized) -> int:
    return max(math.comb(len(sides), 2), 1)


def is_emulated(cell: Cell) -> bool:
    """Whether a processor only emulates the precision: its figure is no part of an order."""
    known = cell.trials[0].record.machine.cpu.native_16_bit
    sixteen = next((name for name in ("bf16", "fp16") if name in cell.key.precision), None)
    on_cpu = cell.trials[0].environment.device == "cpu"
    return on_cpu and known is not None and sixteen is not None and sixteen not in known


def _free_fields(rule: FactorRule) -> tuple[str, ...]:
    names = (name.removeprefix("options.") for name in rule.free)
    return (*names, *rule.explains, "data_sha256")


def compare_sides(
    factor: Factor,
    cells: Sequence[Cell],
    others: Sequence[Cell] = (),
    *,
    failed: Sequence[TrialResult] = (),
    software: SoftwareEffect | None = None,
    rule: FactorRule | None = None,
) -> Comparison:
    """Compare the sides of one factor by every work of `cells`; `others` join where they did the same.

    Of a side and work the newest cell counts, and of works that differ in terms alone the nearest one. A
    `rule` makes the sides in place of the factor's own.
    """
    rule = rule or FACTORS[factor]
    own, beside = _split_cells(cells, rule), _split_cells(others, rule)
    rows = _work_rows([cell for cell in own if _has_speed(cell)], rule)
    _join_others([cell for cell in beside if _has_speed(cell)], rows, rule)
    asked = list(dict.fromkeys(map(rule.values, (cell.trials[0] for cell in own))))
    asked += [side for side in dict.fromkeys(map(rule.values, failed)) if side not in asked]
    if rule.order:
        asked.sort(key=rule.order)
    joined = dict.fromkeys(side for row in rows for side in row)
    places = [*asked, *(side for side in joined if side not in asked)]
    by_side = grouped_by((*own, *beside), lambda cell: rule.values(cell.trials[0]))
    sides = tuple(
        _compared_side(side, by_side.get(side, []), own=side in asked, failed=failed, rule=rule)
        for side in places
    )
    works = tuple(_compared_work([row.get(side) for side in places], rule) for row in rows)
    missing = tuple(_missing_figures(rule, sides, works, failed))
    return Comparison(factor, sides, works, missing, software)


def _compared_work(cells: Sequence[Cell | None], rule: FactorRule) -> ComparedWork:
    known = [cell for cell in cells if cell]
    placed = (at for at, cell in enumerate(cells) if cell and _is_repeated(cell) and not is_emulated(cell))
    return ComparedWork(
        without_fields(known[0].key, *rule.free), tuple(cells), speed_known(known), tuple(placed)
    )


def _is_repeated(cell: Cell) -> bool:
    return len(cell.all_runs.values) > 1


def _split_cells(cells: Iterable[Cell], rule: FactorRule) -> list[Cell]:
    """Cells of one side each."""
    if not rule.splits:
        return list(cells)
    return [
        cell_of(tuple(trials)) if len(parts) > 1 else cell
        for cell in cells
        for parts in [grouped_by(cell.trials, rule.values)]
        for trials in parts.values()
    ]


def _has_speed(cell: Cell) -> bool:
    return cell.verdict != "invalid" and bool(cell.all_runs.values)


def _comparable_key(cell: Cell, rule: FactorRule) -> Hashable:
    """What two figures must share so that their ratio is true."""
    free = (*rule.free, *TERMS)
    if "precision" in rule.free and cell.key.protocol.startswith("published"):
        free = (*free, "batch_size")
    data = None if "data_mode" in rule.free else cell.key.data_sha256
    within = tuple(getattr(cell.trials[0], name) for name in rule.within)
    return replace(without_fields(cell.key, *free), data_sha256=data), within


def _work_key(cell: Cell, rule: FactorRule) -> Hashable:
    return _comparable_key(cell, rule), without_fields(cell.key, *rule.free, "data_sha256")


def _equal_key(cell: Cell, rule: FactorRule) -> Hashable:
    return without_fields(cell.key, *rule.free), without_fields(cell.length, *rule.free)


def _age_of(cell: Cell) -> tuple[Hashable, ...]:
    """Sorts cells so that the newest comes last; one of repeats goes before a single run."""
    return _is_repeated(cell), *cell.turn


_Row = dict[Pairs, Cell]


def _work_rows(cells: Iterable[Cell], rule: FactorRule) -> list[_Row]:
    """Return a row for each work: cells that differ in the factor alone, then others that differ in terms."""
    rows: list[_Row] = []
    for alike in grouped_by(cells, lambda cell: _comparable_key(cell, rule)).values():
        found: list[_Row] = []
        ordered = sorted(alike, key=_age_of)
        equal = [
            {rule.values(cell.trials[0]): cell for cell in same}
            for same in grouped_by(ordered, lambda cell: _equal_key(cell, rule)).values()
        ]
        for members in sorted(equal, key=len, reverse=True):
            row = next((row for row in found if not row.keys() & members.keys()), None)
            if row is None:
                found.append(members)
            else:
                row.update(members)
        rows += found
    return rows


def _join_others(others: Iterable[Cell], rows: Sequence[_Row], rule: FactorRule) -> None:
    """Add the newest cell of each other side to each row of the same work, else of the nearest.

    Of works that differ in terms alone, one whose window alone is another is nearer than others, which join
    one row.
    """
    left = sorted(others, key=_age_of, reverse=True)
    for key_of, most in ((_equal_key, len(rows)), (_work_key, len(rows)), (_comparable_key, 1)):
        rows_of: dict[Hashable, list[_Row]] = {}
        for row in rows:
            for key in {key_of(cell, rule) for cell in row.values()}:
                rows_of.setdefault(key, []).append(row)
        joined = [(cell, rows_of.get(key_of(cell, rule), [])) for cell in left]
        for cell, found in joined:
            for row in found[:most]:
                row.setdefault(rule.values(cell.trials[0]), cell)
        left = [cell for cell, found in joined if not found]


def _compared_side(
    values: Pairs, cells: Sequence[Cell], *, own: bool, failed: Sequence[TrialResult], rule: FactorRule
) -> ComparedSide:
    trials = [cell.trials[0] for cell in cells] or [each for each in failed if rule.values(each) == values]
    place = trials[0].machine, trials[0].device_model
    return ComparedSide(values, *place, own, tuple(cells), hour_spread(cells))


def _missing_figures(
    rule: FactorRule,
    sides: Sequence[ComparedSide],
    works: Sequence[ComparedWork],
    failed: Sequence[TrialResult],
) -> Iterator[MissingFigure]:
    """Yield each failure, each side without a ratio, and one side of each work without a ratio."""
    compared = {at for work in works if _count_sides(work) > 1 for at, cell in enumerate(work.cells) if cell}
    alone: set[int] = set()
    for work in works:
        told = _count_sides(work) > 1
        for at, side in enumerate(sides):
            if work.cells[at] or not side.own:
                continue
            found = _missing_figure(rule, side, work, failed)
            if found.reason in ("failed", "invalid") or not told or at not in compared | alone:
                told = True
                alone.add(at)
                yield found


def _count_sides(work: ComparedWork) -> int:
    return sum(cell is not None for cell in work.cells)


def _missing_figure(
    rule: FactorRule, side: ComparedSide, work: ComparedWork, failed: Sequence[TrialResult]
) -> MissingFigure:
    free = (*rule.free, *TERMS, *MEASURED_FIELDS)
    wanted = without_fields(work.key, *free)
    for trial in failed:
        if rule.values(trial) == side.values and without_fields(trial.key, *free) == wanted and trial.failure:
            return MissingFigure(side, work, "failed", trial.failure.reason)
    if any(without_fields(cell.key, *free) == wanted for cell in side.cells if not _has_speed(cell)):
        return MissingFigure(side, work, "invalid")
    there = next(cell for cell in work.cells if cell)
    # Another driver or version is no reason that a work was not done.
    asked = PartialKey.of(there.key).less(*_free_fields(rule))
    near = [
        asked.differences(PartialKey.of(cell.key).less(*_free_fields(rule)))
        or terms_between(cell, there, _free_fields(rule))
        for cell in side.cells
        if (cell.key.workload, cell.key.model) == (there.key.workload, there.key.model)
    ]
    nearest = min(near, key=len, default=())
    return MissingFigure(side, work, "other-work" if nearest else "not-measured", terms=nearest)
