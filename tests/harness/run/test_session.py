from __future__ import annotations

import errno
import os

import pytest

from harness.data.folder import locked
from harness.errors import Busy, MachineError
from harness.record import TrialSpec
from harness.run import session
from harness.run.jobs.submission import alone
from harness.run.session import run_lock


def failed(record, kind, attempt=1):
    failure = {"kind": kind, "stage": "train", "reason": "error", "message": "x"}
    raw = record.model_dump(mode="json")
    raw |= {"status": "failed", "measurement": None, "summary": None, "failure": failure, "attempt": attempt}
    return type(record).model_validate(raw)


def test_nothing_is_missing_from_a_session_whose_trials_all_ended(finished):
    opened, records = finished[0].session, finished[1]
    assert session.missing(opened, records) == ()


def test_what_is_missing_keeps_its_place_in_the_order(finished):
    opened, records = finished[0].session, finished[1]
    without = [record for record in records if record.order != 2]
    assert [(item.order, item.attempt) for item in session.missing(opened, without)] == [(2, 1)]


@pytest.mark.parametrize(
    ("kind", "retry", "missing"), [("machinery", False, 1), ("trial", False, 0), ("trial", True, 1)]
)
def test_only_what_the_machinery_failed_is_missing_unless_a_retry_is_asked_for(
    finished, kind, retry, missing
):
    opened, records = finished[0].session, finished[1]
    spoiled = [failed(record, kind) if record.order == 1 else record for record in records]
    found = session.missing(opened, spoiled, retry=retry)
    assert len(found) == missing
    assert all(item.attempt == 2 for item in found)


def test_records_of_another_session_never_count_as_done(finished):
    opened, records = finished[0].session, finished[1]
    others = [
        record.model_copy(update={"trial": record.trial.model_copy(update={"id": "x"})}) for record in records
    ]
    assert len(session.missing(opened, others)) == 4


def out_of_memory(record):
    """The same trial, as one that did not fit."""
    raw = failed(record, "trial").model_dump(mode="json")
    raw["failure"]["reason"] = "out-of-memory"
    return type(record).model_validate(raw)


@pytest.fixture
def sweep(finished):
    """A session of three batches, of which the first was measured, and that record."""
    opened, records = finished[0].session, finished[1]
    first = records[0].trial
    trials = [
        TrialSpec.of(
            first.asked.model_copy(
                update={"variant": first.asked.variant.model_copy(update={"batch_size": size})}
            ),
            1,
            seed=first.seed,
            timeout_seconds=first.timeout_seconds,
        )
        for size in (8, 16, 32)
    ]
    return opened.model_copy(update={"trials": tuple(trials)}), records[0]


def of_trial(record, trial):
    return record.model_copy(update={"trial": trial})


def test_a_batch_above_one_that_did_not_fit_is_not_tried_and_the_session_lists_it(sweep):
    opened, record = sweep
    small, middle, large = opened.trials
    assert [item.trial for item in session.missing(opened, [of_trial(record, small)])] == [middle, large]
    records = [of_trial(record, small), out_of_memory(of_trial(record, middle))]
    assert session.missing(opened, records) == ()
    listed = session.with_spared(opened, records).left_out
    assert [(line.trials, line.reason) for line in listed] == [(1, "batch 16 did not fit")]
    assert session.with_spared(session.with_spared(opened, records), records).left_out == listed
    assert session.with_spared(opened, records[:1]) == opened


def test_a_failure_of_another_kind_or_of_another_sweep_spares_no_larger_batch(sweep):
    opened, record = sweep
    small, middle, large = opened.trials
    other = failed(of_trial(record, middle), "trial")
    assert [item.trial for item in session.missing(opened, [of_trial(record, small), other])] == [large]
    variant = middle.asked.variant.model_copy(update={"precision": "amp-fp16"})
    asked = middle.asked.model_copy(update={"variant": variant})
    elsewhere = TrialSpec.of(asked, 1, seed=1, timeout_seconds=60.0)
    records = [of_trial(record, small), out_of_memory(of_trial(record, elsewhere))]
    assert [item.trial for item in session.missing(opened, records)] == [middle, large]


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
@pytest.mark.parametrize("holding", [run_lock, locked, alone], ids=["run", "data", "jobs"])
def test_a_file_system_without_locks_is_named_and_never_taken_for_another_run(
    tmp_path, monkeypatch, holding, code
):
    def none(*given: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("harness.files.fcntl.flock", none)
    words = r"has no locks \(.*\); (set GPUDYNO_|put the clone)"
    with pytest.raises(MachineError, match=words) as told, holding(tmp_path):
        pass
    assert not isinstance(told.value, Busy)
