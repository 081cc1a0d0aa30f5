"""A site that is tried by one job: what comes back, and what does not, each with what to do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commands.site import doctor as site_doctor
from harness.engine.slurm.scheduler import JobId, Slurm, TaskState
from harness.errors import MachineError, NoEngine
from harness.record import Load
from harness.run.jobs import node
from tests.helpers import clone, cluster
from tests.helpers.fake_scheduler import FakeScheduler
from tests.helpers.fake_workload import measurement


@pytest.fixture(autouse=True)
def _in_a_second(tmp_path, monkeypatch):
    """Another state, a machine without a card, and little patience."""
    monkeypatch.setenv("GPUDYNO_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(site_doctor, "MOST_SECONDS", 1.0)
    monkeypatch.setattr(site_doctor, "LAG_SECONDS", 0.1)
    monkeypatch.setattr(site_doctor, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(node, "look", lambda label: (clone.MACHINE, {}))
    monkeypatch.setattr(node, "load", Load)


class Replayed(FakeScheduler):
    """One job, which ends as real ones did."""

    def __init__(self, ending: str = "") -> None:
        super().__init__()
        self.ending = ending
        self.cancelled: list[int] = []

    def cancel(self, jobs: Any) -> None:
        """Keeps which."""
        self.cancelled += jobs

    def _run(
        self, job: int, task: int, name: str, jobs: Path, trial: str, attempt: int
    ) -> Iterator[TaskState]:
        told = {"job": job, "task": task, "name": name}
        if self.ending == "waits":
            yield TaskState(**told, standing="waiting", word="PENDING (Resources)")
            return
        if self.ending != "leaves nothing":
            work = self._begin(jobs, job, trial, attempt)
            code = 1 if self.ending == "no interpreter" else node.begin(jobs, trial, attempt)
            if self.ending == "no interpreter":
                words = f"gpudyno: {trial}.a1 begins\npython: No such file or directory\n"
                (jobs / f"log-{job}_0.txt").write_text(words)
            if code == 0:
                asked = json.loads((work / "in" / "trial.json").read_text())["asked"]
                (work / "out" / "measurement.json").write_text(json.dumps(measurement(asked, 20)))
            (work / "ended").write_text(f"code {code} {2_000_000_000}.000000000\n")
        yield TaskState(**told, standing="ended", word="COMPLETED")


def told(
    folder: Path, scheduler: Slurm, capsys: pytest.CaptureFixture[str], *, site: str = "", **more: str
) -> list[str]:
    """What the doctor prints of a clone whose profile has `site`; it fails where it names a problem."""
    bench = cluster.bench(folder / "clone", scheduler, site=site)
    raised = False
    try:
        bench.try_site(**more)
    except MachineError:
        raised = True
    said = capsys.readouterr().out.splitlines()
    assert raised == bool(lines(said, "PROBLEM"))
    return said


def lines(said: list[str], word: str) -> list[str]:
    return [line.removeprefix(word).strip() for line in said if line.startswith(word)]


def test_a_site_where_all_is_well_says_so_of_each_of_the_four(tmp_path, capsys):
    (tmp_path / "sets").mkdir()
    said = told(tmp_path, Replayed(), capsys, data=str(tmp_path / "sets"))
    assert [line.partition(":")[0] for line in lines(said, "ok")] == [
        "write-back", "mounts", "device", "offline start"
    ]  # fmt: skip
    assert f"mounts: the node has '{tmp_path / 'sets'}'" in lines(said, "ok")
    assert lines(said, "PROBLEM") == lines(said, "warning") == []


def test_a_folder_that_the_node_lacks_is_named_and_the_trial_does_not_begin(tmp_path, capsys):
    (tmp_path / "sif").touch()
    site = f"runtime = 'apptainer'\nimage = '{tmp_path / 'sif'}'\n"
    site += "[[mounts]]\nsource = '/no/scratch'\ntarget = '/scratch'"
    said = told(tmp_path, Replayed(), capsys, site=site)
    assert lines(said, "PROBLEM") == ["mounts: the node lacks '/no/scratch'"]
    assert lines(said, "warning") == ["offline start: not reached"]
    assert any("correct `mounts` of the site's profile" in line for line in said)


def test_a_job_without_its_device_says_what_it_sees(tmp_path, capsys):
    said = told(tmp_path, Replayed(), capsys, site="device = 'cuda'\ncapability = '8.0'")
    (problem,) = lines(said, "PROBLEM")
    assert problem == "device: 1 'cuda' devices are asked on this node; the job sees no card"
    assert any("`gpu_option` and `gpu_type`" in line for line in said)


def test_a_job_that_ended_and_left_nothing_was_not_written_back(tmp_path, capsys):
    said = told(tmp_path, Replayed("leaves nothing"), capsys)
    assert lines(said, "PROBLEM") == ["write-back: job 1 ended and left nothing here"]
    assert len(lines(said, "warning")) == 3
    assert any("a file system that the nodes see" in line for line in said)


def test_a_node_without_the_interpreter_is_no_offline_start(tmp_path, capsys):
    said = told(tmp_path, Replayed("no interpreter"), capsys)
    (problem,) = lines(said, "PROBLEM")
    assert problem == ("offline start: job 1 could not look at its node (python: No such file or directory)")


def test_a_job_that_still_waits_when_the_time_is_over_is_cancelled(tmp_path, capsys):
    scheduler = Replayed("waits")
    said = told(tmp_path, scheduler, capsys)
    (problem,) = lines(said, "PROBLEM")
    assert problem.startswith("write-back: job 1 had not begun after 1 s: PENDING (Resources)")
    assert scheduler.cancelled == [JobId(1)]


class Nowhere(FakeScheduler):
    """No scheduler is on this machine."""

    def version(self) -> str | None:
        """Raises NoEngine."""
        raise NoEngine("'squeue' is not on PATH")


@pytest.mark.parametrize(
    ("options", "seconds", "word"),
    [
        ("", 60.0, ""),
        ("ending = 'silence'", 60.0, "error at start"),
        ("step_seconds = 9.0", 4.0, "not ended"),
    ],
)
def test_where_no_scheduler_answers_the_script_itself_runs_here(
    options, seconds, word, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(site_doctor, "MOST_SECONDS", seconds)
    said = told(tmp_path, Nowhere(), capsys, options=options)
    assert said[0] == "no scheduler answers: the job's script runs as a process here"
    problems = lines(said, "PROBLEM")
    assert [word in problem for problem in problems] == ([True] if word else [])
