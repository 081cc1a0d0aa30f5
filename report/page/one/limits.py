"""What a device reaches at most beside its paper, what each work waits for, and which limit it meets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from harness.record import PURE, DeviceUsed
from harness.record.published.cards import Card, find_card, peak_tflops
from report import text
from report.analysis import Analysis
from report.charts.rows import KeyEntry, Mark, RowGroup, ScaleRow, ScaleRows
from report.compare.cells import Cell, TimeBreakdown, time_breakdown
from report.page.filters import figure_text, of_each_key, work_name
from report.page.one.answering import cores_of, repeat_line
from report.page.pictures import rows_picture
from report.page.values import AnswerPage, Picture, Sentence, Systems
from report.trials.ceilings import (
    RooflinePoint,
    Together,
    bandwidth_of,
    ceiling_of,
    ceilings,
    device_of,
    reached_together,
    roofline_point,
    share,
)
from report.trials.key import grouped_by
from report.trials.trial import TrialResult


@dataclass(frozen=True, slots=True)
class SheetRow:
    """One limit of a device in `unit`, on paper and as measured; null where that is not known."""

    name: str
    """The arithmetic of a product, or bandwidth, memory, power."""
    unit: str
    paper: float | None
    measured: float | None

    @property
    def share(self) -> float | None:
        """The measured limit as a share of the one on paper."""
        return share(self.measured, self.paper)


@dataclass(frozen=True, slots=True)
class DeviceLimits:
    """How close one device's work comes to its limits."""

    device: str
    rows: tuple[tuple[TrialResult, RooflinePoint], ...]
    """The typical run of each work below its limits."""
    sheet: tuple[SheetRow, ...]
    source: str
    """The source of the figures on paper; empty where there are none."""
    measured: bool
    """Whether ceilings were measured on it."""
    all_reduce: tuple[Together, ...]
    runs: int
    """How many trials measured its ceilings."""


@dataclass(frozen=True, slots=True)
class LimitsView:
    """Devices and waits."""

    waits: tuple[tuple[str, Cell, TimeBreakdown], ...]
    """Where the time of each work goes, by its name, the longest wait first."""
    devices: tuple[DeviceLimits, ...]


def viewed(analysis: Analysis, systems: Systems) -> LimitsView | None:
    """Return what limits the cells on the page; null where nothing was measured."""
    cells = analysis.page_cells
    among = of_each_key(cells)
    found = [(work_name(cell, among), cell, time_breakdown(cell)) for cell in cells]
    waits = [(name, cell, breakdown) for name, cell, breakdown in found if breakdown]
    devices = devices_of(analysis)
    if not waits and not devices:
        return None
    return LimitsView(tuple(sorted(waits, key=lambda wait: -wait[2].input_wait)), devices)


def devices_of(analysis: Analysis) -> tuple[DeviceLimits, ...]:
    """Return the limits of each device that trained or was measured; invalid trials are left out."""
    trials, cards = analysis.with_ceilings, analysis.evidence.cards
    by_device = ceilings(trial.record for trial in trials)
    together = reached_together(trial.record for trial in trials)
    valid = [trial for trial in trials if trial.verdict != "invalid"]
    of_device = grouped_by(valid, lambda trial: device_of(trial.record))
    views = []
    for device, own in of_device.items():
        measured = by_device.get(device, {}) if device else {}
        reached = tuple(each for each in together if each.device == device)
        views.append(_device(own, cards, measured, reached))
    return tuple(found for found in views if found is not None)


def _device(
    trials: Sequence[TrialResult],
    cards: Sequence[Card],
    measured: Mapping[str, float],
    reached: tuple[Together, ...],
) -> DeviceLimits | None:
    trained = [trial for trial in trials if not trial.is_ceiling]
    alike = grouped_by(trained, lambda trial: trial.key).values()
    works = [(own[0], point) for own in alike if (point := _typical_point(own, cards, measured))]
    used = trials[0].record.measurement
    if used is None or not (works or measured):
        return None
    card = find_card(trials[0].device_name, cards)
    sheet = _sheet(used.device, card, measured, trials) if card or measured else ()
    return DeviceLimits(
        device=trials[0].card,
        rows=tuple(works),
        sheet=sheet,
        source=text.clean(card.source, 200) if card else "",
        measured=bool(measured),
        all_reduce=reached,
        runs=len(trials) - len(trained),
    )


def _typical_point(
    trials: Sequence[TrialResult], cards: Sequence[Card], measured: Mapping[str, float]
) -> RooflinePoint | None:
    """The run whose speed is the middle one; null where its operations are not known."""
    points = [
        roofline_point(trial.record, trial.summary, cards, measured)
        for trial in trials
        if trial.summary is not None
    ]
    rated = [(point.flops_per_second, point) for point in points if point.flops_per_second is not None]
    if not rated:
        return None
    middle = median(rate for rate, _ in rated)
    return min(rated, key=lambda pair: abs(pair[0] - middle))[1]


def _sheet(
    device: DeviceUsed, card: Card | None, measured: Mapping[str, float], trials: Sequence[TrialResult]
) -> tuple[SheetRow, ...]:
    """What one device of a card should do and what it did.

    Vendors print 2³⁰ bytes as a gigabyte of memory; the device says what is left to use. Of power the board's
    limit is shown beside the one that the driver held to while the trials ran.
    """
    rows = []
    for arithmetic, label in PURE.items():
        peak, reached = peak_tflops(card, label) if card else None, ceiling_of(measured, label)
        rows.append(SheetRow(arithmetic.removesuffix("-ieee"), "TFLOP/s", peak, reached and reached / 1e12))
    watched = [trial.record.telemetry.cards for trial in trials if trial.record.telemetry]
    watts = [read.power_limit_watts for cards in watched for read in cards if read.power_limit_watts]
    paper = (card.bandwidth_gbs, card.memory_gb, card.power_watts) if card else (None,) * 3
    bandwidth, memory, power = (value and value / card.devices if card else None for value in paper)
    copied, size = bandwidth_of(measured), device.memory_bytes or None
    rows += [
        SheetRow("bandwidth", "GB/s", bandwidth, copied and copied / 1e9),
        SheetRow("memory", "GiB", memory, size and size / 2**30),
        SheetRow("power", "W", power, max(watts, default=None)),
    ]
    return tuple(row for row in rows if row.paper is not None or row.measured is not None)


# Page one


def page(analysis: Analysis, systems: Systems) -> AnswerPage | None:
    """Return the page of a device's limits; null where none was measured."""
    devices = [device for device in devices_of(analysis) if device.measured]
    if not devices:
        return None
    rows = [row for row in devices[0].sheet if row.measured and row.unit in ("TFLOP/s", "GB/s")]
    data = {"own": systems.own[0], "rows": rows, "cores": cores_of(analysis.with_ceilings[0].record)}
    sure = {"runs": devices[0].runs, "apart": _farthest_apart(analysis.with_ceilings)}
    return AnswerPage(
        headline=Sentence("limits-reached", data),
        picture=_limits_picture(rows),
        template="limits",
        table=devices,
        notes=(
            Sentence("limits-sure", sure),
            Sentence("limits-use", {"held": any(device.rows for device in devices)}),
        ),
        following=repeat_line(analysis),
        about={"device": devices[0].device},
    )


def _farthest_apart(trials: Sequence[TrialResult]) -> float:
    """Return how far the runs of a product or copy lie apart at most, over their median; 0 of single runs."""
    measured = (trial.record.measurement for trial in trials if trial.verdict != "invalid")
    runs = [one.ceilings for one in measured if one and not one.all_reduce]
    values = ([run[name] for run in runs if name in run] for name in {name for run in runs for name in run})
    return max(((max(of) - min(of)) / median(of) for of in values), default=0.0)


def _limits_picture(known: Sequence[SheetRow]) -> Picture | None:
    """Shares of the paper where that is known, else the figures, each unit on a scale of its own."""
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
        "of the data sheet" if on_paper else "",
        (KeyEntry("measured", "measured"),),
        reference=1.0 if on_paper else None,
    )
    return rows_picture(chart, "limits" if on_paper else "speeds")
