"""Page one says one thing of two systems: sentence, figures, questions and what would turn it agree."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from harness.record import Limit, Record
from report.charts.intervals import Intervals, Mark
from report.sections.view import PageView, Panel
from tests.helpers import records_builder as build
from tests.helpers.records_frameworks import runs
from tests.report.comparisons.test_groups import elsewhere, series, view

DAY_BEFORE = build.STARTED - timedelta(days=1)
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


def test_single_runs_of_two_cards_rank_nothing_and_lead_no_page():
    page = view([*series(repeats=1), *elsewhere(repeats=1)])
    assert (
        page.answer.startswith("On this Constructed Card A, 30 epochs of LSTM")
        and "Card B" not in page.answer
    )
    (which, *_) = page.questions
    assert which.sentences[0].startswith("Single runs give no range: the Constructed Card B took 0.80 of")
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


def test_of_two_cards_it_draws_how_many_times_as_fast_each_work_ran_and_the_whole_of_it():
    work = {"batch_size": 40, "first_order": 10}
    records = [*series(), *series(**work), *elsewhere(), *elsewhere(seconds=0.05, **work, **SHORT)]
    picture = view(records).picture
    assert picture is not None and picture.title == "The Constructed Card B against the Constructed Card A"
    assert [(mark.label, mark.text, mark.unranked) for mark in marks(picture)][:1] == [
        ("LSTM in fp32-ieee", "1.25 ×", False)
    ]
    *_, whole = marks(picture)
    assert whole.low is not None and whole.other_units is not None and whole.other_units[0] < whole.low
    assert picture.unit == "times as fast; more is better; pale: the units that you would get"


def test_page_one_bears_the_labels_of_what_it_leads_with_alone():
    earlier = series(session="20260129-cccccc", model="gru", data="generated")
    page = view([*series(), *[one.model_copy(update={"started_at": DAY_BEFORE}) for one in earlier]])
    assert [badge.word for badge in page.badges] == ["weak: 3 runs"]
    assert any(sentence.startswith("GENERATED DATA:") for sentence in page.caveats)


def test_where_frameworks_did_one_work_and_no_pair_of_machines_did_they_lead():
    page = view([*runs("pytorch", 0.2), *runs("tensorflow", 0.25)])
    assert [(fact.value, fact.label) for fact in page.facts[:2]] == [
        ("320 images/s", "PyTorch (fp32-ieee, 5 runs)"),
        ("256 images/s", "TensorFlow (fp32-ieee, 5 runs)"),
    ]
    assert page.picture is not None and [mark.label for mark in marks(page.picture)] == [
        "PyTorch",
        "TensorFlow",
    ]
    assert page.answer.startswith(
        "On this Constructed Card A PyTorch trains DenseNet-121 at batch 64 the fastest: "
        "320 images a second; TensorFlow takes 1.25 ("
    )
    tied = view([*runs("pytorch", 0.2000), *runs("tensorflow", 0.2001)])
    assert "no difference is shown between PyTorch and TensorFlow for DenseNet-121" in tied.answer
