"""Bundles of tests/bundles, packed by earlier releases from sessions of results/: they stay good."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from commands import offer
from report.buying import clause
from tests.helpers import TESTS

BUNDLES = sorted((TESTS / "bundles").glob("*.tar.gz"))


def test_there_is_a_bundle_of_each_kind():
    assert [path.name for path in BUNDLES] == ["chexnet-rank.tar.gz", "two-desks-priced.tar.gz"]


@pytest.mark.parametrize("packed", BUNDLES, ids=lambda path: path.name)
def test_an_older_bundle_opens_verifies_and_is_met_by_the_machine_that_it_was_packed_on(
    packed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = shutil.copy(packed, tmp_path)
    offer.verify(Path(path), None)
    said = capsys.readouterr()
    assert "DIFFERS" not in said.err and ("as it was packed" in said.out or "whole" in said.out)
    with offer.intact(Path(path)) as opened:
        assert opened.manifest is not None
        analysis = offer.analysis_of(opened, opened.manifest)
        priced = analysis.evidence.purchase is not None
        assert priced == ("priced" in packed.name)
        assert (analysis.costs is not None and analysis.costs.answer is not None) == priced
        assert analysis.clause is not None
        reached = clause.judge(analysis.clause, analysis.own_cells)
    assert reached and all(result.passed for result in reached)
