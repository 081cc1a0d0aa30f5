"""Page one says one thing of two systems: sentence, figures, questions and what would turn it agree."""

from __future__ import annotations

import re

import pytest

from harness.record import Limit, Record
from report.charts.intervals import Intervals, Mark
from report.sections.view import PageView, Panel
from tests.helpers.records_frameworks import runs
from tests.report.comparisons.test_groups import elsewhere, series, view

SHORT = {"verdict": "unproven", "complete": False, "limit": Limit(steps=40)}
NOISY = {"spread": 0.4}

RANKS = re.compile(r"Card [AB] (is|does|did|wins|beats)\b.*\d[^.]* times", re.I)


def said(page: PageView) -> list[str]:
    """All that page one says of speed and cost."""
    asked = [sentence for question in page.questions for sentence in question.sentences]
    return [page.answer, *(f"{fact.value} {fact.label}" for fact in page.facts), *asked, *page.changes]


def marks(picture: Panel) -> tuple[Mark, ...]:
    assert isinstance(picture.chart, Intervals)
    return picture.chart.marks


@pytest.mark.parametrize("short", [{}, SHORT], ids=["proven", "first look"])
def test_where_the_range_includes_one_nothing_on_page_one_ranks(short):
    page = view([*series(**NOISY, **short), *elsewhere(seconds=0.06, **NOISY, **short)])
    assert "o difference is shown" in page.answer
    assert not any("×" in fact.value for fact in page.facts)
    ranked = [sentence for sentence in said(page) if RANKS.search(sentence)]
    assert [sentence for sentence in ranked if "o difference" not in sentence] == []
    assert page.answer.startswith("A first look" if short else "No difference")


def test_a_first_look_whose_range_leaves_one_out_says_so_in_lead_and_answer_and_leads_with_no_figure():
    page = view([*series(**SHORT), *elsewhere(**SHORT)])
    assert page.answer.startswith("A first look, and no ranking: in these tests the Constructed Card B")
    (which, *_) = page.questions
    assert which.sentences[0] == "This is a first look, and no ranking."
    assert not any("×" in fact.value for fact in page.facts)
    assert not any("beats" in sentence for sentence in said(page))


def test_a_range_that_is_too_wide_to_say_how_fast_is_no_headline():
    page = view([*series(**NOISY, **SHORT), *elsewhere(seconds=0.002, **NOISY, **SHORT)])
    assert page.answer.endswith("lie too far apart to compare them.")
    assert not [sentence for sentence in said(page) if "times as fast as" in sentence]


def test_single_runs_rank_nothing():
    page = view([*series(repeats=1), *elsewhere(repeats=1)])
    assert page.answer.endswith("but single runs give no range.")
    assert not any("×" in fact.value for fact in page.facts)


def gained(**changes: object) -> list[Record]:
    return [*series(**changes), *series("amp-bf16", 0.06, first_order=10, **changes)]


@pytest.mark.parametrize(("changes", "leads"), [({}, True), (NOISY, False), (SHORT, False)])
def test_a_gain_of_precision_is_a_leading_figure_only_where_it_may_be_ranked(changes, leads):
    page = view(gained(**changes))
    assert any("×" in fact.value for fact in page.facts) == leads


def test_where_precisions_differ_page_one_draws_the_gain_that_its_sentence_is_of():
    picture = view(gained(**SHORT)).picture
    assert picture is not None and picture.title == "Speed against 32-bit"
    assert picture.alt.startswith("LSTM in amp-bf16 (over fp32-ieee")


def test_of_one_precision_it_draws_how_fast_each_work_ran():
    picture = view([*series(), *series(batch_size=40, seconds=0.2, first_order=10)]).picture
    assert picture is not None and picture.unit == "tokens a second; more is better"
    assert [mark.text for mark in marks(picture)] == ["200", "200"]


def test_generated_data_is_labelled_in_the_picture_too():
    for records in (gained(data="generated"), series(data="generated")):
        picture = view(records).picture
        assert picture is not None
        assert all(mark.note.endswith(" · GENERATED data") for mark in marks(picture))


def test_where_frameworks_did_one_work_and_no_pair_of_machines_did_they_lead():
    page = view([*runs("pytorch", 0.2), *runs("tensorflow", 0.25)])
    assert page.answer.startswith(
        "On this Constructed Card A PyTorch trains DenseNet-121 at batch 64 the fastest: "
        "320 images a second; TensorFlow takes 1.25 ("
    )
    tied = view([*runs("pytorch", 0.2000), *runs("tensorflow", 0.2001)])
    assert "no difference is shown between PyTorch and TensorFlow for DenseNet-121" in tied.answer
