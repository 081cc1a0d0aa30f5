"""What this repository holds, read once for all tests."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache

from harness.record.published.claim_set import ClaimSet, load_claims
from harness.record.store import Results, read_all
from report.analysis import Analysis, AnalysisRequest, Evidence, analyse, evidence_in
from tests.helpers import ROOT


@cache
def claims_here() -> ClaimSet:
    return load_claims(ROOT)


@cache
def results_here() -> Results:
    return read_all(ROOT)


@cache
def evidence_here() -> Evidence:
    """Records whose summaries were held against their samples, claims and cards."""
    return evidence_in(ROOT, purchase=False)


@cache
def analysis_here(session: str) -> Analysis:
    """Return the analysis of everything here that one session leads."""
    return analyse(evidence_here(), AnalysisRequest(datetime(2026, 11, 28, tzinfo=UTC), session=session))
