"""Each framework against itself: several devices against one, and real data against synthetic."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from report import text
from report.comparisons.cells import Cell, Ratio, cell_ratio, repeated
from report.comparisons.scaling import parallelism_of
from report.sections.view import Table, tabled, told
from report.sections.workloads.frameworks.lines import Line, framework_of
from report.trials.key import DATA, PARALLEL
from report.trials.pairs import grouped_by

CAPTION = (
    "Each framework against itself, by the time of the whole protocol on the same machine in one session. "
    "More devices have as many images each."
)


def table(cells: Sequence[Cell]) -> Table | None:
    """A row for each line that has one device or synthetic data beside it; null where none has."""
    timed = [cell for cell in cells if framework_of(cell) and cell.seconds.mean is not None]
    found = [
        (cell, _alone(cell, family), _synthetic(cell, family))
        for family in grouped_by(timed, _family).values()
        for cell in sorted(family, key=lambda cell: (cell.key.data_source, cell.key.gpus))
    ]
    found = [each for each in found if each[1] or each[2]]
    if not found:
        return None
    pairs = [(cell, other) for cell, *others in found for other in others if other]
    count = max(sum(map(repeated, pairs)), 1)
    rows = [
        {
            "Framework": Line(framework_of(cell), cell).name,
            "Protocol": cell.key.protocol,
            "Data": cell.key.data_source,
            "Devices": str(cell.key.gpus),
            "Times as fast as one device": _words(alone, cell, count),
            "Times as long as on synthetic data": _words(cell, synthetic, count),
        }
        for cell, alone, synthetic in found
    ]
    return tabled(CAPTION, told(rows))


def _family(cell: Cell) -> Hashable:
    """What a line shares with itself on another number of devices or on other data."""
    options = tuple(option for option in cell.key.options if option[0] not in (PARALLEL, DATA))
    key = replace(cell.key, gpus=1, data_source="", data_sha256=None, options=options)
    return key, cell.length.epochs, cell.machine, cell.session, cell.stack


def _alone(cell: Cell, family: Sequence[Cell]) -> Cell | None:
    if cell.key.gpus == 1:
        return None
    same = (each for each in family if each.key.gpus == 1 and each.key.data_source == cell.key.data_source)
    return next(same, None)


def _synthetic(cell: Cell, family: Sequence[Cell]) -> Cell | None:
    if cell.key.data_source != "real":
        return None
    place = cell.key.gpus, parallelism_of(cell)
    same = (each for each in family if (each.key.gpus, parallelism_of(each)) == place)
    return next((each for each in same if each.key.data_source == "synthetic"), None)


def _words(of: Cell | None, over: Cell | None, comparisons: int) -> str:
    """'2.99' and its interval: how many times `of` takes as long as `over`."""
    if of is None or over is None:
        return "–"
    ratio: Ratio | None = cell_ratio(of, over, "seconds", comparisons=comparisons)
    if ratio is None:
        return "–"
    ends = text.between(ratio.interval, "times") if ratio.interval else "no interval"
    tied = ", tied" if ratio.tied else ""
    return f"{text.times(ratio.estimate)}\n{ends}{tied}"
