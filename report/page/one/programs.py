"""Page one of published programs: what each promised, and the speed of ours over the original's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.record.measurement import ProgramRun
from report import text
from report.analysis import PROGRAM, Analysis, own_programs
from report.charts.marks import KeyEntry
from report.charts.rows import Mark, RowGroup, ScaleRow, ScaleRows
from report.compare.cells import Cell, cell_ratio
from report.page.one.measured import leading
from report.page.parts.verdicts import ClaimRow, claim_rows
from report.page.values import Headline, Picture, Quantity, Systems, quantity


@dataclass(frozen=True, slots=True)
class ProgramRow:
    """A published program as it ran here; `times` is how many times as fast ours does the same work."""

    ran: ProgramRun
    cell: Cell
    ours: Cell | None
    times: Quantity

    @property
    def window(self) -> Quantity:
        """The shortest and the longest window of its runs."""
        found = [each.window.seconds for trial in self.cell.trials if (each := trial.record.measurement)]
        return quantity((min(found), max(found), max(found)), "seconds")


@dataclass(frozen=True, slots=True)
class ProgramsView:
    """The programs, the claims that met a run of one, and the picture of ours against the originals."""

    rows: tuple[ProgramRow, ...]
    claims: tuple[tuple[str, ClaimRow], ...]
    """By the program's name."""
    picture: Picture | None


def programs(analysis: Analysis) -> ProgramsView:
    """Return the leading session's programs, first the programs that ours was measured against."""
    cells = leading(analysis)
    rows = sorted((_row(cell, cells) for cell in own_programs(analysis)), key=lambda row: row.ours is None)
    named = {id(row.cell): row.ran.name for row in rows}
    judged = {j.claim.id: named[id(c)] for j in analysis.verdicts for c in j.cells if id(c) in named}
    claims = [(judged[row.claim.id], row) for row in claim_rows(analysis) if row.claim.id in judged]
    return ProgramsView(tuple(rows), tuple(claims), _picture(rows))


def _row(cell: Cell, among: Sequence[Cell]) -> ProgramRow:
    """Ours is the cell of that model and batch that this project's own workload trained."""
    ours = next((other for other in among if _same_work(cell, other)), None)
    ratio = cell_ratio(ours, cell, "throughput") if ours else None
    measurement = cell.trials[0].record.measurement
    assert measurement is not None and measurement.program is not None
    return ProgramRow(measurement.program, cell, ours, quantity(ratio))


def _same_work(program: Cell, other: Cell) -> bool:
    models = [cell.key.model.rpartition("/")[2].casefold() for cell in (program, other)]
    alike = models[0] == models[1] and program.key.batch_size == other.key.batch_size
    return (
        alike
        and other.key.workload != PROGRAM
        and program.trials[0].sample_unit == other.trials[0].sample_unit
    )


def _picture(rows: Sequence[ProgramRow]) -> Picture | None:
    """Return the ratios as bars from zero; null where ours was measured against none."""
    drawn = tuple(
        ScaleRow(
            text.clean(row.ran.name, 40),
            (Mark(row.times.value, row.times.low, row.times.high, "measured" if ranked else "projected"),),
            text.model_name(row.cell.key.model),
            text.times(row.times.value),
        )
        for row in rows
        if row.times.value and (ranked := row.cell.ranked and row.ours and row.ours.ranked) is not None
    )
    if not drawn:
        return None
    key = (KeyEntry("ranked", "measured"), KeyEntry("not ranked yet", "projected"))
    alt = "; ".join(f"{row.label}: {row.text}" for row in drawn)
    return Picture("lead", ScaleRows((RowGroup("", drawn),), "the original = 1", key), alt)


def headline(view: ProgramsView, systems: Systems) -> Headline:
    """Return a program's verdict, and how fast ours is against the original that it differs from most."""
    name, claim = view.claims[0] if view.claims else ("", None)
    beside = [row for row in view.rows if row.times]
    apart = [row for row in beside if not row.times.tied] or beside
    far = max(apart, key=lambda row: abs(math.log(row.times.value or 1.0)), default=None)
    data = {"name": name, "claim": claim, "far": far, "own": systems.of(view.rows[0].cell)}
    return Headline("programs", {**data, "more": len(view.claims) - 1, "tied": bool(far and far.times.tied)})
