"""Reads what the telemetry wrote during a trial, thins it to what a record keeps, and reckons its energy."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy

from harness.errors import RecordError
from harness.record.events import json_objects
from harness.record.telemetry import (
    LEAST_INTERVALS,
    CardTelemetry,
    Energy,
    OtherProcesses,
    Telemetry,
    Trace,
    TraceStats,
)

CUT_SHORT = "cut short"
"""How a telemetry ended that did not come to write its last line."""
PER_MINUTE_ABOVE_SECONDS = 3600.0
VALUES_KEPT = 8000
"""Samples times cards above which a trace is thinned too, for a record stays below 300 kB."""

_SCALES = {
    "sm_mhz": 1.0,
    "memory_mhz": 1.0,
    "temperature_c": 0.1,
    "memory_temperature_c": 0.1,
    "fan_percent": 1.0,
    "power_watts": 0.1,
    "utilization_percent": 0.1,
    "memory_used_bytes": 2.0**20,
}
BAND = 0.05
WITHHOLD_ABOVE = 0.10
LEAST_SECONDS = 60.0
LEAST_SAMPLES = 60
LONGEST_GAP = 5.0
"""Seconds between two samples of power over which nobody should integrate."""

TimedValues = Sequence[tuple[float, float]]
"""(seconds, value), in order of time."""
Windows = Sequence[tuple[float, float]]

Sample = dict[str, Any]
Segments = Sequence[tuple[float, float]]
"""Begin and end of each measured training segment, in the machine's monotonic seconds."""


def read_telemetry(path: Path, segments: Segments = (), items: int | None = None) -> Telemetry | None:
    """Return the telemetry of one trial, without lines that are cut short; None where nothing was sampled.

    `items` are the training samples of the segments, for the energy of one.
    Raises RecordError where the lines are not what the telemetry writes.
    """
    lines = list(json_objects(path.read_bytes().splitlines())) if path.is_file() else []
    samples = [line for line in lines[1:] if "t" in line]
    if not samples:
        return None
    try:
        return _thin_samples(lines[0], samples, lines[-1], segments, items)
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
    series = [_card_samples(samples, index) for index in range(count)]
    slots = _slots(samples, seconds, count)
    cards = tuple(
        _card_record(described, one, _slots(one, seconds, count), windows)
        for described, one in zip(head["cards"], series, strict=True)
    )
    return Telemetry(
        source=head["source"],
        interval_seconds=head["interval_seconds"],
        seconds=seconds,
        samples=len(samples),
        times=Trace.from_values([fmean(sample["t"] for sample in slot) for slot in slots], 0.01),
        windows=tuple(windows),
        cards=cards,
        energy=Energy(unknown_because=missing.get("cards", "no card could be identified"))
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


def _slots(samples: Sequence[Sample], seconds: float, cards: int) -> list[list[Sample]]:
    if seconds <= PER_MINUTE_ABOVE_SECONDS and len(samples) * max(cards, 1) <= VALUES_KEPT:
        return [[sample] for sample in samples]
    minutes: dict[int, list[Sample]] = {}
    for sample in samples:
        minutes.setdefault(int(sample["t"] // 60), []).append(sample)
    return list(minutes.values())


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
        **{name: _trace(slots, name) for name in _SCALES},
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
        return Energy(unknown_because="a divided card's energy is not that of one slice")
    return trial_energy([_energy_readings(series) for series in cards], windows, items)


@dataclass(frozen=True, slots=True)
class EnergyReadings:
    """What was read of one device: its cumulative counter in joules and its power in watts."""

    counter: TimedValues
    power: TimedValues


def counter_joules(counter: TimedValues, windows: Windows) -> float | None:
    """Return the counter's rise over the windows, interpolated; null where it ends early or falls."""
    if not _covers(counter, windows):
        return None
    seconds, joules = numpy.transpose(counter)
    if joules[-1] <= joules[0] or (numpy.diff(joules) < 0).any():
        return None
    return float(numpy.diff(numpy.interp(windows, seconds, joules)).sum())


def sampled_joules(power: TimedValues, windows: Windows) -> float | None:
    """Return power integrated over the windows by trapezoids; null where the samples do not cover them."""
    if not _covers(power, windows):
        return None
    seconds, watts = numpy.transpose(power)
    total = 0.0
    for begin, end in windows:
        times = numpy.array([begin, *seconds[(begin < seconds) & (seconds < end)], end])
        if numpy.diff(times).max() > LONGEST_GAP:
            return None
        total += float(numpy.trapezoid(numpy.interp(times, seconds, watts), times))
    return total


def _covers(points: TimedValues, windows: Windows) -> bool:
    """Return whether the points cover the windows to within half a second at both ends."""
    if not points or not windows:
        return False
    return points[0][0] - 0.5 <= min(windows)[0] and max(end for _, end in windows) <= points[-1][0] + 0.5


def trial_energy(devices: Sequence[EnergyReadings], windows: Windows, items: int | None) -> Energy:
    """Return all cards together over the windows; `items` are the training samples that passed in them.

    A value is withheld, with its reason, rather than guessed: windows under a minute or of few samples
    (MLPerf Power asks for 60 of each), a counter and a sampling that disagree by more than a tenth. The band
    of ±5 % is systematic: what the sensors are documented to be off by, and no repetition makes smaller.
    """
    seconds = sum(end - begin for begin, end in windows)
    samples = min((_count_inside(device.power or device.counter, windows) for device in devices), default=0)
    told: dict[str, Any] = {"window_seconds": seconds}
    if reason := _unmeasured_because(devices, windows, seconds, samples):
        return Energy(**told, unknown_because=reason)
    counted = _sum_known([counter_joules(device.counter, windows) for device in devices])
    sampled = _sum_known([sampled_joules(device.power, windows) for device in devices])
    apart = sampled / counted - 1 if counted and sampled is not None else None
    told |= {"counter_joules": counted, "sampled_joules": sampled}
    joules = counted if counted is not None else sampled
    if joules is None or joules <= 0:
        why = "neither an energy counter nor power was reported throughout"
        return Energy(**told, unknown_because=why)
    if apart is not None and abs(apart) > WITHHOLD_ABOVE:
        return Energy(**told, unknown_because=f"counter and sampled power differ by {apart:+.0%}")
    return Energy(
        **told,
        joules=joules,
        joules_per_sample=joules / items if items else None,
        method="counter" if counted is not None else "sampled power",
        band=BAND + 1 / (3 * _fewest_intervals(devices, windows)),
    )


def _unmeasured_because(
    devices: Sequence[EnergyReadings], windows: Windows, seconds: float, samples: int
) -> str:
    """Return why windows are too short, or too little was read in them; empty where neither is so."""
    if not devices:
        return "no device tells its energy or power"
    if not windows:
        return "the measured window's times are not known"
    if seconds < LEAST_SECONDS:
        return f"the window of {seconds:.0f} s is shorter than {LEAST_SECONDS:.0f} s"
    if samples < LEAST_SAMPLES:
        return f"{samples} samples in the window are fewer than {LEAST_SAMPLES}"
    if (intervals := _fewest_intervals(devices, windows)) < LEAST_INTERVALS:
        return f"a window of {intervals:.1f} intervals between samples is shorter than {LEAST_INTERVALS}"
    return ""


def _fewest_intervals(devices: Sequence[EnergyReadings], windows: Windows) -> float:
    """Return the shortest window over the longest of the devices' usual intervals between samples."""
    times = [[second for second, _ in device.power or device.counter] for device in devices]
    usual = max(float(numpy.median(numpy.diff(each))) for each in times)
    return min(end - begin for begin, end in windows) / usual


def _count_inside(points: TimedValues, windows: Windows) -> int:
    return sum(any(begin <= second <= end for begin, end in windows) for second, _ in points)


def _sum_known(values: Sequence[float | None]) -> float | None:
    given = [value for value in values if value is not None]
    return sum(given) if given and len(given) == len(values) else None
