"""Panels stand in a row where there is room, and their lines have their names at their ends."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from report.charts.curves import Curves
from report.charts.style import DESK, NARROW, Layout
from tests.helpers.charts import (
    BY_BATCH,
    EACH_LAYOUT,
    GAIN,
    dots_of,
    drawn_texts,
    lines_of,
    many_lines,
)


@pytest.mark.parametrize(("layout", "across"), [(DESK, 2), (NARROW, 1)])
def test_panels_are_in_rows_of_equal_length_as_many_across_as_have_room(layout: Layout, across: int):
    panels = (replace(BY_BATCH, title="Gain by batch"), GAIN, many_lines(3), BY_BATCH)
    texts = {said: box for said, box in drawn_texts(Curves(panels).sheet(layout))}
    tops = [round(texts[panel.title][3]) for panel in panels]
    assert len(set(tops[:across])) == 1
    assert len({round(texts[panel.title][0]) for panel in panels}) == across
    alone = Curves((GAIN,)).sheet(layout)
    assert max(x for _, places in dots_of(alone) for x, _ in places) > 0.6 * layout.width


def test_no_name_is_cut_beside_other_panels_nor_at_the_end_of_its_line():
    many = many_lines(4)
    named = tuple(
        replace(line, label=f"fp32-ieee, Constructed Card {n}") for n, line in enumerate(many.lines)
    )
    curves = replace(many, lines=named)
    said = " ".join(text for text, _ in drawn_texts(Curves((GAIN, curves)).sheet(DESK)))
    assert "…" not in said
    assert all(line.label in said for line in named)


@EACH_LAYOUT
@pytest.mark.parametrize("count", [2, 8, 20])
def test_every_line_is_named_at_the_right_in_the_order_of_the_ends(layout: Layout, count: int):
    texts = drawn_texts(Curves((many_lines(count),)).sheet(layout))
    named = [(said, box) for said, box in texts if said.startswith("trial")]
    order = [said for said, _ in sorted(named, key=lambda each: each[1][1])]
    assert order == [f"trial {n}" for n in range(count)]
    heights = sorted(box[1] for _, box in named)
    assert all(b - a >= 14 for a, b in itertools.pairwise(heights))


def test_a_gap_breaks_a_line_and_a_range_is_drawn_where_there_is_one():
    sheet = Curves((GAIN,)).sheet(DESK)
    strokes = [line for line, places in lines_of(sheet) if len(places) == 3 and line.get_marker() == "None"]
    assert sorted(sum(x != x for x in line.get_xdata()) for line in strokes if line.get_zorder() < 3) == [
        0,
        1,
    ]
    ranges = [
        places for line, places in lines_of(sheet) if line.get_linewidth() == 1.5 and line.get_zorder() == 3
    ]
    assert len(ranges) == 1


def test_batches_that_double_stand_equally_far_apart():
    (first, second, last) = (
        (box[0] + box[2]) / 2
        for said, box in drawn_texts(Curves((BY_BATCH,)).sheet(DESK))
        if said in ("16", "32", "128")
    )
    assert last - second == pytest.approx(2 * (second - first), abs=2)
