"""Reads what the telemetry wrote beside a trial, and thins it to what a record keeps."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from harness.errors import RecordError
from harness.record.telemetry import CardTelemetry, CpuTelemetry, Energy, Others, Spread, Telemetry, Trace
from harness.telemetry.energy import Read, Windows, energy

FILE = "telemetry.jsonl"
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
_CARD_TRACES = (
    "sm_mhz",
    "memory_mhz",
    "temperature_c",
    "memory_temperature_c",
    "fan_percent",
    "power_watts",
    "utilization_percent",
    "memory_used_bytes",
)
_CPU_TRACES = ("utilization_percent", "mhz", "temperature_c", "memory_used_bytes", "load")

Sample = dict[str, Any]
Segments = Sequence[tuple[float, float]]
"""Begin and end of each measured training segment, in the machine's monotonic seconds."""


def read(path: Path, segments: Segments = (), items: int | None = None) -> Telemetry | None:
    """The telemetry of one trial; None where nothing was sampled. Lines that are cut short are left out.

    `items` are the training samples of the segments, for the energy of one. Raises RecordError where the
    lines are not what the telemetry writes.
    """
    lines = list(_lines(path))
    samples = [line for line in lines[1:] if "t" in line]
    if not samples:
        return None
    try:
        return _thinned(lines[0], samples, lines[-1], segments, items)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordError(
            f"{path.name} is not what the telemetry writes ({type(error).__name__})",
            remedy="its trial is recorded without it",
        ) from None


def _thinned(
    head: Sample, samples: Sequence[Sample], last: Sample, segments: Segments, items: int | None
) -> Telemetry:
    windows = _windows(head, segments, samples)
    seconds = samples[-1]["t"]
    missing = last.get("missing", {})
    unwatched = head["source"] != "none" and not head["cards"]
    slots = _slots(samples, seconds, len(head["cards"]))
    cards = tuple(_card(at, card, samples, slots, windows) for at, card in enumerate(head["cards"]))
    return Telemetry(
        source=head["source"],
        interval_seconds=head["interval_seconds"],
        seconds=seconds,
        samples=len(samples),
        seconds_per_value=head["interval_seconds"] if len(slots) == len(samples) else 60.0,
        times=Trace.of([fmean(sample["t"] for sample in slot) for slot in slots], 0.01),
        windows=tuple(windows),
        cards=cards,
        cpu=CpuTelemetry(**_spreads(slots, _CPU_TRACES, lambda sample: sample["cpu"])),
        energy=Energy(scope="cards", unknown_because=missing.get("cards", "no card could be told"))
        if unwatched
        else _energy(samples, len(cards), windows, items),
        others_unknown_because=head.get("others_unknown_because"),
        missing=missing,
        ended=last.get("end", "cut short"),
    )


def _lines(path: Path) -> Iterator[Sample]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for line in text.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


def _windows(head: Sample, segments: Segments, samples: Sequence[Sample]) -> list[tuple[float, float]]:
    """The segments in the telemetry's own seconds; those that it did not see are left out."""
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


def _spreads(
    slots: Sequence[Sequence[Sample]], names: Sequence[str], of: Callable[[Sample], Sample | None]
) -> dict[str, Spread | None]:
    return {name: _spread(slots, name, of) for name in names}


def _spread(
    slots: Sequence[Sequence[Sample]], name: str, of: Callable[[Sample], Sample | None]
) -> Spread | None:
    told = [
        [value for sample in slot if (value := (of(sample) or {}).get(name)) is not None] for slot in slots
    ]
    if not any(told):
        return None
    scale = _SCALES[name]
    mean = Trace.of([fmean(values) if values else None for values in told], scale)
    if all(len(slot) == 1 for slot in slots):
        return Spread(mean=mean)
    return Spread(
        mean=mean,
        least=Trace.of([min(values, default=None) for values in told], scale),
        most=Trace.of([max(values, default=None) for values in told], scale),
    )


def _of_card(at: int) -> Callable[[Sample], Sample | None]:
    return lambda sample: sample["cards"][at] if sample.get("cards") and len(sample["cards"]) > at else None


def _card(
    at: int, described: Sample, samples: Sequence[Sample], slots: Sequence[Sequence[Sample]], windows: Windows
) -> CardTelemetry:
    of = _of_card(at)
    inside = _inside(samples, windows)
    told = [card for sample in inside if (card := of(sample)) is not None]
    everywhere = [card for sample in samples if (card := of(sample)) is not None]
    read = _read(samples, of)
    limits = _known(everywhere, "power_limit_watts")
    return CardTelemetry(
        index=described["index"],
        unit=described.get("unit"),
        name=described.get("name"),
        **_spreads(slots, _CARD_TRACES, of),
        limited_share=_limited(inside, of),
        reasons_share=_reasons(told),
        performance_states=_states(told),
        others=_others(told),
        ecc_uncorrected=_rise(everywhere, "ecc_uncorrected"),
        ecc_corrected=_rise(everywhere, "ecc_corrected"),
        xids=next(iter(_known(everywhere[::-1], "xids")), None),
        power_limit_watts=limits[-1] if limits else None,
        power_limit_changed=len(set(limits)) > 1 if limits else None,
        mig_changed=len(set(states)) > 1 if (states := _known(everywhere, "mig")) else None,
        pcie_generation=max(_known(everywhere, "pcie_generation"), default=None),
        pcie_width=max(_known(everywhere, "pcie_width"), default=None),
        start_temperature_c=next(iter(_known(told, "temperature_c")), None),
        energy_joules=energy([read], windows, None).joules,
    )


def _inside(samples: Sequence[Sample], windows: Windows) -> Sequence[Sample]:
    """The samples from the first window to the last and one more on each side; all without windows."""
    if not windows:
        return samples
    begin, end = windows[0][0], windows[-1][1]
    first = max((at for at, sample in enumerate(samples) if sample["t"] <= begin), default=0)
    last = min((at for at, sample in enumerate(samples) if sample["t"] >= end), default=len(samples) - 1)
    return samples[first : last + 1]


def _known(cards: Sequence[Sample], name: str) -> list[Any]:
    return [card[name] for card in cards if card.get(name) is not None]


def _rise(cards: Sequence[Sample], name: str) -> int | None:
    values = _known(cards, name)
    return values[-1] - values[0] if values and values[-1] >= values[0] else None


def _limited(inside: Sequence[Sample], of: Callable[[Sample], Sample | None]) -> dict[str, float]:
    told = [
        (sample["t"], card["limited_seconds"])
        for sample in inside
        if (card := of(sample)) is not None and card.get("limited_seconds")
    ]
    if len(told) < 2 or told[-1][0] <= told[0][0]:
        return {}
    (begin, first), (end, last) = told[0], told[-1]
    return {
        name: round(min(max((last[name] - first[name]) / (end - begin), 0.0), 1.0), 6)
        for name in last
        if name in first
    }


def _reasons(told: Sequence[Sample]) -> dict[str, float]:
    seen = [card["reasons"] for card in told if card.get("reasons") is not None]
    names = dict.fromkeys(name for reasons in seen for name in reasons)
    return {name: round(sum(name in reasons for reasons in seen) / len(seen), 6) for name in names}


def _states(told: Sequence[Sample]) -> dict[str, float]:
    seen = _known(told, "performance_state")
    return {f"P{state}": round(seen.count(state) / len(seen), 6) for state in sorted(set(seen))}


def _others(told: Sequence[Sample]) -> Others | None:
    seen = _known(told, "others")
    if not seen:
        return None
    used = _known(seen, "utilization_percent")
    return Others(
        utilization_percent=round(fmean(used), 3) if used else None,
        processes=max(other["processes"] for other in seen),
        memory_bytes=max(other["memory_bytes"] for other in seen),
        samples_share=round(sum(other["processes"] > 0 for other in seen) / len(seen), 6),
    )


def _read(samples: Sequence[Sample], of: Callable[[Sample], Sample | None]) -> Read:
    def points(name: str) -> list[tuple[float, float]]:
        return [
            (sample["t"], card[name])
            for sample in samples
            if (card := of(sample)) is not None and card.get(name) is not None
        ]

    return Read(points("energy_joules"), points("power_watts"))


def _energy(samples: Sequence[Sample], cards: int, windows: Windows, items: int | None) -> Energy:
    if any(card.get("mig") for sample in samples for card in sample.get("cards") or ()):
        return Energy(scope="cards", unknown_because="a divided card's energy is not that of one slice")
    if cards:
        return energy([_read(samples, _of_card(at)) for at in range(cards)], windows, items)
    package = _read(samples, lambda sample: sample["cpu"])
    devices = [package] if package.counter else []
    return energy(devices, windows, items, scope="processor packages")
