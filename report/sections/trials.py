"""Each trial by itself: its verdict with its causes, and what it and its devices did over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.record import CardTelemetry, Telemetry, TraceStats
from report import strips, text
from report.comparisons.groups import ComparisonGroup, Entry
from report.sections import names
from report.sections.view import Panel, Table
from report.strips import Strip
from report.trials.trial import Trial

MOST_LETTERS = 900_000
"""Of all traces on one page, so that a comparison of four cards stays below 3 MB."""

GIB = 2**30
Write = Callable[[float], str]


def panels(groups: Sequence[ComparisonGroup], most: int = MOST_LETTERS) -> dict[str, Panel]:
    """A drawing for each trial by its path: of all, or of each line its doubtful ones and its first ones.

    The lines take turns, each with its trials with causes first, until the drawings have `most` letters.
    """
    lines = [(group, entry) for group in groups for entry in group.entries]
    queues = [
        sorted(line.cell.trials, key=lambda trial: (not trial.causes, trial.repeat)) for _, line in lines
    ]
    found: dict[str, Panel] = {}
    left = most
    for turn in range(max(map(len, queues), default=0)):
        for (group, line), queue in zip(lines, queues, strict=True):
            if turn < len(queue) and left > 0:
                panel = _panel(group, line, queue[turn], f"t-{len(found) + 1}")
                found[queue[turn].path] = panel
                left -= len(panel.drawing)
    return found


def _panel(group: ComparisonGroup, line: Entry, trial: Trial, name: str) -> Panel:
    title = f"{names.label(line.cell, group)}, repeat {trial.repeat}"
    where = "" if line.own else f" · {text.clean(trial.machine_label, 26)}"
    unit = f"block {trial.record.block} · {trial.verdict}{where}"
    timeline = trace(trial)
    ranges = [f"{strip.name} {strip.low} to {strip.high}" for strip in timeline.strips]
    alt = "; ".join([f"step time {timeline.said}", *ranges])
    drawing = strips.draw(name, title, alt, timeline)
    card = text.unit_name(trial.card, trial.machine_label)
    return Panel(name, title, unit, drawing, alt, card=card, precision=trial.key.precision)


def trace(trial: Trial) -> strips.Trial:
    """What is drawn of a trial, from its raw step times and its telemetry."""
    measured, telemetry = trial.record.measurement, trial.record.telemetry
    assert measured is not None and trial.summary is not None
    series = measured.step_us
    each = series.steps_per_value
    seconds = tuple(value / 1e6 / each for value in series.values())
    steady = trial.summary.steady
    steps = strips.Steps(seconds, each, steady.first_step, steady.changes)
    cut = f", {steady.first_step:,} steps cut" if steady.first_step else ""
    said = f"median {text.milliseconds(trial.summary.step_seconds_median)}, {steady.kind}{cut}"
    scale = measured.precision.loss_scale
    history = scale.history if scale else ()
    if telemetry is None:
        return strips.Trial(steps, said, scales=history)
    times = tuple(value or 0.0 for value in telemetry.times.values())
    found = tuple(_strips(telemetry)) if times else ()
    return strips.Trial(steps, said, times, telemetry.windows, found, history)


def _strips(telemetry: Telemetry) -> list[Strip]:
    found: list[Strip | None] = []
    several = len(telemetry.cards) > 1
    for card in telemetry.cards[:8]:
        found += _card(card, f"card {card.index} " if several else "")
    cpu = telemetry.cpu
    found.append(_strip("processor at work", cpu.utilization_percent, _percent, (0.0, 100.0)))
    if not telemetry.cards:
        found += [
            _strip("processor clock", cpu.mhz, _mhz),
            _strip("processor temperature", cpu.temperature_c, _celsius),
        ]
    found.append(_strip("host memory", cpu.memory_used_bytes, _gib, (0.0, None)))
    return [one for one in found if one is not None]


def _card(card: CardTelemetry, before: str) -> list[Strip | None]:
    return [
        _strip(f"{before}clock", card.sm_mhz, _mhz),
        _strip(f"{before}temperature", card.temperature_c, _celsius),
        _strip(f"{before}power", card.power_watts, _watts, (0.0, None)),
        _strip(f"{before}at work", card.utilization_percent, _percent, (0.0, 100.0)),
        _strip(f"{before}memory", card.memory_used_bytes, _gib, (0.0, None)),
    ]


def _strip(
    name: str, spread: TraceStats | None, write: Write, ends: tuple[float | None, float | None] = (None, None)
) -> Strip | None:
    """A strip from its least to its most value, or between the ends that its quantity has."""
    if spread is None:
        return None
    values = tuple(spread.mean.values())
    known = [value for value in values if value is not None]
    if not known:
        return None
    low, high = min(known), max(known)
    floor = low if ends[0] is None else ends[0]
    ceiling = max(high if ends[1] is None else ends[1], floor + 1e-9)
    return Strip(name, values, write(low), write(high), floor, ceiling)


def _percent(value: float) -> str:
    return f"{value:.0f} %"


def _mhz(value: float) -> str:
    return f"{value:,.0f} MHz"


def _celsius(value: float) -> str:
    return f"{value:.0f} °C"


def _watts(value: float) -> str:
    return f"{value:,.0f} W"


def _gib(value: float) -> str:
    return f"{value / GIB:.1f} GiB"


def table(group: ComparisonGroup) -> Table:
    """Every trial of a group, those that were refused among them, with what speaks against it."""
    rows, keys = [], []
    for entry in group.entries:
        for trial in entry.cell.trials:
            rows.append(_row(trial, names.label(entry.cell, group), len(entry.cell.trials) > 1))
            keys.append((text.unit_name(trial.card, trial.machine_label), trial.key.precision))
    columns = ("Trial", "Verdict", "Total", _rate(group), "Steady", "Setup", "Before it began", "Because")
    caption = (
        "Every trial. Invalid ones take no part in any mean, nor do unproven ones where most of their line "
        "are proven; unproven ones are never ranked."
    )
    return Table(caption, columns, tuple(rows), tuple(keys))


def _rate(group: ComparisonGroup) -> str:
    return f"{group.entries[0].cell.trials[0].sample_unit.capitalize()}s / s"


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
    found = trial.summary
    assert found is not None
    ends = [text.milliseconds(seconds) for seconds in (found.step_seconds_p5, found.step_seconds_p95)]
    return f"step {text.milliseconds(found.step_seconds_median)}, 90% {ends[0]} to {ends[1]}"


def setup(trial: Trial) -> str:
    """Seconds before the first measured step, which are in no other figure, and their parts."""
    measured = trial.record.measurement
    phases = measured.phases if measured else ()
    if not phases:
        return "not told"
    parts = ", ".join(f"{text.clean(one.name, 20).replace('_', ' ')} {one.seconds:.1f}" for one in phases)
    return f"{sum(one.seconds for one in phases):.1f} s\n{parts}"


def before(trial: Trial) -> str:
    """What else the machine was doing, read before the trial so that it does not accuse itself."""
    load, cpus = trial.record.load, trial.record.machine.cpu.usable
    said = []
    if load.busy_cpus is not None:
        said.append(f"{load.busy_cpus:.1f} CPUs busy" + (f" of {cpus:g}" if cpus else ""))
    elif load.load_average_1min is not None:
        said.append(f"load {load.load_average_1min:.1f}")
    if load.other_gpu_processes is not None:
        count = load.other_gpu_processes
        said.append(
            f"{text.count(count, 'other process', 'other processes')} on the device"
            if count
            else "device free"
        )
    elif trial.environment.device != "cpu":
        said.append(f"others on the device unknown: {text.clean(load.unknown_because or 'not read', 60)}")
    return "\n".join(said) or "not read"
