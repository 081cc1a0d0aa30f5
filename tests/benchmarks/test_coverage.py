"""The simulation's own arithmetic: when a row misses its target, and that every case draws a page."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from benchmarks import sensing
from benchmarks.coverage import intervals, selection, series, tables, verdicts
from benchmarks.coverage.cases import Case, Draw, Row, Target
from tests.helpers import ROOT


def row(target: Target, found: float, *, silent: float = 0.0) -> Row:
    return Row("a case", target, 4_000, found, 50.0, silent)


@pytest.mark.parametrize(
    ("target", "found", "reached"),
    [
        (Target(92), 91.5, True),
        (Target(92), 90.5, False),
        (Target(high=5), 5.5, True),
        (Target(high=5), 6.5, False),
        (Target(94, 97.5), 99.0, False),
        (Target(), 10.0, True),
    ],
)
def test_a_row_misses_its_target_from_two_standard_errors_on(target, found, reached):
    assert row(target, found).reached == reached


def test_a_miss_is_forgiven_where_the_pages_that_err_say_so():
    assert not row(Target(92), 60.0, silent=7.0).short
    assert row(Target(92), 60.0, silent=12.0).short
    assert not row(Target(high=5), 20.0, silent=4.0).short
    assert row(Target(high=5), 20.0, silent=9.0).short


def test_a_case_counts_its_event_and_of_the_pages_that_err_those_without_a_caveat():
    pages = iter([Draw(True), Draw(False, True), Draw(False), Draw(True, True)] * 10)
    made = Case("every other page errs", Target(92), lambda rng: next(pages), draws=40).row()
    assert (made.found, made.caveats, made.silent) == (50.0, 50.0, 25.0)
    assert made.short
    assert made.cells() == ("every other page errs", "50.0", "7.9", "≥ 92", "50")


def test_a_case_draws_the_same_pages_whatever_is_drawn_beside_it():
    def draw(rng: np.random.Generator) -> Draw:
        return Draw(bool(rng.random() < 0.5))

    assert Case("a", Target(), draw).row(50) == Case("a", Target(), draw).row(50)
    assert Case("a", Target(), draw).row(50).found != Case("b", Target(), draw).row(50).found


def test_every_case_draws_a_page_and_no_two_are_called_the_same():
    by_group = tables.rows(quick=True)
    assert list(by_group) == list(tables.GROUPS)
    made = [row for rows in by_group.values() for row in rows]
    assert len({row.name for row in made}) == len(made) == sum(map(len, tables.GROUPS.values()))
    lines = list(csv.reader(tables.table(by_group).splitlines()))
    assert len(lines) == 1 + len(made) and {len(line) for line in lines} == {len(tables.COLUMNS)}


@pytest.mark.parametrize("block_cv", [0.02, 0.03])
def test_an_order_that_one_block_of_unquiet_hours_gets_wrong_carries_its_caveat_and_one_of_three_is_right(
    block_cv,
):
    one, three = (
        [case.row(400) for case in verdicts.wrong(name, verdicts.HERE, verdicts.order(lengths, block_cv))]
        for name, lengths in (("one block", (5,)), ("three blocks", (4, 4, 4)))
    )
    assert all(not row.reached and row.silent == 0 for row in one)
    assert all(row.reached for row in three)


def test_three_runs_over_ten_of_another_spread_hold_the_truth_in_nine_cases_of_ten():
    assert all(intervals.unequal(*cvs).row(400).found > 89 for cvs in ((0.02, 0.01), (0.01, 0.05)))


@pytest.mark.parametrize(("count", "seconds"), [(1, 60.0), (6, 10.0)])
def test_a_window_that_stood_still_is_taken_for_no_proven_one(count, seconds):
    stopped = selection.stopped("stops", series.stops(count, seconds), 75, taken_for="unproven")
    assert stopped.row(10).found == 100


def test_the_committed_table_has_a_row_of_every_case_and_of_no_other():
    with (ROOT / "docs" / "coverage.csv").open(encoding="utf-8", newline="") as file:
        committed = [(row["group"], row["scenario"]) for row in csv.DictReader(file)]
    assert committed == [(group, case.name) for group, cases in tables.GROUPS.items() for case in cases]


@pytest.mark.whole
def test_the_documents_print_what_a_sensor_makes_of_a_training_s_energy():
    pages = [page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md")]
    assert any(sensing.table() in page for page in pages)
