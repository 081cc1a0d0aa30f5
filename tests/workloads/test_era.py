"""The workloads of Bhutani 2019 on the stack of its own time, each trial a process of that stack."""

from __future__ import annotations

import subprocess
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
    run,
    tiny_language_model,
    tiny_resnet,
)

pytestmark = pytest.mark.torch_era


@pytest.fixture(autouse=True)
def _stack_is_here(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTHONPATH", str(WORKLOADS))


def era(folder: Path, asked: TrialSpec, data: str = "") -> Ended:
    script = WORKLOADS / "frameworks" / "era2019" / f"{asked.asked.workload}.py"
    return run(folder, asked, script=script, python=PYTHON_ERA, data=data)


def resnet(**told: Any) -> TrialSpec:
    given = {"data_mode": "host", "options": {"workers": 0, **told.pop("options", {})}, **told}
    return tiny_resnet(**given)


def of_its_time(found: Measurement) -> None:
    assert found.versions["python"].startswith("3.7.")
    assert found.versions["torch"] == found.packages["torch"] == "1.0.0"
    assert {probe.reads_as for probe in found.precision.probes} == {"fp32-ieee"}
    assert found.precision.method == "none"
    assert all(count > 0 for count in found.precision.output_dtypes.values())
    assert list(found.precision.output_dtypes) == list(found.precision.parameter_dtypes) == ["float32"]


def test_the_language_model_is_that_of_today_s_stack_by_its_own_torch(tmp_path):
    found = era(tmp_path, tiny_language_model(limit={"steps": 8, "valid_batches": 2})).measured
    of_its_time(found)
    assert (found.workload, found.protocol_name) == ("word_lm", "published/1")
    assert found.structure["parameters"] == 2 * 33278 * 8 + 33278 + 2 * 4 * (8 * 8 + 8 * 8 + 8 + 8)
    assert (found.protocol.epochs, found.protocol.steps_per_epoch) == (30, -(-(2088628 // 2 - 1) // 4))
    assert (found.window.steps, found.protocol.stopped_by) == (8, "steps")
    assert [step for step, _ in found.gradient_norms] == list(range(1, 9))
    assert found.losses[0][1] == pytest.approx(10.41, abs=0.05)
    assert found.epochs[0].quality < 40000


def test_the_same_seed_gives_the_same_losses_and_another_gives_others(tmp_path):
    first, again, other = (
        era(tmp_path, tiny_language_model(seed=seed)).measured.losses for seed in (1, 1, 2)
    )
    assert first == again != other


def test_the_resnet_has_the_study_s_head_and_split_and_fastai_s_own_smoothed_loss(tmp_path):
    found = era(tmp_path, resnet(limit={"steps": 10, "valid_batches": 2})).measured
    of_its_time(found)
    assert found.versions["fastai"] == "1.0.41"
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
    by = {"python": PYTHON_ERA, "script": WORKLOADS / "frameworks" / "era2019" / "program.py"}
    found = ran(tmp_path, fields(there), there / "code", by=by).measured
    assert (found.workload, found.window.steps, found.test_quality) == ("program", 12, 0.75)
    assert (found.versions["torch"], found.device.kind) == ("1.0.0", "cpu")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            tiny_language_model(precision="fp16-master"),
            "'fp16-master' is asked; torch 1.0.0 has no fp16 on a CPU",
        ),
        (resnet(precision="fp16-master"), "'fp16-master' is asked; torch 1.0.0 has no fp16 on a CPU"),
        (tiny_language_model(precision="amp-bf16"), "torch 1.0.0 has fp32-ieee and fp16-master"),
        (tiny_language_model(data_mode="cached"), "data_mode 'cached' is not known; there are: device, host"),
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


UPDATES = """
from frameworks.era2019 import torch_of_2019
import torch
from torch import nn
from frameworks.era2019 import master_weights

def trained(label, **options):
    torch.manual_seed(0)
    model, batch = nn.Linear(4, 1), torch.randn(8, 4)
    given = dict(lr=0.1, clip=0.25, fp16_path="fp16_optimizer", loss_scale="static", static_loss_scale=1.0)
    step, method, log = master_weights.clipped_sgd(label, model, dict(given, **options))
    factors = (1, 2, 1e30, 1)[: options.pop("n", 2)]
    norms = [step(model(batch * factor).pow(2).mean(), 0.1) for factor in factors]
    return [float(w) for p in model.parameters() for w in p.view(-1)], norms, log

plain, norms, _ = trained("fp32-ieee")
for path in ("main", "fp16_optimizer"):
    for scale in (1.0, 64.0):
        weights, others, log = trained("fp16-master", fp16_path=path, static_loss_scale=scale)
        print(path, scale, max(abs(a - b) for a, b in zip(plain, weights)) < 1e-6, log.facts()["last"])
weights, norms, log = trained("fp16-master", loss_scale="dynamic", n=4)
print([norm is None for norm in norms], log.facts())
"""


def test_master_weights_do_what_plain_sgd_does_and_drop_a_step_that_overflows(tmp_path):
    """On weights in fp32, for lack of fp16 on a CPU; `main` clips what still carries the scale."""
    script = tmp_path / "updates.py"
    script.write_text(UPDATES)
    done = subprocess.run([PYTHON_ERA, "-B", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first = 2.0**32
    history = [(0, first), (3, first / 2)]
    log = {"kind": "dynamic", "first": first, "last": first / 2, "skipped_steps": 1, "history": history}
    assert done.stdout.splitlines() == [
        "main 1.0 True 1.0",
        "main 64.0 False 64.0",
        "fp16_optimizer 1.0 True 1.0",
        "fp16_optimizer 64.0 True 64.0",
        f"[False, False, True, False] {log}",
    ]


@pytest.mark.data
def test_the_real_sets_are_learned_from(tmp_path):
    for name in ("text", "images"):
        (tmp_path / name).mkdir()
    limit = {"steps": 10, "valid_batches": 2}
    asked = tiny_language_model(data="real", batch_size=20, sequence_length=35, limit=limit)
    text = era(tmp_path / "text", asked, data=DATA).measured
    assert (text.protocol.steps_per_epoch, text.protocol.valid_batches) == (2984, 622)
    assert text.losses[-1][1] < text.losses[0][1] - 1
    images = era(tmp_path / "images", resnet(data="real", limit=limit), data=DATA).measured
    assert (images.data.source, images.window.steps, images.data.weights) == ("real", 10, "random")
