"""The card to share: its size, its few rows, and a headline that fits."""

from __future__ import annotations

import re
from io import BytesIO

from PIL import Image

from report.charts.card import MOST_ROWS, ShareCard, draw_card
from report.charts.rows import Mark, RowGroup, ScaleRow, ScaleRows
from report.charts.style import DARK, INK


def drawn(headline: str, rows: int = 12) -> tuple[str, tuple[int, int]]:
    named = tuple(ScaleRow(f"row-{n}", (Mark(1.0 + n),), "", "") for n in range(rows))
    chart = ScaleRows((RowGroup("a", named[:5]), RowGroup("b", named[5:])))
    svg, png = draw_card(ShareCard("constructed", headline, "title", "doubt", "source", chart)).values()
    return svg.decode(), Image.open(BytesIO(png)).size


def test_a_card_has_the_size_that_is_shared_few_rows_and_a_dark_form():
    svg, size = drawn("One line.")
    assert size == (1200, 630) and 'viewBox="0 0 1200 630"' in svg
    assert len(set(re.findall(r"row-\d+", svg))) == MOST_ROWS
    assert "prefers-color-scheme:dark" in svg and f'[fill="{INK}"]{{fill:{DARK[INK]}}}' in svg


def test_a_headline_of_thirty_words_stands_whole_in_two_lines():
    words = [f"word{n}" for n in range(24)]
    svg, _ = drawn(" ".join(words))
    assert all(word in svg for word in words) and "…" not in svg
