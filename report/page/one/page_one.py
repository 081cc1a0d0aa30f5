"""Page one: what it is about, and its headline, chips, picture, table and notes."""

from __future__ import annotations

from report.analysis import Analysis
from report.page.page import PageOne, Source
from report.page.systems import Systems
from report.page.values import Headline


def page_one(analysis: Analysis, systems: Systems) -> PageOne:
    """Page one of an analysis."""
    own = analysis.own
    source = Source(
        written=analysis.question.now,
        started=min((trial.started_at for trial in own), default=None),
        plan=own[0].record.plan if own else "",
        trials=len(own),
        failed=sum(trial.failure is not None for trial in own),
    )
    return PageOne(
        subject=Headline("own", {"own": systems.own[0].name if systems.own else ""}),
        source=source,
        headline=Headline("stub"),
        chips=(),
        notes=(),
        template="stub",
        view=None,
    )
