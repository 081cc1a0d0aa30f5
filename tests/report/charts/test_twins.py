from __future__ import annotations

import pytest

from report.charts.style import Layout
from report.charts.twins import TwinRatios, TwinRow
from tests.helpers.charts import EACH_LAYOUT, dots_of

RATIOS = (0.95, 0.97, 0.96)


@EACH_LAYOUT
def test_each_pair_is_a_dot_at_its_ratio_in_their_order_and_all_of_them_a_larger_one_below(layout: Layout):
    row = TwinRow("a work", RATIOS, 0.94, 0.96, 0.98)
    drawn = [
        (line.get_markersize(), x, y) for line, ((x, y),) in dots_of(TwinRatios((row,), "").sheet(layout))
    ]
    *pairs, mean = sorted(drawn, key=lambda dot: dot[0])
    units = [
        (x - pairs[0][1]) / (ratio - RATIOS[0])
        for (_, x, _), ratio in zip(pairs, RATIOS, strict=True)
        if x != pairs[0][1]
    ]
    assert units == pytest.approx([units[0]] * 2)
    assert mean[1] == pytest.approx(pairs[2][1])
    assert mean[0] > pairs[0][0]
    heights = [y for *_, y in (*pairs, mean)]
    assert heights in (sorted(heights), sorted(heights, reverse=True))
