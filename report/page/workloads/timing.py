"""All that one workload took, in one picture: a bar, and beside it time-scaled, time, speed and batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.record import Claim
from report import text
from report.charts.bars import Bar, Bars, Group
from report.charts.marks import Look
from report.compare.cells import Cell
from report.compare.groups import ComparisonGroup
from report.page.filters import seconds
from report.page.names import apart, setting
from report.page.one.pictures import key_of, nearest_bars
from report.page.systems import Systems
from report.page.values import Picture
from report.trials.key import Key
from report.trials.trial import TrialResult

MOST_BARS = 24
MOST_FAILED = 2
"""Failed trials of a group that have a bar."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The picture, how many works it leaves to the table, and how it is to be read."""

    picture: Picture
    works_left: int
    compared: bool
    """Whether each bar is over the fastest of its work; else it is a time."""
    own_scales: bool


def timing(groups: Sequence[ComparisonGroup], name: str, systems: Systems) -> Timing | None:
    """A group of bars for each work, while there is room; null where nothing has a time.

    Works of one bar are no comparison: they are left out beside others, and stand in one group by themselves.
    """
    timed = [group for group in groups if _cells(group)]
    made = [_group(group, [other.base for other in timed], systems) for group in timed]
    compared = [group for group in made if len(group.bars) > 1]
    drawn: list[Group] = []
    for group in compared:
        if drawn and sum(len(each.bars) for each in drawn) + len(group.bars) > MOST_BARS:
            break
        drawn.append(group)
    if not made:
        return None
    chart = _compared(drawn, _unit(timed), systems) if drawn else _alone(timed, made, _unit(timed), systems)
    if chart.each_from_zero:
        scaled = (replace(group, notes=(*group.notes, "own scale")) for group in chart.groups)
        chart = replace(chart, groups=tuple(scaled))
    alt = "; ".join(
        f"{group.label}: " + ", ".join(f"{bar.label} {bar.note} {' '.join(bar.cells)}" for bar in group.bars)
        for group in chart.groups
    )
    left = len(made) - len(drawn) if drawn else max(len(made) - MOST_BARS, 0)
    return Timing(Picture(name, chart, alt), left, bool(drawn), chart.each_from_zero)


def _compared(drawn: Sequence[Group], unit: str, systems: Systems) -> Bars:
    return _columned(drawn, ("time-scaled", "time", unit, "batch"), Bars((), "fastest = 1.00"), systems)


def _alone(groups: Sequence[ComparisonGroup], made: Sequence[Group], unit: str, systems: Systems) -> Bars:
    """The time of each work by itself, in seconds."""
    bars = []
    for group, (bar,) in zip(groups, (each.bars for each in made), strict=True):
        cell, whole = _cells(group)[0], has_seconds(group)
        figure, value = cell.seconds if whole else cell.throughput, _time(cell, whole)
        ends = (figure.interval.low, figure.interval.high) if figure.interval and whole else (None, None)
        label, note = text.model_name(group.base.model), f"{bar.note} {setting(group.base).strip(', ')}"
        bars.append(
            replace(
                bar,
                label=label,
                note=note.strip(),
                value=value,
                low=ends[0],
                high=ends[1],
                cells=bar.cells[1:],
            )
        )
    together = Group("", tuple(bars[:MOST_BARS]))
    axis = "seconds" if all(map(has_seconds, groups)) else "seconds of a sample"
    return _columned([together], ("time", unit, "batch"), Bars((), axis, reference=None), systems)


def _columned(drawn: Sequence[Group], columns: tuple[str, ...], chart: Bars, systems: Systems) -> Bars:
    """The chart with these groups, less the columns that no bar has anything in."""
    cells = [bar.cells for group in drawn for bar in group.bars if bar.cells]
    kept = [place for place in range(len(columns)) if any(row[place] for row in cells)]
    groups = tuple(
        replace(
            group,
            bars=tuple(
                replace(bar, cells=tuple(bar.cells[place] for place in kept)) if bar.cells else bar
                for bar in group.bars
            ),
        )
        for group in drawn
    )
    return replace(
        chart, groups=groups, columns=tuple(columns[place] for place in kept), key=key_of(drawn, systems)
    )


def _unit(groups: Sequence[ComparisonGroup]) -> str:
    units = {f"{entry.cell.trials[0].sample_unit}s/s" for group in groups for entry in group.entries}
    return units.pop() if len(units) == 1 else "samples/s"


def _cells(group: ComparisonGroup) -> list[Cell]:
    whole = has_seconds(group)
    return [entry.cell for entry in group.entries if _time(entry.cell, whole) is not None]


def has_seconds(group: ComparisonGroup) -> bool:
    """Whether each of its entries that has a speed has the time of the whole protocol, too."""
    timed = [entry.cell for entry in group.entries if entry.cell.throughput.mean is not None]
    return all(cell.seconds.mean is not None for cell in timed)


def _time(cell: Cell, whole: bool) -> float | None:
    """Seconds of the whole protocol, else those of a sample."""
    if whole:
        return cell.seconds.mean
    return 1 / cell.throughput.mean if cell.throughput.mean else None


def _group(group: ComparisonGroup, among: Sequence[Key], systems: Systems) -> Group:
    whole, cells = has_seconds(group), _cells(group)
    published = [claim for claim in group.published if claim.value] if whole else []
    times = [time for cell in cells if (time := _time(cell, whole))]
    fastest = min([*times, *(claim.value or 0.0 for claim in published)])
    bars = [_measured(cell, fastest, whole, systems) for cell in cells]
    bars += [_published(claim, fastest) for claim in published]
    bars.sort(key=lambda bar: bar.value or 0.0)
    every = len(bars)
    bars = [*nearest_bars(bars, MOST_BARS)]
    bars += [_failed(trial, systems) for trial in _one_of_each(group.failed)[:MOST_FAILED]]
    key, length = group.base, group.length
    notes = [text.count(length.epochs, "epoch") if length.epochs else "", f"{key.data_mode} data"]
    notes.append(f"{setting(key)}{apart(key, among, said=('data_mode', 'batch_size'))}".strip(", "))
    if every > MOST_BARS:
        notes.append(f"{MOST_BARS} of {every:,}, the fastest and the nearest to this machine")
    return Group(text.model_name(key.model), tuple(bars), tuple(note for note in notes if note))


def _measured(cell: Cell, fastest: float, whole: bool, systems: Systems) -> Bar:
    time, system = _time(cell, whole), systems.of(cell)
    assert time is not None
    figure, low, high = cell.seconds if whole else cell.throughput, None, None
    if figure.interval and figure.interval.low > 0:
        ends = figure.interval.low, figure.interval.high
        low, high = (end / fastest for end in (ends if whole else (1 / ends[1], 1 / ends[0])))
    look: Look = "unranked" if not cell.ranked else "own" if system.own else "other"
    written, scaled = seconds(time) if whole else "", text.times(time / fastest)
    rate = text.number(cell.throughput.mean)
    return Bar(
        system.name,
        look,
        time / fastest,
        low,
        high,
        note=cell.key.precision,
        slot=system.slot,
        cells=(scaled, written, rate, f"{cell.key.batch_size:,}"),
    )


def _published(claim: Claim, fastest: float) -> Bar:
    assert claim.value is not None
    written, scaled = seconds(claim.value), text.times(claim.value / fastest)
    batch = f"{claim.of.batch_size:,}" if claim.of.batch_size else ""
    return Bar(
        text.short_card(claim.of.card or ""),
        "published",
        claim.value / fastest,
        note=claim.of.precision or "",
        cells=(scaled, written, "", batch),
    )


def _one_of_each(failed: Sequence[TrialResult]) -> list[TrialResult]:
    return list({(trial.machine, trial.key.precision): trial for trial in failed}.values())


def _failed(trial: TrialResult, systems: Systems) -> Bar:
    assert trial.failure is not None
    system = systems.of(trial)
    words = text.failure_words(trial.failure.reason)
    return Bar(system.name, "failed", text=words, note=trial.key.precision, slot=system.slot)
