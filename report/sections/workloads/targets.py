"""Time to a target: what more devices bring to it, the learning behind that, and every line's own time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from report import text
from report.charts.lines import Curve, Curves
from report.charts.style import Form
from report.comparisons.cells import Cell, Ratio
from report.comparisons.figures import Figure
from report.comparisons.scaling import PARALLELISMS, VIRTUAL, Scaling, parallelism_of, ranks_of, scalings
from report.comparisons.targets import ToTarget, targets_of, to_target
from report.sections import names
from report.sections.view import Panel, Table, tabled
from report.sections.workloads.curves import QUALITY, over_time, quality_form, time_unit
from report.stats.intervals import Runs, blocks_interval
from report.trials.key import PARALLEL, VIRTUAL_RANKS
from report.trials.learning import validated_batches
from report.trials.trial import Trial

MOST_WHISKERS = 6
"""Intervals drawn along one line."""


def panels(family: Scaling, precision: str, way: str, name: str, title: str) -> list[Panel | None]:
    """One way of sharing the work: speed-up in throughput and to each target, the times, and the learning."""
    cells = family.with_single(precision, way)
    if not family.targets or len(cells) < 2:
        return []
    title = f"{title}, {precision} {'' if way == VIRTUAL else way}".strip()
    drawn = [_times(family, cells, way, f"{name}-to-targets", title)]
    if way != VIRTUAL:
        drawn.insert(0, _speed_ups(family, cells, f"{name}-speed-ups", title))
    return [*drawn, *_learning(cells, way, name, title)]


def _speed_ups(family: Scaling, cells: Sequence[Cell], name: str, title: str) -> Panel | None:
    single, *several = cells
    most = float(max(map(ranks_of, cells)))
    ratios = {"throughput": [(ranks_of(cell), family.over_single(cell)) for cell in several]}
    for target in family.targets:
        ratios[f"to {_target(target)}"] = [
            (ranks_of(cell), family.over_single_to(cell, target)) for cell in several
        ]
    lines = []
    for place, (label, found) in enumerate(ratios.items()):
        known = [(n, ratio) for n, ratio in found if ratio is not None]
        points = ((1.0, 1.0), *((float(n), ratio.estimate) for n, ratio in known))
        ends = (None, *(_ends(ratio) for _, ratio in known))
        if known:
            lines.append(_line(label, points, single, place, ends))
    ideal = Curve("ideal", ((1.0, 1.0), (most, most)), "ideal", published=True)
    missed = _missed_words(family, several, "device")
    unit = f"times one device: throughput, and how much sooner a target is reached{missed}"
    return _panel(name, f"{title}: speed-up", unit, [ideal, *lines], "devices", "times") if lines else None


def _times(family: Scaling, cells: Sequence[Cell], way: str, name: str, title: str) -> Panel | None:
    """Seconds of real devices; of virtual ranks, which one device works through in turn, epochs alone."""
    virtual = way == VIRTUAL
    lines = []
    found = {target: [(cell, to_target(cell, target)) for cell in cells] for target in family.targets}
    means = [_figure(one, virtual).mean for each in found.values() for _, one in each]
    unit, size = ("epochs", 1.0) if virtual else time_unit(max((mean or 0.0 for mean in means), default=0.0))
    for place, (target, each) in enumerate(found.items()):
        figures = [(ranks_of(cell), _figure(one, virtual)) for cell, one in each]
        known = [(n, figure, figure.mean) for n, figure in figures if figure.mean is not None]
        if known:
            points = tuple((float(n), mean / size) for n, _, mean in known)
            ends = tuple(_scaled(_ends(figure), size) for _, figure, _ in known)
            lines.append(_line(_target(target), points, cells[0], place + 1, ends))
    across = "virtual ranks on one device" if virtual else "devices"
    missed = _missed_words(family, cells, "rank" if virtual else "device")
    note = f"{unit} of training{'' if virtual else ' and validation'}; less is better{missed}"
    return _panel(name, f"{title}: {'epochs' if virtual else 'time'} to each target", note, lines, across)


def _learning(cells: Sequence[Cell], way: str, name: str, title: str) -> list[Panel | None]:
    """Quality against epoch, and where seconds compare against time: the runs of each cell on their mean."""
    quality = next(
        (trial.quality_name for cell in cells for trial in cell.trials if trial.quality_name), None
    )
    if quality is None:
        return []
    kind = "virtual rank" if way == VIRTUAL else "device"
    by_epoch, by_time = [], []
    for place, cell in enumerate(cells):
        means = _means([trial for trial in cell.trials if trial.verdict != "invalid"])
        label = text.count(ranks_of(cell), kind)
        ends = tuple(end for *_, end in means)
        by_epoch.append(
            _line(label, [(epoch, mean) for epoch, _, mean, _ in means], cell, place, ends, False)
        )
        by_time.append(_line(label, [(time, mean) for _, time, mean, _ in means], cell, place, ends, False))
    form, word = quality_form(quality), QUALITY[quality][0]
    note = "mean of the runs, with its interval here and there"
    drawn = [_panel(f"{name}-by-epoch", f"{title}: {word.lower()} by epoch", note, by_epoch, "epoch", form)]
    if way != VIRTUAL:
        unit, size = time_unit(max((line.points[-1][0] for line in by_time if line.points), default=0.0))
        scaled = [replace(line, points=tuple((x / size, y) for x, y in line.points)) for line in by_time]
        heading = f"{title}: {word.lower()} against time"
        drawn.append(
            _panel(f"{name}-by-time", heading, f"training and validation; {note}", scaled, unit, form)
        )
    return drawn


def _means(trials: Sequence[Trial]) -> list[tuple[float, float, float, tuple[float, float] | None]]:
    """Of each epoch that all runs have: its number, seconds until then, mean quality, its interval."""
    runs = [over_time(trial.epochs) for trial in trials]
    shared = list(zip(*runs, strict=False))
    every = max(1, len(shared) // MOST_WHISKERS)
    means = []
    for epoch, points in enumerate(shared, 1):
        values = Runs(tuple(value for _, value in points))
        interval = blocks_interval(values, paired=True, logs=False) if epoch % every == 0 else None
        seconds = sum(time for time, _ in points) / len(points)
        ends = (interval.low, interval.high) if interval else None
        means.append((float(epoch), seconds, values.mean or 0.0, ends))
    return means


def _line(
    label: str,
    points: Sequence[tuple[float, float]],
    cell: Cell,
    turn: int,
    ends: Sequence[tuple[float, float] | None],
    marked: bool = True,
) -> Curve:
    card = text.unit_name(cell.trials[0].device_name, cell.machine_label)
    precision = cell.key.precision
    return Curve(label, tuple(points), precision, card, intervals=tuple(ends), marked=marked, turn=turn)


def _panel(
    name: str, title: str, unit: str, lines: Sequence[Curve], across: str, form: Form = "number"
) -> Panel | None:
    drawn = [line for line in lines if line.points]
    if not drawn:
        return None
    write = {"times": text.times, "percent": text.percent}.get(form, text.number)
    marked = [line for line in drawn if line.marked or line.published]
    alt = "; ".join(
        f"{line.label}: "
        + (
            ", ".join(f"{write(y)} on {x:g}" for x, y in line.points)
            if line in marked
            else write(line.points[-1][1])
        )
        for line in drawn
    )
    return Panel(name, title, unit, Curves(tuple(drawn), across, form, zero=bool(marked)), alt)


def _target(value: float) -> str:
    return text.target(value)


def _figure(found: ToTarget, virtual: bool) -> Figure:
    return found.epochs if virtual else found.seconds


def _ends(figure: Figure | Ratio) -> tuple[float, float] | None:
    return (figure.interval.low, figure.interval.high) if figure.interval else None


def _scaled(ends: tuple[float, float] | None, size: float) -> tuple[float, float] | None:
    return None if ends is None else (ends[0] / size, ends[1] / size)


def _missed_words(family: Scaling, cells: Sequence[Cell], noun: str) -> str:
    """'; not reached by all runs: 80 % on 12 devices (1 of 3 had it)', which no line has."""
    missed = [
        f"{_target(target)} on {text.count(ranks_of(cell), noun)} ({found.reached} of {found.runs} had it)"
        for target in family.targets
        for cell in cells
        if (found := to_target(cell, target)).runs > found.reached
    ]
    return f"; not reached by all runs: {', '.join(missed)}" if missed else ""


def table(cells: Sequence[Cell]) -> Table | None:
    """Every line's epochs and seconds to its targets, with the speed-up and efficiency of several devices."""
    targets = targets_of(cells)
    if not targets:
        return None
    families = {id(cell): family for family in scalings(cells) for cell in family.cells}
    timed = [cell for cell in cells if cell.verdict != "invalid" and targets_of([cell])]
    rows, ratios = [], []
    for cell in timed:
        row = {"Work": _named(cell), "Trained": _trained(cell)}
        for target in targets:
            ratio = families[id(cell)].over_single_to(cell, target) if id(cell) in families else None
            ratios += [ratio] if ratio else []
            row[f"to {_target(target)}"] = _time_words(cell, target, ratio)
        rows.append(row)
    caption = (
        "Time to a target: epochs, and seconds of training and validation, until the end of the first epoch "
        "that has it, each with its 95 % interval; then times as soon as on one device, and that over their "
        "number. Where a run ended without it, no mean is made of the others. Seconds of virtual ranks are "
        "left out: one device works through all of them in turn."
    )
    return tabled(caption + names.together(ratios), rows) if rows else None


def _trained(cell: Cell) -> str:
    """How long its runs trained, and what they were validated on where that is not all."""
    epochs = text.count(max(trial.epochs_trained or 0 for trial in cell.trials), "epoch")
    measured = cell.trials[0].record.measurement
    batches = validated_batches(measured) if measured else None
    if measured is None or batches is None:
        return epochs
    return f"{epochs}\nvalidated on {batches:,} of {measured.protocol.valid_batches:,} batches"


def _named(cell: Cell) -> str:
    way = parallelism_of(cell)
    ranks = (
        f"{ranks_of(cell)} {PARALLELISMS[way]}" if way == VIRTUAL else text.count(ranks_of(cell), "device")
    )
    ranks += text.on_nodes(cell.key.nodes)
    shared = f", {PARALLELISMS[way]}" if way and way != VIRTUAL else ""
    options = "".join(
        f", {name} {value}" for name, value in cell.key.options if name not in (PARALLEL, VIRTUAL_RANKS)
    )
    setting = f"{cell.key.precision}, batch {cell.key.batch_size}{text.clean(options, 120)}"
    unit = text.unit_name(cell.card, cell.machine_label)
    return f"{text.model_name(cell.key.model)}, {ranks}{shared}\n{setting}\n{unit}"


def _time_words(cell: Cell, target: float, ratio: Ratio | None) -> str:
    found = to_target(cell, target)
    if target not in targets_of([cell]) or not found.runs:
        return "–"
    if found.reached < found.runs:
        return f"not by all: {found.reached} of {text.count(found.runs, 'run')}"
    words = [_with_interval(found.epochs, "number", " epochs")]
    if parallelism_of(cell) != VIRTUAL:
        words.append(_with_interval(found.seconds, "number", " s"))
    if ratio is not None:
        words.append(
            f"{text.times(ratio.estimate)} × as soon, {text.percent(ratio.estimate / ranks_of(cell))}"
        )
    return "\n".join(words)


def _with_interval(figure: Figure, form: str, unit: str) -> str:
    between = f" ({text.between(figure.interval, form)})" if figure.interval else ""
    return f"{text.number(figure.mean)}{unit}{between}"
