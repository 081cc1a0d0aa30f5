"""What happened to trials, counted for the terminal, a contribution and the gate."""

from __future__ import annotations

from commands.terminal import circumstances
from harness.record import finding
from harness.record.finding import counted
from tests.helpers import records_builder as build

BUSY = finding("busy-machine", busy_cores=2.0, cores=2)


def test_each_thing_that_happened_is_counted_once_a_trial_and_the_commonest_comes_first():
    trials = [(BUSY, finding("generated-data")), (BUSY, BUSY), ()]
    assert counted(trials) == (("machine was busy before", 2), ("generated data", 1))
    assert counted([(), ()]) == ()


def test_a_failed_trial_has_no_figure_that_anything_could_have_disturbed():
    measured = build.two_cards()[0]
    failed = measured.model_copy(update={"summary": None, "measurement": None})
    assert circumstances([failed]) == ()
