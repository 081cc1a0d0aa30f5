"""What single runs of a delivery say that did not settle, or that something disturbed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.record.finding import Finding, finding, finding_sentence
from report.buying import clause
from report.buying.clause import judge
from report.compare.cells import Cell, cells_of
from report.stats.intervals import Runs, blocks_interval
from tests.helpers.record_sets import series
from tests.helpers.trial_tables import trials_of


def cell(*verdicts: str, causes: tuple[Finding, ...] = ()) -> Cell:
    """A cell of one run for each verdict; the causes are of those that are invalid."""
    records = [
        series(repeats=len(verdicts), verdict=verdict, causes=causes if verdict == "invalid" else ())[place]
        for place, verdict in enumerate(verdicts)
    ]
    return cells_of(trials_of(records))[0]


def test_one_run_that_did_not_settle_among_others_that_did_is_no_missing_run():
    ordered = clause.clause([cell(*["valid"] * 5)], {})
    assert ordered and ordered.demands[0].runs == 5
    (one,) = judge(ordered, [cell(*["valid"] * 4, "unproven")])
    assert one.passed and one.ratio and one.ratio.estimate == pytest.approx(1.0, rel=0.02)
    (short,) = judge(ordered, [cell(*["valid"] * 4)])
    assert short.passed is None and short.why == "4 of 5 runs were measured"


UNSTEADY = finding("no-steady-state")


def test_a_run_that_its_surroundings_disturbed_fails_no_card():
    ordered = clause.clause([cell(*["valid"] * 5)], {})
    assert ordered
    (one,) = judge(ordered, [cell(*["valid"] * 4, "invalid", causes=(UNSTEADY,))])
    assert one.passed and one.why == "reached"


def test_more_than_a_quarter_of_disturbed_runs_is_measured_again():
    ordered = clause.clause([cell(*["valid"] * 5)], {})
    assert ordered
    for verdicts in (["valid"] * 3 + ["invalid"] * 2, ["invalid"] * 5):
        (one,) = judge(ordered, [cell(*verdicts, causes=(UNSTEADY,))])
        count = verdicts.count("invalid")
        assert one.passed is None and one.why.startswith(f"{count} of 5 runs were disturbed")


@pytest.mark.parametrize(
    "causes",
    [
        (finding("thermal-throttling", card=0, share=0.04),),
        (UNSTEADY, finding("memory-error", errors=2, card=0)),
        (finding("collapsed", accuracy=0.01, classes=100),),
        (Finding(name="of-tomorrow", severity="invalid"),),
    ],
)
def test_a_run_that_the_machine_spoils_by_itself_fails_it(causes):
    ordered = clause.clause([cell(*["valid"] * 5)], {})
    assert ordered
    (one,) = judge(ordered, [cell(*["valid"] * 4, "invalid", causes=causes)])
    assert one.passed is False and one.why.endswith(finding_sentence(causes[-1]))


def test_disturbed_runs_of_the_order_are_counted_and_take_no_part_in_it():
    ordered = clause.clause([cell(*["valid"] * 3, *["invalid"] * 2, causes=(UNSTEADY,))], {})
    assert ordered and (ordered.demands[0].runs, len(ordered.demands[0].cell.trials), ordered.disturbed) == (
        3,
        5,
        2,
    )


def test_blocks_decide_over_an_order_and_a_delivery_and_not_single_runs():
    """Four times as many runs in a slow hour must not pull the mean of the hours to it."""
    ordered = clause.clause([cell(*["valid"] * 12)], {})
    assert ordered
    values = (100.0, 100.0, 90.0, 90.0, 90.0, 90.0, 90.0, 90.0, 90.0, 90.0, 100.0, 100.0)
    blocks = (0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2)
    measured = Runs(values, blocks)
    figure = blocks_interval(measured)
    assert figure
    own = ordered.demands[0].cell
    of_order = replace(own.throughput, values=values, blocks=blocks)
    own = replace(own, figures={**own.figures, "throughput": of_order})
    demand = replace(ordered.demands[0], cell=own, figure=figure)
    given = cell(*["valid"] * 12)
    rates = replace(given.throughput, values=(92.0, 94.0) * 6, blocks=blocks)
    given = replace(given, figures={**given.figures, "throughput": rates})
    (one,) = judge(replace(ordered, demands=(demand,)), [given])
    assert one.ratio and one.ratio.estimate == pytest.approx(93.0 / (100 * 100 * 90) ** (1 / 3), rel=1e-3)
