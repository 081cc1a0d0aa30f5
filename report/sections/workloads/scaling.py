"""Several devices, on one node or more: what each way of sharing the work reaches, against one alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, median

from harness.record import Memory, Rank
from harness.summary.device_checks import busy_shares
from report import text
from report.charts.lines import Curve, Curves
from report.charts.style import Form
from report.comparisons.cells import Cell, Ratio
from report.comparisons.figures import Figure
from report.comparisons.groups import PRECISIONS
from report.comparisons.scaling import (
    PARALLELISMS,
    STRICT,
    VIRTUAL,
    Scaling,
    parallelism_of,
    scalings,
    step_seconds,
    way_name,
)
from report.comparisons.speedups import Speedup
from report.sections import names
from report.sections.limits.roofline import all_reduce_words
from report.sections.view import Panel, Table, tabled
from report.sections.workloads import targets
from report.trials.all_reduce import Devices, Reached, devices_of, gradient_bytes, least_seconds
from report.trials.pairs import grouped_by
from report.trials.trial import Trial

AT_WORK = "time at work"
DASHES = {"ddp": None, "dp": (6.0, 3.0), "fsdp": (2.0, 2.0)}
"""Colour says the precision, so the way of sharing is told by the dash."""


def panels(cells: Sequence[Cell], gains: Sequence[Speedup], anchor: str) -> tuple[Panel, ...]:
    """For each work its throughput, what mixed precision gains, and its scaling, by number of devices."""
    drawn: list[Panel | None] = []
    for place, family in enumerate(scalings(cells), 1):
        under = names.apart(family.key, (cell.key for cell in cells), said=("batch_size",))
        title = text.model_name(family.key.model) + names.setting(family.key) + under
        drawn += [
            _throughput(family, f"{anchor}-devices-{place}", title),
            _gain(family, gains, f"{anchor}-devices-gain-{place}", title),
            _scaling(family, f"{anchor}-scaling-{place}", title),
        ]
        for line, (precision, way) in enumerate(family.lines(), 1):
            if way in (*DASHES, VIRTUAL):
                drawn += targets.panels(family, precision, way, f"{anchor}-scaling-{place}-{line}", title)
    return tuple(panel for panel in drawn if panel is not None)


def _throughput(family: Scaling, name: str, title: str) -> Panel | None:
    lines = [
        _line(
            family,
            precision,
            way,
            [(c.key.gpus, c.throughput.mean or 0.0, _ends(c.throughput)) for c in cells],
        )
        for precision, way, cells in _with_single(family)
    ]
    rate = f"{family.cells[0].trials[0].sample_unit}s a second"
    return _panel(name, f"{title}: {rate}", f"{family.unit}; more is better", lines, "number")


def _gain(family: Scaling, gains: Sequence[Speedup], name: str, title: str) -> Panel | None:
    by_cell = {id(gain.of): gain for gain in gains if gain.over.key.precision == STRICT}
    lines = []
    for precision, way, cells in _with_single(family):
        ratios = [(cell.key.gpus, by_cell[id(cell)].ratio) for cell in cells if id(cell) in by_cell]
        lines.append(
            _line(family, precision, way, [(n, ratio.estimate, _ends(ratio)) for n, ratio in ratios])
        )
    return _panel(name, f"{title}: speed against {STRICT}", "times as fast", lines, "times")


def _scaling(family: Scaling, name: str, title: str) -> Panel | None:
    if family.targets:
        return None
    lines = []
    for precision, way, cells in _with_single(family):
        single = family.single(precision)
        if single is None:
            continue
        ratios = [(c.key.gpus, family.over_single(c)) for c in cells]
        points = [(n, ratio.estimate, _ends(ratio)) for n, ratio in ratios if ratio is not None]
        if points:
            lines.append(_line(family, precision, way, [(1, 1.0, None), *points]))
    if not lines:
        return None
    most = max(x for line in lines for x, _ in line.points)
    ideal = Curve("ideal", ((1.0, 1.0), (most, most)), "ideal", published=True)
    return _panel(name, f"{title}: scaling", "throughput over one device's", [ideal, *lines], "times")


def _with_single(family: Scaling) -> list[tuple[str, str, list[Cell]]]:
    """Each line of work shared, its first point the one device alone. Copies share nothing, so no line."""
    return [
        (precision, way, family.with_single(precision, way))
        for precision, way in family.lines()
        if way in DASHES
    ]


def _line(
    family: Scaling, precision: str, way: str, points: Sequence[tuple[int, float, tuple[float, float] | None]]
) -> Curve:
    return Curve(
        label=f"{precision} {way}",
        points=tuple((float(n), value) for n, value, _ in points),
        precision=precision,
        card=family.unit,
        dash=DASHES[way],
        intervals=tuple(ends for *_, ends in points),
        marked=True,
    )


def _ends(figure: Figure | Ratio) -> tuple[float, float] | None:
    return (figure.interval.low, figure.interval.high) if figure.interval else None


def _panel(name: str, title: str, unit: str, lines: Sequence[Curve], form: Form) -> Panel | None:
    drawn = [line for line in lines if len(line.points) > 1]
    if all(line.published for line in drawn):
        return None
    write = text.times if form == "times" else text.plain_tick
    alt = "; ".join(
        f"{line.label}: " + ", ".join(f"{write(y)} on {x:g}" for x, y in line.points) for line in drawn
    )
    # On an axis that doubles, the ideal would be a curve.
    doubling = not any(line.published for line in drawn)
    return Panel(name, title, unit, Curves(tuple(drawn), "devices", form, zero=True, doubling=doubling), alt)


def tables(
    cells: Sequence[Cell], gains: Sequence[Speedup], ceilings: Mapping[Devices, Reached]
) -> tuple[Table, ...]:
    """The study's layout, throughput beside speed-up; and scaling, memory and load of each device.

    `ceilings` are what the same devices reach together at most.
    """
    families = [family for family in scalings(cells) if any(c.key.gpus > 1 for c in family.cells)]
    to_targets = targets.table(cells)
    found = (_study(families, gains), _shares(families, ceilings)) if families else ()
    return (*found, *([to_targets] if to_targets else []))


def _study(families: Sequence[Scaling], gains: Sequence[Speedup]) -> Table:
    over = {id(gain.of): gain for gain in gains if gain.over.key.precision == STRICT}
    measured = {cell.key.precision for family in families for cell in family.cells}
    precisions = [name for name in PRECISIONS if name in measured]
    mixed = [name for name in precisions if name != STRICT]
    rows = []
    for family in families:
        real = [cell for cell in family.cells if parallelism_of(cell) != VIRTUAL]
        for _, alike in sorted(grouped_by(real, _place).items()):
            own = {cell.key.precision: cell for cell in alike}
            speeds = [names.rate(own[name]) if name in own else "–" for name in precisions]
            times = [names.gain(over.get(id(own.get(name)))) for name in mixed]
            rows.append((_named(family), _devices(alike[0]), *speeds, *times))
    unit = families[0].cells[0].trials[0].sample_unit
    columns = ("Model", "Devices", *precisions, *(f"{name} over {STRICT}" for name in mixed))
    caption = (
        f"{unit.capitalize()}s a second, and what each precision gains, by model and number of devices. "
        f"Of {PARALLELISMS['each']} the figure is that of one copy while the others run."
    )
    caption += names.together(gain.ratio for gain in over.values())
    if any(family.undrawn for family in families):
        caption += " Where as many devices ran on fewer and on more nodes, the charts have the fewest."
    return Table(caption, columns, tuple(rows))


def _place(cell: Cell) -> tuple[int, int, str]:
    return cell.key.gpus, cell.key.nodes, parallelism_of(cell)


def _named(family: Scaling) -> str:
    return f"{text.model_name(family.key.model)}{names.setting(family.key)}\n{family.unit}"


def _devices(cell: Cell) -> str:
    way = text.clean(way_name(cell), 40)
    return f"{cell.key.gpus}{text.on_nodes(cell.key.nodes)}" + (f"\n{way}" if way else "")


def _shares(families: Sequence[Scaling], ceilings: Mapping[Devices, Reached]) -> Table:
    rows, ratios, unit = [], [], families[0].cells[0].trials[0].sample_unit
    said: dict[str, None] = {}
    for family in families:
        for precision, way in family.lines():
            for cell in family.shared(precision, way) if way != VIRTUAL else ():
                against = family.over_single(cell)
                ratios += [against] if against else []
                ceiling = _ceiling(cell, ceilings)
                if way == "ddp":
                    said[_ceiling_words(cell, family, ceiling)] = None
                rows.append(
                    {
                        "Model": _named(family),
                        "Precision": precision,
                        "Devices": _devices(cell),
                        f"{unit.capitalize()}s / s, all devices": _together(cell, way),
                        "Efficiency": _against(against, cell.key.gpus, way),
                        "Least for its gradients": _gradients(cell, family, ceiling),
                        "Peak memory by device": memory_words(cell.trials),
                        "Device 0 against the others": load_words(cell.trials),
                    }
                )
    caption = (
        "Several devices against one of them alone. Efficiency is the throughput over as many times that of "
        "one device; of independent copies it is one copy's throughput over what it has alone."
    )
    caption += names.together(ratios)
    if said:
        caption += (
            " The least for its gradients is the time in which the fastest all-reduce measured over these "
            "devices sums as many bytes; much of it may pass during the backward pass."
        )
    return tabled(" ".join([caption, *said]), rows)


def _ceiling(cell: Cell, ceilings: Mapping[Devices, Reached]) -> Reached | None:
    devices = devices_of(cell.trials[0].record)
    return ceilings.get(devices) if devices else None


def _ceiling_words(cell: Cell, family: Scaling, ceiling: Reached | None) -> str:
    if ceiling is not None:
        return all_reduce_words(ceiling)
    return (
        f"No all-reduce was measured over {cell.key.gpus} devices{text.on_nodes(cell.key.nodes)} "
        f"of {family.unit}: "
        "`invoke run --plan ceilings` does it."
    )


def _gradients(cell: Cell, family: Scaling, ceiling: Reached | None) -> str:
    """'1.20 ms of the step's 52.1 ms', and what the step takes longer than on one device."""
    measured, step = cell.trials[0].record.measurement, step_seconds(cell)
    if measured is None or step is None or gradient_bytes(measured) is None:
        return "–"
    if ceiling is None:
        return "not measured"
    least = least_seconds(measured, ceiling.algorithm_bytes_per_second)
    words = f"{text.milliseconds(least)} of a step's {text.milliseconds(step)}"
    lost = family.step_seconds_lost(cell)
    if lost is None:
        return words
    return f"{words}\n{text.milliseconds(abs(lost))} {'more' if lost > 0 else 'less'} than on one"


def _together(cell: Cell, way: str) -> str:
    if way != "each":
        return text.number(cell.throughput.mean)
    sums = [
        sum(rank.samples / rank.seconds for rank in ranks if rank.samples and rank.seconds)
        for ranks in _ranks(cell.trials)
    ]
    return text.number(fmean(sums)) if sums else "–"


def _against(ratio: Ratio | None, devices: int, way: str) -> str:
    if ratio is None:
        return "–"
    whole = 1 if way == "each" else devices
    words = text.percent(ratio.estimate / whole)
    if ratio.interval is None:
        return f"{words}\nno interval"
    low, high = ratio.interval.low / whole, ratio.interval.high / whole
    return f"{words}\n{text.percent(low)} to {text.percent(high)}"


def memory_words(trials: Sequence[Trial]) -> str:
    """The highest peak of each device over the runs: 'device 0: 4.1 GiB, others up to 3.2 GiB'."""
    peaks: dict[int, int] = {}
    for ranks in _ranks(trials):
        for rank in ranks:
            peak = _peak(rank.memory)
            if peak is not None:
                peaks[rank.rank] = max(peak, peaks.get(rank.rank, 0))
    others = [peak for rank, peak in peaks.items() if rank]
    if 0 not in peaks or not others:
        return "–"
    return f"device 0: {text.gibibytes(peaks[0])}\nothers up to {text.gibibytes(max(others))}"


def load_words(trials: Sequence[Trial]) -> str:
    """Device 0 over the median of the others: memory, forward pass, and share of the time at work."""
    words = []
    for name, pairs in (
        ("memory", [_first_and_others([_peak(r.memory) for r in ranks]) for ranks in _ranks(trials)]),
        ("forward pass", [_first_and_others([r.forward_seconds for r in ranks]) for ranks in _ranks(trials)]),
        (AT_WORK, [_first_and_others(list(busy_shares(trial.record))) for trial in trials]),
    ):
        shares = [first / others for pair in pairs if pair for first, others in [pair] if others]
        if shares:
            words.append(f"{name} {text.times(median(shares))} ×")
    return "\n".join(words) or "–"


def _first_and_others(values: Sequence[float | None]) -> tuple[float, float] | None:
    others = [value for value in values[1:] if value is not None]
    if not values or values[0] is None or not others:
        return None
    return values[0], median(others)


def _peak(memory: Memory) -> int | None:
    return memory.allocated_peak_bytes or memory.process_peak_bytes


def _ranks(trials: Sequence[Trial]) -> list[tuple[Rank, ...]]:
    measured = [trial.record.measurement for trial in trials if trial.verdict != "invalid"]
    return [measurement.ranks for measurement in measured if measurement is not None and measurement.ranks]
