from __future__ import annotations

from datetime import UTC, datetime, timedelta

import clone
import pytest

from harness import run, session, store


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    root = clone.make(tmp_path_factory.mktemp("clone"), repeats=2)
    outcome = run.run(clone.job(root), clone.open_session(root), clone.Quiet())
    return outcome.session, [stored.record for stored in store.read_all(root).records]


def failed(record, kind, attempt=1):
    failure = {"kind": kind, "stage": "train", "reason": "error", "message": "x"}
    raw = record.model_dump(mode="json")
    raw |= {"status": "failed", "measurement": None, "summary": None, "failure": failure, "attempt": attempt}
    return type(record).model_validate(raw)


def test_nothing_is_missing_from_a_session_whose_trials_all_ended(finished):
    opened, records = finished
    assert session.missing(opened, records) == ()


def test_what_is_missing_keeps_its_place_in_the_order(finished):
    opened, records = finished
    without = [record for record in records if record.order != 2]
    assert [(item.order, item.attempt) for item in session.missing(opened, without)] == [(2, 1)]


@pytest.mark.parametrize(
    ("kind", "retry", "missing"), [("machinery", False, 1), ("trial", False, 0), ("trial", True, 1)]
)
def test_only_what_the_machinery_failed_is_missing_unless_a_retry_is_asked_for(
    finished, kind, retry, missing
):
    opened, records = finished
    spoiled = [failed(record, kind) if record.order == 1 else record for record in records]
    found = session.missing(opened, spoiled, retry=retry)
    assert len(found) == missing
    assert all(item.attempt == 2 for item in found)


def test_records_of_another_session_never_count_as_done(finished):
    opened, records = finished
    others = [
        record.model_copy(update={"trial": record.trial.model_copy(update={"id": "x"})}) for record in records
    ]
    assert len(session.missing(opened, others)) == 4


def test_a_pause_of_an_hour_opens_the_next_block_and_a_shorter_one_does_not(finished):
    _, records = finished
    end = max(record.started_at + timedelta(seconds=record.wall_seconds) for record in records)
    assert session.block(records, end + timedelta(minutes=59)) == 1
    assert session.block(records, end + timedelta(minutes=60)) == 2
    assert session.block([], datetime.now(UTC)) == 1
