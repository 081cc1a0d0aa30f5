"""Checks of what a trial measured, each thing that speaks against it a finding."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import accumulate
from statistics import fmean, median, median_low

from harness.record import PRECISIONS, Finding, LossScale, Measurement, ProgramRun, Steady, finding
from harness.record.finding import FindingValue
from harness.summary.steady_state import LEAST_SECONDS, LEAST_STEPS, MEAN_ERROR, microseconds, stalled_seconds

INPUT_WAIT_LIMIT = 0.10
"""MLPerf Storage's floor: a device must be fed for 90 % of the time."""

DISTINCT_BATCHES = 4
"""Fewer different batches let data and arithmetic take short cuts."""

SHORT_EPOCH = 0.02
FALSE_LENGTH = 0.10
"""The shares of an epoch's steps that a loader may promise too much: a warning, and invalid."""

SKIPPED_LIMIT = 0.01
HALVINGS_AT_START = 16
"""A dynamic loss scale may skip this many steps while it looks for its level: log2 of torch's first one."""

CLOCKS_APART = 0.01
SEGMENT_CLOCKS_APART_SECONDS = 0.002
"""The device's steps may differ from the window by the larger of a share and so much a segment."""

PROGRAM_CLOCK_APART = 0.02
"""The time between a program's lines and its own times may differ by so much."""

STALL_NAMED = 0.02
STALL_UNPROVEN = 0.10
"""A stall may add so much to the time that a figure is made of, unnamed and at all."""

EPOCHS_ALIKE = 3
"""Epochs from which on a slow first step of each is the workload's own: a loader starts."""

Findings = Iterator[Finding]


def measurement_findings(measurement: Measurement, steady: Steady, input_share: float | None) -> Findings:
    """Yield everything that speaks against the trial, the gravest kind first within each subject."""
    yield from _finite_findings(measurement)
    yield from _precision_findings(measurement)
    if measurement.precision.loss_scale is not None:
        yield from loss_scale_findings(measurement.precision.loss_scale, measurement.window.steps)
    yield from _quality_findings(measurement)
    yield from _data_findings(measurement)
    yield from _clock_findings(measurement)
    if measurement.program is not None:
        yield from _program_findings(measurement.program)
    if measurement.program is None or measurement.program.figure == "step":
        yield from _steady_findings(measurement, steady)
        yield from _stall_findings(measurement, steady)
    yield from _epoch_findings(measurement)
    if input_share is not None and input_share > INPUT_WAIT_LIMIT:
        yield finding("input-bound", input_share=input_share)


def _finite_findings(measurement: Measurement) -> Findings:
    for step, loss in measurement.losses:
        if not math.isfinite(loss):
            yield finding("not-finite", loss=loss, step=step)
            return
    for epoch in measurement.epochs:
        for what, value in (("training", epoch.train_loss), ("validation", epoch.valid_loss)):
            if value is not None and not math.isfinite(value):
                yield finding("not-finite", split=what, epoch=epoch.index, loss=value)
                return


def _precision_findings(measurement: Measurement) -> Findings:
    precision = measurement.precision
    label = precision.label
    traits = PRECISIONS[label]
    # A probe runs in its label's arithmetic; where no TF32 exists, the framework's default is fp32-ieee.
    for probe in precision.probes:
        if probe.reads_as not in traits.arithmetic:
            yield finding(
                "precision", operation=probe.operation, precision=label, reads_as=probe.reads_as[:80]
            )
    outputs = {name.removeprefix("torch."): count for name, count in precision.output_dtypes.items()}
    expected = traits.outputs
    counted = sum(outputs.values())
    # A half-precision model keeps some layers in fp32, but none in the other 16-bit type; an fp32 model has
    # none in half.
    needed = counted if expected == "float32" else counted / 2
    other_half = {"float16", "bfloat16"} - {expected}
    if counted and (outputs.get(expected, 0) < needed or other_half & outputs.keys()):
        seen = tuple(f"{count} {name[:40]}" for name, count in sorted(outputs.items()))
        yield finding("precision", precision=label, outputs=seen)
    parameters = {name.removeprefix("torch.") for name in precision.parameter_dtypes}
    if parameters and traits.weights not in parameters:
        yield finding(
            "precision", precision=label, parameters=tuple(name[:40] for name in sorted(parameters))
        )


def loss_scale_findings(scale: LossScale, steps: int) -> Findings:
    """Name a dynamic scale that skips more than 1 % of the steps, and one that failed: it ends below 1.

    The steps that its search for a first level may skip are left out of that share.
    """
    if not 1 <= scale.last < math.inf:
        yield finding("loss-scale", "invalid", last=scale.last)
    elif scale.skipped_steps - _halvings_at_start(scale) > SKIPPED_LIMIT * steps:
        yield finding("loss-scale", skipped_steps=scale.skipped_steps, steps=steps)


def _halvings_at_start(scale: LossScale) -> int:
    first = scale.first
    return max(HALVINGS_AT_START, math.ceil(math.log2(first))) if 1 < first < math.inf else HALVINGS_AT_START


def _quality_findings(measurement: Measurement) -> Findings:
    """Yield quality no better than guessing, or lost again, after a full-length trial on real data."""
    if not measurement.protocol.complete or measurement.data.source != "real":
        return
    qualities = [epoch.quality for epoch in measurement.epochs if epoch.quality is not None]
    if not qualities:
        return
    last = qualities[-1]
    if measurement.quality_name == "accuracy":
        classes = measurement.structure.get("classes")
        items = measurement.data.valid_items
        if classes and items and not last > _guessing_accuracy(classes, items):
            yield finding("collapsed", accuracy=last, classes=classes)
        elif not last >= max(qualities) / 2:
            yield finding("collapsed", best_accuracy=max(qualities), accuracy=last)
    vocabulary = measurement.structure.get("vocabulary")
    if measurement.quality_name == "perplexity" and vocabulary and not last < vocabulary:
        yield finding("collapsed", perplexity=last, words=vocabulary)


def _guessing_accuracy(classes: int, items: int) -> float:
    """Return the accuracy that guessing stays below: p + 4·√(p(1 − p)/items), p = 1/classes."""
    chance = 1 / classes
    return chance + 4 * math.sqrt(chance * (1 - chance) / items)


def _data_findings(measurement: Measurement) -> Findings:
    distinct, looked_at = measurement.data.distinct_batches, measurement.data.looked_at_batches
    if distinct == 1 and looked_at != 1:
        yield finding("constant-batch")
    elif distinct is not None and distinct < min(DISTINCT_BATCHES, looked_at or DISTINCT_BATCHES):
        yield finding("constant-batch", "warn", distinct_batches=distinct)
    if measurement.data.source == "generated":
        yield finding("generated-data")


def _clock_findings(measurement: Measurement) -> Findings:
    total, window = float(microseconds(measurement.step_us).sum()) / 1e6, measurement.window.seconds
    if total > 1.02 * window:
        yield finding("clock", steps_seconds=total, window_seconds=window)
    elif measurement.step_clock == "device":
        tolerance = max(CLOCKS_APART * window, SEGMENT_CLOCKS_APART_SECONDS * len(measurement.epochs))
        if measurement.step_us.count and abs(total - window) > tolerance:
            yield finding("device-clock", steps_seconds=total, window_seconds=window)


def _program_findings(program: ProgramRun) -> Findings:
    """Yield what a foreign program's run is worth: its own clock, its own source."""
    if program.figure == "run":
        yield finding("own-window")
    if program.clock_ratio is not None and abs(program.clock_ratio - 1) > PROGRAM_CLOCK_APART:
        yield finding("program-clock", ratio=program.clock_ratio)
    if program.changed_itself:
        yield finding("program-changed")
    if program.processes_left:
        yield finding("program-left", processes=program.processes_left)


def _steady_findings(measurement: Measurement, steady: Steady) -> Findings:
    if steady.kind == "unproven":
        yield _short_window_finding(measurement, steady)
    if steady.kind == "none":
        yield finding("no-steady-state")
    if steady.kind == "slowdown":
        yield finding("slowdown", first_step=steady.first_step)


def _epoch_findings(measurement: Measurement) -> Findings:
    """Yield an epoch that ended by itself with fewer steps than its loader's length promises.

    That a limit ended the last one is no fault.
    """
    length = measurement.protocol.steps_per_epoch
    limited = measurement.protocol.stopped_by not in ("protocol", "epochs")
    ended = measurement.epochs[:-1] if limited else measurement.epochs
    for epoch in ended:
        missing = 1 - epoch.steps / length
        if missing >= SHORT_EPOCH:
            values: dict[str, FindingValue] = {
                "epoch": epoch.index,
                "steps": epoch.steps,
                "promised_steps": length,
            }
            yield finding("short-epoch", "invalid" if missing >= FALSE_LENGTH else "warn", **values)
            return


def _short_window_finding(measurement: Measurement, steady: Steady) -> Finding:
    series = measurement.step_us
    # A level at the end that did not hold has no slope.
    ended = steady.changes[-1:] if steady.slope_error is None else ()
    start = max((steady.first_step, *ended))
    place = start // series.steps_per_value
    before, values = series.values()[:place], series.values()[place:]
    seconds, steps = sum(values) / 1e6, len(values) * series.steps_per_value
    length: dict[str, FindingValue] = {"level_seconds": seconds, "level_steps": steps}
    if seconds < LEAST_SECONDS or steps < LEAST_STEPS or (steady.slope_error is None and not before):
        return finding("short-window", **length, least_seconds=LEAST_SECONDS, least_steps=LEAST_STEPS)
    if steady.slope_error is None:
        share, change = sum(values) / sum(series.values()), fmean(values) / fmean(before) - 1
        return finding("short-window", **length, level_share=share, change=change)
    if steady.mean_error is not None and steady.mean_error > MEAN_ERROR:
        return finding("short-window", **length, mean_error=steady.mean_error)
    return finding("short-window", **length, drift=steady.slope or 0.0, drift_error=steady.slope_error)


def _stall_findings(measurement: Measurement, steady: Steady) -> Findings:
    """Yield what stood still: in the steps that count, outside of all, in validations, in a start of epochs.

    Time that is no step's: of a snapshot, a suspended machine, a disk that stalled. Rare slow steps are set
    aside where a window is judged, and paid for in its figures, so what they add is named.
    """
    series = measurement.step_us
    if not any(series.values()):
        return
    cut = steady.first_step // series.steps_per_value
    stalled = sum(_stalled_seconds(measurement)[cut:])
    yield from _stall_finding(stalled, float(microseconds(series)[cut:].sum()) / 1e6, stalled_seconds=stalled)
    outside = _outside_seconds(measurement)
    yield from _stall_finding(outside, measurement.window.seconds, outside_seconds=outside)
    excess, validated = _validation_excess(measurement)
    yield from _stall_finding(excess, measurement.window.seconds + validated, valid_seconds=excess)
    if cut and any(epoch.complete for epoch in measurement.epochs):
        yield from _start_findings(measurement, cut)


def _stall_finding(seconds: float, of_seconds: float, **data: FindingValue) -> Findings:
    share = seconds / of_seconds if of_seconds else 0.0
    if share >= STALL_NAMED:
        yield finding("stalled", "unproven" if share >= STALL_UNPROVEN else "warn", share=share, **data)


def _stalled_seconds(measurement: Measurement) -> list[float]:
    """Return the seconds of each slow outlier beyond the steps around it, and beyond an epoch's start."""
    series, epochs = measurement.step_us, measurement.epochs
    stalled: list[float] = stalled_seconds(series).tolist()
    starts = (
        start // series.steps_per_value for start in accumulate((each.steps for each in epochs), initial=0)
    )
    firsts = {start for start in starts if start < series.count}
    usual = median_low(stalled[first] for first in firsts) if len(firsts) >= EPOCHS_ALIKE else 0.0
    for first in firsts:
        stalled[first] = max(0.0, stalled[first] - usual)
    return stalled


def _outside_seconds(measurement: Measurement) -> float:
    """Return the seconds of the window in no step; 0 for a host that runs ahead of its GPU."""
    if measurement.step_clock == "host" and measurement.device.kind != "cpu":
        return 0.0
    series, window = measurement.step_us, measurement.window
    marked = series.count * series.steps_per_value
    return window.seconds - sum(series.values()) / 1e6 * max(1.0, window.steps / marked)


def validation_times(measurement: Measurement) -> list[tuple[float, int]]:
    """Return seconds and batches of each validation that ran."""
    whole = measurement.protocol.valid_batches
    return [
        (epoch.valid_seconds, batches)
        for epoch in measurement.epochs
        if epoch.valid_seconds is not None
        and (batches := whole if epoch.valid_batches is None else epoch.valid_batches)
    ]


def _validation_excess(measurement: Measurement) -> tuple[float, float]:
    """Return seconds of validations beyond the usual, and of all; no sample takes longer than in training."""
    whole, window = measurement.protocol.valid_batches, measurement.window
    ran = validation_times(measurement)
    if not ran:
        return 0.0, 0.0
    usual = [median_low(seconds / batches for seconds, batches in ran)]
    if measurement.data.valid_items and whole:
        usual.append(window.seconds / window.samples * measurement.data.valid_items / whole)
    excess = sum(max(0.0, seconds - min(usual) * batches) for seconds, batches in ran)
    return excess, sum(seconds for seconds, _ in ran)


def _start_findings(measurement: Measurement, cut: int) -> Findings:
    """Yield a slow start, which no throughput holds and the seconds of whole epochs do."""
    values, first = measurement.step_us.values(), cut * measurement.step_us.steps_per_value
    slower = (sum(values[:cut]) - cut * median(values)) / 1e6
    share = slower / measurement.window.seconds
    if share >= STALL_NAMED:
        yield finding("stalled", share=share, first_steps=first, stalled_seconds=slower)
