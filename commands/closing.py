"""What a session gave, in the few lines that a terminal ends with."""

from __future__ import annotations

from collections.abc import Sequence

from report import text
from report.analysis import Analysis
from report.comparisons.cells import Cell

MOST_FIGURES = 2


def found(analysis: Analysis) -> list[str]:
    """Two figures of the leading session with their ranges, and how sure they are."""
    shown = _shown(analysis.own_cells)
    if not shown:
        return [
            "measured: nothing yet" if not analysis.own else "measured: no trial that gave a steady figure"
        ]
    places = ("measured: ", "          ")
    return [*(place + _figure(cell) for place, cell in zip(places, shown, strict=False)), _sureness(shown)]


def next_line(analysis: Analysis) -> str:
    """What to do next, as a line to type."""
    if not analysis.own:
        return "invoke build run report"
    return analysis.question.longer or "invoke claims --here"


def _shown(cells: Sequence[Cell]) -> list[Cell]:
    """A cell for each of two models, the plainest precision first; none whose range is wider than itself."""
    usable = [cell for cell in cells if cell.throughput.mean is not None and not _is_vague(cell)]
    ordered = sorted(usable, key=lambda cell: (not cell.ranked, not cell.key.precision.startswith("fp32")))
    by_model: dict[tuple[str, str], Cell] = {}
    for cell in ordered:
        by_model.setdefault((cell.key.workload, cell.key.model), cell)
    return list(by_model.values())[:MOST_FIGURES]


def _is_vague(cell: Cell) -> bool:
    figure = cell.throughput
    return bool(
        figure.interval
        and figure.mean is not None
        and figure.interval.high - figure.interval.low > figure.mean
    )


def _figure(cell: Cell) -> str:
    figure, key = cell.throughput, cell.key
    assert figure.mean is not None
    what = f"{text.model_name(key.model)} in {key.precision}, batch {key.batch_size}"
    generated = ", GENERATED data" if key.data_source == "generated" else ""
    unit = text.clean(cell.trials[0].sample_unit, 20)
    if figure.interval is None:
        return f"{what}{generated}: {text.number(figure.mean)} {unit}s/s, a single run"
    low, high = text.about_range(figure.mean, figure.interval.low, figure.interval.high)
    best = text.about(figure.mean, figure.interval.low, figure.interval.high)
    return f"{what}{generated}: {best} {unit}s/s ({low} to {high})"


def _sureness(cells: Sequence[Cell]) -> str:
    runs = min(cell.throughput.n for cell in cells)
    kind = "ranges of 95 %" if all(cell.ranked for cell in cells) else "a first look, not ranked"
    return f"how sure: {kind}, from {text.count(runs, 'run')} each"
