from __future__ import annotations

import math

import pytest

from report.compare.sides import TwinRuns, stack_ratio
from tests.helpers.purposes import analysis_of


def test_what_an_hour_does_to_both_trials_of_a_pair_cancels():
    twins = [TwinRuns(at, 100.0 * hour, 125.0 * hour) for at, hour in enumerate((1.0, 0.5, 2.0, 1.1))]
    ratio = stack_ratio(twins)
    assert ratio is not None
    assert (ratio.low, ratio.estimate, ratio.high) == pytest.approx((0.8, 0.8, 0.8))
    assert stack_ratio(twins[:1]) is None


def test_the_range_is_student_s_t_of_the_pairs_log_ratios():
    logs = (0.02, 0.05, 0.03, 0.06)
    ratio = stack_ratio([TwinRuns(at, math.exp(log), 1.0) for at, log in enumerate(logs)])
    assert ratio is not None
    # mean 0.04, standard deviation 0.018257, t of 3 degrees 3.18245
    reach = 3.18245 * 0.0182574 / 2
    assert (math.log(ratio.low), math.log(ratio.high)) == pytest.approx(
        (0.04 - reach, 0.04 + reach), abs=1e-6
    )


def test_of_two_stacks_each_work_is_slower_equal_or_failed_and_what_moved_is_listed():
    comparison = analysis_of("two-stacks").stacks
    assert comparison is not None and comparison.asked == ("torch==2.12.1",)
    verdicts = {(work.key.model, work.key.precision): work.verdict for work in comparison.works}
    assert verdicts["resnet50", "fp32-ieee"] == "slower"
    assert sorted(verdicts.values()) == ["equal", "failed", "slower"]
    assert comparison.moved == (("torch", "2.13.0", "2.12.1"),)
    assert [work.failed for work in comparison.works if any(work.failed)] == [((), ("out-of-memory",))]
    assert all(work.ratio is None or work.ratio.comparisons == 2 for work in comparison.works)


def test_the_second_stack_stands_in_no_other_comparison():
    analysis = analysis_of("two-stacks")
    assert {trial.record.trial.asked.lock_sha256 for cell in analysis.cells for trial in cell.trials} == {
        "a" * 64
    }
    assert len(analysis.own) == 33
