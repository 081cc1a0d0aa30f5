"""Where a trial's time goes: waiting for input, computing, and what the host alone does."""

from __future__ import annotations

from dataclasses import dataclass

from report import text
from report.charts.intervals import Share, Shares
from report.comparisons import cells
from report.comparisons.cells import Cell
from report.comparisons.groups import ComparisonGroup
from report.sections import names
from report.sections.view import Panel

WITHOUT_CLOCK = {"compute": "compute and all else"}


@dataclass(frozen=True, slots=True)
class TimeBreakdown:
    """Shares of the steady steps' time; they add up to 1.

    Where the device keeps no clock of its own, `compute` is all that did not wait for input, `other` null.
    """

    input_wait: float
    compute: float
    other: float | None

    def parts(self) -> tuple[tuple[str, float], ...]:
        """Each part's name and share, in reading order."""
        found = [("input wait", self.input_wait), ("compute", self.compute), ("other", self.other or 0.0)]
        return tuple((kind, share) for kind, share in found if share > 0)


def time_breakdown(cell: Cell) -> TimeBreakdown | None:
    """The means over all valid runs: other = host-bound share − input wait, compute = the device's own time.

    Null where the wait for input was not measured.
    """
    waited, host = cell.input_share.mean, cell.host_share.mean
    if waited is None:
        return None
    waited = min(max(waited, 0.0), 1.0)
    if host is None:
        return TimeBreakdown(waited, 1 - waited, None)
    other = min(max(host - waited, 0.0), 1 - waited)
    return TimeBreakdown(waited, 1 - waited - other, other)


def said(found: TimeBreakdown | None) -> str:
    """'4 % input wait, 93 % compute, 3 % other'"""
    if found is None:
        return "–"
    rest = "the rest not told apart" if found.other is None else f"{text.percent(found.other)} other"
    if found.other is None:
        return f"{text.percent(found.input_wait)} input wait\n{rest}"
    return f"{text.percent(found.input_wait)} input wait\n{text.percent(found.compute)} compute, {rest}"


def panel(group: ComparisonGroup, anchor: str) -> Panel | None:
    """A bar for each line: its whole time, divided."""
    lines = [
        (entry.cell, found) for entry in group.entries if (found := time_breakdown(entry.cell)) is not None
    ]
    if not lines:
        return None
    known = any(found.other is not None for _, found in lines)
    title, unit = (
        "Where the time goes",
        "shares of the steady steps" if known else "shares of the steady steps; no clock of the device",
    )
    rows = tuple(
        Share(names.label(cell, group), cells.unit_of(cell), cell.key.precision, _named(found, known))
        for cell, found in lines
    )
    alt = "; ".join(f"{row.label}: {_alt(found)}" for row, (_, found) in zip(rows[:12], lines, strict=False))
    return Panel(f"{anchor}-split", title, unit, Shares(rows), alt)


def _named(found: TimeBreakdown, known: bool) -> tuple[tuple[str, float], ...]:
    """Where no line tells compute from the rest, its part says so."""
    return (
        found.parts()
        if known
        else tuple((WITHOUT_CLOCK.get(kind, kind), part) for kind, part in found.parts())
    )


def _alt(found: TimeBreakdown) -> str:
    return ", ".join(f"{text.percent(share)} {kind}" for kind, share in found.parts())
