"""Every measurement here is constructed: windows in which something stood still for a while."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.summary.statistics import summarise
from tests.harness.summary.test_statistics import measured

STEP_US = 250_000
STEPS = 320


def quiet(steps: int = STEPS, step_us: int = STEP_US) -> list[int]:
    noise = np.random.default_rng(5).normal(size=steps)
    return [round(step_us * (1 + 0.01 * each)) for each in noise]


def with_stalls(seconds: float, places: list[int], steps: int = STEPS) -> list[int]:
    step_us = quiet(steps)
    for place in places:
        step_us[place] += round(seconds * 1e6)
    return step_us


def judged(step_us: list[int], **changed: Any) -> tuple[str, list[tuple[str, float]]]:
    """The verdict, and the severity and share of each stall that was named."""
    summary = summarise(measured(step_us=step_us, **changed))
    stalls = [found for found in summary.findings if found.name == "stalled"]
    return summary.verdict, [(found.severity, round(float(str(found.data["share"])), 3)) for found in stalls]


@pytest.mark.parametrize(
    ("seconds", "places", "share"),
    [
        (60, [100], 0.43),
        (60, [STEPS - 1], 0.43),
        (60, [3], 0.43),
        (5, [20, 90, 150, 151, 290], 0.24),
        (1, list(range(7, 300, 12)), 0.24),
        (12, [100], 0.13),
    ],
)
def test_a_window_of_which_a_tenth_stood_still_proves_no_figure(seconds, places, share):
    verdict, stalls = judged(with_stalls(seconds, places))
    assert verdict == "unproven"
    assert stalls == [("unproven", pytest.approx(share, abs=0.01))]


@pytest.mark.parametrize(("seconds", "severity"), [(1, None), (3, "warn"), (7, "warn")])
def test_a_stall_is_named_from_two_percent_of_the_window_on(seconds, severity):
    verdict, stalls = judged(with_stalls(seconds, [100]))
    assert verdict == (severity or "valid")
    assert [named for named, _ in stalls] == ([severity] if severity else [])


def test_a_stall_before_the_first_step_has_ended_is_in_no_throughput():
    summary = summarise(measured(step_us=with_stalls(60, [0])))
    assert summary.verdict == "valid"
    assert summary.throughput == pytest.approx(10 / 0.25, rel=0.01)


def test_a_start_that_whole_epochs_pay_for_is_named_and_disproves_no_throughput():
    first = {"index": 1, "steps": STEPS, "train_seconds": 140.0, "valid_seconds": 4.0}
    verdict, stalls = judged(with_stalls(60, [0]), epochs=[first], protocol={"steps_per_epoch": STEPS})
    assert (verdict, stalls) == ("warn", [("warn", pytest.approx(0.43, abs=0.01))])


def test_a_tenth_of_a_window_outside_of_all_steps_proves_no_figure():
    seconds = sum(quiet()) / 1e6
    for stop, verdict in ((0.5, "valid"), (4, "warn"), (60, "unproven")):
        on_a_cpu = {"window": {"seconds": seconds + stop}, "device": {"kind": "cpu"}}
        assert judged(quiet(), **on_a_cpu)[0] == verdict
    assert judged(quiet(), window={"seconds": seconds + 60}, step_clock="device")[0] == "unproven"


def test_a_host_that_runs_ahead_of_its_gpu_leaves_its_last_steps_unmarked_and_nothing_stood_still():
    assert judged(quiet(), window={"seconds": 140.0}) == ("valid", [])


def test_steps_that_end_together_and_the_last_of_which_are_in_no_sum_are_no_stall():
    step_us = quiet(2400)
    cpu = {"device": {"kind": "cpu"}, "steps_together": 24}
    window = {"seconds": sum(step_us) / 1e6, "steps": 2400, "samples": 24_000}
    assert judged(step_us[:-60], window=window, **cpu) == ("valid", [])


def epochs(valid: list[float], steps: int = STEPS, train_seconds: float = 80.0) -> list[dict[str, Any]]:
    return [
        {"index": index, "steps": steps, "train_seconds": train_seconds, "valid_seconds": seconds}
        for index, seconds in enumerate(valid, 1)
    ]


@pytest.mark.parametrize(
    ("valid", "stalls"),
    [
        ([4.0, 4.2, 3.9], []),
        ([4.0, 4.2, 64.0], [("unproven", 0.19)]),
        ([4.0, 12.0, 4.0], [("warn", 0.03)]),
        ([64.0, 4.0], [("unproven", 0.26)]),
    ],
)
def test_a_validation_that_stood_still_is_told_by_the_others(valid, stalls):
    series = quiet(STEPS * len(valid))
    protocol = {"steps_per_epoch": STEPS, "epochs": 30}
    data = {"valid_items": None}
    found = judged(series, epochs=epochs(valid), protocol=protocol, data=data)
    assert found == (
        stalls[0][0] if stalls else "valid",
        [(s, pytest.approx(v, abs=0.01)) for s, v in stalls],
    )


def test_a_lone_validation_takes_no_longer_for_a_sample_than_training_did():
    only = {"protocol": {"steps_per_epoch": STEPS, "valid_batches": 8}, "data": {"valid_items": 80}}
    assert judged(quiet(), epochs=epochs([1.9]), **only) == ("valid", [])
    assert judged(quiet(), epochs=epochs([62.0]), **only)[0] == "unproven"


def test_a_loader_that_starts_anew_in_each_epoch_is_part_of_the_work_and_one_that_stood_still_is_not():
    starts = list(range(0, 1600, STEPS))
    workers = {"epochs": epochs([4.0] * 5), "protocol": {"steps_per_epoch": STEPS, "epochs": 30}}
    assert judged(with_stalls(12, starts, 1600), **workers)[0] != "unproven"
    stalled = with_stalls(12, starts, 1600)
    stalled[starts[2]] += 90_000_000
    assert judged(stalled, **workers)[0] == "unproven"


@pytest.mark.parametrize(
    ("steps", "stopped_by", "found"),
    [
        ([1000, 1000, 300], "seconds", None),
        ([66, 66, 66], "seconds", "invalid"),
        ([66], "epochs", "invalid"),
        ([960, 960], "epochs", "warn"),
        ([995, 998], "epochs", None),
        ([400], "steps", None),
    ],
)
def test_an_epoch_that_ends_before_its_loader_s_length_is_found_unless_a_limit_ended_it(
    steps, stopped_by, found
):
    trained = [
        {"index": index, "steps": each, "train_seconds": each / 5, "complete": each == 1000}
        for index, each in enumerate(steps, 1)
    ]
    summary = summarise(measured(epochs=trained, protocol={"stopped_by": stopped_by}))
    severity = {cause.name: cause.severity for cause in summary.causes}
    assert severity.get("short-epoch") == found
