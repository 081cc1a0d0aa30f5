"""ResNets of Bhutani 2019 and programs on the stacks of their own year, each trial a process of a stack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.record import Measurement, TrialSpec
from tests.helpers.programs import fields, ran, repository
from tests.helpers.workload_runner import (
    DATA,
    PYTHON_ERA,
    WORKLOADS,
    Ended,
    need_stack,
    run,
    tiny_resnet,
)

pytestmark = pytest.mark.torch_era
VERSIONS = {"era": ("1.0.0", "1.0.41"), "era_2019_turing": ("1.2.0", "1.0.57")}
"""Versions of torch and fastai by the variable of a stack's interpreter."""


def era(folder: Path, asked: TrialSpec, data: str = "", stack: str = "era") -> Ended:
    script = WORKLOADS / "frameworks" / "era2019" / f"{asked.asked.workload}_era2019.py"
    return run(folder, asked, script=script, python=need_stack(stack), data=data)


def resnet(**told: Any) -> TrialSpec:
    given = {"data_mode": "host", "options": {"workers": 0, **told.pop("options", {})}, **told}
    return tiny_resnet(**given)


def of_its_time(found: Measurement, torch: str) -> None:
    assert found.versions["python"].startswith("3.7.")
    assert found.versions["torch"] == found.packages["torch"] == torch
    assert {probe.reads_as for probe in found.precision.probes} == {"fp32-ieee"}
    assert found.precision.method == "none"
    assert all(count > 0 for count in found.precision.output_dtypes.values())
    assert list(found.precision.output_dtypes) == list(found.precision.parameter_dtypes) == ["float32"]


@pytest.mark.parametrize("stack", VERSIONS)
def test_the_resnet_has_the_study_s_head_and_split_and_fastai_s_own_smoothed_loss(stack, tmp_path):
    found = era(tmp_path, resnet(limit={"steps": 10, "valid_batches": 2}), stack=stack).measured
    torch, fastai = VERSIONS[stack]
    of_its_time(found, torch)
    assert found.versions["fastai"] == fastai
    assert (found.data.train_items, found.data.valid_items) == (48000, 12000)
    assert (found.protocol.steps_per_epoch, found.protocol.valid_batches) == (6000, 1500)
    head = 2 * 1024 + (1024 * 512 + 512) + 2 * 512 + (512 * 100 + 100)
    assert found.structure["parameters"] == 11176512 + head
    assert found.structure["trainable_parameters"] == head + 9600
    (epoch,) = found.epochs
    assert (epoch.steps, epoch.valid_batches, epoch.complete) == (10, 2, False)
    assert 0 <= epoch.quality <= 1 and epoch.valid_loss > 0
    average = 0.0
    for _, loss in found.losses:
        average = 0.98 * average + 0.02 * loss
    assert epoch.smoothed_train_loss == pytest.approx(average / (1 - 0.98**10), rel=1e-4)
    assert len(found.gradient_norms) == 10 and all(norm > 0 for _, norm in found.gradient_norms)
    assert found.data.distinct_batches == 10


def test_a_program_runs_on_it_by_the_same_workload_as_everywhere(tmp_path):
    there = repository(tmp_path / "repository")
    found = ran(tmp_path, fields(there), there / "code", by={"python": PYTHON_ERA}).measured
    assert (found.workload, found.window.steps, found.test_quality) == ("program", 12, 0.75)
    assert (found.versions["torch"], found.device.kind) == ("1.0.0", "cpu")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (resnet(precision="fp16-master"), "'fp16-master' is asked; torch 1.0.0 has no fp16 on a CPU"),
        (resnet(precision="amp-bf16"), "torch 1.0.0 has fp32-ieee and fp16-master"),
        (resnet(data_mode="device"), "data_mode 'device' is not known; there are: host"),
        (resnet(protocol="fair/1"), "protocol 'fair/1' is not known; there are: published/1"),
        (resnet(profile="tuned"), "profile 'tuned' is not known; there are: default"),
        (resnet(gpus=2), "2 GPUs are asked"),
    ],
)
def test_what_this_stack_does_not_have_is_refused_by_name(asked, words, tmp_path):
    ended = era(tmp_path, asked)
    assert (ended.exit_code, ended.failed.reason) == (1, "unsupported")
    assert words in ended.failed.message


def test_the_same_seed_gives_the_same_losses_and_another_gives_others(tmp_path):
    first, again, other = (era(tmp_path, resnet(seed=seed)).measured.losses for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.data
def test_the_real_images_are_trained_on(tmp_path):
    limit = {"steps": 10, "valid_batches": 2}
    images = era(tmp_path, resnet(data="real", limit=limit), data=DATA).measured
    assert (images.data.source, images.window.steps, images.data.weights) == ("real", 10, "random")
