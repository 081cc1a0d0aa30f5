"""Checks of what a trial measured. What speaks against it is a cause: a short name, a colon and a clause."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from harness.record import LossScale, Measurement, Steady
from harness.summary.steady_state import DEFAULT_RULE

INPUT_WAIT_LIMIT = 0.10
"""MLPerf Storage's floor: a device must be fed for 90 % of the time."""

DISTINCT_BATCHES = 4
"""Fewer different batches let data and arithmetic take short cuts."""

SKIPPED_LIMIT = 0.01
HALVINGS_AT_START = 16
"""A dynamic loss scale may skip this many steps while it looks for its level: log2 of torch's first one."""

SETTLING_STEPS = 20
"""Halvings closer together than this, from the first one on, are the search for a level."""

FALL = 16.0
"""A scale that ends below its settled level by this factor did not oscillate: it fell."""

CLOCKS_APART = 0.01
SEGMENT_CLOCKS_APART_SECONDS = 0.002
"""The device's steps may differ from the window by the larger of a share and so much a segment."""

_HALF = {
    "amp-fp16": "float16",
    "fp16-master": "float16",
    "pure-fp16": "float16",
    "amp-bf16": "bfloat16",
    "pure-bf16": "bfloat16",
}
_PARAMETERS = {
    "fp32-ieee": "float32",
    "fp32-tf32": "float32",
    "fp32-default": "float32",
    "amp-fp16": "float32",
    "amp-bf16": "float32",
    "fp16-master": "float16",
    "pure-fp16": "float16",
    "pure-bf16": "bfloat16",
}
_PROBE_MAY_READ = {
    "fp32-ieee": {"fp32-ieee"},
    "fp32-tf32": {"tf32"},
    "fp32-default": {"fp32-ieee", "tf32"},
    "float16": {"fp16"},
    "bfloat16": {"bf16"},
}
"""A probe runs in its label's arithmetic; where no TF32 exists, the framework's default is fp32-ieee."""

Causes = Iterator[tuple[Literal["invalid", "unproven", "warn", "note"], str]]
"""Each with what it makes of the trial; a note changes no verdict."""


def cause_name(cause: str) -> str:
    """The part of a cause that does not change from trial to trial, such as 'input-bound'."""
    return cause.partition(":")[0]


def measurement_causes(measurement: Measurement, steady: Steady, input_share: float | None) -> Causes:
    """Everything that speaks against the trial, the gravest kind first within each subject."""
    yield from _not_finite(measurement)
    yield from _precision(measurement)
    yield from _loss_scale(measurement)
    yield from _collapsed(measurement)
    yield from _data(measurement)
    yield from _clock(measurement)
    yield from _steady(measurement, steady)
    if input_share is not None and input_share > INPUT_WAIT_LIMIT:
        yield "warn", f"input-bound: {input_share:.0%} of the time waited for input"


def _not_finite(measurement: Measurement) -> Causes:
    for step, loss in measurement.losses:
        if not math.isfinite(loss):
            yield "invalid", f"not-finite: the training loss is {loss} at step {step}"
            return
    for epoch in measurement.epochs:
        for what, value in (("training", epoch.train_loss), ("validation", epoch.valid_loss)):
            if value is not None and not math.isfinite(value):
                yield "invalid", f"not-finite: the {what} loss of epoch {epoch.index} is {value}"
                return


def _precision(measurement: Measurement) -> Causes:
    precision = measurement.precision
    label = precision.label
    half = _HALF.get(label)
    for probe in precision.probes:
        if probe.reads_as not in _PROBE_MAY_READ[half or label]:
            yield "invalid", f"precision: a {probe.operation} labelled {label} reads as {probe.reads_as}"
    outputs = {name.removeprefix("torch."): count for name, count in precision.output_dtypes.items()}
    expected = half or "float32"
    counted = sum(outputs.values())
    # A half-precision model keeps some layers in fp32, but none in the other 16-bit type; an fp32 model has
    # none in half.
    needed = counted / 2 if half else counted
    other_half = {"float16", "bfloat16"} - {expected}
    if counted and (outputs.get(expected, 0) < needed or other_half & outputs.keys()):
        seen = ", ".join(f"{count} {name}" for name, count in sorted(outputs.items()))
        yield "invalid", f"precision: labelled {label}, but the layers gave {seen}"
    parameters = {name.removeprefix("torch.") for name in precision.parameter_dtypes}
    if parameters and _PARAMETERS[label] not in parameters:
        yield (
            "invalid",
            f"precision: labelled {label}, but the parameters are {', '.join(sorted(parameters))}",
        )


@dataclass(frozen=True, slots=True)
class ScaleHealth:
    """What a loss scale did."""

    word: Literal["healthy", "skips", "failed"]
    settled: float
    """The first level that it settled on: where its halvings one after the other ended."""
    because: str


def scale_health(scale: LossScale, steps: int) -> ScaleHealth:
    """A settled dynamic scale skips about one step in 2,000; above 1 % it skips, and one that falls failed.

    The steps that its search for a first level may skip are left out of that share.
    """
    settled = _settled(scale)
    if not 1 <= scale.last < math.inf:
        return ScaleHealth("failed", settled, f"it fell to {scale.last:g}")
    if scale.history and scale.last * FALL < settled:
        because = f"it kept falling, from {settled:g} to {scale.last:g}"
        return ScaleHealth("failed", settled, because)
    if scale.skipped_steps - _halvings_at_start(scale) > SKIPPED_LIMIT * steps:
        because = f"{scale.skipped_steps} of {steps} steps were skipped"
        return ScaleHealth("skips", settled, because)
    useful = max(steps - scale.skipped_steps, 0)
    return ScaleHealth("healthy", settled, f"{useful} of {steps} steps changed the weights")


def _halvings_at_start(scale: LossScale) -> int:
    first = scale.first
    return max(HALVINGS_AT_START, math.ceil(math.log2(first))) if 1 < first < math.inf else HALVINGS_AT_START


def _settled(scale: LossScale) -> float:
    settled, before = scale.first, 0
    for step, value in scale.history:
        if not value < settled or step - before > SETTLING_STEPS:
            break
        settled, before = value, step
    return settled


def _loss_scale(measurement: Measurement) -> Causes:
    scale = measurement.precision.loss_scale
    if scale is None:
        return
    health = scale_health(scale, measurement.window.steps)
    if health.word != "healthy":
        yield "invalid" if health.word == "failed" else "warn", f"loss-scale: {health.because}"


def _collapsed(measurement: Measurement) -> Causes:
    """Quality no better than guessing, or lost again, after a full-length trial on real data."""
    if not measurement.protocol.complete or measurement.data.source != "real":
        return
    qualities = [epoch.quality for epoch in measurement.epochs if epoch.quality is not None]
    if not qualities:
        return
    last = qualities[-1]
    if measurement.quality_name == "accuracy":
        classes = measurement.structure.get("classes")
        items = measurement.data.valid_items
        if classes and items and not last > _guessing(classes, items):
            yield "invalid", f"collapsed: accuracy {last:.4g} is that of guessing among {classes} classes"
        elif not last >= max(qualities) / 2:
            yield "invalid", f"collapsed: accuracy fell from {max(qualities):.4g} to {last:.4g}"
    vocabulary = measurement.structure.get("vocabulary")
    if measurement.quality_name == "perplexity" and vocabulary and not last < vocabulary:
        yield "invalid", f"collapsed: perplexity {last:.4g} is that of guessing among {vocabulary} words"


def _guessing(classes: int, items: int) -> float:
    """The accuracy that guessing stays below: p + 4·√(p(1 − p)/items), p = 1/classes."""
    chance = 1 / classes
    return chance + 4 * math.sqrt(chance * (1 - chance) / items)


def _data(measurement: Measurement) -> Causes:
    distinct, looked_at = measurement.data.distinct_batches, measurement.data.looked_at_batches
    if distinct == 1 and looked_at != 1:
        yield "invalid", "constant-batch: every step was fed the same batch"
    elif distinct is not None and distinct < min(DISTINCT_BATCHES, looked_at or DISTINCT_BATCHES):
        yield "warn", f"constant-batch: only {distinct} different batches were fed"
    if measurement.data.source == "generated":
        yield "warn", "generated-data: a stand-in for data that could not be had; never judged"


def _clock(measurement: Measurement) -> Causes:
    total, window = sum(measurement.step_us.values()) / 1e6, measurement.window.seconds
    added = f"the steps add up to {total:.4g} s in a window of {window:.4g} s"
    if total > 1.02 * window:
        yield "invalid", f"clock: {added}"
    elif measurement.step_clock == "device":
        tolerance = max(CLOCKS_APART * window, SEGMENT_CLOCKS_APART_SECONDS * len(measurement.epochs))
        if measurement.step_us.count and abs(total - window) > tolerance:
            yield "warn", f"device-clock: {added}"


def _steady(measurement: Measurement, steady: Steady) -> Causes:
    if steady.kind == "unproven":
        yield "unproven", f"short-window: {_why_unproven(measurement, steady)}"
    if steady.kind == "none":
        yield "invalid", "no-steady-state: the step times still changed at the end"
    if steady.kind == "slowdown":
        yield "warn", f"slowdown: the steps became slower; steady from step {steady.first_step} on"


def _why_unproven(measurement: Measurement, steady: Steady) -> str:
    series = measurement.step_us
    values = series.values()[steady.first_step // series.steps_per_value :]
    seconds, steps = sum(values) / 1e6, len(values) * series.steps_per_value
    length = f"{seconds:.4g} s and {steps} steps"
    if seconds < DEFAULT_RULE.least_seconds or steps < DEFAULT_RULE.least_steps or steady.slope_error is None:
        needed = f"{DEFAULT_RULE.least_seconds:g} s and {DEFAULT_RULE.least_steps} steps"
        return f"the last level held for {length}; {needed} are needed"
    if (steady.mean_error or 0) > DEFAULT_RULE.mean_error:
        error = f"the standard error of their mean is {steady.mean_error:.1%}"
        return f"levels came back too seldom in {length}: {error}"
    drift = f"a drift of {steady.slope:+.1%} (standard error {steady.slope_error:.1%})"
    return f"{length} do not tell {drift} from none"
