"""How an attempt ended, of what its job left behind."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from harness.engine.slurm.scheduler import ClusterJob, Slurm, TaskState
from harness.run.jobs.collect import Attempt, Place, attempt_exit
from harness.run.jobs.submission import ENDED

CANCELLED = TaskState(job=7, task=0, name="b", standing="ended", word="CANCELLED", cause="cancelled")


@pytest.mark.parametrize(("measured", "cause"), [(True, None), (False, "cancelled")])
def test_a_step_that_leaves_with_0_ended_well_only_where_it_measured(tmp_path, measured, cause):
    work = tmp_path / "work" / "t.a1"
    (work / "out").mkdir(parents=True)
    (work / ENDED).write_text("code 0 1764228027.000000000\n")
    if measured:
        (work / "out" / "measurement.json").write_text("{}")
    sent = ClusterJob(name="b", trials=("t",), attempts=(1,), job=7, sent_at=datetime.now(UTC))
    attempt = Attempt(1, work, over=True, last_of_job=True)
    place = Place("t", sent, CANCELLED, in_flight=False, attempts=(attempt,))
    exit = attempt_exit(tmp_path, attempt, place, Slurm())
    assert (exit.code, exit.cause) == (0, cause)


@pytest.mark.parametrize(
    ("ended", "cause"), [("", "node-failed"), ("code 143 1764228027.000000000\n", "preempted")]
)
def test_an_attempt_whose_job_ran_again_was_ended_by_its_node_or_by_the_scheduler(tmp_path, ended, cause):
    work = tmp_path / "work" / "t.a1"
    work.mkdir(parents=True)
    (work / ENDED).write_text(ended)
    sent = ClusterJob(name="b", trials=("t",), attempts=(1,), job=7, sent_at=datetime.now(UTC))
    attempt = Attempt(1, work, over=True, last_of_job=False)
    place = Place("t", sent, CANCELLED, in_flight=False, attempts=(attempt,))
    assert attempt_exit(tmp_path, attempt, place, Slurm()).cause == cause
