"""Page one says one thing of two systems: sentence, figures, questions and what would turn it agree."""

from __future__ import annotations

import re

import pytest

from harness.record import Limit, Record
from report.sections.view import PageView
from tests.report.comparisons.test_groups import elsewhere, series, view

SHORT = {"verdict": "unproven", "complete": False, "limit": Limit(steps=40)}
NOISY = {"spread": 0.4}

RANKS = re.compile(r"Card [AB] (is|does|did|wins|beats)\b.*\d[^.]* times", re.I)


def said(page: PageView) -> list[str]:
    """All that page one says of speed and cost."""
    asked = [sentence for question in page.questions for sentence in question.sentences]
    return [page.answer, *(f"{fact.value} {fact.label}" for fact in page.facts), *asked, *page.changes]


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
