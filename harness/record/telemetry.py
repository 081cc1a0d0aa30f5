"""What was recorded while a trial ran: traces, and what the counters added over the measured window.

Times are seconds since the telemetry began. What could not be read is null, its first reason in `missing`.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from harness.record.series import pack, unpack
from harness.record.strict_model import LeftOutIfNull, Model

_NULL = -(2**31)


class Trace(Model):
    """Values over time, packed: null or `scale` times a 32-bit integer."""

    count: Annotated[int, Field(ge=0, le=100_000)]
    scale: Annotated[float, Field(gt=0)]
    packed: Annotated[str, Field(max_length=200_000)]
    """Base64 of deflated little-endian signed integers, each the difference from the last; −2³¹ is null."""

    @classmethod
    def from_values(cls, values: Sequence[float | None], scale: float) -> Self:
        """Pack values to the nearest multiple of `scale`."""
        steps, before = array("i"), 0
        for value in values:
            if value is None:
                steps.append(_NULL)
                continue
            whole = max(-(2**30), min(2**30, round(value / scale)))
            steps.append(whole - before)
            before = whole
        return cls(count=len(steps), scale=scale, packed=pack(steps))

    @model_validator(mode="after")
    def _unpacks(self) -> Self:
        self.values()
        return self

    def values(self) -> list[float | None]:
        """Return the values in their unit."""
        steps = unpack(self.packed, "i", self.count, "trace")
        sums = accumulate(0 if step == _NULL else step for step in steps)
        return [None if step == _NULL else at * self.scale for step, at in zip(steps, sums, strict=True)]


class TraceStats(Model):
    """A quantity over time: per sample, or per minute the mean with the least and the most."""

    mean: Trace
    least: Trace | None = None
    most: Trace | None = None


class OtherProcesses(Model):
    """The most that other processes held on a card at one time."""

    processes: Annotated[int, Field(ge=0)]
    memory_bytes: Annotated[int, Field(ge=0)] | None
    """Null where the driver does not say, as in WSL2."""
    samples_share: Annotated[float, Field(ge=0, le=1)]
    """The share of the samples with any such process."""
    utilization_percent: Annotated[float, Field(ge=0)] | None = None
    """What they used of the card's time, on average over the window; null where the driver does not say."""


class CardTelemetry(Model):
    """One card. Shares are from the first window's begin to the last one's end, else over all."""

    index: int
    unit: str | None = None
    name: str | None = None
    sm_mhz: TraceStats | None = None
    memory_mhz: TraceStats | None = None
    temperature_c: TraceStats | None = None
    memory_temperature_c: TraceStats | None = None
    fan_percent: TraceStats | None = None
    power_watts: TraceStats | None = None
    utilization_percent: TraceStats | None = None
    memory_used_bytes: TraceStats | None = None
    limited_share: dict[str, float] = {}
    """The share of the window that a counter says was spent limited: power, thermal, sync_boost, …"""
    reasons_share: dict[str, float] = {}
    """The share of the samples that gave a reason for lower clocks: sw_power_cap, hw_thermal_slowdown, …"""
    performance_states: dict[str, float] = {}
    """The share of the samples in each of the driver's states: P0 is the highest."""
    others: OtherProcesses | None = None
    ecc_uncorrected: int | None = None
    """New ones."""
    ecc_corrected: int | None = None
    xids: tuple[int, ...] | None = None
    """The driver's numbers of the faults that it reported; null where nothing listened."""
    power_limit_watts: float | None = None
    power_limit_set_watts: LeftOutIfNull[float] = None
    """What somebody set, where the driver reports it beside what it holds the card to."""
    power_limit_changed: bool | None = None
    """Whether somebody changed it meanwhile."""
    mig_changed: bool | None = None
    pcie_generation: int | None = None
    """The highest seen: links rest at lower speed."""
    pcie_width: int | None = None
    start_temperature_c: float | None = None


LEAST_INTERVALS = 20
"""The fewest samples of a window: at an edge between two, changing power is read as its mean.

Where it falls to nothing between windows that costs a third of an interval, at most 1/60 of such a window.
"""


class Energy(Model):
    """Energy over the measured windows, of the watched devices together; never 0 for what is not known."""

    joules: float | None = None
    joules_per_sample: float | None = None
    method: Literal["counter", "sampled power"] | None = None
    window_seconds: float | None = None
    counter_joules: float | None = None
    sampled_joules: float | None = None
    band: float | None = None
    """Systematic, relative, beside any statistical interval."""
    unknown_because: str | None = None


class Telemetry(Model):
    """out/telemetry.jsonl, thinned: per sample below an hour, else per minute."""

    telemetry: Literal[1] = 1
    source: Literal["nvml", "sysfs", "none"]
    interval_seconds: Annotated[float, Field(gt=0)]
    seconds: Annotated[float, Field(ge=0)]
    samples: Annotated[int, Field(ge=0)]
    times: Trace
    """The middle of each value's time, for all traces alike."""
    windows: tuple[tuple[float, float], ...] = ()
    """The measured training segments."""
    cards: tuple[CardTelemetry, ...] = ()
    energy: Energy = Energy(unknown_because="nothing was watched")
    others_unknown_because: str | None = None
    missing: dict[str, str] = {}
    ended: str
    """Why the telemetry ended; "cut short" where it was killed."""
