"""Measured sessions that were edited by hand, with summaries that fit: gate, check and verdicts name each."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import reduce
from pathlib import Path

import pytest

from harness.bundle.validate import folder_problems
from harness.record import store
from harness.summary.contradictions import changes_over_pauses
from harness.summary.statistics import judge_trial
from tests.helpers import ROOT
from tests.helpers.here import results_here

MNIST = "results/2026-11-26/*-20261126-28f1ee"
QUICK = "results/2026-11-21/*-20261121-38cb4c"
CARD = "results/2026-11-27/*-20261127-63ddd7"


def copied(pattern: str, to: Path) -> Path:
    (folder,) = ROOT.glob(pattern)
    return Path(shutil.copytree(folder, to / folder.relative_to(ROOT)))


def records(folder: Path) -> list[Path]:
    """The session's records in the order in which they ran."""
    found = [path for path in folder.glob("*.json") if path.name != "session.json"]
    return sorted(found, key=lambda path: json.loads(path.read_text())["started_at"])


def with_fields(name: str, **fields: object) -> Callable[[Path], None]:
    """One file with other fields, each named as `machine__memory_bytes`."""

    def edit(folder: Path) -> None:
        raw = json.loads((folder / name).read_text())
        for place, value in fields.items():
            *above, last = place.split("__")
            reduce(lambda holder, part: holder[part], above, raw)[last] = value
        (folder / name).write_text(json.dumps(raw))

    return edit


def edited(number: int, **fields: object) -> Callable[[Path], None]:
    """One record with other fields, and the summary that they give."""

    def edit(folder: Path) -> None:
        path = records(folder)[number]
        with_fields(path.name, **fields, summary=None)(folder)
        record = store.read_record(path, path.name)
        path.write_text(store.dump_json(record.model_copy(update={"summary": judge_trial(record)})))

    return edit


def without_a_trial(folder: Path) -> None:
    """A trial is gone from the files and from the session."""
    path = records(folder)[1]
    name = json.loads(path.read_text())["trial"]["id"]
    path.unlink()
    session = folder / "session.json"
    raw = json.loads(session.read_text())
    raw["trials"] = [trial for trial in raw["trials"] if trial["id"] != name]
    session.write_text(json.dumps(raw))


def as_another_attempt(folder: Path) -> None:
    path = records(folder)[0]
    edited(0, attempt=2)(folder)
    path.rename(path.with_suffix(".a2.json"))


def as_text(old: str, new: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        path = records(folder)[0]
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    return edit


EDITS = [
    (QUICK, edited(3, machine__cpu__cores=32), "its cpu.cores is 32, where the trial before it had 2"),
    (QUICK, edited(3, machine__memory_bytes=2**40), "its memory_bytes is 1099511627776, where"),
    (QUICK, edited(3, machine__kernel="6.1.0"), "its kernel is 6.1.0, where the trial before it had"),
    (MNIST, edited(0, measurement__data__sha256="0" * 64), "and that of 'mnist' '3b3655f8f573'"),
    (MNIST, edited(0, measurement__data__train_items=120_000), "130,000 items of 'mnist', which has 70,000"),
    (
        MNIST,
        edited(1, measurement__workload_sha256="0" * 64),
        "its workload's code is not that of other records",
    ),
    (MNIST, edited(0, measurement__data__name="mine"), "its data or protocol is not that of records of its"),
    (MNIST, edited(1, measurement__protocol__steps_per_epoch=59), "its data or protocol is not that of"),
    (QUICK, edited(4, environment__engine_version="3.9"), "its environment or versions are not those of"),
    (QUICK, edited(4, harness__revision="0" * 40), "another gpudyno made it than the trial before it"),
    (QUICK, edited(3, machine__label="dgx"), "its machine is not its session's"),
    (MNIST, as_another_attempt, "it is attempt 2, and the one before it is not there"),
    (QUICK, without_a_trial, "it is number 2 of its session, which has it as number 1"),
    (CARD, edited(0, telemetry__energy__joules=1.0), "its energy is 1 J, and its method give"),
    (
        CARD,
        edited(0, telemetry__energy__joules=1.0, telemetry__energy__counter_joules=1.0),
        "its energy is 1 J, and its power gives 3",
    ),
    (MNIST, with_fields("session.json", number=4), "it is number 4 of its machine, as 20261126-6f810e is"),
    (MNIST, edited(1, started_at="2150-01-01T00:00:00Z"), "it begins in the future (2150-01-01)"),
    (MNIST, as_text('"attempt": 1', '"attempt": 1.0'), "'attempt': Input should be a valid integer"),
    (MNIST, as_text('"attempt": 1', '"attempt": 2, "attempt": 1'), "is there twice"),
]


@pytest.mark.parametrize(("pattern", "edit", "said"), EDITS)
def test_an_edit_that_a_second_look_sees_is_named(tmp_path, pattern, edit, said):
    folder = copied(pattern, tmp_path)
    assert list(folder_problems(tmp_path, ROOT)) == []
    edit(folder)
    assert [problem for problem in folder_problems(tmp_path, ROOT) if said in problem]


def test_nothing_that_was_measured_here_is_named(tmp_path):
    assert list(folder_problems(ROOT, ROOT)) == []
    assert list(changes_over_pauses(results_here())) == []


def test_another_machine_after_a_pause_is_a_note_and_refuses_nothing(tmp_path):
    folder = copied(MNIST, tmp_path)
    second = records(folder)[1]
    later = datetime.fromisoformat(json.loads(second.read_text())["started_at"]) + timedelta(hours=1)
    edited(1, machine__kernel="6.99.0", started_at=later.isoformat())(folder)
    assert list(folder_problems(tmp_path, ROOT)) == []
    (change,) = changes_over_pauses(store.read_results(tmp_path))
    assert second.name in change and "its kernel is 6.99.0" in change
