"""Where a trial's time goes: waiting for input, computing, and what the host alone does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from report import svg, text
from report.charts import LABEL_WIDTH, WIDTH, fit
from report.comparisons import cells
from report.comparisons.cells import Cell
from report.comparisons.groups import ComparisonGroup
from report.sections import names
from report.sections.view import Panel

ROW, BAR = 46.0, 16.0
ROOM_FOR_TEXT = 30.0

AREAS = {"wait": "input wait", "work": "compute", "rest": "other"}


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
        found = [("wait", self.input_wait), ("work", self.compute), ("rest", self.other or 0.0)]
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
    parts: list[str] = []
    for place, (cell, found) in enumerate(lines):
        row = _row(names.label(cell, group), found, ROW * place)
        parts.append(svg.series(row, cells.unit_of(cell), cell.key.precision, step=ROW))
    foot = ROW * len(lines)
    parts.append(f'<g class="foot">{"".join(_legend(foot + 14, known))}</g>')
    alt = "; ".join(f"{names.label(cell, group)}: {_alt(found)}" for cell, found in lines[:12])
    name = f"{anchor}-split"
    return Panel(name, title, unit, svg.document(name, title, alt, WIDTH, foot + 22, parts), alt)


def _alt(found: TimeBreakdown) -> str:
    return ", ".join(f"{text.percent(share)} {AREAS[kind]}" for kind, share in found.parts())


def _row(label: str, found: TimeBreakdown, top: float) -> list[str]:
    parts = [svg.text(0, top + 12, fit(label, LABEL_WIDTH), weight="600")]
    x = 0.0
    for kind, share in found.parts():
        wide = share * WIDTH
        parts.append(svg.band(x, max(x + wide - 1, x + 0.5), top + 28, BAR, kind))
        if wide >= ROOM_FOR_TEXT:
            parts.append(svg.text(x + 5, top + 32, text.percent(share), kind="inside"))
        x += wide
    return parts


def _legend(y: float, known: bool) -> list[str]:
    parts, x = [], 0.0
    shown: Sequence[str] = ("wait", "work", "rest") if known else ("wait", "work")
    for kind in shown:
        said = AREAS[kind] if known or kind == "wait" else "compute and all else"
        parts += [svg.band(x, x + 10, y - 4, 10, kind), svg.text(x + 15, y, said, kind="n")]
        x += 36 + 6.4 * len(said)
    return parts
