"""Which side is faster, by one factor and work by work; how fast one is where nothing was varied."""

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
from report.compare.comparison import Comparison
from report.compare.ratio import WINDOW, WorkRatio
from report.page.compared_view import (
    ComparedView,
    ShownWork,
    named_works,
    packages_of,
    speed_of_all_runs,
    view_comparison,
)
from report.page.filters import figure_text, missing_words, work_details
from report.page.one.answering import (
    alike_line,
    cores_of,
    limiting_shares,
    repeat_line,
    runs_of,
    together_line,
)
from report.page.parts.studies import published_times
from report.page.pictures import (
    MOST_ROWS,
    groups_with_room,
    key_of_systems,
    look_of,
    panels_picture,
    published_row,
    rows_picture,
    scaling_panel,
)
from report.page.values import (
    AnswerPage,
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
from report.stats.contrast import assumed_reach
from report.trials.key import LOADER_ALONE, grouped_by

MOST_DECIDED = 2
"""So many works or sides the headline names."""
HELD_BACK = 0.5
"""The share of a step: a device that computes for less is held back by something else."""
OTHERS = 4
"""The colour's slot of machines that nobody asked about."""
MOST_MOVED = 5


def page(analysis: Analysis, systems: Systems) -> AnswerPage:
    """Return the page of what is faster; of the speeds alone where nothing was varied."""
    comparison = analysis.comparison
    if comparison is None or not comparison.ratios:
        within = (each for each in analysis.beside if each.factor != "machine")
        comparison = next(within, comparison)
    if comparison is None:
        return _speeds_page(analysis, systems)
    view = view_comparison(comparison, analysis, systems)
    compared = {id(cell): cell for ratio in view.ratios for cell in (ratio.of, ratio.over)}
    own = [cell for side in comparison.sides if side.own for cell in side.cells if id(cell) in compared]
    second = _moved_packages(view) if comparison.factor == "stack" else limiting_shares(own or view.cells)
    clauses = _headline_clauses(view)
    turned = bool(clauses) and _is_turned(view, clauses)
    view = replace(view, turned=turned)
    return AnswerPage(
        headline=_headline(view, [each.inverse for each in clauses] if turned else clauses),
        picture=_picture(view, analysis, systems),
        template="faster",
        table=view,
        notes=(_range_note(view), second),
        following=repeat_line(analysis) if clauses else alike_line(analysis),
        cells=view.cells,
        chips=tuple(_chips(view)),
        about={"factor": comparison.factor, "sides": view.sides},
    )


# The headline


@dataclass(frozen=True, slots=True)
class Clause:
    """What one work says of two sides."""

    work: ShownWork
    of: NamedSystem
    over: NamedSystem
    ratio: WorkRatio

    @property
    def times(self) -> Quantity:
        """The ratio with its range."""
        return quantity(self.ratio)

    @property
    def inverse(self) -> Clause:
        """The same of the second side over the first."""
        return Clause(self.work, self.over, self.of, self.ratio.inverse)

    @property
    def idle(self) -> tuple[str, float] | None:
        """Where no difference is shown, the device and the share of a step that it does not compute."""
        if self.ratio.order in ("faster", "slower") or abs(self.ratio.estimate - 1) >= 0.05:
            return None
        parts, device = time_breakdown(self.ratio.of), self.ratio.of.trials[0].record.trial.asked.device
        return (device, 1 - parts.compute) if parts and parts.compute < HELD_BACK else None


_ORDERS = ("faster", "slower", "counts-only", "equal", "not-shown")


def _headline_clauses(view: ComparedView) -> list[Clause]:
    """The ratios of the headline: of each work the last side over the first, else of the first work."""
    sides = view.sides
    every = [
        Clause(work, sides[at], sides[work.base], ratio)
        for work in view.works
        for at, ratio in enumerate(work.ratios)
        if ratio
    ]
    of_first = [each for each in every if each.work is every[0].work]
    if len(sides) == 2 or view.comparison.factor == "gpus":
        ends = [each for each in every if (each.of, each.over) == (sides[-1], sides[0])]
        return ends or of_first[-1:]
    return of_first


def _headline(view: ComparedView, clauses: Sequence[Clause]) -> Sentence:
    factor, sides = view.comparison.factor, view.sides
    if not clauses:
        firsts = [
            next(filter(None, cells), None)
            for cells in zip(*(work.of.cells for work in view.works), strict=True)
        ]
        runs = [cell and _runs_apart(cell) for cell in firsts]
        return Sentence("apart", {"sides": list(zip(sides, firsts, strict=True)), "runs": runs})
    if not view.ordered and len(sides) > 2:
        return _class_headline(view)
    clauses = sorted(
        clauses, key=lambda each: (_ORDERS.index(each.ratio.order), -abs(math.log(each.ratio.estimate)))
    )
    decided = [each for each in clauses if each.ratio.order not in ("equal", "not-shown") and not each.idle]
    data: dict[str, Any] = {
        "factor": factor,
        "decided": decided,
        "open": [each for each in clauses if each not in decided],
        "one_work": len({id(each.work) for each in clauses}) == 1,
        "on": text.short_card(view.comparison.sides[0].card),
        "cores": cores_of(clauses[0].ratio.of.trials[0].record),
        "loads": clauses[0].ratio.of.key.protocol == LOADER_ALONE,
        "unseen": _least_shown(view.ratios) if all(map(_is_unseen, (c.ratio for c in clauses))) else None,
    }
    if factor == "side":
        return Sentence("same", {**data, "clauses": clauses})
    return Sentence("many" if len(decided) > MOST_DECIDED else "pair", data)


def _is_turned(view: ComparedView, clauses: Sequence[Clause]) -> bool:
    """Whether the sentence is of the side that the ratios are over: where the others are slower.

    Of sides that were asked for in an order only where all that is decided says so.
    """
    decided = [each.ratio for each in clauses if each.ratio.order in ("faster", "slower")]
    if view.ordered and view.comparison.factor in ("gpus", "precision"):
        return bool(decided) and all(ratio.order == "slower" for ratio in decided)
    return sum(math.log(each.ratio.estimate) for each in clauses) < 0


def _class_headline(view: ComparedView) -> Sentence:
    """Which is first, how far the next is from it, in how many groups they are, and where this machine is."""
    rows = [row for row in view.standings if row.time is not None]
    own = next((row for row in rows if row.side == 0 and view.comparison.factor == "machine"), None)
    starts = view.comparison.group_starts if rows[0].places else ()
    placed = own.places if own and rows[0].places else None
    return Sentence(
        "class",
        {
            "factor": view.comparison.factor,
            "count": len(rows),
            "first": view.sides[rows[0].side],
            "sure": rows[0].places == (1, 1),
            "next": rows[1] if len(rows) > 1 else None,
            "groups": len(starts),
            "own": view.sides[own.side] if own else None,
            "places": placed,
            "group": sum(start <= placed.first for start in starts) if placed else None,
        },
    )


# The picture


def _picture(view: ComparedView, analysis: Analysis, systems: Systems) -> Picture | None:
    if not view.ratios:
        every = ((at, cell) for work in view.works for at, cell in enumerate(work.of.cells) if cell)
        return _speeds_picture([(view.sides[at].name, cell) for at, cell in every], systems)
    if view.comparison.factor == "gpus" and (curve := scaling_panel(view.comparison, view.sides)):
        return panels_picture((curve,), "scaling")
    if view.many and not view.ordered:
        return _strip_picture(view)
    beside = published_times(analysis)
    groups = groups_with_room([_group(work, view, beside) for work in view.works])
    return rows_picture(ScaleRows(groups, "fastest = 1.00", key_of_systems(view.sides)), "times")


def _group(work: ShownWork, view: ComparedView, beside: dict[int, list[tuple[Claim, bool]]]) -> RowGroup:
    """One work's sides, the fastest first, then what others published of it, and what has no figure."""
    cells, base = work.of.cells, work.of.cells[work.fastest]
    assert base is not None
    timed = _is_timed(work, view.comparison)
    rows = []
    for at in sorted(range(len(cells)), key=lambda at: -speed_of_all_runs(cells[at])):
        cell, side, missing = cells[at], view.sides[at], work.missing[at]
        if cell is None:
            rows += [ScaleRow(side.name, text=missing_words(missing))] if missing else []
            continue
        ratio = None if at == work.fastest else view.comparison.ratio(work.of, work.fastest, at)
        times, ends = ratio.estimate if ratio else 1.0, ratio.interval if ratio else None
        low, high = (ends.low, ends.high) if ends else (None, None)
        speed = figure_text(speed_of_all_runs(cell), rate_unit(cell))
        said = figure_text(cell.seconds.mean, "seconds") if timed else speed
        mark = Mark(times, low, high, look_of(cell, "protocol_seconds" if timed else "throughput"), side.slot)
        rows.append(ScaleRow(side.name, (mark,), text=said, small=text.times(times)))
    known = [cell for cell in cells if cell]
    claims = {claim.id: (claim, loader) for cell in known for claim, loader in beside.get(id(cell), [])}
    used = {None, *(cell.key.precision for cell in known)}
    rows += [
        published_row(claim, base.seconds.mean, loader=loader)
        for claim, loader in claims.values()
        if timed and base.seconds.mean and claim.of.precision in used
    ]
    if base.key.protocol == LOADER_ALONE:
        label, _, rest = work.name.apart.partition(", ")
        return RowGroup(label or "images", tuple(rows), tuple(filter(None, (rest,))))
    notes = work.name.rest, work_details(base.key, base.length.epochs if timed else 0)
    return RowGroup(work.name.model, tuple(rows), tuple(filter(None, notes)))


def _is_timed(work: ShownWork, comparison: Comparison) -> bool:
    """Whether the time of the whole protocol is known of all, and is of the same work."""
    cells = [cell for cell in work.of.cells if cell]
    alike = len({cell.length.epochs for cell in cells}) == 1
    same = comparison.factor not in ("gpus", "batch", "loader", "model")
    return same and alike and all(cell.seconds.mean for cell in cells)


def _strip_picture(view: ComparedView) -> Picture:
    """A strip of dots with their ranges: a side's time over the fastest's, in all works together."""
    rows = [(view.sides[row.side], row.time) for row in view.standings if row.time and row.time.value]
    marks = tuple(
        Mark(
            time.value or 1.0,
            time.low,
            time.high,
            slot=side.slot if side.own else OTHERS,
            small=not side.own,
            label=side.name if side.own or side in (rows[0][0], rows[-1][0]) else "",
        )
        for side, time in rows
    )
    works = [str(work.name) for work in view.works if work.of.placed]
    name = works[0] if len(works) == 1 else f"{text.count(len(works), 'work')}, their mean"
    group = RowGroup("", (ScaleRow(name, marks),))
    alt = ", ".join(f"{side.name} {time.value:.2f}" for side, time in rows)
    return Picture("lead", ScaleRows((group,), "fastest = 1.00", dots=True), f"{name}: {alt}", "strips")


# Chips and notes


def _chips(view: ComparedView) -> Iterator[Chip]:
    ratios = view.ratios
    if not ratios:
        return
    fewest, most = _runs_compared(ratios)
    if fewest < 3:
        yield Chip("care", "few-runs", "uncertainty", {"fewest": fewest, "most": most})
    terms = [term for ratio in ratios for term in ratio.terms]
    compared = [cell for ratio in ratios for cell in (ratio.of, ratio.over)]
    measured = (trial.record.measurement for cell in compared for trial in cell.trials)
    lengths = [each.window.seconds for each in measured if each]
    span = {"least": min(lengths, default=0.0), "most": max(lengths, default=0.0)}
    if lengths and all(cell.verdict == "unproven" for cell in compared):
        yield Chip("care", "none-settled", "ran", span)
    elif lengths and any(term.field == WINDOW for term in terms):
        yield Chip("care", "windows", "ran", span)
    other = [term.name for term in terms if term.field != WINDOW and term.field.islower()]
    if other:
        yield Chip("care", "terms", "ran", {"names": list(dict.fromkeys(other))[:3]})
    if any(each.name in ("session", "machine") for ratio in ratios for each in ratio.assumed):
        yield Chip("care", "one-session", "uncertainty")


def _runs_compared(ratios: Sequence[WorkRatio]) -> tuple[int, int]:
    """Return the fewest and the most processes of a side of a ratio; zero without one."""
    counts = [n for ratio in ratios for n in ratio.n]
    return min(counts, default=0), max(counts, default=0)


def _is_unseen(ratio: WorkRatio) -> bool:
    """Whether a ratio without a range lies within what is assumed alone."""
    return ratio.interval is None and abs(math.log(ratio.estimate)) <= assumed_reach(ratio.assumed)


def _least_shown(ratios: Sequence[WorkRatio]) -> float | None:
    """Return the least difference that is shown in every work whose runs or assumptions say it."""
    reaches = [math.log(ends.high / ends.low) / 2 for ratio in ratios if (ends := ratio.interval)]
    reaches += [assumed_reach(ratio.assumed) for ratio in ratios if _is_unseen(ratio)]
    return math.expm1(max(reaches)) if reaches else None


def _range_note(view: ComparedView) -> Sentence:
    """What is assumed in the ranges, and how large it would have to be for the answer to turn."""
    ranges = [ratio.interval for ratio in view.ratios if ratio.interval]
    orders = ("faster", "slower")
    sizes = [size for ratio in view.ratios if ratio.order in orders and (size := ratio.turning_size)]
    unshown = [ratio for ratio in view.ratios if ratio.order in ("equal", "not-shown") or _is_unseen(ratio)]
    data = {
        "runs": _runs_compared(view.ratios) if view.ratios else runs_of(view.cells),
        "assumed": {each.name: each.size for ratio in view.ratios for each in ratio.assumed},
        "turns": min(sizes, default=None),
        "of": view.sides[0] if not view.ordered and len(view.sides) > 2 else None,
        "ranged": bool(ranges),
        "floor": _least_shown(unshown),
        "pairs": max((ends.comparisons for ends in ranges), default=1),
    }
    return Sentence("contrast-sure", data)


def _moved_packages(view: ComparedView) -> Sentence:
    """The packages that are of other versions in the two stacks."""
    first, second = (packages_of(side.cells) for side in view.comparison.sides[:2])
    both = (
        (name, first.get(name, ""), second.get(name, "")) for name in sorted(first.keys() | second.keys())
    )
    moved = [each for each in both if each[1] != each[2]]
    return Sentence(
        "stacks-differ", {"moved": moved[:MOST_MOVED], "count": len(moved), "asked": view.sides[1].name}
    )


# What was not varied


def _speeds_page(analysis: Analysis, systems: Systems) -> AnswerPage:
    """Return the page of what was not varied."""
    cells = [cell for cell in analysis.own_cells if cell.throughput.mean]
    table = tuple(zip(map(str, named_works(cells)), cells, strict=True))
    data: dict[str, Any] = {"own": systems.own[0], "factor": analysis.question.by}
    data["unjudged"] = analysis.question.kind == "holds"
    if cells:
        data |= {"cell": cells[0], "rate": rate(cells[0]), "loads": cells[0].key.protocol == LOADER_ALONE}
        data["runs"] = _runs_apart(cells[0])
    else:
        data["invalid"] = sum(trial.verdict == "invalid" for trial in analysis.own)
    return AnswerPage(
        headline=Sentence("alone" if cells else "all-invalid", data),
        picture=_speeds_picture(table, systems) if cells else None,
        template="speeds",
        table=table,
        notes=(Sentence("speeds-sure", {"runs": runs_of(cells, settled=True)}), limiting_shares(cells)),
        following=together_line(analysis) or repeat_line(analysis),
        cells=cells,
        about={"factor": analysis.question.by},
    )


def _runs_apart(cell: Cell) -> Quantity | None:
    """Return the mean with the least and the greatest run, where the range of the mean reaches zero."""
    found, runs = rate(cell), cell.throughput.values
    if found.low is None or found.low > 0:
        return None
    return replace(found, low=min(runs), high=max(runs))


def _speeds_picture(table: Sequence[tuple[str, Cell]], systems: Systems) -> Picture:
    """Return the speeds from zero by their unit; figures that others published stand below."""
    groups = tuple(
        RowGroup(unit, tuple(_speed_row(name, cell, systems) for name, cell in members[:MOST_ROWS]))
        for unit, members in grouped_by(table, lambda each: rate_unit(each[1])).items()
    )
    chart = ScaleRows(groups, key=key_of_systems(systems.own), reference=None)
    return rows_picture(chart, "speeds")


def _speed_row(name: str, cell: Cell, systems: Systems) -> ScaleRow:
    speed = _runs_apart(cell) or rate(cell)
    mark = Mark(speed.value or 0.0, speed.low, speed.high, slot=systems.of(cell).slot)
    return ScaleRow(name, (mark,), text=figure_text(speed.value))
