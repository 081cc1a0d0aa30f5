"""A plan that is deliberately spoiled is caught by name, in every case.

Runs of the workloads are real, and spoiled by a script around them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.record import Measurement
from harness.summary.statistics import summarise
from tests.helpers.workload_runner import WORKLOADS, run, tiny_language_model, tiny_resnet

ASIDE = {"short-window", "generated-data", "stalled"}
"""What every trial of a few steps on generated data says of itself, and what a busy machine does to it."""


def caught(measurement: Measurement) -> tuple[str, set[str]]:
    summary = summarise(measurement)
    return summary.verdict, {cause.name for cause in summary.causes} - ASIDE


def spoiled(folder: Path, how: str, workload: str = "word_lm") -> Path:
    """A script that runs a workload after doing something to it."""
    script = folder / "spoiled.py"
    lines = [
        "import sys",
        f"sys.path.insert(0, {str(WORKLOADS)!r})",
        f"from parts import trial as trial_part; import {workload}",
        "import torch",
    ]
    script.write_text("\n".join([*lines, how, f"trial_part.main({workload}.run)"]) + "\n")
    return script


BF16_EVERYWHERE = """
torch.set_autocast_dtype("cpu", torch.bfloat16)
torch.set_autocast_enabled("cpu", True)
"""

TF32_EVERYWHERE = """
# What a card does with TF32 on: operands of ten bits of mantissa, sums in fp32.
def rounded(tensor):
    if tensor.dtype is not torch.float32:
        return tensor
    bits = tensor.contiguous().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)

def in_tf32(operation):
    return lambda a, b, *more, **named: operation(rounded(a), rounded(b), *more, **named)

torch.matmul = in_tf32(torch.matmul)
torch.nn.functional.conv2d = in_tf32(torch.nn.functional.conv2d)
"""


@pytest.mark.torch
def test_the_same_runs_unspoiled_are_only_short(tmp_path):
    assert caught(run(tmp_path, tiny_language_model(limit={"steps": 20})).measured) == ("unproven", set())


@pytest.mark.torch
@pytest.mark.parametrize(("how", "reads_as"), [(BF16_EVERYWHERE, "bf16"), (TF32_EVERYWHERE, "tf32")])
def test_other_arithmetic_under_an_fp32_ieee_label_is_caught_by_the_probes(how, reads_as, tmp_path):
    found = run(tmp_path, tiny_language_model(), script=spoiled(tmp_path, how)).measured
    assert caught(found) == ("invalid", {"precision"})
    seen = {"operation": "matmul", "precision": "fp32-ieee", "reads_as": reads_as}
    assert seen in [cause.data for cause in summarise(found).causes]


@pytest.mark.torch
def test_a_constant_batch_is_caught_by_looking_at_what_came(tmp_path):
    asked = tiny_language_model(data_mode="cached", limit={"steps": 20})
    found = run(tmp_path, asked, script=spoiled(tmp_path, "word_lm.CACHED_BATCHES = 1")).measured
    assert (found.data.distinct_batches, found.data.looked_at_batches) == (1, 16)
    assert caught(found) == ("invalid", {"constant-batch"})


SLEEPY_LOADER = """
import time
from parts.training import fastai_learner
quick = fastai_learner.OneByOne.__getitem__

def slow(self, item):
    time.sleep(0.05)
    return quick(self, item)

fastai_learner.OneByOne.__getitem__ = slow
"""


@pytest.mark.torch
def test_a_starved_loader_is_caught_by_the_time_that_steps_wait(tmp_path):
    asked = tiny_resnet(data_mode="host", options={"workers": 0}, limit={"steps": 4, "valid_batches": 0})
    script = spoiled(tmp_path, SLEEPY_LOADER, "cifar_fastai")
    found = run(tmp_path, asked, script=script).measured
    assert "input-bound" in caught(found)[1]
    assert summarise(found).input_share > 0.3


@pytest.mark.torch
def test_a_loss_that_is_not_finite_ends_the_trial_with_that_word(tmp_path):
    asked = tiny_language_model(limit={"steps": 30, "valid_batches": 0})
    ended = run(tmp_path, asked, script=spoiled(tmp_path, "word_lm.RATE, word_lm.CLIP = 1e38, 1e30"))
    assert ended.measurement is None
    assert ended.failed.reason == "not-finite"
    assert "the training loss is" in ended.failed.message
