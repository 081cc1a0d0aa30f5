"""What a machine's sessions planned against what a page shows of it: no figure here was measured."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from commands.terminal import account_lines
from harness.record import Failure, Record, Session, store
from harness.run.session import next_session_number
from report.analysis import AnalysisRequest, analyse, evidence_in
from report.trials.account import MachineAccount
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


def written(root: Path, records: list[Record], number: int | None) -> Session:
    session = bundled.session_of(records, "f" * 64).model_copy(
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


def accounts(root: Path) -> tuple[MachineAccount, ...]:
    return analyse(evidence_in(root, purchase=False), AnalysisRequest(NOW)).accounts


@pytest.fixture
def machine(tmp_path) -> tuple[Path, Session, list[Record]]:
    """Four sessions of one machine, of which the newest leads, and one that a gap in its numbers tells of.

    The newest: 6 trials, one of them invalid, one measured at its second attempt, and one that failed. Then
    two earlier ones of its plan, and one of another plan, each with 3.
    """
    lead = [*bundled.one_card(repeats=6)]
    lead[4] = impossible(lead[4])
    lead[5] = killed(lead[5])
    again = lead[0].model_copy(update={"attempt": 2})
    lead[0] = killed(lead[0])
    lead.append(again)
    beside = dated(bundled.one_card(BESIDE), 1)
    early = dated(bundled.one_card(EARLY), 2)
    other = dated(bundled.one_card(OTHER_PLAN), 3, plan="another")
    for records, number in ((other, 1), (early, 3), (beside, 4)):
        written(tmp_path, records, number)
    return tmp_path, written(tmp_path, lead, 5), lead


def test_every_planned_trial_counts_once_by_its_last_attempt_and_a_gap_in_the_numbers_is_said(machine):
    root, _, _ = machine
    (account,) = accounts(root)
    assert dict(account.fates) == {"shown": 4, "failed": 1, "invalid": 1, "elsewhere": 9}
    assert (account.planned, account.shown) == (15, 4)
    assert (account.sessions_shown, account.sessions, account.absent_sessions) == (1, 5, 1)
    assert list(account_lines([account])) == [
        "constructed-card-a: 15 trials planned: 4 shown, 1 failed, 1 invalid, 9 elsewhere",
        "  1 session of its numbers not here",
    ]


def test_a_record_that_is_deleted_is_missing_and_the_sum_stays(machine):
    root, session, lead = machine
    (store.session_folder(root, session) / store.record_name(lead[1].trial.id, 1)).unlink()
    (account,) = accounts(root)
    assert (account.planned, dict(account.fates)["missing"]) == (15, 1)


def test_a_session_that_is_deleted_whole_is_a_gap_in_the_numbers(machine):
    root, _, _ = machine
    early = next(found for found in store.read_sessions(root) if found.id == EARLY)
    for path in store.session_folder(root, early).iterdir():
        path.unlink()
    (account,) = accounts(root)
    assert (account.planned, account.sessions, account.absent_sessions) == (12, 5, 2)


def test_sessions_from_before_they_were_numbered_accuse_nobody(tmp_path):
    written(tmp_path, bundled.one_card(), None)
    (account,) = accounts(tmp_path)
    assert (account.sessions_shown, account.shown, account.planned) == (1, 3, 3)
    assert account.absent_sessions == 0


def test_each_machine_on_the_page_has_its_account_and_the_leading_one_comes_first(tmp_path):
    build.write(tmp_path, build.two_cards())
    found = accounts(tmp_path)
    assert [account.label for account in found] == ["constructed-card-a", "constructed-card-b"]
    assert [(account.shown, account.planned) for account in found] == [(12, 13), (12, 12)]


def test_the_sessions_of_a_machine_are_numbered_over_all_its_clones(tmp_path):
    state, here, there = tmp_path / "state", tmp_path / "here", tmp_path / "there"
    session = bundled.session_of(bundled.one_card(repeats=1), "f" * 64)
    assert [next_session_number(state, root, session.machine) for root in (here, there, here)] == [1, 2, 3]
    (state / "sessions-begun").write_text("rubbish")
    store.write_session(here, session.model_copy(update={"number": 3}))
    assert next_session_number(state, here, session.machine) == 4
