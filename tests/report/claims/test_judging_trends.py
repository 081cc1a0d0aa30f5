from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from harness.record import Claim, Record
from tests.helpers.claims_builder import claim, lacks, series, verdict


def gains(steps: Sequence[float], **changes: Any) -> list[Record]:
    """fp32 at 0.1 s a step and amp-fp16 at these, at batches that double from 512 on."""
    found: list[Record] = []
    for place, step in enumerate(steps):
        at = {"batch_size": 512 * 2**place, "first_order": 20 * place, **changes}
        found += [*series(**at), *series("amp-fp16", step, **{**at, "first_order": 20 * place + 10})]
    return found


def trend(points: int, relation: str) -> Claim:
    batches = [{"model": "mlp", "batch_size": 512 * 2**place} for place in range(points)]
    values = {
        "kind": "trend",
        "points": [
            {
                "at": 2**place,
                "of": {**batch, "precision": "amp-fp16"},
                "over": {**batch, "precision": "fp32-ieee"},
            }
            for place, batch in enumerate(batches)
        ],
        "relation": relation,
        "value": None,
        "unit": "x",
        "half_digit": 0.0,
        "card_class": "matrix-units",
    }
    asked = {**claim().model_dump(), **values}
    del asked["of"], asked["over"]
    return Claim.model_validate(asked)


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ((0.08, 0.06, 0.05), "holds here"),
        ((0.05, 0.06, 0.08), "does not hold here"),
        ((0.06, 0.06, 0.06), "inconclusive"),
    ],
)
def test_a_trend_is_judged_by_the_slope_of_its_repeats(steps, told):
    found = verdict(trend(3, "greater"), gains(steps))
    assert found.verdict.word == told
    assert len(found.cells) == 6


def test_of_two_points_a_trend_is_the_ratio_of_their_gains():
    found = verdict(trend(2, "greater"), gains((0.08, 0.05)))
    assert found.measured == pytest.approx((0.1 / 0.05) / (0.1 / 0.08), rel=0.01)
    assert (found.claim.of, found.claim.over) == (found.claim.points[0].of, found.claim.points[0].over)


def test_a_trend_whose_point_was_not_measured_names_what_is_missing():
    assert lacks(trend(3, "less"), gains((0.08, 0.05))) == [("batch_size", 512, 2048)]


def test_one_run_a_point_shows_no_slope_but_by_the_spread_of_seeds():
    records = gains((0.08, 0.06, 0.05), repeats=1)
    found = verdict(trend(3, "greater"), records).verdict
    assert (found.word, found.interval) == ("inconclusive", None)
