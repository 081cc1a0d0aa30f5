"""Figures that cannot be are invalid with the reason, so that no chart shows them as results."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from operator import add
from statistics import median

from harness.record import Finding, Measurement, finding
from harness.record.published.cards import Card, find
from harness.summary import contradictions
from harness.summary.device_checks import used_cards
from report.trials.ceilings import (
    ABOVE,
    ALGORITHM,
    GEMM,
    Devices,
    all_reduce_runs,
    ceiling_runs,
    device_of,
    devices_of,
    least_seconds,
    peak_of,
    share,
)
from report.trials.key import Key, grouped_by, without
from report.trials.trial import TrialResult, identity_of

JUMP = 10.0
IDLE_SHARE = 0.05
"""A device that works for less of the time than this is not what was measured."""

LINEAR_SLACK = 0.05
"""Superlinear scaling by more than this is not explained by caches and scatter."""


_FORMS = re.compile(r"SXM|NVL|PCIE|OAM", re.IGNORECASE)
"""How cards of one name are built in, which decides their clocks, their power and what joins them."""


def checked(trials: Sequence[TrialResult], cards: Sequence[Card]) -> tuple[TrialResult, ...]:
    """The same trials in the same order; what cannot be is invalid, and a finding says why."""
    among_repeats = _marked(trials, map(add, repeat_flags(trials), copy_flags(trials)))
    too_bad = _marked(among_repeats, trial_flags(among_repeats, cards))
    return _marked(too_bad, too_good(too_bad))


def _marked(trials: Sequence[TrialResult], flagged: Iterable[Sequence[Finding]]) -> tuple[TrialResult, ...]:
    marked = zip(trials, flagged, strict=True)
    return tuple(trial.with_findings(*flags) if flags else trial for trial, flags in marked)


def repeat_flags(trials: Sequence[TrialResult]) -> list[tuple[Finding, ...]]:
    """Each trial's flag where its throughput is ten times off its repeats', of which two are known."""
    cells = grouped_by(trials, identity_of)
    flagged = []
    for trial in trials:
        repeats = [repeat for repeat in cells[identity_of(trial)] if repeat is not trial]
        others = [rate for repeat in repeats if (rate := repeat.samples_per_second) is not None]
        flagged.append(raised(jump(trial.samples_per_second, others) if len(others) > 1 else None))
    return flagged


def copy_flags(trials: Sequence[TrialResult]) -> list[tuple[Finding, ...]]:
    """Each trial's flag where its step times are those of an earlier one: a measurement counts once."""
    flagged: list[tuple[Finding, ...]] = [()] * len(trials)
    for copy, first in contradictions.copies([trial.record for trial in trials]):
        what = f"its step times are those of {trials[first].path}"
        flagged[copy] = (finding("contradicts-itself", what=what),)
    return flagged


def trial_flags(trials: Sequence[TrialResult], cards: Sequence[Card]) -> list[tuple[Finding, ...]]:
    """Each trial's flags, by its card's peak, one device's throughput, other sessions, its device's load."""
    believed = _believed_rates(trials)
    single = {work: median(rates for of in by.values() for rates in of) for work, by in believed.items()}
    return [_flags(trial, cards, single, believed) if trial.samples_per_second else () for trial in trials]


_Work = tuple[Key, str, str]


def _work(trial: TrialResult, key: Key | None = None) -> _Work:
    """What a throughput may be held against: the same workload on the same model of device.

    Processors of one name differ in how many cores a machine lends out: they are compared within it alone.
    """
    return key or trial.key, trial.device_model, trial.machine if trial.stack.device == "cpu" else ""


def _believed_rates(trials: Iterable[TrialResult]) -> dict[_Work, dict[str, list[float]]]:
    """The throughputs of each workload by session; invalid trials are left out."""
    believed: dict[_Work, dict[str, list[float]]] = {}
    for trial in trials:
        rate = trial.samples_per_second
        if trial.verdict != "invalid" and rate is not None:
            believed.setdefault(_work(trial), {}).setdefault(trial.session, []).append(rate)
    return believed


def _flags(
    trial: TrialResult,
    cards: Sequence[Card],
    single: Mapping[_Work, float],
    believed: Mapping[_Work, Mapping[str, Sequence[float]]],
) -> tuple[Finding, ...]:
    rate, card = trial.samples_per_second, find(trial.device_name, cards)
    sessions = believed.get(_work(trial), {}).items()
    elsewhere = [other for session, rates in sessions if session != trial.session for other in rates]
    return raised(
        _above_highest_clock(trial, peak_share(trial, cards), cards),
        above_linear(single.get(_work(trial, without(trial.key, "gpus"))), rate, trial.key.gpus),
        jump(rate, elsewhere) if len(elsewhere) > 1 else None,
        idle_device(trial.busy_share),
        other_form(trial.machine_label, f"{trial.device_name} ({card.form})" if card else trial.device_name),
        *contradictory(trial),
    )


def contradictory(trial: TrialResult) -> tuple[Finding, ...]:
    """What a record says against itself: no run of ours wrote it as it stands."""
    return tuple(finding("contradicts-itself", what=what) for what in contradictions.within(trial.record))


def _above_highest_clock(
    trial: TrialResult, peak_share: float | None, cards: Sequence[Card]
) -> Finding | None:
    """A peak on paper is at the reference boost clock; a card does more where its clock goes higher."""
    card = find(trial.device_name, cards) if peak_share is not None and peak_share > 1 else None
    highest_mhz = max((gpu.clock_max_mhz or 0 for gpu in used_cards(trial.record)), default=0)
    if card is None or peak_share is None or highest_mhz <= card.boost_mhz:
        return above_peak(peak_share)
    return above_peak(peak_share * card.boost_mhz / highest_mhz, highest_mhz=highest_mhz)


def peak_share(trial: TrialResult, cards: Sequence[Card]) -> float | None:
    """Model FLOP utilisation: FLOPs per sample · samples per second ÷ the devices' dense peak, 0 to 1.

    Null where the card, its peak in the label's arithmetic, or the operations are not known.
    """
    measured, rate = trial.record.measurement, trial.samples_per_second
    if measured is None or measured.flops.per_sample is None or rate is None:
        return None
    peak = peak_of(trial.device_name, trial.key.gpus, measured.precision.label, cards)
    return share(measured.flops.per_sample * rate, peak)


def above_peak(share: float | None, **clock: int) -> Finding | None:
    """A share above 1 of a card's dense peak, by the highest clock where that is given."""
    if share is None or share <= 1:
        return None
    return finding("above-peak", share=share, **clock)


def above_linear(single: float | None, several: float | None, devices: int) -> Finding | None:
    """A throughput on several devices of more than their number times that of one, in the same unit."""
    if single is None or several is None or single <= 0 or devices < 2:
        return None
    gain = several / single
    if gain <= devices * (1 + LINEAR_SLACK):
        return None
    return finding("above-linear", devices=devices, gain=gain)


def jump(value: float | None, others: Sequence[float]) -> Finding | None:
    """A figure ten times above or below the median of the comparable ones."""
    if value is None or not others:
        return None
    middle = median(others)
    if not (value > 0 and middle > 0):
        return None
    factor = value / middle
    if 1 / JUMP < factor < JUMP:
        return None
    if factor > 1:
        return finding("jump", factor=factor, others=len(others))
    return finding("jump", divisor=1 / factor, others=len(others))


def other_form(label: str, card: str) -> Finding | None:
    """A label that names another form (SXM, NVL, PCIe, OAM) than the card that it stands for."""
    labelled, known = ({form.upper() for form in _FORMS.findall(name)} for name in (label, card))
    if not labelled or not known or labelled & known:
        return None
    return finding("other-form", machine=label[:100], forms=tuple(sorted(labelled)), card=card[:200])


def idle_device(busy_share: float | None) -> Finding | None:
    """A device that hardly worked while it was said to train; the share is of the window's time, 0 to 1."""
    if busy_share is None or math.isnan(busy_share) or busy_share >= IDLE_SHARE:
        return None
    return finding("idle-device", busy_share=busy_share)


def raised(*flags: Finding | None) -> tuple[Finding, ...]:
    """Those that were raised."""
    return tuple(flag for flag in flags if flag is not None)


def too_good(trials: Sequence[TrialResult]) -> list[tuple[Finding, ...]]:
    """Each trial's flags where it is faster than its device, or their network, was ever seen to be."""
    runs = ceiling_runs(trial.record for trial in trials)
    shared = all_reduce_runs(trial.record for trial in trials)
    return [raised(_above_ceiling(trial, runs), _above_all_reduce(trial, shared)) for trial in trials]


def _above_ceiling(
    trial: TrialResult, runs: Mapping[tuple[str, str], Mapping[str, Sequence[float]]]
) -> Finding | None:
    """Operations a second above the fastest of the ceiling's own runs, by more than `ABOVE`.

    Bytes are not asked: what is counted of them is more than the memory moves.
    """
    measured, device = trial.record.measurement, device_of(trial.record)
    rate = trial.samples_per_second
    if measured is None or device is None or trial.is_ceiling or rate is None:
        return None
    values = runs.get(device, {}).get(GEMM.get(measured.precision.label, ""), ())
    if not values or measured.flops.per_sample is None:
        return None
    share = measured.flops.per_sample * rate / (max(values) * 1e12 * measured.device.count)
    if share <= ABOVE:
        return None
    return finding("above-ceiling", share=share, runs=len(values))


def _above_all_reduce(trial: TrialResult, runs: Mapping[Devices, Sequence[Measurement]]) -> Finding | None:
    """A step shorter than the sum of its gradients in the fastest of all runs, by more than `ABOVE`."""
    measured, devices = trial.record.measurement, devices_of(trial.record)
    rate = trial.samples_per_second
    if measured is None or devices is None or rate is None or devices not in runs:
        return None
    fastest = max(one.ceilings[ALGORITHM] for one in runs[devices]) * 1e9
    least = least_seconds(measured, fastest)
    step_seconds = measured.samples_per_step / rate
    if least is None or least <= ABOVE * step_seconds:
        return None
    return finding("above-ceiling", step_seconds=step_seconds, least_seconds=least, runs=len(runs[devices]))
