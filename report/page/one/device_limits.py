"""What a device reaches at most: its products and copies, beside its paper."""

from __future__ import annotations

from report.analysis import Analysis
from report.charts.marks import KeyEntry
from report.charts.rows import Mark, RowGroup, ScaleRow, ScaleRows
from report.page.filters import figure_text
from report.page.one.answering import repeat_line
from report.page.parts.limits import DeviceLimits, devices_of
from report.page.values import AnswerPage, Picture, Sentence, Systems
from report.trials.key import grouped_by


def page(analysis: Analysis, systems: Systems) -> AnswerPage | None:
    """Return the page of a device's limits; null where none was measured."""
    devices = [device for device in devices_of(analysis) if device.measured]
    if not devices:
        return None
    rows = [row for row in devices[0].sheet if row.measured and row.unit in ("TFLOP/s", "GB/s")]
    return AnswerPage(
        headline=Sentence(
            "limits-reached", {"own": systems.own[0], "rows": rows, "together": devices[0].all_reduce}
        ),
        picture=_picture(devices[0]),
        template="limits",
        table=devices,
        notes=(Sentence("limits-sure", {"runs": devices[0].runs}), Sentence("limits-use")),
        following=repeat_line(analysis),
        about={"device": devices[0].device},
    )


def _picture(device: DeviceLimits) -> Picture | None:
    """Shares of the paper where that is known, else the figures, each unit on a scale of its own."""
    known = [row for row in device.sheet if row.measured and row.unit in ("TFLOP/s", "GB/s")]
    groups = []
    for unit, rows in grouped_by(known, lambda row: "" if row.share else row.unit).items():
        drawn = tuple(
            ScaleRow(
                row.name if row.name == "bandwidth" else f"{row.name} products",
                (Mark(row.share or row.measured or 0.0),),
                text=figure_text(row.share, "share") if row.share else figure_text(row.measured, row.unit),
                small=figure_text(row.measured, row.unit) if row.share else "",
            )
            for row in rows
        )
        groups.append(RowGroup(unit, drawn))
    if not groups:
        return None
    on_paper = any(row.share for row in known)
    chart = ScaleRows(
        tuple(groups),
        "of the paper's peak" if on_paper else "",
        (KeyEntry("measured", "measured"),),
        reference=1.0 if on_paper else None,
    )
    alt = "; ".join(f"{row.label} {row.text} {row.small}" for group in groups for row in group.rows)
    return Picture("lead", chart, alt, "limits" if on_paper else "speeds")
