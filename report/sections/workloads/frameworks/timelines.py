"""What frameworks made of their devices over time: each one's timeline, and what its first GPU did of all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.record import CardTelemetry, Telemetry, TraceStats
from harness.summary.device_checks import busy_shares
from report import text
from report.charts.utilization import DeviceUse, Phase, Trace, UseRow, UseRows
from report.comparisons.cells import Cell
from report.sections.view import Panel
from report.sections.workloads.frameworks.lines import Line
from report.trials.trial import Trial

GIB = 2**30
MOST_ROWS, MOST_DEVICES, MOST_PHASES = 8, 8, 60
PROCESSOR = "processor"
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")
PHASES = {
    "import": ("setup", "setup"),
    "launcher": ("setup", "setup"),
    "device": ("setup", "setup"),
    "model": ("setup", "setup"),
    "data": ("setup", "setup"),
    "first_step": ("compiling", "first step: compiles, autotunes"),
    "compile": ("compiling", "first step: compiles, autotunes"),
    "valid": ("validation", "validation"),
    "checkpoint": ("checkpoint", "checkpoint"),
    "test": ("test", "test"),
}
"""Kind and words of what a workload calls a phase; any other is part of the setup under its own name."""


def panel(lines: Sequence[Line], name: str, heading: str) -> Panel | None:
    """A row for each line whose devices were watched, over the same seconds; null where none was."""
    rows = [row for line in lines if (row := _row(line)) is not None][:MOST_ROWS]
    if not rows:
        return None
    busy = "how busy the processor was" if _on_processor(rows) else "when each GPU had work to do"
    title = f"What each framework makes of its devices: {heading}"
    unit = f"{busy}, and the memory taken, in one trial of each framework"
    return Panel(name, title, unit, UseRows(tuple(rows)), "; ".join(_described(row) for row in rows))


def _on_processor(rows: Sequence[UseRow]) -> bool:
    return all(device.name == PROCESSOR for row in rows for device in row.devices)


def share_words(cell: Cell) -> str | None:
    """'GPU 0 did 31 % of the work of four'; null for one device, and where a driver did not tell."""
    trial = _drawn(cell)
    shares = [share for share in busy_shares(trial.record) if share is not None]
    telemetry = trial.record.telemetry
    if telemetry is None or not 2 <= len(shares) == len(telemetry.cards) or not sum(shares):
        return None
    number = NUMBERS[len(shares)] if len(shares) < len(NUMBERS) else str(len(shares))
    return f"GPU 0 did {text.percent(shares[0] / sum(shares))} of the work of {number}"


def _drawn(cell: Cell) -> Trial:
    """Of its trials the first that nothing speaks against."""
    return min(cell.trials, key=lambda trial: (bool(trial.causes), trial.repeat))


def _row(line: Line) -> UseRow | None:
    trial = _drawn(line.cell)
    telemetry = trial.record.telemetry
    if telemetry is None:
        return None
    devices = tuple(_devices(telemetry))
    times = tuple(value or 0.0 for value in telemetry.times.values())
    if not devices or not times:
        return None
    share = share_words(line.cell)
    return UseRow(
        line.name,
        share or "",
        times,
        devices,
        tuple(_phases(trial, telemetry)),
        text.unit_name(trial.card, trial.machine_label),
        trial.key.precision,
    )


def _devices(telemetry: Telemetry) -> Iterator[DeviceUse]:
    """The GPUs in the trial's order, or the processor where it had none; only what something was read of."""
    of: list[tuple[str, TraceStats | None, TraceStats | None]] = [
        (f"GPU {place}", card.utilization_percent, card.memory_used_bytes)
        for place, card in enumerate(_watched(telemetry))
    ]
    if telemetry.source == "none":
        of = [(PROCESSOR, telemetry.cpu.utilization_percent, telemetry.cpu.memory_used_bytes)]
    for name, busy, memory in of:
        if busy is not None:
            yield DeviceUse(name, _values(busy, 1), _values(memory, GIB))


def _watched(telemetry: Telemetry) -> tuple[CardTelemetry, ...]:
    return telemetry.cards[:MOST_DEVICES]


def _values(stats: TraceStats | None, unit: int) -> Trace:
    values = stats.mean.values() if stats else ()
    return tuple(None if value is None else value / unit for value in values)


def _phases(trial: Trial, telemetry: Telemetry) -> Iterator[Phase]:
    """In their order; phases of one name that follow each other are one."""
    found = [Phase(*_named(phase.name), phase.begin, phase.end) for phase in telemetry.phases]
    found += [Phase("training", _training(trial), *window) for window in telemetry.windows]
    before: Phase | None = None
    for phase in sorted(found, key=lambda phase: (phase.begin, phase.end))[:MOST_PHASES]:
        if before is not None and before.name == phase.name:
            before = Phase(before.kind, before.name, before.begin, max(before.end, phase.end))
            continue
        if before is not None:
            yield before
        before = phase
    if before is not None:
        yield before


def _named(name: str) -> tuple[str, str]:
    return PHASES.get(name, ("setup", text.clean(name.replace("_", " "), 30)))


def _training(trial: Trial) -> str:
    source = trial.key.data_source
    return "training" if source == "real" else f"training, {source} data"


def _described(row: UseRow) -> str:
    """'PyTorch: GPU 0 did …; training, synthetic data 12 to 40 s'"""
    phases = ", ".join(f"{phase.name} {phase.begin:.0f} to {phase.end:.0f} s" for phase in row.phases)
    return f"{row.label}: {' '.join((row.note, phases)).strip() or 'no phase is marked'}"
