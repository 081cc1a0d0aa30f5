"""Each trial by itself: its verdict with its causes, and what it and its devices did over time."""

from __future__ import annotations

from collections.abc import Sequence

from harness.record import CardTelemetry, Telemetry, TraceStats
from report import text
from report.charts.trial import Quantity, StepTimes, Timelines, TrialTimeline
from report.comparisons.groups import ComparisonGroup, Entry
from report.sections import names
from report.sections.view import Panel, Table
from report.trials.trial import Trial

MOST_LINES, MOST_TRIALS = 12, 10
"""Drawn on one page, and of one line."""

GIB = 2**30


def panels(groups: Sequence[ComparisonGroup], most: int = MOST_LINES) -> dict[str, Panel]:
    """The chart of its line by the path of each trial that is drawn; doubtful lines and trials go first."""
    lines = [(group, entry) for group in groups for entry in group.entries]
    sure = sorted(lines, key=lambda pair: not any(trial.causes for trial in pair[1].cell.trials))
    chosen = {id(line) for _, line in sure[:most]}
    by_path: dict[str, Panel] = {}
    for number, (group, line) in enumerate((pair for pair in lines if id(pair[1]) in chosen), 1):
        rows = sorted(line.cell.trials, key=lambda row: (not row.causes, row.repeat))[:MOST_TRIALS]
        panel = _panel(group, line, rows, f"t-{number}")
        by_path |= {row.path: panel for row in rows}
    return by_path


def _panel(group: ComparisonGroup, line: Entry, trials: Sequence[Trial], name: str) -> Panel:
    title = names.label(line.cell, group)
    unit = text.count(len(trials), "trial") + (
        "" if line.own else f" · {text.clean(trials[0].machine_label, 26)}"
    )
    dark = ", ".join(f"repeat {trial.repeat} ({trial.verdict})" for trial in trials if trial.causes)
    unit += f"; dark: {dark}" if dark else ""
    chart = Timelines(tuple(map(timeline, trials)))
    return Panel(name, title, unit, chart, "; ".join(chart.extents()))


def timeline(trial: Trial) -> TrialTimeline:
    """What is drawn of a trial, from its raw step times and its telemetry."""
    measured, telemetry = trial.record.measurement, trial.record.telemetry
    assert measured is not None and trial.summary is not None
    series, steady = measured.step_us, trial.summary.steady
    each = series.steps_per_value
    seconds = tuple(value / 1e6 / each for value in series.values())
    steps = StepTimes(seconds, each, steady.first_step, steady.changes)
    scale = measured.precision.loss_scale
    history = tuple(scale.history) if scale else ()
    if telemetry is None or not telemetry.times.values():
        return TrialTimeline(bool(trial.causes), steps, loss_scales=history)
    times = tuple(value or 0.0 for value in telemetry.times.values())
    return TrialTimeline(
        bool(trial.causes), steps, times, telemetry.windows, tuple(_quantities(telemetry)), history
    )


def _quantities(telemetry: Telemetry) -> list[Quantity]:
    quantities: list[Quantity | None] = []
    several = len(telemetry.cards) > 1
    for card in telemetry.cards[:8]:
        quantities += _card(card, f"card {card.index} " if several else "")
    cpu = telemetry.cpu
    quantities.append(_quantity("processor at work", "%", cpu.utilization_percent, (0.0, 100.0)))
    if not telemetry.cards:
        quantities += [
            _quantity("processor clock", "MHz", cpu.mhz),
            _quantity("processor temperature", "°C", cpu.temperature_c),
        ]
    quantities.append(_quantity("host memory", "GiB", cpu.memory_used_bytes, (0.0, None)))
    return [quantity for quantity in quantities if quantity is not None]


def _card(card: CardTelemetry, before: str) -> list[Quantity | None]:
    return [
        _quantity(f"{before}clock", "MHz", card.sm_mhz),
        _quantity(f"{before}temperature", "°C", card.temperature_c),
        _quantity(f"{before}power", "W", card.power_watts, (0.0, None)),
        _quantity(f"{before}at work", "%", card.utilization_percent, (0.0, 100.0)),
        _quantity(f"{before}memory", "GiB", card.memory_used_bytes, (0.0, None)),
    ]


def _quantity(
    name: str, unit: str, spread: TraceStats | None, ends: tuple[float | None, float | None] = (None, None)
) -> Quantity | None:
    """What was read, bytes as GiB, on an axis between the ends that it has; null where nothing was."""
    values = spread.mean.values() if spread is not None else ()
    if all(value is None for value in values):
        return None
    size = GIB if unit == "GiB" else 1
    return Quantity(name, unit, tuple(None if value is None else value / size for value in values), *ends)


def table(group: ComparisonGroup) -> Table:
    """Every trial of a group, those that were refused among them, with what speaks against it."""
    rows, keys = [], []
    for entry in group.entries:
        for trial in entry.cell.trials:
            rows.append(_row(trial, names.label(entry.cell, group), len(entry.cell.trials) > 1))
            keys.append((text.unit_name(trial.card, trial.machine_label), trial.key.precision))
    rate = f"{group.entries[0].cell.trials[0].sample_unit.capitalize()}s / s"
    columns = ("Trial", "Verdict", "Total", rate, "Steady", "Setup", "Before it began", "Because")
    caption = (
        "Every trial. Invalid ones take no part in any mean, nor do unproven ones where most of their line "
        "are proven; unproven ones are never ranked."
    )
    return Table(caption, columns, tuple(rows), tuple(keys))


def _row(trial: Trial, label: str, several: bool) -> tuple[str, ...]:
    summary = trial.summary
    assert summary is not None
    attempt = f", attempt {trial.record.attempt}" if trial.record.attempt > 1 else ""
    return (
        f"{label}\nrepeat {trial.repeat}, block {trial.record.block}{attempt}",
        trial.verdict,
        text.seconds(trial.protocol_seconds),
        text.number(trial.samples_per_second),
        f"{summary.steady.kind}\n{steps(trial)}",
        setup(trial),
        before(trial),
        text.clean("; ".join((*trial.causes, *summary.notes)) or "–", 300),
    )


def steps(trial: Trial) -> str:
    """A steady step's median, and what nine of ten lie between."""
    summary = trial.summary
    assert summary is not None
    ends = [text.milliseconds(seconds) for seconds in (summary.step_seconds_p5, summary.step_seconds_p95)]
    return f"step {text.milliseconds(summary.step_seconds_median)}, 90% {ends[0]} to {ends[1]}"


def setup(trial: Trial) -> str:
    """Seconds before the first measured step, which are in no other figure, and their parts."""
    measured = trial.record.measurement
    phases = measured.phases if measured else ()
    if not phases:
        return "not told"
    parts = ", ".join(
        f"{text.clean(phase.name, 20).replace('_', ' ')} {phase.seconds:.1f}" for phase in phases
    )
    return f"{sum(phase.seconds for phase in phases):.1f} s\n{parts}"


def _asked(trial: Trial) -> str:
    """Of which cards the count is: before a trial those of the machine are asked together."""
    return "the device" if len(trial.record.machine.gpus) < 2 else "the machine's cards"


def before(trial: Trial) -> str:
    """What else the machine was doing, read before the trial so that it does not accuse itself."""
    load, cpus = trial.record.load, trial.record.machine.cpu.usable
    words = []
    if load.busy_cpus is not None:
        words.append(f"{load.busy_cpus:.1f} CPUs busy" + (f" of {cpus:g}" if cpus else ""))
    elif load.load_average_1min is not None:
        words.append(f"load {load.load_average_1min:.1f}")
    if load.other_gpu_processes is not None:
        count = load.other_gpu_processes
        words.append(
            f"{text.count(count, 'other process', 'other processes')} on {_asked(trial)}"
            if count
            else "device free"
        )
    elif trial.environment.device != "cpu":
        words.append(f"others on the device unknown: {text.clean(load.unknown_because or 'not read', 60)}")
    return "\n".join(words) or "not read"
