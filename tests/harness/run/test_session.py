from __future__ import annotations

import errno
import os
from types import SimpleNamespace

import pytest

from commands import run
from harness.data.fetch import hold_folder
from harness.record import Failure, Gpu, TrialSpec
from harness.run.jobs.submission import submissions_lock
from harness.run.missing import list_untried, missing_trials
from harness.run.session import run_lock
from tests.helpers.records_builder import changed

NO_ROOM = "out-of-memory"
ENDS = {"seed": 1, "timeout_seconds": 60.0}


def failed(record, kind, reason="error"):
    failure = Failure(kind=kind, stage="train", reason=reason, message="x")
    return changed(record, status="failed", measurement=None, summary=None, failure=failure)


def test_what_is_missing_keeps_its_place_in_the_order(finished):
    opened, records = finished[0].session, finished[1]
    without = [record for record in records if record.order != 2]
    assert [(item.order, item.attempt) for item in missing_trials(opened, without)] == [(2, 1)]


@pytest.mark.parametrize(
    ("kind", "retry", "missing"), [("machinery", False, 1), ("trial", False, 0), ("trial", True, 1)]
)
def test_only_what_the_machinery_failed_is_missing_unless_a_retry_is_asked_for(
    finished, kind, retry, missing
):
    opened, records = finished[0].session, finished[1]
    spoiled = [failed(record, kind) if record.order == 1 else record for record in records]
    found = missing_trials(opened, spoiled, retry=retry)
    assert len(found) == missing
    assert all(item.attempt == 2 for item in found)


def test_records_of_another_session_never_count_as_done(finished):
    opened, records = finished[0].session, finished[1]
    others = [changed(record, trial__id="x") for record in records]
    assert len(missing_trials(opened, others)) == 4


@pytest.fixture
def sweep(finished):
    """A session of three batches, of which the first was measured, and that record."""
    opened, records = finished[0].session, finished[1]
    first = records[0].trial
    trials = [
        TrialSpec.from_request(changed(first.asked, variant__batch_size=size), 1, **ENDS)
        for size in (8, 16, 32)
    ]
    return opened.model_copy(update={"trials": tuple(trials)}), records[0]


def test_a_batch_above_one_that_did_not_fit_is_not_tried_and_the_session_lists_it(sweep):
    opened, record = sweep
    small, middle, large = opened.trials
    assert [item.trial for item in missing_trials(opened, [changed(record, trial=small)])] == [
        middle,
        large,
    ]
    records = [changed(record, trial=small), failed(changed(record, trial=middle), "trial", NO_ROOM)]
    assert missing_trials(opened, records) == ()
    listed = list_untried(opened, records).left_out
    assert [(line.trials, line.reason) for line in listed] == [(1, "batch 16 did not fit")]
    assert list_untried(list_untried(opened, records), records).left_out == listed
    assert list_untried(opened, records[:1]) == opened


def test_a_failure_of_another_kind_or_of_another_sweep_spares_no_larger_batch(sweep):
    opened, record = sweep
    small, middle, large = opened.trials
    other = failed(changed(record, trial=middle), "trial")
    assert [item.trial for item in missing_trials(opened, [changed(record, trial=small), other])] == [large]
    elsewhere = TrialSpec.from_request(changed(middle.asked, variant__precision="amp-fp16"), 1, **ENDS)
    records = [changed(record, trial=small), failed(changed(record, trial=elsewhere), "trial", NO_ROOM)]
    assert [item.trial for item in missing_trials(opened, records)] == [middle, large]


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP])
@pytest.mark.parametrize(
    "holding",
    [lambda path: run_lock(), hold_folder, submissions_lock],
    ids=["run", "data", "jobs"],
)
def test_a_file_system_without_locks_is_named_and_never_taken_for_another_run(
    tmp_path, monkeypatch, holding, code
):
    def none(*given: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("harness.files.fcntl.flock", none)
    with pytest.raises(OSError) as told, holding(tmp_path):
        pass
    assert told.value.errno == code and told.value.filename.endswith("lock")


@pytest.mark.parametrize(("now", "resumed"), [("ab", True), ("ba", False), ("ac", False)])
def test_a_session_of_several_cards_goes_on_only_where_each_has_its_place(
    finished, monkeypatch, now, resumed
):
    opened = finished[0].session
    asked = opened.trials[0].asked.model_copy(update={"card": 1})
    trial = TrialSpec.from_request(asked, 1, seed=1, timeout_seconds=60.0)
    units = tuple(digit * 16 for digit in now)
    gpus = tuple(Gpu(index=at, vendor="NVIDIA", name="x", unit=unit) for at, unit in enumerate(units))
    setup = SimpleNamespace(
        selection=SimpleNamespace(gpus=gpus),
        root=None,
        plan=SimpleNamespace(name="mine", sha256=opened.plan_sha256),
        machine=SimpleNamespace(id=opened.machine),
        settings=SimpleNamespace(question=None),
        against=None,
    )
    begun = opened.model_copy(update={"trials": (trial,), "cards": ("a" * 16, "b" * 16)})
    monkeypatch.setattr(run.session, "find_open_session", lambda *_: begun)
    chosen = SimpleNamespace(planned=(SimpleNamespace(trial=trial),), resumed=frozenset({trial.id}))
    found = run.resumable_session(setup, chosen, print)
    assert (found is not None) is resumed
