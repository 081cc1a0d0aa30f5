"""Groups → charts of intervals: seconds, time-scaled, speed against 32-bit, peak memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from harness.record import Claim
from report import text
from report.charts.intervals import Intervals, Mark, Share, Shares
from report.charts.style import Form
from report.comparisons import cells
from report.comparisons.figures import Figure
from report.comparisons.groups import ComparisonGroup, Entry
from report.comparisons.speedups import Speedup
from report.comparisons.time_breakdown import WITHOUT_CLOCK, time_breakdown
from report.comparisons.units.spread import UnitBand, UnitSpreads, unit_band
from report.sections import names
from report.sections.view import Panel
from report.stats.intervals import Interval

GIB = 2**30


def panels(
    group: ComparisonGroup,
    gains: Sequence[Speedup],
    published: Sequence[Claim],
    faster: Claim | None,
    spreads: UnitSpreads,
    anchor: str,
) -> tuple[Panel, ...]:
    """The charts of one group that have something to show, in reading order.

    `faster` is a published duration below all measured ones, which is then 1.00 of the time-scaled chart;
    `spreads` are of all units on record.
    """
    drawn = (
        seconds_panel(group, anchor),
        scaled_panel(group, faster, spreads, anchor),
        gains_panel(group, gains, published, anchor),
        _time_panel(group, anchor),
        energy_panel(group, anchor),
        memory_panel(group, anchor),
    )
    return tuple(panel for panel in drawn if panel is not None)


def seconds_panel(group: ComparisonGroup, anchor: str) -> Panel | None:
    """Seconds for the whole protocol, or for a step where no total is known; published single runs hollow."""
    total = any(entry.cell.seconds.mean is not None for entry in group.entries)
    if total:
        title, unit = "Seconds", f"for all {text.count(group.length.epochs, 'epoch')}; less is better"
    else:
        title, unit = "Seconds per step", "less is better"
    marks = []
    for entry in group.entries:
        figure = entry.cell.seconds if total else entry.cell.step_seconds
        words = text.seconds(figure.mean) if figure.mean is not None else "no valid run"
        marks.append(_mark(entry, group, figure, words, figure.mean, figure.interval))
    marks += [published_mark(claim, claim.value, text.seconds(claim.value)) for claim in group.published]
    marks += _failures(group)
    return intervals_panel(f"{anchor}-seconds", title, unit, marks)


def _failures(group: ComparisonGroup) -> list[Mark]:
    """Trials without a measurement keep their place: a variant that does not fit is no missing line."""
    counted = Counter(
        (trial.card, trial.machine_label, trial.key.precision, trial.key.batch_size, trial.failure.reason)
        for trial in group.failed
        if trial.failure
    )
    return [
        Mark(
            label=names.line_name(card, machine, precision, group),
            note=f"batch {batch} · {text.count(n, 'trial')}",
            text=text.failure_words(reason),
            value=None,
            precision=precision,
            card=text.unit_name(card, machine),
        )
        for (card, machine, precision, batch, reason), n in counted.items()
    ]


def scaled_panel(
    group: ComparisonGroup, faster: Claim | None, spreads: UnitSpreads, anchor: str
) -> Panel | None:
    """Duration ÷ that of the row's fastest, 1.00, published or measured; or ÷ the baseline's."""
    reference = group.reference
    alone = len(group.entries) + len(group.published) < 2
    if reference is None or reference.cell.seconds.mean is None or alone:
        return None
    if faster is not None:
        return _over_published(group, faster, anchor)
    scale = reference.cell.seconds.mean
    marks: list[Mark] = []
    bands: list[str] = []
    for entry in group.entries:
        if entry.scaled is not None:
            figure = _scaled_by(entry.cell.seconds, scale)
            value, interval = entry.scaled.estimate, entry.scaled.interval
            mark = _mark(entry, group, figure, names.scaled(entry), value, interval)
            band = _other_units(spreads, entry, reference)
            bands += [band.label] if band else []
            marks.append(replace(mark, other_units=_widened(entry, value, band)))
    marks += _published_over(group, scale)
    unit = f"{names.label(reference.cell, group)} = 1.00; less is better"
    if bands:
        unit += f"; pale: {' or '.join(dict.fromkeys(bands))}"
    return ratios_panel(f"{anchor}-scaled", "Time-scaled", unit, marks)


def _over_published(group: ComparisonGroup, fastest: Claim, anchor: str) -> Panel | None:
    """Scaled to a published duration, which is one number: each interval is of its own mean alone."""
    scale = fastest.value or 1.0
    marks = []
    for entry in group.entries:
        figure, interval = _scaled_by(entry.cell.seconds, scale), entry.cell.seconds.interval
        if entry.cell.seconds.mean is not None:
            value = entry.cell.seconds.mean / scale
            mark = _mark(entry, group, figure, text.times(value), value, None)
            ends = (interval.low / scale, interval.high / scale) if interval else (None, None)
            marks.append(replace(mark, low=ends[0], high=ends[1]))
    marks += _published_over(group, scale)
    unit = f"{names.published(fastest)[0]}, published = 1.00; less is better"
    return ratios_panel(f"{anchor}-scaled", "Time-scaled", unit, marks)


def _published_over(group: ComparisonGroup, scale: float) -> list[Mark]:
    timed = [(claim, claim.value / scale) for claim in group.published if claim.value is not None]
    return [published_mark(claim, value, text.times(value)) for claim, value in timed]


def _other_units(spreads: UnitSpreads, line: Entry, reference: Entry) -> UnitBand | None:
    """Where another unit of this line's card may lie; null where the unit is the reference's own.

    Measured where three units of the card did one work.
    """
    if line.cell.machine == reference.cell.machine and line.cell.card == reference.cell.card:
        return None
    return unit_band(spreads.of(line.cell.card))


def _widened(line: Entry, value: float, band: UnitBand | None) -> tuple[float, float] | None:
    if band is None:
        return None
    interval = line.scaled.interval if line.scaled else None
    low, high = (interval.low, interval.high) if interval else (value, value)
    return band.around(low, value, high)


def _scaled_by(figure: Figure, scale: float) -> Figure:
    values = tuple(value / scale for value in figure.values)
    return Figure(values, figure.blocks, tuple(value / scale for value in figure.apart))


def gains_panel(
    group: ComparisonGroup, gains: Sequence[Speedup], published: Sequence[Claim], anchor: str
) -> Panel | None:
    """Each precision against full precision; every mark names its denominator."""
    marks = [gain_mark(gain, names.label(gain.of, group), names.gain_note(gain)) for gain in gains]
    for claim in published if group.base.data_source != "generated" else ():
        over = claim.over.precision if claim.over else None
        mark = published_mark(claim, claim.value, f"{text.times(claim.value)} ×")
        marks.append(replace(mark, note=f"over {over} · published · study {claim.study}"))
    title, unit = "Speed against 32-bit", "times as fast; more is better"
    return ratios_panel(f"{anchor}-gain", title, unit, marks)


def gain_mark(gain: Speedup, label: str, note: str) -> Mark:
    """How many times as fast one precision is as another."""
    interval = gain.ratio.interval
    return Mark(
        label=label,
        note=note,
        text=f"{text.times(gain.ratio.estimate)} ×",
        value=gain.ratio.estimate,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        precision=gain.of.key.precision,
        card=cells.unit_of(gain.of),
        unranked=not (gain.of.ranked and gain.over.ranked),
    )


def energy_panel(group: ComparisonGroup, anchor: str) -> Panel | None:
    """Joules per sample, of the lines whose energy is known; the sensors' own error stands beside it."""
    marks = []
    for entry in group.entries:
        figure = entry.cell.joules
        if figure.mean is not None:
            words = f"{text.number(figure.mean)} J"
            marks.append(_mark(entry, group, figure, words, figure.mean, figure.interval))
    telemetry = [trial.record.telemetry for entry in group.entries for trial in entry.cell.trials]
    bands = [read.energy.band for read in telemetry if read is not None and read.energy.band]
    unit = f"joules of the device for one {group.entries[0].cell.trials[0].sample_unit}"
    unit += f"; sensors ±{max(bands):.0%} besides" if bands else ""
    return intervals_panel(f"{anchor}-energy", "Energy", unit, marks)


def memory_panel(group: ComparisonGroup, anchor: str) -> Panel | None:
    """Peak memory in GiB: of the framework's allocator on a device, of the process on a CPU."""
    on_cpu = all(entry.cell.stack.device == "cpu" for entry in group.entries)
    marks = []
    for entry in group.entries:
        figure = _scaled_by(entry.cell.peak_bytes, GIB)
        if figure.values:
            most = max(figure.values)
            marks.append(_mark(entry, group, figure, text.gibibytes(most * GIB), most, None))
    unit = f"GiB of {'the process' if on_cpu else 'the allocator'}; the highest of all runs"
    return intervals_panel(f"{anchor}-memory", "Peak memory", unit, marks)


def _mark(
    line: Entry,
    group: ComparisonGroup,
    figure: Figure,
    words: str,
    value: float | None,
    interval: Interval | None,
) -> Mark:
    return Mark(
        label=names.label(line.cell, group),
        note=names.note(line, group),
        text=words,
        value=value,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        runs=figure.values,
        left_out=figure.apart,
        precision=line.cell.key.precision,
        unranked=not line.cell.ranked,
        card=cells.unit_of(line.cell),
    )


def published_mark(claim: Claim, value: float | None, words: str) -> Mark:
    """A published figure, which has no spread of its own."""
    name, note = names.published(claim)
    precision = claim.of.precision or ""
    return Mark(name, note, words, value, precision=precision, card="published", published=True)


def intervals_panel(
    name: str, title: str, unit: str, marks: Sequence[Mark], *, form: Form = "number", ratio: bool = False
) -> Panel | None:
    """A chart of intervals with its description in words; null where there is nothing to draw."""
    if not any(mark.extent() for mark in marks):
        return None
    alt = "; ".join(f"{mark.label} ({mark.note}): {mark.text}" for mark in marks[:12])
    return Panel(name, title, unit, Intervals(tuple(marks), form, ratio), alt)


def ratios_panel(name: str, title: str, unit: str, marks: Sequence[Mark]) -> Panel | None:
    """Ratios around 1, with their description in words; null where there is nothing to draw."""
    return intervals_panel(name, title, unit, marks, form="times", ratio=True)


def _time_panel(group: ComparisonGroup, anchor: str) -> Panel | None:
    """A bar for each line: its whole time, divided; where no line tells compute from the rest, it says so."""
    lines = [
        (entry.cell, shares) for entry in group.entries if (shares := time_breakdown(entry.cell)) is not None
    ]
    if not lines:
        return None
    clocked = any(shares.other is not None for _, shares in lines)
    unit = "shares of the steady steps" + ("" if clocked else "; no clock of the device")
    kinds = {} if clocked else WITHOUT_CLOCK
    rows = tuple(
        Share(
            names.label(cell, group),
            cells.unit_of(cell),
            cell.key.precision,
            tuple((kinds.get(kind, kind), share) for kind, share in shares.parts()),
        )
        for cell, shares in lines
    )
    alt = "; ".join(
        f"{names.label(cell, group)}: "
        + ", ".join(f"{text.percent(share)} {kind}" for kind, share in shares.parts())
        for cell, shares in lines[:12]
    )
    return Panel(f"{anchor}-split", "Where the time goes", unit, Shares(rows), alt)
