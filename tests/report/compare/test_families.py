"""Several comparisons that are read together keep 95 % as a whole. All runs are drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from harness.record import PRECISION_ORDER
from report.compare import precisions as speedups
from report.compare import scaling
from report.compare.cells import Cell, Ratio, cells_of
from report.compare.figures import Figure, Run, figure
from report.compare.groups import comparison_groups
from report.compare.precisions import parities
from tests.helpers.trial_tables import trials_of
from tests.report.compare.test_groups import LEAD, elsewhere, found, series


@cache
def lines(count: int) -> tuple[Cell, ...]:
    """Lines of one machine and session, a precision each."""
    records = [
        record
        for place, precision in enumerate(PRECISION_ORDER[:count])
        for record in series(precision, repeats=2, first_order=10 * place)
    ]
    return cells_of(trials_of(records))


def equal(rng: np.random.Generator, count: int, n: int) -> list[Cell]:
    """Equally fast lines, with a CV of 1 % between runs, in an hour that treats two 0.5 % differently."""

    def drawn() -> Figure:
        values = np.exp(rng.normal(0, 0.005 / 2**0.5) + rng.normal(0, 0.01, n)).tolist()
        return figure([Run(value, 1, "valid") for value in values], (), in_blocks=True)

    return [
        replace(cell, figures={**cell.figures, "seconds": drawn(), "throughput": drawn()})
        for cell in lines(count)
    ]


def all_hold(ratios: Iterable[Ratio]) -> bool:
    return all(ratio.interval is not None and ratio.interval.includes(1.0) for ratio in ratios)


def test_a_chart_scaled_to_the_fastest_of_eight_lines_holds_as_a_whole():
    rng = np.random.default_rng(8)
    held, draws = 0, 200
    for _ in range(draws):
        (group,) = comparison_groups(equal(rng, 8, 10), LEAD, baseline=None)
        held += all_hold(entry.scaled for entry in group.entries if entry.scaled)
    assert 0.93 <= held / draws < 1


def test_the_speed_ups_of_one_workload_hold_as_a_whole():
    rng = np.random.default_rng(6)
    draws = [speedups.speedups(equal(rng, 5, 5)) for _ in range(200)]
    assert 0.93 <= sum(all_hold(gain.ratio for gain in gains) for gains in draws) / 200 < 1


@pytest.mark.parametrize(("baseline", "comparisons"), [(None, 6), ("card a", 3), ("no such card", 6)])
def test_a_reference_that_the_data_choose_counts_all_pairs_and_a_named_one_its_own(baseline, comparisons):
    precisions = ("fp32-ieee", "amp-bf16", "amp-fp16")
    own = [record for n, name in enumerate(precisions) for record in series(name, first_order=10 * n)]
    (group,) = found([*own, *elsewhere()], baseline=baseline)
    ratios = [entry.scaled for entry in group.entries if entry.scaled and not entry.reference]
    assert {ratio.interval.comparisons for ratio in ratios if ratio.interval} == {comparisons}


def test_the_lines_of_one_run_are_no_comparisons():
    (group,) = found([*series(), *elsewhere(), *series("amp-bf16", repeats=1, first_order=10)])
    ratios = [entry.scaled for entry in group.entries if entry.scaled and not entry.reference]
    assert {ratio.interval.comparisons for ratio in ratios if ratio.interval} == {1}


def test_the_devices_of_one_work_are_compared_together():
    several = (cell for gpus in (1, 2, 4) for cell in cells_of(trials_of(series(gpus=gpus))))
    cells = tuple(several)
    work = scaling.Scaling(cells[0].key, cells)
    ratios = [work.over_single(cell) for cell in cells]
    assert ratios[0] is None
    assert [ratio.interval.comparisons for ratio in ratios[1:] if ratio and ratio.interval] == [2, 2]


def test_parities_with_one_reference_are_judged_together():
    def ends(cell: Cell, level: float) -> Cell:
        values = [math.exp(level + 0.01 * place) for place in range(5)]
        runs = [Run(value, 1, "valid") for value in values]
        return replace(cell, figures={**cell.figures, "quality": figure(runs, (), in_blocks=False)})

    chosen = [cell for cell in lines(8) if cell.key.precision in ("fp32-ieee", "amp-fp16", "amp-bf16")]
    verdicts = parities([ends(cell, 4.0) for cell in chosen])
    assert [one.verdict.interval.comparisons for one in verdicts if one.verdict] == [2, 2]
