from __future__ import annotations

import unicodedata
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from report import text


@given(st.text(max_size=30_000), st.integers(min_value=8, max_value=200))
def test_cleaned_text_is_one_short_line_without_controls(said: str, limit: int):
    cleaned = text.clean(said, limit)
    assert len(cleaned) <= limit
    assert not any(unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") for character in cleaned)


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
    ("best", "low", "high", "said"),
    [
        (1.684, 1.49, 1.89, "1.7"),
        (1.25, 1.21, 1.29, "1.25"),
        (4322.0, 3300.0, 5600.0, "4,300"),
        (2.0, 2.0, 2.0, "2.000"),
    ],
)
def test_a_figure_has_the_digits_that_its_range_bears(best: float, low: float, high: float, said: str):
    assert text.rounded(best, text.digits_of(best, low, high)) == said


@given(st.floats(1e-6, 1e9), st.floats(0, 1), st.floats(0, 3))
def test_a_rounded_figure_stays_in_its_range_or_has_four_digits(best: float, below: float, above: float):
    low, high = best * (1 - below), best * (1 + above)
    said = float(text.rounded(best, text.digits_of(best, low, high)).replace(",", ""))
    assert low <= said <= high or text.digits_of(best, low, high) == 4 or best < 1e-3


def test_days_are_said_without_a_leading_zero():
    assert text.day(datetime(2026, 2, 1, tzinfo=UTC)) == "1 February 2026"
