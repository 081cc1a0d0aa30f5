"""A plan on a real SLURM: two nodes on one machine."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from harness.bundle.validate import folder_problems
from harness.engine.slurm.scheduler import Slurm
from tests.helpers import ROOT, cluster, slurm_cluster, wait_for
from tests.helpers.checks import require
from tests.helpers.workload_runner import PYTHON, need_torch

pytestmark = pytest.mark.slurm

TWO_RANKS = """
name = "mine"
title = "two processes on two nodes"
repeats = 1
timeout_seconds = 200

[[measure]]
workload = "convnet"
protocol = "synthetic/1"
model = "resnet18"
precision = "fp32-ieee"
batch_size = 2
image_size = 32
data_mode = "cached"
gpus = 2
options = { classes = 10 }
limit = { steps = 4 }
"""
LONG = "step_seconds = 3.0"


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """One cluster for all tests here, and a job that runs into its time limit meanwhile."""
    why = slurm_cluster.missing()
    require("slurm", why is None, why or "")
    with (
        pytest.MonkeyPatch.context() as patch,
        slurm_cluster.running(tmp_path_factory.mktemp("slurm") / "cluster") as started,
    ):
        patch.setenv("GPUDYNO_STATE", str(tmp_path_factory.mktemp("state")))
        for name, value in started.environ.items():
            patch.setenv(name, value)
        yield started


@pytest.fixture(scope="module")
def timing_out(real, tmp_path_factory):
    """A trial that its job has too little time for."""
    site = 'time_limit = "1m"\nlines = ["--exclude=n2"]'
    folder = tmp_path_factory.mktemp("short")
    bench = cluster.bench(folder, Slurm(), site=site, options="step_seconds = 30.0", repeats=1)
    text = (bench.root / "plans" / "mine.toml").read_text()
    (bench.root / "plans" / "mine.toml").write_text(text.replace('["fp32-ieee", "amp-bf16"]', '"fp32-ieee"'))
    bench.submit()
    return bench


def begin(folder: Path, **plan: object) -> cluster.Bench:
    return cluster.bench(folder, Slurm(), **plan)


def running(bench: cluster.Bench, count: int = 1) -> None:
    wait_for(lambda: len(bench.begun()) >= count, 30)


def test_each_trial_of_a_plan_is_a_job_and_leaves_a_record_like_any_other(real, timing_out, tmp_path, capsys):
    bench = begin(tmp_path / 'it\'s a "clone"', options="step_seconds = 0.05")
    bench.submit()
    bench.status()
    bench.collect(wait=True)
    assert bench.ends() == ["ok"] * 4
    assert {record.environment.engine for record in bench.records()} == {"slurm"}
    assert all(record.telemetry is not None and record.telemetry.samples for record in bench.records())
    problems = list(folder_problems(bench.root, bench.root))
    assert len(problems) == 4 and all("it ran on 'a stand-in'" in problem for problem in problems)
    said = capsys.readouterr().out
    assert "4 trials sent" in said and "4 trials: 0 measured" in said and "the plan is complete" in said


def test_what_is_cancelled_while_it_runs_says_so_and_only_what_is_missing_is_sent_again(real, tmp_path):
    bench = begin(tmp_path, options=LONG)
    bench.submit()
    running(bench)
    bench.submit()
    assert len(bench.jobs()) == 2
    bench.cancel()
    bench.collect(wait=True)
    assert bench.ends() == ["cancelled"] * 4
    (bench.root / "workloads" / "fake.py").write_text(
        (bench.root / "workloads" / "fake.py").read_text().replace("time.sleep(", "time.sleep(0 * ")
    )
    bench.submit()
    bench.collect(wait=True)
    assert bench.ends().count("ok") == 4
    attempts = {record.attempt for record in bench.records() if record.failure}
    assert attempts == {1}


def test_a_step_that_is_killed_ends_its_trial_as_killed(real, tmp_path):
    bench = begin(tmp_path, options=LONG, repeats=1)
    bench.submit()
    running(bench, 2)
    for job in bench.jobs():
        wait_for(lambda job=job: f"{job}.0" in real.ask("squeue", "--steps", "--noheader"), 60)
        real.ask("scancel", "--signal=KILL", f"{job}.0")
    bench.collect(wait=True)
    assert bench.ends() == ["killed"] * 2


def test_a_job_that_is_queued_again_leaves_a_record_of_each_of_its_runs(real, tmp_path):
    bench = begin(tmp_path, options="step_seconds = 0.2", repeats=1)
    bench.submit()
    running(bench, 2)
    real.ask("scontrol", "requeue", ",".join(map(str, bench.jobs())))
    bench.collect(wait=True)
    assert bench.ends() == ["ok", "ok", "preempted", "preempted"]
    said = {record.failure.message for record in bench.records() if record.failure}
    assert said <= {"SLURM ended the job: job requeue", "its job was queued again"}


def test_a_job_that_makes_room_for_an_urgent_one_says_so_and_runs_again(real, tmp_path):
    bench = begin(tmp_path, site='lines = ["--nodelist=n2"]', options="step_seconds = 0.2", repeats=1)
    bench.submit()
    running(bench)
    words = ("--partition=urgent", "--exclusive", "--nodelist=n2", "--output=/dev/null", "--wrap", "sleep 1")
    real.ask("sbatch", *words)
    bench.collect(wait=True)
    assert bench.ends().count("ok") == 2
    assert "preempted" in bench.ends()


def test_a_node_that_dies_loses_no_record_and_the_next_submit_completes_the_plan(real, tmp_path):
    bench = begin(
        tmp_path, site='lines = ["--no-requeue", "--nodelist=n2"]', options="step_seconds = 0.5", repeats=1
    )
    bench.submit()
    running(bench, 2)
    real.kill_node("n2")
    bench.collect(wait=True)
    assert bench.ends() == ["node-failed"] * 2
    real.start_node("n2")
    wait_for(lambda: real.states()["n2"] == "idle", 30)
    bench.submit()
    bench.collect(wait=True)
    assert bench.ends() == ["node-failed", "node-failed", "ok", "ok"]


def test_a_job_past_its_time_limit_ends_as_a_time_out(real, timing_out):
    timing_out.collect(wait=True)
    assert timing_out.ends() == ["timeout"]
    assert timing_out.records()[0].failure.message == "SLURM ended the job: time limit"


def of_workloads(folder: Path, plan: str, site: str = "") -> cluster.Bench:
    """A clone with the workloads and the examples as they are."""
    bench = cluster.bench(folder, Slurm(), site=site)
    shutil.rmtree(bench.root / "workloads")
    for name in ("workloads", "examples"):
        shutil.copytree(ROOT / name, bench.root / name)
    (bench.root / "plans" / "mine.toml").write_text(plan)
    return bench


def test_two_ranks_share_a_batch_and_one_measurement_on_two_nodes(real, tmp_path):
    need_torch()
    bench = of_workloads(tmp_path, TWO_RANKS, "nodes = 2\ngpus_per_node = 1")
    bench.submit(python=PYTHON)
    bench.collect(wait=True)
    (record,) = bench.records()
    assert record.measurement is not None, record.failure
    assert (record.measurement.device.count, record.nodes) == (2, 2)
    assert record.measurement.samples_per_step == 4
    assert any(warning.data.get("nodes") == 2 for warning in record.warnings)
    (script,) = bench.root.glob("results/.state/jobs/*/batch-1.sh")
    assert "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n" in script.read_text()


def test_jobs_that_share_nodes_go_one_by_one_unless_the_site_gives_each_its_own(real, tmp_path):
    bench = begin(tmp_path, at_once=False, options="step_seconds = 0.01")
    bench.submit()
    bench.collect(wait=True)
    assert bench.ends() == ["ok"] * 4
    for before, after in pairwise(bench.records()):
        assert before.ended_at <= after.started_at
