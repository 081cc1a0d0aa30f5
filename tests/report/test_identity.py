"""What tells sessions, machines and cards apart, whatever their clocks say. The records were measured."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from harness.record import Session
from harness.record.published.claim_set import ClaimSet
from harness.record.store import Results, read_record
from report.analysis import Analysis, AnalysisRequest, Evidence, analyse
from report.trials.reading import results_of
from tests.helpers import TESTS
from tests.helpers import records_builder as build
from tests.helpers.cases import COMMITTED, MEASURED
from tests.helpers.here import evidence_here


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Several sessions of one machine."""
    monkeypatch.setattr("os.fsync", lambda handle: None)
    paths = sorted((TESTS / "records").glob("real-*.json"))
    build.write(tmp_path, [read_record(path, path.name) for path in paths])
    return tmp_path


def numbered(results: Results) -> tuple[Session, ...]:
    """The sessions with the numbers of their records' order."""
    starts = {stored.record.session: stored.record.started_at for stored in results.records}
    ordered = sorted(results.sessions, key=lambda session: starts[session.id])
    return tuple(
        session.model_copy(update={"number": number, "started_at": starts[session.id]})
        for number, session in enumerate(ordered, 1)
    )


def led_by(results: Results) -> str | None:
    newest = max(stored.record.started_at for stored in results.records)
    request = AnalysisRequest(newest + timedelta(days=1), machine=results.sessions[0].machine)
    return analyse(Evidence(results, ClaimSet(), ()), request).lead


def test_a_machines_newest_session_is_the_one_it_counted_last_whatever_its_clock_said(root: Path):
    results = results_of(root)
    sessions = numbered(results)
    assert led_by(replace(results, sessions=sessions)) == sessions[-1].id
    first_is_last = tuple(
        session.model_copy(update={"number": 8 - (session.number or 0)}) for session in sessions
    )
    assert led_by(replace(results, sessions=first_is_last)) == sessions[0].id


def test_a_self_check_is_shown_without_its_machine_s_other_sessions():
    session = COMMITTED["selfcheck"][-15:]
    found = analyse(evidence_here(), AnalysisRequest(MEASURED, session=session))
    assert {cell.session for cell in found.here} == {session}


def test_sessions_from_before_they_were_counted_come_first_and_by_date(root: Path):
    results = results_of(root)
    sessions = numbered(results)
    uncounted = tuple(session.model_copy(update={"number": None}) for session in sessions)
    assert led_by(replace(results, sessions=uncounted)) == sessions[-1].id
    one_counted = (sessions[0], *uncounted[1:])
    assert led_by(replace(results, sessions=one_counted)) == sessions[0].id


def test_a_session_is_own_by_its_machine_or_the_clone_s_list_and_no_other_leads(root: Path):
    results = results_of(root)
    ids = [session.id for session in numbered(results)]
    now = max(stored.record.started_at for stored in results.records)

    def asked(own: list[str], machine: str) -> Analysis:
        return analyse(
            Evidence(results, ClaimSet(), ()), AnalysisRequest(now, machine=machine, own=frozenset(own))
        )

    listed = asked(ids[:1], "f" * 12)
    assert listed.lead == ids[0] and listed.own and not listed.of_others
    for machine, measured in (("f" * 12, False), (results.sessions[0].machine, True)):
        found = asked([], machine)
        assert found.here and bool(found.own) == bool(found.own_cells) == measured
        assert found.of_others == (0 if measured else len(ids))
        assert measured or found.clause is None


@pytest.mark.parametrize("name", ["{} (1)", "0-{}-copy"])
def test_a_session_counts_once_however_often_its_folder_lies_there(root: Path, name: str):
    before = results_of(root)
    for folder in (root / "results").glob("*/*"):
        for day in (folder.parent, root / "results" / "2030-01-01"):
            shutil.copytree(folder, day / name.format(folder.name))
    after = results_of(root)
    assert (after.records, after.sessions) == (before.records, before.sessions)
    assert len(after.problems) == len(before.problems) + 2 * len(before.sessions)
