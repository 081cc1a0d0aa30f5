"""A plan as jobs, on a scheduler that is made up: what no real one can be made to do."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import Busy, NoEngine, UserError
from harness.record import Load, store
from harness.run.jobs import collect, node
from harness.run.jobs import submission as kept
from tests.helpers import clone, cluster
from tests.helpers.fake_scheduler import FakeScheduler


@pytest.fixture(autouse=True)
def _a_machine_that_is_read_at_once(tmp_path, monkeypatch):
    """Looking at the real one takes a second, hundreds of times over."""
    monkeypatch.setenv("GPUDYNO_STATE", str(tmp_path / "state"))
    for module in (node, collect):
        monkeypatch.setattr(module, "look_at_machine", lambda label: (clone.MACHINE, {}))
    monkeypatch.setattr(node, "read_load", Load)
    monkeypatch.setattr(os, "fsync", lambda handle: None)


MANY = """
name = "mine"
title = "two hundred stand-ins"
repeats = 20

[[measure]]
workload = "fake"
protocol = "published/1"
model = "none"
precision = ["fp32-ieee", "amp-bf16"]
sequence_length = [1, 2, 3, 4, 5]
batch_size = 8
data_mode = "cached"
"""


@pytest.mark.whole
def test_of_two_hundred_trials_none_is_lost_though_one_job_in_four_goes_wrong(tmp_path):
    scheduler = FakeScheduler(wrong_share=0.25, cut_short_at=4)
    bench = cluster.bench(tmp_path / "clone", scheduler)
    (bench.root / "plans" / "mine.toml").write_text(MANY)
    with pytest.raises(NoEngine, match="the line was cut short"):
        bench.submit()
    lines = 0
    while kept.open_submissions(bench.root):
        bench.status()
        bench.submit()
        bench.collect()
        lines += 1
        assert lines < 10
    records = bench.records()
    results = [record for record in records if record.failure is None or record.failure.kind == "trial"]
    assert len(results) == len({record.trial.id for record in results}) == 200
    wrong = scheduler.wrong
    assert sum(count for how, count in wrong.items() if how) >= 30
    reasons = {how: sum(r.failure.reason == how for r in records if r.failure) for how in set(bench.ends())}
    assert reasons["timeout"] == wrong["out of time"]
    assert reasons["engine-gone"] == wrong["forgotten"]
    unlooked = wrong["its node died before it looked"]
    assert reasons["node-failed"] == wrong["its node died"] + wrong["queued again"] + unlooked
    assert reasons["error"] == wrong["the trial failed"]
    assert reasons["cancelled"] == wrong["cancelled before it began"]
    seen = [record.failure.message for record in records if record.failure]
    assert sum("it ended before it looked at its node" in message for message in seen) == unlooked
    assert store.read_results(bench.root).problems == ()


def test_a_line_that_is_cut_short_after_it_sent_a_job_sends_it_no_second_time(tmp_path):
    scheduler = FakeScheduler(cut_short_at=1)
    bench = cluster.bench(tmp_path / "clone", scheduler)
    with pytest.raises(NoEngine):
        bench.submit()
    (submission,) = kept.open_submissions(bench.root)
    assert [batch.job for batch in submission.batches] == [None]
    bench.submit()
    bench.collect()
    assert (scheduler.sent, bench.ends()) == (2, ["ok"] * 4)


def test_a_collect_that_is_cut_short_after_a_record_was_written_writes_it_no_second_time(
    tmp_path, monkeypatch
):
    bench = cluster.bench(tmp_path / "clone", FakeScheduler())
    bench.submit()
    written: list[Path] = []
    touch = Path.touch

    def cut_short(path: Path, *given: object, **named: object) -> None:
        if path.name == kept.COLLECTED and not written:
            written.append(path)
            raise KeyboardInterrupt
        touch(path, *given, **named)

    monkeypatch.setattr(Path, "touch", cut_short)
    with pytest.raises(KeyboardInterrupt):
        bench.collect()
    bench.collect()
    assert written and bench.ends() == ["ok"] * 4


def test_a_plan_that_was_changed_begins_a_new_submission(tmp_path, capsys):
    bench = cluster.bench(tmp_path / "clone", FakeScheduler())
    bench.submit()
    path = bench.root / "plans" / "mine.toml"
    path.write_text(path.read_text().replace("stand-ins", "another title"))
    bench.submit()
    assert "asked for another plan, lock or data: a new one begins" in capsys.readouterr().out


def test_two_shells_do_not_send_at_once(tmp_path):
    bench = cluster.bench(tmp_path / "clone", FakeScheduler())
    with kept.submissions_lock(bench.root), pytest.raises(Busy, match="another shell sends or collects"):
        bench.submit()


SRUN = """#!/bin/sh
[ -z "$LD_PRELOAD" ] || exit 9
while [ "$1" != bash ]; do shift; done
exec "$@"
"""


def test_a_batch_script_measures_each_of_its_trials_and_their_records_are_collected(tmp_path, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setenv("GPUDYNO_STATE", str(tmp_path / "state"))
    (tmp_path / "libfoo.so.1").write_text("")
    lines = f'commands = ["export LD_LIBRARY_PATH={tmp_path}", "export LD_PRELOAD=/nowhere.so"]'
    site = f"python = '{sys.executable}'\n{lines}"
    bench = cluster.bench(tmp_path / "clone", FakeScheduler(waits=True), site=site)
    bench.submit()
    (tmp_path / "srun").write_text(SRUN)
    (tmp_path / "srun").chmod(0o755)
    job = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_ID": "1"}
    (script,) = bench.root.glob("results/.state/jobs/*/batch-1.sh")
    for task in ("0", "1"):
        subprocess.run(["bash", str(script)], env={**job, "SLURM_ARRAY_TASK_ID": task}, check=True)
    bench.collect()
    assert bench.ends() == ["ok"] * 2
    for record in bench.records():
        assert "LD_LIBRARY_PATH" in record.environment.inherited_variables, "as its own shell had it"
        assert any("LD_LIBRARY_PATH" in why for why in record.environment.unpinned_because)


@pytest.mark.parametrize(("nodes", "on_each"), [(1, 2), (2, 1)])
def test_a_record_says_over_how_many_nodes_its_trial_s_devices_were(nodes, on_each, tmp_path):
    site = f"nodes = {nodes}\ngpus_per_node = {on_each}"
    bench = cluster.bench(tmp_path / "clone", FakeScheduler(), site=site, repeats=1)
    path = bench.root / "plans" / "mine.toml"
    path.write_text(path.read_text() + "gpus = 2\n")
    bench.submit()
    bench.collect()
    assert [record.nodes for record in bench.records()] == [nodes] * 2


def test_a_job_that_is_cancelled_while_it_waits_leaves_a_record_that_says_so(tmp_path):
    scheduler = FakeScheduler(waits=True)
    bench = cluster.bench(tmp_path / "clone", scheduler, repeats=1)
    bench.submit()
    bench.collect()
    assert bench.ends() == []
    bench.cancel()
    for _ in range(2):
        bench.collect()
        assert bench.ends() == ["cancelled"] * 2
    (message,) = {record.failure.message for record in bench.records() if record.failure}
    assert message == (
        "it was cancelled by `invoke jobs --cancel`; it ran on no node, "
        "and the machine named here is the one that sent it"
    )
    scheduler.waits = False
    bench.submit()
    bench.collect()
    assert bench.ends() == ["cancelled", "cancelled", "ok", "ok"]
    assert {record.attempt for record in bench.records() if record.measurement} == {2}


def test_a_clone_from_which_another_user_sends_is_refused(tmp_path, monkeypatch):
    bench = cluster.bench(tmp_path / "clone", FakeScheduler(waits=True), repeats=1)
    bench.submit()
    monkeypatch.setattr(os, "getuid", lambda: 4321)
    for line in (bench.submit, bench.status, bench.collect, bench.cancel):
        with pytest.raises(UserError, match="another user sends jobs from this clone"):
            line()


def test_jobs_that_run_when_a_new_session_begins_are_still_followed_collected_and_ended(tmp_path, capsys):
    scheduler = FakeScheduler(waits=True)
    bench = cluster.bench(tmp_path / "clone", scheduler, repeats=1)
    bench.submit()
    bench.submit(new_session=True)
    first, second = kept.open_submissions(bench.root)
    bench.status()
    said = capsys.readouterr().out
    assert f"submission {first.id}, plan" in said and f"submission {second.id}, plan" in said
    assert bench.jobs() == [1, 2, 3, 4]
    bench.submit()
    assert scheduler.sent == 4
    scheduler.waiting = [waits for waits in scheduler.waiting if waits[0] != 2]
    scheduler.waits = False
    bench.collect()
    assert bench.ends() == ["engine-gone", *["ok"] * 3]
    assert "a later submission of the plan has" in capsys.readouterr().out
    assert kept.open_submissions(bench.root) == ()
    bench.submit()
    bench.submit(new_session=True)
    scheduler.waits = True
    bench.cancel()
    assert (
        second.id not in [each.id for each in kept.open_submissions(bench.root)] and scheduler.waiting == []
    )


def scripts(said: str) -> list[str]:
    """Without the numbers of submissions and of jobs, which are not known beforehand."""
    parts = said.split("#!/bin/bash")[1:]
    return [re.sub(r"\d{8}-[0-9a-f]{6}|JOB\d+|(?<=afterany:)\d+", "N", part).rstrip("\n") for part in parts]


@pytest.mark.parametrize("site", ["", "scratch = '/local'\ncommands = ['module load x']"])
@pytest.mark.parametrize("at_once", [True, False])
def test_the_script_that_is_shown_is_the_script_that_is_sent(tmp_path, capsys, monkeypatch, site, at_once):
    # The order of the trials is drawn for each line.
    monkeypatch.setattr(secrets, "randbelow", lambda below: 7)
    bench = cluster.bench(tmp_path / "clone", FakeScheduler(), site=site, at_once=at_once, repeats=3)
    bench.submit(dry_run=True)
    shown = scripts(capsys.readouterr().out)
    assert list(bench.root.glob("results/.state/jobs/*/batch-*")) == []
    bench.submit()
    (submission,) = kept.open_submissions(bench.root)
    folder = kept.submission_folder(bench.root, submission.id)
    sent = [folder / f"batch-{number}.sh" for number in range(1, len(submission.batches) + 1)]
    text = "".join(path.read_text() for path in sent)
    assert shown == scripts(text)
    assert len(shown) == 2 and "--array" in text
    assert ("#!/bin/bash -l" in text) == ("module load" in text)
    assert ("--dependency=afterany:" in text) == ("--dependency" in text) == (not at_once)
    assert ("%1\n" in text) == (not at_once)


def test_a_dry_run_of_an_open_plan_shows_only_what_is_not_under_way(tmp_path, capsys):
    bench = cluster.bench(tmp_path / "clone", FakeScheduler(waits=True), repeats=1)
    bench.submit()
    capsys.readouterr()
    bench.submit(dry_run=True)
    assert scripts(capsys.readouterr().out) == []
