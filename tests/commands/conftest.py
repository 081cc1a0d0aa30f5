from __future__ import annotations

from functools import partial

import pytest

from commands import report
from report.page import whole_page


@pytest.fixture
def undrawn(monkeypatch):
    """A page whose drawings hold words alone: drawing them takes half the time of a report."""
    monkeypatch.setattr(report, "write", partial(whole_page.write, drawn=False))
