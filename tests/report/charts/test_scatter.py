"""Speed against cost: what was measured is filled, and a far range is cut."""

from __future__ import annotations

import pytest

from report.charts.scatter import MOST, OfferPoint, Scatter, _most
from report.charts.style import DESK, NARROW

POINTS = (
    OfferPoint("Card A", (300.0, 500.0, 900.0), (1.4, 2.1, 3.1), 0, hollow=True),
    OfferPoint("Card B", (1700.0, 2900.0, 5600.0), (1.0, 1.0, 1.0), 1),
)


@pytest.mark.parametrize("layout", [DESK, NARROW], ids=lambda layout: layout.name)
def test_each_point_has_its_name_and_both_axes_say_what_they_are(layout):
    svg = Scatter(POINTS, "EUR a year", "times as fast").sheet(layout).svg()
    assert all(word in svg for word in ("Card A", "Card B", "EUR a year", "times as fast"))


def test_a_scale_reaches_the_ranges_and_cuts_what_is_far_beyond_the_values():
    assert _most([point.across for point in POINTS]) == pytest.approx(1.04 * 5600)
    assert _most([(1.0, 2.0, 100.0)]) == pytest.approx(1.04 * MOST * 2.0)
