"""Page one's time-scaled picture: each work's time over that of the fastest, from zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from harness.record import Claim
from report import text
from report.charts.bars import Bar, Bars, Group
from report.charts.marks import KeyEntry, Look
from report.compare.cells import Cell
from report.compare.groups import ComparisonGroup
from report.expected.expected import Expected
from report.page.filters import UNKNOWN, seconds
from report.page.names import apart, details, setting
from report.page.systems import Systems
from report.page.values import Picture
from report.trials.key import Key

MOST_BARS = 14
NAME = "lead"
THIS = text.THIS
_LOOKS: tuple[Look, ...] = ("own", "other", "unranked", "published", "expected", "missing", "failed")


@dataclass(frozen=True, slots=True)
class TimePicture:
    """The picture, and what its caption says of it."""

    picture: Picture
    works_left: int
    """Works for which it has no room."""
    has_published: bool
    of_samples: bool
    """Whether it shows the time of a sample where that of the whole protocol is not known."""


def time_picture(
    groups: Sequence[ComparisonGroup],
    systems: Systems,
    should: Mapping[str, Expected] = MappingProxyType({}),
) -> TimePicture | None:
    """The first groups that there is room for, each a work; null where none has a figure.

    `should` has what is expected of cells, by the path of their first trial.
    """
    drawn: list[Group] = []
    bars = 0
    timed = [group for group in groups if _cells(group)]
    for group in timed:
        made = _group(group, [other.base for other in timed], systems, should)
        if drawn and bars + len(made.bars) > MOST_BARS:
            break
        drawn.append(made)
        bars += len(made.bars)
    if not drawn:
        return None
    shown = timed[: len(drawn)]
    chart = Bars(groups=tuple(drawn), axis="fastest = 1.00", key=key_of(drawn, systems))
    alt = "; ".join(
        f"{group.label}: " + ", ".join(f"{bar.label} {bar.note} {bar.text}" for bar in group.bars)
        for group in drawn
    )
    return TimePicture(
        Picture(NAME, chart, alt, paper=True),
        works_left=len(timed) - len(drawn),
        has_published=any(group.published for group in shown),
        of_samples=not all(_has_seconds(group) for group in shown),
    )


def _cells(group: ComparisonGroup) -> list[Cell]:
    return [entry.cell for entry in group.entries if _time(entry.cell, _has_seconds(group)) is not None]


def _has_seconds(group: ComparisonGroup) -> bool:
    return all(entry.cell.seconds.mean is not None for entry in group.entries)


def _time(cell: Cell, whole: bool) -> float | None:
    """Seconds of the whole protocol, else those of a sample."""
    if whole:
        return cell.seconds.mean
    return 1 / cell.throughput.mean if cell.throughput.mean else None


def _group(
    group: ComparisonGroup, among: Sequence[Key], systems: Systems, should: Mapping[str, Expected]
) -> Group:
    whole, cells = _has_seconds(group), _cells(group)
    published = [claim for claim in group.published if claim.value] if whole else []
    times = [time for cell in cells if (time := _time(cell, whole))] + [
        claim.value or 0 for claim in published
    ]
    fastest = min(times)
    bars = [_measured(cell, fastest, whole, systems) for cell in cells]
    bars += [_published(claim, fastest) for claim in published]
    bars += [
        _expected(cell, should[cell.trials[0].path], fastest, whole)
        for cell in cells
        if cell.trials[0].path in should
    ]
    key = group.base
    under = [details(key, group.length.epochs), f"{setting(key)}{apart(key, among)}".strip(", ")]
    return Group(
        label=text.model_name(key.model),
        bars=nearest_bars(sorted(bars, key=lambda bar: bar.value or 0.0), MOST_BARS),
        notes=tuple(line for line in under if line),
    )


def nearest_bars(bars: Sequence[Bar], most: int) -> tuple[Bar, ...]:
    """All where there is room; else this machine's, the fastest, and those nearest to this machine."""
    own = [place for place, bar in enumerate(bars) if bar.look == "own" or bar.label == THIS] or [0]
    order = sorted(
        range(len(bars)),
        key=lambda place: (place not in own, place > most // 3, min(abs(place - at) for at in own)),
    )
    kept = set(order[:most])
    return tuple(bar for place, bar in enumerate(bars) if place in kept)


def _measured(cell: Cell, fastest: float, whole: bool, systems: Systems) -> Bar:
    time, system = _time(cell, whole), systems.of(cell)
    assert time is not None
    figure = cell.seconds if whole else cell.throughput
    low = high = None
    if figure.interval and figure.interval.low > 0:
        ends = (figure.interval.low, figure.interval.high)
        low, high = ends if whole else (1 / ends[1], 1 / ends[0])
        low, high = low / fastest, high / fastest
    ranked: Look = "own" if system.own else "other"
    return Bar(
        label=system.name,
        note=cell.key.precision,
        value=time / fastest,
        low=low,
        high=high,
        text=seconds(time)
        if whole
        else f"{text.number(cell.throughput.mean)} {cell.trials[0].sample_unit}s/s",
        small=text.times(time / fastest),
        look=ranked if cell.ranked else "unranked",
        slot=system.slot,
    )


def _published(claim: Claim, fastest: float) -> Bar:
    assert claim.value is not None
    return Bar(
        label=text.short_card(claim.of.card or UNKNOWN),
        note=claim.of.precision or "",
        value=claim.value / fastest,
        text=seconds(claim.value),
        small=text.times(claim.value / fastest),
        look="published",
    )


def _expected(cell: Cell, said: Expected, fastest: float, whole: bool) -> Bar:
    """Where the cell would be if its card did what others on record make one expect."""
    time, speed = _time(cell, whole), cell.throughput.mean
    assert time is not None and speed is not None
    near, value, far = (time * speed / rate for rate in (said.high_90, said.value, said.low_90))
    return Bar(
        label=text.short_card(said.card),
        note=cell.key.precision,
        value=value / fastest,
        low=near / fastest,
        high=far / fastest,
        text=seconds(value) if whole else f"{text.number(said.value)} {cell.trials[0].sample_unit}s/s",
        small=text.times(value / fastest),
        look="expected",
    )


def key_of(groups: Sequence[Group], systems: Systems) -> tuple[KeyEntry, ...]:
    """What each look in use is, in the words of a legend."""
    used = dict.fromkeys((bar.look, bar.slot) for group in groups for bar in group.bars)
    names = {system.slot: THIS if system.own else system.name for system in reversed(systems.all)}
    entries = []
    for look, slot in sorted(used, key=lambda each: (_LOOKS.index(each[0]), each[1])):
        words = {
            "own": THIS,
            "other": names.get(slot, ""),
            "unranked": f"{names.get(slot, '')}, not ranked",
            "published": "published, no range",
            "missing": "not measured",
            "failed": "failed",
            "expected": "expected",
        }
        entries.append(KeyEntry(words[look], look, slot))
    return tuple(dict.fromkeys(entries))
