"""Groups → curves: quality and loss by epoch, the published ones behind; loss by step in a short run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from harness.record import Curve as PublishedCurve
from harness.record import Epoch
from report import text
from report.charts.lines import Curve, Curves
from report.charts.style import Form
from report.comparisons import cells
from report.comparisons.groups import ComparisonGroup, Entry
from report.sections import names
from report.sections.view import Panel

QUALITY = {
    "accuracy": ("Accuracy", "on the validation images after each epoch; more is better"),
    "auc": ("AUC", "on the validation images after each epoch, the mean of all labels; more is better"),
    "perplexity": ("Perplexity", "on the validation text after each epoch; less is better"),
    "loss": ("Loss", "on the validation items after each epoch; less is better"),
}


def panels(group: ComparisonGroup, published: Sequence[PublishedCurve], anchor: str) -> tuple[Panel, ...]:
    """Quality and validation loss by epoch; the training loss by step where no epoch was finished."""
    behind = [] if group.base.data_source == "generated" else list(published)
    drawn = [
        _quality(group, behind, anchor),
        _quality_by_time(group, anchor),
        _valid_loss(group, behind, anchor),
    ]
    if drawn[-1] is None:
        drawn.append(_step_loss(group, anchor))
    return tuple(panel for panel in drawn if panel is not None)


def _quality(group: ComparisonGroup, published: Sequence[PublishedCurve], anchor: str) -> Panel | None:
    trials = [trial for entry in group.entries for trial in entry.cell.trials]
    name = next((trial.quality_name for trial in trials if trial.quality_name), None)
    if name is None:
        return None
    title, unit = QUALITY[name]
    lines = _by_epoch(group, lambda epoch: epoch.quality)
    lines += [_behind(curve, curve.quality) for curve in published]
    return _panel(f"{anchor}-quality", title, unit, lines, form=quality_form(name))


def _quality_by_time(group: ComparisonGroup, anchor: str) -> Panel | None:
    """Quality against the time that training and validation took; published curves have no clock."""
    trials = [trial for entry in group.entries for trial in entry.cell.trials]
    name = next((trial.quality_name for trial in trials if trial.quality_name), None)
    drawn = [
        _own(entry, group, points)
        for entry in group.entries
        for trial in entry.cell.trials
        if trial.verdict != "invalid" and len(points := over_time(trial.epochs)) > 1
    ]
    if name is None or not drawn:
        return None
    longest = max(curve.points[-1][0] for curve in drawn)
    unit, size = time_unit(longest)
    scaled = [replace(curve, points=tuple((x / size, y) for x, y in curve.points)) for curve in drawn]
    title, note = f"{QUALITY[name][0]} against time", "training and validation added up"
    return _panel(f"{anchor}-by-time", title, note, scaled, form=quality_form(name), across=unit)


def time_unit(longest: float) -> tuple[str, float]:
    """What an axis is in that goes to so many seconds, and the seconds of one."""
    if longest > 7200:
        return "hours", 3600.0
    return ("minutes", 60.0) if longest > 120 else ("seconds", 1.0)


def over_time(epochs: Sequence[Epoch]) -> tuple[tuple[float, float], ...]:
    """(seconds of training and validation until then, quality) of each whole epoch that was validated."""
    points, seconds = [], 0.0
    for epoch in epochs:
        seconds += epoch.train_seconds + (epoch.valid_seconds or 0.0)
        if epoch.complete and epoch.quality is not None:
            points.append((seconds, epoch.quality))
    return tuple(points)


def _valid_loss(group: ComparisonGroup, published: Sequence[PublishedCurve], anchor: str) -> Panel | None:
    lines = _by_epoch(group, lambda epoch: epoch.valid_loss)
    lines += [_behind(curve, curve.valid_loss) for curve in published]
    return _panel(f"{anchor}-loss", "Validation loss", "after each epoch; less is better", lines)


def _step_loss(group: ComparisonGroup, anchor: str) -> Panel | None:
    lines = [
        _own(entry, group, tuple((float(step), loss) for step, loss in trial.losses))
        for entry in group.entries
        for trial in entry.cell.trials
        if trial.losses
    ]
    return _panel(f"{anchor}-loss", "Training loss", "at each step; less is better", lines, across="step")


def _by_epoch(group: ComparisonGroup, read: Callable[[Epoch], float | None]) -> list[Curve]:
    curves = []
    for entry in group.entries:
        for trial in entry.cell.trials:
            points = [(float(epoch.index), read(epoch)) for epoch in trial.epochs if epoch.complete]
            finished = tuple((x, y) for x, y in points if y is not None)
            if finished:
                curves.append(_own(entry, group, finished))
    return curves


def _own(line: Entry, group: ComparisonGroup, points: tuple[tuple[float, float], ...]) -> Curve:
    """A second card's or machine's lines are dashed, since colour says the precision."""
    units = list(dict.fromkeys((each.cell.card, each.cell.machine) for each in group.entries))
    place = units.index((line.cell.card, line.cell.machine))
    dash = (2.0 + 4 * place, 2.0 + place) if place else None
    label, card = names.label(line.cell, group), cells.unit_of(line.cell)
    return Curve(label, points, line.cell.key.precision, card, dash=dash)


def _behind(curve: PublishedCurve, values: Sequence[float]) -> Curve:
    points = tuple((float(epoch), value) for epoch, value in zip(curve.epochs, values, strict=False))
    card = text.short_card(curve.side.card or "")
    label = f"{card} {curve.side.precision or ''}, published".strip()
    return Curve(label, points, curve.side.precision or "", "published", published=True)


def quality_form(quality: str) -> Form:
    """How values of a quality are written."""
    return "percent" if quality == "accuracy" else "number"


def _panel(
    name: str,
    title: str,
    unit: str,
    lines: Sequence[Curve],
    *,
    form: Form = "number",
    across: str = "epoch",
) -> Panel | None:
    if all(curve.published for curve in lines):
        return None
    write = text.percent if form == "percent" else "{:.4g}".format
    ends = dict.fromkeys(f"{curve.label}: {write(curve.points[-1][1])}" for curve in lines)
    alt = f"at the last {across} drawn: " + "; ".join(list(ends)[:12])
    return Panel(name, title, unit, Curves(tuple(lines), across, form), alt)
