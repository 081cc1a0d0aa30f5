"""Each workload's curves and its figures."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from report.analysis import Analysis, AnalysisRequest, analyse
from report.charts.curves import Curves
from report.compare.cells import states_of
from report.page.parts.workloads import WorkloadView, view
from report.page.values import systems_of
from tests.helpers import cases
from tests.helpers.here import evidence_here

NOW = datetime(2026, 12, 1, tzinfo=UTC)


def viewed(analysis: Analysis) -> tuple[WorkloadView, ...]:
    found = view(analysis, systems_of(analysis))
    assert found is not None
    return found


def constructed(name: str) -> tuple[WorkloadView, ...]:
    return viewed(cases.analysis_of(cases.CASES[name]))


def panel_titles(found: tuple[WorkloadView, ...]) -> set[str]:
    charts = [work.curves.chart for work in found if work.curves]
    return {panel.title for chart in charts if isinstance(chart, Curves) for panel in chart.panels}


@pytest.fixture(scope="module")
def desk() -> tuple[WorkloadView, ...]:
    session = cases.COMMITTED["desk"][-15:]
    return viewed(analyse(evidence_here(), AnalysisRequest(NOW, session=session)))


def test_a_work_by_itself_has_a_row():
    assert [len(work.rows) for work in constructed("one-record")] == [1]


def test_every_line_of_the_groups_is_a_row_with_its_state(desk: tuple[WorkloadView, ...]):
    for work in desk:
        assert work.rows
        cells = [cell for _, cell in work.rows]
        assert all(cell.seconds.mean and cell.throughput.n for cell in cells)
        assert all("projected" in states_of(cell) for cell in cells)


def test_a_workload_has_the_curves_that_it_has_figures_for():
    assert "Accuracy" in panel_titles(constructed("convergence"))


def test_growing_batches_end_at_the_first_that_does_not_fit():
    found = constructed("sweep")
    sweeps = [each for work in found for each in work.batches if each.wall is not None]
    assert sweeps
    for sweep in sweeps:
        assert sweep.best is not None and sweep.largest is not None and sweep.wall is not None
        assert (sweep.best.key.batch_size, sweep.largest.key.batch_size, sweep.wall) == (32, 32, 64)
