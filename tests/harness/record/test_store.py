from __future__ import annotations

import errno
import inspect
import json
import os
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import pytest

from harness.errors import NoSpace, RecordError, UserError
from harness.record import Limit, Record, Session, store
from harness.record.trial_spec import trial_id
from harness.run import runner
from tests.helpers import TESTS, clone
from tests.helpers.here import results_here


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    root = clone.make(tmp_path_factory.mktemp("clone"), repeats=1)
    outcome = runner.run_session(clone.ready(root), clone.open_session(root), clone.Quiet())
    return root, outcome.session


def test_every_committed_trial_keeps_its_id_and_a_most_makes_another_one():
    trials = [stored.record.trial for stored in results_here().records]
    assert len(trials) >= 52
    first = trials[0].asked
    assert "seconds_at_most" not in first.canonical()
    for trial in trials:
        assert trial.id == trial_id(trial.asked, trial.repeat)
    limit = Limit(seconds=75, seconds_at_most=300)
    longer = first.model_copy(update={"variant": first.variant.model_copy(update={"limit": limit})})
    assert trial_id(longer, 1) != trial_id(first, 1)
    assert '"seconds_at_most":300.0' in longer.canonical()


def test_a_record_reads_back_as_it_was_written(measured):
    root, _ = measured
    stored = store.read_results(root).records[0]
    assert store.dump_json(stored.record) == (root / stored.path).read_text()


def test_a_part_that_the_record_before_has_too_is_the_same_object(measured):
    root, _ = measured
    first, *others = store.read_results(root).records
    assert others and all(stored.record.machine is first.record.machine for stored in others)
    assert all(stored.record == store.read_record(root / stored.path, "") for stored in others)


def test_sessions_are_read_without_their_records(measured, monkeypatch):
    root, session = measured
    monkeypatch.delattr(store, "read_record")
    assert store.read_sessions(root) == (session,)


def test_a_record_is_never_overwritten(measured):
    root, session = measured
    record = store.read_results(root).records[0].record
    with pytest.raises(UserError, match="is never overwritten"):
        store.write_record(root, session, record)


def test_a_record_that_is_cut_short_is_refused_with_its_path(measured, tmp_path):
    root, _ = measured
    stored = store.read_results(root).records[0]
    path = tmp_path / "cut.json"
    path.write_text((root / stored.path).read_text()[:300])
    with pytest.raises(RecordError, match=r"results/x/cut\.json: the file is cut short or not JSON"):
        store.read_record(path, "results/x/cut.json")


def refusal(measured, folder, change) -> str:
    """What is said of a record that was changed after it was written."""
    root, _ = measured
    raw = json.loads((root / store.read_results(root).records[0].path).read_text())
    change(raw)
    (folder / "bad.json").write_text(json.dumps(raw))
    with pytest.raises(RecordError) as caught:
        store.read_record(folder / "bad.json", "bad.json")
    return str(caught.value)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"record": 3}, "schema 3 is not 2"),
        ({"record": 1}, "schema 1 is not 2"),
        ({"record": True}, "schema True is not 2"),
        ({"surprise": 1}, "'surprise': unknown key"),
        ({"status": "failed"}, "status 'failed' does not fit"),
        ({"wall_seconds": -1}, "'wall_seconds'"),
        ({"order": 2**63}, "more than 63 bits"),
        ({"warnings": [f"after {2**63} ns"]}, "'warnings 1'"),
    ],
)
def test_a_record_that_cannot_be_is_refused_by_its_field(measured, tmp_path, change, says):
    assert says in refusal(measured, tmp_path, lambda raw: raw.update(change))


@pytest.mark.parametrize(("model", "first"), [(Record, 2), (Session, 1)])
def test_a_committed_file_of_each_number_from_record_2_and_session_1_on_is_read(model, first):
    kind = model.__name__.lower()
    (latest,) = get_args(model.model_fields[kind].annotation)
    for number in range(first, latest + 1):
        paths = sorted((TESTS / "records").glob(f"{kind}-{number}*.json"))
        assert paths and all(json.loads(path.read_text())[kind] == number for path in paths)
        for path in paths:
            parsed = (
                Session.parse(path.read_bytes(), "") if kind == "session" else store.read_record(path, "")
            )
            assert parsed.started_at
    assert len(inspect.getsource(store.drop_retired).splitlines()) <= 40


def test_files_of_a_number_that_has_no_reader_are_told_in_one_sentence(tmp_path):
    folder = tmp_path / "results" / "2026-01-31" / "a-20260131-aaaaaa"
    folder.mkdir(parents=True)
    for name in ("a", "b", "c"):
        (folder / f"{name}.json").write_text('{"record": 1}')
    (said,) = store.read_results(tmp_path).problems
    assert "a.json: schema 1 is not 2, nor is that of 2 more files; " in said


@pytest.mark.parametrize("value", ["1000", None, 1.5, True, -1, 2**62, [1000], {}])
def test_a_step_that_is_no_whole_number_of_microseconds_is_refused_by_its_place(measured, tmp_path, value):
    said = refusal(measured, tmp_path, lambda raw: raw["measurement"].update(step_us=[1000, value]))
    assert said.startswith("bad.json: 'measurement.step_us") and "value 1 is no whole number" in said


def test_a_trial_whose_id_is_not_its_content_is_refused(measured, tmp_path):
    said = refusal(measured, tmp_path, lambda raw: raw["trial"]["asked"]["variant"].update(batch_size=9))
    assert "is not what its content gives" in said


def test_a_full_disk_is_said_in_a_sentence_and_leaves_no_file(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.os, "fsync", full)
    with pytest.raises(NoSpace, match=r"the disk is full: '.*x\.json' could not be written"):
        store.write_whole(tmp_path / "x.json", "{}", replace=False)
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_a_session_tells_its_date_and_machine(measured):
    root, session = measured
    folder = store.session_folder(root, session).relative_to(root).as_posix()
    assert folder == f"results/{datetime.now(UTC):%Y-%m-%d}/stand-in-{session.id}"


@pytest.mark.parametrize("lacks", [("link",), ("link", "chmod", "fsync of folders")])
def test_a_file_is_kept_where_the_file_system_has_no_hard_links_no_permissions_and_flushes_no_folders(
    tmp_path, monkeypatch, lacks
):
    def refused(*given: object, **named: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    def of_files_alone(handle):
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(store.os, "link", refused)
    if "chmod" in lacks:
        monkeypatch.setattr(Path, "chmod", refused)
        monkeypatch.setattr(store.os, "fsync", of_files_alone)
    store.write_whole(tmp_path / "x.json", "{}", replace=False)
    with pytest.raises(UserError, match="never overwritten"):
        store.write_whole(tmp_path / "x.json", "[]", replace=False)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("x.json", "{}")]


def test_an_answer_of_a_disk_that_names_no_file_is_told_with_the_file_that_was_written(tmp_path, monkeypatch):
    def broken(handle):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(store.os, "fsync", broken)
    with pytest.raises(OSError, match=str(tmp_path / "x.json")):
        store.write_whole(tmp_path / "x.json", "{}", replace=False)
