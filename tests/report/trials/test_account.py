"""What a machine started against what a page shows of it: no figure here was measured."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness.bundle.validate import folder_problems
from harness.record import Failure, Record, Session, store
from harness.record.ledger import TrialEnd, TrialStart
from harness.run import ledger
from report.analysis import Analysis, Question, analyse, evidence_in
from report.trials.account import Account
from tests.helpers import bundled
from tests.helpers import records_builder as build

NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)
BESIDE = "20260130-bbbbbb"
EARLY = "20260129-cccccc"
OTHER_PLAN = "20260128-dddddd"


def killed(record: Record) -> Record:
    """The same trial's attempt as one that the machinery failed."""
    failure = Failure(kind="machinery", stage="collect", reason="killed", message="constructed")
    return record.model_copy(
        update={"measurement": None, "summary": None, "failure": failure, "status": "failed"}
    )


def impossible(record: Record) -> Record:
    """The same with a loss that is no number."""
    assert record.measurement is not None
    (first, *rest) = record.measurement.epochs
    epochs = (first.model_copy(update={"train_loss": float("nan")}), *rest)
    return build.changed(record, measurement__epochs=epochs, summary=None)


def entered(root: Path, session: Session, records: list[Record], *, stopped: int = 0) -> None:
    """The session's ledger: a start and an end of each record, and starts that have no end."""
    bundled.entered(root, session, records)
    for _ in range(stopped):
        started = TrialStart(trial=records[0].trial.id, attempt=1, at=NOW)
        store.append_to_ledger(root, session, started)


def written(root: Path, records: list[Record], number: int | None, plan_sha256: str = "f" * 64) -> Session:
    session = bundled.session_of(records, plan_sha256).model_copy(
        update={"number": number, "started_at": records[0].started_at}
    )
    store.write_session(root, session)
    for record in records:
        store.write_record(root, session, record)
    return session


def dated(records: list[Record], days: int, **changes: str) -> list[Record]:
    """Runs of their own, some days before."""
    records = [*build.with_own_steps([*records] * (days + 2))][-len(records) :]
    begun = timedelta(days=days)
    return [
        record.model_copy(update={"started_at": record.started_at - begun, **changes}) for record in records
    ]


def analysed(root: Path) -> Analysis:
    return analyse(evidence_in(root, purchase=False), Question(NOW))


def one_account(root: Path) -> Account:
    (account,) = analysed(root).accounts
    return account


@pytest.fixture
def machine(tmp_path) -> tuple[Path, Session, list[Record]]:
    """Five sessions of one machine, of which the newest leads, and their ledgers.

    The newest: 5 measured, one of them invalid, 1 failed, 2 stopped. Then two earlier ones of its plan, the
    first of which stands beside it, one of another plan, each with 3, and one that the numbers alone tell of.
    """
    lead = [*bundled.one_card(repeats=5)]
    lead[4] = impossible(lead[4])
    lead.append(killed(lead[0]).model_copy(update={"attempt": 2}))
    beside = dated(bundled.one_card(BESIDE), 1)
    early = dated(bundled.one_card(EARLY), 2)
    other = dated(bundled.one_card(OTHER_PLAN), 3, plan="another")
    for records, number, stopped in ((other, 1, 0), (early, 3, 0), (beside, 4, 0), (lead, 5, 2)):
        entered(tmp_path, written(tmp_path, records, number), records, stopped=stopped)
    session = next(found for found in store.read_sessions(tmp_path) if found.id == bundled.LEAD)
    return tmp_path, session, lead


def test_every_attempt_counts_once_and_the_counts_add_up_to_the_ledger_s(machine):
    root, _, _ = machine
    account = one_account(root)
    assert dict(account.fates) == {
        "shown": 7,
        "superseded by a newer session of its plan": 3,
        "of another plan": 3,
        "invalid": 1,
        "failed": 1,
        "stopped": 2,
    }
    assert account.started == sum(found.starts.total() for found in store.read_all(root).ledgers) == 17
    assert (account.sessions_shown, account.sessions, account.absent_sessions) == (2, 5, 1)


def test_a_record_that_is_deleted_by_hand_is_missed_and_the_sum_stays(machine):
    root, session, lead = machine
    (store.session_folder(root, session) / store.record_name(lead[1].trial.id, 1)).unlink()
    account = one_account(root)
    assert account.started == 17
    assert dict(account.fates)["measured, and the record is not here"] == 1


def test_a_session_that_is_deleted_whole_is_missed_by_its_ledger_or_by_its_number(machine):
    root, _, _ = machine
    early = next(found for found in store.read_sessions(root) if found.id == EARLY)
    for path in store.session_folder(root, early).iterdir():
        path.unlink()
    account = one_account(root)
    assert (account.sessions, account.absent_sessions, account.unknown_sessions) == (5, 2, 1)
    assert dict(account.fates)["measured, and the record is not here"] == 3
    store.ledger_path(root, early).unlink()
    account = one_account(root)
    assert (account.sessions, account.absent_sessions, account.unknown_sessions) == (5, 2, 2)


def test_a_ledger_that_was_taken_away_and_a_record_that_it_lacks_are_said(machine):
    root, session, lead = machine
    path = store.ledger_path(root, session)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if lead[2].trial.id not in line))
    account = one_account(root)
    assert (account.started, account.unentered) == (17, 1)
    path.unlink()
    assert one_account(root).lost_ledgers == 1


def test_a_plan_that_changed_between_sessions_is_said_by_how_often(machine):
    root, session, _ = machine
    assert one_account(root).plan_changes == ()
    store.write_session(root, session.model_copy(update={"plan_sha256": "e" * 64}))
    store.ledger_path(root, session).unlink()
    account = one_account(root)
    assert account.plan_changes == (("constructed", 1),)


def test_sessions_from_before_a_ledger_was_kept_are_counted_and_accuse_nobody(tmp_path):
    written(tmp_path, bundled.one_card(), None)
    account = one_account(tmp_path)
    assert (account.sessions_shown, account.shown, account.started, account.before_ledgers) == (1, 3, 3, 1)
    assert not (account.absent_sessions or account.lost_ledgers or account.without_trace)
    again = dated(bundled.one_card(EARLY), -1)
    entered(tmp_path, written(tmp_path, again, 1), again)
    account = one_account(tmp_path)
    assert (account.sessions, account.before_ledgers) == (2, 1)


def test_a_trial_that_was_killed_and_started_again_counts_as_two(tmp_path):
    records = bundled.one_card(repeats=2)
    session = written(tmp_path, records, 1)
    ledger.begun(tmp_path, session)
    for record in (records[0], *records):
        started = TrialStart(trial=record.trial.id, attempt=1, at=NOW)
        store.append_to_ledger(tmp_path, session, started)
    assert dict(one_account(tmp_path).fates) == {"shown": 2, "stopped": 1}


def test_each_machine_on_the_page_has_its_account_and_the_leading_one_comes_first(tmp_path):
    build.write(tmp_path, build.two_cards())
    found = analysed(tmp_path).accounts
    assert [account.label for account in found] == ["constructed-card-a", "constructed-card-b"]
    assert [(account.shown, account.started) for account in found] == [(12, 13), (12, 12)]


def test_a_hostile_ledger_changes_no_count_of_what_is_shown(machine):
    root, session, lead = machine
    path = store.ledger_path(root, session)
    end = TrialEnd(trial=lead[0].trial.id, attempt=1, at=NOW, outcome="measured").model_dump_json()
    path.write_text(path.read_text() + f"{end}\n" * 3 + "rubbish\n")
    account = one_account(root)
    assert (account.shown, account.started) == (7, 17 + 1)
    assert len(store.read_all(root).problems) == 1


def test_records_that_were_deleted_with_their_ledger_are_said_by_page_and_verify(machine):
    root, session, lead = machine
    (store.session_folder(root, session) / store.record_name(lead[1].trial.id, 1)).unlink()
    store.ledger_path(root, session).unlink()
    assert one_account(root).without_trace == 1
    assert any("its ledger is not here" in problem for problem in folder_problems(root))
    unnumbered = session.model_copy(update={"number": None})
    store.write_session(root, unnumbered)
    assert one_account(root).without_trace == 1
