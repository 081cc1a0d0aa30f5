"""Which devices a trial used, what they are called, and how busy they were."""

from __future__ import annotations

import re
from statistics import fmean

from harness.device_kinds import BY_VENDOR
from harness.record import (
    Gpu,
    Record,
    Telemetry,
    TraceStats,
)
from harness.record.published.cards import is_shared_name

BUSY_LOOKS_BACK_SECONDS = 1.0
"""NVML's utilisation is of the past sample period, up to this long."""


def used_cards(record: Record) -> tuple[Gpu, ...]:
    """Return the machine's cards that the trial was given, its first one first.

    Where a record does not say which, all are returned if the trial asked for that many.
    """
    able = cards_of_kind(record)
    given = tuple(gpu for index in record.cards_given for gpu in able if gpu.index == index)
    return given or (able if len(able) <= record.trial.asked.variant.gpus else ())


def cards_of_kind(record: Record) -> tuple[Gpu, ...]:
    """Return the machine's cards of the kind that the trial asks for."""
    return tuple(gpu for gpu in record.machine.gpus if BY_VENDOR.get(gpu.vendor) == record.trial.asked.device)


def device_name(record: Record) -> str:
    """Return the device as the framework saw it; where nothing was measured, the one that was given.

    A name that several models share is replaced by the card's own.
    "unknown device" where that was not kept and the cards that it may have been are of several models.
    """
    if record.measurement is not None:
        name = record.measurement.device.name
        if record.measurement.device.kind == "cpu":
            return _processor_name(name)
        return next((card.name for card in used_cards(record)), name) if is_shared_name(name) else name
    if record.trial.asked.device == "cpu":
        return _processor_name(record.machine.cpu.model or "CPU")
    cards = used_cards(record)[: 1 if record.cards_given else None] or cards_of_kind(record)
    names = {card.name for card in cards}
    return names.pop() if len(names) == 1 else "unknown device"


def device_memory_bytes(record: Record) -> int | None:
    """Return one device's memory as the framework saw it; where nothing was measured, as its driver does."""
    if record.trial.asked.device == "cpu":
        return None
    reported = record.measurement.device.memory_bytes if record.measurement else None
    return reported or next((card.memory_bytes for card in used_cards(record)), None)


def mean_in_windows(
    stats: TraceStats | None, telemetry: Telemetry | None, looks_back_seconds: float = 0.0
) -> float | None:
    """Return the mean of one quantity within the measured windows, in its unit; null where no sample has it.

    A sample that looks back so far counts where all of that time is inside a window.
    """
    if stats is None or telemetry is None:
        return None
    points = zip(telemetry.times.values(), stats.mean.values(), strict=False)
    windows = telemetry.windows or ((0.0, telemetry.seconds),)
    inside = [
        value
        for seconds, value in points
        if seconds is not None
        and value is not None
        and any(begin + looks_back_seconds <= seconds <= end for begin, end in windows)
    ]
    return fmean(inside) if inside else None


def busy_share(record: Record) -> float | None:
    """Return the share of the measured time in which the trial's least busy card worked, by its driver."""
    return min((mean / 100 for mean in busy_percents(record) if mean is not None), default=None)


def busy_percents(record: Record) -> tuple[float | None, ...]:
    """Return the percentage of the measured time in which each of the trial's cards worked, by its driver."""
    cards = record.telemetry.cards if record.telemetry else ()
    return tuple(
        mean_in_windows(card.utilization_percent, record.telemetry, BUSY_LOOKS_BACK_SECONDS) for card in cards
    )


def _processor_name(model: str) -> str:
    """Return a processor's name as its maker writes it; whatever else its firmware says is quoted as that."""
    return model if _PROCESSOR.fullmatch(model) else f"processor, called {model[:60]} by its firmware"


_PROCESSOR = re.compile(
    r"(?!.*(?i:geforce|\b[rg]tx|quadro|tesla|instinct|\barc\b|\bmi\d|nvidia (?!grace\b)|\brx \d))"
    r"(?:(?:\d+th Gen |Genuine )?Intel\b|AMD (?!Radeon)|NVIDIA Grace|A[Rr][Mm]|Apple M|Ampere|AWS|Neoverse"
    r"|Cortex|Kunpeng|POWER|(?=.*\b(?:CPU|[Pp]rocessor)\b)|aarch64$|x86_64$)[ -~]*"
)
"""How makers call processors, and no card."""
