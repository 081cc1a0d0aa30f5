"""What bends no figure: each case at a few hundred draws here, at all of them where it is asked for."""

from __future__ import annotations

import pytest
from benchmarks.coverage.cases import Case

from tests.helpers.bent_figures import CASES

KNOWN_SHORT = {"own spread 3 × the published, 2 seeds: a bound at equality is decided"}
"""One degree of freedom shows a spread too seldom: 13 % where 10 are promised."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_reaches_its_target(case: Case):
    assert case.row(200).reached or case.name in KNOWN_SHORT


@pytest.mark.whole
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_reaches_its_target_over_all_draws(case: Case):
    row = case.row()
    assert row.reached or (case.name in KNOWN_SHORT and row.found < 16)
