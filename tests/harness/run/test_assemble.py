"""What a trial leaves behind becomes one record, whatever it left and whatever the clock says meanwhile."""

from __future__ import annotations

import json
import shutil
from collections import namedtuple
from datetime import datetime, timedelta

import pytest

from harness.engine.interface import Exit
from harness.record import Record, store
from harness.run import assemble, runner
from tests.helpers import clone

ENDED = Exit(code=1, log="")


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """What a measured stand-in was started with, and the folder that it wrote to."""
    root = clone.make(tmp_path_factory.mktemp("ran"), repeats=1)
    with clone.unwatched():
        outcome = runner.run_session(clone.ready(root), clone.open_session(root), clone.Quiet())
    (work, *_) = sorted((root / "results" / ".state" / "work").glob("*/*"))
    stored = next(
        each.record for each in store.read_results(root).records if work.name.startswith(each.record.trial.id)
    )
    names = assemble.Started.model_fields.keys() & type(stored).model_fields.keys()
    kept = {name: getattr(stored, name) for name in names}
    started = assemble.Started(**{**kept, "session": outcome.session.id})
    return started, work / "out"


@pytest.fixture
def left(ran, tmp_path):
    """The same with a copy of the folder, to be changed."""
    return ran[0], shutil.copytree(ran[1], tmp_path / "out")


def assembled(left, exit: Exit = ENDED, wall_seconds: float = 5.0) -> Record:
    started, output = left
    return assemble.assemble_record(started, exit, output, wall_seconds=wall_seconds, locked=None)


def test_a_measurement_that_is_whole_is_kept_whatever_its_process_did_after_it(left):
    (left[1] / "failure.json").write_text('{"stage": "train", "reason": "timeout", "message": "x"}')
    made = assembled(left, Exit(code=1, log=""))
    assert (made.status, made.failure) == ("ok", None)


def test_a_measurement_without_end_is_neither_read_whole_nor_kept_whole(left):
    path = left[1] / "measurement.json"
    with path.open("ab") as file:
        file.truncate(assemble.MOST_BYTES + 1)
    made = assembled(left)
    assert made.failure.message == f"measurement.json has more than {assemble.MOST_BYTES} bytes"


def test_a_measurement_that_fills_a_record_is_refused_with_its_size(left):
    path = left[1] / "measurement.json"
    raw = json.loads(path.read_text()) | {"notes": ["x" * (assemble.MEASURED_BYTES + 1)]}
    path.write_text(json.dumps(raw))
    made = assembled(left)
    assert made.failure.reason == "bad-measurement" and "a record would hold" in made.failure.message


def test_what_a_full_disk_kept_from_being_written_is_tried_again(left, monkeypatch):
    (left[1] / "measurement.json").unlink()
    assert assembled(left).failure.kind == "trial"
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(1, 1, 0))
    failure = assembled(left).failure
    assert (failure.kind, failure.reason) == ("machinery", "disk-full")


def test_a_trial_takes_no_less_than_its_window_whatever_the_clock_says(left):
    window = assembled(left).measurement.window.seconds
    assert assembled(left, wall_seconds=0.0).wall_seconds == window


class SetClock(datetime):
    """A wall clock that somebody sets."""

    ahead = timedelta(0)

    @classmethod
    def now(cls, tz=None):
        cls.ahead += timedelta(hours=2)
        return datetime.now(tz) + cls.ahead


def test_a_clock_that_is_set_forward_times_no_trial_out(tmp_path, monkeypatch):
    root = clone.make(tmp_path, repeats=1)
    monkeypatch.setattr(runner, "datetime", SetClock)
    outcome = runner.run_session(clone.ready(root), clone.open_session(root), clone.Quiet())
    assert (outcome.failed, outcome.complete) == (0, True)
    assert max(stored.record.wall_seconds for stored in store.read_results(root).records) < 60


def test_a_trial_that_removes_its_own_folder_has_failed_alone(left):
    shutil.rmtree(left[1])
    made = assembled(left, Exit(code=1, log=""))
    assert (made.failure.stage, made.failure.reason) == ("start", "error")
