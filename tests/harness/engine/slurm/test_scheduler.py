"""SLURM's commands: what they print, and what they refuse. A real SLURM stands in tests/commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.engine.interface import Exit
from harness.engine.slurm.scheduler import Slurm
from harness.errors import NoEngine, UserError


def program(folder: Path, name: str, body: str) -> Slurm:
    """A stand-in for one of SLURM's commands, and a SLURM that has no other."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return Slurm({"PATH": f"{folder}:/bin:/usr/bin", "SQUEUE_STATES": "PENDING"})


LINES = """\
12              3               RUNNING             1           gpudyno-20261122-0a1b2c-1                                       n[1-2]                                  None
12              4               OUT_OF_MEMORY       0           gpudyno-20261122-0a1b2c-1                                       n1                                      OutOfMemory
13              N/A             PENDING             0           gpudyno-20261122-0a1b2c-2                                                                               (Nodes required for job are DOWN)
14              N/A             COMPLETING          2           other                                                           n2                                      None
"""  # noqa: E501


def test_one_answer_of_squeue_tells_of_all_jobs(tmp_path):
    slurm = program(tmp_path, "squeue", f"cat <<'END'\n{LINES}END")
    told = [
        (state.job, state.task, state.standing, state.cause, state.restarts, state.nodes, state.word)
        for state in slurm.states()
    ]
    assert told == [
        (12, 3, "running", None, 1, "n[1-2]", "RUNNING"),
        (12, 4, "ended", "out-of-memory", 0, "n1", "OUT_OF_MEMORY (OutOfMemory)"),
        (13, 0, "waiting", None, 0, "", "PENDING ((Nodes required for job are DOWN))"),
        (14, 0, "running", None, 2, "n2", "COMPLETING"),
    ]


def test_the_user_s_own_variables_for_squeue_change_no_answer(tmp_path):
    slurm = program(tmp_path, "squeue", '[ -z "$SQUEUE_STATES" ]')
    assert slurm.states() == ()


CUT = "slurmstepd-n1: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-22T12:16:08{why} ***\n"


@pytest.mark.parametrize(
    ("log", "told"),
    [
        ("", None),
        ("error: nothing of the kind\n", None),
        (CUT.format(why=""), Exit(cause="cancelled", said="SLURM was asked to cancel the job")),
        (CUT.format(why=" DUE TO TIME LIMIT"), Exit(cause="timeout", said="SLURM ended the job: time limit")),
        (
            CUT.format(why=" DUE TO PREEMPTION"),
            Exit(cause="preempted", said="SLURM ended the job: preemption"),
        ),
        (
            CUT.format(why=" DUE TO JOB REQUEUE"),
            Exit(cause="preempted", said="SLURM ended the job: job requeue"),
        ),
        (
            CUT.format(why=" DUE TO NODE FAILURE"),
            Exit(cause="node-failed", said="SLURM ended the job: node failure"),
        ),
        (
            "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=7.0. Some of your processes may have "
            "been killed by the cgroup out-of-memory handler.\n" + CUT.format(why=""),
            Exit(cause="out-of-memory", said="SLURM's limit of memory ended it"),
        ),
        (
            "slurmstepd: error: Detected 1 oom_kill event in StepId=7.batch. Some of the step tasks have "
            "been OOM Killed.\n",
            Exit(cause="out-of-memory", said="SLURM's limit of memory ended it"),
        ),
    ],
)
def test_what_slurm_writes_into_a_job_s_output_says_why_it_ended(log, told):
    assert Slurm({}).reported_exit(f"gpudyno: word_lm-r1-0123456789ab.a1 begins\n{log}srun: done\n") == told


def test_what_sbatch_refuses_is_said_with_its_own_words(tmp_path):
    slurm = program(tmp_path, "sbatch", "echo 'sbatch: error: invalid partition specified: gpu' >&2; exit 1")
    with pytest.raises(UserError, match=r"refused 'batch-1\.sh': sbatch: error: invalid partition"):
        slurm.send(tmp_path / "batch-1.sh")


@pytest.mark.parametrize(
    ("told", "job"),
    [
        ("123", 123),
        ("12;gpu", 12),
        ("Submitted batch job 27 on cluster gpu", 27),
        ("123\\nRemaining: 41", 123),
        ("sbatch: 12 jobs left\\n  123;a.b-c_d  \\nthank you", 123),
    ],
)
def test_the_number_of_a_job_is_read_of_its_own_line(tmp_path, told, job):
    assert program(tmp_path, "sbatch", f"printf '{told}\\n'").send(tmp_path / "batch-1.sh") == job


def test_a_controller_that_does_not_answer_is_said_in_one_sentence(tmp_path):
    slurm = program(tmp_path, "squeue", "echo 'Unable to contact slurm controller' >&2; exit 1")
    with pytest.raises(NoEngine, match="does not answer squeue: Unable to contact slurm controller"):
        slurm.states()


def test_a_machine_without_slurm_is_told_what_to_do(tmp_path):
    with pytest.raises(NoEngine, match="'squeue' is not on PATH: this machine sends no jobs"):
        Slurm({"PATH": str(tmp_path)}).states()


@pytest.mark.parametrize(
    ("name", "body", "ask", "says"),
    [
        (
            "squeue",
            "echo 'welcome to the cluster'",
            lambda slurm: slurm.states(),
            "which tells of no job",
        ),
        ("squeue", "printf '\\377\\376'", lambda slurm: slurm.states(), "which tells of no job"),
        ("sbatch", "echo", lambda slurm: slurm.send(Path("batch-1.sh")), "which names no one job"),
        ("sbatch", "echo '²;x'", lambda slurm: slurm.send(Path("batch-1.sh")), "which names no one job"),
        ("sbatch", "echo 1; echo 2", lambda slurm: slurm.send(Path("batch-1.sh")), "names no one job"),
    ],
)
def test_an_answer_that_is_none_of_slurm_s_is_said_in_one_sentence(tmp_path, name, body, ask, says):
    with pytest.raises(NoEngine, match=says):
        ask(program(tmp_path, name, body))
