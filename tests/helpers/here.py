"""What this repository holds, read once for all tests."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest

from harness.record.published.claim_set import ClaimSet, read_claims
from harness.record.store import Results, read_results, session_folders
from harness.summary.statistics import differing_part
from report.analysis import Analysis, AnalysisRequest, Evidence, analyse, evidence_in
from report.trials import reading
from tests.helpers import ROOT


def load_claims(root: Path) -> ClaimSet:
    """The claims below `root`; raises UserError for the first file in doubt."""
    read = read_claims(root)
    if read.problems:
        raise read.problems[0]
    return read


@cache
def claims_here() -> ClaimSet:
    return load_claims(ROOT)


@cache
def results_here() -> Results:
    return committed_of(read_results(ROOT))


def committed_of(read: Results) -> Results:
    """What is committed: a run here may have written more, of a processor that goes by the same name."""
    listed = subprocess.check_output(["git", "-C", str(ROOT), "ls-files", "-z", "results"], text=True)
    paths = frozenset(listed.split("\0"))
    return Results(
        tuple(stored for stored in read.records if stored.path in paths),
        tuple(session for session in read.sessions if session.id in session_folders(paths)),
        tuple(problem for problem in read.problems if problem.partition(":")[0] in paths),
    )


@cache
def evidence_here() -> Evidence:
    """Records whose summaries were held against their samples, claims and cards."""
    # The tests of the report believe the summaries of constructed records, in the order in which they come.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "differing_part", differing_part)
        return evidence_in(ROOT, committed_of(reading.results_of(ROOT)), purchase=False)


@cache
def analysis_here(session: str) -> Analysis:
    """Return the analysis of everything here that one session leads."""
    return analyse(evidence_here(), AnalysisRequest(datetime(2026, 11, 28, tzinfo=UTC), session=session))
