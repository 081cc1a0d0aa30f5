"""Figures that cannot be are kept out of charts. Every record here is constructed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.record import Record, Spread, Trace
from harness.record.cards import load_cards
from harness.summary.checks import cause_name
from harness.summary.statistics import METHOD, judge_trial
from report import frame, suspect
from tests.helpers import ROOT
from tests.helpers import records_builder as build
from tests.helpers.watched_records import card, record, telemetry

CARDS = load_cards(ROOT)
A100 = "NVIDIA A100-SXM4-40GB"


def rows(*records: Record) -> tuple[frame.Row, ...]:
    named = [(f"{at}.json", found) for at, found in enumerate(records)]
    return frame.rows(named, judged=judge_trial, method=METHOD)


def flagged(*found: frame.Row) -> list[set[str]]:
    return [{cause_name(cause) for cause in row.causes} for row in suspect.marked(found, CARDS)]


def on_a100(flops: float, **changes: Any) -> frame.Row:
    """A row of 64 samples in 0.3 s, which is 213 a second, of so many operations each."""
    (row,) = rows(record(**changes))
    return replace(row, device=A100, flops_per_sample=flops)


def test_a_share_of_the_peak_is_flops_per_sample_times_samples_per_second_over_the_label_s_peak():
    row = on_a100(24.3e9)
    throughput = row.metrics.throughput
    assert suspect.peak_share(row, CARDS) == pytest.approx(24.3e9 * throughput / 19.5e12)
    unknown = [replace(row, device="a card that nobody listed"), replace(row, flops_per_sample=None)]
    assert [suspect.peak_share(one, CARDS) for one in unknown] == [None, None]


def test_more_than_its_peak_is_flagged_and_the_trial_is_no_result_any_more():
    fine, beyond = on_a100(24.3e9), on_a100(100e9)
    assert flagged(fine, beyond) == [set(), {"above-peak"}]
    assert [row.verdict for row in suspect.marked((fine, beyond), CARDS)] == ["valid", "invalid"]


def test_two_devices_of_more_than_twice_one_are_flagged():
    single = on_a100(1e9)

    def pair(gain: float) -> frame.Row:
        metrics = replace(single.metrics, throughput=gain * single.metrics.throughput)
        return replace(single, key=replace(single.key, gpus=2), card=f"2 × {A100}", metrics=metrics)

    assert flagged(single, pair(1.9), pair(2.3)) == [set(), set(), {"above-linear"}]


def test_a_throughput_ten_times_that_of_other_sessions_is_flagged_and_another_machine_s_cpu_is_not():
    slow = [on_a100(1e9, session=f"2026020{day}-aaaaaa") for day in (1, 2)]
    fast = on_a100(1e9)
    fast = replace(fast, metrics=replace(fast.metrics, throughput=11 * fast.metrics.throughput))
    assert flagged(*slow, fast) == [set(), set(), {"jump"}]
    cpu = fast.environment.model_copy(update={"device": "cpu"})
    at_home = [
        replace(row, environment=cpu, machine=mark) for row, mark in zip([*slow, fast], "aab", strict=True)
    ]
    assert flagged(*at_home) == [set(), set(), set()]


def test_a_device_that_hardly_worked_is_flagged():
    idle = Spread(mean=Trace.of([2.0] * 91, 0.1))
    (row,) = rows(record(seen=telemetry(card(utilization_percent=idle))))
    assert flagged(row) == [{"idle-device"}]


def test_a_row_without_figures_is_left_as_it_is():
    asked = build.trial(build.CIFAR, "fp32-ieee", 1)
    failed = build.record(
        asked, None, on=build.machine("Constructed", label="x"), failure=build.out_of_memory()
    )
    found = rows(failed)
    assert suspect.marked(found, CARDS) == found


def test_a_hot_start_is_a_warning_of_its_row():
    starts = [
        record(repeat=at, seen=telemetry(card(start_temperature_c=found)))
        for at, found in enumerate((60.0, 61.0, 70.0), start=1)
    ]
    assert [row.verdict for row in rows(*starts)] == ["valid", "valid", "warn"]
