from __future__ import annotations

from typing import Any

import pytest

from harness.record import Claim, Limit, Record
from harness.record.published.claim_set import is_same_card
from report.claims.answers import Obstacle, Prospects, answers
from report.claims.judge import judge
from report.compare import cells as stats
from report.compare.batch_sweeps import batch_sweeps
from tests.helpers import records_builder as build
from tests.helpers.claims_builder import (
    CARDS,
    KIND,
    ON,
    SECONDS,
    SESSION,
    claim,
    judged,
    lacks,
    ratio,
    series,
    side_lacks,
    word,
)
from tests.helpers.here import claims_here
from tests.helpers.trial_tables import trials_of


@pytest.mark.parametrize(("times", "state"), [(1, "holds"), (2, "fails"), (1.1, "open")])
def test_a_figure_of_its_own_card_is_open_where_another_unit_of_it_may_show_the_difference(times, state):
    assert word(claim(value=SECONDS / times), series()) == state


def test_an_absolute_figure_is_not_held_against_another_card():
    other = build.machine("NVIDIA H200", label="h200", digits="b")
    assert lacks(claim(), series(on=other, card="NVIDIA H200")) == {"card"}


def test_a_trend_is_published_and_not_judged():
    trends = [claim for claim in claims_here().claims if claim.kind == "trend"]
    found = answers(trends, judge(trends, (), (), CARDS), (), CARDS, Prospects())
    assert {one.state for one in found} == {"cannot be measured here"}
    assert [one.obstacle for one in found] == [Obstacle("trend")] * 8


def on_stack(**versions: str) -> list[Record]:
    return [build.changed(record, measurement__versions=versions) for record in series()]


@pytest.mark.parametrize(
    "versions",
    [
        {"torch": "2.13.0", "fastai": "1.0.41", "cuda": "10.0.130"},
        {"torch": "1.0.0", "fastai": "2.8.12", "cuda": "10.0.130"},
        {"torch": "1.0.0", "fastai": "1.0.41", "cuda": "9.0.176"},
    ],
)
def test_an_absolute_figure_is_not_held_against_another_stack(versions):
    stack = "PyTorch 1.0.0, fastai 1.0.41, CUDA 10.0"
    assert lacks(claim(stack=stack), on_stack(**versions)) == {"software"}
    assert word(claim(stack="PyTorch 2.13.0, CUDA 13.0, driver 580.00"), series()) == "holds"


@pytest.mark.parametrize(
    ("used", "claimed", "same"),
    [
        ("2.13.0+cpu", "2.13.0", True),
        ("2.13.0+cu130", "2.13", True),
        ("2.13.0+cpu", "2.13.0+cpu", True),
        ("2.13.0", "2.13.0+cpu", False),
        ("2.13.10", "2.13.1", False),
    ],
)
def test_a_build_is_of_the_release_that_was_published_and_another_release_is_not(used, claimed, same):
    found = word(claim(stack=f"PyTorch {claimed}"), on_stack(torch=used))
    assert found == ("holds" if same else None)


def test_a_processor_is_the_one_that_a_publication_names_with_its_maker_or_without():
    for published, there in (
        ("AMD EPYC", "AMD EPYC"),
        ("EPYC 9B14", "AMD EPYC 9B14"),
        ("RTX 9999", "NVIDIA RTX 9999"),
    ):
        assert is_same_card(published, there, ())
    assert not is_same_card("AMD EPYC 9B14", "AMD EPYC 9B45", ())


def test_a_ratio_of_two_cards_is_not_held_against_one_of_them_twice():
    side = {"model": "mlp", "precision": "fp32-ieee", "batch_size": 512}
    for of, over in (("L4", "T4"), ("T4", "L4")):
        sides = {"of": {**side, "card": of}, "over": {**side, "card": over}}
        assert word(claim(kind="ratio", unit="x", value=1.3, **sides), series()) is None


def test_a_ratio_holds_on_any_card_of_its_class_and_is_held_against_no_other():
    records = [*series(), *series("amp-fp16", 0.05, first_order=10)]
    assert word(ratio(card_class="no-matrix-units"), records) is None
    found = judged(ratio(card_class="matrix-units"), records)
    assert found.verdict.state == "holds"
    assert found.measured == pytest.approx(2.0, rel=0.01)
    assert {cell.key.precision for cell in found.cells} == {"fp32-ieee", "amp-fp16"}


ORDER = ratio(kind="order", relation="less", value=None)


@pytest.mark.parametrize(
    ("asked", "seconds", "state"),
    [
        (ORDER, 0.05, "holds"),
        (ORDER, 0.2, "fails"),
        (ORDER, 0.1, "open"),
        (ratio(relation="greater", value=1.5), 0.05, "holds"),
        (ratio(relation="less", value=1.5), 0.05, "fails"),
    ],
)
def test_an_order_and_a_bound_on_a_ratio_are_judged_by_the_interval(asked, seconds, state):
    assert word(asked, [*series(), *series("amp-fp16", seconds, first_order=10)]) == state


def test_a_rate_of_steady_steps_is_judged_between_a_whole_run_and_a_part_but_not_before_it_settled():
    order = ratio(kind="order", metric="throughput", relation="greater", value=None, unit="samples/s")
    part = {"complete": False, "limit": Limit(steps=60)}
    faster = {"seconds": 0.05, "first_order": 10}
    assert word(order, [*series(**part), *series("amp-fp16", **faster)]) == "holds"
    unsettled = [*series(**part), *series("amp-fp16", verdict="unproven", **faster)]
    assert word(order, unsettled) is None
    seconds = order.model_copy(update={"metric": "protocol_seconds", "relation": "less"})
    assert word(seconds, [*series(**part), *series("amp-fp16", **faster)]) is None


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"batch_size": 64}, ("batch_size", 64, 512)),
        ({"mode": "host"}, ("data_mode", "host", "cached")),
        ({"gpus": 2}, ("gpus", 2, 1)),
    ],
)
def test_every_field_that_differs_is_named(change, difference):
    side = {**claim().of.model_dump(), "data_mode": "cached"}
    assert side_lacks(claim(of=side), series(**change)) == [difference]


def test_a_published_figure_of_two_devices_is_taken_for_that_of_one_node():
    side = {**claim().of.model_dump(), "gpus": 2}
    two = [record.model_copy(update={"nodes": 2}) for record in series(gpus=2)]
    assert side_lacks(claim(of=side), two) == [("nodes", 2, 1)]
    assert word(claim(of=side), series(gpus=2)) == "holds"


def test_nothing_that_depends_on_the_data_is_judged_on_generated_data():
    assert lacks(claim(), series(data="generated")) == {"real data"}
    peak = claim(kind="structure", metric="peak_bytes", value=6e9, unit="B", card_class="gpu", why="w")
    assert word(peak, series(data="generated")) == "holds"


def test_bytes_are_counted_within_the_margin_that_the_claim_declares():
    peak = claim(kind="structure", metric="peak_bytes", value=6.1e9, unit="B", margin=0.02, half_digit=0.0)
    assert word(peak, series()) == "holds"
    assert word(peak.model_copy(update={"margin": 0.01}), series()) == "fails"


def test_a_projection_from_a_window_too_short_is_not_judged_and_a_whole_run_is():
    short = series(complete=False, verdict="unproven", limit=Limit(steps=20))
    assert lacks(claim(), short) == {"settled window"}
    assert word(claim(), series(verdict="unproven")) == "holds"


@pytest.mark.parametrize(("projected", "whole"), [(5, 1), (3, 3)])
def test_the_most_runs_are_judged_and_whole_ones_before_as_many_projected(projected, whole):
    part = series(seconds=0.1003, repeats=projected, complete=False, limit=Limit(seconds=75.0))
    found = judged(claim(), [*part, *series(repeats=whole, first_order=10)])
    (cell,) = found.cells
    assert (found.verdict.state, cell.length.projected, len(cell.trials)) == (
        "holds",
        projected > whole,
        projected,
    )


def test_a_ratio_takes_the_pair_with_the_most_runs_on_its_weaker_side():
    limit = Limit(seconds=75.0)
    records = [
        *series(repeats=1),
        *series("amp-fp16", 0.05, repeats=9, first_order=10),
        *series(repeats=5, complete=False, limit=limit, first_order=20),
        *series("amp-fp16", 0.05, repeats=5, complete=False, limit=limit, first_order=30),
    ]
    found = judged(ratio(), records)
    assert found.verdict.state == "holds"
    assert all(cell.length.projected for cell in found.cells)


def test_the_sides_of_a_ratio_have_their_input_from_the_same_place():
    records = [*series(mode="device"), *series("amp-fp16", 0.05, mode="cached", first_order=10)]
    assert word(ratio(), records) is None


def test_an_option_that_a_claim_does_not_name_is_another_work():
    assert side_lacks(claim(), series(options={"tied": True})) == [("tied", True, None)]
    assert word(claim(), series(options={"epochs": 30})) == "holds"


SEEDS = {"spread": 0.02, "pairs": 8}


@pytest.mark.parametrize(("published", "told"), [(110.0, "holds"), (120.0, "open"), (150.0, "fails")])
def test_one_whole_run_is_judged_by_the_published_spread_of_seeds(published, told):
    asked = claim(kind="quality", metric="perplexity", value=published, unit="perplexity", epochs=30)
    asked = asked.model_copy(update={"card_class": "any"})
    assert word(asked, series(repeats=1)) == "open"
    found = judged(asked.model_validate({**asked.model_dump(), "seeds": SEEDS}), series(repeats=1))
    assert found.verdict.state == told
    assert found.verdict.interval is not None and found.verdict.interval.df == SEEDS["pairs"]


@pytest.mark.parametrize(
    ("relation", "bound", "told"),
    [
        ("less", 120.0, "holds"),
        ("less", 100.0, "fails"),
        ("greater", 100.0, "holds"),
        ("greater", 120.0, "fails"),
        ("less", 110.0, "open"),
    ],
)
@pytest.mark.parametrize("seeds", [None, SEEDS])
def test_a_one_sided_quality_is_held_against_its_bound_and_not_judged_as_equal(relation, bound, told, seeds):
    asked = claim(
        kind="quality",
        metric="perplexity",
        relation=relation,
        value=bound,
        unit="perplexity",
        epochs=30,
        card_class="any",
        seeds=seeds,
    )
    assert word(asked, series(repeats=1 if seeds else 5)) == told


@pytest.mark.parametrize(
    ("relation", "bound", "told"),
    [
        ("greater", 600_000, "holds"),
        ("greater", 700_000, "fails"),
        ("less", 7e5, "holds"),
    ],
)
def test_a_one_sided_count_is_above_or_below_its_bound_by_any_distance(relation, bound, told):
    asked = claim(
        kind="structure",
        metric="parameters",
        relation=relation,
        value=bound,
        unit="parameters",
        card_class="any",
    )
    (record,) = series(repeats=1)
    assert word(asked, [build.changed(record, measurement__structure={"parameters": 662_826})]) == told


def test_an_absolute_bound_is_not_refuted_within_what_another_unit_may_do():
    bound = {"relation": "less", "half_digit": 0.0}
    assert word(claim(value=SECONDS * 1.1, **bound), series()) == "holds"
    assert word(claim(value=SECONDS / 1.02, **bound), series()) == "open"
    assert word(claim(value=SECONDS / 1.5, **bound), series()) == "fails"


def ladder(precision: str, largest: int, **changes: Any) -> list[Record]:
    """Batches that double from 64 on, and the first above `largest` that does not fit."""
    sizes = [64 * 2**place for place in range(20) if 64 * 2**place <= largest]
    limit = Limit(steps=10)
    found: list[Record] = []
    for place, size in enumerate([*sizes, *([largest] if largest not in sizes else [])]):
        at = {"batch_size": size, "repeats": 1, "first_order": place, "limit": limit, "complete": False}
        found += series(precision, **at, **changes)
    asked = build.trial(KIND, precision, 1, batch_size=largest + 8, mode="cached", limit=limit)
    failed = build.record(asked, None, on=ON, session=SESSION, order=90, failure=build.out_of_memory())
    return [*found, failed]


@pytest.mark.parametrize(("value", "told"), [(1.75, "holds"), (1.9, "open"), (2.5, "fails")])
def test_a_ratio_of_batches_lies_between_what_fits_and_what_does_not(value, told):
    records = [*ladder("fp32-ieee", 512), *ladder("amp-fp16", 904)]
    trials = trials_of(records)
    cells = stats.cells_of(trials)
    failed = [trial for trial in trials if trial.failure]
    sides = {"of": ratio().over, "over": ratio().of}
    asked = ratio(metric="batch_ratio", value=value, margin=0.08, half_digit=0.0, **sides)
    (found,) = judge([asked], [], [], CARDS, batch_sweeps(cells, failed))
    assert found.verdict.state == told
    assert found.measured == pytest.approx(904 / 512)
    assert found.verdict.bounds == (904 / 520, 912 / 512)


def test_bytes_are_compared_without_a_spread_however_few_runs():
    order = ratio(kind="order", metric="peak_bytes", relation="less", value=None, card_class="gpu")
    records = [*series(repeats=1), *series("amp-fp16", repeats=1, first_order=10)]
    found = judged(order, records)
    assert (found.verdict.state, found.verdict.bounds) == ("holds", (pytest.approx(0.6),) * 2)
    assert word(order.model_copy(update={"relation": "greater"}), records) == "fails"
    equal = ratio(metric="peak_bytes", value=1.667, card_class="gpu")
    assert word(equal, records) == "holds"
    assert word(equal.model_copy(update={"value": 2.0}), records) == "fails"


def test_a_quality_needs_its_epochs_and_its_pretrained_body():
    quality = claim(kind="quality", metric="perplexity", value=110.0, unit="ppl", card_class="any", epochs=30)
    assert word(quality, series()) == "holds"
    assert lacks(quality.model_copy(update={"epochs": 40}), series()) == {"learning"}
    assert lacks(quality, series(weights="random")) == {"learning"}


def test_a_count_is_judged_without_a_spread():
    structure = claim(kind="structure", metric="parameters", value=7.0, unit="", card_class="any")
    records = [build.changed(record, measurement__structure={"parameters": 7}) for record in series()]
    assert word(structure, records) == "holds"
    assert word(structure, series()) is None


@pytest.mark.parametrize(
    "asked", [claim(value=None, words="It is faster."), claim(workload="mnist_cnn"), ratio()]
)
def test_words_alone_another_workload_and_a_missing_side_are_not_judged(asked):
    assert word(asked, series("amp-fp16" if asked.over else "fp32-ieee")) is None


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
    assert word(table_claim(), layouts(1.474)) == "holds"
    assert word(table_claim(), layouts(1.2)) == "fails"
    side = table_claim().of.model_dump()
    absolute = table_claim(kind="absolute", of=side, over=None, value=5120.0, unit="images/s")
    assert lacks(absolute, series("amp-fp16", layout="contiguous")) == {"software"}
    assert word(table_claim(), series("amp-fp16")) is None
