from __future__ import annotations

from typing import get_args

from harness.record import Claim
from harness.record.published.claim_set import UNITS
from report.metrics import CLAIMED, FIGURES
from report.trials.table import COLUMNS
from tests.helpers import records_builder as build
from tests.helpers.trial_tables import trials_of


def test_each_metric_that_a_claim_may_have_stands_in_the_table_once_and_has_units():
    named = get_args(Claim.model_fields["metric"].annotation)
    assert set(named) == set(CLAIMED) == set(UNITS)
    assert sum(len(metric.claimed_as) for metric in {*CLAIMED.values()}) == len(named)


def test_each_figure_of_a_cell_is_read_of_a_trial_and_has_a_column():
    (trial, *_) = trials_of(build.two_cards())
    assert all(metric.of(trial) is None or metric.of(trial) >= 0 for metric in FIGURES.values())
    assert {metric.path for metric in FIGURES.values()} <= {column.source for column in COLUMNS}
