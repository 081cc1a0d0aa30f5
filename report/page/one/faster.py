"""Which side is faster, by one factor and work by work; or how fast one is, where nothing was varied."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.record import Claim
from report import text
from report.analysis import Analysis
from report.charts.rows import Mark, RowGroup, ScaleRow, ScaleRows
from report.compare.cells import Cell, time_breakdown
from report.compare.comparison import ComparedWork, Comparison, MissingFigure, Places
from report.compare.ratio import WINDOW, WorkRatio
from report.page import panels
from report.page.filters import details, figure
from report.page.one.answering import AnswerPage, again, runs_of, what_limits
from report.page.parts.studies import published_times
from report.page.side_names import named_sides, named_works, packages_of, work_names
from report.page.time_rows import MOST_ROWS, described, key_of, look_of, published_row
from report.page.values import (
    Chip,
    NamedSystem,
    Picture,
    Quantity,
    Sentence,
    Systems,
    quantity,
    rate,
    rate_unit,
)
from report.stats.intervals import LEVEL, critical_t
from report.trials.factors import FACTORS
from report.trials.key import LOADER_ALONE, grouped_by

MOST_COLUMNS = 4
"""More sides are rows of the table, and dots of one strip."""
MOST_DECIDED = 2
"""So many works or sides the headline names."""
HELD_BACK = 0.5
"""The share of a step: a device that computes for less is held back by something else."""
OTHERS = 4
"""The colour's slot of machines that nobody asked about."""
MOST_MOVED = 5


@dataclass(frozen=True, slots=True)
class ShownWork:
    """One work: how many times as fast each side is as the first that did it, and why others have nothing."""

    model: str
    rest: str
    """What distinguishes it from the others, its precision first."""
    short: str
    """Its name in a sentence, without a precision that all works have."""
    of: ComparedWork
    base: int
    """The place of the side that the ratios are over."""
    ratios: tuple[WorkRatio | None, ...]
    missing: tuple[MissingFigure | None, ...]

    @property
    def name(self) -> str:
        return f"{self.model}, {self.rest}" if self.rest else self.model

    @property
    def compared(self) -> bool:
        return any(self.ratios)

    @property
    def fastest(self) -> int:
        """The place of the side with the highest speed."""
        return max(range(len(self.of.cells)), key=lambda at: _speed(self.of.cells[at]))


def _speed(cell: Cell | None) -> float:
    return (cell.all_runs.mean or 0.0) if cell else 0.0


@dataclass(frozen=True, slots=True)
class ComparedView:
    """A comparison by the names of its sides and works, those of most sides first."""

    comparison: Comparison
    sides: tuple[NamedSystem, ...]
    works: tuple[ShownWork, ...]

    @property
    def by_rows(self) -> bool:
        """Whether the sides are rows of the table."""
        return len(self.sides) > MOST_COLUMNS

    @property
    def ordered(self) -> bool:
        """Whether the sides were asked for in an order, and the data choose no leader."""
        return FACTORS[self.comparison.factor].order is not None

    @property
    def standings(self) -> list[PlacedSide]:
        """The sides by their times over the fastest's in the works that both did, the fastest first."""
        comparison, sides = self.comparison, range(len(self.sides))
        ordered = [at for at in sides if any(at in work.placed for work in comparison.works)] or [*sides]
        base = ordered[0]
        speeds = {at: ratio.estimate for at in ordered if (ratio := comparison.overall(at, base))}
        fastest = max(speeds, key=lambda at: speeds[at], default=base)
        rows = []
        for at in sides:
            ratio = comparison.overall(fastest, at) if at != fastest and at in speeds else None
            time = Quantity(1.0, "ratio") if at == fastest else quantity(ratio) if ratio else None
            rows.append(PlacedSide(at, comparison.standing[at], time, ratio.n[::-1] if ratio else (0, 0)))
        return sorted(rows, key=lambda row: (row.time is None, (row.time and row.time.value) or 0.0))


@dataclass(frozen=True, slots=True)
class PlacedSide:
    """A side by its place among the sides, with its time over the fastest's and the places of its ranges."""

    side: int
    places: Places | None
    time: Quantity | None
    runs: tuple[int, int]
    """The fewest processes of a work, of the side and of the fastest."""


def viewed(comparison: Comparison, analysis: Analysis, systems: Systems) -> ComparedView:
    """A comparison as the page shows it."""
    works = sorted(comparison.works, key=lambda work: -sum(cell is not None for cell in work.cells))
    shown = []
    alike = len({work.key.precision for work in works}) == 1
    for work, (model, precision, apart) in zip(works, named_works([work.key for work in works]), strict=True):
        words = [f"in {precision}"] if precision and not alike else []
        short = " ".join([model, *words, *([f"({apart})"] if apart else [])])
        rest = ", ".join(filter(None, (precision, apart)))
        base = next(at for at, cell in enumerate(work.cells) if cell)
        places = range(len(comparison.sides))
        ratios = tuple(comparison.ratio(work, at, base) if at != base else None for at in places)
        reasons = {id(each.side): each for each in comparison.missing if each.work == work}
        missing = tuple(reasons.get(id(side)) for side in comparison.sides)
        shown.append(ShownWork(model, rest, short, work, base, ratios, missing))
    return ComparedView(comparison, named_sides(comparison, analysis, systems), tuple(shown))


def page(analysis: Analysis, systems: Systems) -> AnswerPage:
    """Return the page of what is faster."""
    comparison = analysis.comparison
    if comparison is None or not comparison.ratios:
        within = (each for each in analysis.beside if each.factor != "machine")
        comparison = next(within, comparison)
    if comparison is None:
        return _alone(analysis, systems)
    view = viewed(comparison, analysis, systems)
    cells = [cell for work in view.works for cell in work.of.cells if cell]
    own = [
        cell
        for work in view.works
        for side, cell in zip(view.sides, work.of.cells, strict=True)
        if cell and side.own
    ]
    ranked = not view.ordered and len(view.sides) > 2
    second = _moved(view) if comparison.factor == "stack" else what_limits(own or cells)
    return AnswerPage(
        headline=_headline(view, ranked=ranked),
        picture=_picture(view, analysis),
        template="faster",
        table=view,
        notes=(_sure(view), second),
        following=again(analysis),
        cells=cells,
        chips=tuple(_chips(view)),
        about={"factor": comparison.factor, "sides": view.sides, "works": view.works},
    )


def beside(analysis: Analysis, systems: Systems) -> list[ComparedView] | None:
    """Return the comparisons by what else differs; null where nothing does."""
    found = [viewed(comparison, analysis, systems) for comparison in analysis.beside]
    return [
        replace(view, works=tuple(work for work in view.works if work.compared)) for view in found
    ] or None


# The headline


@dataclass(frozen=True, slots=True)
class Clause:
    """What one work says of two sides."""

    work: ShownWork
    of: NamedSystem
    over: NamedSystem
    ratio: WorkRatio
    idle: tuple[str, float] | None = None
    """Where no difference is shown, the device and the share of a step that it does not compute."""

    @property
    def times(self) -> Quantity:
        """The ratio with its range."""
        return quantity(self.ratio)


_ORDERS = ("faster", "slower", "counts-only", "equal", "not-shown")


def _headline(view: ComparedView, *, ranked: bool) -> Sentence:
    comparison = view.comparison
    works = [work for work in view.works if work.compared]
    if not works:
        return Sentence("apart", {"sides": view.sides})
    if ranked:
        return _of_class(view)
    if len(view.sides) == 2 or comparison.factor == "gpus":
        of, over = len(view.sides) - 1, 0
        found = [(work, work.ratios[of]) for work in works if work.base == over]
        pairs = [_Pair(work, of, over, ratio) for work, ratio in found if ratio]
    else:
        work = works[0]
        pairs = [_Pair(work, at, work.base, ratio) for at, ratio in enumerate(work.ratios) if ratio]
    if not pairs:
        work = works[0]
        pairs = [_Pair(work, at, work.base, ratio) for at, ratio in enumerate(work.ratios) if ratio][-1:]
    if _is_turned(view, pairs):
        pairs = [_Pair(each.work, each.over, each.of, each.ratio.inverse) for each in pairs]
    pairs.sort(key=lambda each: (_ORDERS.index(each.ratio.order), -abs(math.log(each.ratio.estimate))))
    clauses = [_clause(each, view) for each in pairs]
    decided = [each for each in clauses if each.ratio.order not in ("equal", "not-shown") and not each.idle]
    data: dict[str, Any] = {
        "factor": comparison.factor,
        "decided": decided,
        "open": [each for each in clauses if each not in decided],
        "one_work": len({id(each.work) for each in pairs}) == 1,
        "on": text.short_card(comparison.sides[0].card),
        "loads": pairs[0].ratio.of.key.protocol == LOADER_ALONE,
    }
    if comparison.factor == "side":
        return Sentence("same", {**data, "clauses": clauses})
    return Sentence("many" if len(decided) > MOST_DECIDED else "pair", data)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two sides of a work by their places, and how many times as fast the first is."""

    work: ShownWork
    of: int
    over: int
    ratio: WorkRatio


def _is_turned(view: ComparedView, pairs: Sequence[_Pair]) -> bool:
    """Whether the sentence is of the side that the ratios are over: where the others are slower.

    Of sides that were asked for in an order only where all that is decided says so.
    """
    decided = [each.ratio for each in pairs if each.ratio.order in ("faster", "slower")]
    if view.ordered and view.comparison.factor in ("gpus", "precision"):
        return bool(decided) and all(ratio.order == "slower" for ratio in decided)
    return sum(math.log(each.ratio.estimate) for each in pairs) < 0


def _clause(pair: _Pair, view: ComparedView) -> Clause:
    idle = None
    if pair.ratio.order in ("equal", "not-shown", "counts-only") and abs(pair.ratio.estimate - 1) < 0.05:
        parts = time_breakdown(pair.ratio.of)
        device = pair.ratio.of.trials[0].record.trial.asked.device
        idle = (device, 1 - parts.compute) if parts and parts.compute < HELD_BACK else None
    return Clause(pair.work, view.sides[pair.of], view.sides[pair.over], pair.ratio, idle)


def _of_class(view: ComparedView) -> Sentence:
    """Which is first, how far the next is from it, in how many groups they are, and where this machine is."""
    rows = [row for row in view.standings if row.time is not None]
    own = next((row for row in rows if row.side == 0 and view.comparison.factor == "machine"), None)
    spans = sorted({row.places for row in rows if row.places})
    starts = [
        span.first
        for at, span in enumerate(spans)
        if span.first > max((each.last for each in spans[:at]), default=0)
    ]
    placed = own.places if own and rows[0].places else None
    return Sentence(
        "class",
        {
            "factor": view.comparison.factor,
            "count": len(view.sides),
            "first": view.sides[rows[0].side],
            "sure": rows[0].places == (1, 1),
            "next": rows[1] if len(rows) > 1 else None,
            "groups": view.comparison.groups if rows[0].places else 0,
            "own": view.sides[own.side] if own else None,
            "places": placed,
            "group": sum(start <= placed.first for start in starts) if placed else None,
        },
    )


# Nothing to compare


def _alone(analysis: Analysis, systems: Systems) -> AnswerPage:
    """The speeds of what was not varied, beside what others published of the same work."""
    cells = [cell for cell in analysis.own_cells if cell.throughput.mean]
    invalid = sum(trial.verdict == "invalid" for trial in analysis.own)
    first = cells[0] if cells else None
    data = {
        "own": systems.own[0],
        "invalid": invalid,
        "cell": first,
        "rate": rate(first) if first else None,
        "more": len({cell.key.model for cell in cells}) - 1,
        "factor": analysis.question.by,
        "loads": bool(first) and first is not None and first.key.protocol == LOADER_ALONE,
    }
    return AnswerPage(
        headline=Sentence("alone" if cells else "all-invalid", data),
        picture=_speeds(cells, systems, analysis),
        template="speeds",
        table=tuple(zip(work_names([cell.key for cell in cells]), cells, strict=True)),
        notes=(Sentence("speeds-sure", {"runs": runs_of(cells)}), what_limits(cells)),
        following=again(analysis),
        cells=cells,
        about={"factor": analysis.question.by},
    )


def _speeds(cells: Sequence[Cell], systems: Systems, analysis: Analysis) -> Picture | None:
    works = work_names([cell.key for cell in cells])
    beside = published_times(analysis)
    groups = []
    for unit, members in grouped_by(zip(works, cells, strict=True), lambda each: rate_unit(each[1])).items():
        rows = [
            ScaleRow(name, (_level(cell, systems.of(cell).slot),), text=figure(cell.throughput.mean))
            for name, cell in members
        ]
        groups.append(RowGroup(unit, tuple(rows[:MOST_ROWS])))
    timed = [
        (name, cell)
        for name, cell in zip(works, cells, strict=True)
        if cell.seconds.mean and beside.get(id(cell))
    ]
    if timed:
        rows = []
        for name, cell in timed:
            seconds = cell.seconds.mean or 1.0
            rows.append(
                ScaleRow(
                    name,
                    (Mark(1.0, look=look_of(cell), slot=systems.of(cell).slot),),
                    text=figure(seconds, "seconds"),
                    small="1.00",
                )
            )
            rows += [published_row(claim, seconds, loader=loader) for claim, loader in beside[id(cell)]]
        groups = [RowGroup("", tuple(rows[:MOST_ROWS]))]
    if not groups:
        return None
    chart = ScaleRows(
        tuple(groups), "here = 1.00" if timed else "", key_of(systems.own), reference=1.0 if timed else None
    )
    return Picture("lead", chart, described(groups), "published" if timed else "speeds")


def _level(cell: Cell, slot: int) -> Mark:
    ends = cell.throughput.interval
    low, high = (max(ends.low, 0.0), ends.high) if ends else (None, None)
    return Mark(cell.throughput.mean or 0.0, low, high, look_of(cell), slot)


# The picture


def _picture(view: ComparedView, analysis: Analysis) -> Picture | None:
    if view.comparison.factor == "gpus" and (curve := panels.devices(view.comparison, view.sides)):
        return panels.picture("lead", (curve,), "scaling")
    if view.by_rows and not view.ordered:
        return _strips(view)
    beside = published_times(analysis)
    groups: list[RowGroup] = []
    for work in view.works:
        group = _group(work, view, beside)
        rows = sum(len(each.rows) for each in groups)
        if groups and rows + len(group.rows) > MOST_ROWS:
            break
        groups.append(group)
    key = key_of(view.sides)
    return Picture("lead", ScaleRows(tuple(groups), "fastest = 1.00", key), described(groups), "times")


def _group(work: ShownWork, view: ComparedView, beside: dict[int, list[tuple[Claim, bool]]]) -> RowGroup:
    """One work's sides, the fastest first, then what others published of it, and what has no figure."""
    cells, fastest = work.of.cells, work.fastest
    base = cells[fastest]
    assert base is not None
    timed = _timed(work, view.comparison)
    rows = []
    for at in sorted(range(len(cells)), key=lambda at: -_speed(cells[at])):
        cell, side = cells[at], view.sides[at]
        if cell is None:
            missing = work.missing[at]
            if missing:
                rows.append(ScaleRow(side.name, text=missing_words(missing)))
            continue
        ratio = None if at == fastest else view.comparison.ratio(work.of, fastest, at)
        times = ratio.estimate if ratio else 1.0
        said = (
            figure(cell.seconds.mean, "seconds")
            if timed
            else f"{text.number(_speed(cell))} {rate_unit(cell)}"
        )
        mark = Mark(times, *_ends(ratio), look_of(cell), side.slot)
        rows.append(ScaleRow(side.name, (mark,), text=said, small=text.times(times)))
    used = {cell.key.precision for cell in cells if cell}
    claims = {
        claim.id: (claim, loader)
        for cell in cells
        if cell
        for claim, loader in beside.get(id(cell), [])
        if claim.of.precision in (None, *used)
    }
    if timed and base.seconds.mean:
        seconds = base.seconds.mean
        rows += [published_row(claim, seconds, loader=loader) for claim, loader in claims.values()]
    notes = work.rest, details(base.key, base.length.epochs if timed else 0)
    return RowGroup(work.model, tuple(rows), tuple(filter(None, notes)))


def _ends(ratio: WorkRatio | None) -> tuple[float | None, float | None]:
    ends = ratio.interval if ratio else None
    return (ends.low, ends.high) if ends else (None, None)


def _timed(work: ShownWork, comparison: Comparison) -> bool:
    """Whether the time of the whole protocol is known of all, and is of the same work."""
    cells = [cell for cell in work.of.cells if cell]
    alike = len({cell.length.epochs for cell in cells}) == 1
    return (
        comparison.factor not in ("gpus", "batch", "loader", "model")
        and alike
        and all(cell.seconds.mean for cell in cells)
    )


def _strips(view: ComparedView) -> Picture:
    """A strip of dots with their ranges: a side's time over the fastest's."""
    rows = [row for row in view.standings if row.time is not None and row.time.value]
    named = {rows[0].side, rows[-1].side, *(row.side for row in rows if view.sides[row.side].own)}
    marks = tuple(
        Mark(
            row.time.value or 1.0,
            row.time.low,
            row.time.high,
            slot=side.slot if side.own else OTHERS,
            small=not side.own,
            label=side.name if row.side in named else "",
        )
        for row in rows
        if row.time
        for side in [view.sides[row.side]]
    )
    chart = ScaleRows(
        (RowGroup("", (ScaleRow(view.works[0].name, marks),)),), "fastest = 1.00", dots=True, multiply=True
    )
    alt = ", ".join(
        f"{view.sides[row.side].name} {row.time.value:.2f}" for row in rows if row.time and row.time.value
    )
    return Picture("lead", chart, alt, "strips")


def missing_words(missing: MissingFigure) -> str:
    """'not measured', 'other work: batch size'"""
    if missing.reason == "failed":
        return text.failure_words(missing.failure)
    if missing.reason == "other-work":
        return f"measured otherwise: {', '.join(term.name for term in missing.terms[:2])}"
    return {"invalid": "invalid", "not-measured": "not measured"}[missing.reason]


# Chips and notes


def _ratios(view: ComparedView) -> list[WorkRatio]:
    return [ratio for work in view.works for ratio in work.ratios if ratio]


def _chips(view: ComparedView) -> Iterator[Chip]:
    ratios = _ratios(view)
    if not ratios:
        return
    fewest, most = min(min(ratio.n) for ratio in ratios), max(max(ratio.n) for ratio in ratios)
    if fewest < 3:
        yield Chip("care", "few-runs", "uncertainty", {"fewest": fewest, "most": most})
    terms = {term.field: term for ratio in ratios for term in ratio.terms}
    if WINDOW in terms:
        spans = [
            span
            for ratio in ratios
            for term in ratio.terms
            if term.field == WINDOW
            for span in (term.of, term.over)
        ]
        known = [span for span in spans if isinstance(span, int | float)]
        yield Chip("care", "windows", "ran", {"least": min(known), "most": max(known)})
    if other := [term.name for name, term in terms.items() if name != WINDOW and name.islower()]:
        yield Chip("care", "terms", "ran", {"names": other[:3]})
    if any(each.name in ("session", "machine") for ratio in ratios for each in ratio.assumed):
        yield Chip("care", "one-session", "uncertainty")
    elif view.comparison.factor == "stack":
        yield Chip("good", "interleaved")


def _sure(view: ComparedView) -> Sentence:
    """What is assumed in the ranges, and how large it would have to be for the answer to turn."""
    ratios = _ratios(view)
    ranged = [ratio for ratio in ratios if ratio.interval]
    assumed = {each.name: each.size for ratio in ratios for each in ratio.assumed}
    decided = [ratio for ratio in ranged if ratio.order in ("faster", "slower")]
    sizes = [size for ratio in decided if (size := ratio.turning_size)]
    runs = runs_of([cell for work in view.works for cell in work.of.cells if cell])
    alone = [math.hypot(*(each.size for each in ratio.assumed)) for ratio in ratios if ratio.assumed]
    data = {
        "runs": runs,
        "assumed": assumed,
        "turns": min(sizes, default=None),
        "ranged": bool(ranged),
        "floor": math.expm1(critical_t(LEVEL, math.inf) * max(alone)) if alone else None,
        "pairs": max((r.interval.comparisons for r in ranged if r.interval), default=1),
    }
    return Sentence("contrast-sure", data)


def _moved(view: ComparedView) -> Sentence:
    """The packages that are of other versions in the two stacks."""
    first, second = (packages_of(side.cells) for side in view.comparison.sides[:2])
    names = sorted(first.keys() | second.keys())
    moved = [
        (name, first.get(name, ""), second.get(name, ""))
        for name in names
        if first.get(name) != second.get(name)
    ]
    return Sentence(
        "stacks-differ", {"moved": moved[:MOST_MOVED], "count": len(moved), "asked": view.sides[1].name}
    )
