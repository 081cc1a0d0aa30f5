"""The bundle of tests/bundles, packed by an earlier release from a session of results/: it stays good."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from commands import offer
from report.buying import clause
from tests.helpers import TESTS


def test_an_older_bundle_opens_verifies_and_is_met_by_the_machine_that_it_was_packed_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = Path(shutil.copy(TESTS / "bundles" / "chexnet-rank.tar.gz", tmp_path))
    offer.verify(path, None)
    said = capsys.readouterr()
    assert "DIFFERS" not in said.err and ("as it was packed" in said.out or "whole" in said.out)
    with offer.intact(path) as opened:
        assert opened.manifest is not None
        analysis = offer.analysis_of(opened, opened.manifest)
        assert analysis.clause is not None
        reached = clause.judge(analysis.clause, analysis.own_cells)
    assert reached and all(result.passed for result in reached)
