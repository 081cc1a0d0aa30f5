"""What a sensor makes of a training's energy, by constructed traces."""

from __future__ import annotations

import pytest

from benchmarks import sensing
from tests.helpers import ROOT


@pytest.mark.whole
def test_the_documents_print_what_a_sensor_makes_of_a_training_s_energy():
    pages = [page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md")]
    assert any(sensing.table() in page for page in pages)
