"""Bars begin at zero and are as long as their values; what stands beside them keeps its place."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from report.charts.bars import Bar, Bars, Group
from report.charts.sheet import Sheet
from report.charts.style import DESK, HATCH, Layout, system_colour
from tests.helpers.charts import (
    EACH_LAYOUT,
    GROUPS,
    KEY,
    TIMES,
    drawn_texts,
    lines_of,
    many_bars,
)

Box = tuple[float, float, float, float]


def boxes(sheet: Sheet, *, swatches: bool = False, filled: bool = True) -> list[tuple[Rectangle, Box]]:
    """The bars of a sheet, or its outlines, from its top: left, top, width, height, px."""
    found = []
    for patch in sheet.figure.artists:
        if not isinstance(patch, Rectangle):
            continue
        white = patch.get_facecolor()[:3] == (1, 1, 1) and not patch.get_hatch()
        if not white and (patch.get_facecolor()[3] > 0) == filled:
            edge = patch.get_linewidth() / 2 if patch.get_edgecolor()[3] else 0.0
            (x, y), (w, h) = patch.get_xy(), (patch.get_width(), patch.get_height())
            x, y, w, h = x * sheet.width, y * sheet.height, w * sheet.width, h * sheet.height
            found.append((patch, (x - edge, sheet.height - y - h - edge, w + 2 * edge, h + 2 * edge)))
    return [(patch, box) for patch, box in found if swatches or round(box[3], 3) != 12.0]


def only(*bars: Bar, **more: object) -> Bars:
    return Bars((Group("ResNet-50", bars),), **more)  # type: ignore[arg-type]


@EACH_LAYOUT
def test_every_bar_begins_at_zero_and_is_as_long_as_its_value(layout: Layout):
    chart = Bars((GROUPS[0], Group("LSTM", TIMES[2:4])))
    drawn = boxes(chart.sheet(layout))
    values = [bar.value for group in chart.groups for bar in group.bars if bar.value]
    assert len(drawn) == len(values) and len({round(box[0], 3) for _, box in drawn}) == 1
    units = [box[2] / value for (_, box), value in zip(drawn, values, strict=True)]
    assert units == pytest.approx([units[0]] * len(units))


@EACH_LAYOUT
def test_bars_stand_in_the_order_they_are_given_and_never_on_each_other(layout: Layout):
    tops = [(box[1], box[1] + box[3]) for _, box in boxes(many_bars(24).sheet(layout))]
    assert len(tops) == 24
    assert all(low < top for (_, low), (top, _) in itertools.pairwise(tops))


@EACH_LAYOUT
@pytest.mark.parametrize("count", [2, 5, 9, 14, 24])
def test_no_text_lies_on_another_or_on_a_bar(layout: Layout, count: int):
    sheet = many_bars(count).sheet(layout)
    texts = drawn_texts(sheet)
    for (said, one), (other, two) in itertools.combinations(texts, 2):
        assert (
            min(one[2], two[2]) - max(one[0], two[0]) <= 0.5
            or min(one[3], two[3]) - max(one[1], two[1]) <= 2.5
        ), f"'{said}' lies on '{other}'"
    for _, (left, top, width, height) in boxes(sheet):
        for said, (x0, low, x1, high) in texts:
            across = min(x1, left + width) - max(x0, left)
            up = min(sheet.height - low, top + height) - max(sheet.height - high, top)
            assert across <= 0 or up <= 3.5, said


def test_each_look_differs_in_grey_by_fill_outline_or_hatch():
    (own, own_box), (other, _), (published, _), (unranked, _) = boxes(
        only(TIMES[2], TIMES[0], TIMES[3], TIMES[4]).sheet(DESK)
    )
    assert to_hex(own.get_facecolor()) == system_colour(0) and to_hex(other.get_facecolor()) == system_colour(
        1
    )
    assert published.get_hatch() and to_hex(published.get_edgecolor()) == HATCH
    assert (
        unranked.get_facecolor()[3] < 0.3
        and to_hex(unranked.get_edgecolor(), True) == f"{system_colour(0)}ff"
    )
    assert own_box[3] == 15


def whiskers(sheet: Sheet) -> list[tuple[float, float]]:
    lines = [line for line, _ in lines_of(sheet) if line.get_linewidth() == 1.5 and line.get_zorder() == 3]
    return [tuple(sheet.width * x for x in line.get_xdata()) for line in lines if len(line.get_xdata()) == 2]


def test_a_range_lies_where_its_ends_are_and_what_was_published_has_none():
    sheet = only(TIMES[2], TIMES[3]).sheet(DESK)
    (_, (left, _, width, _)), _ = boxes(sheet)
    ((low, high),) = whiskers(sheet)
    unit = width / 1.43
    assert (low, high) == pytest.approx((left + 1.38 * unit, left + 1.47 * unit))


def test_a_range_that_reaches_far_leaves_the_bars_their_length():
    sheet = only(replace(TIMES[2], high=1e9), TIMES[3]).sheet(DESK)
    assert max(box[0] + box[2] for _, box in boxes(sheet)) > 0.5 * DESK.width
    assert max(high for _, high in whiskers(sheet)) <= DESK.width


@EACH_LAYOUT
def test_where_one_takes_over_ten_times_as_long_each_group_has_its_own_scale_and_no_ticks(layout: Layout):
    far = Bars(
        (Group("a", (replace(TIMES[3], value=1.0), replace(TIMES[3], value=45.0))), Group("b", TIMES[3:4]))
    )
    assert far.each_from_zero and not Bars(GROUPS).each_from_zero
    assert not replace(far, reference=None).each_from_zero
    sheet = far.sheet(layout)
    _, (_, long), (_, alone) = boxes(sheet)
    assert long[2] == pytest.approx(alone[2], rel=0.1)
    assert "1" not in [said for said, _ in drawn_texts(sheet)]
    assert "1" in [said for said, _ in drawn_texts(Bars(GROUPS).sheet(layout))]


def test_a_key_names_the_looks_in_use_and_no_others():
    said = [text for text, _ in drawn_texts(Bars((Group("", TIMES[2:4]),), key=KEY).sheet(DESK))]
    assert {"this machine", "published, one run, no range"} <= set(said)
    assert not {entry.text for entry in KEY[1:3] + KEY[4:]} & set(said)
