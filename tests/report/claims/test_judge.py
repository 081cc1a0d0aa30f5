from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from harness.record import Claim, Limit, Record
from harness.record.cards import load_cards
from report.claims.judge import Judged, judge
from report.comparisons import cells as stats
from report.comparisons import groups
from tests.helpers import ROOT
from tests.helpers import records_builder as build
from tests.helpers.trial_tables import table

REPOSITORY = ROOT
CARDS = load_cards(REPOSITORY)
CARD = "Tesla T4"
SESSION = "20260131-aaaaaa"
ON = build.machine(CARD, label="t4", digits="a")
KIND = {**build.LM, "workload": "tensorcore_mlp", "model": "mlp"}
SECONDS = 0.1 * 1.1 * 2983 * 30


def series(precision: str = "fp32-ieee", seconds: float = 0.1, **changes: Any) -> list[Record]:
    values: dict[str, Any] = {"on": ON, "card": CARD, "session": SESSION, "batch_size": 512, "spread": 0.002}
    kind = changes.pop("kind", KIND)
    found = build.series_of(kind, precision, seconds, **{**values, **changes})
    return [
        record.model_copy(
            update={
                "measurement": record.measurement.model_copy(
                    update={"device": record.measurement.device.model_copy(update={"capability": "7.5"})}
                )
            }
        )
        for record in found
        if record.measurement
    ]


def claim(**changes: Any) -> Claim:
    side = {"card": "T4", "model": "mlp", "precision": "fp32-ieee", "batch_size": 512}
    values: dict[str, Any] = {
        "id": "constructed",
        "study": "001",
        "kind": "absolute",
        "workload": "tensorcore_mlp",
        "protocol": "published/1",
        "metric": "protocol_seconds",
        "of": side,
        "value": SECONDS,
        "unit": "s",
        "half_digit": 0.5,
        "runs": 1,
        "source": "constructed",
    }
    return Claim.model_validate({**values, **changes})


def ratio(**changes: Any) -> Claim:
    side = {"model": "mlp", "batch_size": 512}
    values = {
        "kind": "ratio",
        "of": {**side, "precision": "amp-fp16"},
        "over": {**side, "precision": "fp32-ieee"},
        "value": 2.0,
        "unit": "x",
        "half_digit": 0.005,
        "card_class": "matrix-units",
    }
    return claim(**{**values, **changes})


def verdict(asked: Claim, records: Sequence[Record]) -> Judged:
    cells = stats.cells_of(table(records))
    (found,) = judge([asked], groups.comparison_groups(cells, SESSION, baseline=None), CARDS)
    return found


def word(asked: Claim, records: Sequence[Record]) -> str:
    return verdict(asked, records).verdict.word


def because(asked: Claim, records: Sequence[Record]) -> str:
    found = verdict(asked, records)
    assert found.verdict.word == "not comparable"
    return "; ".join(found.verdict.because)


def test_a_figure_met_on_its_own_card_is_reproduced():
    assert word(claim(), series()) == "reproduced"


def test_a_figure_missed_on_its_own_card_is_not_reproduced():
    assert word(claim(value=SECONDS / 2), series()) == "not reproduced"


def test_a_difference_that_another_unit_of_the_card_may_show_is_inconclusive():
    assert word(claim(value=SECONDS / 1.1), series()) == "inconclusive"


def test_an_absolute_figure_is_not_held_against_another_card():
    other = build.machine("NVIDIA H200", label="h200", digits="b")
    assert because(claim(), series(on=other, card="NVIDIA H200")) == "card: NVIDIA H200 instead of T4"


def test_an_absolute_figure_is_not_held_against_another_stack():
    said = because(claim(stack="PyTorch 1.11, CUDA 11.4, driver 470.57.02"), series())
    assert said == "stack: PyTorch 2.13.0 instead of 1.11"


def test_an_absolute_figure_of_the_same_stack_is_judged():
    assert word(claim(stack="PyTorch 2.13.0, CUDA 13.0, driver 580.00"), series()) == "reproduced"


def test_a_ratio_holds_on_any_card_of_its_class():
    records = [*series(), *series("amp-fp16", 0.05, first_order=10)]
    found = verdict(ratio(), records)
    assert found.verdict.word == "holds here"
    assert found.measured == pytest.approx(2.0, rel=0.01)
    assert {cell.key.precision for cell in found.cells} == {"fp32-ieee", "amp-fp16"}


def test_a_ratio_is_not_held_against_a_card_outside_its_class():
    records = [*series(), *series("amp-fp16", 0.05, first_order=10)]
    assert "class" in because(ratio(card_class="no-matrix-units"), records) or "no-matrix-units" in because(
        ratio(card_class="no-matrix-units"), records
    )


def test_a_ratio_whose_second_side_is_missing_names_what_is():
    assert because(ratio(), series("amp-fp16")) == "precision: amp-fp16 instead of fp32-ieee"


def test_a_verdict_on_a_reconstructed_protocol_says_so_first_and_never_reproduced():
    records = [*series(), *series("amp-fp16", 0.05, first_order=10)]
    plain, found = (verdict(ratio(reconstructed=made), records).verdict for made in (False, True))
    assert found.because == ("protocol reconstructed", *plain.because)
    assert found.word == plain.word == "holds here"


def test_a_bound_on_a_ratio_is_judged_by_the_interval():
    records = [*series(), *series("amp-fp16", 0.05, first_order=10)]
    assert word(ratio(relation="greater", value=1.5), records) == "holds here"
    assert word(ratio(relation="less", value=1.5), records) == "does not hold here"


def test_an_order_is_judged_by_the_interval():
    order = ratio(kind="order", relation="less", value=None)
    faster = [*series(), *series("amp-fp16", 0.05, first_order=10)]
    slower = [*series(), *series("amp-fp16", 0.2, first_order=10)]
    equal = [*series(), *series("amp-fp16", 0.1, first_order=10)]
    assert [word(order, records) for records in (faster, slower, equal)] == [
        "holds here",
        "does not hold here",
        "inconclusive",
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"batch_size": 64}, "batch size: 64 instead of 512"),
        ({"mode": "host"}, "data mode: host instead of cached"),
        ({"gpus": 2}, "number of devices: 2 instead of 1"),
    ],
)
def test_every_field_that_differs_is_named(change, said):
    side = {**claim().of.model_dump(), "data_mode": "cached"}
    assert because(claim(of=side), series(**change)) == said


def test_generated_data_is_never_judged():
    assert because(claim(), series(data="generated")) == "data: generated data is never judged"


def test_a_projection_from_a_window_too_short_is_not_judged():
    short = series(complete=False, verdict="unproven", limit=Limit(steps=20))
    assert because(claim(), short) == "length: projected from a window too short to have settled"


def test_a_whole_run_is_judged_however_short_its_window():
    assert word(claim(), series(verdict="unproven")) == "reproduced"


def test_a_projection_that_misses_the_whole_run_is_not_judged():
    limit = Limit(seconds=40.0)
    whole = series(seconds=0.105, repeats=2, first_order=10)
    projected = series(complete=False, limit=limit)
    found = verdict(claim(), [*projected, *whole])
    assert not found.cells or not found.cells[0].length.projected


def test_a_quality_needs_its_epochs_and_its_pretrained_body():
    quality = claim(kind="quality", metric="perplexity", value=110.0, unit="ppl", card_class="any", epochs=30)
    assert word(quality, series()) == "holds here"
    assert because(quality.model_copy(update={"epochs": 40}), series()) == "epochs: 30 instead of 40"
    assert "random body" in because(quality, series(weights="random"))


def test_a_count_is_judged_without_a_spread():
    structure = claim(kind="structure", metric="parameters", value=7.0, unit="", card_class="any")
    records = [
        record.model_copy(
            update={"measurement": record.measurement.model_copy(update={"structure": {"parameters": 7}})}
        )
        for record in series()
        if record.measurement
    ]
    assert word(structure, records) == "holds here"
    assert because(structure, series()) == "the records do not hold the parameters"


def test_a_claim_in_words_alone_is_not_judged():
    assert because(claim(value=None, words="It is faster."), series()) == "it has no figure to judge"


def test_a_workload_without_records_is_said_not_to_be_measured():
    assert because(claim(workload="mnist_cnn"), series()) == "workload 'mnist_cnn' was not measured here"


def layouts(gain: float, **changes: Any) -> list[Record]:
    """The same work in both memory layouts; channels_last takes a `gain`th of the time."""
    plain = series("amp-fp16", layout="contiguous", **changes)
    return [*plain, *series("amp-fp16", 0.1 / gain, layout="channels_last", first_order=10, **changes)]


def table_claim(**changes: Any) -> Claim:
    side = {"card": "T4", "model": "mlp", "precision": "amp-fp16", "batch_size": 512}
    of, over = ({**side, "layout": name} for name in ("contiguous", "channels_last"))
    values = {"kind": "ratio", "metric": "throughput", "unit": "x", "value": 1.474, "half_digit": 0.0005}
    return claim(**{**values, "of": of, "over": over, "stack": "PyTorch 1.12, CUDA 11.3", **changes})


def test_what_a_layout_gains_is_judged_on_its_own_card_whatever_the_stack():
    assert word(table_claim(), layouts(1.474)) == "holds here"
    assert word(table_claim(), layouts(1.2)) == "does not hold here"
    side = table_claim().of.model_dump()
    absolute = table_claim(kind="absolute", of=side, over=None, value=5120.0, unit="images/s")
    assert because(absolute, layouts(1.474)) == "stack: PyTorch 2.13.0 instead of 1.12"


def test_a_layout_that_was_not_measured_is_named():
    assert because(table_claim(), series("amp-fp16")) == "memory layout: contiguous instead of channels_last"
