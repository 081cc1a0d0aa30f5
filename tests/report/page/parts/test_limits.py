"""Works stand below the limits of their device, and what is on paper is dashed."""

from __future__ import annotations

import pytest

from report.charts.curves import CurvePanel, Curves
from report.page.one.limits import SheetRow, _picture
from report.trials.ceilings import RooflinePoint
from tests.helpers.purposes import analysis_of


def test_a_slope_meets_its_roof_and_a_work_is_a_dot_at_its_intensity():
    trial = analysis_of("one-machine").own[0]
    sheet = (SheetRow("bf16", "TFLOP/s", 1000.0, 800.0), SheetRow("bandwidth", "GB/s", 4000.0, 3200.0))
    point = RooflinePoint(intensity=100.0, flops_per_second=2e14)
    picture = _picture([(trial, point)], 2, sheet, "limits-1")
    assert picture is not None and isinstance(picture.chart, Curves)
    (panel,) = picture.chart.panels
    assert isinstance(panel, CurvePanel)
    ends = {line.label: (line.points, line.stroke) for line in panel.lines}
    for basis, top, ridge, stroke in (("measured", 800.0, 250.0, 0), ("on paper", 1000.0, 250.0, 1)):
        (_, (across, up)), dashed = ends[f"memory, {basis}"]
        (begin, _), level = ends[f"bf16, {basis}"][0]
        assert dashed == stroke and (begin, level[1]) == (pytest.approx(ridge), top)
        assert up / across == pytest.approx(3.2 if basis == "measured" else 4.0)
    assert panel.lines[-1].points == ((100.0, 100.0),)
