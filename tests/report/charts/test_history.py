"""Sessions stand at their day and value; what is below what was agreed is told apart."""

from __future__ import annotations

import pytest
from matplotlib.colors import to_hex

from report.charts.style import DESK, RED, Layout, system_colour
from tests.helpers.charts import EACH_LAYOUT, HISTORY, SESSIONS, STAGES, dots_of, drawn_texts, lines_of
from tests.report.charts.test_bars import boxes


@EACH_LAYOUT
def test_a_session_stands_at_its_day_and_its_value(layout: Layout):
    places = [places[0] for _, places in dots_of(HISTORY.sheet(layout))[: len(SESSIONS)]]
    per_day = (places[-1][0] - places[0][0]) / 203
    assert [x for x, _ in places] == pytest.approx([places[0][0] + per_day * p.day for p in SESSIONS])
    per_unit = (places[3][1] - places[0][1]) / (1 - 0.934)
    assert [y for _, y in places] == pytest.approx(
        [places[0][1] + per_unit * (1 - p.value) for p in SESSIONS]
    )
    assert per_unit > 0 and HISTORY.begins == pytest.approx(0.9)


def test_what_is_below_what_was_agreed_has_its_own_colour_and_mark_and_is_written():
    sheet = HISTORY.sheet(DESK)
    found = [(line.get_marker(), to_hex(line.get_markerfacecolor())) for line, _ in dots_of(sheet)][:6]
    good = ("o", system_colour(0))
    assert found == [good, good, good, ("s", RED), good, good]
    said = [text for text, _ in drawn_texts(sheet)]
    assert {"93.4 %", "97.3 %", "97.0 %"} <= set(said) and "99.8 %" not in said


@EACH_LAYOUT
def test_events_are_upright_lines_at_their_days(layout: Layout):
    sheet = HISTORY.sheet(layout)
    drawn = [places for line, places in lines_of(sheet) if line.is_dashed() and line.get_linewidth() == 1.2]
    assert len(drawn) == 4
    first, last = (dots_of(sheet)[n][1][0][0] for n in (0, len(SESSIONS) - 1))
    for ((top_x, top), (x, bottom)), (day, _) in zip(drawn, HISTORY.events, strict=True):
        assert top_x == x == pytest.approx(first + (last - first) * day / 203) and top < bottom


@EACH_LAYOUT
def test_a_trial_is_as_long_as_the_stages_that_it_reached_and_ends_with_its_cause(layout: Layout):
    sheet = STAGES.sheet(layout)
    lengths = [box[2] for _, box in boxes(sheet)]
    assert lengths == pytest.approx([3 * lengths[3] / 5, 2 * lengths[3] / 5, 1, lengths[3]], abs=1)
    said = [text for text, _ in drawn_texts(sheet)]
    assert {"driver too old", "data not found", "no image", *STAGES.stages} <= set(said)
    assert said.count("✕") == 3
