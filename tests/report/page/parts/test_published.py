"""Published claims as rows, and each study in a picture with this machine in it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import pytest

from harness.record.store import Results
from report.analysis import Analysis, AnalysisRequest, analyse, evidence_in
from report.charts.rows import ScaleRows
from report.page.parts import uncertainty
from report.page.parts.published import (
    MOST_ALONE,
    MOST_BARS,
    PublishedView,
    view,
)
from report.page.parts.verdicts import claim_rows
from report.page.render import render
from report.page.values import systems_of
from report.page.whole_page import page_of
from tests.helpers import cases
from tests.helpers import record_sets as sets
from tests.helpers.here import evidence_here
from tests.helpers.records_fleet import fleet

NOW = datetime(2026, 2, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    root = tmp_path_factory.mktemp("judged")
    cases.of(sets.published, "s004")(root)
    return analyse(evidence_in(root), AnalysisRequest(NOW, session=sets.LEAD))


@pytest.fixture(scope="module")
def alone() -> Analysis:
    return analyse(replace(evidence_here(), results=Results((), (), ())), AnalysisRequest(NOW))


def viewed(analysis: Analysis) -> PublishedView:
    found = view(analysis, systems_of(analysis))
    assert found is not None
    return found


def charts(found: PublishedView) -> list[ScaleRows]:
    drawn = [each.picture.chart for study in found.studies for each in study.pictures]
    assert drawn and all(isinstance(chart, ScaleRows) for chart in drawn)
    return [chart for chart in drawn if isinstance(chart, ScaleRows)]


def test_claims_that_do_not_hold_come_first_and_all_are_counted(judged: Analysis):
    found = viewed(judged)
    states = [row.state for row in found.rows]
    assert states == sorted(states, key=["fails", "holds", "open"].index)
    counted = Counter(states)
    counts = found.counts
    assert all(counts[state] == counted[state] for state in ("fails", "holds", "open"))
    of_each = ("met", "software", "another", "ways", "cards", "others")
    assert sum(counts[which] for which in of_each) == len(judged.answers)
    assert [row.answer.state for row in found.answers].count("on another card") == counts["another"] > 0


def test_a_ratio_is_here_what_its_sides_measured(judged: Analysis):
    ratio = next(row for row in claim_rows(judged) if row.claim.kind == "ratio")
    assert ratio.here.value is not None and ratio.here.low is not None and ratio.here.high is not None
    assert ratio.here.low < ratio.here.value < ratio.here.high
    assert ratio.of != ratio.over and not {*ratio.common} & {*ratio.of, *ratio.over}


def test_a_study_is_one_picture_a_metric_with_this_machine_among_its_figures(judged: Analysis):
    found = viewed(judged)
    assert [study.name for study in found.studies] == ["Bhutani 2019"]
    for chart in charts(found):
        marks = [[mark for row in group.rows for mark in row.marks] for group in chart.groups]
        assert sum(map(len, marks)) <= MOST_BARS
        assert {mark.look for of in marks for mark in of} == {"published", "measured"}
        for of in marks:
            values = [mark.value for mark in of]
            assert values == sorted(values) and values[0] == 1.0
            assert all((mark.low is None) == (mark.look == "published") for mark in of if mark.value != 1)


def test_a_page_says_how_its_precisions_learn():
    request = AnalysisRequest(datetime(2026, 12, 1, tzinfo=UTC), session="20261121-38cb4c")
    found = analyse(evidence_here(), request)
    sure = uncertainty.view(found)
    assert sure is not None
    learning = [
        (first, parity.unjudged, parity.of.figures["quality"].n) for _, parity, first in sure.learning
    ]
    assert learning == [("follows", "cut short", 3), ("follows", "cut short", 3)]


@pytest.mark.parametrize(("machines", "few"), [(2, True), (3, False)])
def test_units_of_a_model_are_few_by_all_machines_that_have_it(machines: int, few: bool):
    found = analyse(
        cases.evidence_of(cases.of(partial(fleet, machines, cards_per_machine=1))), AnalysisRequest(NOW)
    )
    sure = uncertainty.view(found)
    assert ("few-units" in {doubt.name for doubt in (sure.caveats if sure else ())}) == few


def test_without_records_the_studies_stand_alone_in_a_bounded_number_of_pictures(alone: Analysis):
    found = viewed(alone)
    assert found.alone and not found.rows and found.counts["met"] == 0
    drawn = charts(found)
    assert 1 < len(drawn) <= MOST_ALONE
    assert found.studies[0].name == "Bhutani 2019"
    for chart in drawn:
        marks = [mark for group in chart.groups for row in group.rows for mark in row.marks]
        assert len(marks) <= MOST_BARS and {mark.look for mark in marks} == {"published"}


def test_what_this_machine_did_on_other_terms_is_in_no_picture():
    request = AnalysisRequest(NOW, session=cases.COMMITTED["desk"][-15:])
    found = viewed(analyse(evidence_here(), request))
    assert found.studies == ()


@pytest.mark.parametrize("which", ["judged", "alone"])
def test_the_part_is_written_in_both_formats(which: str, request: pytest.FixtureRequest, undrawn):
    analysis = request.getfixturevalue(which)
    written = render(page_of(analysis))
    for name in ("Bhutani 2019", "invoke claims"):
        assert name in written.html and name in written.markdown
    assert "Bhutani 2019" not in written.html.lower()
