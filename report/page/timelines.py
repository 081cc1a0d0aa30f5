"""What the trials of one line did over time: their steps, and what was read of their devices."""

from __future__ import annotations

from harness.record import Telemetry, TraceStats
from report.charts.trial import StepTimes, TelemetryTrace, Timelines, TrialTimeline
from report.compare.cells import Cell
from report.page.filters import GIB
from report.page.values import Picture
from report.trials.trial import TrialResult

MOST_TRIALS, MOST_CARDS = 10, 8


def timelines(cell: Cell, name: str, slot: int) -> Picture | None:
    """The doubtful trials of a line first; null where none has its steps."""
    trials = [trial for trial in cell.trials if trial.record.measurement and trial.summary]
    chosen = sorted(trials, key=lambda trial: (not trial.causes, trial.repeat))[:MOST_TRIALS]
    if not chosen:
        return None
    chart = Timelines(tuple(map(timeline, chosen)), slot)
    return Picture(name, chart, "; ".join(chart.extents()))


def timeline(trial: TrialResult) -> TrialTimeline:
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


def _quantities(telemetry: Telemetry) -> list[TelemetryTrace]:
    quantities: list[TelemetryTrace | None] = []
    several = len(telemetry.cards) > 1
    for card in telemetry.cards[:MOST_CARDS]:
        before = f"card {card.index} " if several else ""
        quantities += [
            _quantity(f"{before}clock", "MHz", card.sm_mhz),
            _quantity(f"{before}temperature", "°C", card.temperature_c),
            _quantity(f"{before}power", "W", card.power_watts, (0.0, None)),
            _quantity(f"{before}at work", "%", card.utilization_percent, (0.0, 100.0)),
            _quantity(f"{before}memory", "GiB", card.memory_used_bytes, (0.0, None)),
        ]
    cpu = telemetry.cpu
    quantities.append(_quantity("processor at work", "%", cpu.utilization_percent, (0.0, 100.0)))
    if not telemetry.cards:
        quantities += [
            _quantity("processor clock", "MHz", cpu.mhz),
            _quantity("processor temperature", "°C", cpu.temperature_c),
        ]
    quantities.append(_quantity("host memory", "GiB", cpu.memory_used_bytes, (0.0, None)))
    return [quantity for quantity in quantities if quantity is not None]


def _quantity(
    name: str, unit: str, spread: TraceStats | None, ends: tuple[float | None, float | None] = (None, None)
) -> TelemetryTrace | None:
    """What was read, bytes as GiB, on an axis between the ends that it has; null where nothing was."""
    values = spread.mean.values() if spread is not None else ()
    if all(value is None for value in values):
        return None
    size = GIB if unit == "GiB" else 1
    return TelemetryTrace(
        name, unit, tuple(None if value is None else value / size for value in values), *ends
    )
