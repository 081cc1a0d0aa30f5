"""Each workload in one picture, its small pictures and its figures; frameworks by their possible places."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from report.analysis import Analysis, AnalysisRequest, analyse
from report.charts.curves import Curves
from report.charts.rows import ScaleRows
from report.compare import ranking
from report.compare.cells import cells_of, states_of
from report.page.one.headlines import of_frameworks
from report.page.parts.frameworks import headline
from report.page.parts.workloads import MOST_TIMELINES, WorkloadsView, view
from report.page.pictures import MOST_BELOW
from report.page.values import systems_of
from tests.helpers import cases
from tests.helpers import records_builder as build
from tests.helpers.here import evidence_here
from tests.helpers.record_sets import LEAD, series
from tests.helpers.trial_tables import analysed, trials_of

NOW = datetime(2026, 12, 1, tzinfo=UTC)
FRAMEWORKS = "20261123-cccefa"


def viewed(analysis: Analysis) -> WorkloadsView:
    found = view(analysis, systems_of(analysis))
    assert found is not None
    return found


def constructed(name: str) -> WorkloadsView:
    return viewed(cases.analysis_of(cases.CASES[name]))


def panel_titles(found: WorkloadsView) -> set[str]:
    charts = [work.panels.chart for work in found.workloads if work.panels]
    return {panel.title for chart in charts if isinstance(chart, Curves) for panel in chart.panels}


@pytest.fixture(scope="module")
def desk() -> WorkloadsView:
    session = cases.COMMITTED["desk"][-15:]
    return viewed(analyse(evidence_here(), AnalysisRequest(NOW, session=session)))


@pytest.fixture(scope="module")
def frameworks() -> WorkloadsView:
    return viewed(analyse(evidence_here(), AnalysisRequest(NOW, session=FRAMEWORKS)))


def bars_of(found: WorkloadsView) -> list[ScaleRows]:
    charts = [work.timing.picture.chart for work in found.workloads if work.timing]
    assert charts
    return [chart for chart in charts if isinstance(chart, ScaleRows)]


def test_the_fastest_of_each_work_is_one_and_comes_first(desk: WorkloadsView, frameworks: WorkloadsView):
    for chart in (*bars_of(desk), *bars_of(frameworks)):
        assert sum(len(group.rows) for group in chart.groups) <= MOST_BELOW
        for group in chart.groups:
            values = [mark.value for row in group.rows for mark in row.marks]
            assert len(group.rows) > 1 and values[0] == 1.0 and values == sorted(values)


def test_a_work_that_nothing_stands_beside_has_a_row_and_no_bar():
    found = constructed("one-record")
    assert [work.timing for work in found.workloads] == [None]
    assert [len(work.rows) for work in found.workloads] == [1]


def test_every_line_of_the_groups_is_a_row_with_its_state(desk: WorkloadsView):
    for work in desk.workloads:
        assert work.rows
        entries = [entry for _, entry, _ in work.rows]
        assert all(entry.cell.seconds.mean and entry.cell.throughput.n for entry in entries)
        assert sum(entry.reference for entry in entries) >= 1
        assert all("projected" in states_of(entry.cell) for entry in entries)


@pytest.mark.parametrize(
    ("name", "title"),
    [("sharing", "Speed-up by devices"), ("convergence", "Accuracy")],
)
def test_a_workload_has_the_small_pictures_that_it_has_figures_for(name: str, title: str):
    assert title in panel_titles(constructed(name))


def test_growing_batches_end_at_the_first_that_does_not_fit():
    found = constructed("sweep")
    sweeps = [each for work in found.workloads for each in work.batches if each.wall is not None]
    assert sweeps
    for sweep in sweeps:
        assert sweep.best is not None and sweep.largest is not None and sweep.wall is not None
        assert (sweep.best.key.batch_size, sweep.largest.key.batch_size, sweep.wall) == (32, 32, 64)
    groups = cases.analysis_of(cases.CASES["sweep"]).groups
    assert [group.base.batch_size for group in groups] == [32], "the fixed batch is compared alone"


def test_trials_over_time_are_few(frameworks: WorkloadsView):
    pictures = [each for work in frameworks.workloads for each in work.over_time]
    assert 0 < len(pictures) <= MOST_TIMELINES


def test_frameworks_have_the_places_that_their_ranges_allow(frameworks: WorkloadsView):
    works = frameworks.frameworks
    ranked = [places for work in works for _, places, _ in work.rows if places]
    assert len(ranked) > 1
    assert all(1 <= first <= last <= len(ranked) for first, last in ranked)
    assert min(first for first, _ in ranked) == 1
    assert all(
        places is None for work in works for line, places, _ in work.rows if line in work.work.published
    )


def test_frameworks_that_tie_by_what_an_hour_may_do_share_their_places():
    fair = {**build.LM, "protocol": "fair/1"}
    runs = [
        one
        for name, seconds in (("torch", 0.1), ("keras", 0.1008))
        for one in series(seconds=seconds, kind=fair, repeats=5, spread=0.0005, options={"framework": name})
    ]
    (work,) = ranking.works(cells_of(trials_of(runs)), LEAD)
    scaled = work.alike[1].scaled
    assert scaled is not None and scaled.tied
    assert [ranking.places(line, work.alike) for line in work.alike] == [(1, 2), (1, 2)]


def test_frameworks_of_single_runs_are_a_first_look_and_not_equally_fast():
    fair = {**build.LM, "protocol": "fair/1"}
    runs = [
        one
        for name, seconds in (("torch", 0.1), ("keras", 0.3))
        for one in series(seconds=seconds, kind=fair, repeats=1, options={"framework": name})
    ]
    analysis = analysed(runs)
    assert analysis.leading_frameworks is not None
    own = systems_of(analysis)
    said = headline(analysis.leading_frameworks, own).data
    assert of_frameworks(analysis, own, ranked=True).data["first_look"]
    assert (said["tied"], said["slower"]["name"], said["first_look"]) == (["torch"], "keras", True)
