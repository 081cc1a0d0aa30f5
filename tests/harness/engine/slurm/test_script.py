"""Batch scripts: each compared whole, and each one that bash reads without a complaint."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.engine.container import DeviceRequest, RunSpec, TrialFolders
from harness.engine.slurm.scheduler import ClusterJob
from harness.engine.slurm.script import CACHE, ROOT, WORK, Batch, Spread, batch_script, spread_devices
from harness.engine.slurm.site import Site
from harness.errors import UserError
from harness.record import Limit
from tests.helpers.checks import golden, golden_difference
from tests.helpers.engine_bench import trial

GPU_SITE = Site(
    partition="gpu",
    account="a-project",
    device="cuda",
    gpus_per_node=4,
    gpu_type="a100",
    nodes=4,
    cpus_per_gpu=8,
    memory_per_node="200G",
    modules=("gcc/13.2",),
)


def batch(gpus: int, device: str = "cuda", root: str = "/home/me/gpudyno", **more: object) -> Batch:
    work = Path(WORK)
    folders = TrialFolders(
        input=work / "in",
        output=work / "out",
        data=(("cifar-10", Path("/scratch/my data/cifar-10")),),
        cache=Path(CACHE),
        workloads=Path(ROOT) / "workloads",
    )
    variant = {"model": "resnet50", "precision": "amp-bf16", "batch_size": 64, "image_size": 224}
    asked = {"workload": "convnet", "protocol": "synthetic/1", "data": "synthetic", "environment": "cuda"}
    variant |= {"gpus": gpus, "limit": Limit(steps=100)}
    spec = RunSpec(
        trial=trial(variant, device=device, timeout_seconds=600, **asked),
        session="20261122-0a1b2c",
        attempt=1,
        folders=folders,
        device=DeviceRequest(device),
        interpreter=Path("/home/me/gpudyno/.venvs/cuda/bin/python"),
        passed={"NCCL_ALGO": "Ring"},
    )
    jobs = Path(root) / "results/.state/jobs/20261122-0a1b2c"
    whole = Batch(
        job=ClusterJob(
            name="gpudyno-20261122-0a1b2c-1",
            trials=tuple(f"convnet-r{repeat}-0123456789ab" for repeat in (1, 2, 3)),
            attempts=(1, 1, 2),
            sent_at=datetime(2026, 11, 22, tzinfo=UTC),
        ),
        title=f"convnet resnet50 amp-bf16, batch 64, {gpus} devices: 3 trials of plan 'mine'",
        root=Path(root),
        jobs=jobs,
        cache=jobs / "cache/cuda",
        python=f"{root}/.venv/bin/python",
        spec=spec,
        warm=True,
    )
    return replace(whole, **more)


def site(**changes: object) -> Site:
    return GPU_SITE.model_copy(update=changes)


SCRIPTS = {
    "cpu": (batch(1, "cpu", '/home/me/it\'s "my" clone', warm=False), Site(array_at_once=2)),
    "venv_2_gpus": (batch(2), GPU_SITE),
    "venv_16_gpus": (batch(16, dependency="afterok:17"), site(time_limit="2h")),
    "venv_rocm": (batch(2, "rocm"), site(device="rocm", gpu_type="mi300x")),
}

WHOLE = "venv_2_gpus"
"""The script that is written down whole; the others as what differs from it."""


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_batch_script_is_what_it_was_and_bash_reads_it(name):
    text = batch_script(*SCRIPTS[name])
    if name == WHOLE:
        golden(f"slurm_{name}.sh", text)
    else:
        golden_difference(f"slurm_{name}", text, batch_script(*SCRIPTS[WHOLE]))
    read = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    assert (read.returncode, read.stderr) == (0, "")


def test_a_path_with_a_line_break_is_refused_in_one_sentence():
    with pytest.raises(UserError, match=r"holds a line break or another control character"):
        batch_script(batch(1, "cpu", "/home/me/a\nb"), Site())


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [(1, Spread(1, 1)), (4, Spread(1, 4)), (8, Spread(2, 4)), (16, Spread(4, 4)), (6, None), (32, None)],
)
def test_a_trial_takes_the_fewest_nodes_that_it_fills_evenly(gpus, expected):
    assert spread_devices(gpus, GPU_SITE) == expected


def test_processes_without_cards_stay_on_one_node_unless_the_site_says_otherwise():
    assert spread_devices(4, Site()) == Spread(1, 4)
    assert spread_devices(4, Site(gpus_per_node=2, nodes=2)) == Spread(2, 2)
