"""Colours that every reader can tell apart, on a light page and on a dark one."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping

import numpy as np
import pytest

from report.charts import style
from report.charts.drawing import Chart
from tests.helpers.charts import EACH_CHART, drawing_of


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2.2."""
    return float(np.array((0.2126, 0.7152, 0.0722)) @ linear(colour))


def linear(colour: str) -> np.ndarray:
    parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


LIGHT_AND_DARK = pytest.mark.parametrize(
    "shown", [{colour: colour for colour in style.DARK}, style.DARK], ids=["light", "dark"]
)
SEEN_BY = {
    "everybody": np.eye(3),
    "protanopes": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopes": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopes": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
"""Machado, Oliveira and Fernandes 2009, severity 1."""


def lab(light: np.ndarray) -> np.ndarray:
    """CIE L*a*b* of linear sRGB."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ np.clip(light, 0, 1) / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@LIGHT_AND_DARK
@pytest.mark.parametrize("reader", SEEN_BY)
def test_the_colours_of_systems_stay_apart_for_every_reader(reader: str, shown: Mapping[str, str]):
    colours = [shown[style.system_colour(slot)] for slot in range(5)]
    seen = [lab(SEEN_BY[reader] @ linear(colour)) for colour in colours]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > 12


def test_two_systems_differ_in_grey_print():
    assert contrast(style.system_colour(0), style.system_colour(1)) >= 2


def test_a_system_after_the_fourth_is_grey():
    assert {style.system_colour(slot) for slot in range(4, 12)} == {style.GREY, style.DARK_GREY}


@LIGHT_AND_DARK
def test_every_colour_that_carries_meaning_stands_out_from_the_paper(shown: Mapping[str, str]):
    for colour in (*style.SYSTEM_COLOURS, style.HATCH, style.RED):
        assert contrast(shown[colour], shown[style.PAPER]) >= 3
    for colour in (style.INK, style.SOFT):
        assert contrast(shown[colour], shown[style.PAPER]) >= 4.5


@EACH_CHART
def test_no_colour_is_drawn_that_a_dark_page_would_not_change(chart: Chart):
    drawn = set(re.findall(r'(?:fill|stroke)="(#[0-9a-f]{6})"', drawing_of(chart).page))
    assert drawn <= set(style.DARK)


@pytest.mark.parametrize(("layout", "shown"), [(style.DESK, 710), (style.NARROW, 358)])
def test_the_smallest_text_is_11_px_on_paper_and_on_a_phone(layout: style.Layout, shown: float):
    assert min(style.LABEL, style.NOTE) * shown / layout.width >= 11
