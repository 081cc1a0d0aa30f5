"""Constructed records have the summaries that their tests give them; what was measured is judged anew."""

import pytest

from report.trials import reading


@pytest.fixture(autouse=True)
def _constructed_summaries_are_believed(request, monkeypatch):
    if "judged_anew" not in request.fixturenames:
        monkeypatch.setattr(reading, "differing_part", lambda record, anew: "")


@pytest.fixture
def judged_anew() -> None:
    """No stored summary is believed, as in every line of `report`."""
