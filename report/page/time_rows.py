"""Rows of times over the fastest: the looks of what was measured and published, their key and words."""

from __future__ import annotations

from collections.abc import Sequence

from harness.record import Claim
from report import text
from report.charts.marks import KeyEntry, Look
from report.charts.rows import Mark, RowGroup, ScaleRow
from report.compare.cells import Cell
from report.page.filters import UNKNOWN, figure_text
from report.page.values import NamedSystem

LEAD = "lead"
"""The name of page one's picture."""
MOST_ROWS = 14
"""Rows of page one's picture."""


def look_of(cell: Cell, *, timed: bool) -> Look:
    """Hollow where a whole training's time is drawn, and was projected from a part of it."""
    return "projected" if timed and cell.length.projected else "measured"


def published_row(claim: Claim, seconds: float, *, loader: bool) -> ScaleRow:
    """A published time over `seconds`; `loader` says that another one fed it."""
    value = claim.value or 0.0
    note = ", ".join(filter(None, (claim.of.precision, "other loader" if loader else "")))
    mark, said = Mark(value / seconds, look="published"), figure_text(value, "seconds")
    return ScaleRow(
        text.short_card(claim.of.card or UNKNOWN), (mark,), note, said, text.times(value / seconds)
    )


def key_of_systems(systems: Sequence[NamedSystem]) -> tuple[KeyEntry, ...]:
    """Return the words of every look; a chart keeps the words that it uses."""
    by_slot = {system.slot: system for system in reversed(systems)}
    shown = [by_slot[slot] for slot in sorted(by_slot)]
    return (
        *(KeyEntry(one.title, "measured", one.slot) for one in shown),
        *(KeyEntry(f"{one.title}, projected", "projected", one.slot) for one in shown),
        KeyEntry("published, no range", "published"),
    )


def describe_rows(groups: Sequence[RowGroup]) -> str:
    """What rows show, for those who cannot see them."""
    said = (
        (
            group.label,
            ", ".join(" ".join(filter(None, (row.label, row.note, row.text))) for row in group.rows),
        )
        for group in groups
    )
    return "; ".join(": ".join(filter(None, each)) for each in said)


def groups_with_room(groups: Sequence[RowGroup], most: int = MOST_ROWS) -> tuple[RowGroup, ...]:
    """The first groups that have so many rows together, one at least."""
    kept: list[RowGroup] = []
    for group in groups:
        if kept and sum(len(each.rows) for each in (*kept, group)) > most:
            break
        kept.append(group)
    return tuple(kept)
