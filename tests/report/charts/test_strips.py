"""Each machine is a dot at its value, and none hides another."""

from __future__ import annotations

import itertools
import math

import pytest
from matplotlib.colors import to_hex

from report.charts.sheet import Sheet
from report.charts.strips import DOT, OWN
from report.charts.style import DESK, PAPER, Layout, system_colour
from tests.helpers.charts import EACH_LAYOUT, dots_of, drawn_texts, many_machines


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
    dots = sorted(chart.strips[0].dots, key=lambda dot: (not dot.own, dot.value))
    texts = {said: box for said, box in drawn_texts(chart.sheet(layout))}
    zero = drawn[1] - (drawn[-1] - drawn[1]) / (dots[-1].value - dots[1].value) * dots[1].value
    assert (texts["0"][0] + texts["0"][2]) / 2 == pytest.approx(zero, abs=4)
    units = [(x - zero) / dot.value for x, dot in zip(drawn, dots, strict=True)]
    assert units == pytest.approx([units[0]] * 18)


def test_this_machine_is_large_and_coloured_and_what_is_not_ranked_is_hollow():
    drawn = dots_of(many_machines(18).sheet(DESK))[:18]
    own = [line for line, _ in drawn if line.get_markersize() == OWN]
    assert [to_hex(line.get_markerfacecolor()) for line in own] == [system_colour(0)]
    others = [to_hex(line.get_markerfacecolor()) for line, _ in drawn if line.get_markersize() == DOT]
    assert set(others) == {system_colour(4), PAPER} and others.count(PAPER) == 2


@EACH_LAYOUT
def test_the_ends_and_this_machine_have_their_names_on_the_first_strip(layout: Layout):
    chart = many_machines(18)
    ranked = sorted((dot for dot in chart.strips[0].dots if dot.ranked), key=lambda dot: dot.value)
    said = [text for text, _ in drawn_texts(chart.sheet(layout))]
    assert [text for text in said if text.startswith("Core")].count(ranked[0].label) == 1
    assert {ranked[0].label, ranked[-1].label, "Core i7-5"} == {
        text for text in said if text.startswith("Core")
    }
