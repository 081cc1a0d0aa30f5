"""What this repository holds, read once for all tests."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache

import pytest

from harness.record.published.claim_set import ClaimSet, load_claims
from harness.record.store import Results, read_results
from harness.summary.statistics import differing_part
from report.analysis import Analysis, AnalysisRequest, Evidence, analyse, evidence_in
from report.trials import reading
from tests.helpers import ROOT


@cache
def claims_here() -> ClaimSet:
    return load_claims(ROOT)


@cache
def results_here() -> Results:
    return read_results(ROOT)


@cache
def evidence_here() -> Evidence:
    """Records whose summaries were held against their samples, claims and cards."""
    # The tests of the report believe the summaries of constructed records, in the order in which they come.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "differing_part", differing_part)
        return evidence_in(ROOT, purchase=False)


@cache
def analysis_here(session: str) -> Analysis:
    """Return the analysis of everything here that one session leads."""
    return analyse(evidence_here(), AnalysisRequest(datetime(2026, 11, 28, tzinfo=UTC), session=session))
