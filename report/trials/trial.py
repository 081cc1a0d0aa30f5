"""One trial as the report sees it: its record, and what was made of it."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean

from harness.record import (
    Environment,
    Epoch,
    Failure,
    Finding,
    Record,
    Summary,
    finding,
)
from harness.record.finding import gravest_verdict
from harness.record.store import Stored
from harness.record.telemetry import LEAST_INTERVALS, Energy
from harness.summary.statistics import UNKNOWN, Bound, judge_trial
from harness.summary.trial_devices import busy_percents, busy_share, device_memory_bytes, device_name
from report.trials import learning
from report.trials.key import Key, ProtocolLength, Stack, key_of, limit_of, stack_of

PROVEN = ("valid", "warn")
LEAST_PROVEN = 3
"""With so many proven runs a line's unproven ones, if fewer, are set apart."""

LEAST = 1e-15
"""Seconds, or samples per second; what is smaller, or as much larger, no clock has counted."""

LOST = frozenset({"not-finite", "collapsed", "loss-scale"})
"""What makes a run invalid and is a result of its training; all else disturbed it, or it was another work."""

LABEL_BEFORE_ID = 17
"""Characters: with an id behind it a label still fits where names are cut."""


@dataclass(frozen=True)
class TrialResult:
    """A record, and what was made of it.

    Figures are in seconds, samples per second, bytes and shares of 1; null is unknown.
    """

    path: str
    record: Record
    summary: Summary | None
    """The summary by the present method; null where nothing was measured."""
    verdict: str
    findings: tuple[Finding, ...] = ()
    """The findings of its summary, and findings that only the other trials show."""
    bound: Bound = UNKNOWN
    """What it waits for."""
    short_id: str = ""
    """The start of its machine's id, where machines on record share a label."""
    model_mark: str = ""
    """Its device's memory or chip, where others of the same name on record have another; else empty."""
    turn: int = 0
    """Its session's place among its machine's, from 1: a clock may be set, and says no order."""
    looks: tuple[int, ...] = ()
    """After how many repeats its session looks at two sides that take turns; empty where none do."""

    @cached_property
    def key(self) -> Key:
        return key_of(self.record)

    @cached_property
    def length(self) -> ProtocolLength | None:
        if self.record.measurement is None or self.summary is None:
            return None
        protocol, projected = self.record.measurement.protocol, self.summary.projected
        limit = limit_of(self.record.trial.asked) if projected else ()
        # A program that our clock stops has no length of its own: its processes differ by what they reached.
        steps = 1 if self.record.measurement.own else protocol.steps_per_epoch
        numbers = steps, protocol.epochs, protocol.valid_batches
        return ProtocolLength(*numbers, projected, limit)

    @cached_property
    def stack(self) -> Stack:
        return stack_of(self.record)

    @property
    def causes(self) -> tuple[Finding, ...]:
        """The findings that speak against it."""
        return tuple(found for found in self.findings if found.severity != "note")

    def with_findings(self, *more: Finding) -> TrialResult:
        """The trial with what else was found, and the verdict that all of it makes."""
        return replace(self, findings=(*self.findings, *more), verdict=gravest_verdict(more, self.verdict))

    @property
    def lost(self) -> bool:
        """Whether its training failed by itself: it reached nothing, whatever it had before."""
        invalid = {found.name for found in self.findings if found.severity == "invalid"}
        return bool(invalid) and invalid <= LOST

    @property
    def bottleneck(self) -> str:
        """What it waits for; empty where that is not known."""
        return "" if self.bound.kind == "unknown" else self.bound.kind

    @property
    def session(self) -> str:
        return self.record.session

    @property
    def machine(self) -> str:
        return self.record.machine.id

    @property
    def machine_label(self) -> str:
        """Return the machine's label, with its id where other machines have the same."""
        label = self.record.machine.label
        return f"{label[:LABEL_BEFORE_ID]} ({self.short_id})" if self.short_id else label

    @property
    def environment(self) -> Environment:
        return self.record.environment

    @property
    def failure(self) -> Failure | None:
        return self.record.failure

    @cached_property
    def device_name(self) -> str:
        return device_name(self.record)

    @property
    def device_model(self) -> str:
        """The device's name, with its memory or chip where others of one name are on record."""
        return f"{self.device_name} {self.model_mark}" if self.model_mark else self.device_name

    @property
    def device_memory_bytes(self) -> int | None:
        """As the framework saw it; where nothing was measured, as the driver did."""
        return device_memory_bytes(self.record)

    @cached_property
    def card(self) -> str:
        """The device's model, with their number where cards, or processes on a processor, are several."""
        count = self.record.trial.asked.variant.gpus
        if count == 1:
            return self.device_model
        on_cpu = self.environment.device == "cpu"
        return f"{self.device_model}, {count} processes" if on_cpu else f"{count} × {self.device_model}"

    @property
    def device_unit(self) -> str | None:
        """The card's UUID as a hash."""
        return self.record.measurement.device.unit if self.record.measurement else None

    @property
    def device_capability(self) -> str | None:
        """Compute capability, or the gfx number."""
        return self.record.measurement.device.capability if self.record.measurement else None

    @property
    def is_ceiling(self) -> bool:
        """Return whether it measured the device's limits: it trains nothing, so it is in no group."""
        return self.record.measurement is not None and bool(self.record.measurement.ceilings)

    @property
    def is_card_check(self) -> bool:
        """Whether it asked if a card is as it should be."""
        return self.record.measurement is not None and self.record.measurement.card is not None

    @property
    def sample_unit(self) -> str:
        return self.record.measurement.sample_unit if self.record.measurement else "sample"

    @property
    def epochs_trained(self) -> int | None:
        """Complete ones."""
        return sum(epoch.complete for epoch in self.epochs) if self.record.measurement else None

    @property
    def steps_trained(self) -> int | None:
        return self.record.measurement.window.steps if self.record.measurement else None

    @property
    def epochs(self) -> tuple[Epoch, ...]:
        return self.record.measurement.epochs if self.record.measurement else ()

    @property
    def losses(self) -> tuple[tuple[int, float], ...]:
        """(step, training loss)"""
        return self.record.measurement.losses if self.record.measurement else ()

    @property
    def protocol_seconds(self) -> float | None:
        return possible_value(self.summary.protocol_seconds) if self.summary else None

    @property
    def epoch_seconds(self) -> float | None:
        return possible_value(self.summary.epoch_seconds) if self.summary else None

    @property
    def samples_per_second(self) -> float | None:
        return possible_value(self.summary.throughput) if self.summary else None

    @property
    def step_seconds(self) -> float | None:
        return possible_value(self.summary.step_seconds_median) if self.summary else None

    @property
    def busy_share(self) -> float | None:
        return busy_share(self.record) if self.record.measurement else None

    @property
    def busy_percent(self) -> float | None:
        """The percentage of the measured time in which its least busy card worked."""
        share = self.busy_share
        return None if share is None else 100 * share

    def busy_percent_of(self, places: str) -> float | None:
        """The same of one of its cards, or the mean of several, by their places: '0', '1-3'."""
        first, _, last = places.partition("-")
        each = busy_percents(self.record)[int(first) : int(last or first) + 1] if first.isdecimal() else ()
        known = [percent for percent in each if percent is not None]
        return fmean(known) if known else None

    @property
    def memory_percent(self) -> float | None:
        """The percentage of a card's memory that its driver saw taken at most, of the fullest of them."""
        telemetry, memory = self.record.telemetry, self.device_memory_bytes
        each = [card.memory_used_bytes for card in telemetry.cards] if telemetry else []
        taken = [value for used in each if used for value in used.mean.values() if value is not None]
        return 100 * max(taken) / memory if taken and memory else None

    @property
    def quality_name(self) -> str | None:
        return self.record.measurement.quality_name if self.record.measurement else None

    @property
    def last_validated(self) -> Epoch | None:
        """The last epoch after which the quality was measured."""
        return next((epoch for epoch in reversed(self.epochs) if epoch.quality is not None), None)

    @property
    def train_loss(self) -> float | None:
        """The loss of the last epoch that has one, else the last of the curve."""
        by_epoch = [epoch.train_loss for epoch in self.epochs if epoch.train_loss is not None]
        return by_epoch[-1] if by_epoch else self.losses[-1][1] if self.losses else None

    @property
    def smoothed_train_loss(self) -> float | None:
        """fastai's moving average of the batch losses at the end of the last epoch; null for others."""
        return self.epochs[-1].smoothed_train_loss if self.epochs else None

    @property
    def best_quality(self) -> float | None:
        """The best of all validations."""
        return learning.best_quality(self.record.measurement) if self.record.measurement else None

    @property
    def early_fall(self) -> float | None:
        """The mean loss of quality from one of the first ten epochs to the next, a gain counted as 0."""
        return learning.early_fall(self.record.measurement) if self.record.measurement else None

    @property
    def peak_bytes(self) -> int | None:
        """What the framework allocated at most on a device; of a CPU, what the process held."""
        measured = self.record.measurement
        if measured is None:
            return None
        memory = measured.memory
        return memory.process_peak_bytes if measured.device.kind == "cpu" else memory.allocated_peak_bytes

    @property
    def energy(self) -> Energy | None:
        """Return what it took; null where a window has too few samples, as older records' may have."""
        telemetry = self.record.telemetry
        least = LEAST_INTERVALS * telemetry.interval_seconds if telemetry else 0.0
        if telemetry is None or any(end - begin < least for begin, end in telemetry.windows):
            return None
        return telemetry.energy

    @property
    def joules_per_sample(self) -> float | None:
        return self.energy.joules_per_sample if self.energy and self.record.measurement else None


def most_proven(proven: int, unproven: int) -> bool:
    """Return whether a line uses only its proven runs."""
    return proven > unproven and (not unproven or proven >= LEAST_PROVEN)


def identity_of(trial: TrialResult) -> tuple[Hashable, ...]:
    """What the repeats of one cell share: the limit that was asked for, whether they reached it or not."""
    length = trial.length and replace(trial.length, projected=False, limit=limit_of(trial.record.trial.asked))
    return trial.key, length, trial.stack, trial.session, trial.machine, trial.card


def trial_of(stored: Stored) -> TrialResult:
    """Return a record as a trial."""
    path, record = stored.path, stored.record
    summary = record.summary or judge_trial(record)
    if record.measurement is None or summary is None:
        return TrialResult(path, record, None, "invalid")
    trial = TrialResult(path, record, summary, verdict=summary.verdict, findings=summary.findings)
    return trial.with_findings(*_impossible(summary))


def possible_value(value: float | None) -> float | None:
    """A time or a rate within what any device can do, so that its square is a number as well; else null."""
    return value if value is not None and math.isfinite(value) and LEAST < value < 1 / LEAST else None


def _impossible(summary: Summary) -> tuple[Finding, ...]:
    values = {
        "protocol seconds": summary.protocol_seconds,
        "epoch seconds": summary.epoch_seconds,
        "throughput": summary.throughput,
        "step seconds": summary.step_seconds_median,
    }
    return tuple(
        finding("impossible-figure", quantity=name, value=f"{value:g}")
        for name, value in values.items()
        if value is not None and possible_value(value) is None
    )
