"""What a run leaves that is killed, stopped or meets a full disk, and how the next one goes on."""

from __future__ import annotations

import os
import signal
import time
from datetime import timedelta

import psutil
import pytest

from harness.run import runner, session
from tests.helpers import clone
from tests.helpers.runs import begin_elsewhere, begun_trial, killed_elsewhere, records, running_trial


def test_after_the_harness_is_killed_the_next_run_takes_up_the_living_trial_and_finishes_the_plan(tmp_path):
    root = clone.make(tmp_path, options="step_seconds = 0.1")
    assert killed_elsewhere(root).is_running()
    clone.hasten(root)
    quiet = clone.Quiet()
    outcome = runner.run_session(clone.ready(root), clone.open_session(root), quiet)
    assert any("taking up" in line for line in quiet.lines)
    assert outcome.complete
    assert sorted((r.order, r.status, r.attempt) for r in records(root)) == [(n, "ok", 1) for n in range(4)]


def test_a_trial_that_ended_unseen_took_the_time_until_it_last_wrote_whatever_the_clock_was_set_to(tmp_path):
    root = clone.make(tmp_path, options="step_seconds = 0.05", repeats=1)
    psutil.wait_procs([killed_elsewhere(root)], timeout=30)
    ((begun, work),) = runner.read_attempts(root, "*")
    for path in (work / "out").rglob("*"):
        os.utime(path, (time.time() - 15.0,) * 2)
    for set_by in (timedelta(days=-400), timedelta(0), timedelta(days=400)):
        started_at = begun.started.started_at + set_by
        moved = begun.model_copy(
            update={
                "started": begun.started.model_copy(update={"started_at": started_at}),
                "monotonic_seconds": time.monotonic() - 20.0,
            }
        )
        assert runner.elapsed_seconds(moved, work, running=False) == pytest.approx(5.0, abs=1.0)
        assert runner.elapsed_seconds(moved, work, running=True) == pytest.approx(20.0, abs=1.0)


def test_a_new_session_stops_the_trial_that_another_s_dead_run_left_and_the_other_goes_on_later(tmp_path):
    root = clone.make(tmp_path, options="step_seconds = 0.5", repeats=1)
    left = killed_elsewhere(root)
    clone.hasten(root)
    first = clone.open_session(root)
    session.close_session(root, first)
    quiet, second = clone.Quiet(), clone.open_session(root)
    runner.run_session(clone.ready(root), second, quiet)
    assert not left.is_running()
    stopped = [line for line in quiet.lines if line.startswith("stopping ")]
    assert len(stopped) == 1 and f"of session {first.id}, whose run died without it" in stopped[0]
    assert {record.session for record in records(root)} == {second.id}
    outcome = runner.run_session(clone.ready(root), first, clone.Quiet())
    own = [record for record in records(root) if record.session == first.id]
    assert outcome.complete and sorted((r.attempt, r.status) for r in own) == [
        (1, "failed"),
        (1, "ok"),
        (2, "ok"),
    ]


def test_a_trial_that_is_killed_is_tried_again_beside_its_failure(tmp_path):
    root = clone.make(tmp_path, options="step_seconds = 0.1", repeats=1)
    harness = begin_elsewhere(root)
    trial = begun_trial(root)
    clone.hasten(root)
    trial.send_signal(signal.SIGKILL)
    harness.wait(timeout=30)
    found = records(root)
    assert sorted((r.attempt, r.status) for r in found) == [(1, "failed"), (1, "ok"), (2, "ok")]
    failed = next(r for r in records(root) if r.failure)
    assert failed.failure is not None
    assert (failed.failure.kind, failed.failure.reason) == ("machinery", "killed")


def test_ctrl_c_stops_the_trial_which_no_record_keeps(tmp_path):
    root = clone.make(tmp_path, options="step_seconds = 0.2")
    harness = begin_elsewhere(root)
    begun_trial(root)
    os.kill(harness.pid, signal.SIGINT)
    harness.wait(timeout=30)
    assert records(root) == []
    assert running_trial(root) is None
    assert not list(root.glob("results/.state/work/*/*/started.json"))
