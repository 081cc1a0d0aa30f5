"""Frameworks that train one network alike on one machine: what they are, and which is faster."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from harness.record import FrameworkUsed
from report import text
from report.analysis import Analysis
from report.charts.intervals import Mark
from report.claims.matching import smaller
from report.claims.studies import DRAWN
from report.comparisons.cells import Cell, Ratio, cell_ratio, own_spread, repeated, standing, unit_of
from report.comparisons.figures import Figure
from report.comparisons.scaling import parallelism_of, step_seconds, way_name
from report.sections.view import FrameworksView, FrameworkWorkView, Panel, Table, tabled
from report.sections.workloads.charts import ratios_panel
from report.sections.workloads.scaling import load_words, memory_words
from report.trials.key import FRAMEWORK, PARALLEL
from report.trials.pairs import grouped_by

ALIKE, AS_PUBLISHED = "fair/", "published/"
"""How protocols begin that all frameworks keep alike, and that leave each as it was published."""

BENEATH = ("cuda", "cudnn", "hip", "libc", "numpy", "python", "system", "torchvision")
"""Versions that are not the framework's own."""


@dataclass(frozen=True, slots=True)
class Line:
    """What one framework reached in one way of sharing a step, and its time over the fastest's."""

    framework: str
    cell: Cell
    scaled: Ratio | None = None

    @property
    def used(self) -> FrameworkUsed | None:
        """As its workload tells of it; null in records from before it did."""
        measured = self.cell.trials[0].record.measurement
        return measured.framework if measured else None

    @property
    def name(self) -> str:
        """The framework's, with the way of sharing where several devices did."""
        name = text.clean(self.used.name if self.used else self.framework, 40)
        way = text.clean(way_name(self.cell), 40)
        return f"{name} ({way})" if way else name


@dataclass(frozen=True, slots=True)
class Work:
    """One work on one machine: lines that are ranked by the first, the fastest first, and the published."""

    alike: tuple[Line, ...]
    published: tuple[Line, ...]

    @property
    def lines(self) -> tuple[Line, ...]:
        """All of them."""
        return (*self.alike, *self.published)

    @property
    def ranked(self) -> tuple[Line, ...]:
        """Those that may be said to be faster or slower than another."""
        return tuple(line for line in self.alike if line.cell.ranked)


def view(analysis: Analysis) -> FrameworksView | None:
    """What this machine measured of frameworks that keep one protocol; null where fewer than two do."""
    found = works(analysis)
    if not found:
        return None
    drawn = {
        claim.workload
        for claim in analysis.evidence.claims.claims
        if FRAMEWORK in claim.of.options and claim.metric in DRAWN
    }
    return FrameworksView(
        _characteristics([line for work in found for line in work.lines]),
        tuple(_work_view(work, f"frameworks-{place}", drawn) for place, work in enumerate(found, 1)),
    )


def works(analysis: Analysis) -> tuple[Work, ...]:
    """Each work that at least two frameworks did alike on this machine; only the stacks differ, as they must.

    Of equal lines the leading session's, else the newest.
    """
    here = [cell for cell in analysis.measured_here if _framework(cell) and cell.verdict != "invalid"]
    newest = sorted(here, key=lambda cell: (cell.session == analysis.lead, cell.started_at), reverse=True)
    found = []
    for members in grouped_by(newest, _place).values():
        fair = [cell for cell in members if cell.key.protocol.startswith(ALIKE)]
        published = [cell for cell in members if cell.key.protocol.startswith(AS_PUBLISHED)]
        for alike in grouped_by(fair, lambda cell: (cell.key.protocol, cell.key.data_sha256)).values():
            lines = _scaled([Line(_framework(cell), cell) for cell in _one_of_each(alike)])
            if len({line.framework for line in lines}) > 1:
                beside = tuple(Line(_framework(cell), cell) for cell in _one_of_each(published))
                found.append(Work(lines, beside))
    return tuple(found)


def _framework(cell: Cell) -> str:
    return str(dict(cell.key.options).get(FRAMEWORK, ""))


def _place(cell: Cell) -> Hashable:
    """What all frameworks have to have alike; the data's hash joins it where the protocol is one for all."""
    options = tuple(option for option in cell.key.options if option[0] not in (FRAMEWORK, PARALLEL))
    key = replace(cell.key, protocol="", data_sha256=None, options=options)
    return key, cell.length.epochs, cell.machine, cell.card


def _one_of_each(cells: Sequence[Cell]) -> list[Cell]:
    timed = [cell for cell in cells if cell.seconds.mean is not None and cell.throughput.mean is not None]
    return [same[0] for same in grouped_by(timed, lambda c: (_framework(c), parallelism_of(c))).values()]


def _scaled(lines: Sequence[Line]) -> tuple[Line, ...]:
    """The lines over the fastest that may be ranked, else over the fastest; the fastest first."""
    fit = [line for line in lines if line.cell.ranked] or lines
    if not fit:
        return ()
    # The data choose the reference, so the level holds for all pairs.
    first = min(fit, key=_seconds)
    pairs = sum(repeated((one.cell, other.cell)) for one, other in combinations(lines, 2))
    scaled = [
        replace(line, scaled=own_spread(line.cell.seconds))
        if line is first
        else replace(line, scaled=cell_ratio(line.cell, first.cell, "seconds", comparisons=max(pairs, 1)))
        for line in lines
    ]
    return tuple(sorted(scaled, key=_seconds))


def _seconds(line: Line) -> float:
    return line.cell.seconds.mean or 0.0


def _characteristics(lines: Sequence[Line]) -> Table:
    rows = []
    for name, same in grouped_by(lines, lambda line: line.framework).items():
        used = same[0].used
        ways = ", ".join(used.ways.values()) or "one device alone" if used else "–"
        differs = dict.fromkeys(each for line in same if line.used for each in line.used.differs)
        rows.append(
            {
                "Framework": text.clean(used.name if used else name, 40),
                "Version": text.clean(used.version, 40) if used else _versions(same[0].cell),
                "State": ("retired" if used.retired else "alive") if used else "–",
                "Shares a step by": text.clean(ways, 80),
                "Step compiled by": text.clean(used.compiled or "nothing: eager", 80) if used else "–",
                "What it does differently": text.clean("; ".join(differs) or "–", 400),
            }
        )
    return tabled("The frameworks on this page, as their workloads tell of them.", rows)


def _versions(cell: Cell) -> str:
    own = [f"{name} {value}" for name, value in cell.stack.versions if value and name not in BENEATH]
    return text.clean(", ".join(own) or "–", 60)


def _work_view(work: Work, name: str, drawn: set[str]) -> FrameworkWorkView:
    key = work.alike[0].cell.key
    devices = f", {key.gpus} devices" if key.gpus > 1 else ""
    size = f", {key.image_size} px" if key.image_size else ""
    heading = f"{text.model_name(key.model)}, batch {key.batch_size}{size}{devices}, {key.precision}"
    return FrameworkWorkView(
        heading,
        _sentences(work, key.workload in drawn),
        _panel(work, name, heading),
        _figures(work),
        _load(work),
    )


def _sentences(work: Work, drawn: bool) -> tuple[str, ...]:
    said = [_fastest(work)]
    reduced = dict.fromkeys(note for line in work.lines for note in smaller(line.cell))
    said += [text.sentence(f"{text.clean(note, 160)}.") for note in reduced]
    if len({line.cell.session for line in work.alike}) > 1:
        said.append("Each framework ran in a session of its image: other hours of the same machine.")
    if drawn:
        said.append("The published times of these frameworks stand under “Published numbers”.")
    return tuple(said)


def _fastest(work: Work) -> str:
    ranked, protocol = work.ranked, work.alike[0].cell.key.protocol
    if len({line.framework for line in ranked}) < 2:
        return (
            f"Fewer than two frameworks have a proven window under {protocol}: "
            "the figures show that each trains, and rank nothing."
        )
    first, second = ranked[0], ranked[1]
    rate = f"{text.number(first.cell.throughput.mean)} {first.cell.trials[0].sample_unit}s a second"
    said = f"{first.name} is the fastest under {protocol}: {rate}."
    if second.scaled is None or second.scaled.tied is None:
        return f"{said} These are single runs, so another may turn the order."
    if second.scaled.tied:
        return f"{said} {second.name} is tied with it."
    return f"{said} {second.name} takes {_times(second)} times as long."


def _times(line: Line) -> str:
    assert line.scaled is not None
    interval = line.scaled.interval
    ends = f" ({text.between(interval, 'times')})" if interval else ""
    return f"{text.times(line.scaled.estimate)}{ends}"


def _panel(work: Work, name: str, heading: str) -> Panel | None:
    marks = [
        Mark(
            label=line.name,
            note=_note(line.cell),
            text=text.times(line.scaled.estimate),
            value=line.scaled.estimate,
            low=line.scaled.interval.low if line.scaled.interval else None,
            high=line.scaled.interval.high if line.scaled.interval else None,
            precision=line.cell.key.precision,
            unranked=not line.cell.ranked,
            card=unit_of(line.cell),
        )
        for line in work.alike
        if line.scaled is not None
    ]
    protocol = work.alike[0].cell.key.protocol
    return ratios_panel(
        name,
        f"Time-scaled by framework: {heading}",
        f"{protocol}; the fastest = 1.00, and less is better",
        marks,
    )


def _figures(work: Work) -> Table:
    unit = work.alike[0].cell.trials[0].sample_unit.capitalize()
    rows = [
        {
            "Framework": line.name,
            "Protocol": line.cell.key.protocol,
            "Seconds / step": text.number(step_seconds(line.cell)),
            f"{unit}s / s": text.number(line.cell.throughput.mean),
            "Whole protocol": _with_ends(line.cell.seconds),
            "Time-scaled": _ranked_words(line),
            "Runs": str(line.cell.seconds.n),
            "Standing": f"{standing(line.cell)}\nmeasured {line.cell.started_at:%Y-%m-%d}",
        }
        for line in work.lines
    ]
    caption = (
        "One machine, with batch, size, weights and data alike. Time-scaled is the whole protocol's time "
        "over the fastest's, with its 95 % interval."
    )
    for protocol in dict.fromkeys(line.cell.key.protocol for line in work.published):
        caption += f" Under {protocol} each framework keeps its own quirks, so it is shown and not ranked."
    return tabled(caption, rows)


def _note(cell: Cell) -> str:
    """'5 runs · 25.3 min, projected, unproven'"""
    words = [_minutes(cell.seconds), "projected" if cell.length.projected else "whole run"]
    words += ["unproven"] if cell.verdict == "unproven" else []
    return f"{text.count(cell.seconds.n, 'run')} · {', '.join(words)}"


def _minutes(seconds: Figure) -> str:
    return f"{text.number((seconds.mean or 0.0) / 60)} min"


def _with_ends(seconds: Figure) -> str:
    if seconds.interval is None:
        return f"{_minutes(seconds)}\none run" if seconds.n == 1 else _minutes(seconds)
    low, high = seconds.interval.low / 60, seconds.interval.high / 60
    return f"{_minutes(seconds)}\n{text.number(low)} to {text.number(high)}"


def _ranked_words(line: Line) -> str:
    if line.scaled is None:
        return "not ranked"
    if not line.cell.ranked:
        return f"{_times(line)}\nnot ranked"
    return f"{_times(line)}\ntied" if line.scaled.tied and line.scaled.estimate != 1.0 else _times(line)


def _load(work: Work) -> Table | None:
    if work.alike[0].cell.key.gpus < 2:
        return None
    rows = [
        {
            "Framework": line.name,
            "Protocol": line.cell.key.protocol,
            "Peak memory by device": memory_words(line.cell.trials),
            "Device 0 against the others": load_words(line.cell.trials),
        }
        for line in work.lines
    ]
    return tabled("What device 0 carries, over the median of the others.", rows)
