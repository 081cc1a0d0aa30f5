"""A page's view of records that a test holds in memory."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from harness.record.claims import ClaimSet
from harness.record.store import Results
from report.analysis import Evidence, Question, analyse
from report.cost.purchase import Purchase
from report.page.build import look
from report.sections.view import PageView


def view_of(
    results: Results,
    claims: ClaimSet | None = None,
    cards: Any = (),
    purchase: Purchase | None = None,
    *,
    now: datetime,
    **question: Any,
) -> PageView:
    """The view that leads with what `question` asks for."""
    evidence = Evidence(results, claims or ClaimSet(), tuple(cards), purchase)
    return look(analyse(evidence, Question(now, **question)))
