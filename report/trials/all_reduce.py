"""What devices reach together when they sum a message, and what a step's gradients need of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from harness.record import Measurement, MessageSize, Record
from report.trials.ceilings import Device, device_of

ALGORITHM = "all_reduce_algorithm_gb_per_second"
BUS = "all_reduce_bus_gb_per_second"

VALUE_BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}

Devices = tuple[Device, int, int]
"""The first of them, their number, and that of their nodes."""


@dataclass(frozen=True, slots=True)
class Reached:
    """The medians of the trials that summed over the same devices; bandwidths as nccl-tests defines them."""

    devices: int
    nodes: int
    bus_bytes_per_second: float
    bus_of_sizes: tuple[tuple[int, float], ...]
    """Each message's bytes, and bytes per second of bus bandwidth by the median of its samples."""
    backend: str
    """With its version where it has one of its own."""
    trials: int


def devices_of(record: Record) -> Devices | None:
    """Which devices a record is of; null where nothing was measured."""
    device = device_of(record)
    return (device, record.trial.asked.variant.gpus, record.nodes) if device else None


def runs(records: Iterable[Record]) -> dict[Devices, list[Measurement]]:
    """What was measured over the same devices, in the order given; invalid trials are left out."""
    found: dict[Devices, list[Measurement]] = {}
    for record in records:
        devices, measured = devices_of(record), record.measurement
        if devices is None or measured is None or measured.all_reduce is None:
            continue
        if not {ALGORITHM, BUS} <= measured.ceilings.keys():
            continue
        if record.summary is None or record.summary.verdict != "invalid":
            found.setdefault(devices, []).append(measured)
    return found


def reached(records: Iterable[Record]) -> dict[Devices, Reached]:
    """The ceilings of all devices that were measured together, fewer devices first."""
    found = sorted(runs(records).items(), key=lambda one: one[0][1:])
    return {devices: _reached(*devices[1:], measured) for devices, measured in found}


def bus_factor(devices: int) -> float:
    """Bus bandwidth over algorithm bandwidth: 2 (n - 1) / n (nccl-tests, doc/PERFORMANCE.md)."""
    return 2 * (devices - 1) / devices


def gradient_bytes(measured: Measurement) -> int | None:
    """Bytes that DistributedDataParallel sums in each step: every parameter's gradient, in its own type.

    Null for another way of sharing a step, and where a type is not known.
    """
    counts = {
        name.removeprefix("torch."): count for name, count in measured.precision.parameter_dtypes.items()
    }
    if measured.parallel != "ddp" or not counts.keys() <= VALUE_BYTES.keys():
        return None
    return max(0, sum(VALUE_BYTES[name] * count for name, count in counts.items())) or None


def least_seconds(measured: Measurement, algorithm_bytes_per_second: float) -> float | None:
    """The least that summing a step's gradients takes: their bytes over the algorithm bandwidth."""
    size = gradient_bytes(measured)
    return None if size is None else size / algorithm_bytes_per_second


def _reached(devices: int, nodes: int, measured: Sequence[Measurement]) -> Reached:
    by_size: dict[int, list[float]] = {}
    for size in (size for one in measured if one.all_reduce for size in one.all_reduce.sizes):
        if seconds := _call_seconds(size):
            rate = size.message_bytes / seconds * bus_factor(devices)
            by_size.setdefault(size.message_bytes, []).append(rate)
    first = measured[0].all_reduce
    assert first is not None
    return Reached(
        devices,
        nodes,
        median(one.ceilings[BUS] for one in measured) * 1e9,
        tuple((size, median(rates)) for size, rates in sorted(by_size.items())),
        f"{first.backend} {first.backend_version or ''}".strip(),
        len(measured),
    )


def _call_seconds(size: MessageSize) -> float:
    """Of one call, by the median sample; 0 where there is none."""
    samples = size.sample_us
    if not samples.count:
        return 0.0
    return median(samples.values()) / samples.steps_per_value / size.calls_per_sample / 1e6
