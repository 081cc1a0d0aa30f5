"""What differs between two sessions on the same units: their settings, their software, and how they ran."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from statistics import fmean

from harness.record import Machine, Record, differing_fields
from harness.summary.device_checks import mean_in_windows, used_cards
from report.buying.machine import Difference, difference, differs, not_as_ordered

Reading = Callable[[Record], float | None]


def changes(before: Sequence[Record], now: Sequence[Record]) -> tuple[Difference, ...]:
    """Everything that is not as it was, each once; what either side does not know is no difference."""
    settings = (
        difference(field, was, is_now)
        for field, was, is_now in differing_fields(_used(before[0]), _used(now[0]))
        if None not in (was, is_now) and (field.endswith(" driver") or differs(field, was, is_now))
    )
    on_one_machine = [record.model_copy(update={"machine": before[0].machine}) for record in now]
    found = (*settings, *not_as_ordered(before, on_one_machine), *_read(before, now))
    return tuple(each for each in found if each.before != each.now)


def _used(record: Record) -> Machine:
    """The machine with those of its cards that the trial used; a link at rest says nothing."""
    cards = tuple(card.model_copy(update={"pcie_generation": None}) for card in used_cards(record))
    return record.machine.model_copy(update={"gpus": cards, "links": ()})


def _read(before: Sequence[Record], now: Sequence[Record]) -> Iterator[Difference]:
    """What was read while trials ran, where their means differ by more than noise."""
    for what, unit, relative, absolute, of in _READINGS:
        sides = [[value for record in side if (value := of(record)) is not None] for side in (before, now)]
        if all(sides):
            was, is_now = map(fmean, sides)
            if not math.isclose(was, is_now, rel_tol=relative, abs_tol=absolute):
                yield Difference(what, f"{was:.4g}{unit}", f"{is_now:.4g}{unit}")


def _mean(of_cards: str, of_cpu: str = "") -> Reading:
    """Within the measured windows, of all cards or of the processor."""

    def read(record: Record) -> float | None:
        seen = record.telemetry
        if seen is None:
            return None
        on_cpu = record.trial.asked.device == "cpu"
        traces = (
            [getattr(seen.cpu, of_cpu, None)] if on_cpu else [getattr(card, of_cards) for card in seen.cards]
        )
        means = [mean for trace in traces if (mean := mean_in_windows(trace, seen)) is not None]
        return fmean(means) if means else None

    return read


def _count(name: str) -> Reading:
    """Over all cards of a trial."""

    def read(record: Record) -> float | None:
        told = [getattr(card, name) for card in (record.telemetry.cards if record.telemetry else ())]
        return None if None in told or not told else sum(told)

    return read


_READINGS: tuple[tuple[str, str, float, float, Reading], ...] = (
    ("clock under load", " MHz", 0.01, 0.0, _mean("sm_mhz", "mhz")),
    ("temperature under load", " °C", 0.0, 3.0, _mean("temperature_c", "temperature_c")),
    ("power under load", " W", 0.03, 0.0, _mean("power_watts")),
    ("corrected memory errors a trial", "", 0.0, 0.0, _count("ecc_corrected")),
    ("uncorrected memory errors a trial", "", 0.0, 0.0, _count("ecc_uncorrected")),
)
"""A quantity, its unit, and by which share or how many units two sessions differ before it is told."""
