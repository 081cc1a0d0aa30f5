"""SLURM's commands: what they print, and what they refuse. A real SLURM stands in tests/commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.engine.slurm.scheduler import JobId, Slurm
from harness.engine.slurm.scheduler import SchedulerState as State
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
        for state in slurm.states({None})
    ]
    assert told == [
        (12, 3, "running", None, 1, "n[1-2]", "RUNNING"),
        (12, 4, "ended", "out-of-memory", 0, "n1", "OUT_OF_MEMORY (OutOfMemory)"),
        (13, 0, "waiting", None, 0, "", "PENDING ((Nodes required for job are DOWN))"),
        (14, 0, "running", None, 2, "n2", "COMPLETING"),
    ]


def test_the_user_s_own_variables_for_squeue_change_no_answer(tmp_path):
    slurm = program(tmp_path, "squeue", '[ -z "$SQUEUE_STATES" ]')
    assert slurm.states({None}) == ()


CUT = "slurmstepd-n1: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-22T12:16:08{why} ***\n"


@pytest.mark.parametrize(
    ("log", "told"),
    [
        ("", None),
        ("error: nothing of the kind\n", None),
        (CUT.format(why=""), State("cancelled", "SLURM was asked to cancel the job")),
        (CUT.format(why=" DUE TO TIME LIMIT"), State("timeout", "SLURM ended the job: time limit")),
        (
            CUT.format(why=" DUE TO PREEMPTION"),
            State("preempted", "SLURM ended the job: preemption"),
        ),
        (
            CUT.format(why=" DUE TO JOB REQUEUE"),
            State("preempted", "SLURM ended the job: job requeue"),
        ),
        (
            CUT.format(why=" DUE TO NODE FAILURE"),
            State("node-failed", "SLURM ended the job: node failure"),
        ),
        (
            "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=7.0. Some of your processes may have "
            "been killed by the cgroup out-of-memory handler.\n" + CUT.format(why=""),
            State("out-of-memory", "SLURM's limit of memory ended it"),
        ),
        (
            "slurmstepd: error: Detected 1 oom_kill event in StepId=7.batch. Some of the step tasks have "
            "been OOM Killed.\n",
            State("out-of-memory", "SLURM's limit of memory ended it"),
        ),
    ],
)
def test_what_slurm_writes_into_a_job_s_output_says_why_it_ended(log, told):
    assert Slurm({}).told(f"gpudyno: word_lm-r1-0123456789ab.a1 begins\n{log}srun: done\n") == told


def test_accounting_fills_in_what_squeue_forgot(tmp_path):
    slurm = program(
        tmp_path, "sacct", "printf '12_3|CANCELLED by 1000\\n12_4|COMPLETED\\n15|OUT_OF_MEMORY\\n'"
    )
    assert {place: told.cause for place, told in slurm.accounted([JobId(12), JobId(15)]).items()} == {
        (JobId(12), 3): "cancelled",
        (JobId(15), 0): "out-of-memory",
    }


def test_where_no_accounting_runs_nothing_is_known_of_it(tmp_path):
    slurm = program(tmp_path, "sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1")
    assert slurm.accounted([JobId(12)]) == {}


def test_what_sbatch_refuses_is_said_with_its_own_words(tmp_path):
    slurm = program(tmp_path, "sbatch", "echo 'sbatch: error: invalid partition specified: gpu' >&2; exit 1")
    with pytest.raises(UserError, match=r"refused 'batch-1\.sh': sbatch: error: invalid partition"):
        slurm.send(tmp_path / "batch-1.sh", ())


@pytest.mark.parametrize(
    ("told", "job"),
    [
        ("123", JobId(123)),
        ("12;gpu", JobId(12, "gpu")),
        ("Submitted batch job 27", JobId(27)),
        ("Submitted batch job 27 on cluster gpu", JobId(27, "gpu")),
        ("123\\nRemaining: 41", JobId(123)),
        ("sbatch: 12 jobs left\\n  123;a.b-c_d  \\nthank you", JobId(123, "a.b-c_d")),
    ],
)
def test_the_number_and_the_cluster_of_a_job_are_read_of_their_own_line(tmp_path, told, job):
    assert program(tmp_path, "sbatch", f"printf '{told}\\n'").send(tmp_path / "batch-1.sh", ()) == job


SEES = '[ -z "$SLURM_CLUSTERS$SBATCH_CLUSTERS" ] || exit 1; echo "$@" >>{log}; {body}'


@pytest.mark.parametrize(
    ("lines", "environ", "clusters"),
    [
        ((), {}, ()),
        (("--clusters=gpu",), {"SLURM_CLUSTERS": "cpu"}, ("gpu",)),
        (("-M gpu,cpu",), {}, ("gpu", "cpu")),
        (("--constraint=a100",), {"SLURM_CLUSTERS": "cpu"}, ("cpu",)),
        ((), {"SLURM_CLUSTERS": "cpu", "SBATCH_CLUSTERS": "gpu"}, ("gpu",)),
    ],
)
def test_a_job_is_sent_to_followed_and_ended_on_its_own_cluster(tmp_path, lines, environ, clusters):
    log = tmp_path / "log"
    bodies = {
        "sbatch": "echo 12",
        "squeue": f"printf 'CLUSTER: gpu\\n%s' '{LINES.splitlines()[0]}'",
        "sacct": "echo '12|TIMEOUT'",
        "scancel": "true",
    }
    for name, body in bodies.items():
        slurm = program(tmp_path, name, SEES.format(log=log, body=body))
    slurm = Slurm({**slurm.environ, **environ})
    asked = slurm.clusters(lines)
    assert asked == clusters
    slurm.send(tmp_path / "batch-1.sh", asked)
    own = clusters[0] if clusters else None
    assert [state.id for state in slurm.states({own})] == [JobId(12, own)]
    assert slurm.accounted([JobId(12, own)])[JobId(12, own), 0].cause == "timeout"
    slurm.cancel([JobId(12, own)])
    words = [f"--clusters={','.join(clusters)}", *[f"--clusters={own}"] * 3] if clusters else [""] * 4
    for line, word in zip(log.read_text().splitlines(), words, strict=True):
        assert word in line.split() if word else "--clusters" not in line


def test_equal_numbers_on_two_clusters_are_two_jobs(tmp_path):
    slurm = program(
        tmp_path, "sacct", 'case "$*" in *--clusters=a*) echo "7|TIMEOUT";; *) echo "7|CANCELLED";; esac'
    )
    told = slurm.accounted([JobId(7, "a"), JobId(7, "b")])
    assert {job: state.cause for (job, _), state in told.items()} == {
        JobId(7, "a"): "timeout",
        JobId(7, "b"): "cancelled",
    }


def test_a_controller_that_does_not_answer_is_said_in_one_sentence(tmp_path):
    slurm = program(tmp_path, "squeue", "echo 'Unable to contact slurm controller' >&2; exit 1")
    with pytest.raises(NoEngine, match="does not answer squeue: Unable to contact slurm controller"):
        slurm.states({None})


def test_a_machine_without_slurm_is_told_what_to_do(tmp_path):
    with pytest.raises(NoEngine, match="'squeue' is not on PATH: this machine sends no jobs"):
        Slurm({"PATH": str(tmp_path)}).states({None})


def test_a_node_that_is_down_or_drained_or_of_no_state_takes_no_part_in_a_fleet(tmp_path):
    slurm = program(
        tmp_path,
        "sinfo",
        "printf 'CLUSTER: gpu\\nn1 idle\\nn2 down*\\nn3 mixed\\nn3 mixed\\nn4 drained\\nn5\\n'",
    )
    assert slurm.nodes("gpu", ()) == ("n1", "n3")


@pytest.mark.parametrize(
    ("name", "body", "ask", "says"),
    [
        (
            "squeue",
            "echo 'welcome to the cluster'",
            lambda slurm: slurm.states({None}),
            "which tells of no job",
        ),
        ("squeue", "printf '\\377\\376'", lambda slurm: slurm.states({None}), "which tells of no job"),
        ("sbatch", "echo", lambda slurm: slurm.send(Path("batch-1.sh"), ()), "which names no one job"),
        ("sbatch", "echo '²;x'", lambda slurm: slurm.send(Path("batch-1.sh"), ()), "which names no one job"),
        ("sbatch", "echo 1; echo 2", lambda slurm: slurm.send(Path("batch-1.sh"), ()), "names no one job"),
    ],
)
def test_an_answer_that_is_none_of_slurm_s_is_said_in_one_sentence(tmp_path, name, body, ask, says):
    with pytest.raises(NoEngine, match=says):
        ask(program(tmp_path, name, body))
