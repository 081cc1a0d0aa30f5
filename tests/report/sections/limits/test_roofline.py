"""The roofline and its table: where works, roofs and slopes stand, and what is said of unknown limits."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st

from harness.record import Flops, Record
from harness.record.cards import load_cards
from report.charts.roofline import Roofline, rate
from report.sections.limits.roofline import limits
from report.trials.table import trials_of
from report.trials.trial import Trial
from tests.helpers import ROOT
from tests.helpers.records_builder import CIFAR, LM, machine, series_of
from tests.helpers.trial_tables import table

CARDS = load_cards(ROOT)
H100 = "NVIDIA H100 80GB HBM3"
RATES = st.floats(min_value=1e6, max_value=1e16)


@pytest.mark.parametrize(
    ("value", "words"),
    [(1e12, "1 TFLOP/s"), (9.996e11, "1 TFLOP/s"), (2.5e8, "250 MFLOP/s"), (12, "12 FLOP/s")],
)
def test_a_rate_has_the_prefix_that_leaves_few_digits(value, words):
    assert rate(value, "FLOP/s") == words


def records(kind: dict[str, Any], precision: str, card: str, **flops: Any) -> list[Record]:
    """Constructed trials of half a million samples a second or so, whose device kept its own time."""
    made = series_of(kind, precision, 64 / 5e5, on=machine(card, label="one"), card=card)
    return [
        record.model_copy(
            update={
                "measurement": record.measurement.model_copy(update={"flops": Flops(**flops)}),
                "summary": record.summary.model_copy(update={"host_bound_share": 0.0, "input_share": 0.0}),
            }
        )
        for record in made
        if record.measurement and record.summary
    ]


def ceiling(card: str, **figures: float) -> Record:
    record = records(LM, "fp32-ieee", card)[0]
    measurement = record.measurement.model_copy(update={"workload": "ceilings", "ceilings": figures})
    return record.model_copy(update={"measurement": measurement})


def trials(*results: Record) -> tuple[Trial, ...]:
    return trials_of(table(results))


MEASURED = {"gemm_bf16_tflops": 700.0, "copy_gb_per_second": 2800.0}


def test_a_device_has_a_drawing_and_a_table_whose_bound_is_the_nearer_limit():
    results = [
        *records(CIFAR, "amp-bf16", H100, per_sample=840e6, bytes_per_sample=1e6),
        *records(LM, "amp-bf16", H100, per_sample=44e6, bytes_per_sample=3e6),
    ]
    (shown,) = limits(trials(*results, ceiling(H100, **MEASURED)), CARDS, "roof")
    (images, words) = shown.table.rows
    assert images[-1] == "compute, 60 %"
    assert words[-1] == "memory, 54 %"
    assert images[2] == "422 TFLOP/s"
    assert shown.notes == ()
    assert shown.panel is not None
    assert isinstance(shown.panel.chart, Roofline)
    labels = [roof.label for roof in shown.panel.chart.roofs]
    assert labels == ["fp32-ieee, on paper", "tf32, on paper", "fp16 and bf16, on paper", "bf16, measured"]
    assert "2 works under" in shown.panel.alt


def test_work_above_a_measured_ceiling_says_that_it_was_none_and_is_not_bound_by_it():
    results = records(CIFAR, "amp-bf16", H100, per_sample=840e6, bytes_per_sample=1e6)
    (shown,) = limits(trials(*results, ceiling(H100, gemm_bf16_tflops=140.0)), CARDS, "roof")
    assert shown.table.rows[0][4] == "301 %" and shown.table.rows[0][-1] == "unknown"
    assert "reaches 301% of the fastest product that was measured here" in shown.notes[1]
    assert "is unhealthy" in shown.notes[0]


def test_without_measured_ceilings_the_page_says_how_to_measure_them():
    (shown,) = limits(
        trials(*records(CIFAR, "amp-bf16", H100, per_sample=840e6, bytes_per_sample=1e6)), CARDS, "r"
    )
    assert "invoke run --plan ceilings" in shown.notes[0]
    assert shown.table.rows[0][4] == "–" and shown.table.rows[0][3] == "43 %"
    assert shown.panel is not None and isinstance(shown.panel.chart, Roofline)
    assert not any(roof.measured for roof in shown.panel.chart.roofs)


def test_an_unknown_card_without_ceilings_has_no_roofs_and_so_no_drawing():
    (shown,) = limits(
        trials(*records(LM, "amp-bf16", "NVIDIA H100 NVL", per_sample=1e6, bytes_per_sample=1e5)), CARDS, "r"
    )
    assert shown.panel is None
    assert shown.table.rows[0][3:6] == ("–", "–", "–")


def test_every_trial_of_a_device_with_ceilings_names_its_bound():
    results = [
        *records(LM, "amp-bf16", H100, per_sample=44e6, bytes_per_sample=3e6),
        ceiling(H100, **MEASURED),
    ]
    for trial in trials(*results):
        by_memory = "of the memory bandwidth measured on this device" in trial.bottleneck
        assert by_memory != trial.is_ceiling
