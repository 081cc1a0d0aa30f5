"""Figures that cannot be are invalid with the reason, so that no chart shows them as results."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from statistics import median
from typing import cast

import pandas
from pandas import DataFrame

from harness.record import Finding, Precision, finding
from harness.record.published.cards import Card, find, peak_tflops
from harness.summary import contradictions
from harness.summary.device_checks import used_cards
from report.trials.columns import IDENTITY, KEY
from report.trials.key import without
from report.trials.table import as_json, figures, row_groups, trials_of, with_trials
from report.trials.too_good import too_good
from report.trials.trial import Trial

JUMP = 10.0
IDLE_SHARE = 0.05
"""A device that works for less of the time than this is not what was measured."""

LINEAR_SLACK = 0.05
"""Superlinear scaling by more than this is not explained by caches and scatter."""


_FORMS = re.compile(r"SXM|NVL|PCIE|OAM", re.IGNORECASE)
"""How cards of one name are built in, which decides their clocks, their power and what joins them."""

WORKLOAD = (*KEY, "device_name", "home")
"""What a throughput may be held against: the same workload on the same model of device.

Processors of one name differ in how many cores a machine lends out: they are compared within it alone.
"""


def checked(table: DataFrame, cards: Sequence[Card]) -> DataFrame:
    """The same trials in the same order; what cannot be is invalid, and a finding says why."""
    among_repeats = _marked(table, repeat_flags(table))
    too_bad = _marked(among_repeats, trial_flags(among_repeats, cards))
    return _marked(too_bad, too_good(too_bad))


def _marked(table: DataFrame, flagged: Iterable[Sequence[Finding]]) -> DataFrame:
    trials = [
        trial.with_findings(*flags) if flags else trial
        for trial, flags in zip(trials_of(table), flagged, strict=True)
    ]
    return with_trials(table, trials)


def repeat_flags(table: DataFrame) -> list[tuple[Finding, ...]]:
    """Each trial's flag where its throughput is ten times off its repeats', of which two are known."""
    rates = figures(table, "samples_per_second")
    flagged: list[tuple[Finding, ...]] = [()] * len(table)
    for repeats in row_groups(table, IDENTITY):
        for place in repeats:
            others = [rate for repeat in repeats if repeat != place and (rate := rates[repeat]) is not None]
            flagged[place] = raised(jump(rates[place], others) if len(others) > 1 else None)
    return flagged


def trial_flags(table: DataFrame, cards: Sequence[Card]) -> list[tuple[Finding, ...]]:
    """Each trial's flags, by its card's peak, one device's throughput, other sessions, its device's load."""
    rates = figures(table, "samples_per_second")
    believed = [
        None if verdict == "invalid" else rate for verdict, rate in zip(table["verdict"], rates, strict=True)
    ]
    columns = zip(
        rates,
        table["gpus"],
        trials_of(table),
        peak_shares(table, cards),
        _one_device_rates(table, believed),
        _session_jumps(table, rates, believed),
        figures(table, "busy_share"),
        strict=True,
    )
    return [
        raised(
            _above_highest_clock(trial, peak_share, cards),
            above_linear(single, rate, gpus),
            session_jump,
            idle_device(busy_share),
            other_form(trial.machine_label, _card_and_form(trial.device_name, cards)),
            *contradictory(trial),
        )
        if rate is not None
        else ()
        for rate, gpus, trial, peak_share, single, session_jump, busy_share in columns
    ]


def contradictory(trial: Trial) -> tuple[Finding, ...]:
    """What a record says against itself: no run of ours wrote it as it stands."""
    return tuple(finding("contradicts-itself", what=what) for what in contradictions.within(trial.record))


def _above_highest_clock(trial: Trial, peak_share: float | None, cards: Sequence[Card]) -> Finding | None:
    """A peak on paper is at the reference boost clock; a card does more where its clock goes higher."""
    card = find(trial.device_name, cards) if peak_share is not None and peak_share > 1 else None
    highest_mhz = max((gpu.clock_max_mhz or 0 for gpu in used_cards(trial.record)), default=0)
    if card is None or peak_share is None or highest_mhz <= card.boost_mhz:
        return above_peak(peak_share)
    return above_peak(peak_share * card.boost_mhz / highest_mhz, highest_mhz=highest_mhz)


def peak_shares(table: DataFrame, cards: Sequence[Card]) -> list[float | None]:
    """Model FLOP utilisation: FLOPs per sample · samples per second ÷ the devices' dense peak, 0 to 1.

    Null where the card, its peak in the label's arithmetic, or the operations are not known.
    """
    kinds = list(zip(table["device_name"], table["precision"], strict=True))
    peaks = {kind: _peak_tflops(*kind, cards) for kind in dict.fromkeys(kinds)}
    operations, rates = figures(table, "flops_per_sample"), figures(table, "samples_per_second")
    return [
        None if flops is None or rate is None or peak is None else flops * rate / (peak * 1e12 * gpus)
        for flops, rate, peak, gpus in zip(
            operations, rates, map(peaks.__getitem__, kinds), table["gpus"], strict=True
        )
    ]


def _peak_tflops(device_name: str, precision: str, cards: Sequence[Card]) -> float | None:
    card = find(device_name, cards)
    return peak_tflops(card, cast(Precision, precision)) if card else None


def _workloads(table: DataFrame) -> DataFrame:
    return table.assign(home=table["machine"].where(table["device_kind"] == "cpu"))[list(WORKLOAD)]


def _one_device_rates(table: DataFrame, believed: Sequence[float | None]) -> list[float | None]:
    """Of each trial, the median throughput of the same workload on one device; null where none is known."""
    rows, trials = _workloads(table), trials_of(table)
    options = pandas.array([as_json(without(trial.key, "gpus").options) for trial in trials], dtype="string")
    one = pandas.array([1] * len(rows), dtype="Int64")
    one_device = rows.assign(gpus=one, nodes=one, options=options)
    all_rows = pandas.concat([rows, one_device])
    medians: list[float | None] = [None] * len(table)
    for alike in row_groups(all_rows, WORKLOAD):
        rates = [rate for place in alike if place < len(table) and (rate := believed[place]) is not None]
        middle = median(rates) if rates else None
        for place in alike:
            if place >= len(table):
                medians[place - len(table)] = middle
    return medians


def _session_jumps(
    table: DataFrame, rates: Sequence[float | None], believed: Sequence[float | None]
) -> list[Finding | None]:
    """Each throughput against the same workload's in other sessions, where two at least are known."""
    sessions = list(table["session"])
    jumps: list[Finding | None] = [None] * len(table)
    rows = _workloads(table)
    for alike in row_groups(rows, WORKLOAD):
        for session in dict.fromkeys(sessions[place] for place in alike):
            elsewhere = [
                rate
                for place in alike
                if sessions[place] != session and (rate := believed[place]) is not None
            ]
            for place in alike:
                if sessions[place] == session and len(elsewhere) > 1:
                    jumps[place] = jump(rates[place], elsewhere)
    return jumps


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


def _card_and_form(device_name: str, cards: Sequence[Card]) -> str:
    card = find(device_name, cards)
    return f"{device_name} ({card.form})" if card else device_name


def idle_device(busy_share: float | None) -> Finding | None:
    """A device that hardly worked while it was said to train; the share is of the window's time, 0 to 1."""
    if busy_share is None or math.isnan(busy_share) or busy_share >= IDLE_SHARE:
        return None
    return finding("idle-device", busy_share=busy_share)


def raised(*flags: Finding | None) -> tuple[Finding, ...]:
    """Those that were raised."""
    return tuple(flag for flag in flags if flag is not None)
