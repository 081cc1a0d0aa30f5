"""Cells that differ in their batch alone: throughput against batch, and the best batch of each precision.

Two views that no chart mixes: the fixed batches of groups, and sweeps, which look for the best batch.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.summary.statistics import MOST_MEMORY_SHARE
from report import text
from report.charts.lines import Curve, Curves, Wall
from report.comparisons.batch_sweeps import (
    ANY_BATCH,
    FEWEST_BATCHES,
    BatchSweep,
    batch_sweeps,
    reserved_share,
)
from report.comparisons.cells import Cell
from report.comparisons.groups import PRECISIONS
from report.sections import names
from report.sections.view import Panel, Table
from report.trials.key import Key
from report.trials.pairs import LOSS_SCALE, grouped_by, same_but
from report.trials.trial import Trial

_panel_place = same_but("precision", *ANY_BATCH, within=(LOSS_SCALE, "limit"))


def panels(cells: Sequence[Cell], failed: Sequence[Trial], anchor: str) -> tuple[Panel, ...]:
    """Throughput against batch, a panel for each work; a wall stands where a batch did not fit."""
    drawn = grouped_by(batch_sweeps(cells, failed), lambda sweep: _panel_place(sweep.cells[0])).values()
    among = [cell.key for cell in cells]
    return tuple(_panel(members, f"{anchor}-batch-{n}", among) for n, members in enumerate(drawn, 1))


def _panel(members: Sequence[BatchSweep], name: str, among: Sequence[Key]) -> Panel:
    work = members[0].key
    several = len({sweep.unit for sweep in members}) > 1
    lines = [_line(sweep, several) for sweep in members]
    walls = [
        Wall(float(batch), f"{batch:,} does not fit", sweep.precision, sweep.unit)
        for sweep in sorted(members, key=lambda sweep: (sweep.unit, sweep.precision))
        if (batch := sweep.out_of_memory_batch) is not None
    ]
    under = names.apart(work, among, said=("batch_size", "data_mode"))
    title = f"{text.model_name(work.model)}{names.setting(work)}{under}: throughput against batch"
    alt = "; ".join(_points_words(line) for line in lines[:12])
    alt += "".join(f"; {wall.card} {wall.precision}: {wall.text}" for wall in walls)
    unit = members[0].cells[0].trials[0].sample_unit
    chart = Curves(tuple(lines), "batch", zero=True, doubling=True, walls=tuple(walls))
    return Panel(name, title, f"{unit}s a second, {work.data_mode} data; more is better", chart, alt)


def _line(sweep: BatchSweep, several: bool) -> Curve:
    return Curve(
        label=f"{sweep.unit} {sweep.precision}" if several else sweep.precision,
        points=tuple((float(c.key.batch_size), c.throughput.mean or 0.0) for c in sweep.cells),
        precision=sweep.precision,
        card=sweep.unit,
        intervals=tuple(_ends(cell) for cell in sweep.cells),
        marked=True,
    )


def _ends(cell: Cell) -> tuple[float, float] | None:
    interval = cell.throughput.interval
    return (max(interval.low, 0.0), interval.high) if interval else None


def _points_words(line: Curve) -> str:
    points = ", ".join(f"{text.number(y)} at batch {x:,g}" for x, y in line.points[:8])
    return f"{line.label}: {points}"


def table(cells: Sequence[Cell], failed: Sequence[Trial]) -> Table | None:
    """The best batch of each sweep, the largest that fits, and the first that does not."""
    sweeps = [
        sweep
        for sweep in batch_sweeps(cells, failed)
        if len(sweep.cells) >= FEWEST_BATCHES or sweep.out_of_memory_batch is not None
    ]
    sweeps.sort(key=lambda sweep: (sweep.key.model, sweep.unit, PRECISIONS.index(sweep.precision)))
    if not sweeps:
        return None
    unit = sweeps[0].cells[0].trials[0].sample_unit
    caption = (
        f"The best batch: of those measured that fit and reserve no more than {MOST_MEMORY_SHARE:.0%} "
        "of the memory, the one of the highest throughput. It is another view than the fixed "
        "batch of the charts below, and stands in none of them."
    )
    columns = ("Model", "Precision", "Best batch", f"{unit.capitalize()}s / s there", "Largest that fits")
    return Table(caption, (*columns, "Does not fit"), tuple(_row(sweep) for sweep in sweeps))


def _row(sweep: BatchSweep) -> tuple[str, ...]:
    best, fitting = sweep.best, sweep.fitting
    largest = fitting[-1] if fitting else None
    taken = reserved_share(largest) if largest else None
    beneath = "" if taken is None else f"\n{text.percent(taken)} of the memory"
    wall = "–" if sweep.out_of_memory_batch is None else f"{sweep.out_of_memory_batch:,}"
    spill = "\nfar slower above: memory may spill" if sweep.spills else ""
    return (
        f"{text.model_name(sweep.key.model)}{names.setting(sweep.key)}\n{sweep.unit}",
        sweep.precision,
        "–" if best is None else f"{best.key.batch_size:,}{spill}",
        "–" if best is None else names.rate(best),
        "–" if largest is None else f"{largest.key.batch_size:,}{beneath}",
        wall,
    )
