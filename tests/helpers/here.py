"""What this repository holds, read once for all tests."""

from __future__ import annotations

from functools import cache

from harness.record.published.claims import ClaimSet, load_claims
from harness.record.store import Results, read_all
from report.analysis import Evidence, evidence_in
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
