from __future__ import annotations

import itertools
import math
import unicodedata
from datetime import UTC, datetime
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from report import charts, lines, svg, text
from report.charts import LOOKS, Mark
from report.lines import Axes, Curve
from tests.helpers.page_reader import read

FINITE = st.floats(min_value=1e-6, max_value=1e9, allow_nan=False, allow_infinity=False)
RATIOS = st.floats(min_value=0.02, max_value=50.0, allow_nan=False)


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2.2."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colours", [svg.LIGHT, svg.DARK], ids=["light", "dark"])
def test_every_colour_that_carries_meaning_stands_out_from_the_paper(colours: dict[str, str]):
    for name, colour in colours.items():
        if name not in ("paper", "rule"):
            least = 3.0 if name in svg.AREAS else 4.5
            assert contrast(colour, colours["paper"]) >= least, name


def test_precisions_of_one_chart_differ_in_shape_where_their_colour_is_one():
    common = ("fp32-ieee", "fp32-tf32", "fp16-master", "amp-bf16")
    assert len({LOOKS[name] for name in common}) == len(common)
    assert len({LOOKS[name][1] for name in common}) == len(common)


@given(st.lists(FINITE, min_size=1, max_size=20))
def test_an_axis_from_zero_holds_every_value_between_round_ticks(values: list[float]):
    scale, ticks = svg.linear_axis(values, 0.0, 300.0, zero=True)
    assert ticks[0] == 0 and 2 <= len(ticks) <= 7
    assert all(scale.holds(value) or math.isclose(value, scale.high) for value in values)
    steps = {round((b - a) / ticks[1], 6) for a, b in itertools.pairwise(ticks)}
    assert steps == {1.0}


@given(st.lists(RATIOS, min_size=1, max_size=20))
def test_a_ratio_axis_shows_one_and_keeps_its_labels_apart(values: list[float]):
    scale, ticks = svg.ratio_axis(values, 0.0, 300.0)
    assert 1.0 in ticks
    assert all(scale.holds(value) for value in [*values, 1.0])
    places = [scale(tick) for tick in ticks]
    assert all(b - a >= svg.TICK_SPACE for a, b in itertools.pairwise(places))


@given(RATIOS.filter(lambda value: value > 1.01))
def test_twice_as_fast_lies_as_far_from_one_as_half_as_fast(value: float):
    scale = svg.Scale(1 / value, value, 0.0, 300.0, log=True)
    assert scale(1.0) == pytest.approx(150.0, abs=0.2)


@given(st.text(max_size=400))
def test_any_text_in_a_drawing_leaves_it_well_formed(said: str):
    drawing = charts.dots(
        "name",
        text.clean(said),
        text.clean(said),
        [Mark(text.clean(said), "", "1", 1.0)],
        write=text.times,
    )
    root = ElementTree.fromstring(drawing)
    assert {element.tag.rpartition("}")[2] for element in root.iter()} <= {
        "svg",
        "title",
        "desc",
        "text",
        "line",
        "circle",
        "polygon",
        "g",
    }


@given(st.text(max_size=30_000), st.integers(min_value=8, max_value=200))
def test_cleaned_text_is_one_short_line_without_controls(said: str, limit: int):
    cleaned = text.clean(said, limit)
    assert len(cleaned) <= limit
    assert not any(unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") for character in cleaned)


def test_a_log_keeps_its_last_lines():
    assert text.clean_lines("\n".join(str(n) for n in range(100)), lines=3) == "97\n98\n99"


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_every_number_can_be_written(value: float):
    said = text.number(value)
    assert said and "nan" not in said and "inf" not in said.replace("infinite", "")


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.0123456, "0.0123"), (1.5, "1.50"), (98.76, "98.8"), (987.6, "988"), (12345.6, "12,350"), (0.0, "0")],
)
def test_numbers_keep_the_digits_that_count(value: float, said: str):
    assert text.number(value) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(45.0, "45 s"), (600.0, "10 min"), (7200.0, "2 h"), (7260.0, "2 h 1 min"), (259200.0, "3.0 days")],
)
def test_durations_are_said_as_people_say_them(seconds: float, said: str):
    assert text.duration(seconds) == said


def test_days_are_said_without_a_leading_zero():
    assert text.day(datetime(2026, 2, 1, tzinfo=UTC)) == "1 February 2026"


def test_published_curves_are_drawn_first_and_dashed():
    drawn = [
        Curve("ours", ((1.0, 1.0), (2.0, 0.5))),
        Curve("published", ((1.0, 1.1), (2.0, 0.6)), behind=True),
    ]
    found = read(lines.curves("name", "Loss", "falls", drawn, Axes("epoch", text.times)))
    behind, ours = found.all("path")
    assert behind.attributes["stroke-dasharray"] == "2 3" and "stroke-dasharray" not in ours.attributes


def test_a_loss_that_is_not_a_number_leaves_a_gap_and_no_broken_drawing():
    drawn = [Curve("ours", ((1.0, 2.0), (2.0, float("nan")), (3.0, 1.0)))]
    drawing = lines.curves("name", "Loss", "falls", drawn, Axes("epoch", text.times))
    assert "nan" not in drawing


def test_nothing_to_draw_is_said_in_words():
    assert "nothing to draw" in charts.dots("name", "Seconds", "none", [], write=text.times)


def test_a_ratio_whose_interval_reaches_to_nothing_still_has_an_axis():
    scale, ticks = svg.ratio_axis((0.0, 1.0, 1e9), 0.0, 300.0)
    assert 1.0 in ticks
    assert (scale(0.0), scale(1e9)) == (0.0, 300.0)
