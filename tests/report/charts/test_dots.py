"""Each value is a dot at its place, and none hides another; pairs keep their order."""

from __future__ import annotations

import itertools
import math

import pytest
from matplotlib.colors import to_hex

from report.charts.dots import DOT, LARGE
from report.charts.sheet import Sheet
from report.charts.style import DESK, PAPER, Layout, system_colour
from tests.helpers.charts import CHECK, EACH_LAYOUT, RATIOS, TWINS, dots_of, drawn_texts, many_machines


def places(sheet: Sheet) -> list[tuple[float, float, float]]:
    return [(x, y, line.get_markersize()) for line, ((x, y),) in dots_of(sheet)]


@EACH_LAYOUT
@pytest.mark.parametrize("count", [3, 18, 40])
def test_no_dot_hides_another(layout: Layout, count: int):
    drawn = places(many_machines(count, 0.3).sheet(layout))
    assert len(drawn) == 2 * count
    for one, two in itertools.combinations(drawn, 2):
        assert math.dist(one[:2], two[:2]) >= (one[2] + two[2]) / 2


@EACH_LAYOUT
def test_a_dot_stands_where_its_value_is_on_a_scale_from_zero(layout: Layout):
    chart = many_machines(18)
    own, *others = [x for x, *_ in places(chart.sheet(layout))[:18]]
    drawn = [own, *sorted(others)]
    dots = sorted(chart.rows[0].dots, key=lambda dot: (not dot.large, dot.value))
    texts = {said: box for said, box in drawn_texts(chart.sheet(layout))}
    zero = drawn[1] - (drawn[-1] - drawn[1]) / (dots[-1].value - dots[1].value) * dots[1].value
    assert (texts["0"][0] + texts["0"][2]) / 2 == pytest.approx(zero, abs=4)
    units = [(x - zero) / dot.value for x, dot in zip(drawn, dots, strict=True)]
    assert units == pytest.approx([units[0]] * 18)


def test_this_machine_is_large_and_coloured_and_what_is_not_ranked_is_hollow():
    drawn = dots_of(many_machines(18).sheet(DESK))[:18]
    own = [line for line, _ in drawn if line.get_markersize() == LARGE]
    assert [to_hex(line.get_markerfacecolor()) for line in own] == [system_colour(0)]
    others = [to_hex(line.get_markerfacecolor()) for line, _ in drawn if line.get_markersize() == DOT]
    assert set(others) == {system_colour(4), PAPER} and others.count(PAPER) == 2


@EACH_LAYOUT
def test_pairs_stand_in_their_order_and_all_of_them_as_a_larger_dot_below(layout: Layout):
    drawn = [(line.get_markersize(), x, y) for line, ((x, y),) in dots_of(TWINS.sheet(layout))]
    *pairs, mean = sorted(drawn)
    pairs.sort(key=lambda dot: dot[2])
    (first, *others) = pairs
    units = [
        (x - first[1]) / (ratio - RATIOS[0]) for (_, x, _), ratio in zip(others, RATIOS[1:], strict=True)
    ]
    assert units == pytest.approx([units[0]] * 2)
    assert mean[1] == pytest.approx(pairs[2][1]) and mean[2] > pairs[2][2]


@EACH_LAYOUT
def test_a_dot_outside_of_its_band_has_another_colour_and_what_is_not_known_has_none(layout: Layout):
    drawn = {to_hex(line.get_markerfacecolor()) for line, _ in dots_of(CHECK.sheet(layout))}
    assert drawn == {system_colour(0), system_colour(1)}
    assert len(dots_of(CHECK.sheet(layout))) == 4
