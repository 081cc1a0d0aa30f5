"""What is on record or was planned, and does not stand in any chart."""

from __future__ import annotations

from collections.abc import Sequence

from harness.record import LeftOut
from report import text
from report.comparisons.cells import Cell
from report.comparisons.groups import ComparisonGroup, differences
from report.sections.view import Table

MOST_LEFT_OVER = 60


def left_over(cells: Sequence[Cell], groups: Sequence[ComparisonGroup]) -> Table | None:
    """Records of other sessions that stand in no row here, with the field that keeps them out."""
    if not cells:
        return None
    rows = []
    for cell in cells[:MOST_LEFT_OVER]:
        reasons = [differences(group, cell) for group in groups]
        closest = min((fields for fields in reasons if fields), key=len, default=())
        why = "; ".join(f"{name} {here} instead of {there}" for name, there, here in closest[:3])
        what = f"{cell.key.workload}, {cell.key.model}, {cell.key.precision}, batch {cell.key.batch_size}"
        where = f"{text.clean(cell.machine_label, 30)}, session {cell.session}"
        why = text.clean(why or "nothing: an older session of the same machine", 160)
        rows.append((text.clean(what, 80), where, str(len(cell.trials)), why))
    caption = "On record, but not compared: what keeps each away from the nearest chart of this page."
    if len(cells) > MOST_LEFT_OVER:
        caption += f" {len(cells) - MOST_LEFT_OVER:,} more are not listed."
    return Table(caption, ("What", "Where", "Trials", "Differs in"), tuple(rows))


def left_out(entries: Sequence[LeftOut]) -> Table | None:
    """What a budget or a machine left out of the plan."""
    if not entries:
        return None
    rows = tuple(
        (text.clean(entry.what, 80), str(entry.trials), text.clean(entry.reason, 120)) for entry in entries
    )
    return Table("Planned and left out", ("What", "Trials", "Why"), rows)
