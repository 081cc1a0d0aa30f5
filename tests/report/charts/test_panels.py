"""Small pictures stand in a row where there is room, and their lines have their names at their ends."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from matplotlib.colors import to_hex

from report.charts.panels import BarPanel, PanelBar, Panels
from report.charts.style import DESK, NARROW, PAPER, Layout
from tests.helpers.charts import (
    BY_BATCH,
    EACH_LAYOUT,
    GAIN,
    MEMORY,
    OFFERS,
    SHARES,
    dots_of,
    drawn_texts,
    lines_of,
    many_lines,
)
from tests.report.charts.test_bars import boxes


@pytest.mark.parametrize(("layout", "across"), [(DESK, 2), (NARROW, 1)])
def test_panels_are_in_rows_of_equal_length_as_many_across_as_have_room(layout: Layout, across: int):
    panels = (MEMORY, GAIN, SHARES, BY_BATCH)
    texts = {said: box for said, box in drawn_texts(Panels(panels).sheet(layout))}
    tops = [round(texts[panel.title][3]) for panel in panels]
    assert len(set(tops[:across])) == 1
    assert len({round(texts[panel.title][0]) for panel in panels}) == across
    alone = Panels((GAIN,)).sheet(layout)
    assert max(x for _, places in dots_of(alone) for x, _ in places) > 0.6 * layout.width


def test_no_name_is_cut_beside_other_panels_nor_at_the_end_of_its_line():
    many = many_lines(4)
    named = tuple(
        replace(line, label=f"fp32-ieee, Constructed Card {n}") for n, line in enumerate(many.lines)
    )
    curves = replace(many, lines=named)
    said = " ".join(text for text, _ in drawn_texts(Panels((SHARES, curves)).sheet(DESK)))
    assert "…" not in said
    assert all(line.label in said for line in named)


@EACH_LAYOUT
def test_memory_is_drawn_in_the_outline_of_what_the_card_has(layout: Layout):
    sheet = Panels((MEMORY,)).sheet(layout)
    used = [box[2] for _, box in boxes(sheet, swatches=True)]
    outlines = [box[2] for patch, box in boxes(sheet, swatches=True, filled=False)]
    assert used == pytest.approx([9.8 / 12 * layout.width, 7.4 / 12 * layout.width])
    assert outlines == pytest.approx([layout.width, 11 / 12 * layout.width])


def test_shares_are_drawn_end_to_end():
    drawn = [box for _, box in boxes(Panels((SHARES,)).sheet(DESK), swatches=True)][:10]
    for row in (drawn[:5], drawn[5:]):
        assert [left for left, *_ in row[1:]] == pytest.approx([left + w for left, _, w, _ in row[:-1]])
        assert sum(box[2] for box in row) == pytest.approx(DESK.width)


@EACH_LAYOUT
@pytest.mark.parametrize("count", [2, 8, 20])
def test_every_line_is_named_at_the_right_in_the_order_of_the_ends(layout: Layout, count: int):
    texts = drawn_texts(Panels((many_lines(count),)).sheet(layout))
    named = [(said, box) for said, box in texts if said.startswith("trial")]
    order = [said for said, _ in sorted(named, key=lambda each: each[1][1])]
    assert order == [f"trial {n}" for n in range(count)]
    heights = sorted(box[1] for _, box in named)
    assert all(b - a >= 14 for a, b in itertools.pairwise(heights))


def test_a_gap_breaks_a_line_and_a_range_is_drawn_where_there_is_one():
    sheet = Panels((GAIN,)).sheet(DESK)
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
        for said, box in drawn_texts(Panels((BY_BATCH,)).sheet(DESK))
        if said in ("16", "32", "128")
    )
    assert last - second == pytest.approx(2 * (second - first), abs=2)


def test_a_bar_of_a_panel_has_its_range():
    panel = BarPanel("Speed", "", (PanelBar("a", 2.0, "2.00", ends=(1.0, 3.0)),))
    ranges = [places for line, places in lines_of(Panels((panel,)).sheet(DESK)) if line.get_zorder() == 3]
    assert [x for x, _ in ranges[0]] == pytest.approx([DESK.width / 3, DESK.width])


@EACH_LAYOUT
def test_an_offer_is_a_dot_between_its_ranges_both_ways_and_hollow_where_it_was_not_measured(layout: Layout):
    sheet = Panels((OFFERS,)).sheet(layout)
    dots = [(to_hex(line.get_markerfacecolor()) == PAPER, x, y) for line, ((x, y),) in dots_of(sheet)]
    assert [hollow for hollow, *_ in dots] == [True, False]
    ranges = [places for line, places in lines_of(sheet) if line.get_zorder() == 3]
    across = [places for places in ranges if len(places) == 2]
    assert len(across) == 2 and len(ranges) == 3
    for (_, x, y), ((low, left_y), (high, right_y)) in zip(dots, across, strict=True):
        assert low < x < high and left_y == right_y == pytest.approx(y)
