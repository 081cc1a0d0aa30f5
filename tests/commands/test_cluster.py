"""A plan as jobs, on a scheduler that is made up: what no real one can be made to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import Busy, NoEngine
from harness.record import Load, store
from harness.run.jobs import follow, never_started, node
from harness.run.jobs import submission as kept
from tests.helpers import clone, cluster
from tests.helpers.fake_scheduler import FakeScheduler


@pytest.fixture(autouse=True)
def _a_machine_that_is_read_at_once(tmp_path, monkeypatch):
    """Looking at the real one takes a second, a thousand times over."""
    monkeypatch.setenv("GPUDYNO_STATE", str(tmp_path / "state"))
    for module in (node, never_started):
        monkeypatch.setattr(module, "look", lambda label: (clone.MACHINE, {}))
    monkeypatch.setattr(node, "load", Load)
    monkeypatch.setattr(os, "fsync", lambda handle: None)


MANY = """
name = "mine"
title = "a thousand stand-ins"
repeats = 100

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
def test_of_a_thousand_trials_none_is_lost_though_one_job_in_twenty_goes_wrong(tmp_path):
    scheduler = FakeScheduler(wrong_share=0.05, cut_short_at=4)
    bench = cluster.bench(tmp_path / "clone", scheduler)
    (bench.root / "plans" / "mine.toml").write_text(MANY)
    with pytest.raises(NoEngine, match="the line was cut short"):
        bench.submit()
    lines = 0
    while kept.all_open(bench.root):
        bench.status()
        bench.submit()
        bench.collect()
        lines += 1
        assert lines < 10
    records = bench.records()
    results = [record for record in records if record.failure is None or record.failure.kind == "trial"]
    assert len(results) == len({record.trial.id for record in results}) == 1000
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
    (ledger,) = store.read_all(bench.root).ledgers
    assert ledger.starts.total() == len(records) == ledger.measured.total() + ledger.failed.total()
    assert store.read_all(bench.root).problems == ()


def test_a_line_that_is_cut_short_after_it_sent_a_job_sends_it_no_second_time(tmp_path):
    scheduler = FakeScheduler(cut_short_at=1)
    bench = cluster.bench(tmp_path / "clone", scheduler)
    with pytest.raises(NoEngine):
        bench.submit()
    (submission,) = kept.all_open(bench.root)
    assert [batch.job for batch in submission.batches] == [None]
    bench.submit()
    bench.collect()
    assert (scheduler.sent, bench.ends()) == (2, ["ok"] * 4)


def test_the_scheduler_is_asked_no_more_often_than_its_site_allows(tmp_path):
    scheduler = FakeScheduler()
    bench = cluster.bench(tmp_path / "clone", scheduler)
    (bench.root / "site.toml").write_text("")
    bench.submit()
    for _ in range(5):
        bench.status()
        bench.collect()
    assert scheduler.asked == 1


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
    (ledger,) = store.read_all(bench.root).ledgers
    assert (ledger.starts.total(), ledger.measured.total()) == (4, 4)


def test_a_plan_that_was_changed_begins_a_new_submission(tmp_path, capsys):
    bench = cluster.bench(tmp_path / "clone", FakeScheduler())
    bench.submit()
    path = bench.root / "plans" / "mine.toml"
    path.write_text(path.read_text().replace("stand-ins", "another title"))
    bench.submit()
    assert "asked for another plan, lock or data: a new one begins" in capsys.readouterr().out


def test_two_shells_do_not_send_at_once(tmp_path):
    bench = cluster.bench(tmp_path / "clone", FakeScheduler())
    with kept.alone(bench.root), pytest.raises(Busy, match="another shell sends or collects"):
        bench.submit()


def test_printed_commands_run_without_a_scheduler_and_their_records_are_collected(
    tmp_path, capfd, monkeypatch
):
    monkeypatch.undo()
    monkeypatch.setenv("GPUDYNO_STATE", str(tmp_path / "state"))
    bench = cluster.bench(tmp_path / "clone", FakeScheduler(), site=f"python = '{sys.executable}'")
    bench.submit(listed=True)
    commands = [line for line in capfd.readouterr().out.splitlines() if line.startswith("bash ")]
    assert len(commands) == 4
    for command in commands[:3]:
        subprocess.run(command, shell=True, check=True)
    bench.collect()
    assert bench.ends() == ["ok"] * 3
    bench.cancel()
    bench.submit()
    bench.collect()
    assert bench.ends() == ["ok"] * 4


@pytest.mark.parametrize(("nodes", "on_each"), [(1, 2), (2, 1)])
def test_a_record_says_over_how_many_nodes_its_trial_s_devices_were(nodes, on_each, tmp_path):
    site = f"nodes = {nodes}\ngpus_per_node = {on_each}"
    bench = cluster.bench(tmp_path / "clone", FakeScheduler(), site=site, repeats=1)
    path = bench.root / "plans" / "mine.toml"
    path.write_text(path.read_text() + "gpus = 2\n")
    bench.submit()
    bench.collect()
    assert [record.nodes for record in bench.records()] == [nodes] * 2


def test_each_node_of_the_partition_measures_each_of_its_cards_as_often_as_the_plan_says(tmp_path):
    scheduler = FakeScheduler()
    bench = cluster.bench(tmp_path / "clone", scheduler, site="gpus_per_node = 3", repeats=2)
    bench.submit(each_node=True)
    opened = kept.all_open(bench.root)
    assert [each.node for each in opened] == ["n1", "n2"]
    numbers = [sorted(trial.repeat for trial in each.whole.trials) for each in opened]
    assert numbers == [sorted([1, 2, 3, 4, 5, 6] * 2)] * 2
    script = next(kept.folder(bench.root, opened[0].id).glob("batch-1.sh")).read_text()
    assert "#SBATCH --nodelist=n1\n" in script and "cards=(0 0 1 1 2 2 0 0 1 1 2 2)" in script


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
        "and the machine told here is the one that sent it"
    )
    scheduler.waits = False
    bench.submit()
    bench.collect()
    assert bench.ends() == ["cancelled", "cancelled", "ok", "ok"]
    assert {record.attempt for record in bench.records() if record.measurement} == {2}


def test_an_answer_of_a_scheduler_that_was_cut_short_is_asked_for_again(tmp_path):
    scheduler = FakeScheduler()
    follow.ask(tmp_path, scheduler, 30.0)
    (tmp_path / "results" / ".state" / "jobs" / "asked.json").write_text('{"asked_at": ')
    follow.ask(tmp_path, scheduler, 30.0)
    assert scheduler.asked == 2
