"""Which runs of a line count: whether a speed settled goes with how high it is. All runs are drawn."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from harness.record import Limit
from report.compare.cells import Run, cells_of, figure_of_runs, verdicts_left_out
from tests.helpers.record_sets import series
from tests.helpers.trial_tables import trials_of

SETTLED = (100.0, 101.0, 99.0, 100.5)


def runs(settled: Sequence[float], unproven: Sequence[float]) -> list[Run]:
    return [
        *(Run(value, 1, "valid") for value in settled),
        *(Run(value, 1, "unproven") for value in unproven),
    ]


def selected(of: Sequence[Run]) -> frozenset[str]:
    return verdicts_left_out([run.verdict for run in of], of)


@pytest.mark.parametrize(
    ("settled", "unproven", "out"),
    [
        (SETTLED, (100.2,), True),
        (SETTLED, (80.0,), False),
        (SETTLED[:3], (100.0, 100.0, 100.0), False),
        (SETTLED[:2], (100.0,), False),
    ],
)
def test_unproven_runs_are_left_out_where_most_are_proven_and_the_mean_stays(settled, unproven, out):
    assert ("unproven" in selected(runs(settled, unproven))) == out


def test_a_figure_keeps_the_unproven_runs_that_were_left_out_beside_those_that_count():
    of = [*runs(SETTLED, (99.1,)), Run(1.0, 1, "invalid")]
    made = figure_of_runs(of, selected(of), in_blocks=True)
    assert (made.n, made.mean) == (4, pytest.approx(100.125))
    assert made.with_unproven.values == (*SETTLED, 99.1)


def test_an_accuracy_knows_no_blocks():
    of = [Run(0.9 + 0.01 * place, 1 + place // 2, "valid") for place in range(6)]
    assert figure_of_runs(of, (), in_blocks=True).interval.df == 2
    assert figure_of_runs(of, (), in_blocks=False).interval.df == 5


def test_repeats_of_one_trial_are_one_line_though_one_was_stopped_by_its_limit_and_one_ended():
    asked = Limit(seconds=20)
    ended, stopped = (series(repeats=2, limit=asked, complete=complete) for complete in (True, False))
    (cell,) = cells_of(trials_of([ended[0], stopped[1]]))
    assert (cell.throughput.n, cell.length.projected, cell.length.limit) == (2, True, (("seconds", 20.0),))
    (whole,) = cells_of(trials_of(ended))
    assert (whole.length.projected, whole.length.limit) == (False, ())


def test_repeats_of_other_limits_are_other_lines():
    others = [series(repeats=2, limit=Limit(seconds=at), complete=False) for at in (20, 30)]
    assert len(cells_of(trials_of([*others[0], *others[1]]))) == 2
