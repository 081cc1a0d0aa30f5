"""What a ratio of two cells has to assume."""

from __future__ import annotations

import pytest

from report.compare.ratio import assumptions
from report.stats.contrast import Assumption
from tests.helpers.contrast_cases import cell_like

MEASURED = Assumption("machine", 0.004, 2)
LATER, THERE = {"session": "two"}, {"machine": "b", "session": "three"}
ENOUGH, UNSETTLED = {"blocks": 3}, {"settled": False}


@pytest.mark.parametrize(
    ("of", "over", "hours", "sizes"),
    [
        ({}, {}, None, [0.005]),
        ({}, UNSETTLED, None, [0.005]),
        (ENOUGH, ENOUGH, None, []),
        ({}, LATER, None, [0.01, 0.01]),
        (ENOUGH, LATER, None, [0.01]),
        (ENOUGH, LATER | ENOUGH, None, []),
        ({}, THERE, None, [0.03, 0.03]),
        (ENOUGH, THERE, None, [0.03]),
        ({}, THERE, MEASURED, [0.004, 0.03]),
        (ENOUGH, THERE | ENOUGH, MEASURED, []),
        ({}, LATER | UNSETTLED, None, [0.01, 0.01, 0.05, 0.05]),
        (UNSETTLED, THERE, None, [0.03, 0.03, 0.05, 0.05]),
        (ENOUGH | UNSETTLED | {"device": "cuda"}, THERE | UNSETTLED, None, [0.03, 0.03, 0.05]),
    ],
)
def test_what_a_range_assumes_follows_from_what_its_sides_share(of, over, hours, sizes):
    assumed = assumptions(cell_like(**of), cell_like(**over), (hours, None))
    assert [each.size for each in assumed] == sizes
