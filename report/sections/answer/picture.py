"""Page one's picture where neither prices nor a study make one: what its first sentence is of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from report import text
from report.analysis import Analysis
from report.charts.intervals import Mark
from report.comparisons.cells import Cell, unit_of
from report.comparisons.expectation import Benchmark, Expectation, SpeedRange
from report.comparisons.speedups import Speedup, best_of_each_workload
from report.sections import names
from report.sections.answer.headline import mixed, other_units
from report.sections.answer.lead import subject
from report.sections.view import Panel
from report.sections.workloads.charts import gain_mark, intervals_panel, ratios_panel
from report.sections.workloads.frameworks import section as frameworks
from report.stats.intervals import Interval
from report.trials.key import LOADER_ALONE

NAME = "lead"
MOST_MARKS = 6
SAID_BY_NOTE = ("batch_size", "data_source")


def picture(analysis: Analysis) -> Panel | None:
    """Frameworks that lead, else what mixed precision gains, else how fast each work ran; null for none."""
    ranks = frameworks.leading(analysis)
    if ranks is not None and subject(analysis) == "frameworks":
        return frameworks.brief_panel(ranks, NAME)
    cells = analysis.measured_here
    if subject(analysis) == "pair":
        return _pair(analysis.expectations[0])
    own = {id(cell) for cell in cells}
    gains = best_of_each_workload(mixed([gain for gain in analysis.speedups if id(gain.of) in own]))
    return _gains(gains[:MOST_MARKS], cells) if gains else _speeds(cells)


def _pair(first: Expectation) -> Panel | None:
    """How many times as fast each work ran on the faster system, and all of them together."""
    of = [benchmark.of for benchmark in first.benchmarks]
    shared, labels = _labels(of[:MOST_MARKS], of)
    marks = [_benchmark(each, label) for each, label in zip(first.benchmarks, labels, strict=False)]
    if len(first.benchmarks) > 1:
        whole = _times_as_fast("All of this work", first.best, first.units)
        marks.append(replace(whole, unranked=not first.ranked))
    if first.model is not None:
        marks[-1] = replace(marks[-1], other_units=(first.model.low, first.model.high))
    title = f"{text.sentence(text.the(first.fast.name))} against {text.the(first.slow.name)}"
    unit = f"{shared}times as fast; more is better; pale: {other_units(first)}"
    return ratios_panel(NAME, title, unit + _dashed(marks), marks)


def _dashed(marks: Sequence[Mark]) -> str:
    return "; dashed: not ranked" if any(mark.unranked for mark in marks) else ""


def _benchmark(benchmark: Benchmark, label: str) -> Mark:
    of, over, ratio = benchmark.of, benchmark.over, benchmark.ratio
    return replace(
        _times_as_fast(label, ratio.estimate, ratio.interval),
        note=f"batch {of.key.batch_size} · {ratio.n[0]} + {ratio.n[1]} runs{_generated(of)}",
        precision=of.key.precision,
        unranked=not (of.ranked and over.ranked),
    )


def _times_as_fast(label: str, best: float, ends: Interval | SpeedRange | None) -> Mark:
    low, high = (ends.low, ends.high) if ends else (None, None)
    return Mark(label=label, note="", text=f"{text.times(best)} ×", value=best, low=low, high=high)


def _gains(gains: Sequence[Speedup], among: Sequence[Cell]) -> Panel | None:
    marks = [
        gain_mark(gain, names.work(gain.of, among), names.gain_note(gain) + _generated(gain.of))
        for gain in gains
    ]
    return ratios_panel(NAME, "Speed against 32-bit", f"times as fast; more is better{_dashed(marks)}", marks)


def _speeds(cells: Sequence[Cell]) -> Panel | None:
    """Of the works that count the same samples as the first, and train as it does or load as it does."""
    rated = [cell for cell in cells if cell.throughput.mean is not None]
    if not rated:
        return None
    alike = [cell for cell in rated if _counts(cell) == _counts(rated[0])]
    drawn = alike[:MOST_MARKS]
    shared, labels = _labels(drawn, alike)
    sample, loads = _counts(rated[0])
    unit = f"{shared}{text.clean(sample, 20)}s a second; more is better"
    unit += "; different works" if len({cell.key.model for cell in drawn}) > 1 else ""
    unit += f"; {text.count(len(alike) - len(drawn), 'more work')} below" if len(alike) > len(drawn) else ""
    title = "How fast the loader alone was" if loads else "How fast it trained"
    marks = [_speed(cell, label) for cell, label in zip(drawn, labels, strict=True)]
    return intervals_panel(NAME, title, unit + _dashed(marks), marks)


def _counts(cell: Cell) -> tuple[str, bool]:
    """What a work counts each second, and whether it only loads them."""
    return cell.trials[0].sample_unit, cell.key.protocol == LOADER_ALONE


def _labels(cells: Sequence[Cell], among: Sequence[Cell]) -> tuple[str, list[str]]:
    """What all names begin with, to stand in the unit, and the rest of each."""
    named = [names.work(cell, among, said=SAID_BY_NOTE) for cell in cells]
    shared = names.work(cells[0])
    if len(named) < 2 or not all(name.startswith(f"{shared}, ") for name in named):
        return "", named
    return f"{shared}: ", [name.removeprefix(f"{shared}, ") for name in named]


def _speed(cell: Cell, label: str) -> Mark:
    figure = cell.throughput
    interval = figure.interval
    parts = [f"batch {cell.key.batch_size}", text.count(figure.n, "run")]
    parts += ["unproven"] if cell.verdict == "unproven" else []
    return Mark(
        label=label,
        note=" · ".join(parts) + _generated(cell),
        text=text.number(figure.mean),
        value=figure.mean,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        runs=figure.values,
        left_out=figure.apart,
        precision=cell.key.precision,
        unranked=not cell.ranked,
        card=unit_of(cell),
    )


def _generated(cell: Cell) -> str:
    return " · GENERATED data" if cell.key.data_source == "generated" else ""
