"""Works that would bear one name are told apart by what differs between them, and by nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from report.comparisons.cells import Cell, cells_of
from report.sections import names
from tests.helpers.trial_tables import table
from tests.report.comparisons.test_groups import series


def works(*changes: dict[str, Any]) -> list[Cell]:
    records = [
        one for place, change in enumerate(changes) for one in series(first_order=10 * place, **change)
    ]
    cells = cells_of(table(records))
    assert len(cells) == len(changes)
    return cells


def named(cells: list[Cell], **said: Any) -> set[str]:
    return {names.work(cell, cells, **said) for cell in cells}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (({}, {"batch_size": 40}), {"LSTM in fp32-ieee, batch 20", "LSTM in fp32-ieee, batch 40"}),
        (({}, {"mode": "host"}), {"LSTM in fp32-ieee, cached data", "LSTM in fp32-ieee, host data"}),
        (({}, {"data": "generated"}), {"LSTM in fp32-ieee, real data", "LSTM in fp32-ieee, generated data"}),
        (({}, {"profile": "tuned"}), {"LSTM in fp32-ieee", "LSTM in fp32-ieee, tuned"}),
        (({}, {"model": "gru"}), {"LSTM in fp32-ieee", "GRU in fp32-ieee"}),
        (
            ({"options": {"loader": "threads"}}, {"options": {"loader": "threads", "source_pixels": 1024}}),
            {"LSTM in fp32-ieee", "LSTM in fp32-ieee, source pixels 1024"},
        ),
        (
            (
                {"options": {"workers": 1}},
                {"options": {"workers": 6}},
                {"options": {"workers": 6}, "batch_size": 40},
            ),
            {
                "LSTM in fp32-ieee, workers 1",
                "LSTM in fp32-ieee, workers 6, batch 20",
                "LSTM in fp32-ieee, workers 6, batch 40",
            },
        ),
    ],
)
def test_a_name_has_what_tells_it_from_its_like(changes, expected):
    assert named(works(*changes)) == expected


def test_what_stands_beside_a_name_is_not_said_again():
    assert named(works({}, {"batch_size": 40}), said=("batch_size",)) == {"LSTM in fp32-ieee"}


def test_the_batches_of_two_precisions_tell_no_work_apart():
    records = [*series(), *series("amp-bf16", batch_size=40, first_order=10)]
    cells = cells_of(table(records))
    assert named(cells) == {"LSTM in fp32-ieee", "LSTM in amp-bf16"}
