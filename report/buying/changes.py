"""What differs between two sessions on the same units: their settings, their software, and how they ran."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from harness.record import CardTelemetry, CpuTelemetry, Machine, Record, TraceStats, differing_fields
from harness.summary.device_checks import mean_in_windows, used_cards
from report.buying.machine import Difference, difference, differs, not_as_ordered

MOMENTARY = "pcie_generation"
"""A link rests at a lower one."""

Watched = CardTelemetry | CpuTelemetry


@dataclass(frozen=True, slots=True)
class _Reading:
    """A quantity that was read while trials ran, and by how much two sessions differ before it is told."""

    what: str
    unit: str
    of: Callable[[Record], float | None]
    relative: float = 0.0
    absolute: float = 0.0
    summed: bool = False
    """Whether a session's trials add up to it; else it is their mean."""


def changes(before: Sequence[Record], now: Sequence[Record]) -> tuple[Difference, ...]:
    """Everything that is not as it was, each once; what either side does not know is no difference."""
    return (*_settings(before[0], now[0]), *_software(before, now), *_readings(before, now))


def _settings(before: Record, now: Record) -> tuple[Difference, ...]:
    """Of the machine and of those of its cards that the trials used."""
    return tuple(
        difference(field, was, is_now)
        for field, was, is_now in differing_fields(_used(before), _used(now))
        if None not in (was, is_now)
        and not field.endswith(MOMENTARY)
        and (field.endswith(" driver") or differs(field, was, is_now))
    )


def _used(record: Record) -> Machine:
    return record.machine.model_copy(update={"gpus": used_cards(record), "links": ()})


def _software(before: Sequence[Record], now: Sequence[Record]) -> tuple[Difference, ...]:
    """As an order's, on one machine."""
    same = [record.model_copy(update={"machine": before[0].machine}) for record in now]
    return not_as_ordered(before, same)


def _readings(before: Sequence[Record], now: Sequence[Record]) -> tuple[Difference, ...]:
    found = []
    for reading in _READINGS:
        was, is_now = _over(reading, before), _over(reading, now)
        if was is None or is_now is None:
            continue
        if not math.isclose(was, is_now, rel_tol=reading.relative, abs_tol=reading.absolute):
            found.append(Difference(reading.what, *(_shown(value, reading.unit) for value in (was, is_now))))
    return tuple(found)


def _over(reading: _Reading, records: Sequence[Record]) -> float | None:
    values = [value for record in records if (value := reading.of(record)) is not None]
    return (sum(values) if reading.summed else fmean(values)) if values else None


def _shown(value: float, unit: str) -> str:
    return (f"{value:.3g}" if value < 1000 else f"{value:,.0f}") + unit


def _watched(record: Record) -> Sequence[Watched]:
    """The cards of the trial; of one on a processor, that."""
    if record.telemetry is None:
        return ()
    return (record.telemetry.cpu,) if record.trial.asked.device == "cpu" else record.telemetry.cards


def _mean(of_cards: str, of_cpu: str = "") -> Callable[[Record], float | None]:
    """The mean within the measured windows, of all cards or of the processor."""

    def read(record: Record) -> float | None:
        name = of_cpu if record.trial.asked.device == "cpu" else of_cards
        traces: list[TraceStats | None] = [getattr(watched, name, None) for watched in _watched(record)]
        means = [mean for trace in traces if (mean := mean_in_windows(trace, record.telemetry)) is not None]
        return fmean(means) if means else None

    return read


def _count(of: Callable[[CardTelemetry], float | None]) -> Callable[[Record], float | None]:
    """What all cards of a trial add up to."""

    def read(record: Record) -> float | None:
        cards = [card for card in _watched(record) if isinstance(card, CardTelemetry)]
        told = [value for card in cards if (value := of(card)) is not None]
        return sum(told) if told else None

    return read


def _slowed_by_heat(record: Record) -> float | None:
    """The most that a card was, in percent of its time."""
    shares = [
        100 * share
        for card in _watched(record)
        if isinstance(card, CardTelemetry)
        for name, share in (*card.limited_share.items(), *card.reasons_share.items())
        if "thermal" in name
    ]
    return max(shares, default=None)


_READINGS = (
    _Reading("clock under load", " MHz", _mean("sm_mhz", "mhz"), relative=0.01),
    _Reading("memory clock under load", " MHz", _mean("memory_mhz"), relative=0.01),
    _Reading("temperature under load", " °C", _mean("temperature_c", "temperature_c"), absolute=3.0),
    _Reading("power under load", " W", _mean("power_watts"), relative=0.03),
    _Reading("time slowed by heat", " %", _slowed_by_heat, absolute=1.0),
    _Reading("corrected memory errors", "", _count(lambda card: card.ecc_corrected), summed=True),
    _Reading("uncorrected memory errors", "", _count(lambda card: card.ecc_uncorrected), summed=True),
    _Reading(
        "faults that the driver reported",
        "",
        _count(lambda card: None if card.xids is None else len(card.xids)),
        summed=True,
    ),
)
