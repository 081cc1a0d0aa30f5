"""Pages without drawings: to draw takes half the time of a report."""

from __future__ import annotations

import pytest

from report.charts.drawing import Drawing
from report.page import render


def leave_undrawn(patch: pytest.MonkeyPatch) -> None:
    """Give pages empty drawings."""
    patch.setattr(render, "draw_chart", lambda *_: Drawing("", ""))
    patch.setattr(render, "draw_card", lambda _: {"card.svg": b"", "card.png": b""})
