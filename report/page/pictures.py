"""The time of each work over that of the fastest, from zero: on page one, and with columns below it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from harness.record import Claim
from report import text
from report.charts.bars import Bar, Bars, Group
from report.charts.marks import KeyEntry, Look
from report.compare.cells import Cell
from report.compare.groups import ComparisonGroup
from report.expected.expected import ExpectedValue
from report.page.filters import UNKNOWN, apart, details, seconds, setting
from report.page.values import Picture, Systems, rate_unit
from report.trials.key import Key
from report.trials.trial import TrialResult

MOST_ON_PAGE_ONE, MOST_BELOW = 14, 24
"""Bars of a picture."""
LEAD = "lead"
"""The name of page one's picture."""
MOST_FAILED = 2
"""Failed trials of a group that have a bar."""
SAID = ("data_mode", "batch_size")
"""Fields that the columns beside the bars show anyway."""
_LOOKS: tuple[Look, ...] = ("own", "other", "unranked", "published", "expected", "failed")


@dataclass(frozen=True, slots=True)
class TimePicture:
    """The picture, how many works it leaves to a table, and how it is to be read."""

    picture: Picture
    works_left: int
    has_published: bool
    of_samples: bool
    """Whether it shows the time of a sample where that of the whole protocol is not known."""
    compared: bool
    """Whether each bar is over the fastest of its work; else it is a time."""


def time_picture(
    groups: Sequence[ComparisonGroup],
    systems: Systems,
    should: Mapping[str, ExpectedValue] = MappingProxyType({}),
) -> TimePicture | None:
    """Page one's: the first works that there is room for; null where none has a figure.

    `should` has what is expected of cells, by the path of their first trial.
    """
    timed = [group for group in groups if _cells(group)]
    made = [_group(group, timed, systems, MOST_ON_PAGE_ONE, should) for group in timed]
    drawn = with_room(made, MOST_ON_PAGE_ONE)
    if not drawn:
        return None
    bare = [
        replace(group, bars=tuple(replace(bar, cells=()) for bar in group.bars if bar.look != "failed"))
        for group in drawn
    ]
    chart = Bars(tuple(bare), "fastest = 1.00", key_of(bare, systems))
    picture = Picture(LEAD, chart, described(bare))
    return _shown(picture, timed[: len(drawn)], len(timed) - len(drawn), compared=True)


def timing(groups: Sequence[ComparisonGroup], name: str, systems: Systems) -> TimePicture | None:
    """Return the times of one workload with a column for each figure; null where nothing has a time.

    Works of one bar are no comparison: they are left out beside others, and form one group by themselves.
    """
    timed = [group for group in groups if _cells(group)]
    if not timed:
        return None
    made = [_group(group, timed, systems, MOST_BELOW) for group in timed]
    drawn = with_room([group for group in made if len(group.bars) > 1], MOST_BELOW)
    units = {rate_unit(entry.cell) for group in timed for entry in group.entries}
    columns = ("time-scaled", "time", units.pop() if len(units) == 1 else "samples/s", "batch")
    if drawn:
        chart, left = _columned(drawn, columns, Bars((), "fastest = 1.00"), systems), len(made) - len(drawn)
    else:
        bars = [_alone(group, each.bars[0]) for group, each in zip(timed, made, strict=True)]
        axis = "seconds" if all(map(_has_seconds, timed)) else "seconds of a sample"
        together = [Group("", tuple(bars[:MOST_BELOW]))]
        chart = _columned(together, columns, Bars((), axis, reference=None), systems)
        left = max(len(made) - MOST_BELOW, 0)
    return _shown(Picture(name, chart, described(chart.groups)), timed, left, compared=bool(drawn))


def _shown(picture: Picture, groups: Sequence[ComparisonGroup], left: int, *, compared: bool) -> TimePicture:
    published, whole = any(group.published for group in groups), all(map(_has_seconds, groups))
    return TimePicture(picture, left, published, not whole, compared)


def with_room(groups: Sequence[Group], most: int) -> list[Group]:
    """The first groups that have so many bars together, one at least."""
    drawn: list[Group] = []
    for group in groups:
        if drawn and sum(len(each.bars) for each in (*drawn, group)) > most:
            break
        drawn.append(group)
    return drawn


def described(groups: Iterable[Group]) -> str:
    """What bars show, for those who cannot see them."""
    return "; ".join(
        f"{group.label}: "
        + ", ".join(f"{bar.label} {bar.note} {' '.join(bar.cells) or bar.text}" for bar in group.bars)
        for group in groups
    )


def _alone(group: ComparisonGroup, bar: Bar) -> Bar:
    """The time of a work by itself, in seconds."""
    cell, whole = _cells(group)[0], _has_seconds(group)
    ends = cell.seconds.interval if whole else None
    note = f"{bar.note} {setting(group.base).strip(', ')}".strip()
    return replace(
        bar,
        label=text.model_name(group.base.model),
        note=note,
        value=_time(cell, whole),
        low=ends.low if ends else None,
        high=ends.high if ends else None,
        cells=("", *bar.cells[1:]),
    )


def _columned(drawn: Sequence[Group], columns: tuple[str, ...], chart: Bars, systems: Systems) -> Bars:
    """The chart with these groups, less the columns that no bar has anything in."""
    cells = [bar.cells for group in drawn for bar in group.bars if bar.cells]
    kept = [place for place in range(len(columns)) if any(row[place] for row in cells)]

    def filled(bar: Bar) -> Bar:
        return replace(bar, text="", small="", cells=tuple(bar.cells[n] for n in kept)) if bar.cells else bar

    groups = tuple(replace(group, bars=tuple(map(filled, group.bars))) for group in drawn)
    return replace(chart, groups=groups, columns=tuple(columns[n] for n in kept), key=key_of(drawn, systems))


def _cells(group: ComparisonGroup) -> list[Cell]:
    whole = _has_seconds(group)
    return [entry.cell for entry in group.entries if _time(entry.cell, whole) is not None]


def _has_seconds(group: ComparisonGroup) -> bool:
    """Whether each of its entries that has a speed has the time of the whole protocol, too."""
    timed = [entry.cell for entry in group.entries if entry.cell.throughput.mean is not None]
    return all(cell.seconds.mean is not None for cell in timed)


def _time(cell: Cell, whole: bool) -> float | None:
    """Seconds of the whole protocol, else those of a sample."""
    if whole:
        return cell.seconds.mean
    return 1 / cell.throughput.mean if cell.throughput.mean else None


def _group(
    group: ComparisonGroup,
    among: Sequence[ComparisonGroup],
    systems: Systems,
    most: int,
    should: Mapping[str, ExpectedValue] = MappingProxyType({}),
) -> Group:
    whole, cells = _has_seconds(group), _cells(group)
    published = [claim for claim in group.published if claim.value] if whole else []
    times = [time for cell in cells if (time := _time(cell, whole))]
    fastest = min([*times, *(claim.value or 0.0 for claim in published)])
    bars = [_measured(cell, fastest, whole, systems) for cell in cells]
    bars += [_published(claim, fastest) for claim in published]
    of_cells = [(cell, should.get(cell.trials[0].path)) for cell in cells]
    bars += [_expected(cell, said, fastest, whole) for cell, said in of_cells if said]
    shown = nearest_bars(sorted(bars, key=lambda bar: bar.value or 0.0), most)
    failed = {(trial.machine, trial.key.precision): trial for trial in group.failed}
    ended = [_failed(trial, systems) for trial in [*failed.values()][:MOST_FAILED]]
    notes = _notes(group, [other.base for other in among], SAID if most == MOST_BELOW else ())
    if len(bars) > most:
        notes.append(f"{most} of {len(bars):,}, the fastest and the nearest to this machine")
    return Group(text.model_name(group.base.model), (*shown, *ended), tuple(notes))


def _notes(group: ComparisonGroup, among: Sequence[Key], said: Sequence[str]) -> list[str]:
    key = group.base
    told = f"{setting(key)}{apart(key, among, said=said)}".strip(", ")
    data = f"{key.data_mode} data" if "data_mode" in said else ""
    return [note for note in (details(key, group.length.epochs), data, told) if note]


def nearest_bars(bars: Sequence[Bar], most: int) -> tuple[Bar, ...]:
    """All where there is room; else this machine's, the fastest, and those nearest to this machine."""
    own = [
        place for place, bar in enumerate(bars) if bar.look in ("own", "unranked") or bar.label == text.THIS
    ] or [0]
    order = sorted(
        range(len(bars)),
        key=lambda place: (place not in own, place > most // 3, min(abs(place - at) for at in own)),
    )
    kept = set(order[:most])
    return tuple(bar for place, bar in enumerate(bars) if place in kept)


def _measured(cell: Cell, fastest: float, whole: bool, systems: Systems) -> Bar:
    time, system = _time(cell, whole), systems.of(cell)
    assert time is not None
    figure, low, high = cell.seconds if whole else cell.throughput, None, None
    if figure.interval and figure.interval.low > 0:
        ends = figure.interval.low, figure.interval.high
        low, high = (end / fastest for end in (ends if whole else (1 / ends[1], 1 / ends[0])))
    written, scaled = seconds(time) if whole else "", text.times(time / fastest)
    rate = text.number(cell.throughput.mean)
    return Bar(
        system.name,
        system.look if cell.ranked else "unranked",
        time / fastest,
        low,
        high,
        text=written or f"{rate} {rate_unit(cell)}",
        small=scaled,
        note=cell.key.precision,
        slot=system.slot,
        cells=(scaled, written, rate, f"{cell.key.batch_size:,}"),
    )


def _published(claim: Claim, fastest: float) -> Bar:
    assert claim.value is not None
    written, scaled = seconds(claim.value), text.times(claim.value / fastest)
    return Bar(
        text.short_card(claim.of.card or UNKNOWN),
        "published",
        claim.value / fastest,
        text=written,
        small=scaled,
        note=claim.of.precision or "",
        cells=(scaled, written, "", f"{claim.of.batch_size:,}" if claim.of.batch_size else ""),
    )


def _expected(cell: Cell, said: ExpectedValue, fastest: float, whole: bool) -> Bar:
    """Where the cell would be if its card did what others on record make one expect."""
    time, speed = _time(cell, whole), cell.throughput.mean
    assert time is not None and speed is not None
    near, value, far = (time * speed / rate / fastest for rate in (said.high, said.value, said.low))
    return Bar(
        text.short_card(said.card),
        "expected",
        value,
        near,
        far,
        text=seconds(value * fastest) if whole else f"{text.number(said.value)} {rate_unit(cell)}",
        small=text.times(value),
        note=cell.key.precision,
    )


def _failed(trial: TrialResult, systems: Systems) -> Bar:
    assert trial.failure is not None
    system = systems.of(trial)
    words = text.failure_words(trial.failure.reason)
    return Bar(system.name, "failed", text=words, note=trial.key.precision, slot=system.slot)


def key_of(groups: Sequence[Group], systems: Systems) -> tuple[KeyEntry, ...]:
    """What each look in use is, in the words of a legend."""
    used = dict.fromkeys((bar.look, bar.slot) for group in groups for bar in group.bars)
    names = {system.slot: system.title for system in reversed(systems.all)}
    entries = []
    for look, slot in sorted(used, key=lambda each: (_LOOKS.index(each[0]), each[1])):
        name = names.get(slot, "")
        words = {"unranked": f"{name}, not ranked", "published": "published, no range"}
        words |= {"expected": "expected", "failed": "failed"}
        entries.append(KeyEntry(words.get(look, name), look, slot))
    return tuple(dict.fromkeys(entries))
