"""Ledgers as they are written, and as a crash, a stranger or ten thousand trials leave them."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import MachineError, RecordError
from harness.record import store
from harness.record.ledger import LEDGER_BYTES, LedgerBegin, TrialEnd, TrialStart, parse_ledger
from harness.run import ledger
from tests.helpers import bundled

NOW = datetime(2026, 1, 31, 9, tzinfo=UTC)
TRIAL = "word_lm-r1-0123456789ab"
WHERE = "results/ledger/aaaaaaaaaaaa/20260131-aaaaaa.jsonl"
BEGIN = LedgerBegin(
    session=bundled.LEAD, machine="a" * 12, number=1, plan="mine", plan_sha256="f" * 64, at=NOW
)
START = TrialStart(trial=TRIAL, attempt=1, at=NOW)
MEASURED = TrialEnd(trial=TRIAL, attempt=1, at=NOW, outcome="measured")


def text_of(*lines) -> bytes:
    return b"".join(line.model_dump_json().encode() + b"\n" for line in lines)


@pytest.fixture
def session():
    records = bundled.one_card(repeats=1)
    return bundled.session_of(records, "f" * 64).model_copy(update={"number": 1})


def test_what_is_appended_is_read_back_in_order(tmp_path, session):
    ledger.begun(tmp_path, session)
    for line in (START, MEASURED, START):
        store.append_to_ledger(tmp_path, session, line)
    (found,) = store.read_all(tmp_path).ledgers
    assert (found.path, found.problems, found.cut_short) == (WHERE, (), False)
    assert (found.begin.number, found.begin.plan_sha256) == (1, "f" * 64)
    assert (found.starts, found.measured) == (Counter({(TRIAL, 1): 2}), Counter({(TRIAL, 1): 1}))


def test_half_a_line_at_the_end_is_skipped_and_the_next_line_takes_its_place(tmp_path, session):
    ledger.begun(tmp_path, session)
    path = store.ledger_path(tmp_path, session)
    whole = path.read_bytes()
    path.write_bytes(whole + text_of(START)[:30])
    results = store.read_all(tmp_path)
    assert [found.cut_short for found in results.ledgers] == [True]
    assert results.problems == ()
    store.append_to_ledger(tmp_path, session, START)
    assert path.read_bytes().startswith(whole + b'{"event":"start"')
    assert [(found.cut_short, found.starts.total()) for found in store.read_all(tmp_path).ledgers] == [
        (False, 1)
    ]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"rubbish", "line 3: 'the whole': Invalid JSON"),
        (b"", "line 3: 'the whole': Invalid JSON"),
        (b"\x00" * 400, "line 3: 'the whole': Invalid JSON"),
        (b"[" * 100_000, "line 3: 'the whole'"),
        (b'{"event": "start", "more": 1}', "line 3: 'start.trial': Field required (and 3 more)"),
        (
            text_of(START).replace(b"word_lm", b"/home/me").strip(),
            "line 3: 'start.trial': String should match",
        ),
        (text_of(BEGIN).strip(), "line 3: the session begins a second time"),
    ],
    ids=range(7),
)
def test_a_line_that_cannot_be_meant_is_named_by_its_number_and_the_others_count(line, says):
    found = parse_ledger(text_of(BEGIN, START) + line + b"\n" + text_of(MEASURED), WHERE)
    (problem,) = found.problems
    assert problem.startswith(f"{WHERE}: {says}")
    assert (found.starts.total(), found.measured.total()) == (1, 1)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "line 1"),
        (b"\n", "line 1"),
        (text_of(START), "line 1: 'event'"),
        (text_of(BEGIN)[:-5], "line 1"),
        (text_of(BEGIN.model_copy(update={"machine": "b" * 12})), "its content belongs into 'bbbbbbbbbbbb/"),
    ],
)
def test_a_file_without_a_session_of_its_own_is_refused(text, says):
    with pytest.raises(RecordError, match=f"{WHERE}: {says}"):
        parse_ledger(text, WHERE)


@given(st.binary(max_size=300))
def test_no_bytes_make_a_ledger_crash(rest):
    found = parse_ledger(text_of(BEGIN) + rest, WHERE)
    assert found.cut_short == (not rest.endswith(b"\n") and rest != b"")


def test_a_ledger_that_is_too_large_or_no_file_is_a_problem_and_is_not_read(tmp_path):
    folder = tmp_path / "results" / "ledger" / ("a" * 12)
    (folder / "20260131-bbbbbb.jsonl").mkdir(parents=True)
    (folder / "20260131-aaaaaa.jsonl").write_bytes(text_of(BEGIN) + b" " * LEDGER_BYTES)
    results = store.read_all(tmp_path)
    assert results.ledgers == ()
    large, no_file = results.problems
    assert f"where {LEDGER_BYTES} are the most" in large
    assert "is no file" in no_file


def test_a_ledger_that_cannot_be_written_is_told_in_one_sentence(tmp_path, session, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.os, "fsync", full)
    with pytest.raises(
        MachineError,
        match=r"the ledger of session 20260131-aaaaaa could not be written \(No space left on device\);",
    ):
        store.append_to_ledger(tmp_path, session, START)


def test_the_sessions_of_a_machine_are_numbered_over_all_its_clones(tmp_path, session):
    state, here, there = tmp_path / "state", tmp_path / "here", tmp_path / "there"
    assert [ledger.next_number(state, root, session.machine) for root in (here, there, here)] == [1, 2, 3]
    (state / "sessions-begun").write_text("rubbish")
    store.write_session(here, session.model_copy(update={"number": 3}))
    assert ledger.next_number(state, here, session.machine) == 4
