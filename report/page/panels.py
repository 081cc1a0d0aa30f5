"""Small pictures of a workload: memory, where the time goes, learning, devices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from harness.record import PRECISION_ORDER
from harness.record import Curve as PublishedCurve
from report import text
from report.analysis import Analysis
from report.charts.curves import CurveLine, CurvePanel, CurvePoints, Curves
from report.charts.marks import Look
from report.charts.rows import Mark, RowGroup, ScaleRow, ScaleRows
from report.charts.style import Form
from report.compare.cells import Cell
from report.compare.groups import ComparisonGroup
from report.compare.scaling import VIRTUAL, Scaling, ranks_of
from report.page.filters import devices as devices_of
from report.page.values import SEVERAL, Picture, Systems, rate_unit
from report.trials.key import grouped_by

MOST_ROWS, MOST_LINES = 6, 8

QUALITIES: dict[str, tuple[str, Form]] = {
    "accuracy": ("Accuracy", "percent"),
    "auc": ("Area under the curve", "number"),
    "perplexity": ("Perplexity", "number"),
    "loss": ("Loss", "number"),
}
CLOCK = ((3600, "hours"), (60, "minutes"), (1, "seconds"))


def together(
    groups: Sequence[ComparisonGroup],
    cells: Sequence[Cell],
    families: Sequence[Scaling],
    analysis: Analysis,
    systems: Systems,
    name: str,
) -> Picture | None:
    """All of one workload's that have something to show, in one picture of that name."""
    drawn = [
        learning(groups, analysis.evidence.claims.workload_curves(groups[0].base.workload), systems),
        devices(families, systems),
    ]
    shown = tuple(panel for panel in drawn if panel is not None)
    return picture(name, shown) if shown else None


def picture(name: str, shown: tuple[CurvePanel, ...]) -> Picture:
    """Return panels next to each other as one picture of that name."""
    return Picture(name, Curves(shown), "; ".join(panel.title or panel.note for panel in shown))


def labels(cells: Sequence[Cell], systems: Systems) -> list[str]:
    """Return each cell's difference from the others: model, precision, framework or devices, and system."""
    own = [systems.of(cell).name.rpartition(SEVERAL)[2] for cell in cells]
    models = [text.model_name(cell.key.model) for cell in cells]
    precisions = [cell.key.precision for cell in cells]
    columns = [names for names in (models, precisions, devices_of(cells), own) if len(set(names)) > 1]
    rows = zip(*columns, strict=True) if columns else [()] * len(cells)
    return [
        ", ".join(filter(None, row)) or precision for row, precision in zip(rows, precisions, strict=True)
    ]


def rates(cells: Sequence[Cell], systems: Systems) -> RowGroup:
    """Return the speed of each cell, in samples a second."""
    rows = tuple(
        ScaleRow(
            name,
            (Mark(cell.throughput.mean or 0.0, *_ends(cell), _look(cell), systems.of(cell).slot),),
            text=text.number(cell.throughput.mean),
        )
        for cell, name in zip(cells[:MOST_ROWS], labels(cells, systems), strict=False)
    )
    models = {text.model_name(cell.key.model) for cell in cells}
    return RowGroup(rate_unit(cells[0]).capitalize(), rows, tuple(models) if len(models) == 1 else ())


def _look(cell: Cell) -> Look:
    return "measured" if cell.ranked else "projected"


def speeds(groups: Sequence[RowGroup]) -> Picture:
    """Return speeds as rows from zero, each unit on a scale of its own."""
    return Picture(
        "speeds", ScaleRows(tuple(groups), reference=None), "; ".join(group.label for group in groups)
    )


def quality_over_time(cells: Sequence[Cell], systems: Systems) -> CurvePanel | None:
    """Return the quality that the runs of one model had reached, against the time that they had trained."""
    learned = [
        (cell, trial.quality_name, whole)
        for cell in cells
        for trial in cell.trials
        if trial.verdict != "invalid"
        and len(whole := [each for each in trial.epochs if each.complete and each.quality is not None]) > 1
    ]
    alike = grouped_by(learned, lambda run: (run[0].key.model, run[1] or "loss"))
    if not alike:
        return None
    (_, name), runs = max(alike.items(), key=lambda each: max(len(epochs) for _, _, epochs in each[1]))
    spent = [[(each.train_seconds or 0.0) + (each.valid_seconds or 0.0) for each in e] for _, _, e in runs]
    size, unit = next((size, unit) for size, unit in CLOCK if max(map(sum, spent)) >= size or size == 1)
    among = [cell for cell, _, _ in runs]
    lines: list[CurveLine] = []
    named = zip(runs[:MOST_LINES], spent, labels(among, systems), strict=False)
    for (cell, _, epochs), seconds, label in named:
        places = zip(accumulate(seconds), epochs, strict=True)
        points = tuple((at / size, epoch.quality or 0.0) for at, epoch in places)
        lines.append(CurveLine(label, points, systems.of(cell).slot, len(lines)))
    title, form = QUALITIES[name]
    note = f"{title.lower()} of {text.model_name(among[0].key.model)} by {unit} of training"
    return CurvePanel("", note, tuple(lines), form, zero=False)


def learning(
    groups: Sequence[ComparisonGroup], published: Sequence[PublishedCurve], systems: Systems
) -> CurvePanel | None:
    """The quality by epoch of the work with the most epochs; else a loss."""
    trained = sorted(groups, key=lambda group: -_epochs(group))
    for field in ("quality", "valid_loss"):
        for group in trained:
            lines = _by_epoch(group, field, systems)
            if any(len(line.points) > 1 for line in lines):
                lines += [_behind(curve, getattr(curve, field)) for curve in published if _of(curve, group)]
                title, form = _quality(group) if field == "quality" else ("Validation loss", "number")
                note = f"by epoch; {text.model_name(group.base.model)}"
                return CurvePanel(title, note, tuple(lines[: 2 * MOST_LINES]), form, zero=False)
    return None


def _quality(group: ComparisonGroup) -> tuple[str, Form]:
    trials = [trial for entry in group.entries for trial in entry.cell.trials]
    return QUALITIES[next((trial.quality_name for trial in trials if trial.quality_name), "loss")]


def _epochs(group: ComparisonGroup) -> int:
    trials = [trial for entry in group.entries for trial in entry.cell.trials]
    return max((len(trial.epochs) for trial in trials), default=0)


def _by_epoch(group: ComparisonGroup, field: str, systems: Systems) -> list[CurveLine]:
    cells, lines = [entry.cell for entry in group.entries], []
    for cell, name in zip(cells, labels(cells, systems), strict=True):
        for trial in cell.trials:
            whole = (epoch for epoch in trial.epochs if epoch.complete)
            values = [(float(epoch.index), getattr(epoch, field)) for epoch in whole]
            points = tuple((at, value) for at, value in values if value is not None)
            if points and trial.verdict != "invalid":
                lines.append(_line(cell, name, points, systems))
    return lines


def _line(cell: Cell, name: str, points: CurvePoints, systems: Systems) -> CurveLine:
    stroke = (PRECISION_ORDER.index(cell.key.precision) % 4) if cell.key.precision in PRECISION_ORDER else 0
    return CurveLine(name, points, systems.of(cell).slot, stroke)


def _of(curve: PublishedCurve, group: ComparisonGroup) -> bool:
    """Return whether a curve has the group's model and protocol; generated data teaches something else."""
    mine = (group.base.protocol, group.base.model.casefold())
    measured = group.base.data_source != "generated"
    return measured and mine == (curve.protocol, curve.side.model.casefold())


def _behind(curve: PublishedCurve, values: Sequence[float]) -> CurveLine:
    points = tuple((float(epoch), value) for epoch, value in zip(curve.epochs, values, strict=True))
    return CurveLine("published", points, published=True)


def devices(found: Sequence[Scaling], systems: Systems) -> CurvePanel | None:
    """Return the speed-up over one device against the number of devices, with the ideal; null for none."""
    lines: list[CurveLine] = []
    most = 1.0
    for family in found:
        for precision, way in family.lines():
            cells = family.with_single(precision, way)
            known = [(cell, ratio) for cell in cells if (ratio := family.over_single(cell)) is not None]
            if way in ("", VIRTUAL) or not known:
                continue
            points = ((1.0, 1.0), *((float(ranks_of(cell)), ratio.estimate) for cell, ratio in known))
            ranges = (
                None,
                *((r.interval.low, r.interval.high) if r.interval else None for _, r in known),
            )
            most = max(most, *(at for at, _ in points))
            named = f"{precision}, {way}"
            lines.append(
                CurveLine(named, points, systems.of(cells[0]).slot, len(lines), marked=True, ranges=ranges)
            )
    if not lines:
        return None
    # A line of equal speed-up is no straight one where the axis is logarithmic.
    bent = tuple((most ** (n / 32), most ** (n / 32)) for n in range(33))
    ideal = CurveLine("ideal", bent, published=True)
    ticks = tuple((2.0**n, f"{2**n}") for n in range(int(most).bit_length()) if 2**n <= most)
    title, note = "Speed-up by devices", "times as fast as one device; logarithmic across"
    return CurvePanel(title, note, (ideal, *lines[:MOST_LINES]), "times", doubling=True, ticks=ticks)


def _ends(cell: Cell) -> tuple[float | None, float | None]:
    interval = cell.throughput.interval
    return (max(interval.low, 0.0), interval.high) if interval else (None, None)
