"""Where works, roofs and slopes stand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from report.charts.roofline import Bandwidth, Roof, Roofline, RooflineMark
from report.charts.style import DESK

RATES = st.floats(min_value=1e6, max_value=1e16)


def limits_of(chart: Roofline) -> list[tuple[list[float], list[float], bool]]:
    """The points of each roof and slope, and whether it is dashed."""
    axes = chart.sheet(DESK).figure.axes[0]
    return [
        ([*map(float, line.get_xdata())], [*map(float, line.get_ydata())], line.is_dashed())
        for line in axes.lines
        if len(line.get_xdata()) == 2
    ]


@settings(max_examples=20)
@given(
    st.lists(st.tuples(st.floats(min_value=1e-3, max_value=1e5), RATES), min_size=1, max_size=6),
    RATES,
    st.floats(min_value=1e8, max_value=1e13),
)
def test_everything_lies_inside_the_axes_and_the_slope_meets_its_roof(places, speed, bandwidth):
    chart = Roofline(
        tuple(RooflineMark("a work", "amp-bf16", intensity, reached) for intensity, reached in places),
        (Roof("bf16, measured", speed, True),),
        (Bandwidth(bandwidth, True),),
    )
    axes = chart.sheet(DESK).figure.axes[0]
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    points = [(x, y) for line in axes.lines for x, y in line.get_xydata() if not math.isnan(x)]
    assert all(left <= x * 1.001 and x <= right * 1.001 for x, _ in points)
    assert all(low <= y * 1.001 and y <= high * 1.001 for _, y in points)
    assert set(places) <= {(float(x), float(y)) for x, y in points}
    (slope, heights, _), (roof, level, _) = limits_of(chart)
    assert heights == pytest.approx([x * bandwidth for x in slope])
    assert (slope[1], heights[1]) == (pytest.approx(roof[0]), pytest.approx(level[0]))
    assert level == [speed, speed] and roof[1] == right


def test_what_is_on_paper_is_dashed_and_what_was_measured_is_not():
    roofs = (Roof("paper", 1e15, False), Roof("measured", 8e14, True))
    point = RooflineMark("a", "amp-bf16", 10, 1e14)
    chart = Roofline((point,), roofs, (Bandwidth(3e12, True), Bandwidth(3.4e12, False)))
    assert [(heights[1], dashed) for _, heights, dashed in limits_of(chart)] == [
        (pytest.approx(1e15), False),
        (pytest.approx(1e15), True),
        (1e15, True),
        (8e14, False),
    ]
    labels = [text.get_text() for text in chart.sheet(DESK).figure.texts]
    assert {"1", "a, amp-bf16", "paper", "measured", "memory, measured", "memory, on paper"} <= set(labels)
