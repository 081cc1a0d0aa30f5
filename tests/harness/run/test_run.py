from __future__ import annotations

import re
import subprocess
import sys
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import psutil
import pytest

from commands import run
from commands.terminal import Screen
from harness.engine.container import DeviceRequest
from harness.errors import Busy, UserError
from harness.record import Question, store
from harness.run import blocks, runner, session
from harness.run.choice import choose_trials
from harness.run.runner import TimeBudget
from harness.settings import Settings
from harness.telemetry import recorder
from tests.helpers import clone
from tests.helpers.runs import go, records, runs_in

WATCHES = recorder.start_sampling


def test_a_plan_is_run_whole_and_each_trial_leaves_one_record(finished):
    outcome, found = finished
    assert (outcome.ran, outcome.failed, outcome.left, outcome.complete) == (4, 0, 0, True)
    assert [record.order for record in found] == [0, 1, 2, 3]
    assert {record.status for record in found} == {"ok"}
    assert all(record.summary is not None for record in found)


def test_a_trial_is_given_and_watched_on_as_many_of_the_session_s_cards_as_it_asks_for(tmp_path, monkeypatch):
    root = clone.make(tmp_path, repeats=1)
    given = DeviceRequest("cuda", ids=("GPU-1", "GPU-2"), indices=(1, 2))
    monkeypatch.setattr(recorder, "start_sampling", lambda work, device, pids: seen.append(device))
    seen: list[DeviceRequest] = []
    monkeypatch.setattr(runner, "device_request", lambda selection: given)
    go(root)
    assert seen == [DeviceRequest("cuda", ids=("GPU-1",), indices=(1,))] * 2
    assert [record.cards_given for record in records(root)] == [(1,), (1,)]
    assert given.part(1, 1) == DeviceRequest("cuda", ids=("GPU-2",), indices=(2,))


def test_a_trial_that_does_not_fit_is_a_result_and_is_not_run_again(tmp_path):
    root = clone.make(tmp_path, options='ending = "out-of-memory"', repeats=1)
    outcome = go(root)
    assert (outcome.ran, outcome.failed, outcome.complete) == (2, 2, True)
    failure = records(root)[0].failure
    assert failure is not None
    assert (failure.kind, failure.reason, failure.message) == ("trial", "out-of-memory", "it does not fit")


def test_an_end_without_a_word_keeps_the_code_and_says_the_log_to_the_terminal_alone(tmp_path):
    root = clone.make(tmp_path, options='ending = "silence"', repeats=1)
    watcher = clone.Quiet()
    runner.run_session(clone.ready(root), clone.open_session(root), watcher)
    failure = records(root)[0].failure
    assert failure is not None
    assert failure.exit_code == 7
    assert any("a last word from" in line for line in watcher.lines)


def test_a_measurement_that_is_cut_short_is_a_failure_and_stays_where_the_trial_worked(tmp_path):
    root = clone.make(tmp_path, options='ending = "rubbish"', repeats=1)
    go(root)
    failures = [record.failure for record in records(root)]
    assert {failure.reason for failure in failures if failure} == {"bad-measurement"}
    assert list(root.glob("results/*/*/*.rejected.json")) == []
    assert len(list(root.glob("results/.state/work/*/*/out/measurement.json"))) == 2
    assert store.read_results(root).problems == ()


def test_a_measurement_of_another_precision_than_was_asked_for_is_no_measurement(tmp_path):
    root = clone.make(tmp_path, options='ending = "other precision"', repeats=1)
    go(root)
    messages = [record.failure.message for record in records(root) if record.failure]
    assert messages == ["measurement.json: its precision is 'amp-bf16', where 'fp32-ieee' was asked for"]


def test_a_trial_past_its_limit_is_stopped_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "GRACE_SECONDS", 0.0)
    root = clone.make(tmp_path, options="step_seconds = 5.0", repeats=1, timeout=0.5)
    go(root)
    assert {record.failure.reason for record in records(root) if record.failure} == {"timeout"}
    assert not [process for process in psutil.process_iter() if runs_in(process, root)]


def test_a_run_rests_between_the_blocks_that_its_plan_asks_for_and_counts_them(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "PAUSE", timedelta(seconds=3))
    root, watcher = clone.make(tmp_path, blocks=2), clone.Quiet()
    runner.run_session(clone.ready(root), clone.open_session(root), watcher)
    found = sorted(records(root), key=lambda record: record.order)
    assert [record.block for record in found] == [1, 1, 2, 2]
    pause = found[2].started_at - found[1].ended_at
    assert pause >= blocks.PAUSE
    assert sum("next block of time begins" in line for line in watcher.lines) == 1


def test_a_block_that_would_begin_after_the_budget_is_left_out_without_waiting_for_it(tmp_path):
    root = clone.make(tmp_path, blocks=2)
    outcome = go(root, budget=TimeBudget(time.monotonic() + 600))
    assert (outcome.ran, outcome.left) == (2, 2)
    assert [left.trials for left in store.read_results(root).sessions[0].left_out] == [2]


def test_the_largest_batch_that_fits_is_searched_below_the_first_that_does_not(tmp_path):
    root = clone.make(tmp_path, options="capacity = 40")
    path = root / "plans" / "mine.toml"
    text = path.read_text().replace("batch_size = 8", "batch_size = [16, 32, 64, 128]")
    path.write_text(text.replace('["fp32-ieee", "amp-bf16"]', '"fp32-ieee"'))
    outcome = go(root)
    tried = [
        (record.trial.repeat, record.trial.asked.variant.batch_size, record.status)
        for record in sorted(records(root), key=lambda record: record.started_at)
    ]
    searched = {(1, 48, "failed"), (1, 40, "ok"), (2, 40, "ok")}
    assert {(1, 16, "ok"), (1, 32, "ok"), (1, 64, "failed"), *searched} <= set(tried)
    assert not [size for _, size, _ in tried[tried.index((1, 64, "failed")) :] if size > 64]
    assert outcome.complete and clone.open_session(root).id != outcome.session.id


def test_only_one_run_measures_on_a_machine_whatever_its_state(tmp_path, monkeypatch):
    monkeypatch.setenv(session.LOCK_VARIABLE, str(tmp_path / "lock"))
    holder = "import time; from harness.run.session import run_lock\n"
    holder += "with run_lock(): print('held', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", holder], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        monkeypatch.setenv("GPUDYNO_STATE", str(tmp_path / "state"))
        with pytest.raises(Busy, match=f"another run \\(process {other.pid}\\)"), session.run_lock():
            pass
        other.kill()
    with session.run_lock():
        pass


def test_a_tuned_trial_is_preceded_by_one_that_only_fills_the_caches(tmp_path):
    root = clone.make(tmp_path, repeats=2)
    path = root / "plans" / "mine.toml"
    path.write_text(path.read_text().replace("batch_size = 8", 'batch_size = 8\nprofile = "tuned"'))
    quiet = clone.Quiet()
    outcome = runner.run_session(clone.ready(root), clone.open_session(root), quiet)
    assert sum("filling the caches" in line for line in quiet.lines) == 2
    assert (outcome.ran, outcome.complete, len(records(root))) == (4, True, 4)


def test_a_trial_is_watched_while_it_runs_and_nothing_watches_after_it(tmp_path, monkeypatch):
    monkeypatch.setattr(recorder, "start_sampling", WATCHES)
    root = clone.make(tmp_path, options="step_seconds = 0.1", repeats=1)
    go(root)
    found = [record.telemetry for record in records(root)]
    assert all(telemetry is not None and telemetry.samples >= 2 for telemetry in found)
    assert not [process for process in psutil.process_iter() if runs_in(process, root)]


def test_no_trial_starts_that_would_end_after_the_budget(tmp_path):
    root = clone.make(tmp_path, repeats=1)
    precisions = {"fp32-ieee": 1e6, "amp-bf16": 0.0}
    budget = TimeBudget(
        time.monotonic() + 60, lambda trial, records: precisions[trial.asked.variant.precision]
    )
    outcome = go(root, budget=budget)
    assert (outcome.ran, outcome.left) == (1, 1)
    assert [record.trial.asked.variant.precision for record in records(root)] == ["amp-bf16"]


def test_a_plan_that_was_changed_since_its_session_began_begins_a_new_one_and_says_so(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("GPUDYNO_STATE", str(tmp_path / "state"))
    root = clone.make(tmp_path, repeats=1)
    opened = clone.open_session(root)
    built = clone.built(root)
    path = root / "plans" / "mine.toml"
    path.write_text(path.read_text().replace("stand-ins", "another title"))
    outcome = run._run_trials(clone.bench(root), (built,), {}, run.RunOptions(), Screen())
    assert outcome.session.id != opened.id
    said = f"the plan 'mine' was changed since session {opened.id} began: a new one begins"
    assert said in capsys.readouterr().out
    assert sorted(session.number or 0 for session in store.read_sessions(root)) == [1, 2]


def test_a_session_goes_on_where_its_plan_got_a_question_and_keeps_the_one_that_was_asked(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("GPUDYNO_STATE", str(tmp_path / "state"))
    root = clone.make(tmp_path, repeats=1)
    opened = clone.open_session(root)
    path, asked = root / "plans" / "mine.toml", Question(kind="holds")
    path.write_text(
        path.read_text().replace("title", 'question = { is = "faster", by = "precision" }\ntitle')
    )
    bench, built = clone.bench(root), clone.built(root)
    bench = replace(bench, settings=bench.settings.model_copy(update={"question": asked}))
    outcome = run._run_trials(bench, (built,), {}, run.RunOptions(), Screen())
    (kept,) = store.read_sessions(root)
    assert (outcome.session.id, opened.question, kept.question) == (opened.id, None, asked)
    run._run_trials(clone.bench(root), (built,), {}, run.RunOptions(new_session=True), Screen())
    questions = [session.question for session in store.read_sessions(root)]
    assert sorted(questions, key=str) == [Question(kind="faster", by="precision"), asked]


def test_a_run_ends_with_the_whole_line_that_goes_on(tmp_path, capsys):
    root = clone.make(tmp_path, repeats=1)
    done = runner.run_session(clone.ready(root), clone.open_session(root), clone.Quiet())
    outcome = replace(done, left=1, complete=False)
    asked = Settings(plan="mine", image="era-2019", device="cpu")
    run._say_outcome(asked, outcome, Screen())
    again = "`invoke run --plan mine --image era-2019 --device cpu` goes on"
    assert capsys.readouterr().out == f"2 trials run; 1 trial left: {again}\n"


def test_a_budget_reads_the_results_once_and_not_for_each_trial_that_is_left(tmp_path, monkeypatch):
    root = clone.make(tmp_path)
    readings: list[Path] = []
    read_all = store.read_results
    monkeypatch.setattr(store, "read_results", lambda root: readings.append(root) or read_all(root))
    bench = clone.bench(root, budget="10m")
    outcome = run._run_trials(bench, (clone.built(root),), {}, run.RunOptions(), Screen())
    assert (outcome.ran, len(readings)) == (4, 1)


def test_a_role_that_a_plan_has_nothing_of_is_said_in_one_sentence(tmp_path):
    bench = clone.bench(clone.make(tmp_path), role="full")
    with pytest.raises(UserError, match=r"^plan 'mine' has nothing of role full that "):
        choose_trials(bench)


def test_a_workload_that_is_no_file_is_refused_before_anything_is_built_with_the_nearest(tmp_path):
    root = clone.make(tmp_path)
    path = root / "plans" / "mine.toml"
    workload = re.search(r'workload = "(\w+)"', path.read_text())
    assert workload
    path.write_text(path.read_text().replace(f'"{workload[1]}"', f'"{workload[1]}s"'))
    with pytest.raises(UserError, match=rf"'{workload[1]}s' is no workload; is '{workload[1]}' meant\?"):
        choose_trials(clone.bench(root))
    setup = clone.bench(root)
    own = setup.image.model_copy(update={"program": "/opt/mine/start"})
    assert choose_trials(replace(setup, image=own)).planned
