"""How close a trial came to its device's limits: on paper, as measured, and what then bounds it."""

from __future__ import annotations

from typing import Any

import pytest

from harness.record import Flops, Record
from harness.record.published.cards import load_cards
from report.trials.ceilings import ceilings, device_of, roofline_point
from tests.helpers import ROOT
from tests.helpers.records_builder import LM, machine, series_of

CARDS = load_cards(ROOT)
H100 = "NVIDIA H100 80GB HBM3"


def trial(card: str = H100, *, precision: str = "amp-bf16", throughput: float = 1e6, **flops: Any) -> Record:
    """A constructed trial of that many samples a second."""
    (made,) = series_of(LM, precision, 0.1, on=machine(card, label="one"), card=card, repeats=1)
    assert made.measurement and made.summary
    summary = made.summary.model_copy(
        update={"throughput": throughput, "input_share": 0.01, "host_bound_share": 0.02}
    )
    measurement = made.measurement.model_copy(update={"flops": Flops(**flops)})
    return made.model_copy(update={"measurement": measurement, "summary": summary})


def ceiling(figures: dict[str, float], card: str = H100, verdict: str = "unproven") -> Record:
    """A constructed trial of the ceilings."""
    made = trial(card)
    measurement = made.measurement.model_copy(update={"ceilings": figures})
    summary = made.summary.model_copy(update={"verdict": verdict})
    return made.model_copy(update={"measurement": measurement, "summary": summary})


def reached(made: Record, measured: dict[str, float]) -> Any:
    assert made.summary
    return roofline_point(made, made.summary, CARDS, measured)


def test_utilization_is_of_the_dense_peak_in_the_label_s_arithmetic():
    made = trial(per_sample=494.7e6)
    assert reached(made, {}).utilization == pytest.approx(0.5, rel=0.001)
    assert reached(trial(per_sample=494.7e6, precision="fp32-ieee"), {}).utilization > 1


def test_a_card_that_no_table_has_has_no_utilization_and_still_a_share_of_what_was_measured_on_it():
    made = trial("NVIDIA H100 80GB HBM3 MIG 3g.40gb", per_sample=100e6)
    found = reached(made, {"gemm_bf16_tflops": 200.0})
    assert found.utilization is None
    assert found.compute_share == pytest.approx(0.5)


def test_the_framework_s_default_mixes_two_arithmetics_and_is_held_against_none():
    found = reached(trial(per_sample=1e6, precision="fp32-default"), {"gemm_fp32-ieee_tflops": 50.0})
    assert (found.utilization, found.compute_share) == (None, None)


def test_without_counted_operations_nothing_is_known():
    found = reached(trial(), {"gemm_bf16_tflops": 200.0, "copy_gb_per_second": 3000.0})
    assert (found.flops_per_second, found.compute_share, found.memory_share) == (None, None, None)
    assert found.bound.kind == "unknown"


@pytest.mark.parametrize(
    ("per_sample", "traffic", "kind", "share"),
    [(300e6, 1e6, "compute", 0.5), (60e6, 2.4e6, "memory", 0.8), (60e6, 0.15e6, "compute", 0.1)],
)
def test_a_trial_is_bound_by_the_limit_that_it_comes_closest_to(per_sample, traffic, kind, share):
    found = reached(
        trial(per_sample=per_sample, bytes_per_sample=traffic),
        {"gemm_bf16_tflops": 600.0, "copy_gb_per_second": 3000.0},
    )
    assert (found.bound.kind, found.bound.share) == (kind, pytest.approx(share))
    assert found.intensity == pytest.approx(per_sample / traffic)


def test_more_counted_bytes_than_the_memory_can_move_say_nothing_of_the_memory():
    found = reached(
        trial(per_sample=60e6, bytes_per_sample=4e6),
        {"gemm_bf16_tflops": 600.0, "copy_gb_per_second": 3000.0},
    )
    assert found.memory_share is None
    assert found.bound.kind == "unknown"


def test_the_ceilings_of_a_device_are_the_medians_of_its_own_valid_trials():
    results = [ceiling({"gemm_bf16_tflops": value}) for value in (600.0, 640.0, 610.0)]
    results += [
        ceiling({"copy_gb_per_second": 2900.0}),
        ceiling({"gemm_bf16_tflops": 9000.0}, verdict="invalid"),
    ]
    other = ceiling({"gemm_bf16_tflops": 80.0}, card="NVIDIA A10")
    found = ceilings([*results, other, trial()])
    assert found[device_of(results[0])] == {"copy_gb_per_second": 2900.0, "gemm_bf16_tflops": 610.0}
    assert found[device_of(other)] == {"gemm_bf16_tflops": 80.0}
