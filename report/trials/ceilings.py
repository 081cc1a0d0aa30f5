"""What devices reach, on paper (cards.toml), alone and together, and how close a trial came to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from harness.record import PRECISIONS, Measurement, MessageSize, Precision, Record, Summary
from harness.record.published.cards import Card, find_card, peak_tflops
from harness.summary.statistics import UNKNOWN, Bound, find_bound
from harness.summary.trial_devices import device_name

GEMM: dict[str, str] = {label: traits.product for label, traits in PRECISIONS.items() if traits.product}
"""The measured product that a precision is held against; fp32-default mixes two and has none."""

COPY = "copy_gb_per_second"

ABOVE = 1.05
"""A trial faster than a measured ceiling by more than measurements scatter shows that it was none."""

Device = tuple[str, str]
"""A machine's id, and the card's unit or, where that is not known, the device's name."""
BUS = "all_reduce_bus_gb_per_second"


@dataclass(frozen=True, slots=True)
class RooflinePoint:
    """One trial against its device's limits; null is unknown. Rates are of all its devices together."""

    flops_per_second: float | None = None
    intensity: float | None = None
    """Operations per byte, counted as if nothing were fused or cached: the true one is higher."""
    utilization: float | None = None
    """Model FLOP utilisation: of the dense peak on paper in the label's arithmetic, 0 to 1."""
    compute_share: float | None = None
    """The share of the fastest product measured on this device in the same arithmetic."""
    memory_share: float | None = None
    """The share of the copy bandwidth measured on this device; null where caches served a part of it."""
    bound: Bound = UNKNOWN

    @property
    def is_doubtful(self) -> bool:
        """Whether it was faster than the fastest product measured on its device: that one was disturbed."""
        return self.compute_share is not None and self.compute_share > ABOVE


def device_of(record: Record) -> Device | None:
    """Which device a record is of; null where nothing was measured."""
    measured = record.measurement
    return (record.machine.id, measured.device.unit or measured.device.name) if measured else None


def ceilings(records: Iterable[Record]) -> dict[Device, dict[str, float]]:
    """Return each device's measured ceilings by name, the median of its trials; invalid ones are left out.

    What several devices reach together is no ceiling of one of them. A short window, which leaves any other
    trial unproven, is what a ceiling is measured in.
    """
    by_device: dict[Device, dict[str, list[float]]] = {}
    for record in records:
        device, measured = device_of(record), record.measurement
        if device is None or measured is None or (record.summary and record.summary.verdict == "invalid"):
            continue
        if measured.all_reduce is not None:
            continue
        for name, value in measured.ceilings.items():
            by_device.setdefault(device, {}).setdefault(name, []).append(value)
    return {
        device: {name: median(values) for name, values in sorted(figures.items())}
        for device, figures in by_device.items()
    }


def roofline_point(
    record: Record, summary: Summary, cards: Sequence[Card], measured: Mapping[str, float]
) -> RooflinePoint:
    """A trial's place below its limits, `measured` being its own device's ceilings.

    operations/s = operations per sample · throughput; utilisation = that ÷ (dense peak · devices).
    """
    measurement = record.measurement
    if measurement is None:
        return RooflinePoint()
    operations, traffic = measurement.flops.per_sample, measurement.flops.bytes_per_sample
    rate = None if operations is None else operations * summary.throughput
    moved = None if traffic is None else traffic * summary.throughput
    label, devices = measurement.precision.label, measurement.device.count
    card = find_card(device_name(record), cards)
    peak = peak_tflops(card, label) if card else None
    compute = share(rate, ceiling_of(measured, label, devices))
    memory = share(moved, bandwidth_of(measured, devices))
    memory_share = memory if memory is not None and memory <= 1 else None
    compute_share = compute if compute is not None and compute <= ABOVE else None
    return RooflinePoint(
        flops_per_second=rate,
        intensity=share(operations, traffic),
        utilization=share(rate, peak and peak * 1e12 * devices),
        compute_share=compute,
        memory_share=memory_share,
        bound=find_bound(summary, compute_share=compute_share, memory_share=memory_share),
    )


def ceiling_of(measured: Mapping[str, float], label: Precision, devices: int = 1) -> float | None:
    """Measured FLOP/s of the fastest product in a label's arithmetic; null where none was measured."""
    each = measured.get(GEMM[label]) if label in GEMM else None
    return None if each is None else each * 1e12 * devices


def bandwidth_of(measured: Mapping[str, float], devices: int = 1) -> float | None:
    """Measured bytes/s of a copy within the memory, reading and writing counted."""
    each = measured.get(COPY)
    return None if each is None else each * 1e9 * devices


def share(part: float | None, whole: float | None) -> float | None:
    """part ÷ whole; null where either is unknown or the whole is nothing."""
    return part / whole if part is not None and whole else None


@dataclass(frozen=True, slots=True)
class Together:
    """The medians of the trials that summed over the same devices; bandwidths as nccl-tests defines them."""

    device: Device
    """The first of them."""
    devices: int
    nodes: int
    bus_bytes_per_second: float
    bus_of_sizes: tuple[tuple[int, float], ...]
    """Each message's bytes, and bytes per second of bus bandwidth by the median of its samples."""
    backend: str
    """With its version where it has one of its own."""
    trials: int


def reached_together(records: Iterable[Record]) -> list[Together]:
    """Return the ceilings of devices that were measured together, fewer devices first; none of invalid."""
    found: dict[tuple[Device, int, int], list[Measurement]] = {}
    for record in records:
        device, measured = device_of(record), record.measurement
        if device is None or measured is None or measured.all_reduce is None or BUS not in measured.ceilings:
            continue
        if record.summary is None or record.summary.verdict != "invalid":
            place = device, record.trial.asked.variant.gpus, record.nodes
            found.setdefault(place, []).append(measured)
    return [_joint_ceiling(*place, found[place]) for place in sorted(found, key=lambda place: place[1:])]


def _joint_ceiling(device: Device, devices: int, nodes: int, measured: Sequence[Measurement]) -> Together:
    by_size: dict[int, list[float]] = {}
    for size in (size for one in measured if one.all_reduce for size in one.all_reduce.sizes):
        if seconds := _call_seconds(size):
            # nccl-tests, doc/PERFORMANCE.md.
            rate = size.message_bytes / seconds * 2 * (devices - 1) / devices
            by_size.setdefault(size.message_bytes, []).append(rate)
    first = measured[0].all_reduce
    assert first is not None
    return Together(
        device,
        devices,
        nodes,
        median(one.ceilings[BUS] for one in measured) * 1e9,
        tuple((size, median(rates)) for size, rates in sorted(by_size.items())),
        f"{first.backend} {first.backend_version or ''}".strip(),
        len(measured),
    )


def _call_seconds(size: MessageSize) -> float:
    """Return the seconds of one call, by the median sample; 0 where there is none."""
    samples = size.sample_us
    if not samples.count:
        return 0.0
    return median(samples.values()) / samples.steps_per_value / size.calls_per_sample / 1e6
