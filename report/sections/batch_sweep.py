"""Cells that differ in their batch alone: throughput against batch, and the best batch of each precision.

Two views that no chart mixes: the fixed batches of contests, and ladders, which look for the best batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.summary.statistics import ROOM, room_taken
from report import text
from report.comparisons.cells import Cell
from report.comparisons.groups import PRECISIONS
from report.lines import Axes, Curve, Wall
from report.lines import curves as draw
from report.sections import names
from report.sections.view import Panel, Table
from report.trials.key import Key, Pairs
from report.trials.pairs import LOSS_SCALE, MEASURED_FIELDS, groups, same_but
from report.trials.trial import Trial

FEWEST_POINTS = 2
FEWEST_RUNGS = 3
SPILL = 0.7
"""A throughput below this part of a smaller batch's is suspected of memory that spills to the host."""

_left_out = ("batch_size", *MEASURED_FIELDS)
_sweep = same_but(*_left_out, within=("limit", "card", "machine", "session"))
_panel_place = same_but("precision", *_left_out, within=(LOSS_SCALE, "limit"))
_asked = same_but(*_left_out, within=("machine", "session"))
"""What a trial that did not fit shares with the others of its sweep, besides the limit."""


@dataclass(frozen=True, slots=True)
class Ladder:
    """The batches of one work in one precision on one card, growing, and the smallest that failed to fit."""

    rungs: tuple[Cell, ...]
    wall: int | None

    @property
    def work(self) -> Key:
        """The key of the smallest batch, which all share but for the batch and what measuring finds."""
        return self.rungs[0].key

    @property
    def precision(self) -> str:
        return self.work.precision

    @property
    def unit(self) -> str:
        return names.unit_of(self.rungs[0])

    @property
    def fitting(self) -> tuple[Cell, ...]:
        """Rungs below the wall that leave the device some room."""
        return tuple(
            cell
            for cell in self.rungs
            if (self.wall is None or cell.key.batch_size < self.wall) and (_room_taken(cell) or 0.0) <= ROOM
        )

    @property
    def best(self) -> Cell | None:
        """The rung of the highest mean throughput, which need not be the largest."""
        return max(self.fitting, key=lambda cell: cell.throughput.mean or 0.0, default=None)

    @property
    def spills(self) -> bool:
        """Whether a larger batch is so much slower that memory may have spilled to the host."""
        means = [cell.throughput.mean or 0.0 for cell in self.rungs]
        return any(later < SPILL * max(means[:place]) for place, later in enumerate(means) if place)


def _room_taken(cell: Cell) -> float | None:
    """The most of its device's memory that a run reserved, 0 to 1; null where that is unknown."""
    measured = [trial.record.measurement for trial in cell.trials]
    shares = [room_taken(found) for found in measured if found is not None]
    return max((share for share in shares if share is not None), default=None)


def without_rungs(cells: Sequence[Cell], lead: str | None) -> tuple[Cell, ...]:
    """The cells that stand by themselves; all, where the leading session has nothing but ladders."""
    stepped = [cell for cell in cells if "steps" in dict(cell.length.limit)]
    sweeps = groups(stepped, _sweep).values()
    rungs = {id(cell) for found in sweeps if len(found) >= FEWEST_RUNGS for cell in found}
    kept = tuple(cell for cell in cells if id(cell) not in rungs)
    return kept if any(cell.session == lead for cell in kept) else tuple(cells)


def ladders(cells: Sequence[Cell], failed: Sequence[Trial]) -> list[Ladder]:
    """All batches of each work and precision, where there are several."""
    usable = [cell for cell in cells if cell.verdict != "invalid" and cell.throughput.mean is not None]
    lost = groups((r for r in failed if r.failure and r.failure.reason == "out-of-memory"), _asked)
    found = []
    for members in groups(usable, _sweep).values():
        if len(members) >= FEWEST_POINTS:
            rungs = tuple(sorted(members, key=lambda cell: cell.key.batch_size))
            limits = (rungs[0].length.limit, ())
            beyond = [
                trial.key.batch_size for trial in lost.get(_asked(rungs[0]), ()) if _limit(trial) in limits
            ]
            found.append(Ladder(rungs, min(beyond, default=None)))
    return found


def _limit(trial: Trial) -> Pairs:
    asked = trial.record.trial.asked.variant.limit
    return tuple((name, value) for name, value in asked if value is not None)


def panels(cells: Sequence[Cell], failed: Sequence[Trial], anchor: str) -> tuple[Panel, ...]:
    """Throughput against batch, a panel for each work; a wall stands where a batch did not fit."""
    drawn = groups(ladders(cells, failed), lambda ladder: _panel_place(ladder.rungs[0])).values()
    return tuple(_panel(members, f"{anchor}-batch-{n}") for n, members in enumerate(drawn, 1))


def _panel(members: Sequence[Ladder], name: str) -> Panel:
    work = members[0].work
    several = len({ladder.unit for ladder in members}) > 1
    lines = [_line(ladder, several) for ladder in members]
    walls = _walls(members)
    title = f"{names.model(work.model)}{names.setting(work)}: throughput against batch"
    alt = "; ".join(_said(line) for line in lines[:12])
    alt += "".join(f"; {wall.card} {wall.look}: {wall.said}" for wall in walls)
    unit = members[0].rungs[0].trials[0].sample_unit
    drawing = draw(name, title, alt, lines, Axes("batch", text.plain_tick, zero=True, doubling=True), walls)
    return Panel(name, title, f"{unit}s a second, {work.data_mode} data; more is better", drawing, alt)


def _line(ladder: Ladder, several: bool) -> Curve:
    return Curve(
        label=f"{ladder.unit} {ladder.precision}" if several else ladder.precision,
        points=tuple((float(c.key.batch_size), c.throughput.mean or 0.0) for c in ladder.rungs),
        look=ladder.precision,
        card=ladder.unit,
        spread=tuple(_ends(cell) for cell in ladder.rungs),
        dotted=True,
    )


def _ends(cell: Cell) -> tuple[float, float] | None:
    interval = cell.throughput.interval
    return (max(interval.low, 0.0), interval.high) if interval else None


def _walls(members: Iterable[Ladder]) -> list[Wall]:
    return [
        Wall(float(ladder.wall), f"{ladder.wall:,} does not fit", ladder.precision, ladder.unit)
        for ladder in sorted(members, key=lambda one: (one.unit, one.precision))
        if ladder.wall is not None
    ]


def _said(line: Curve) -> str:
    points = ", ".join(f"{text.number(y)} at batch {x:,g}" for x, y in line.points[:8])
    return f"{line.label}: {points}"


def table(cells: Sequence[Cell], failed: Sequence[Trial]) -> Table | None:
    """The best batch of each ladder, the largest that fits, and the first that does not."""
    found = [one for one in ladders(cells, failed) if len(one.rungs) >= FEWEST_RUNGS or one.wall is not None]
    found.sort(key=lambda one: (one.work.model, one.unit, PRECISIONS.index(one.precision)))
    if not found:
        return None
    unit = found[0].rungs[0].trials[0].sample_unit
    caption = (
        "The best batch: of those measured that fit and reserve no more than "
        f"{ROOM:.0%} of the memory, the one of the highest throughput. It is another view than the fixed "
        "batch of the charts below, and stands in none of them."
    )
    columns = ("Model", "Precision", "Best batch", f"{unit.capitalize()}s / s there", "Largest that fits")
    return Table(caption, (*columns, "Does not fit"), tuple(_row(one) for one in found))


def _row(one: Ladder) -> tuple[str, ...]:
    best, fitting = one.best, one.fitting
    largest = fitting[-1] if fitting else None
    taken = _room_taken(largest) if largest else None
    beneath = "" if taken is None else f"\n{text.percent(taken)} of the memory"
    wall = "–" if one.wall is None else f"{one.wall:,}"
    spill = "\nfar slower above: memory may spill" if one.spills else ""
    return (
        f"{names.model(one.work.model)}{names.setting(one.work)}\n{one.unit}",
        one.precision,
        "–" if best is None else f"{best.key.batch_size:,}{spill}",
        "–" if best is None else _speed(best),
        "–" if largest is None else f"{largest.key.batch_size:,}{beneath}",
        wall,
    )


def _speed(cell: Cell) -> str:
    interval = cell.throughput.interval
    return f"{text.number(cell.throughput.mean)}\n{text.between(interval) if interval else 'one run'}"
