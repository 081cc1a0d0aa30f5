"""Page one of one machine by itself, of the records that came with this clone."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache

import pytest

from report.analysis import AnalysisRequest, analyse
from report.charts.curves import CurvePanel, Curves
from report.page.build import page_of
from report.page.one.headlines import is_vague
from report.page.one.measured import MachineSpeeds
from report.page.render import render
from report.page.values import Page, Quantity
from tests.helpers.here import evidence_here
from tests.helpers.purposes import page as constructed

NOW = datetime(2026, 12, 1, tzinfo=UTC)
H100, SURF, IRIS, NETWORKS = "20261126-cb0794", "20261125-08b1ee", "20261126-6f810e", "20261125-4a4da8"
FRAMEWORKS, CLAIMS = "20261123-7d4985", "20261123-bba217"
CHECKED = "20261127-aee4d4"
PROGRAMS, CHAINER = "20261126-7ac9ad", "20261123-313463"


@cache
def page(session: str) -> Page:
    return page_of(analyse(evidence_here(), AnalysisRequest(NOW, session=session)))


def view(session: str) -> MachineSpeeds:
    found = page(session).one.view
    assert isinstance(found, MachineSpeeds)
    return found


def panels(session: str, name: str) -> tuple[CurvePanel, ...]:
    chart = dict(view(session).more)[name].chart
    assert isinstance(chart, Curves)
    return chart.panels


def test_quality_is_a_line_over_the_time_that_was_trained():
    (panel,) = panels(IRIS, "learning")
    assert isinstance(panel, CurvePanel) and len(panel.lines) == 3
    for line in panel.lines:
        minutes = [at for at, _ in line.points]
        assert minutes == sorted(minutes) and 0 < minutes[-1] < 60


@pytest.mark.parametrize(
    ("session", "state"),
    [
        (FRAMEWORKS, "frameworks"),
        (NETWORKS, "speeds"),
        (IRIS, "scaling"),
        (CHAINER, "frameworks"),
        (CLAIMS, "published"),
        (H100, "published"),
    ],
)
def test_the_headline_is_the_finding_that_the_session_bears(session: str, state: str):
    assert page(session).one.headline.state == state


def test_frameworks_that_are_not_ranked_are_a_first_look():
    assert page(FRAMEWORKS).one.headline.data["first_look"] is True


def test_a_session_of_one_framework_is_held_against_the_fastest_of_its_machine():
    said = page(CHAINER).one.headline.data
    assert (said["tied"], said["slower"]["name"]) == (["PyTorch"], "Chainer")
    assert 3 < said["slower"]["times"].low < said["slower"]["times"].value < 5


def test_a_machine_slower_than_the_published_one_takes_so_many_times_as_long():
    slow, fast = (page(session).one.headline.data for session in (CLAIMS, H100))
    assert slow["slower"] and slow["times"].value > 10
    assert not fast["slower"] and fast["times"].value > 3


@pytest.mark.parametrize(("low", "high", "vague"), [(0.97, 1.04, False), (0.69, 3.08, True)])
def test_a_range_around_one_is_called_no_gain_only_where_it_is_narrow(low: float, high: float, vague: bool):
    assert is_vague(Quantity(1.0, "", low, high, tied=True)) is vague
    assert not is_vague(Quantity(1.0, "", low, high))


def test_the_reader_of_a_slow_card_is_sent_to_its_clock_only_where_it_is_drawn():
    said = [
        note.data["watched"]
        for made in (page(CHECKED), constructed("card-slow"))
        for note in made.one.notes
        if note.state == "check-do"
    ]
    assert said == [True, False]


def test_each_table_of_the_markdown_begins_after_a_blank_line():
    before = [
        lines[n - 1]
        for lines in [render(page(PROGRAMS), drawn=False).markdown.split("\n")]
        for n, line in enumerate(lines[:-1])
        if lines[n + 1].startswith("| ---")
    ]
    assert len(before) > 2 and set(before) == {""}


@pytest.mark.parametrize("session", [IRIS, "20261123-f41240"])
def test_a_dossier_of_several_works_is_short(session: str):
    assert 150 < len(render(page(session), drawn=False).markdown.splitlines()) <= 300


@pytest.mark.parametrize("session", [H100, SURF, IRIS, NETWORKS])
def test_the_runs_that_are_told_are_those_of_the_table(session: str):
    runs = [row.cell.throughput.n for row in view(session).rows]
    (confidence,) = [chip.data for chip in page(session).one.chips if chip.name == "confidence"]
    (sure,) = [note.data for note in page(session).one.notes if note.state == "how-sure"]
    assert (confidence["runs"], confidence["most"]) == (min(runs), max(runs))
    assert (sure["runs"], sure["most"]) == (min(runs), max(runs))


@pytest.mark.parametrize(
    ("session", "needs", "blocks"),
    [(IRIS, ["longer", "runs"], False), (NETWORKS, ["longer"], False), (CHAINER, ["longer"], False)],
)
def test_the_next_line_spreads_no_runs_that_are_too_few_or_too_short(
    session: str, needs: list[str], blocks: bool
):
    found = page(session).one.next_first
    assert found is not None and found.data["needs"] == needs
    assert ("--blocks" in found.data["commands"][0]) is blocks
