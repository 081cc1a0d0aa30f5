"""What happened to trials, counted for the terminal, a contribution and the gate."""

from __future__ import annotations

from harness.record import finding
from harness.summary.circumstances import of_findings, sentences
from tests.helpers import records_builder as build

BUSY = finding("busy-machine", busy_cores=2.0, cores=2)


def test_each_thing_that_happened_is_counted_once_a_trial_and_the_commonest_comes_first():
    trials = [(BUSY, finding("generated-data")), (BUSY, BUSY), ()]
    assert of_findings(trials) == (
        "2 of 3 measured trials: machine was busy before",
        "1 of 3 measured trials: generated data",
    )
    assert of_findings([(), ()]) == ()


def test_a_failed_trial_has_no_figure_that_anything_could_have_disturbed():
    measured = build.two_cards()[0]
    failed = measured.model_copy(update={"summary": None, "measurement": None})
    assert sentences([failed]) == ()
