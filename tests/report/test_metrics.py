from __future__ import annotations

from dataclasses import fields
from typing import get_args

from harness.record import Claim
from harness.record.published.claims import UNITS
from report.compare.cells import Cell
from report.metrics import CLAIMED, FIGURES


def test_each_metric_that_a_claim_may_have_stands_in_the_table_once_and_has_units():
    named = get_args(Claim.model_fields["metric"].annotation)
    assert set(named) == set(CLAIMED) == set(UNITS)
    assert sum(len(metric.claimed_as) for metric in {*CLAIMED.values()}) == len(named)


def test_each_figure_of_a_cell_stands_in_the_table_and_has_a_column():
    figures = {field.name for field in fields(Cell) if field.type == "Figure"}
    assert figures == set(FIGURES)
    assert all(metric.source for metric in FIGURES.values())
