"""What every test has."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
from hypothesis import settings

from report.page import render

# How long an example takes says how busy the machine is, and nothing else.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session", autouse=True)
def _each_chart_is_drawn_once() -> Iterator[None]:
    """matplotlib takes its time, and many tests build the same page."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(render, "draw", cache(render.draw))
        yield
