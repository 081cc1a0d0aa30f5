"""Frameworks that train one network alike on one machine: one picture and one row for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from harness.record import FULL_PRECISION
from report import text
from report.analysis import Analysis
from report.charts.bars import Bar, Bars, Group
from report.charts.marks import KeyEntry
from report.compare.precisions import Speedup
from report.compare.ranking import Line, Work, places, works
from report.page.filters import seconds
from report.page.values import Picture, Quantity, quantity
from report.trials.key import grouped_by


@dataclass(frozen=True, slots=True)
class FrameworkRow:
    """One framework: what it is, and what it reached. `first` and `last` are the places that are possible."""

    name: str
    version: str
    own_protocol: str
    """The protocol that it keeps for itself, where that is not the one of all; such a line is not ranked."""
    rate: Quantity
    scaled: Quantity
    first: int | None
    last: int | None
    memory: Quantity
    gain: Quantity
    waits: Quantity
    runs: int
    retired: bool
    dormant_since: date | None
    verdict: str


@dataclass(frozen=True, slots=True)
class FrameworkWork:
    """One work that several frameworks did."""

    model: str
    precision: str
    batch: int
    devices: int
    protocol: str
    picture: Picture
    rows: tuple[FrameworkRow, ...]
    unit: str


@dataclass(frozen=True, slots=True)
class Differences:
    """What a framework does otherwise than the others, in its own workload's words."""

    name: str
    differs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FrameworksView:
    """All works of several frameworks, and in what the frameworks differ."""

    works: tuple[FrameworkWork, ...]
    differences: tuple[Differences, ...]


def frameworks(analysis: Analysis) -> FrameworksView | None:
    """Null where fewer than two frameworks kept one protocol on this machine."""
    found = works(analysis.measured_here, analysis.lead)
    if not found:
        return None
    lines = [line for work in found for line in work.lines]
    return FrameworksView(
        tuple(_work(work, f"frameworks-{place}", analysis.speedups) for place, work in enumerate(found, 1)),
        tuple(_differences(lines)),
    )


def _differences(lines: Sequence[Line]) -> list[Differences]:
    found = []
    for same in grouped_by(lines, lambda line: line.framework).values():
        said = dict.fromkeys(
            text.clean(each, 200) for line in same if line.used for each in line.used.differs
        )
        if said:
            found.append(Differences(same[0].name, tuple(said)))
    return found


def _work(work: Work, name: str, gains: Sequence[Speedup]) -> FrameworkWork:
    key = work.alike[0].cell.key
    return FrameworkWork(
        model=key.model,
        precision=key.precision,
        batch=key.batch_size,
        devices=key.gpus,
        protocol=key.protocol,
        picture=_picture(work, name),
        rows=tuple(_row(line, work, gains) for line in work.lines),
        unit=f"{work.alike[0].cell.trials[0].sample_unit}s/s",
    )


def _row(line: Line, work: Work, gains: Sequence[Speedup]) -> FrameworkRow:
    cell, used = line.cell, line.used
    place = places(line, work.alike)
    gain = next(
        (each for each in gains if each.over is cell and each.of.key.precision not in FULL_PRECISION), None
    )
    return FrameworkRow(
        name=line.name,
        version=text.clean(used.version, 24) if used else "",
        own_protocol="" if line in work.alike else cell.key.protocol,
        rate=quantity(cell.throughput, ""),
        scaled=quantity(line.scaled if line.cell is not work.alike[0].cell else None),
        first=place[0] if place else None,
        last=place[1] if place else None,
        memory=quantity(cell.figures["peak_bytes"], "bytes"),
        gain=quantity(gain.ratio if gain else None),
        waits=Quantity(cell.figures["input_share"].mean, "share"),
        runs=cell.throughput.n,
        retired=bool(used and used.retired),
        dormant_since=used.dormant_since if used else None,
        verdict=cell.verdict,
    )


def _picture(work: Work, name: str) -> Picture:
    bars = tuple(_bar(line) for line in work.alike if line.scaled is not None)
    key = (KeyEntry("ranked", "own"), KeyEntry("not ranked", "unranked"))
    model = work.alike[0].cell.key.model
    chart = Bars((Group(text.model_name(model), bars),), axis="fastest = 1.00", key=key)
    alt = ", ".join(f"{bar.label} {bar.small}" for bar in bars)
    return Picture(name, chart, alt)


def _bar(line: Line) -> Bar:
    assert line.scaled is not None
    interval = line.scaled.interval
    return Bar(
        line.name,
        "own" if line.cell.ranked else "unranked",
        line.scaled.estimate,
        interval.low if interval else None,
        interval.high if interval else None,
        text=seconds(line.cell.seconds.mean),
        small=text.times(line.scaled.estimate),
        note=line.cell.key.precision,
    )
