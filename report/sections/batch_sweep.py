"""Cells that differ in their batch alone: throughput against batch, and the best batch of each precision.

Two views that no chart mixes: the fixed batches of contests, and ladders, which look for the best batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from harness.summary.statistics import ROOM, room_taken
from report import text
from report.comparability import Key, Pairs
from report.comparisons.cells import Cell
from report.comparisons.groups import PRECISIONS
from report.frame import Row
from report.lines import Axes, Curve, Wall
from report.lines import curves as draw
from report.sections import names
from report.sections.view import Panel, Table

FEWEST_POINTS = 2
FEWEST_RUNGS = 3
SPILL = 0.7
"""A throughput below this part of a smaller batch's is suspected of memory that spills to the host."""

Work = tuple[Key, Pairs]
"""What the rungs of one ladder share: all but the precision and the batch, and where each stopped."""

Spot = tuple[str, str, str]
"""A card, its machine, and a session."""


@dataclass(frozen=True, slots=True)
class Ladder:
    """The batches of one work in one precision on one card, growing, and the smallest that failed to fit."""

    work: Key
    precision: str
    unit: str
    rungs: tuple[Cell, ...]
    wall: int | None

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
    measured = [row.record.measurement for row in cell.rows]
    shares = [room_taken(found) for found in measured if found is not None]
    return max((share for share in shares if share is not None), default=None)


def without_rungs(cells: Sequence[Cell], lead: str | None) -> tuple[Cell, ...]:
    """The cells that stand by themselves; all, where the leading session has nothing but ladders."""
    groups: dict[object, list[Cell]] = {}
    for cell in cells:
        if any(name == "steps" for name, _ in cell.length.limit):
            groups.setdefault((_work(cell), cell.key.precision, _spot(cell)), []).append(cell)
    rungs = {id(cell) for found in groups.values() if len(found) >= FEWEST_RUNGS for cell in found}
    kept = tuple(cell for cell in cells if id(cell) not in rungs)
    return kept if any(cell.session == lead for cell in kept) else tuple(cells)


def ladders(cells: Sequence[Cell], failed: Sequence[Row]) -> list[Ladder]:
    """All batches of each work and precision, where there are several."""
    groups: dict[tuple[Work, str, Spot], list[Cell]] = {}
    for cell in cells:
        if cell.verdict != "invalid" and cell.throughput.mean is not None:
            groups.setdefault((_work(cell), cell.key.precision, _spot(cell)), []).append(cell)
    walls = [row for row in failed if row.failure and row.failure.reason == "out-of-memory"]
    found = []
    for (work, precision, _), members in groups.items():
        rungs = tuple(sorted(members, key=lambda cell: cell.key.batch_size))
        if len(rungs) >= FEWEST_POINTS:
            beyond = [row.key.batch_size for row in walls if _fell_from(row, work, precision, rungs[0])]
            unit = names.unit_of(rungs[0])
            found.append(Ladder(work[0], precision, unit, rungs, min(beyond, default=None)))
    return found


def _work(cell: Cell) -> Work:
    return _any_batch(cell.key), cell.length.limit


def _any_batch(key: Key) -> Key:
    return replace(key, precision="", batch_size=0, data_sha256=None, weights_sha256=None, weights=None)


def _spot(cell: Cell) -> Spot:
    return cell.card, cell.machine, cell.session


def _fell_from(row: Row, work: Work, precision: str, rung: Cell) -> bool:
    """Whether a trial that did not fit was a rung of this ladder."""
    limit = tuple((name, value) for name, value in row.record.trial.asked.variant.limit if value is not None)
    mine = (_any_batch(row.key), row.key.precision, row.machine, row.session)
    whole = (work[0], precision, rung.machine, rung.session)
    return mine == whole and limit in (work[1], ())


def panels(cells: Sequence[Cell], failed: Sequence[Row], anchor: str) -> tuple[Panel, ...]:
    """Throughput against batch, a panel for each work; a wall stands where a batch did not fit."""
    works: dict[Work, list[Ladder]] = {}
    for ladder in ladders(cells, failed):
        works.setdefault((ladder.work, ladder.rungs[0].length.limit), []).append(ladder)
    drawn = [(work, members) for (work, _), members in works.items()]
    return tuple(_panel(work, members, f"{anchor}-batch-{n}") for n, (work, members) in enumerate(drawn, 1))


def _panel(work: Key, members: Sequence[Ladder], name: str) -> Panel:
    several = len({ladder.unit for ladder in members}) > 1
    lines = [_line(ladder, several) for ladder in members]
    walls = _walls(members)
    title = f"{names.model(work.model)}{names.setting(work)}: throughput against batch"
    alt = "; ".join(_said(line) for line in lines[:12])
    alt += "".join(f"; {wall.card} {wall.look}: {wall.said}" for wall in walls)
    unit = members[0].rungs[0].rows[0].sample_unit
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


def table(cells: Sequence[Cell], failed: Sequence[Row]) -> Table | None:
    """The best batch of each ladder, the largest that fits, and the first that does not."""
    found = [one for one in ladders(cells, failed) if len(one.rungs) >= FEWEST_RUNGS or one.wall is not None]
    found.sort(key=lambda one: (one.work.model, one.unit, PRECISIONS.index(one.precision)))
    if not found:
        return None
    unit = found[0].rungs[0].rows[0].sample_unit
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
