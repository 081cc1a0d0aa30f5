"""Figures that cannot be are invalid with the reason, so that no chart shows them as results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median

from harness.record import Finding, finding
from harness.record.published.cards import Card, find_card
from harness.summary import contradictions
from harness.summary.trial_devices import used_cards
from report.trials.ceilings import roofline_point
from report.trials.key import Key, Stack, grouped_by, without_fields
from report.trials.trial import TrialResult

LINEAR_SLACK = 0.05
"""Superlinear scaling by more than this is not explained by caches and scatter."""


def check_trials(trials: Sequence[TrialResult], cards: Sequence[Card]) -> tuple[TrialResult, ...]:
    """The same trials in the same order; what cannot be is invalid, and a finding says why."""
    once = list(trials)
    # A measurement counts once: the first record with a series of step times.
    for copy, first in contradictions.find_copies([trial.record for trial in trials]):
        what = f"its step times are those of {trials[first].path}"
        once[copy] = once[copy].with_findings(finding("contradicts-itself", what=what))
    believed = (trial for trial in once if trial.verdict != "invalid" and trial.samples_per_second)
    single = {
        work: median(trial.samples_per_second or 0.0 for trial in own)
        for work, own in grouped_by(believed, _work_key).items()
    }
    flagged = (
        (trial, _impossible_findings(trial, cards, single) if trial.samples_per_second else ())
        for trial in once
    )
    return tuple(trial.with_findings(*flags) if flags else trial for trial, flags in flagged)


_Work = tuple[Key, str, str, Stack]


def _work_key(trial: TrialResult, key: Key | None = None) -> _Work:
    """What a throughput may be held against: another host, or stack, may feed a card much faster."""
    return key or trial.key, trial.device_model, trial.machine, trial.stack


def _impossible_findings(
    trial: TrialResult, cards: Sequence[Card], single: Mapping[_Work, float]
) -> tuple[Finding, ...]:
    rate, gpus = trial.samples_per_second, trial.key.gpus
    alone = single.get(_work_key(trial, without_fields(trial.key, "gpus"))) if gpus > 1 else None
    found = (
        _above_highest_clock(trial, peak_share(trial, cards), cards),
        above_linear(alone, rate, gpus),
        *(
            finding("contradicts-itself", what=what)
            for what in contradictions.record_contradictions(trial.record)
        ),
    )
    return tuple(flag for flag in found if flag)


def _above_highest_clock(
    trial: TrialResult, peak_share: float | None, cards: Sequence[Card]
) -> Finding | None:
    """A peak on paper is at the reference boost clock; a card does more where its clock goes higher."""
    card = find_card(trial.device_name, cards) if peak_share is not None and peak_share > 1 else None
    highest_mhz = max((gpu.clock_max_mhz or 0 for gpu in used_cards(trial.record)), default=0)
    if card is None or peak_share is None or highest_mhz <= (card.boost_mhz or math.inf):
        return above_peak(peak_share)
    return above_peak(peak_share * (card.boost_mhz or 0.0) / highest_mhz, highest_mhz=highest_mhz)


def peak_share(trial: TrialResult, cards: Sequence[Card]) -> float | None:
    """Model FLOP utilisation, 0 to 1; null where the peak on paper or the operations are not known."""
    return roofline_point(trial.record, trial.summary, cards, {}).utilization if trial.summary else None


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
