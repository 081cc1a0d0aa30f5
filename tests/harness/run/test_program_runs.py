"""A published program through the whole harness: fetched, run, recorded, judged."""

from __future__ import annotations

import shutil

from harness.data.fetch import show_nothing
from harness.run import runner
from harness.run.ready import ready_run
from harness.run.setup import resolve_data
from harness.summary import contradictions
from tests.helpers import ROOT, clone
from tests.helpers.programs import PLAN, TRAINS, clone_with, fields, repository
from tests.helpers.runs import records


def records_of(folder, monkeypatch, source=TRAINS, **told):
    monkeypatch.setenv("GPUDYNO_CACHE", str(folder / "cache"))
    root = clone.make(folder / "clone")
    shutil.copytree(ROOT / "workloads", root / "workloads", dirs_exist_ok=True)
    table = fields(repository(folder / "repository", source), options={"steps": 12, "each": 0.01}, **told)
    clone_with(root, table)
    (root / "plans" / "mine.toml").write_text(PLAN)
    ready = ready_run(clone.bench(root), (clone.built(root),), resolve_data(clone.bench(root), show_nothing))
    runner.run_session(ready, clone.open_session(root), clone.Quiet())
    return table, records(root)


def test_a_program_ends_in_records_that_hold_what_was_run_and_how(tmp_path, monkeypatch):
    every_third = TRAINS.replace(
        "    now = time.time()\n", "    now = time.time()\n    if step % 3 != 2: continue\n"
    )
    read = {"seconds_are": "mean"}
    table, found = records_of(tmp_path, monkeypatch, every_third, figure="run", read=read)
    assert [record.status for record in found] == ["ok"] * 3
    for record in found:
        program, window = record.measurement.program, record.measurement.window
        assert (window.steps, window.samples, record.measurement.step_us.steps_per_value) == (12, 48, 3)
        assert (program.commit, program.tree) == (table["commit"], table["tree"])
        assert program.command == ("python", "train.py", "12", "0.01")
        assert record.trial.asked.file.name == "mine/toy.toml"
        assert record.summary.verdict in ("valid", "warn")
        assert "own-window" in {cause.name for cause in record.summary.notes}
        assert record.measurement.title == "A toy"
        assert list(contradictions.record_contradictions(record)) == []


def test_a_program_that_fails_leaves_a_record_with_the_line_that_matters(tmp_path, monkeypatch):
    source = "print('step 1/2: 5.00 ms, loss 1.0')\nraise KeyError('no such layer')"
    _, found = records_of(tmp_path, monkeypatch, source)
    assert [record.failure.kind for record in found] == ["trial"] * 3
    said = "the program ended with code 1; its last line: KeyError: 'no such layer'"
    assert {record.failure.message for record in found} == {said}
