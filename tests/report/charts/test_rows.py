"""Bars begin at zero, dots stand where their values are, and what stands beside them keeps its place."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from report.charts.drawing import Sheet
from report.charts.rows import DOT, LARGE, Mark, RowGroup, ScaleRow, ScaleRows
from report.charts.style import DESK, HATCH, PAPER, Layout, system_colour
from tests.helpers.charts import (
    CHECK,
    EACH_LAYOUT,
    GROUPS,
    KEY,
    TIMES,
    Box,
    dots_of,
    drawn_texts,
    lines_of,
    many_machines,
    many_rows,
)


def boxes(sheet: Sheet) -> list[tuple[Rectangle, Box]]:
    """The bars of a sheet from its top: left, top, width, height, px."""
    found = []
    for patch in (one for one in sheet.figure.artists if isinstance(one, Rectangle)):
        edge = patch.get_linewidth() / 2 if patch.get_edgecolor()[3] else 0.0
        (x, y), (w, h) = patch.get_xy(), (patch.get_width(), patch.get_height())
        x, y, w, h = x * sheet.width, y * sheet.height, w * sheet.width, h * sheet.height
        found.append((patch, (x - edge, sheet.height - y - h - edge, w + 2 * edge, h + 2 * edge)))
    return [(patch, box) for patch, box in found if round(box[3], 3) not in (12.0, 21.0)]


def only(*rows: ScaleRow) -> ScaleRows:
    return ScaleRows((RowGroup("ResNet-50", rows),))


@EACH_LAYOUT
def test_every_bar_begins_at_zero_and_is_as_long_as_its_value(layout: Layout):
    chart = ScaleRows((GROUPS[0], RowGroup("LSTM", TIMES[2:4])))
    drawn = boxes(chart.sheet(layout))
    values = [mark.value for group in chart.groups for row in group.rows for mark in row.marks]
    assert len(drawn) == len(values) and len({round(box[0], 3) for _, box in drawn}) == 1
    units = [box[2] / value for (_, box), value in zip(drawn, values, strict=True)]
    assert units == pytest.approx([units[0]] * len(units))


@EACH_LAYOUT
def test_rows_stand_in_the_order_they_are_given_and_never_on_each_other(layout: Layout):
    tops = [(box[1], box[1] + box[3]) for _, box in boxes(many_rows(24).sheet(layout))]
    assert len(tops) == 24
    assert all(low < top for (_, low), (top, _) in itertools.pairwise(tops))


@EACH_LAYOUT
def test_no_text_lies_on_a_bar(layout: Layout):
    sheet = many_rows(14).sheet(layout)
    for _, (left, top, width, height) in boxes(sheet):
        for said, (x0, low, x1, high) in drawn_texts(sheet):
            across = min(x1, left + width) - max(x0, left)
            up = min(sheet.height - low, top + height) - max(sheet.height - high, top)
            assert across <= 0 or up <= 3.5, said


def test_each_look_differs_in_grey_by_fill_outline_or_hatch():
    drawn = boxes(only(TIMES[2], TIMES[0], TIMES[3], TIMES[4]).sheet(DESK))
    (own, _), (other, _), (published, _), (projected, _) = drawn
    assert [to_hex(one.get_facecolor()) for one in (own, other)] == [system_colour(0), system_colour(1)]
    assert published.get_hatch() and to_hex(published.get_edgecolor()) == HATCH
    assert projected.get_facecolor()[3] < 0.3 and to_hex(projected.get_edgecolor()) == system_colour(0)


def whiskers(sheet: Sheet) -> list[tuple[float, float]]:
    lines = [line for line, _ in lines_of(sheet) if line.get_linewidth() == 1.5 and line.get_zorder() == 3]
    return [tuple(sheet.width * x for x in line.get_xdata()) for line in lines if len(line.get_xdata()) == 2]


def test_a_range_lies_where_its_ends_are_and_what_was_published_has_none():
    sheet = only(TIMES[2], TIMES[3]).sheet(DESK)
    (_, (left, _, width, _)), _ = boxes(sheet)
    ((low, high),) = whiskers(sheet)
    unit = width / 1.43
    assert (low, high) == pytest.approx((left + 1.38 * unit, left + 1.47 * unit))
    assert not arrow_tips(sheet)


def test_a_range_that_reaches_far_leaves_the_bars_their_length():
    far = replace(TIMES[2], marks=(Mark(1.43, 1.38, 1e9),))
    sheet = only(far, TIMES[3]).sheet(DESK)
    assert max(box[0] + box[2] for _, box in boxes(sheet)) > 0.5 * DESK.width
    ((_, high),) = whiskers(sheet)
    assert high <= DESK.width and arrow_tips(sheet) == pytest.approx([high])


def arrow_tips(sheet: Sheet) -> list[float]:
    """Where ranges that are cut point on, px."""
    lines = [line.get_xdata() for line, _ in lines_of(sheet) if line.get_zorder() == 3]
    return [sheet.width * x[1] for x in lines if len(x) == 3 and x[0] == x[2] < x[1]]


@EACH_LAYOUT
def test_where_one_takes_over_ten_times_as_long_each_group_has_its_own_scale_and_no_ticks(layout: Layout):
    short, long = (ScaleRow("a", (Mark(value),)) for value in (1.0, 45.0))
    far = ScaleRows((RowGroup("a", (short, long)), RowGroup("b", (short,))))
    assert far.each_from_zero and not ScaleRows(GROUPS).each_from_zero
    assert replace(far, reference=None).each_from_zero
    assert not replace(far, reference=None, axis="GiB").each_from_zero
    sheet = far.sheet(layout)
    _, (_, whole), (_, alone) = boxes(sheet)
    assert whole[2] == pytest.approx(alone[2], rel=0.1)
    assert "1" not in [said for said, _ in drawn_texts(sheet)]
    assert "1" in [said for said, _ in drawn_texts(ScaleRows(GROUPS).sheet(layout))]


def test_a_key_names_the_looks_in_use_and_no_others():
    said = [text for text, _ in drawn_texts(ScaleRows((RowGroup("", TIMES[2:4]),), key=KEY).sheet(DESK))]
    assert {"this machine", "published, one run, no range"} <= set(said)
    assert not {entry.text for entry in KEY[1:3] + KEY[4:]} & set(said)


def places(sheet: Sheet) -> list[tuple[float, float, float]]:
    return [(x, y, line.get_markersize()) for line, ((x, y),) in dots_of(sheet)]


@EACH_LAYOUT
@pytest.mark.parametrize("count", [3, 18, 40])
def test_no_dot_hides_another_and_no_range_crosses_another(layout: Layout, count: int):
    drawn = places(many_machines(count, 0.3).sheet(layout))
    assert len(drawn) == 2 * count
    for one, two in itertools.combinations(drawn, 2):
        assert abs(one[0] - two[0]) >= (one[2] + two[2]) / 2 or abs(one[1] - two[1]) >= DOT


@EACH_LAYOUT
def test_dots_stand_where_equal_steps_multiply(layout: Layout):
    chart = many_machines(18)
    marks = sorted(chart.groups[0].rows[0].marks, key=lambda mark: mark.value)
    drawn = sorted(x for x, *_ in places(chart.sheet(layout))[:18])
    steps = [math.log(after.value / before.value) for before, after in itertools.pairwise(marks)]
    across = [after - before for before, after in itertools.pairwise(drawn)]
    units = [wide / step for wide, step in zip(across, steps, strict=True) if step > 0.01]
    assert units == pytest.approx([units[0]] * len(units), rel=0.02)


def test_this_machine_is_large_and_coloured_and_what_is_projected_is_hollow():
    drawn = dots_of(many_machines(18).sheet(DESK))[:18]
    own = [line for line, _ in drawn if line.get_markersize() == LARGE]
    assert [to_hex(line.get_markerfacecolor()) for line in own] == [system_colour(0)]
    others = [to_hex(line.get_markerfacecolor()) for line, _ in drawn if line.get_markersize() == DOT]
    assert set(others) == {system_colour(4), PAPER} and others.count(PAPER) == 2


def test_what_is_too_slow_has_another_colour_and_what_is_not_known_no_bar():
    drawn = boxes(CHECK.sheet(DESK))
    assert [to_hex(patch.get_facecolor()) for patch, _ in drawn] == [system_colour(1), system_colour(0)]
