"""Sides that differ in one factor: a ratio with its range for each work and pair of sides, and the places.

A contrast needs no settled window: what an unsettled start does to both sides alike cancels. So every run of
a side counts that is not invalid, and what the runs cannot show is assumed, by name and size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from statistics import geometric_mean
from types import MappingProxyType
from typing import Literal, NamedTuple

from harness.record import Factor
from report.compare.cells import Cell, cell_of, side_by_side
from report.compare.key import MEASURED_FIELDS
from report.compare.work import Term, terms_between
from report.expected.sizes import DifferenceSize, SystemDifference
from report.stats.contrast import Assumption, SideTerms, assumptions, contrast_interval
from report.stats.intervals import Interval
from report.trials.factors import FACTORS, FactorRule
from report.trials.key import PARALLEL, Key, Pairs, grouped_by, without
from report.trials.trial import TrialResult

Order = Literal["faster", "slower", "equal", "not-shown", "counts-only"]
"""What may be said of the first side: `counts-only` where it has no range, or fewer than three processes."""

LEAST_PROCESSES = 3
"""So many of each side are needed before an order is said."""
EQUAL = 1.05
"""Two sides are equal where their whole range lies between this and its inverse."""

NINE_IN_TEN = 1.645
"""Standard deviations within which nine in ten of a normal distribution lie."""

TERMS = ("data_mode", "weights", "weights_sha256", "layout", "profile")
"""Fields that may differ besides the factor: each is named beside the figure."""


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """One side by its values of the factor."""

    values: Pairs
    machine: str
    machine_label: str
    card: str
    own: bool
    """Whether it is of what was asked about, and not a record beside it."""
    cells: tuple[Cell, ...] = field(compare=False)


class Places(NamedTuple):
    """The first and the last place that a side's ranges allow."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ComparedWork:
    """One work: its key less the factor, and each side's cell, in the order of the sides."""

    key: Key
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True, slots=True)
class WorkRatio:
    """How many times as fast one cell trains a work as another.

    It is of samples per second; of seconds where both ran the whole protocol. `n` counts processes.
    """

    of: Cell
    over: Cell
    quantity: Literal["throughput", "seconds"]
    estimate: float
    interval: Interval | None
    n: tuple[int, int]
    terms: tuple[Term, ...]
    """In what the sides differ besides the factor."""
    assumed: tuple[Assumption, ...]

    @property
    def order(self) -> Order:
        """Return what may be said of `of`."""
        return order(self.interval, self.n)

    @property
    def inverse(self) -> WorkRatio:
        """Return `over` against `of`."""
        ends = self.interval
        if ends is not None:
            ends = replace(ends, low=1 / ends.high, estimate=1 / ends.estimate, high=1 / ends.low)
        terms = tuple(replace(term, of=term.over, over=term.of) for term in self.terms)
        return replace(
            self,
            of=self.over,
            over=self.of,
            estimate=1 / self.estimate,
            interval=ends,
            n=self.n[::-1],
            terms=terms,
        )


def order(ends: Interval | None, n: tuple[int, ...]) -> Order:
    """Return what a range of so many processes a side shows."""
    if ends is None:
        return "counts-only"
    if ends.includes(1.0):
        return "equal" if ends.low >= 1 / EQUAL and ends.high <= EQUAL else "not-shown"
    if min(n) < LEAST_PROCESSES:
        return "counts-only"
    return "faster" if ends.low > 1 else "slower"


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
    sizes: Mapping[SystemDifference, DifferenceSize]

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

    def ratio(self, work: ComparedWork, of: int, over: int) -> WorkRatio | None:
        """Return one side over another, by their places among the sides; null where one has no figure.

        Where the data choose which side leads, the level holds for all pairs of a work together.
        """
        comparisons = 1 if FACTORS[self.factor].order else _pairs(work.cells)
        return self._ratio(work, of, over, comparisons)

    def _ratio(self, work: ComparedWork, of: int, over: int, comparisons: int) -> WorkRatio | None:
        first, second = work.cells[of], work.cells[over]
        if first is None or second is None:
            return None
        terms = terms_between(first, second, _free(self.factor), self.sizes)
        return _contrast(first, second, terms, comparisons, by_repeat=self.factor == "stack")

    def places(self, work: ComparedWork) -> tuple[Places | None, ...]:
        """Return each side's places in a work, all pairs together; null of one without a range."""
        ranged = [at for at, cell in enumerate(work.cells) if cell and _repeated(cell) and not emulated(cell)]
        comparisons = _pairs(work.cells)

        def faster(of: int, over: int) -> Order:
            ratio = self._ratio(work, of, over, comparisons)
            return ratio.order if ratio else "counts-only"

        return _spans(len(self.sides), ranged, faster)


def _spans(
    sides: int, ranged: Sequence[int], order_of: Callable[[int, int], Order]
) -> tuple[Places | None, ...]:
    before, behind = [0] * sides, [0] * sides
    for of, over in combinations(ranged, 2):
        found = order_of(of, over)
        if found in ("faster", "slower"):
            fast, slow = (of, over) if found == "faster" else (over, of)
            before[slow] += 1
            behind[fast] += 1
    spans = {at: Places(1 + before[at], len(ranged) - behind[at]) for at in ranged}
    return tuple(spans.get(at) for at in range(sides))


def _pairs(cells: Iterable[Cell | None]) -> int:
    return max(math.comb(sum(bool(cell and _repeated(cell)) for cell in cells), 2), 1)


def _repeated(cell: Cell) -> bool:
    return len(cell.throughput.with_unproven.values) > 1


def emulated(cell: Cell) -> bool:
    """Whether a processor only emulates the precision: its figure is no part of an order."""
    known = cell.trials[0].record.machine.cpu.native_16_bit
    sixteen = next((name for name in ("bf16", "fp16") if name in cell.key.precision), None)
    on_cpu = cell.trials[0].environment.device == "cpu"
    return on_cpu and known is not None and sixteen is not None and sixteen not in known


def _free(factor: Factor) -> tuple[str, ...]:
    names = tuple(name.removeprefix("options.") for name in FACTORS[factor].free)
    more = {"stack": ("software",), "framework": ("software",), "gpus": (PARALLEL, "nodes")}
    return (*names, *more.get(factor, ()), "data_sha256")


def _contrast(
    of: Cell, over: Cell, terms: tuple[Term, ...], comparisons: int, *, by_repeat: bool
) -> WorkRatio | None:
    whole = not of.length.projected and not over.length.projected
    quantity: Literal["throughput", "seconds"] = "throughput"
    if whole and of.length.epochs == over.length.epochs and of.seconds.mean and over.seconds.mean:
        quantity = "seconds"
    first, second = (cell.figures[quantity].with_unproven for cell in (of, over))
    if not first.values or not second.values:
        return None
    assumed = _assumed(of, over, terms)
    interval = contrast_interval(
        first, second, paired=side_by_side(of, over), assumed=assumed, comparisons=comparisons
    )
    estimate = interval.estimate if interval else geometric_mean(first.values) / geometric_mean(second.values)
    n = len(first.values), len(second.values)
    found = WorkRatio(of, over, quantity, estimate, interval, n, terms, assumed)
    return found if quantity == "throughput" else replace(found.inverse, of=of, over=over, n=n, terms=terms)


def _assumed(of: Cell, over: Cell, terms: Iterable[Term]) -> tuple[Assumption, ...]:
    known = (Assumption("software", term.size / NINE_IN_TEN) for term in terms if term.size)
    return (*assumptions(_side_terms(of), _side_terms(over)), *known)


def _side_terms(cell: Cell) -> SideTerms:
    settled = all(trial.verdict != "unproven" for trial in cell.trials)
    device = cell.trials[0].environment.device
    return SideTerms(cell.machine, cell.session, device, cell.blocks, settled)


def compare_sides(
    factor: Factor,
    cells: Sequence[Cell],
    others: Sequence[Cell] = (),
    *,
    failed: Sequence[TrialResult] = (),
    sizes: Mapping[SystemDifference, DifferenceSize] = MappingProxyType({}),
) -> Comparison:
    """Compare the sides of one factor by every work of `cells`; `others` join where they did the same.

    Of a side and work the newest cell counts, and of works that differ in terms alone the nearest one.
    """
    rule = FACTORS[factor]
    own, beside = _parts(cells, rule), _parts(others, rule)
    rows = _rows([cell for cell in own if _timed(cell)], rule)
    _join([cell for cell in beside if _timed(cell)], rows, rule)
    asked = list(dict.fromkeys(map(rule.values, (cell.trials[0] for cell in own))))
    asked += [side for side in dict.fromkeys(map(rule.values, failed)) if side not in asked]
    if rule.order:
        asked.sort(key=rule.order)
    joined = dict.fromkeys(side for row in rows for side in row)
    places = [*asked, *(side for side in joined if side not in asked)]
    by_side = grouped_by((*own, *beside), lambda cell: rule.values(cell.trials[0]))
    sides = tuple(
        _side(side, by_side.get(side, []), own=side in asked, failed=failed, rule=rule) for side in places
    )
    works = tuple(
        ComparedWork(
            without(next(iter(row.values())).key, *rule.free), tuple(row.get(side) for side in places)
        )
        for row in rows
    )
    missing = tuple(_missing(factor, sides, works, failed))
    return Comparison(factor, sides, works, missing, sizes)


def _parts(cells: Iterable[Cell], rule: FactorRule) -> list[Cell]:
    """Cells of one side each."""
    if not rule.splits:
        return list(cells)
    return [
        cell_of(tuple(trials)) if len(parts) > 1 else cell
        for cell in cells
        for parts in [grouped_by(cell.trials, rule.values)]
        for trials in parts.values()
    ]


def _timed(cell: Cell) -> bool:
    return cell.verdict != "invalid" and bool(cell.throughput.with_unproven.values)


def _loose(cell: Cell, rule: FactorRule) -> Hashable:
    """What two figures must share so that their ratio is true."""
    free = (*rule.free, *TERMS)
    if "precision" in rule.free and cell.key.protocol.startswith("published"):
        free = (*free, "batch_size")
    data = None if "data_mode" in rule.free else cell.key.data_sha256
    within = tuple(getattr(cell.trials[0], name) for name in rule.within)
    return replace(without(cell.key, *free), data_sha256=data), within


def _strict(cell: Cell, rule: FactorRule) -> Hashable:
    return without(cell.key, *rule.free), without(cell.length, *rule.free)


_Row = dict[Pairs, Cell]


def _rows(cells: Iterable[Cell], rule: FactorRule) -> list[_Row]:
    """Return a row for each work: cells that differ in the factor alone, then others that differ in terms."""
    rows: list[_Row] = []
    for alike in grouped_by(cells, lambda cell: _loose(cell, rule)).values():
        found: list[_Row] = []
        ordered = sorted(alike, key=lambda cell: (cell.throughput.n > 1, cell.turn))
        equal = [
            {rule.values(cell.trials[0]): cell for cell in same}
            for same in grouped_by(ordered, lambda cell: _strict(cell, rule)).values()
        ]
        for members in sorted(equal, key=len, reverse=True):
            row = next((row for row in found if not row.keys() & members.keys()), None)
            if row is None:
                found.append(members)
            else:
                row.update(members)
        rows += found
    return rows


def _join(others: Iterable[Cell], rows: Sequence[_Row], rule: FactorRule) -> None:
    """Adds to each row the newest cell of each other side that did the same, else the same but for terms."""
    by_work = grouped_by(rows, lambda row: _loose(next(iter(row.values())), rule))
    strict = {id(row): {_strict(cell, rule) for cell in row.values()} for row in rows}
    newest = sorted(others, key=lambda cell: cell.turn, reverse=True)
    for same in (True, False):
        for cell in newest:
            alike = by_work.get(_loose(cell, rule), [])
            found = [row for row in alike if _strict(cell, rule) in strict[id(row)]]
            for row in found if same else [] if found else alike[:1]:
                row.setdefault(rule.values(cell.trials[0]), cell)


def _side(
    values: Pairs, cells: Sequence[Cell], *, own: bool, failed: Sequence[TrialResult], rule: FactorRule
) -> ComparedSide:
    trials = [cell.trials[0] for cell in cells] or [each for each in failed if rule.values(each) == values]
    first = trials[0]
    return ComparedSide(values, first.machine, first.machine_label, first.device_model, own, tuple(cells))


def _missing(
    factor: Factor,
    sides: Sequence[ComparedSide],
    works: Sequence[ComparedWork],
    failed: Sequence[TrialResult],
) -> Iterator[MissingFigure]:
    """Yield each failure, each side without a ratio, and one side of each work without a ratio."""
    compared = {at for work in works if _counted(work) > 1 for at, cell in enumerate(work.cells) if cell}
    alone: set[int] = set()
    for work in works:
        told = _counted(work) > 1
        for at, side in enumerate(sides):
            if work.cells[at] or not side.own:
                continue
            found = _reason(factor, side, work, failed)
            if found.reason in ("failed", "invalid") or not told or at not in compared | alone:
                told = True
                alone.add(at)
                yield found


def _counted(work: ComparedWork) -> int:
    return sum(cell is not None for cell in work.cells)


def _reason(
    factor: Factor, side: ComparedSide, work: ComparedWork, failed: Sequence[TrialResult]
) -> MissingFigure:
    rule = FACTORS[factor]
    free = (*rule.free, *TERMS, *MEASURED_FIELDS)
    wanted = without(work.key, *free)
    for trial in failed:
        if rule.values(trial) == side.values and without(trial.key, *free) == wanted and trial.failure:
            return MissingFigure(side, work, "failed", trial.failure.reason)
    if any(without(cell.key, *free) == wanted for cell in side.cells if not _timed(cell)):
        return MissingFigure(side, work, "invalid")
    there = next(cell for cell in work.cells if cell)
    near = [
        terms_between(cell, there, _free(factor), {})
        for cell in side.cells
        if (cell.key.workload, cell.key.model) == (there.key.workload, there.key.model)
    ]
    nearest = min(near, key=len, default=())
    return MissingFigure(side, work, "other-work" if nearest else "not-measured", terms=nearest)
