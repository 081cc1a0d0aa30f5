"""The time of each work over that of the fastest, from zero: on page one, and for each workload."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from harness.record import Claim
from report import text
from report.charts.marks import KeyEntry, Look
from report.charts.rows import Mark, RowGroup, ScaleRow, ScaleRows
from report.compare.cells import Cell
from report.compare.groups import ComparisonGroup
from report.page.filters import UNKNOWN, apart, details, devices, figure, setting
from report.page.values import Picture, Systems, rate_unit
from report.trials.key import FRAMEWORK, LOADER_ALONE, PARALLEL, VIRTUAL_RANKS, Key, grouped_by, without
from report.trials.trial import TrialResult

MOST_ON_PAGE_ONE, MOST_BELOW = 14, 24
"""Bars of a picture."""
LEAD = "lead"
"""The name of page one's picture."""
MOST_FAILED = 2
"""Failed trials of a group that have a bar."""


VARIED = (FRAMEWORK, PARALLEL, VIRTUAL_RANKS)
"""Options that a study varies, as it does precision, system and number of devices: bars of one group."""


@dataclass(frozen=True, slots=True)
class TimePicture:
    """The picture, how many works are in a table alone, and how it is to be read."""

    picture: Picture
    works_left: int
    has_published: bool
    of: Literal["training", "samples", "loading"]
    """What is timed: a sample's share where the time of the whole protocol is not known."""


def time_picture(
    groups: Sequence[ComparisonGroup],
    systems: Systems,
    name: str = LEAD,
    most: int = MOST_ON_PAGE_ONE,
) -> TimePicture | None:
    """Return the times of the first works that compare, as many as have room; null where none does."""
    works = grouped_by(filter(_cells, groups), lambda group: (shared_work(group.base), group.length.epochs))
    timed = [_joined(shared_work(base), members) for (base, _), members in works.items()]
    made = [(group, _group(group, timed, systems, most)) for group in timed]
    compared = [(group, drawn) for group, drawn in made if sum(bool(row.marks) for row in drawn.rows) > 1]
    drawn = with_room([drawn for _, drawn in compared], most)
    if not drawn:
        return None
    chart = ScaleRows(tuple(drawn), "fastest = 1.00", key_of(systems))
    shown = [group for group, _ in compared[: len(drawn)]]
    published, whole = any(group.published for group in shown), all(map(_has_seconds, shown))
    loads = all(group.base.protocol == LOADER_ALONE for group in shown)
    picture = Picture(name, chart, described(chart.groups))
    of: Literal["training", "samples", "loading"] = "loading" if loads else "training" if whole else "samples"
    return TimePicture(picture, len(timed) - len(drawn), published, of)


def shared_work(key: Key) -> Key:
    """Return the key less framework, profile, layout, devices and how they share a step."""
    return without(key, "gpus", "profile", "layout", *(f"options.{name}" for name in VARIED))


def _joined(base: Key, groups: Sequence[ComparisonGroup]) -> ComparisonGroup:
    """Return one group of all that did the work, whatever the framework and the number of devices."""
    return replace(
        groups[0],
        base=base,
        entries=tuple(entry for group in groups for entry in group.entries),
        published=tuple({claim.id: claim for group in groups for claim in group.published}.values()),
        failed=tuple(trial for group in groups for trial in group.failed),
    )


def with_room(groups: Sequence[RowGroup], most: int) -> list[RowGroup]:
    """The first groups that have so many rows together, one at least."""
    drawn: list[RowGroup] = []
    for group in groups:
        if drawn and sum(len(each.rows) for each in (*drawn, group)) > most:
            break
        drawn.append(group)
    return drawn


def described(groups: Iterable[RowGroup]) -> str:
    """What bars show, for those who cannot see them."""
    return "; ".join(
        f"{group.label}: " + ", ".join(f"{row.label} {row.note} {row.text}" for row in group.rows)
        for group in groups
    )


def _cells(group: ComparisonGroup) -> list[Cell]:
    name = "seconds" if _has_seconds(group) else "throughput"
    return [entry.cell for entry in group.entries if entry.cell.figures[name].mean]


def _has_seconds(group: ComparisonGroup) -> bool:
    """Whether each of its entries that has a speed has the time of the whole protocol, too."""
    timed = [entry.cell for entry in group.entries if entry.cell.throughput.mean is not None]
    return all(cell.seconds.mean is not None for cell in timed)


def _time(cell: Cell, alone: Cell | None) -> float:
    """Return the seconds of the protocol, on several devices for the samples of the one `alone`.

    Without `alone`, return the seconds of one sample.
    """
    speed = cell.throughput.mean or math.inf
    if alone is None:
        return 1 / speed
    if cell.key.gpus == alone.key.gpus or alone.throughput.mean is None:
        return cell.seconds.mean or math.inf
    return (alone.seconds.mean or math.inf) * alone.throughput.mean / speed


def _group(
    group: ComparisonGroup,
    among: Sequence[ComparisonGroup],
    systems: Systems,
    most: int,
) -> RowGroup:
    cells = _cells(group)
    alone = min(cells, key=lambda cell: cell.key.gpus) if _has_seconds(group) else None
    published = [claim for claim in group.published if claim.value] if alone else []
    fastest = min([*(_time(cell, alone) for cell in cells), *(claim.value or 0.0 for claim in published)])
    names = devices(cells)
    named, common = len(set(names)) > 1 and all(names), _common(cells)
    notes = [cell.key.precision + ("" if named or common else setting(cell.key)) for cell in cells]
    bars = [
        _measured(cell, name if named else "", note, alone, fastest, systems)
        for cell, name, note in zip(cells, names, notes, strict=True)
    ]
    bars += [_published(claim, fastest) for claim in published]
    shown = nearest_bars(sorted(bars, key=lambda bar: bar.marks[0].value), most)
    ran = {(cell.machine, cell.key.precision, setting(cell.key)) for cell in cells}
    failed = {(trial.machine, trial.key.precision, setting(trial.key)): trial for trial in group.failed}
    ended = [
        _failed(trial, systems)
        for trial in [trial for place, trial in failed.items() if place not in ran][:MOST_FAILED]
    ]
    differing = f"{common}{apart(group.base, [other.base for other in among])}".strip(", ")
    below = [note for note in (details(group.base, group.length.epochs), differing) if note]
    if len(bars) > most:
        below.append(f"{most} of {len(bars):,}, the fastest and the nearest to this machine")
    return RowGroup(text.model_name(group.base.model), (*shown, *ended), tuple(below))


def _common(cells: Sequence[Cell]) -> str:
    """Return the setting of all cells; empty where they differ in it."""
    settings = {setting(cell.key) for cell in cells}
    return settings.pop() if len(settings) == 1 else ""


def nearest_bars(bars: Sequence[ScaleRow], most: int) -> tuple[ScaleRow, ...]:
    """All where there is room; else this machine's, the fastest, and those nearest to this machine."""
    own = [
        place for place, bar in enumerate(bars) if bar.marks[0].look != "published" and bar.marks[0].slot == 0
    ] or [0]
    order = sorted(
        range(len(bars)),
        key=lambda place: (place not in own, place > most // 3, min(abs(place - at) for at in own)),
    )
    kept = set(order[:most])
    return tuple(bar for place, bar in enumerate(bars) if place in kept)


def _measured(
    cell: Cell, named: str, note: str, alone: Cell | None, fastest: float, systems: Systems
) -> ScaleRow:
    """Return the bar of a cell, whose range is as wide as that of its speed."""
    time, system, speed = _time(cell, alone), systems.of(cell), cell.throughput
    low, high = None, None
    if speed.interval and speed.interval.low > 0:
        span = speed.interval
        low, high = (time / fastest * span.estimate / end for end in (span.high, span.low))
    written, scaled = figure(time, "seconds") if alone else "", text.times(time / fastest)
    rate = text.number(speed.mean)
    look: Look = "measured" if cell.ranked else "projected"
    return ScaleRow(
        named or system.name,
        (Mark(time / fastest, low, high, look, system.slot),),
        note,
        written or f"{rate} {rate_unit(cell)}",
        scaled,
    )


def _published(claim: Claim, fastest: float) -> ScaleRow:
    assert claim.value is not None
    written, scaled = figure(claim.value, "seconds"), text.times(claim.value / fastest)
    return ScaleRow(
        text.short_card(claim.of.card or UNKNOWN),
        (Mark(claim.value / fastest, look="published"),),
        claim.of.precision or "",
        written,
        scaled,
    )


def _failed(trial: TrialResult, systems: Systems) -> ScaleRow:
    assert trial.failure is not None
    system = systems.of(trial)
    words = text.failure_words(trial.failure.reason)
    return ScaleRow(system.name, (), trial.key.precision, words)


def key_of(systems: Systems) -> tuple[KeyEntry, ...]:
    """Return the words of every look; a chart keeps the words that it uses."""
    by_slot = {system.slot: system for system in reversed(systems.all)}
    shown = [by_slot[slot] for slot in sorted(by_slot)]
    return (
        *(KeyEntry(one.title, "measured", one.slot) for one in shown),
        *(KeyEntry(f"{one.title}, not ranked yet", "projected", one.slot) for one in shown),
        KeyEntry("published, no range", "published"),
    )
