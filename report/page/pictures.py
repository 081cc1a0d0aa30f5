"""The pictures of several pages: rows of what was measured and published, and curves of what was trained."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from harness.record import PRECISION_ORDER, Claim
from harness.record import Curve as PublishedCurve
from report import text
from report.charts.curves import CurveLine, CurvePanel, Curves
from report.charts.rows import KeyEntry, Look, Mark, RowGroup, ScaleRow, ScaleRows
from report.charts.style import Form
from report.compare.cells import Cell
from report.compare.comparison import Comparison
from report.page.compared_view import way_name
from report.page.filters import UNKNOWN, figure_text, work_name
from report.page.values import NamedSystem, Picture, Systems
from report.trials.key import grouped_by
from report.trials.trial import TrialResult

LEAD = "lead"
"""The name of page one's picture."""
MOST_ROWS = 14
"""Rows of page one's picture."""
MOST_LINES = 8

QUALITIES: dict[str, tuple[str, Form]] = {
    "accuracy": ("Accuracy", "percent"),
    "auc": ("Area under the curve", "number"),
    "perplexity": ("Perplexity", "number"),
    "loss": ("Loss", "number"),
}
CLOCK = ((3600, "hours"), (60, "minutes"), (1, "seconds"))


# Rows


def look_of(cell: Cell, metric: str) -> Look:
    """Hollow where the time of a whole training, or of an epoch, was projected from a part of it."""
    part = metric == "protocol_seconds" or (
        metric == "epoch_seconds" and not all(trial.epochs_trained for trial in cell.trials)
    )
    return "projected" if part and cell.length.projected else "measured"


def published_row(claim: Claim, seconds: float, *, loader: bool) -> ScaleRow:
    """A published time over `seconds`; `loader` says that another one fed it."""
    value = claim.value or 0.0
    note = ", ".join(filter(None, (claim.of.precision, "other loader" if loader else "")))
    mark, said = Mark(value / seconds, look="published"), figure_text(value, "seconds")
    return ScaleRow(
        text.short_card(claim.of.card or UNKNOWN), (mark,), note, said, text.times(value / seconds)
    )


def key_of_systems(systems: Sequence[NamedSystem]) -> tuple[KeyEntry, ...]:
    """Return the words of every look; a chart keeps the words that it uses."""
    by_slot = {system.slot: system for system in reversed(systems)}
    shown = [by_slot[slot] for slot in sorted(by_slot)]
    return (
        *(KeyEntry(one.title, "measured", one.slot) for one in shown),
        *(KeyEntry(f"{one.title}, projected", "projected", one.slot) for one in shown),
        KeyEntry("published, no range", "published"),
    )


def rows_picture(chart: ScaleRows, title: str, name: str = LEAD) -> Picture:
    """Return rows as a picture, with what they show in words for those who cannot see them."""
    said = (
        (
            group.label,
            ", ".join(" ".join(filter(None, (row.label, row.note, row.text))) for row in group.rows),
        )
        for group in chart.groups
    )
    return Picture(name, chart, "; ".join(": ".join(filter(None, each)) for each in said), title)


def groups_with_room(groups: Sequence[RowGroup], most: int = MOST_ROWS) -> tuple[RowGroup, ...]:
    """The first groups that have so many rows together, one at least."""
    kept: list[RowGroup] = []
    for group in groups:
        if kept and sum(len(each.rows) for each in (*kept, group)) > most:
            break
        kept.append(group)
    return tuple(kept)


# Curves


def panels_picture(shown: tuple[CurvePanel, ...], title: str = "", name: str = LEAD) -> Picture:
    """Return panels next to each other as one picture."""
    return Picture(name, Curves(shown), "; ".join(panel.title or panel.note for panel in shown), title)


def quality_over_time(runs: Sequence[tuple[str, TrialResult]], target: float) -> CurvePanel | None:
    """Return the quality that runs, by their names, had reached by the time they had trained.

    The target is a rule across, with a dot where a run reached it.
    """
    learned = [
        (name, trial, epochs)
        for name, trial in runs
        if len(epochs := [each for each in trial.epochs if each.complete and each.quality is not None]) > 1
    ]
    if not learned:
        return None
    spent = [
        list(accumulate((each.train_seconds or 0.0) + (each.valid_seconds or 0.0) for each in epochs))
        for _, _, epochs in learned
    ]
    longest = max(times[-1] for times in spent)
    size, unit = next((size, unit) for size, unit in CLOCK if longest >= size or size == 1)
    falls = learned[0][1].quality_name in ("perplexity", "loss")
    lines: list[CurveLine] = []
    for at, ((name, _, epochs), times) in enumerate(zip(learned[:MOST_LINES], spent, strict=False)):
        points = tuple((time / size, epoch.quality or 0.0) for time, epoch in zip(times, epochs, strict=True))
        lines.append(CurveLine(name, points, at))
        met = [point for point in points if (point[1] <= target if falls else point[1] >= target)]
        lines.append(CurveLine("", tuple(met[:1]), at, marked=True))
    title, form = QUALITIES[learned[0][1].quality_name or "loss"]
    rule = CurveLine("", ((0.0, target), (longest / size, target)), stroke=1, published=True)
    drawn = tuple(line for line in (rule, *lines) if line.points)
    return CurvePanel("", f"{title.lower()} by {unit} of training", drawn, form, zero=False)


def learning_panel(
    cells: Sequence[Cell], published: Sequence[PublishedCurve], systems: Systems
) -> CurvePanel | None:
    """Return the quality by epoch of the work with the most epochs, else a loss; with what was published."""
    works = grouped_by(cells, lambda cell: (cell.key.protocol, cell.key.model, cell.key.data_source))
    trained = sorted(works.items(), key=lambda each: -max(len(t.epochs) for c in each[1] for t in c.trials))
    for field in ("quality", "valid_loss"):
        for (protocol, model, source), members in trained:
            lines = [line for cell in members for line in _by_epoch(cell, members, field, systems)]
            if not any(len(line.points) > 1 for line in lines):
                continue
            if source != "generated":
                alike = (
                    c
                    for c in published
                    if (c.protocol, c.side.model.casefold()) == (protocol, model.casefold())
                )
                lines += (_published_line(curve, getattr(curve, field)) for curve in alike)
            name = next(filter(None, (cell.quality_name for cell in members)), "loss")
            title, form = QUALITIES[name] if field == "quality" else ("Validation loss", "number")
            note = f"by epoch; {text.model_name(model)}"
            return CurvePanel(title, note, tuple(lines[: 2 * MOST_LINES]), form, zero=False)
    return None


def _by_epoch(cell: Cell, among: Sequence[Cell], field: str, systems: Systems) -> Iterable[CurveLine]:
    known = cell.key.precision in PRECISION_ORDER
    stroke = PRECISION_ORDER.index(cell.key.precision) % 4 if known else 0
    for trial in (trial for trial in cell.trials if trial.verdict != "invalid"):
        values = [(float(e.index), getattr(e, field)) for e in trial.epochs if e.complete]
        points = tuple((at, value) for at, value in values if value is not None)
        if points:
            yield CurveLine(work_name(cell, among), points, systems.of(cell).slot, stroke)


def _published_line(curve: PublishedCurve, values: Sequence[float]) -> CurveLine:
    points = tuple((float(epoch), value) for epoch, value in zip(curve.epochs, values, strict=True))
    return CurveLine("published", points, published=True)


def scaling_panel(comparison: Comparison, sides: Sequence[NamedSystem]) -> CurvePanel | None:
    """Return the speed-up over one device by devices of the work that most sides did, with cards' ideal."""
    work = max(comparison.works, key=lambda work: sum(cell is not None for cell in work.cells))
    known = [at for at, cell in enumerate(work.cells) if cell]
    found = [(at, ratio) for at in known[1:] if (ratio := comparison.ratio(work, at, known[0]))]
    if not found:
        return None
    by_way = grouped_by(found, lambda each: dict(comparison.sides[each[0]].values).get("parallel"))
    # The speed of independent copies is that of one: it stands in the table alone.
    by_way.pop("each", None)
    if not by_way:
        return None
    lines, most = [], 1.0
    for place, (way, ratios) in enumerate(by_way.items()):
        counts = [float(dict(comparison.sides[at].values)["gpus"] or 1) for at, _ in ratios]
        points = ((1.0, 1.0), *((count, r.estimate) for count, (_, r) in zip(counts, ratios, strict=True)))
        ranges = (None, *((r.interval.low, r.interval.high) if r.interval else None for _, r in ratios))
        most = max(most, *counts)
        lines.append(
            CurveLine(
                way_name(ratios[0][1].of) or str(way or ""), points, place, place, marked=True, ranges=ranges
            )
        )
    # A line of equal speed-up is no straight one where the axis is logarithmic.
    bent = tuple((most ** (n / 32), most ** (n / 32)) for n in range(33))
    ticks = tuple((2.0**n, f"{2**n}") for n in range(int(most).bit_length()) if 2**n <= most)
    # Processes share their processor, of which one process may use all.
    shared = found[0][1].of.stack.device == "cpu"
    ideal = () if shared else (CurveLine("ideal", bent, published=True),)
    note = "times as fast as one; logarithmic across"
    return CurvePanel("", note, (*ideal, *lines[:MOST_LINES]), "times", ticks=ticks)
