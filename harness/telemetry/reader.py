"""Reads what the telemetry wrote during a trial, and thins it to what a record keeps."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy

from harness.errors import RecordError
from harness.record.events import Span, json_objects
from harness.record.telemetry import (
    CardTelemetry,
    CpuTelemetry,
    Energy,
    OtherProcesses,
    PhaseSpan,
    Telemetry,
    Trace,
    TraceStats,
)
from harness.telemetry.energy import EnergyReadings, Windows, trial_energy

FILE = "telemetry.jsonl"
CUT_SHORT = "cut short"
"""How a telemetry ended that did not come to write its last line."""
PER_MINUTE_ABOVE_SECONDS = 3600.0
VALUES_KEPT = 8000
"""Samples times cards above which a trace is thinned too, for a record stays below 300 kB."""

_SCALES = {
    "sm_mhz": 1.0,
    "memory_mhz": 1.0,
    "mhz": 1.0,
    "temperature_c": 0.1,
    "memory_temperature_c": 0.1,
    "fan_percent": 1.0,
    "power_watts": 0.1,
    "utilization_percent": 0.1,
    "memory_used_bytes": 2.0**20,
    "load": 0.01,
}
_CARD_TRACES, _CPU_TRACES = (
    tuple(name for name in model.model_fields if name in _SCALES) for model in (CardTelemetry, CpuTelemetry)
)

Sample = dict[str, Any]
Segments = Sequence[tuple[float, float]]
"""Begin and end of each measured training segment, in the machine's monotonic seconds."""


def read_telemetry(
    path: Path, segments: Segments = (), items: int | None = None, spans: Sequence[Span] = ()
) -> Telemetry | None:
    """Return the telemetry of one trial, without lines that are cut short; None where nothing was sampled.

    `items` are the training samples of the segments, for the energy of one; `spans` are its other phases.
    Raises RecordError where the lines are not what the telemetry writes.
    """
    lines = list(json_objects(path.read_bytes().splitlines())) if path.is_file() else []
    samples = [line for line in lines[1:] if "t" in line]
    if not samples:
        return None
    try:
        found = _thin_samples(lines[0], samples, lines[-1], segments, items)
        return found.model_copy(update={"phases": _phases(lines[0]["began"], samples[-1]["t"], spans)})
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise RecordError(
            f"{path.name} is not what the telemetry writes ({type(error).__name__})",
            remedy="its trial is recorded without it",
        ) from None


def _thin_samples(
    head: Sample, samples: Sequence[Sample], last: Sample, segments: Segments, items: int | None
) -> Telemetry:
    windows = _windows(head, segments, samples)
    seconds, count = samples[-1]["t"], len(head["cards"])
    missing = last.get("missing", {})
    unwatched = head["source"] != "none" and not count
    cpu = [{"t": sample["t"], **sample["cpu"]} for sample in samples]
    series = [_card_samples(samples, index) for index in range(count)]
    slots = _slots(cpu, seconds, count)
    cards = tuple(
        _card_record(described, one, _slots(one, seconds, count), windows)
        for described, one in zip(head["cards"], series, strict=True)
    )
    return Telemetry(
        source=head["source"],
        interval_seconds=head["interval_seconds"],
        seconds=seconds,
        samples=len(samples),
        seconds_per_value=head["interval_seconds"] if len(slots) == len(samples) else 60.0,
        times=Trace.from_values([fmean(sample["t"] for sample in slot) for slot in slots], 0.01),
        windows=tuple(windows),
        cards=cards,
        cpu=CpuTelemetry(**_traces(slots, _CPU_TRACES)),
        energy=Energy(scope="cards", unknown_because=missing.get("cards", "no card could be identified"))
        if unwatched
        else _energy(series, windows, items),
        others_unknown_because=head.get("others_unknown_because"),
        missing=missing,
        ended=last.get("end", CUT_SHORT),
    )


def _card_samples(samples: Sequence[Sample], index: int) -> list[Sample]:
    """Return what each sample reports about one card, and its time; nothing where the driver was silent."""
    cards: list[list[Sample]] = [(sample.get("cards") or [])[index : index + 1] for sample in samples]
    return [{"t": sample["t"], **dict(*card)} for sample, card in zip(samples, cards, strict=True)]


def _windows(head: Sample, segments: Segments, samples: Sequence[Sample]) -> list[tuple[float, float]]:
    """Return the segments in the telemetry's own seconds; segments outside the sampled time are left out."""
    began, until = head["began"], samples[-1]["t"]
    shifted = [(round(begin - began, 3), round(end - began, 3)) for begin, end in segments]
    return [(begin, end) for begin, end in shifted if end > begin and begin >= -1.0 and end <= until + 1.0]


def _phases(began: float, until: float, spans: Sequence[Span]) -> tuple[PhaseSpan, ...]:
    """Return the spans in the telemetry's own seconds, as far as it was there."""
    shifted = [
        (name, max(begin - began, 0.0), min(end - began, until))
        for name, begin, end in sorted(spans, key=lambda span: span[1])
    ]
    return tuple(
        PhaseSpan(name=name[:40], begin=round(begin, 3), end=round(end, 3))
        for name, begin, end in shifted
        if end > begin
    )


def _slots(samples: Sequence[Sample], seconds: float, cards: int) -> list[list[Sample]]:
    if seconds <= PER_MINUTE_ABOVE_SECONDS and len(samples) * max(cards, 1) <= VALUES_KEPT:
        return [[sample] for sample in samples]
    minutes: dict[int, list[Sample]] = {}
    for sample in samples:
        minutes.setdefault(int(sample["t"] // 60), []).append(sample)
    return list(minutes.values())


def _traces(slots: Sequence[Sequence[Sample]], names: Sequence[str]) -> dict[str, TraceStats | None]:
    return {name: _trace(slots, name) for name in names}


def _trace(slots: Sequence[Sequence[Sample]], name: str) -> TraceStats | None:
    values_by_slot = [_values(slot, name) for slot in slots]
    if not any(values_by_slot):
        return None
    scale = _SCALES[name]
    mean = Trace.from_values([fmean(values) if values else None for values in values_by_slot], scale)
    if all(len(slot) == 1 for slot in slots):
        return TraceStats(mean=mean)
    return TraceStats(
        mean=mean,
        least=Trace.from_values([min(values, default=None) for values in values_by_slot], scale),
        most=Trace.from_values([max(values, default=None) for values in values_by_slot], scale),
    )


def _card_record(
    described: Sample, series: Sequence[Sample], slots: Sequence[Sequence[Sample]], windows: Windows
) -> CardTelemetry:
    inside = _samples_inside(series, windows)
    limits, chosen = _values(series, "power_limit_watts"), _values(series, "power_limit_set_watts")
    return CardTelemetry(
        index=described["index"],
        unit=described.get("unit"),
        name=described.get("name"),
        **_traces(slots, _CARD_TRACES),
        limited_share=_limited_shares(series, windows),
        reasons_share=_reason_shares(inside),
        performance_states=_state_shares(inside),
        others=_other_processes(_samples_around(series, windows)),
        ecc_uncorrected=_rise(series, "ecc_uncorrected"),
        ecc_corrected=_rise(series, "ecc_corrected"),
        xids=next(iter(_values(series[::-1], "xids")), None),
        power_limit_watts=limits[-1] if limits else None,
        power_limit_set_watts=chosen[-1] if chosen else None,
        power_limit_changed=len(set(chosen or limits)) > 1 if limits else None,
        mig_changed=len(set(states)) > 1 if (states := _values(series, "mig")) else None,
        pcie_generation=max(_values(series, "pcie_generation"), default=None),
        pcie_width=max(_values(series, "pcie_width"), default=None),
        start_temperature_c=next(iter(_values(series, "temperature_c")), None),
        energy_joules=None
        if any(_values(series, "mig"))
        else trial_energy([_energy_readings(series)], windows, None).joules,
    )


def _samples_inside(samples: Sequence[Sample], windows: Windows) -> Sequence[Sample]:
    """Return the samples within the windows, none where it is one alone; all without windows."""
    if not windows:
        return samples
    found = [sample for sample in samples if any(begin <= sample["t"] <= end for begin, end in windows)]
    return found if len(found) > 1 else ()


def _samples_around(samples: Sequence[Sample], windows: Windows) -> Sequence[Sample]:
    """Return the samples from the first window to the last and one more on each side; all without windows."""
    if not windows:
        return samples
    begin, end = windows[0][0], windows[-1][1]
    times = [sample["t"] for sample in samples]
    return samples[max(bisect_right(times, begin) - 1, 0) : bisect_left(times, end) + 1]


def _values(cards: Sequence[Sample], name: str) -> list[Any]:
    return [card[name] for card in cards if card.get(name) is not None]


def _rise(cards: Sequence[Sample], name: str) -> int | None:
    values = _values(cards, name)
    return values[-1] - values[0] if values and values[-1] >= values[0] else None


def _limited_shares(samples: Sequence[Sample], windows: Windows) -> dict[str, float]:
    """Return each limit's share of the windows' time, its counter interpolated at their edges."""
    points = [(sample["t"], spent) for sample in samples if (spent := sample.get("limited_seconds"))]
    if len(points) < 2:
        return {}
    times = [at for at, _ in points]
    edges = numpy.clip(windows or [(times[0], times[-1])], times[0], times[-1])
    lasted = float(numpy.diff(edges).sum())
    if lasted <= 0:
        return {}

    def share(name: str) -> float:
        held = numpy.interp(edges, times, [spent[name] for _, spent in points])
        return round(min(max(float(numpy.diff(held).sum()) / lasted, 0.0), 1.0), 6)

    return {name: share(name) for name in points[-1][1] if all(name in spent for _, spent in points)}


def _reason_shares(cards: Sequence[Sample]) -> dict[str, float]:
    reasons = _values(cards, "reasons")
    distinct = dict.fromkeys(name for names in reasons for name in names)
    return {name: round(sum(name in names for names in reasons) / len(reasons), 6) for name in distinct}


def _state_shares(cards: Sequence[Sample]) -> dict[str, float]:
    states = _values(cards, "performance_state")
    return {f"P{state}": round(states.count(state) / len(states), 6) for state in sorted(set(states))}


def _other_processes(cards: Sequence[Sample]) -> OtherProcesses | None:
    others = _values(cards, "others")
    if not others:
        return None
    used, held = _values(others, "utilization_percent"), [other["memory_bytes"] for other in others]
    return OtherProcesses(
        utilization_percent=round(fmean(used), 3) if used else None,
        processes=max(other["processes"] for other in others),
        memory_bytes=None if None in held else max(held),
        samples_share=round(sum(other["processes"] > 0 for other in others) / len(others), 6),
    )


def _energy_readings(series: Sequence[Sample]) -> EnergyReadings:
    def points(name: str) -> list[tuple[float, float]]:
        return [(sample["t"], sample[name]) for sample in series if sample.get(name) is not None]

    return EnergyReadings(points("energy_joules"), points("power_watts"))


def _energy(cards: Sequence[Sequence[Sample]], windows: Windows, items: int | None) -> Energy:
    if any(sample.get("mig") for series in cards for sample in series):
        return Energy(scope="cards", unknown_because="a divided card's energy is not that of one slice")
    return trial_energy([_energy_readings(series) for series in cards], windows, items)
