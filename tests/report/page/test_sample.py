"""The page and the cards in docs/sample: they say what today's analysis of their sessions says."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from html import unescape

import pytest

from harness.plan.plan_file import plan_questions
from report.analysis import AnalysisRequest, analyse
from report.charts.card import MOST_ROWS, draw_card
from report.page.render import share_card
from report.page.whole_page import page_of
from tests.helpers import ROOT
from tests.helpers.here import evidence_here

SAMPLE = ROOT / "docs" / "sample"


@pytest.mark.parametrize(
    ("name", "sessions"),
    [
        ("card", ("20261127-63ddd7", "20261126-cb0794")),
        ("h200-check", ("20261127-aee4d4",)),
        ("ranges", ("20261125-53f079",)),
    ],
)
def test_a_sample_has_the_answer_and_each_figure_of_its_sessions(name, sessions):
    now, named = datetime(2026, 12, 1, tzinfo=UTC), sessions if len(sessions) > 1 else ()
    asked = AnalysisRequest(now, sessions[0], questions=plan_questions(ROOT), named=named)
    page = page_of(analyse(evidence_here(), asked))
    card, file = share_card({"page": page, "analysis": page.analysis}), SAMPLE / f"{name}.svg"
    if os.environ.get("GPUDYNO_ACCEPT") == "1":
        file.write_bytes(draw_card(card)["card.svg"])
    shown = unescape(file.read_text(encoding="utf-8")).replace("\xa0", " ")
    chart = page.one.answer.picture.chart
    rows = [row for group in chart.groups for row in group.rows][:MOST_ROWS]
    figures = [row.text.replace("\xa0", " ") for row in rows if row.marks]
    assert not [said for said in (*card.headline.replace("\xa0", " ").split(), *figures) if said not in shown]
    if name == "card":
        assert f"# {card.headline}\n" in (SAMPLE / "report.md").read_text(encoding="utf-8")
