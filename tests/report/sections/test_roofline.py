"""The roofline and its table: where works, roofs and slopes stand, and what is said of unknown limits."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.record import Flops, Record
from harness.record.cards import load_cards
from report.roofline import HEIGHT, LEFT, RIGHT, TOP, Point, Roof, Slope, drawing, rate
from report.sections.roofline import limits
from report.trials.table import trials_of
from report.trials.trial import Trial
from tests.helpers import ROOT
from tests.helpers.records_builder import CIFAR, LM, machine, series_of
from tests.helpers.trial_tables import table

CARDS = load_cards(ROOT)
H100 = "NVIDIA H100 80GB HBM3"
RATES = st.floats(min_value=1e6, max_value=1e16)


def drawn(points: list[Point], roofs: list[Roof], slopes: list[Slope]) -> ElementTree.Element:
    return ElementTree.fromstring(drawing("r", "Roofline", "described", points, roofs, slopes))


def coordinates(root: ElementTree.Element, kind: str) -> list[tuple[float, ...]]:
    lines = [line for line in root.iter() if line.tag.endswith("line") and line.get("class") == kind]
    return [tuple(float(line.get(name, "nan")) for name in ("x1", "y1", "x2", "y2")) for line in lines]


@given(
    st.lists(st.tuples(st.floats(min_value=1e-3, max_value=1e5), RATES), min_size=1, max_size=6),
    RATES,
    st.floats(min_value=1e8, max_value=1e13),
)
def test_everything_lies_inside_the_axes_and_the_slope_meets_its_roof(points, roof, slope):
    root = drawn(
        [Point("a work", "amp-bf16", intensity, speed) for intensity, speed in points],
        [Roof("bf16, measured", "pure-bf16", roof, True)],
        [Slope(slope, True)],
    )
    ((x1, y1, x2, y2),) = coordinates(root, "one")
    ((begin, level, end, _),) = coordinates(root, "pure curve")
    assert LEFT <= x1 <= x2 <= RIGHT and TOP <= y2 <= y1 <= HEIGHT
    assert (x2, y2) == (pytest.approx(begin, abs=0.2), pytest.approx(level, abs=0.2))
    assert end == RIGHT
    assert sum(tag.get("class") == "mixed" for tag in root.iter()) == 2 * len(points)


def test_what_is_on_paper_is_dashed_and_what_was_measured_is_not():
    roofs = [Roof("paper", "amp-bf16", 1e15, False), Roof("measured", "amp-bf16", 8e14, True)]
    root = drawn([Point("a", "amp-bf16", 10, 1e14)], roofs, [Slope(3e12, True), Slope(3.4e12, False)])
    dashed = {line.get("y1") for line in root.iter() if line.get("stroke-dasharray")}
    assert len(dashed) == 2
    assert len(coordinates(root, "mixed curve")) == 2


@pytest.mark.parametrize(
    ("value", "said"),
    [(1e12, "1 TFLOP/s"), (9.996e11, "1 TFLOP/s"), (2.5e8, "250 MFLOP/s"), (12, "12 FLOP/s")],
)
def test_a_rate_has_the_prefix_that_leaves_few_digits(value, said):
    assert rate(value, "FLOP/s") == said


def records(kind: dict[str, Any], precision: str, card: str, **flops: Any) -> list[Record]:
    """Constructed trials of half a million samples a second or so, whose device kept its own time."""
    found = series_of(kind, precision, 64 / 5e5, on=machine(card, label="one"), card=card)
    return [
        one.model_copy(
            update={
                "measurement": one.measurement.model_copy(update={"flops": Flops(**flops)}),
                "summary": one.summary.model_copy(update={"host_bound_share": 0.0, "input_share": 0.0}),
            }
        )
        for one in found
        if one.measurement and one.summary
    ]


def ceiling(card: str, **figures: float) -> Record:
    one = records(LM, "fp32-ieee", card)[0]
    measurement = one.measurement.model_copy(update={"workload": "ceilings", "ceilings": figures})
    return one.model_copy(update={"measurement": measurement})


def trials(*shelf: Record) -> tuple[Trial, ...]:
    return trials_of(table(shelf))


MEASURED = {"gemm_bf16_tflops": 700.0, "copy_gb_per_second": 2800.0}


def test_a_device_has_a_drawing_and_a_table_whose_bound_is_the_nearer_limit():
    shelf = [
        *records(CIFAR, "amp-bf16", H100, per_sample=840e6, bytes_per_sample=1e6),
        *records(LM, "amp-bf16", H100, per_sample=44e6, bytes_per_sample=3e6),
    ]
    (found,) = limits(trials(*shelf, ceiling(H100, **MEASURED)), CARDS, "roof")
    (images, words) = found.table.rows
    assert images[-1] == "compute, 60 %"
    assert words[-1] == "memory, 54 %"
    assert images[2] == "422 TFLOP/s"
    assert found.notes == ()
    assert found.panel is not None
    said = re.findall(r">([^<]+, (?:measured|on paper))<", found.panel.drawing)
    assert said == ["fp32-ieee, on paper", "tf32, on paper", "fp16 and bf16, on paper", "bf16, measured"]
    assert "2 works under" in found.panel.alt


def test_work_above_a_measured_ceiling_says_that_it_was_none_and_is_not_bound_by_it():
    shelf = records(CIFAR, "amp-bf16", H100, per_sample=840e6, bytes_per_sample=1e6)
    (found,) = limits(trials(*shelf, ceiling(H100, gemm_bf16_tflops=140.0)), CARDS, "roof")
    assert found.table.rows[0][4] == "301 %" and found.table.rows[0][-1] == "unknown"
    assert "reaches 301% of the fastest product that was measured here" in found.notes[1]
    assert "is unhealthy" in found.notes[0]


def test_without_measured_ceilings_the_page_says_how_to_measure_them():
    (found,) = limits(
        trials(*records(CIFAR, "amp-bf16", H100, per_sample=840e6, bytes_per_sample=1e6)), CARDS, "r"
    )
    assert "invoke run --plan ceilings" in found.notes[0]
    assert found.table.rows[0][4] == "–" and found.table.rows[0][3] == "43 %"
    assert found.panel is not None and "measured</text>" not in found.panel.drawing


def test_an_unknown_card_without_ceilings_has_no_roofs_and_so_no_drawing():
    (found,) = limits(
        trials(*records(LM, "amp-bf16", "NVIDIA H100 NVL", per_sample=1e6, bytes_per_sample=1e5)), CARDS, "r"
    )
    assert found.panel is None
    assert found.table.rows[0][3:6] == ("–", "–", "–")


def test_every_trial_of_a_device_with_ceilings_names_its_bound():
    shelf = [*records(LM, "amp-bf16", H100, per_sample=44e6, bytes_per_sample=3e6), ceiling(H100, **MEASURED)]
    for trial in trials(*shelf):
        by_memory = "of the memory bandwidth measured on this device" in trial.bottleneck
        assert by_memory != trial.is_ceiling
