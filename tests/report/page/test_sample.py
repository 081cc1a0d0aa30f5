"""The page that the README leads to: its card has the figures of today's analysis of its two sessions."""

from __future__ import annotations

from datetime import UTC, datetime

from harness.plan.plan_file import plan_questions
from report.analysis import AnalysisRequest, analyse
from report.charts.card import MOST_ROWS
from report.page.render import answer_text
from report.page.whole_page import page_of
from tests.helpers import ROOT
from tests.helpers.here import evidence_here

H200, H100 = "20261127-63ddd7", "20261126-cb0794"


def test_the_sample_has_the_answer_and_each_figure_of_its_two_cards():
    asked = AnalysisRequest(
        datetime(2026, 12, 1, tzinfo=UTC), H200, questions=plan_questions(ROOT), named=(H200, H100)
    )
    one = page_of(analyse(evidence_here(), asked)).one
    card, page = ((ROOT / "docs" / "sample" / name).read_text() for name in ("card.svg", "report.md"))
    assert f"# {answer_text(one.answer.headline)}\n" in page
    rows = [row for group in one.answer.picture.chart.groups for row in group.rows][:MOST_ROWS]
    assert all(row.text.replace("\xa0", " ") in card.replace("\xa0", " ") for row in rows if row.marks)
