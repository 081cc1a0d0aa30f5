"""What a chart shows, in which order and under which names; and no text of a record is more than text."""

from __future__ import annotations

import itertools
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from report.charts import style
from report.charts.card import ShareCard, draw_card
from report.charts.drawing import Chart, draw_chart
from report.charts.rows import Mark, RowGroup, ScaleRow, ScaleRows
from report.charts.style import Layout, cut_text, width_of, wrap_text
from tests.helpers.charts import (
    CHARTS,
    EACH_CHART,
    EACH_LAYOUT,
    HOSTILE,
    MATH,
    drawing_of,
    drawn_texts,
)
from tests.helpers.page_reader import read
from tests.helpers.records_hostile import LONG

TAGS = {"svg", "title", "desc", "g", "defs", "pattern", "path", "use", "rect", "text", "tspan"}
"""What a drawing may hold."""
FINITE = st.floats(min_value=1e-6, max_value=1e9, allow_nan=False, allow_infinity=False)


@given(st.lists(FINITE, min_size=1, max_size=20))
def test_an_axis_from_zero_holds_every_value_between_round_ticks(values: list[float]):
    ticks = style.linear_ticks(values, zero=True)
    assert ticks[0] == 0 and 2 <= len(ticks) <= 7
    assert max(values) <= ticks[-1] * (1 + 1e-9)
    assert {round((b - a) / ticks[1], 6) for a, b in itertools.pairwise(ticks)} == {1.0}


@given(st.lists(st.floats(0, 100), min_size=1, max_size=6))
def test_labels_that_would_touch_are_moved_apart_and_keep_their_order(places: list[float]):
    moved = style.move_apart(places, 14.0, 0.0, 100.0)
    order = sorted(range(len(places)), key=lambda at: places[at])
    assert all(moved[b] - moved[a] >= 13.99 for a, b in itertools.pairwise(order))
    assert max(moved) <= 100


@pytest.mark.parametrize("said", HOSTILE)
def test_a_text_is_cut_or_broken_to_what_fits(said: str):
    assert width_of(cut_text(said, 80.0), style.LABEL) <= 80
    lines = wrap_text(said, 80.0, lines=3)
    assert len(lines) <= 3 and all(width_of(line) <= 80 for line in lines)


@EACH_CHART
@EACH_LAYOUT
def test_no_text_of_a_chart_overlaps_another_or_is_cut_by_an_edge(chart: Chart, layout: Layout):
    sheet = chart.sheet(layout)
    title = "A title that is long enough to be broken into two lines of the drawing"
    above = sheet.head(title, "less is better; " * 9)
    texts = drawn_texts(sheet)
    for said, (left, low, right, high) in texts:
        assert left >= -1 and right <= sheet.width + 2.5 and low >= -1 and high <= sheet.height + above + 2, (
            said
        )
    for (said, one), (other, two) in itertools.combinations(texts, 2):
        across = min(one[2], two[2]) - max(one[0], two[0])
        up = min(one[3], two[3]) - max(one[1], two[1])
        assert across <= 0.5 or up <= 2.5, f"'{said}' lies on '{other}'"


@EACH_CHART
def test_a_drawing_is_well_formed_and_holds_no_more_than_a_page_may_take(chart: Chart):
    drawing = drawing_of(chart)
    for text in (*drawing.page.replace("</svg><svg", "</svg>\n<svg").splitlines(), drawing.file):
        for element in ElementTree.fromstring(text).iter():
            assert element.tag.rpartition("}")[2] in TAGS
            assert element.get("style") is None
            assert element.get("id", "name").startswith("name")
            assert element.get("href", "#name").startswith("#name")


@pytest.mark.parametrize("said", [said for said in HOSTILE if said != LONG])
def test_no_text_of_a_record_becomes_markup_or_mathematics(said: str):
    chart = ScaleRows((RowGroup(said, (ScaleRow(said, (Mark(1.0),), said, said, said),), (said,)),), said)
    drawing = draw_chart(chart, "name", said, said, said)
    assert {element.tag for element in read(drawing.page).elements} <= TAGS
    assert not set(drawing.page) & {"\x00", "\x1b", "\u202e", "\ud800"}
    if said is MATH:
        assert r"$\frac{1}{0}$ and $unfinished" in read(drawing.page).text("text")
    assert all(draw_card(ShareCard(said, f"Card {said}", said, said, said, chart)).values())


@settings(max_examples=10)
@given(st.text(max_size=300))
def test_any_text_in_a_drawing_leaves_it_well_formed(said: str):
    drawing = draw_chart(ScaleRows((RowGroup("", (ScaleRow(said, (Mark(1.0),)),)),)), "name", said, "", said)
    assert len(list(ElementTree.fromstring(drawing.file).iter("{http://www.w3.org/2000/svg}desc"))) == 1


def test_words_that_follow_others_are_one_text_with_them():
    drawn = draw_chart(CHARTS["rows"], "name", "t", "u", "d").page
    assert re.search(r"<text[^>]*>Card A<tspan[^>]*>fp32</tspan></text>", drawn)
